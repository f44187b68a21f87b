# SPDX-License-Identifier: MIT
# Tangled from the chapter "strangers": edit that, not this file.
"""Hooks around the call of a module."""
from .._C import Tensor
from .._tensor import RemovableHandle
from ..autograd import Function


class Handle(RemovableHandle):
    """Removes a hook: h.remove(), or at the end of `with h:`."""

    def __init__(self, hooks, hook, prepend=False, named=False):
        self.hooks, self.named = hooks, named
        hooks[self] = hook
        if prepend:
            hooks.move_to_end(self, last=False)

    def remove(self):
        self.hooks.pop(self, None)


def call(module, args, named):
    """module.forward(*args, **named) with its hooks around it."""
    for handle, hook in list(module._forward_pre_hooks.items()):
        if handle.named:
            args, named = hook(module, args, named) or (args, named)
        else:
            other = hook(module, args)
            if other is not None:
                args = other if isinstance(other, tuple) else (other,)
    leave = None
    if module._backward_hooks:
        args, leave = _entered(module, args)
    result = module.forward(*args, **named)
    for handle, hook in list(module._forward_hooks.items()):
        other = hook(module, args, named, result) if handle.named \
            else hook(module, args, result)
        result = result if other is None else other
    return leave(result) if leave else result


class _Gate(Function):
    @staticmethod
    def forward(ctx, show, *tensors):
        ctx.show = show
        ctx.set_materialize_grads(False)
        return tensors

    @staticmethod
    def backward(ctx, *grads):
        return (None, *ctx.show(grads))


def _gated(show, values):
    at = [i for i, v in enumerate(values)
          if isinstance(v, Tensor) and v.requires_grad]

    def pick(grads):
        known = dict(zip(at, grads))
        every = show(tuple(map(known.get, range(len(values)))))
        return [every[i] for i in at]

    gated = dict(zip(at, at and _Gate.apply(
        pick, *(values[i] for i in at))))
    return tuple(gated.get(i, v) for i, v in enumerate(values))


def _entered(module, args):
    """The arguments behind their gate, and the gate of results."""
    outer = None

    def depart(grads):
        nonlocal outer
        outer = grads
        if all(a is b for a, b in zip(args, inner)):
            arrive((None,) * len(args))
        return grads

    def arrive(grads):
        for hook in list(module._backward_hooks.values()):
            other = hook(module, grads, outer)
            if other is not None:
                grads = other if isinstance(other, tuple) else (other,)
        return grads

    def leave(result):
        if isinstance(result, tuple):
            return _gated(depart, result)
        return _gated(depart, (result,))[0]

    inner = _gated(arrive, args)
    return inner, leave
