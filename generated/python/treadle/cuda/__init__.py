# SPDX-License-Identifier: MIT
# Tangled from the chapter "package": edit that, not this file.
"""CUDA devices: how many, what they hold, and waiting for them."""
from .. import _C, empty_cache


def device_count():
    """How many there are; 0 without a plug-in or driver."""
    return _C._device_count()


def is_available():
    """Whether tensors can be sent to a CUDA device."""
    return device_count() > 0


def synchronize(device="cuda"):
    """Wait until the device is idle; raise its pending faults."""
    _C._synchronise(device)


def memory_stats(device="cuda"):
    """Bytes in use, at most in use and kept, as a dict."""
    return _C.memory_stats(device)


def memory_allocated(device="cuda"):
    """Bytes that its tensors hold."""
    return memory_stats(device)["bytes"]
# dialect: further names of cuda


def manual_seed(seed):
    """Nothing to do: numbers for a device come from the host."""


def current_device():
    """The first."""
    return 0


manual_seed_all = manual_seed
