# SPDX-License-Identifier: MIT
# Tangled from the chapter "pictures": edit that, not this file.
# needs: layers
"""Borders, windows and sizes of pictures, as modules."""
from inspect import Signature
from . import functional as F
from .._arranging import _spread
from .activation import Activation, layers


class _Border(Activation):
    def _ready(self):
        self.padding = _spread(self.padding, 2 * self._dims)

    def forward(self, input):
        value = getattr(self, "value", None)
        return F.pad(input, self.padding, self._mode, value)


_width = {"padding": Signature.empty}
_borders = {"Constant": ("constant", {**_width, "value": 0.0}),
            "Zero": ("constant", _width),
            "Reflection": ("reflect", _width),
            "Replication": ("replicate", _width),
            "Circular": ("circular", _width)}
layers(globals(), "unfold fold pixel_shuffle pixel_unshuffle")
layers(globals(), "Upsample=interpolate", options={
    "size": None, "scale_factor": None, "mode": "nearest",
    "align_corners": None, "recompute_scale_factor": None})
for _name, (_mode, _options) in _borders.items():
    layers(globals(), _name + "Pad#d=pad", _Border, options=_options,
           _mode=_mode)
