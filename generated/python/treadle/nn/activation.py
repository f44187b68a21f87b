# SPDX-License-Identifier: MIT
# Tangled from the chapter "activations": edit that, not this file.
# needs: layers
"""Activations as modules."""
from .. import _C
from . import functional as F
from .module import Module, Parameter


class Activation(Module):
    """Calls a function with the options that it was made with."""
    _defaults = {}

    def __init__(self, *options, **named):
        super().__init__()
        given = dict(zip(self._defaults, options), **named)
        if len(options) > len(self._defaults) \
                or not given.keys() <= self._defaults.keys():
            raise TypeError(f"{type(self).__name__}: expected the "
                            f"options {list(self._defaults)}")
        self.__dict__.update({**self._defaults, **given})

    def _options(self):
        return {name: getattr(self, name) for name in self._defaults}

    def forward(self, *input):
        return self._function(*input, **self._options())

    def extra_repr(self):
        return ", ".join(f"{name}={value!r}" for name, value
                         in self._options().items()
                         if name != "inplace" or value)


_no = {"inplace": False}
_classes = {
    "ReLU": (F.relu, _no), "ReLU6": (F.relu6, _no),
    "SELU": (F.selu, _no), "SiLU": (F.silu, _no),
    "Mish": (F.mish, _no), "Hardswish": (F.hardswish, _no),
    "Hardsigmoid": (F.hardsigmoid, _no),
    "ELU": (F.elu, {"alpha": 1.0, **_no}),
    "CELU": (F.celu, {"alpha": 1.0, **_no}),
    "LeakyReLU": (F.leaky_relu, {"negative_slope": 0.01, **_no}),
    "Hardtanh": (F.hardtanh, {"min_val": -1.0, "max_val": 1.0, **_no}),
    "Threshold": (F.threshold, {"threshold": 0, "value": 0, **_no}),
    "GELU": (F.gelu, {"approximate": "none"}),
    "GLU": (F.glu, {"dim": -1}),
    "Softplus": (F.softplus, {"beta": 1, "threshold": 20}),
    "Hardshrink": (F.hardshrink, {"lambd": 0.5}),
    "Softshrink": (F.softshrink, {"lambd": 0.5}),
    "Softmax": (F.softmax, {"dim": -1}),
    "LogSoftmax": (F.log_softmax, {"dim": -1}),
    "Sigmoid": (F.sigmoid, {}), "Tanh": (F.tanh, {}),
    "LogSigmoid": (F.logsigmoid, {}), "Softsign": (F.softsign, {}),
    "Tanhshrink": (F.tanhshrink, {})}
globals().update((name, type(name, (Activation,), {
    "__module__": __name__, "__doc__": f"See functional.{f.__name__}.",
    "_function": staticmethod(f), "_defaults": defaults}))
    for name, (f, defaults) in _classes.items())


class PReLU(Module):
    """A rectifier whose negative slope is learned."""

    def __init__(self, num_parameters=1, init=0.25, device=None,
                 dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = Parameter(_C.full((num_parameters,), float(init),
                                        dtype=dtype, device=device))

    def forward(self, input):
        return F.prelu(input, self.weight)

    def extra_repr(self):
        return f"num_parameters={self.num_parameters}"


__all__ = [*_classes, "PReLU"]
