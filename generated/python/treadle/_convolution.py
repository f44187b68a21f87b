# SPDX-License-Identifier: MIT
# Tangled from the chapter "convolution": edit that, not this file.
# needs: package
"""Convolutions by the number of their directions."""
from . import _C
from ._forms import _spread


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
    run = _of_films if n == 3 else _C.convolution
    y = run(input, weight, bias, *lists[:3], transposed, lists[3],
            groups)
    y = y.squeeze(2) if n == 1 else y
    return y.squeeze(0) if alone else y


def _of_films(x, weight, bias, *lists):
    s, m, d, transposed, more, groups = lists
    (n, c, depth, *plane), k = x.shape, weight.shape[2]
    if c != weight.shape[0 if transposed else 1] * (
            1 if transposed else groups):
        raise RuntimeError(
            f"convolution: input {list(x.shape)} does not go with "
            f"weight {list(weight.shape)} and groups={groups}")
    along = (k, 1), (d[0], 1), (m[0], 0), (s[0], 1)
    if not transposed:
        x = _C.im2col(x.flatten(3), *along)
        depth = x.shape[2] // (plane[0] * plane[1])
        x = x.reshape([n, c * k, depth] + plane)
    y = _C.convolution(
        x.transpose(1, 2).flatten(0, 1), weight.flatten(1, 2),
        None if transposed else bias, *(v[1:] for v in (s, m, d)),
        transposed, more[1:], groups)
    channels, *plane = y.shape[1:]
    y = y.reshape([n, depth, channels] + plane).transpose(1, 2)
    if transposed:
        depth = (depth - 1) * s[0] - 2 * m[0] + d[0] * (k - 1) + 1 \
            + more[0]
        y = _C.col2im(y.flatten(3).flatten(2),
                      (depth, plane[0] * plane[1]), *along)
        y = y.reshape([n, channels // k, depth] + plane)
        y = y if bias is None else y + bias.reshape(-1, 1, 1, 1)
    return y


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


def _size_before(name, input, size, less, kernel, stride, padding,
                 dilation):
    """The size whose windows are input, and what it is more than least.

    size: None, or less than a stride more, or also less.
    """
    n = len(kernel)
    least = [(x - 1) * s - 2 * p + d * (k - 1) + 1 for x, s, p, d, k in
             zip(input.shape[-n:], stride, padding, dilation, kernel)]
    size = least if size is None else list(size)[-n:]
    more = [a - b for a, b in zip(size, least)]
    if len(size) != n or any(abs(m) >= s or m < 0 and not less
                             for m, s in zip(more, stride)):
        raise ValueError(f"{name}: expected an output_size of {least} "
                         f"or less than a stride {list(stride)} more"
                         f"{' or less' * less}, got {size}")
    return size, more


conv1d, conv2d, conv3d = map(_forward, (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(
    _transposed, (1, 2, 3))
__all__ = [name for name in globals() if name.startswith("conv")]
