# SPDX-License-Identifier: MIT
# Tangled from the chapter "inspection": edit that, not this file.
"""Nodes of the graph, and what is done with saved tensors."""
from .. import _C
from .._tensor import Node


class saved_tensors_hooks:
    """Inside, saved tensors are kept as pack_hook(x).

    unpack_hook must make a tensor of that again.
    """

    def __init__(self, pack_hook, unpack_hook):
        self.hooks = pack_hook, unpack_hook

    def __enter__(self):
        _C._saved_hooks_begin(self.hooks)
        return self

    def __exit__(self, *exception):
        _C._saved_hooks_end()


class save_on_cpu(saved_tensors_hooks):
    """Inside, saved tensors of a device wait in host memory."""

    def __init__(self, pin_memory=False, device_type="cuda"):
        pin = pin_memory and _C._device_count() > 0
        super().__init__(
            lambda x: (x._device, x.cpu().pin_memory() if pin
                       else x.cpu()),
            lambda kept: kept[1].to(kept[0]))
