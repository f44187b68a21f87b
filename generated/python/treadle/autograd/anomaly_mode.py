# SPDX-License-Identifier: MIT
# Tangled from the chapter "inspection": edit that, not this file.
"""Finding the operator that made the first NaN."""
import linecache
import re
import warnings
from .. import _C
from .._grad_mode import _Mode


class set_detect_anomaly(_Mode):
    """Switch anomaly mode; as a context, until its end."""
    swap = _C._set_anomaly

    def __init__(self, mode, check_nan=True):
        self.mode = 1 + bool(check_nan) if mode else 0
        super().__enter__()

    def __enter__(self):
        return self


class detect_anomaly(_Mode):
    """Anomaly mode for a block or a function."""
    swap = _C._set_anomaly

    def __init__(self, check_nan=True):
        self.mode = 1 + bool(check_nan)
        warnings.warn("Anomaly Detection has been enabled, which is "
                      "slow", stacklevel=2)


# inspection: functions that show a place
def _shown(place):
    return re.sub(
        r'  File "(.*)", line (\d+), in .*\n', lambda m: m[0] + "    "
        + linecache.getline(m[1], int(m[2])).strip() + "\n", place)


def _warn(where, name, first):
    text = ("Error detected in the backward pass. Traceback of forward "
            "call:\n" + _shown(where))
    if name:
        text += ("The first result that was not finite is that of "
                 f"'{name}':\n" + _shown(first))
    warnings.warn(text, stacklevel=2)


def is_anomaly_enabled():
    """Whether anomaly mode is on."""
    return _C._set_anomaly(None) > 0


def is_anomaly_check_nan_enabled():
    """Whether anomaly mode looks for NaN."""
    return _C._set_anomaly(None) == 2
