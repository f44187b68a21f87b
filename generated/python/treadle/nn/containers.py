# SPDX-License-Identifier: MIT
# Tangled from the chapter "containers": edit that, not this file.
# needs: layers
"""Modules that hold modules or parameters, and small layers."""
from collections.abc import MutableMapping
from itertools import groupby
from operator import index, itemgetter
from .. import _C
from . import functional as F, init
from .activation import Activation, layers
from .module import Module, Parameter


class _Container(Module):
    _kept = property(lambda self: self._modules)
    _keep = Module.add_module

    def __len__(self):
        return len(self._kept)


class _OfParameters:
    _kept = property(lambda self: self._parameters)

    def _keep(self, name, value):
        self.register_parameter(name, value if isinstance(
            value, (Parameter, type(None))) else Parameter(value))

    def extra_repr(self):
        return "\n".join(
            f"  ({name}): Parameter of shape {tuple(p.shape)}"
            for name, p in self._parameters.items())


class _List(_Container):
    def __init__(self, values=None):
        super().__init__()
        self.extend(values or ())

    def _name(self, i):
        return list(self._kept)[index(i)]

    def _again(self, values):
        self._kept.clear()
        for i, value in enumerate(values):
            self._keep(str(i), value)

    def _made(self, items):
        return type(self)([value for _, value in items])

    def __iter__(self):
        return iter(self._kept.values())

    def __getitem__(self, i):
        if isinstance(i, slice):
            return self._made(list(self._kept.items())[i])
        return self._kept[self._name(i)]
    # containers: ways to change a list

    def __setitem__(self, i, value):
        self._keep(self._name(i), value)

    def __delitem__(self, i):
        values = list(self)
        del values[i]
        self._again(values)

    def insert(self, i, value):
        """Put a value before place i; those behind move up."""
        self.append(value)      # which refuses what cannot be kept
        values = list(self)
        values.insert(i, values.pop())
        self._again(values)
        return self

    def append(self, value):
        """Put a value at the end; returns the container."""
        self._keep(str(len(self)), value)
        return self

    def extend(self, values):
        """Put several at the end; returns the container."""
        for value in values:
            self.append(value)
        return self

    __iadd__ = extend

    def pop(self, i=-1):
        """Take the value at place i out and return it."""
        value = self[i]
        del self[i]
        return value

    def __add__(self, other):
        return self._made(self._kept.items()).extend(other)


class _Dict(_Container, MutableMapping):
    __hash__, __eq__ = Module.__hash__, Module.__eq__

    def __init__(self, values=None):
        super().__init__()
        self.update(values or {})

    def __iter__(self):
        return iter(self._kept)

    def __getitem__(self, name):
        return self._kept[name]

    def __setitem__(self, name, value):
        self._keep(name, value)

    def __delitem__(self, name):
        del self._kept[name]


class ModuleList(_List):
    """A list of modules, each registered under its number."""

    def _texts(self):
        for text, run in groupby(super()._texts(), itemgetter(1)):
            first, *more = [name for name, _ in run]
            yield (f"{first}-{more[-1]}", f"{1 + len(more)} x {text}") \
                if more else (first, text)


class ModuleDict(_Dict):
    """Modules by names."""


class ParameterList(_OfParameters, _List):
    """A list of parameters; plain tensors become parameters."""


class ParameterDict(_OfParameters, _Dict):
    """Parameters by names; plain tensors become parameters."""


class Sequential(_List):
    """Modules called one after another."""

    def __init__(self, *modules):
        if len(modules) == 1 and isinstance(modules[0], dict):
            super().__init__()
            for name, module in modules[0].items():
                self.add_module(name, module)
        else:
            super().__init__(modules)

    def _made(self, items):
        return type(self)(dict(items))

    def forward(self, input):
        for module in self._modules.values():
            input = module(input)
        return input


def _unflatten(input, dim, unflattened_size):
    return input.unflatten(dim, unflattened_size)


_flatten = _C.flatten
__all__ = [
    "ModuleList", "ModuleDict", "ParameterList", "ParameterDict",
    "Sequential", "Bilinear"]
layers(globals(), "_flatten", options={"start_dim": 1, "end_dim": -1})
layers(globals(), "_unflatten")
layers(globals(), "cosine_similarity pairwise_distance", tensors=2,
       _printed="")


class _Embedding(Activation):
    """Rows of a table, by number; padding_idx stays zero."""
    _printed = "num_embeddings embedding_dim"
    _usual = {"padding_idx": None, "max_norm": None, "norm_type": 2.0,
              "scale_grad_by_freq": False, "sparse": False}

    def __init__(self, num_embeddings, embedding_dim, padding_idx=None,
                 max_norm=None, norm_type=2.0, scale_grad_by_freq=False,
                 sparse=False, _weight=None, device=None, dtype=None):
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ValueError(
                    f"Embedding: padding_idx {padding_idx} is not one "
                    f"of {num_embeddings} rows")
            padding_idx %= num_embeddings
        self._begin(locals())
        if _weight is None:
            self._add_parameters(locals(), {"weight": (
                num_embeddings, embedding_dim)})
            self.reset_parameters()
        else:
            self.weight = Parameter(_weight)

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, **options):
        """An embedding with the given table, frozen or not."""
        made = cls(*embeddings.shape, _weight=embeddings, **options)
        return made.requires_grad_(not freeze)

    def reset_parameters(self):
        """Draw all rows normally; the row of padding is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            init.zeros_(self.weight.data[self.padding_idx])


layers(globals(), "embedding", _Embedding)


class Bilinear(Module):
    """x, z -> x W z + b, with a matrix W for each output."""
    _printed = "in1_features= in2_features= out_features= bias="

    def __init__(self, in1_features, in2_features, out_features,
                 bias=True, device=None, dtype=None):
        self._begin(
            locals(), weight=(out_features, in1_features, in2_features),
            bias=bias and (out_features,))

    def reset_parameters(self):
        """Draw both uniformly from +-1/sqrt(in1_features)."""
        init._draw(self.in1_features, self.weight, self.bias)

    def forward(self, input1, input2):
        return F.bilinear(input1, input2, self.weight, self.bias)
