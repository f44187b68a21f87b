# SPDX-License-Identifier: MIT
# Tangled from the chapter "exchange": edit that, not this file.
"""Trading with NumPy and others, and names that programs use."""
from . import _C
from ._C import Tensor
from ._tensor import _give_methods
# exchange: functions that borrow memory
def from_dlpack(ext_tensor, *, device=None, copy=None):
    """A tensor on the memory of ext_tensor, or a copy if it must be.

    ext_tensor has a method __dlpack__, or is a DLPack capsule.
    """
    capsule = ext_tensor
    if hasattr(ext_tensor, "__dlpack__"):
        try:
            capsule = ext_tensor.__dlpack__(max_version=(1, 0))
        except TypeError:
            capsule = ext_tensor.__dlpack__()
    x = _C._from_dlpack(capsule, copy)
    return x if device is None else x.to(device)


def to_dlpack(tensor):
    """A DLPack capsule of the old form on the memory of tensor."""
    return tensor.__dlpack__()


class _Methods:
    # exchange: methods that lend memory
    def __dlpack_device__(self):
        """(1, 0): the CPU; (2, i): CUDA device i."""
        return (2, self.device.index or 0) if self.is_cuda else (1, 0)

    def __dlpack__(self, *, stream=None, max_version=None,
                   dl_device=None, copy=None):
        """A capsule on this tensor's memory, for from_dlpack."""
        if self.requires_grad:
            raise BufferError("__dlpack__: a tensor that requires grad "
                              "cannot be lent; use x.detach()")
        here = self.__dlpack_device__()
        there = here if dl_device is None else tuple(dl_device)
        if there[0] != 1 or (there != here and copy is False):
            raise BufferError(f"__dlpack__: memory of {self.device} cannot "
                              f"be lent to DLPack device {there}; use x.cpu()")
        x = self.clone() if copy and there == here else self.cpu()
        versioned = max_version is not None and max_version[0] >= 1
        return _C._to_dlpack(x, versioned, x is not self)


_give_methods(_Methods)
