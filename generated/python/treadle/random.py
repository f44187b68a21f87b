# SPDX-License-Identifier: MIT
# Tangled from the chapter "dialect": edit that, not this file.
"""The state of this thread's random numbers."""
from contextlib import contextmanager as _contextmanager
from ._C import manual_seed
from .compat.spelling import (
    _get_state as get_rng_state, _initial_seed as initial_seed,
    _seed as seed, _set_state)


def set_rng_state(new_state):
    """Go on with random numbers where get_rng_state was called."""
    _set_state(None, new_state)


@_contextmanager
def fork_rng(devices=None, enabled=True):
    """A block after which random numbers go on as if without it."""
    state = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)
