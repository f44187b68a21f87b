# SPDX-License-Identifier: MIT
# Tangled from the chapter "functional": edit that, not this file.
"""Finding the operator that made the first NaN."""
import functools
import warnings
from .. import _C


class set_detect_anomaly:
    """Switch anomaly mode; as a context, until its end."""

    def __init__(self, mode, check_nan=True):
        self.before = _C._anomaly()
        _C._set_anomaly((2 if check_nan else 1) if mode else 0)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        _C._set_anomaly(self.before)


class detect_anomaly:
    """Anomaly mode for a block or a function."""

    def __init__(self, check_nan=True):
        self.check_nan = check_nan
        warnings.warn("Anomaly Detection has been enabled. This mode "
                      "will increase the runtime and should only be "
                      "enabled for debugging.", stacklevel=2)

    def __enter__(self):
        self.mode = set_detect_anomaly(True, self.check_nan)

    def __exit__(self, *exception):
        self.mode.__exit__()

    def __call__(self, function):
        @functools.wraps(function)
        def wrapper(*args, **named):
            with set_detect_anomaly(True, self.check_nan):
                return function(*args, **named)
        return wrapper


def is_anomaly_enabled():
    """Whether anomaly mode is on."""
    return _C._anomaly() > 0


def is_anomaly_check_nan_enabled():
    """Whether anomaly mode looks for NaN."""
    return _C._anomaly() == 2
