# SPDX-License-Identifier: MIT
# Tangled from the chapter "convolution": edit that, not this file.
# needs: package
"""Convolutions by the number of their directions."""
from . import _C
from ._arranging import _spread


def _convolve(name, n, input, weight, bias, lists, transposed, groups):
    if weight.ndim != n + 2 or input.ndim not in (n + 1, n + 2) or \
            any(len(v) not in (1, n) for v in lists):
        raise RuntimeError(
            f"{name}: expected an input of {n + 2} dimensions (or "
            f"{n + 1}, without batch), a weight of {n + 2} and options "
            f"of {n}; got {list(input.shape)}, {list(weight.shape)}, "
            f"{lists}")
    alone = input.ndim == n + 1
    input = input.unsqueeze(0) if alone else input
    if n == 1:
        input, weight = input.unsqueeze(2), weight.unsqueeze(2)
        lists = [(usual, *v) for usual, v in zip((1, 0, 1, 0), lists)]
    y = _C.convolution(input, weight, bias, *lists[:3], transposed,
                       lists[3], groups)
    y = y.squeeze(2) if n == 1 else y
    return y.squeeze(0) if alone else y


def _forward(n):
    name = f"conv{n}d"

    def conv(input, weight, bias=None, stride=1, padding=0, dilation=1,
             groups=1):
        stride, dilation = _spread(stride, n), _spread(dilation, n)
        if padding == "same" and set(stride) == {1}:
            both = [d * (k - 1) for d, k in
                    zip(dilation, weight.shape[2:])]
            if any(m % 2 for m in both):
                input = _C.pad(input, [m for b in both[::-1]
                                       for m in (0, b % 2)])
            padding = [m // 2 for m in both]
        elif isinstance(padding, str) and padding != "valid":
            raise RuntimeError(f"{name}: padding must be 'same' (with "
                               "stride 1), 'valid' or integers, got "
                               f"{padding!r} with stride {stride}")
        padding = _spread(0 if padding == "valid" else padding, n)
        return _convolve(name, n, input, weight, bias,
                         [stride, padding, dilation, (0,) * n], False,
                         groups)
    conv.__name__ = conv.__qualname__ = name
    conv.__doc__ = f"""Windows over {n} direction(s) of the input.

    input: [N, C, ...] or [C, ...]; weight: [O, C / groups, ...];
    bias: [O].  See convolution."""
    return conv


def _transposed(n):
    name = f"conv_transpose{n}d"

    def conv(input, weight, bias=None, stride=1, padding=0,
             output_padding=0, groups=1, dilation=1):
        lists = [_spread(v, n) for v in (stride, padding, dilation,
                                         output_padding)]
        extra = [e // s if 0 < s <= e < d else 0 for s, _, d, e in
                 zip(*lists)]
        if any(extra):
            input = _C.pad(input, [m for e in extra[::-1]
                                   for m in (0, e)])
            lists[3] = [e - m * s for s, _, _, e, m in
                        zip(*lists, extra)]
        return _convolve(name, n, input, weight, bias, lists, True,
                         groups)
    conv.__name__ = conv.__qualname__ = name
    conv.__doc__ = f"""The adjoint of conv{n}d, from small to large.

    input: [N, C, ...] or [C, ...]; weight: [C, O / groups, ...];
    bias: [O].  See convolution."""
    return conv


conv1d, conv2d = _forward(1), _forward(2)
conv_transpose1d, conv_transpose2d = _transposed(1), _transposed(2)
__all__ = [name for name in globals() if name.startswith("conv")]
