# SPDX-License-Identifier: MIT
# Tangled from the chapter "inspection": edit that, not this file.
"""Functions of one's own: the class, its context, a decorator."""
import functools
from .. import _C
from . import Function, FunctionCtx, _spread, no_grad


def _refuse(*unused):
    raise RuntimeError("trying to differentiate twice a function "
                       "that was marked with @once_differentiable")


def once_differentiable(backward):
    """For a backward that cannot be differentiated itself."""
    @functools.wraps(backward)
    def wrapper(ctx, *grads):
        with no_grad():
            made = backward(ctx, *grads)
        all = tuple(m.detach() if isinstance(m, _C.Tensor) else m
                    for m in _spread(made, 1))
        _C._record("once", grads, all, (), _refuse)
        return all if isinstance(made, (tuple, list)) else all[0]
    return wrapper
