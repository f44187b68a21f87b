# SPDX-License-Identifier: MIT
# Tangled from the chapter "pictures": edit that, not this file.
# needs: layers
"""Borders, windows and sizes of pictures, as modules."""
from . import functional as F
from .._forms import _spread
from .activation import Activation, Given, layers


class _Border(Activation):
    _printed = property(lambda self: "padding= value=" if "value" in
                        self._given else "padding")

    def _ready(self):
        self.padding = _spread(self.padding, 2 * self._dims)

    def forward(self, input):
        value = getattr(self, "value", None)
        return F.pad(input, self.padding, self._mode, value)


_width = {"padding": Given.empty}
_borders = {"Constant": ("constant", {**_width, "value": 0.0}),
            "Zero": ("constant", _width),
            "Reflection": ("reflect", _width),
            "Replication": ("replicate", _width),
            "Circular": ("circular", _width)}
layers(globals(), "unfold fold pixel_shuffle pixel_unshuffle")
layers(globals(), "Upsample=interpolate",
       _printed=property(lambda self: "size= mode=" if self.size
                         else "scale_factor= mode="))
for _name, (_mode, _options) in _borders.items():
    layers(globals(), _name + "Pad#d=pad", _Border, options=_options,
           _mode=_mode)
