# SPDX-License-Identifier: MIT
# Tangled from the chapter "strangers": edit that, not this file.
"""Weights that are computed before each call."""
from .. import _C
from .._grad_mode import no_grad
from .module import Parameter


def _taken(module, name, kind):
    if f"{kind} {name}" in vars(module):
        raise RuntimeError(f"Cannot register two {kind} hooks on the "
                           f"same parameter {name}")
    return module._parameters.pop(name).detach()


def _computed(module, name, kind, ends, compute):
    def put(module, args=None):
        parts = (getattr(module, name + end) for end in ends)
        called = args is not None and module.training
        setattr(module, name, compute(called, *parts))
    put(module)
    vars(module)[f"{kind} {name}"] = \
        module.register_forward_pre_hook(put), put, ends
    return module


def _remover(kind):
    def remove(module, name="weight"):
        found = vars(module).pop(f"{kind} {name}", None)
        if not found:
            raise ValueError(f"{kind} of {name!r} is not in {module}")
        handle, put, ends = found
        put(module)
        handle.remove()
        w = vars(module).pop(name).detach()
        for end in ends:
            delattr(module, name + end)
        module.register_parameter(name, Parameter(w))
        return module
    return remove


remove_weight_norm = _remover("weight_norm")
remove_spectral_norm = _remover("spectral_norm")


def weight_norm(module, name="weight", dim=0):
    """Learn the length and the direction of a weight, each alone."""
    v = _taken(module, name, "weight_norm")
    rest = [d for d in range(v.ndim)
            if dim is None or d != dim % v.ndim]
    module.register_parameter(
        name + "_g", Parameter(v.norm(dim=rest, keepdim=True)))
    module.register_parameter(name + "_v", Parameter(v))
    return _computed(
        module, name, "weight_norm", ("_g", "_v"), lambda called, g, v:
        v * (g / v.norm(dim=rest, keepdim=True)))


def spectral_norm(module, name="weight", n_power_iterations=1,
                  eps=1e-12, dim=None):
    """Divide a weight, as a matrix, by its largest singular value."""
    if n_power_iterations < 1:
        raise ValueError("spectral_norm: n_power_iterations must be "
                         f"positive, got {n_power_iterations}")
    w = _taken(module, name, "spectral_norm")
    if dim is None:
        dim = int(getattr(module, "transposed", False))

    def turned(x):
        return _C.normalize(x, 2.0, 0, eps)

    def matrix(w):
        return w.movedim(dim, 0).flatten(1)
    module.register_parameter(name + "_orig", Parameter(w))
    for end, n in zip("uv", matrix(w).shape):
        module.register_buffer(f"{name}_{end}", turned(
            _C.randn((n,), dtype=w.dtype).to(w.device)))

    def divided(called, w, *kept):
        with no_grad():
            u, v = (x.clone() for x in kept)
            for _ in range(n_power_iterations * called):
                v = turned(matrix(w).t() @ u)
                u = turned(matrix(w) @ v)
            for old, new in zip(kept, (u, v)):
                old.copy_(new)
        return w / u.dot(matrix(w) @ v)
    _computed(module, name, "spectral_norm", ("_orig", "_u", "_v"),
              divided)
    setattr(module, name, w)
    return module
