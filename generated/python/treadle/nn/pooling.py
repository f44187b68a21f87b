# SPDX-License-Identifier: MIT
# Tangled from the chapter "pooling": edit that, not this file.
# needs: layers
"""Pooling and dropout as modules."""
from . import functional as F
from .activation import Activation
from .module import Module


class _Windows(Activation):
    def __init__(self, *options, **named):
        super().__init__(*options, **named)
        size = next(iter(self._defaults))
        if getattr(self, size) is ...:
            raise TypeError(f"{type(self).__name__}: {size} is missing")
        if getattr(self, "stride", 0) is None:
            self.stride = self.kernel_size
        if self._single:
            for name in ("kernel_size", "stride", "padding"):
                value = getattr(self, name)
                setattr(self, name, (value,) if isinstance(value, int)
                        else value)

    def extra_repr(self):
        return ", ".join(
            ("" if name == "size" else f"{name}=")
            + repr(getattr(self, name))
            for name in self._printed.split())


class _Dropout(Activation):
    _printed = "p inplace"
    extra_repr = _Windows.extra_repr

    def __init__(self, *options, **named):
        super().__init__(*options, **named)
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


_mean = {"kernel_size": ..., "stride": None, "padding": 0,
         "ceil_mode": False, "count_include_pad": True}
_max = {"kernel_size": ..., "stride": None, "padding": 0, "dilation": 1,
        "return_indices": False, "ceil_mode": False}
_mean_shown = "kernel_size stride padding"
_max_shown = "kernel_size stride padding dilation ceil_mode"
_parts, _places = {"output_size": ...}, {"return_indices": False}
_classes = {
    "MaxPool1d": (F.max_pool1d, _max, _max_shown),
    "MaxPool2d": (F.max_pool2d, _max, _max_shown),
    "AvgPool1d": (F.avg_pool1d, _mean, _mean_shown),
    "AvgPool2d": (F.avg_pool2d, {**_mean, "divisor_override": None},
                  _mean_shown),
    "AdaptiveAvgPool1d": (F.adaptive_avg_pool1d, _parts, "output_size"),
    "AdaptiveAvgPool2d": (F.adaptive_avg_pool2d, _parts, "output_size"),
    "AdaptiveMaxPool1d": (F.adaptive_max_pool1d, {**_parts, **_places},
                          "output_size"),
    "AdaptiveMaxPool2d": (F.adaptive_max_pool2d, {**_parts, **_places},
                          "output_size"),
    "LocalResponseNorm": (F.local_response_norm, {
        "size": ..., "alpha": 1e-4, "beta": 0.75, "k": 1.0},
        "size alpha beta k")}
_drops = {"Dropout": F.dropout, "Dropout1d": F.dropout1d,
          "Dropout2d": F.dropout2d, "Dropout3d": F.dropout3d,
          "AlphaDropout": F.alpha_dropout,
          "FeatureAlphaDropout": F.feature_alpha_dropout}


def _make(name, base, f, defaults, **more):
    globals()[name] = type(name, (base,), {
        "__module__": __name__, "__doc__": f"See functional."
        f"{f.__name__}.", "_function": staticmethod(f),
        "_defaults": defaults, **more})


for _name, (_f, _defaults, _shown) in _classes.items():
    _make(_name, _Windows, _f, _defaults, _printed=_shown,
          _single=_name == "AvgPool1d")
for _name, _f in _drops.items():
    _make(_name, _Dropout, _f, {"p": 0.5, "inplace": False})
__all__ = [*_classes, *_drops, "Softmax2d"]
