# SPDX-License-Identifier: MIT
# Tangled from the chapter "pooling": edit that, not this file.
# needs: layers
"""Pooling and dropout as functions."""
from math import prod as _prod
from .. import _C
from .._C import (adaptive_avg_pool1d, avg_pool1d, avg_pool2d,
                  avg_pool3d)
from .._convolution import _size_before
from .._forms import _spread


def _largest(name, adaptive):
    places = getattr(_C, name if adaptive else name + "_with_indices")

    def windows(input, kernel_size, stride=None, padding=0, dilation=1,
                ceil_mode=False, return_indices=False):
        y = places(input, kernel_size, stride, padding, dilation,
                   ceil_mode)
        return y if return_indices else y[0]

    def parts(input, output_size, return_indices=False):
        y = places(input, _sizes(input, output_size))
        return y if return_indices else y[0]

    function = parts if adaptive else windows
    function.__name__, function.__doc__ = name, places.__doc__
    return function


def _sizes(input, output_size):
    if isinstance(output_size, int):
        return output_size
    n = len(output_size)
    return [old if new is None else new
            for old, new in zip(input.shape[-n:], output_size)]


max_pool1d, max_pool2d, max_pool3d = (
    _largest(f"max_pool{n}d", False) for n in (1, 2, 3))
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (
    _largest(f"adaptive_max_pool{n}d", True) for n in (1, 2, 3))


def adaptive_avg_pool2d(input, output_size):
    """The mean of each of so many parts; None keeps a size."""
    sizes = _sizes(input, output_size)
    if sizes in (1, [1, 1]) and input.ndim in (3, 4) and input.numel():
        return input.mean((-2, -1), True)
    return _C.adaptive_avg_pool2d(input, sizes)


def adaptive_avg_pool3d(input, output_size):
    """The mean of each of so many parts; None keeps a size."""
    return _C.adaptive_avg_pool3d(input, _sizes(input, output_size))


def _unpooling(n):
    def unpool(input, indices, kernel_size, stride=None, padding=0,
               output_size=None):
        if input.ndim not in (n + 1, n + 2) \
                or indices.shape != input.shape:
            raise RuntimeError(
                f"{name}: expected {n + 1} or {n + 2} dimensions and "
                f"indices of the same shape, got {list(input.shape)} "
                f"and {list(indices.shape)}")
        size = _spread(kernel_size, n)
        step = size if stride in (None, [], ()) else _spread(stride, n)
        new, _ = _size_before(name, input, output_size, True, size,
                              step, _spread(padding, n), (1,) * n)
        where = input.shape[:-n]
        zeros = input.new_zeros([*where, _prod(new)])
        return _C.scatter(zeros, -1, indices.flatten(-n),
                          input.flatten(-n)).reshape([*where, *new])
    name = unpool.__name__ = f"max_unpool{n}d"
    unpool.__doc__ = f"""Zeros with each maximum put back to its place.

    indices: what max_pool{n}d(..., return_indices=True) returned."""
    return unpool


max_unpool1d, max_unpool2d, max_unpool3d = map(_unpooling, (1, 2, 3))


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """Divided by a mean square over `size` neighbouring channels."""
    if input.ndim < 3:
        raise ValueError("local_response_norm: expected 3D or higher "
                         f"input (got {input.ndim}D input)")
    square = (input * input).flatten(2).unsqueeze(1)
    square = _C.pad(square, (0, 0, size // 2, (size - 1) // 2))
    mean = avg_pool2d(square, (size, 1), 1).reshape(input.shape)
    return input / (mean * alpha + k) ** beta


def _dropping(name, op, training=True, unbatched=0):
    plain, update = getattr(_C, op), getattr(_C, op + "_")

    def function(input, p=0.5, training=training, inplace=False):
        if input.ndim == unbatched:
            return function(input.unsqueeze(0), p, training,
                            inplace).squeeze(0)
        return (update if inplace else plain)(input, p, training)

    function.__name__, function.__doc__ = name, plain.__doc__
    return function


dropout = _dropping("dropout", "dropout")
dropout1d = _dropping("dropout1d", "feature_dropout", True, 2)
dropout2d = _dropping("dropout2d", "feature_dropout")
dropout3d = _dropping("dropout3d", "feature_dropout", True, 4)
alpha_dropout = _dropping("alpha_dropout", "alpha_dropout", False)
feature_alpha_dropout = _dropping(
    "feature_alpha_dropout", "feature_alpha_dropout", False)
