# SPDX-License-Identifier: MIT
# Tangled from the chapter "convolution": edit that, not this file.
# needs: package
"""Convolutions by the number of their directions."""
from . import _C


def _spread(value, n):
    return tuple(value) if isinstance(value, (tuple, list)) \
        else (value,) * n


def _same(input, size, stride, dilation, name):
    n = len(size)
    if any(s != 1 for s in _spread(stride, n)):
        raise RuntimeError(f"{name}: padding='same' is not supported "
                           f"for strided convolutions, got {stride}")
    both = [d * (k - 1) for d, k in zip(_spread(dilation, n), size)]
    if any(m % 2 for m in both):
        input = _C.pad(input, [m for b in both[::-1]
                               for m in (0, b % 2)])
    return input, [m // 2 for m in both]


def _directions(name, weight, n):
    if getattr(weight, "ndim", n + 2) != n + 2:
        raise RuntimeError(f"{name}: expected a weight of {n + 2} "
                           f"dimensions, got {list(weight.shape)}")


def _convolution(n):
    name = f"conv{n}d"

    def conv(input, weight, bias=None, stride=1, padding=0, dilation=1,
             groups=1):
        _directions(name, weight, n)
        if padding == "same":
            input, padding = _same(input, weight.shape[2:], stride,
                                   dilation, name)
        elif isinstance(padding, str) and padding != "valid":
            raise RuntimeError(f"{name}: padding must be 'same', 'valid'"
                               f" or integers, got {padding!r}")
        return _C.convolution(input, weight, bias, stride,
                              0 if padding == "valid" else padding,
                              dilation, False, 0, groups)
    conv.__name__ = conv.__qualname__ = name
    conv.__doc__ = f"""Windows over {n} direction(s) of the input.

    input: [N, C, ...] or [C, ...]; weight: [O, C / groups, ...];
    bias: [O].  See convolution."""
    return conv


def _transposed(n):
    name = f"conv_transpose{n}d"

    def conv(input, weight, bias=None, stride=1, padding=0,
             output_padding=0, groups=1, dilation=1):
        _directions(name, weight, n)
        return _C.convolution(input, weight, bias, stride, padding,
                              dilation, True, output_padding, groups)
    conv.__name__ = conv.__qualname__ = name
    conv.__doc__ = f"""The adjoint of conv{n}d, from small to large.

    input: [N, C, ...] or [C, ...]; weight: [C, O / groups, ...];
    bias: [O].  See convolution."""
    return conv


conv1d, conv2d, conv3d = map(_convolution, (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(
    _transposed, (1, 2, 3))
__all__ = [name for name in globals() if name.startswith("conv")]
