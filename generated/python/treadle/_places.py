# SPDX-License-Identifier: MIT
# Tangled from the chapter "strangers": edit that, not this file.
"""Paths under which PyTorch keeps what is elsewhere here."""
import sys
from . import _grad_mode, _tensor, autograd, cuda, nn, optim, utils
from ._names import _module
from .nn import _hooks, _reparametrise, _sequences

_PLACES = {
    nn: "nn.modules nn.modules.linear nn.modules.container "
        "nn.modules.activation nn.modules.loss nn.modules.conv "
        "nn.modules.batchnorm nn.modules.normalization "
        "nn.modules.dropout nn.modules.sparse nn.modules.rnn "
        "nn.modules.pooling nn.modules.flatten nn.modules.padding "
        "nn.modules.transformer",
    nn.module: "nn.parameter nn.modules.module",
    nn._sequences: "nn.utils.rnn",
    optim: "optim.sgd optim.adam optim.adamw",
    utils.data: "utils.data.dataset utils.data.dataloader "
                "utils.data.sampler",
    _hooks: "utils.hooks",
    autograd: "autograd.variable autograd.gradcheck",
    _grad_mode: "autograd.grad_mode", _tensor: "tensor"}
nn.utils.weight_norm = nn._reparametrise.weight_norm
cuda.__path__ = []
# strangers: names that begin with an underscore
def _tuples(n):
    return lambda x: tuple(x) if hasattr(x, "__iter__") else (x,) * n


_module("nn.modules.utils", _ntuple=_tuples, _single=_tuples(1),
        _pair=_tuples(2), _triple=_tuples(3))
nn._BatchNorm = nn.normalisation._BatchNorm
nn._ConvNd = nn.convolution._Conv
_hooks.RemovableHandle = _hooks.Handle
for _place, _paths in _PLACES.items():
    for _path in _paths.split():
        _home, _, _name = f"treadle.{_path}".rpartition(".")
        sys.modules.setdefault(f"treadle.{_path}", _place)
        _home = sys.modules[_home]
        vars(_home).setdefault("__path__", [])
        if not hasattr(_home, _name):
            setattr(_home, _name, _place)
