# SPDX-License-Identifier: MIT
# Tangled from the chapter "strangers": edit that, not this file.
"""Paths under which PyTorch keeps what is elsewhere here."""
import sys
from .. import _grad_mode, _tensor, autograd, nn, optim, utils
from ..nn import _hooks, _reparametrise, _sequences

_PATHS = {
    nn: "nn.modules " + " ".join(f"nn.modules.{name}" for name in (
        "linear container activation loss conv batchnorm normalization "
        "dropout sparse rnn pooling flatten padding transformer"
        ).split()),
    nn.module: "nn.parameter nn.modules.module",
    nn.utils: "nn.modules.utils", _sequences: "nn.utils.rnn",
    optim: "optim.sgd optim.adam optim.adamw",
    utils.data: "utils.data.dataset utils.data.dataloader "
                "utils.data.sampler",
    _hooks: "utils.hooks",
    autograd: "autograd.variable autograd.gradcheck",
    _grad_mode: "autograd.grad_mode", _tensor: "tensor"}
for _name in "weight_norm", "spectral_norm":
    for _name in _name, "remove_" + _name:
        setattr(nn.utils, _name, getattr(_reparametrise, _name))
# strangers: names that begin with an underscore
def _tuples(n):
    return lambda x: tuple(x) if hasattr(x, "__iter__") else (x,) * n


nn.utils._ntuple, nn.utils._single = _tuples, _tuples(1)
nn.utils._pair, nn.utils._triple = _tuples(2), _tuples(3)
nn._BatchNorm = nn.normalisation._BatchNorm
nn._ConvNd = nn.convolution._Conv
for _found, _paths in _PATHS.items():
    for _path in _paths.split():
        _home, _, _name = f"treadle.{_path}".rpartition(".")
        sys.modules.setdefault(f"treadle.{_path}", _found)
        _home = sys.modules[_home]
        vars(_home).setdefault("__path__", [])
        if not hasattr(_home, _name):
            setattr(_home, _name, _found)
