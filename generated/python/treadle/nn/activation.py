# SPDX-License-Identifier: MIT
# Tangled from the chapter "activations": edit that, not this file.
# needs: layers
"""Activations as modules."""
from inspect import Parameter as Given, Signature, signature
from .. import _C
from . import functional as F
from .module import Module, Parameter


class Activation(Module):
    """Calls a function with the options that it was made with."""
    _usual, inplace = {"inplace": False}, False
    _printed = property(lambda self: " ".join(
        name + "=" for name in self._given if name != "inplace"))

    def __init__(self, *options, **named):
        given = self._form.bind(*options, **named)
        given.apply_defaults()
        self._begin(given.arguments)
        self._ready()

    def _ready(self):
        """What a subclass does once its options are there."""

    def _options(self):
        return {name: getattr(self, name) for name in self._given}

    def forward(self, *input, **named):
        return self._function(*input, **named, **self._options())


def layers(home, table, base=Activation, tensors=1, options=None,
           kind=Given.POSITIONAL_OR_KEYWORD, **fields):
    """Put a class into home, and its __all__, for each row of table.

    A row is name=function, or function, which home or functional has;
    options: those of all rows, by default the function's.
    """
    for row in table.split():
        for n in (1, 2, 3) if "#" in row else (0,):
            name, _, called = row.replace("#", str(n)).rpartition("=")
            name = name or "".join(
                word.capitalize() for word in called.split("_"))
            function = home.get(called) or getattr(F, called)
            given = options or {
                p.name: p.default for p in
                [*signature(function).parameters.values()][tensors:]}
            home[name] = type(name, (base,), {
                "__module__": home["__name__"], "_dims": n,
                "_given": [*given],
                "_form": Signature([
                    Given(option, kind, default=value)
                    for option, value in given.items()]),
                "__doc__": f"See functional.{function.__name__}.",
                "_function": staticmethod(function), **fields})
            home.setdefault("__all__", []).append(name)


layers(globals(), "ReLU=relu ReLU6=relu6 SELU=selu SiLU=silu ELU=elu "
       "mish CELU=celu GELU=gelu GLU=glu LeakyReLU=leaky_relu tanh "
       "hardswish hardsigmoid softplus sigmoid LogSigmoid=logsigmoid "
       "softsign tanhshrink threshold")
layers(globals(), "hardshrink softshrink", _printed="lambd")
layers(globals(), "hardtanh",
       options={"min_val": -1.0, "max_val": 1.0, "inplace": False})
layers(globals(), "softmax LogSoftmax=log_softmax",
       options={"dim": -1})


class _PReLU(Activation):
    _printed = "num_parameters="

    def __init__(self, num_parameters=1, init=0.25, device=None,
                 dtype=None):
        self._begin(locals())
        self.weight = Parameter(_C.full((num_parameters,), float(init),
                                        dtype=dtype, device=device))


layers(globals(), "PReLU=prelu", _PReLU)
