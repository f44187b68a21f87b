# SPDX-License-Identifier: MIT
# Tangled from the chapter "pooling": edit that, not this file.
# needs: layers
"""Pooling and dropout as modules."""
from .._forms import _spread
from . import functional as F
from .activation import Activation, Given, layers
from .module import Module


class _Windows(Activation):
    _single, _printed = False, "output_size="

    def _ready(self):
        if getattr(self, "stride", 0) is None:
            self.stride = self.kernel_size
        if self._single:
            for name in ("kernel_size", "stride", "padding"):
                setattr(self, name, _spread(getattr(self, name),
                                            self._dims or 1))


class _Unpooling(_Windows):
    _single = True

    def forward(self, input, indices, output_size=None):
        return self._function(input, indices, **self._options(),
                              output_size=output_size)


class _Dropout(Activation):
    _printed, _usual = "p= inplace=", {}

    def _ready(self):
        if not 0 <= self.p <= 1:
            raise ValueError(f"{type(self).__name__}: the probability "
                             "has to be between 0 and 1, but got "
                             f"{self.p}")

    def forward(self, input):
        return self._function(input, self.p, self.training,
                              self.inplace)


class Softmax2d(Module):
    """The softmax over the channels of [N, C, H, W] or [C, H, W]."""

    def forward(self, input):
        if input.ndim not in (3, 4):
            raise ValueError("Softmax2d: expected 3D or 4D input (got "
                             f"{input.ndim}D input)")
        return F.softmax(input, -3)


_size = {"kernel_size": Given.empty, "stride": None, "padding": 0}
_mean = {**_size, "ceil_mode": False, "count_include_pad": True}
_max = {**_size, "dilation": 1, "return_indices": False,
        "ceil_mode": False}
_shown = "kernel_size= stride= padding="
__all__ = ["Softmax2d"]
layers(globals(), "max_pool#d", _Windows, options=_max,
       _printed=_shown + " dilation= ceil_mode=")
layers(globals(), "avg_pool1d", _Windows, options=_mean,
       _printed=_shown, _single=True)
layers(globals(), "avg_pool2d avg_pool3d", _Windows,
       options={**_mean, "divisor_override": None}, _printed=_shown)
layers(globals(), "max_unpool#d", _Unpooling, options=_size,
       _printed=_shown)
layers(globals(), "local_response_norm", _Windows,
       _printed="size alpha= beta= k=")
layers(globals(), "adaptive_avg_pool#d adaptive_max_pool#d", _Windows)
layers(globals(), "dropout dropout#d alpha_dropout "
       "feature_alpha_dropout", _Dropout,
       options={"p": 0.5, "inplace": False})
