# SPDX-License-Identifier: MIT
# Tangled from the chapter "convolution": edit that, not this file.
# needs: layers
"""Convolutions as modules."""
from .._convolution import _size_before
from .._forms import _spread
from . import functional as F
from .activation import layers
from .layers import Linear
from .module import Module


class _Conv(Module):
    reset_parameters = Linear.reset_parameters
    _modes = ("zeros", "reflect", "replicate", "circular")
    _printed = "in_channels out_channels kernel_size= stride="
    _usual = {"padding": 0, "dilation": 1, "output_padding": 0,
              "groups": 1, "bias": True, "padding_mode": "zeros"}
    transposed = False

    def __init__(self, in_channels, out_channels, kernel_size, stride=1,
                 padding=0, dilation=1, groups=1, bias=True,
                 padding_mode="zeros", device=None, dtype=None, *,
                 output_padding=0):
        kernel_size, stride, dilation, output_padding = (
            _spread(option, self._dims) for option in (
                kernel_size, stride, dilation, output_padding))
        if not isinstance(padding, str):
            padding = _spread(padding, self._dims)
        # convolution: refuse options of a convolution
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ValueError(f"{type(self).__name__}: in_channels "
                             f"{in_channels} and out_channels {out_channels} "
                             f"must be divisible by groups {groups}")
        if isinstance(padding, str) and padding != "valid" and (
                padding != "same" or set(stride) != {1}):
            raise ValueError(f"{type(self).__name__}: padding must be 'same' "
                             "(with stride 1), 'valid' or integers, got "
                             f"{padding!r} with stride {stride}")
        if padding_mode not in self._modes:
            raise ValueError(f"{type(self).__name__}: padding_mode must be one "
                             f"of {self._modes}, got {padding_mode!r}")
        self._begin(locals(), weight=(
            *((in_channels, out_channels // groups) if self.transposed
              else (out_channels, in_channels // groups)),
            *kernel_size), bias=bias and (out_channels,))

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
    def forward(self, input, output_size=None):
        extra = self.output_padding
        if output_size is not None:
            _, extra = _size_before(
                type(self).__name__, input, output_size, False,
                self.kernel_size, self.stride, self.padding,
                self.dilation)
        return self._function(input, self.weight, self.bias,
                              self.stride, self.padding, extra,
                              self.groups, self.dilation)


layers(globals(), "conv#d", _Conv)
layers(globals(), "conv_transpose#d", _Transposed)
