# SPDX-License-Identifier: MIT
# Tangled from the chapter "python": edit that, not this file.
"""CUDA devices: whether there are any, how many, and waiting for them."""
from . import _C


def device_count():
    """How many CUDA devices there are; 0 without a plug-in or driver."""
    return _C._device_count()


def is_available():
    """Whether tensors can be sent to a CUDA device."""
    return device_count() > 0


def synchronize(device="cuda"):
    """Wait until the device is idle; its pending faults are raised here."""
    _C._synchronise(device)
