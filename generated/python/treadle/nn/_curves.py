# SPDX-License-Identifier: MIT
# Tangled from the chapter "activations": edit that, not this file.
# needs: layers
"""Activations as functions."""
from functools import wraps as _wraps
from inspect import Parameter as _Given, signature as _signature
from .. import _C
from .._C import (celu_, elu_, gelu, hardshrink, hardtanh_, leaky_relu_,
                  logsigmoid, prelu, relu_, selu_, sigmoid, softplus,
                  softshrink, softsign, tanh, tanhshrink, threshold_)


def _activation(name):
    plain, update = getattr(_C, name), getattr(_C, name + "_")
    form = _signature(plain)
    own = [*form.parameters.values()]

    @_wraps(plain)
    def function(input, *options, inplace=False, **named):
        if len(options) == len(own):
            *options, inplace = options
        return (update if inplace else plain)(input, *options, **named)
    function.__signature__ = form.replace(parameters=[*own, _Given(
        "inplace", _Given.POSITIONAL_OR_KEYWORD, default=False)])
    function.__module__ = __name__          # where pickle finds it
    return function


for _name in ("celu", "elu", "hardsigmoid", "hardswish", "hardtanh",
              "leaky_relu", "mish", "relu", "relu6", "selu", "silu",
              "threshold"):
    globals()[_name] = _activation(_name)


def glu(input, dim=-1):
    """The first half along dim, gated by the second's sigmoid."""
    size = input.shape[dim]
    if size % 2:
        raise RuntimeError(f"glu: dimension {dim} has {size} elements, "
                           "expected an even number")
    half, gate = input.chunk(2, dim)
    return half * sigmoid(gate)
