# SPDX-License-Identifier: MIT
# Tangled from the chapter "strangers": edit that, not this file.
"""Weights that are computed before each call."""
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
