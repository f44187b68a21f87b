# SPDX-License-Identifier: MIT
# Tangled from the chapter "normalisation": edit that, not this file.
# needs: layers
"""Normalisations as modules."""
from .. import _C
from .._grad_mode import no_grad
from . import functional as F
from .module import Module


class _Affine(Module):
    def __init__(self, shape, weight, bias, device, dtype, **options):
        super().__init__()
        self.__dict__.update(options)
        self._empty_parameters(
            device, dtype, weight=shape if weight else None,
            bias=shape if weight and bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Ones for the weight, zeros for the bias."""
        with no_grad():
            for parameter, value in ((self.weight, 1), (self.bias, 0)):
                if parameter is not None:
                    parameter.fill_(value)


class LayerNorm(_Affine):
    """See functional.layer_norm."""
    _printed = "normalized_shape eps= elementwise_affine="

    def __init__(self, normalized_shape, eps=1e-05,
                 elementwise_affine=True, bias=True, device=None,
                 dtype=None):
        shape = (normalized_shape,) if isinstance(
            normalized_shape, int) else tuple(normalized_shape)
        super().__init__(shape, elementwise_affine, bias, device, dtype,
                         normalized_shape=shape, eps=eps,
                         elementwise_affine=elementwise_affine)

    def forward(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight,
                            self.bias, self.eps)


class RMSNorm(LayerNorm):
    """See functional.rms_norm."""

    def __init__(self, normalized_shape, eps=None,
                 elementwise_affine=True, device=None, dtype=None):
        super().__init__(normalized_shape, eps, elementwise_affine,
                         False, device, dtype)

    def forward(self, input):
        return F.rms_norm(input, self.normalized_shape, self.weight,
                          self.eps)


class GroupNorm(_Affine):
    """See functional.group_norm."""
    _printed = "num_groups num_channels eps= affine="

    def __init__(self, num_groups, num_channels, eps=1e-05, affine=True,
                 device=None, dtype=None):
        if num_channels % num_groups:
            raise ValueError("num_channels must be divisible by "
                             "num_groups")
        super().__init__((num_channels,), affine, True, device, dtype,
                         num_groups=num_groups,
                         num_channels=num_channels, eps=eps,
                         affine=affine)

    def forward(self, input):
        return F.group_norm(input, self.num_groups, self.weight,
                            self.bias, self.eps)


class _BatchNorm(_Affine):
    _printed = "num_features eps= momentum= affine= " \
        "track_running_stats="

    def __init__(self, num_features, eps=1e-05, momentum=0.1,
                 affine=True, track_running_stats=True, device=None,
                 dtype=None):
        track, at = track_running_stats, {"device": device}
        super().__init__((num_features,), affine, True, device, dtype,
                         num_features=num_features, eps=eps,
                         momentum=momentum, affine=affine,
                         track_running_stats=track)
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

    def _normalise(self, function, input, part):
        if input.ndim not in self._ranks:
            raise ValueError(f"{type(self).__name__}: expected " +
                             " or ".join(f"{r}D" for r in self._ranks) +
                             f" input (got {input.ndim}D input)")
        return function(input, self.running_mean, self.running_var,
                        self.weight, self.bias,
                        self.training or self.running_mean is None,
                        part or 0.0, self.eps)

    def forward(self, input):
        part = self.momentum
        if self.training and self.track_running_stats:
            self.num_batches_tracked.add_(1)
            if part is None:
                part = 1 / self.num_batches_tracked.item()
        return self._normalise(F.batch_norm, input, part)


class _InstanceNorm(_BatchNorm):
    def __init__(self, num_features, eps=1e-05, momentum=0.1,
                 affine=False, track_running_stats=False, device=None,
                 dtype=None):
        super().__init__(num_features, eps, momentum, affine,
                         track_running_stats, device, dtype)

    def forward(self, input):
        if input.ndim == self._ranks[0]:
            return self.forward(input.unsqueeze(0)).squeeze(0)
        return self._normalise(F.instance_norm, input, self.momentum)


__all__ = ["LayerNorm", "RMSNorm", "GroupNorm"]
for _n in (1, 2, 3):
    for _base, _ranks in (
            (_BatchNorm, (2, 3) if _n == 1 else (_n + 2,)),
            (_InstanceNorm, (_n + 1, _n + 2))):
        _name = f"{_base.__name__[1:]}{_n}d"
        globals()[_name] = type(_name, (_base,), {
            "__module__": __name__, "_ranks": _ranks, "__doc__":
            f"{_base.__name__[1:]} of so many dimensions: {_ranks}."})
        __all__.append(_name)
