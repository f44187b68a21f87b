# SPDX-License-Identifier: MIT
# Tangled from the chapter "activations": edit that, not this file.
# needs: layers
"""Activations as modules."""
import re
from inspect import Signature, signature
from operator import attrgetter
from .. import _C
from . import functional as F
from .module import Module, Parameter


class Activation(Module):
    """Calls a function with the options that it was made with."""
    _defaults, _positional = {}, None

    def __init__(self, *options, **named):
        super().__init__()
        names = [*self._defaults][:self._positional]
        given = {**self._defaults, **dict(zip(names, options)), **named}
        kind = type(self).__name__
        if len(options) > len(names) \
                or given.keys() != self._defaults.keys():
            raise TypeError(f"{kind}: expected the options "
                            f"{list(self._defaults)}")
        for name, value in given.items():
            if value is Signature.empty:
                raise TypeError(f"{kind}: {name} is missing")
        self.__dict__.update(given)
        self._ready()

    def _ready(self):
        """What a subclass does once its options are there."""

    def _options(self):
        return {name: getattr(self, name) for name in self._defaults}

    def forward(self, *input):
        return self._function(*input, **self._options())

    def extra_repr(self):
        return self._show(*(
            name + "=" for name, value in self._options().items()
            if name != "inplace" or value))


def layers(home, table, base=Activation, tensors=1, options=None,
           **fields):
    """Put a class into home, and its __all__, for each row of table.

    A row is name=function, or function, which home or functional has;
    options: those of all rows, by default the function's.
    """
    for row, n in ((row, n) for row in table.split()
                   for n in ((1, 2, 3) if "#" in row else (0,))):
        name, _, called = row.replace("#", str(n)).rpartition("=")
        name = name or re.sub("(?:^_?|_)(.)", lambda m: m[1].upper(),
                              called)
        function = home.get(called) or getattr(F, called)
        home[name] = type(name, (base,), {
            "__module__": home["__name__"], "_dims": n,
            "_defaults": options or {
                p.name: p.default for p in
                [*signature(function).parameters.values()][tensors:]},
            "__doc__": f"See functional.{function.__name__}.",
            "_function": staticmethod(function), **fields})
        home.setdefault("__all__", []).append(name)


def calls(function):
    """The forward of a module whose fields are function's options."""
    fields = attrgetter(*[*signature(function).parameters][1:])

    def forward(self, input):
        return function(input, *fields(self))
    return forward


_no = {"inplace": False}
__all__ = ["PReLU"]
layers(globals(), "ReLU=relu ReLU6=relu6 SELU=selu SiLU=silu ELU=elu "
       "mish CELU=celu GELU=gelu GLU=glu LeakyReLU=leaky_relu tanh "
       "hardswish hardsigmoid softplus hardshrink softshrink sigmoid "
       "LogSigmoid=logsigmoid softsign tanhshrink")
layers(globals(), "hardtanh",
       options={"min_val": -1.0, "max_val": 1.0, **_no})
layers(globals(), "threshold",
       options={"threshold": 0, "value": 0, **_no})
layers(globals(), "softmax LogSoftmax=log_softmax",
       options={"dim": -1})


class PReLU(Module):
    """A rectifier whose negative slope is learned."""
    _printed = "num_parameters="

    def __init__(self, num_parameters=1, init=0.25, device=None,
                 dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = Parameter(_C.full((num_parameters,), float(init),
                                        dtype=dtype, device=device))

    def forward(self, input):
        return F.prelu(input, self.weight)
