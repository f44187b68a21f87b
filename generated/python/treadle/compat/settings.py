# SPDX-License-Identifier: MIT
# Tangled from the chapter "dialect": edit that, not this file.
"""Switches of the library, and some that change nothing."""
import warnings as _warnings
from math import inf as _inf
from .. import _C, _tensor
# dialect: settings
_PROFILES = {"default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80),
             "full": (4, 2 ** 62, 3, 80)}


def set_printoptions(precision=None, threshold=None, edgeitems=None,
                     linewidth=None, profile=None, sci_mode=None):
    """How tensors are printed; what is None stays as it is."""
    if profile is not None:
        set_printoptions(*_PROFILES[profile])
        _C._print_option(4, -1)
    if threshold == _inf:
        threshold = 2 ** 62
    _tensor._LINE[0] = linewidth or _tensor._LINE[0]
    for which, value in enumerate((precision, threshold, edgeitems,
                                   linewidth, sci_mode)):
        if value is not None:
            _C._print_option(which, int(value))


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Nothing changes: all operators are, on every device."""


def set_float32_matmul_precision(precision):
    """Nothing changes: products of float32 keep its precision."""
    _tensor._choose("precision", precision,
                    ("highest", "high", "medium"))
# porting: settings


def compile(model=None, **options):
    """The model itself, which runs as it is; see also td.jit."""
    _warnings.warn("compile has no effect: the model runs as it is; "
                   "td.jit compiles functions", stacklevel=3)
    return (lambda model: model) if model is None else model


def set_default_device(device):
    """Where new tensors are made: there is only "cpu"."""
    if str(device).partition(":")[0] != "cpu":
        raise NotImplementedError(
            "tensors are made on the CPU unless "
            f"device={str(device)!r} stands in the call")
