# SPDX-License-Identifier: MIT
# Tangled from the chapter "activations": edit that, not this file.
# needs: layers
"""Activations as modules."""
from inspect import Signature, signature
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
    """Put a class into home for each row of table; returns its names.

    A row is name: function, or name: (function, options) where PyTorch
    has other options or defaults than the function.  In a text it is
    name=function, one of functional's; all have the options, if given.
    """
    if isinstance(table, str):
        rows = (row.split("=") for row in table.split())
        table = {name: getattr(F, function) for name, function in rows}
    for name, row in table.items():
        function, own = row if isinstance(row, tuple) \
            else (row, options or {
                p.name: p.default for p in
                [*signature(row).parameters.values()][tensors:]})
        home[name] = type(name, (base,), {
            "__module__": home["__name__"], "_defaults": own,
            "__doc__": f"See functional.{function.__name__}.",
            "_function": staticmethod(function), **fields})
    return [*table]


_no = {"inplace": False}
__all__ = ["PReLU", *layers(
    globals(),
    "ReLU=relu ReLU6=relu6 SELU=selu SiLU=silu Mish=mish ELU=elu "
    "CELU=celu GELU=gelu GLU=glu LeakyReLU=leaky_relu Tanh=tanh "
    "Hardswish=hardswish Hardsigmoid=hardsigmoid Softplus=softplus "
    "Hardshrink=hardshrink Softshrink=softshrink Sigmoid=sigmoid "
    "LogSigmoid=logsigmoid Softsign=softsign Tanhshrink=tanhshrink"),
    *layers(globals(), {
    "Hardtanh": (F.hardtanh, {"min_val": -1.0, "max_val": 1.0, **_no}),
    "Threshold": (F.threshold, {"threshold": 0, "value": 0, **_no}),
    "Softmax": (F.softmax, {"dim": -1}),
    "LogSoftmax": (F.log_softmax, {"dim": -1})})]


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
