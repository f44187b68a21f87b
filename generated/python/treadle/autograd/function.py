# SPDX-License-Identifier: MIT
# Tangled from the chapter "inspection": edit that, not this file.
"""Functions of one's own: the class, its context, a decorator."""
import functools
from .._C import Tensor, is_grad_enabled
from . import Function, FunctionCtx, _tuple_of_all, no_grad


class _Once(Function):
    @staticmethod
    def forward(ctx, count, *tensors):
        return tensors[:count]

    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError("trying to differentiate twice a function "
                           "that was marked with @once_differentiable")


def once_differentiable(backward):
    """For a backward that cannot be differentiated itself."""
    @functools.wraps(backward)
    def wrapper(ctx, *grads):
        with no_grad():
            made = backward(ctx, *grads)
        given = [g for g in grads
                 if isinstance(g, Tensor) and g.requires_grad]
        if not is_grad_enabled() or not given:
            return made
        all = _tuple_of_all(made)
        real = [m for m in all if m is not None]
        tied = iter(_Once.apply(len(real), *real, *given))
        all = tuple(m if m is None else next(tied) for m in all)
        return all if isinstance(made, (tuple, list)) else all[0]
    return wrapper
