# SPDX-License-Identifier: MIT
# Tangled from the chapter "strangers": edit that, not this file.
"""Weights that are computed before each call."""
from .. import _C
from .._grad_mode import no_grad
from .module import Parameter


def weight_norm(module, name="weight", dim=0):
    """Learn the length and the direction of a weight, each alone."""
    v = module._parameters.pop(name).detach()
    rest = [d for d in range(v.ndim)
            if dim is None or d != dim % v.ndim]
    module.register_parameter(
        name + "_g", Parameter(v.norm(dim=rest, keepdim=True)))
    module.register_parameter(name + "_v", Parameter(v))

    def put(module, args=None):
        g, v = (getattr(module, name + end) for end in ("_g", "_v"))
        setattr(module, name, v * (g / v.norm(dim=rest, keepdim=True)))
    put(module)
    module.register_forward_pre_hook(put)
    return module


def spectral_norm(module, name="weight", n_power_iterations=1,
                  eps=1e-12, dim=None):
    """Divide a weight, as a matrix, by its largest singular value."""
    if n_power_iterations < 1:
        raise ValueError("spectral_norm: n_power_iterations must be "
                         f"positive, got {n_power_iterations}")
    w = module._parameters.pop(name).detach()
    if dim is None:
        dim = int(getattr(module, "transposed", False))

    def turned(x):
        return _C.normalize(x, 2.0, 0, eps)

    def matrix(w):
        return w.movedim(dim, 0).flatten(1)
    module.register_parameter(name + "_orig", Parameter(w))
    setattr(module, name, w)
    for end, n in zip("uv", matrix(w).shape):
        module.register_buffer(f"{name}_{end}", turned(
            _C.randn((n,), dtype=w.dtype).to(w.device)))

    def put(module, args=None):
        w, *kept = (getattr(module, name + end)
                    for end in ("_orig", "_u", "_v"))
        with no_grad():
            u, v = (x.clone() for x in kept)
            for _ in range(n_power_iterations * module.training):
                v = turned(matrix(w).t() @ u)
                u = turned(matrix(w) @ v)
            for old, new in zip(kept, (u, v)):
                old.copy_(new)
        setattr(module, name, w / u.dot(matrix(w) @ v))
    module.register_forward_pre_hook(put)
    return module
