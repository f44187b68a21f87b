# SPDX-License-Identifier: MIT
# Tangled from the chapter "normalisation": edit that, not this file.
# needs: layers
"""Normalisations as modules."""
from .. import _C
from .._forms import _spread
from . import init
from .activation import Activation, layers


class _Affine(Activation):
    def _begin(self, given, shape, bias=True):
        super()._begin(given, weight=shape, bias=bias and shape)

    def reset_parameters(self):
        """Ones for the weight, zeros for the bias."""
        for parameter, value in ((self.weight, 1), (self.bias, 0)):
            if parameter is not None:
                init.constant_(parameter, value)


class _LayerNorm(_Affine):
    _printed = "normalized_shape eps= elementwise_affine= bias="

    def __init__(self, normalized_shape, eps=1e-05,
                 elementwise_affine=True, bias=True, device=None,
                 dtype=None):
        normalized_shape = _spread(normalized_shape, 1)
        self._begin(locals(), elementwise_affine and normalized_shape,
                    bias)


class _RMSNorm(_LayerNorm):
    _printed = "normalized_shape eps= elementwise_affine="

    def __init__(self, normalized_shape, eps=None,
                 elementwise_affine=True, device=None, dtype=None):
        super().__init__(normalized_shape, eps, elementwise_affine,
                         False, device, dtype)


class _GroupNorm(_Affine):
    _printed = "num_groups num_channels eps= affine= bias="

    def __init__(self, num_groups, num_channels, eps=1e-05, affine=True,
                 device=None, dtype=None):
        if num_channels % num_groups:
            raise ValueError("num_channels must be divisible by "
                             "num_groups")
        self._begin(locals(), affine and (num_channels,))


layers(globals(), "layer_norm", _LayerNorm)
layers(globals(), "RMSNorm=rms_norm", _RMSNorm)
layers(globals(), "group_norm", _GroupNorm)


class _BatchNorm(_Affine):
    _printed = "num_features eps= momentum= affine= bias= " \
        "track_running_stats="

    def __init__(self, num_features, eps=1e-05, momentum=0.1,
                 affine=True, track_running_stats=True, device=None,
                 dtype=None):
        self._begin(locals(), affine and (num_features,))
        track, at = track_running_stats, {"device": device}
        for name in ("running_mean", "running_var"):
            self.register_buffer(name, _C.empty(
                num_features, dtype=dtype, **at) if track else None)
        self.register_buffer("num_batches_tracked",
                             _C.tensor(0, **at) if track else None)
        self.reset_running_stats()

    def reset_running_stats(self):
        """Mean 0, variance 1, no batch seen."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def _normalise(self, input, part, *ranks):
        if input.ndim not in ranks:
            raise ValueError(f"{type(self).__name__}: expected " +
                             " or ".join(f"{r}D" for r in ranks) +
                             f" input (got {input.ndim}D input)")
        return self._function(
            input, self.running_mean, self.running_var, self.weight,
            self.bias, self.training or self.running_mean is None,
            part or 0.0, self.eps)

    def forward(self, input):
        part = self.momentum
        if self.training and self.track_running_stats:
            self.num_batches_tracked.add_(1)
            if part is None:
                part = 1 / self.num_batches_tracked.item()
        n = self._dims
        return self._normalise(input, part, *[2] * (n < 2), n + 2)


class _InstanceNorm(_BatchNorm):
    def __init__(self, num_features, eps=1e-05, momentum=0.1,
                 affine=False, track_running_stats=False, device=None,
                 dtype=None):
        super().__init__(num_features, eps, momentum, affine,
                         track_running_stats, device, dtype)

    def forward(self, input):
        alone = self._dims + 1
        if input.ndim == alone:
            return self.forward(input.unsqueeze(0)).squeeze(0)
        return self._normalise(input, self.momentum, alone, alone + 1)


layers(globals(), "BatchNorm#d=batch_norm", _BatchNorm)
layers(globals(), "InstanceNorm#d=instance_norm", _InstanceNorm)
