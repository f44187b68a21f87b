# SPDX-License-Identifier: MIT
# Tangled from the chapter "inspection": edit that, not this file.
"""Functions of one's own: the class, its context, a decorator."""
import functools
from .._C import Tensor, is_grad_enabled
from . import Function, FunctionCtx, no_grad


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
        several = isinstance(made, (tuple, list))
        given = [g for g in grads
                 if isinstance(g, Tensor) and g.requires_grad]
        if not is_grad_enabled() or not given:
            return made
        made = list(made if several else (made,))
        real = [k for k, m in enumerate(made) if m is not None]
        tied = _Once.apply(len(real), *(made[k] for k in real), *given)
        for k, m in zip(real, tied):
            made[k] = m
        return tuple(made) if several else made[0]
    return wrapper
