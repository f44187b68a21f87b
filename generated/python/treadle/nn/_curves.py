# SPDX-License-Identifier: MIT
# Tangled from the chapter "activations": edit that, not this file.
# needs: layers
"""Activations as functions."""
from functools import wraps as _wraps
from .. import _C
from .._C import (celu_, elu_, gelu, hardshrink, hardtanh_, leaky_relu_,
                  logsigmoid, prelu, relu_, selu_, sigmoid, softplus,
                  softshrink, softsign, tanh, tanhshrink, threshold_)


def _activation(name, n):
    plain, update = getattr(_C, name), getattr(_C, name + "_")

    @_wraps(plain)
    def function(input, *options, inplace=False, **named):
        if len(options) > n:
            *options, inplace = options
        return (update if inplace else plain)(input, *options, **named)
    return function


_options = {"relu": 0, "relu6": 0, "selu": 0, "silu": 0, "mish": 0,
            "hardsigmoid": 0, "hardswish": 0, "leaky_relu": 1, "elu": 1,
            "celu": 1, "hardtanh": 2, "threshold": 2}
globals().update((name, _activation(name, n))
                 for name, n in _options.items())


def glu(input, dim=-1):
    """The first half along dim, gated by the second's sigmoid."""
    size = input.shape[dim]
    if size % 2:
        raise RuntimeError(f"glu: dimension {dim} has {size} elements, "
                           "expected an even number")
    return _C.slice(input, dim, 0, size // 2) * sigmoid(
        _C.slice(input, dim, size // 2, size))


__all__ = [name for name in globals() if name[0] not in "_A"]
