# SPDX-License-Identifier: MIT
# Tangled from the chapter "schedules": edit that, not this file.
# needs: layers
"""What is done to all gradients or parameters at once."""
from .. import _C, Tensor
from .._grad_mode import no_grad


def _gradients(parameters):
    parameters = [parameters] if isinstance(parameters, Tensor) \
        else list(parameters)
    grads = [p.grad for p in parameters]
    return [g.detach() for g in grads if g is not None]


@no_grad
def clip_grad_norm_(parameters, max_norm, norm_type=2.0,
                    error_if_nonfinite=False):
    """Shorten all gradients together; returns their length before."""
    grads = _gradients(parameters)
    if not grads:
        return _C.tensor(0.0)
    norm = float(norm_type)
    place = grads[0].device
    total = _C.vector_norm(_C.stack(
        [_C.vector_norm(g, norm).to(place) for g in grads]), norm)
    if error_if_nonfinite and not total.isfinite().item():
        raise RuntimeError(f"clip_grad_norm_: the {norm}-norm of the "
                           f"gradients is {total.item()}")
    factor = _C.clamp(max_norm / (total + 1e-6), max=1.0)
    for g in grads:
        g.mul_(factor.to(dtype=g.dtype, device=g.device))
    return total


@no_grad
def clip_grad_value_(parameters, clip_value):
    """Hold each element of all gradients within +-clip_value."""
    for g in _gradients(parameters):
        g.clamp_(-float(clip_value), float(clip_value))


def parameters_to_vector(parameters):
    """All elements of all parameters, one after the other."""
    return _C.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec, parameters):
    """Make pieces of vec the contents of the parameters."""
    at = 0
    for p in parameters:
        p.data = vec[at:at + p.numel()].reshape(p.shape).detach()
        at += p.numel()
