# SPDX-License-Identifier: MIT
# Tangled from the chapter "convolution": edit that, not this file.
# needs: layers
"""Convolutions as modules."""
from math import prod as _prod
from .._arranging import _spread
from . import functional as F, init
from .activation import layers
from .module import Module


class _Conv(Module):
    _modes = ("zeros", "reflect", "replicate", "circular")
    _printed = "in_channels out_channels kernel_size= stride="
    _usual = {"padding": 0, "dilation": 1, "output_padding": 0,
              "groups": 1, "bias": True, "padding_mode": "zeros"}
    transposed = False

    def __init__(self, in_channels, out_channels, kernel_size, stride=1,
                 padding=0, dilation=1, groups=1, bias=True,
                 padding_mode="zeros", device=None, dtype=None, *,
                 output_padding=0):
        self._begin(locals())
        for name in ("kernel_size", "stride", "dilation",
                     "output_padding", "padding"):
            value = getattr(self, name)
            if not isinstance(value, str):
                setattr(self, name, _spread(value, self._dims))
        # convolution: refuse options of a convolution
        kind = type(self).__name__
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ValueError(f"{kind}: in_channels {in_channels} and "
                             f"out_channels {out_channels} must be divisible "
                             f"by groups {groups}")
        if isinstance(padding, str) and padding != "valid" and (
                padding != "same" or set(self.stride) != {1}):
            raise ValueError(f"{kind}: padding must be 'same' (with stride 1),"
                             f" 'valid' or integers, got {padding!r} with "
                             f"stride {self.stride}")
        if padding_mode not in self._modes:
            raise ValueError(f"{kind}: padding_mode must be one of "
                             f"{self._modes}, got {padding_mode!r}")
        sides = (in_channels, out_channels // groups) if \
            self.transposed else (out_channels, in_channels // groups)
        self._empty_parameters(device, dtype,
                               weight=(*sides, *self.kernel_size),
                               bias=(out_channels,) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw both uniformly from +-1/sqrt(fan-in)."""
        init._draw(_prod(self.weight.shape[1:]), self.weight,
                   self.bias)

    def forward(self, input):
        padding = self.padding
        if self.padding_mode != "zeros" and padding != "valid":
            both = [d * (k - 1) for d, k in
                    zip(self.dilation, self.kernel_size)]
            pairs = [(m // 2, m - m // 2) for m in both] \
                if padding == "same" else [(m, m) for m in padding]
            input = F.pad(input, [m for p in pairs[::-1] for m in p],
                          self.padding_mode)
            padding = 0
        return self._function(input, self.weight, self.bias,
                              self.stride, padding, self.dilation,
                              self.groups)


class _Transposed(_Conv):
    _modes, transposed = ("zeros",), True

    def __init__(self, in_channels, out_channels, kernel_size, stride=1,
                 padding=0, output_padding=0, groups=1, bias=True,
                 dilation=1, padding_mode="zeros", device=None,
                 dtype=None):
        super().__init__(in_channels, out_channels, kernel_size, stride,
                         padding, dilation, groups, bias, padding_mode,
                         device, dtype, output_padding=output_padding)

    def _padding_for(self, input, size):
        n = self._dims
        size = list(size[-n:] if len(size) == input.ndim else size)
        least = [(x - 1) * s - 2 * p + d * (k - 1) + 1
                 for x, s, p, d, k in
                 zip(input.shape[-n:], self.stride, self.padding,
                     self.dilation, self.kernel_size)]
        extra = [a - b for a, b in zip(size, least)]
        if len(size) != n or any(not 0 <= e < s for e, s in
                                 zip(extra, self.stride)):
            raise ValueError(
                f"{type(self).__name__}: output_size {size} is not "
                f"{least} or less than a stride {self.stride} more")
        return extra

    def forward(self, input, output_size=None):
        extra = self.output_padding if output_size is None \
            else self._padding_for(input, output_size)
        return self._function(input, self.weight, self.bias,
                              self.stride, self.padding, extra,
                              self.groups, self.dilation)


layers(globals(), "conv#d", _Conv)
layers(globals(), "conv_transpose#d", _Transposed)
