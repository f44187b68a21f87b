# SPDX-License-Identifier: MIT
# Tangled from the chapter "containers": edit that, not this file.
# needs: layers
"""Initialisers: fill a tensor in place and return it."""
import math
from .. import _C
from .._grad_mode import no_grad


def calculate_gain(nonlinearity, param=None):
    """How much a nonlinearity shrinks the variance, inverted."""
    slope = 0.01 if param is None else param
    gains = {"tanh": 5 / 3, "relu": math.sqrt(2),
             "leaky_relu": math.sqrt(2 / (1 + slope * slope)),
             "selu": 3 / 4}
    if nonlinearity in gains:
        return gains[nonlinearity]
    if nonlinearity in ("linear", "sigmoid") or \
            nonlinearity.startswith("conv"):
        return 1.0
    raise ValueError(f"calculate_gain: unknown nonlinearity "
                     f"{nonlinearity!r}")


def _fans(tensor):
    if tensor.ndim < 2:
        raise ValueError("fan in and fan out need a tensor of at least "
                         f"2 dimensions, got {tensor.ndim}")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


@no_grad
def uniform_(tensor, a=0.0, b=1.0):
    """Uniform numbers in [a, b)."""
    return tensor.uniform_(a, b)


def _draw(fan, *tensors):
    bound = fan ** -0.5 if fan else 0.0
    for tensor in tensors:
        if tensor is not None:
            uniform_(tensor, -bound, bound)


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


@no_grad
def orthogonal_(tensor, gain=1):
    """Orthonormal rows or columns, whichever are fewer, times gain."""
    columns, rows = _fans(tensor)[0], len(tensor)
    few, many = sorted((rows, columns))
    drawn = _C.empty((few, many), dtype=_C.float64).normal_()
    q = _C.zeros((few, many), dtype=_C.float64)
    for i in range(few):
        v = drawn[i]
        for _ in range(2):
            v = v - (q @ v) @ q
        q[i] = v / _C.vector_norm(v)
    q = q if rows == few else q.T
    return tensor.copy_(gain * q.reshape(tensor.shape))


@no_grad
def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0):
    """Normal numbers, none outside [a, b]."""
    low, high = (math.erf((x - mean) / std / math.sqrt(2))
                 for x in (a, b))
    tensor.uniform_(low, high).erfinv_()
    return tensor.mul_(std * math.sqrt(2)).add_(mean).clamp_(a, b)


@no_grad
def eye_(tensor):
    """The identity, for a matrix."""
    if tensor.ndim != 2:
        raise ValueError("eye_: expected 2 dimensions, "
                         f"got {tensor.ndim}")
    return tensor.copy_(_C.eye(*tensor.shape))


@no_grad
def dirac_(tensor, groups=1):
    """Kernels of a convolution that changes nothing."""
    if not 3 <= tensor.ndim <= 5 or tensor.shape[0] % groups:
        raise ValueError(
            "dirac_: expected 3 to 5 dimensions, the first divisible "
            f"by {groups} groups, got {tuple(tensor.shape)}")
    rows, columns, *sizes = tensor.shape
    tensor.zero_()[(..., *(n // 2 for n in sizes))] = \
        _C.eye(rows // groups, columns).repeat(groups, 1)
    return tensor


@no_grad
def sparse_(tensor, sparsity, std=0.01):
    """Normal numbers; a share of each column is zero."""
    if tensor.ndim != 2:
        raise ValueError("sparse_: expected 2 dimensions, "
                         f"got {tensor.ndim}")
    tensor.normal_(0.0, std)
    none = math.ceil(sparsity * tensor.shape[0])
    for j in range(tensor.shape[1]):
        tensor[_C.randperm(tensor.shape[0])[:none], j] = 0.0
    return tensor


_calculate_fan_in_and_fan_out = _fans
