# SPDX-License-Identifier: MIT
# Tangled from the chapter "pictures": edit that, not this file.
# needs: layers
"""Borders, windows and sizes of pictures, as modules."""
from .. import _C
from . import functional as F
from .activation import Activation


class _Border(Activation):
    def __init__(self, padding, *value, **named):
        super().__init__(padding, *value, **named)
        if isinstance(padding, int):
            self.padding = (padding,) * (2 * self._dims)

    def forward(self, input):
        value = getattr(self, "value", None)
        return F.pad(input, self.padding, self._mode, value)


_borders = {"Constant": ("constant", {"padding": 0, "value": 0.0}),
            "Zero": ("constant", {"padding": 0}),
            "Reflection": ("reflect", {"padding": 0}),
            "Replication": ("replicate", {"padding": 0}),
            "Circular": ("circular", {"padding": 0})}
_windows = {"kernel_size": 1, "dilation": 1, "padding": 0, "stride": 1}
_classes = {
    "Unfold": (F.unfold, _windows),
    "Fold": (F.fold, {"output_size": 1, **_windows}),
    "PixelShuffle": (F.pixel_shuffle, {"upscale_factor": 1}),
    "PixelUnshuffle": (F.pixel_unshuffle, {"downscale_factor": 1}),
    "Upsample": (F.interpolate, {
        "size": None, "scale_factor": None, "mode": "nearest",
        "align_corners": None, "recompute_scale_factor": None})}


def _make(name, base, **fields):
    globals()[name] = type(name, (base,), {
        "__module__": __name__, "__doc__": fields.pop("doc"), **fields})
    return name


__all__ = [_make(f"{name}Pad{n}d", _Border, _mode=mode, _dims=n,
                 _defaults=defaults, doc=f"A border; mode {mode}.")
           for name, (mode, defaults) in _borders.items()
           for n in (1, 2, 3)]
__all__ += [_make(name, Activation, _function=staticmethod(f),
                  _defaults=defaults,
                  doc=f"See functional.{f.__name__}.")
            for name, (f, defaults) in _classes.items()]
