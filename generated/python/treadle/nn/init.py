# SPDX-License-Identifier: MIT
# Tangled from the chapter "layers": edit that, not this file.
"""Initialisers: fill a tensor in place and return it."""
import math
from .._grad_mode import no_grad


def calculate_gain(nonlinearity, param=None):
    """How much a nonlinearity shrinks the variance, inverted."""
    slope = 0.01 if param is None else param
    gains = {"tanh": 5 / 3, "relu": math.sqrt(2),
             "leaky_relu": math.sqrt(2 / (1 + slope * slope)),
             "selu": 3 / 4}
    if nonlinearity in gains:
        return gains[nonlinearity]
    if nonlinearity in ("linear", "sigmoid", "conv1d", "conv2d"):
        return 1.0
    raise ValueError(f"calculate_gain: unknown nonlinearity "
                     f"{nonlinearity!r}")


def _fans(tensor):
    if tensor.ndim < 2:
        raise ValueError("fan in and fan out need at least 2 "
                         f"dimensions, got {tensor.ndim}")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


@no_grad
def uniform_(tensor, a=0.0, b=1.0):
    """Uniform numbers in [a, b)."""
    return tensor.uniform_(a, b)


@no_grad
def normal_(tensor, mean=0.0, std=1.0):
    """Normal numbers."""
    return tensor.normal_(mean, std)


@no_grad
def constant_(tensor, val):
    """One value everywhere."""
    return tensor.fill_(val)


def zeros_(tensor):
    """Zeros."""
    return constant_(tensor, 0.0)


def ones_(tensor):
    """Ones."""
    return constant_(tensor, 1.0)


def xavier_uniform_(tensor, gain=1.0):
    """Uniform in +-gain * sqrt(6 / (fan_in + fan_out))."""
    bound = gain * math.sqrt(6 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor, gain=1.0):
    """Normal, deviation gain * sqrt(2 / (fan_in + fan_out))."""
    return normal_(tensor, 0.0,
                   gain * math.sqrt(2 / sum(_fans(tensor))))


def _he(tensor, a, mode, nonlinearity):
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"mode must be 'fan_in' or 'fan_out', "
                         f"not {mode!r}")
    fan = _fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(tensor, a=0, mode="fan_in",
                     nonlinearity="leaky_relu"):
    """Uniform in +-gain * sqrt(3 / fan)."""
    bound = math.sqrt(3) * _he(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(tensor, a=0, mode="fan_in",
                    nonlinearity="leaky_relu"):
    """Normal, deviation gain / sqrt(fan)."""
    return normal_(tensor, 0.0, _he(tensor, a, mode, nonlinearity))
