# SPDX-License-Identifier: MIT
# Tangled from the chapter "convolution": edit that, not this file.
# needs: layers
"""Convolutions as modules."""
from math import prod as _prod
from .. import _C
from .._convolution import _spread
from .._grad_mode import no_grad
from . import functional as F
from .module import Module, Parameter


class _Conv(Module):
    _modes = ("zeros", "reflect", "replicate", "circular")
    transposed = False

    def __init__(self, in_channels, out_channels, kernel_size, stride,
                 padding, output_padding, dilation, groups, bias,
                 padding_mode, device, dtype):
        super().__init__()
        n = self._dims
        # convolution: refuse options of a convolution
        kind = type(self).__name__
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ValueError(f"{kind}: in_channels and out_channels must be "
                             f"divisible by groups, got {in_channels}, "
                             f"{out_channels} and {groups}")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"{kind}: padding must be 'same', 'valid' or "
                                 f"integers, got {padding!r}")
            if padding == "same" and any(s != 1 for s in _spread(stride, n)):
                raise ValueError(f"{kind}: padding='same' is not supported for "
                                 f"strided convolutions, got {stride}")
        if padding_mode not in self._modes:
            raise ValueError(f"{kind}: padding_mode must be one of "
                             f"{self._modes}, got {padding_mode!r}")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size = _spread(kernel_size, n)
        self.stride, self.dilation = _spread(stride, n), \
            _spread(dilation, n)
        self.padding = padding if isinstance(padding, str) \
            else _spread(padding, n)
        self.output_padding = _spread(output_padding, n)
        self.groups, self.padding_mode = groups, padding_mode
        first, second = (in_channels, out_channels) if self.transposed \
            else (out_channels, in_channels)
        shape = (first, second // groups, *self.kernel_size)
        self.weight = Parameter(_C.empty(shape, dtype=dtype,
                                         device=device))
        self.bias = Parameter(_C.empty(
            (out_channels,), dtype=dtype, device=device)) if bias \
            else None
        self.reset_parameters()

    def reset_parameters(self):
        """Draw both uniformly from +-1/sqrt(fan-in)."""
        fan_in = _prod(self.weight.shape[1:])
        bound = fan_in ** -0.5 if fan_in else 0.0
        with no_grad():
            self.weight.uniform_(-bound, bound)
            if self.bias is not None:
                self.bias.uniform_(-bound, bound)

    def extra_repr(self):
        n = self._dims
        usual = {"padding": (0,) * n, "dilation": (1,) * n,
                 "output_padding": (0,) * n, "groups": 1}
        words = [f"{self.in_channels}, {self.out_channels}, kernel_size"
                 f"={self.kernel_size}, stride={self.stride}"]
        words += [f"{name}={getattr(self, name)}" for name in usual
                  if getattr(self, name) != usual[name]]
        if self.bias is None:
            words.append("bias=False")
        if self.padding_mode != "zeros":
            words.append(f"padding_mode={self.padding_mode}")
        return ", ".join(words)


class _Forward(_Conv):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1,
                 padding=0, dilation=1, groups=1, bias=True,
                 padding_mode="zeros", device=None, dtype=None):
        super().__init__(in_channels, out_channels, kernel_size, stride,
                         padding, 0, dilation, groups, bias,
                         padding_mode, device, dtype)

    def _margins(self):
        if self.padding == "valid":
            return [0] * (2 * self._dims)
        both = [d * (k - 1) for d, k in
                zip(self.dilation, self.kernel_size)]
        pairs = [(m // 2, m - m // 2) for m in both] \
            if self.padding == "same" else [(m, m) for m in self.padding]
        return [m for pair in pairs[::-1] for m in pair]

    def forward(self, input):
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._margins(), self.padding_mode)
            padding = 0
        return self._function(input, self.weight, self.bias, self.stride,
                              padding, self.dilation, self.groups)


class _Transposed(_Conv):
    _modes = ("zeros",)
    transposed = True

    def __init__(self, in_channels, out_channels, kernel_size, stride=1,
                 padding=0, output_padding=0, groups=1, bias=True,
                 dilation=1, padding_mode="zeros", device=None,
                 dtype=None):
        super().__init__(in_channels, out_channels, kernel_size, stride,
                         padding, output_padding, dilation, groups,
                         bias, padding_mode, device, dtype)

    def _padding_for(self, input, size):
        n = self._dims
        size = list(size)[-n:] if len(size) == input.ndim else list(size)
        least = [(x - 1) * s - 2 * p + d * (k - 1) + 1
                 for x, s, p, d, k in
                 zip(input.shape[-n:], self.stride, self.padding,
                     self.dilation, self.kernel_size)]
        if len(size) != n or any(not 0 <= a - b < s for a, b, s in
                                 zip(size, least, self.stride)):
            most = [b + s - 1 for b, s in zip(least, self.stride)]
            raise ValueError(f"{type(self).__name__}: output_size "
                             f"{size} is not between {least} and {most}")
        return [a - b for a, b in zip(size, least)]

    def forward(self, input, output_size=None):
        extra = self.output_padding if output_size is None \
            else self._padding_for(input, output_size)
        return self._function(input, self.weight, self.bias, self.stride,
                              self.padding, extra, self.groups,
                              self.dilation)


def _make(name, base, function, n):
    globals()[name] = type(name, (base,), {
        "__module__": __name__, "_dims": n,
        "_function": staticmethod(function),
        "__doc__": f"Owns a weight and a bias; see functional."
                   f"{function.__name__}."})
    return name


__all__ = [_make(name % n, base, getattr(F, function % n), n)
           for n in (1, 2, 3)
           for name, base, function in (
               ("Conv%dd", _Forward, "conv%dd"),
               ("ConvTranspose%dd", _Transposed, "conv_transpose%dd"))]
