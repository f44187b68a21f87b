# SPDX-License-Identifier: MIT
# Tangled from the chapter "layers": edit that, not this file.
"""Layers as modules."""
from .. import _C
from .._grad_mode import no_grad
from . import functional as F
from .module import Module, Parameter


class Linear(Module):
    """x -> x @ weight.T + bias, weight of shape [out, in]."""

    def __init__(self, in_features, out_features, bias=True,
                 device=None, dtype=None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(
            _C.empty((out_features, in_features), dtype=dtype))
        self.bias = Parameter(
            _C.empty((out_features,), dtype=dtype)) if bias else None
        self.reset_parameters()

    def reset_parameters(self):
        """Draw both uniformly from +-1/sqrt(in_features)."""
        bound = self.in_features ** -0.5 if self.in_features else 0.0
        with no_grad():
            self.weight.uniform_(-bound, bound)
            if self.bias is not None:
                self.bias.uniform_(-bound, bound)

    def forward(self, x):
        return _C.linear(x, self.weight, self.bias)

    def extra_repr(self):
        return f"in_features={self.in_features}, out_features=" \
            f"{self.out_features}, bias={self.bias is not None}"


class Sequential(Module):
    """Modules called one after another."""

    def __init__(self, *modules):
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], dict):
            named = modules[0].items()
        else:
            named = ((str(i), m) for i, m in enumerate(modules))
        for name, module in named:
            if not isinstance(module, Module):
                raise TypeError("Sequential: expected a Module, got "
                                f"{type(module).__name__}")
            self.add_module(name, module)

    def forward(self, x):
        for module in self._modules.values():
            x = module(x)
        return x

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __getitem__(self, i):
        if isinstance(i, slice):
            return type(self)(dict(list(self._modules.items())[i]))
        return list(self._modules.values())[i]

    def append(self, module):
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self


class Identity(Module):
    """Whatever it is given."""

    def __init__(self, *args, **named):
        super().__init__()

    def forward(self, x):
        return x


class Flatten(Module):
    """Dimensions start_dim to end_dim made one."""

    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x):
        return x.flatten(self.start_dim, self.end_dim)

    def extra_repr(self):
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"
