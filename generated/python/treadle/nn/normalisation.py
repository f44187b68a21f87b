# SPDX-License-Identifier: MIT
# Tangled from the chapter "normalisation": edit that, not this file.
# needs: layers
"""Normalisations as modules."""
from .. import _C
from .._grad_mode import no_grad
from . import functional as F
from .module import Module, Parameter


class _Affine(Module):
    _printed = ()

    def _make(self, shape, affine, device, dtype, bias=True):
        for name, wanted in (("weight", affine), ("bias", bias)):
            self.register_parameter(name, Parameter(_C.empty(
                shape, device=device, dtype=dtype))
                if affine and wanted else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Ones for the weight, zeros for the bias."""
        with no_grad():
            for parameter, value in ((self.weight, 1), (self.bias, 0)):
                if parameter is not None:
                    parameter.fill_(value)

    def extra_repr(self):
        return ", ".join(
            str(getattr(self, name)) if i < self._bare
            else f"{name}={getattr(self, name)}"
            for i, name in enumerate(self._printed))


class LayerNorm(_Affine):
    """See functional.layer_norm."""
    _printed = "normalized_shape", "eps", "elementwise_affine"
    _bare = 1

    def __init__(self, normalized_shape, eps=1e-05,
                 elementwise_affine=True, bias=True, device=None,
                 dtype=None):
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(
            normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._make(self.normalized_shape, elementwise_affine, device,
                   dtype, bias)

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
    _printed, _bare = ("num_groups", "num_channels", "eps", "affine"), 2

    def __init__(self, num_groups, num_channels, eps=1e-05, affine=True,
                 device=None, dtype=None):
        super().__init__()
        if num_channels % num_groups:
            raise ValueError("num_channels must be divisible by "
                             "num_groups")
        self.num_groups, self.num_channels = num_groups, num_channels
        self.eps, self.affine = eps, affine
        self._make((num_channels,), affine, device, dtype)

    def forward(self, input):
        return F.group_norm(input, self.num_groups, self.weight,
                            self.bias, self.eps)


class _Running(_Affine):
    _printed = ("num_features", "eps", "momentum", "affine",
                "track_running_stats")
    _bare = 1

    def __init__(self, num_features, eps=1e-05, momentum=0.1,
                 affine=True, track_running_stats=True, device=None,
                 dtype=None):
        super().__init__()
        for name in self._printed:
            setattr(self, name, locals()[name])
        for name in ("running_mean", "running_var"):
            self.register_buffer(name, _C.empty(
                (num_features,), device=device, dtype=dtype)
                if track_running_stats else None)
        self.register_buffer("num_batches_tracked", _C.tensor(
            0, device=device) if track_running_stats else None)
        self.reset_running_stats()
        self._make((num_features,), affine, device, dtype)

    def reset_running_stats(self):
        """Mean 0, variance 1, no batch seen."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def _check(self, input):
        if input.ndim not in self._ranks:
            raise ValueError(f"{type(self).__name__}: expected " +
                             " or ".join(f"{r}D" for r in self._ranks) +
                             f" input (got {input.ndim}D input)")


class _BatchNorm(_Running):
    def forward(self, input):
        self._check(input)
        part = self.momentum
        if self.training and self.track_running_stats:
            self.num_batches_tracked.add_(1)
            if part is None:
                part = 1 / self.num_batches_tracked.item()
        return F.batch_norm(
            input, self.running_mean, self.running_var, self.weight,
            self.bias, self.training or self.running_mean is None,
            part or 0.0, self.eps)


class _InstanceNorm(_Running):
    def __init__(self, num_features, eps=1e-05, momentum=0.1,
                 affine=False, track_running_stats=False, device=None,
                 dtype=None):
        super().__init__(num_features, eps, momentum, affine,
                         track_running_stats, device, dtype)

    def forward(self, input):
        self._check(input)
        batched = input.ndim == self._ranks[1]
        y = F.instance_norm(
            input if batched else input.unsqueeze(0), self.running_mean,
            self.running_var, self.weight, self.bias,
            self.training or self.running_mean is None,
            self.momentum or 0.0, self.eps)
        return y if batched else y.squeeze(0)


def _make(base, n, ranks):
    name = f"{base.__name__[1:]}{n}d"
    globals()[name] = type(name, (base,), {
        "__module__": __name__, "_ranks": ranks,
        "__doc__": f"{base.__name__[1:]} of {ranks} dimensions."})
    return name


__all__ = ["LayerNorm", "RMSNorm", "GroupNorm",
           *(_make(_BatchNorm, n, (2, 3) if n == 1 else (n + 2,))
             for n in (1, 2, 3)),
           *(_make(_InstanceNorm, n, (n + 1, n + 2)) for n in (1, 2, 3))]
