# SPDX-License-Identifier: MIT
# Tangled from the chapter "inspection": edit that, not this file.
"""Memory against time: compute again instead of saving."""
import weakref
from functools import partial
from .. import _C
from .._grad_mode import enable_grad, settings, under
from ..autograd.graph import saved_tensors_hooks


class _Token:
    """Stands for a tensor that was not kept."""
    __slots__ = ("__weakref__",)


# inspection: class _Part of a checkpoint
class _Part:
    """One call, and how to run it again."""

    def __init__(self, function, args, named, keep_random):
        self.run = partial(under, [setting() for setting in settings],
                           function, *args, **named)
        self.tokens, self.found = [], weakref.WeakKeyDictionary()
        self.random = _C._random_state(None) if keep_random else None

    def pack(self, x):
        token = _Token()
        self.tokens.append(weakref.ref(token))
        return token

    def unpack(self, token):
        if token not in self.found:
            self.run_again()
        return self.found[token]

    def run_again(self):
        tokens, n = self.tokens, 0

        def catch(x):
            nonlocal n
            token = tokens[n]() if n < len(tokens) else None
            n += 1
            if token is not None:
                self.found[token] = x
            return token

        now = _C._random_state(None, *self.random or ())
        try:
            with enable_grad(), saved_tensors_hooks(catch, None):
                self.run()
        finally:
            if self.random is not None:
                _C._random_state(None, *now)
        if n != len(tokens):
            raise RuntimeError(
                f"checkpoint: the function saved {len(tokens)} tensors,"
                f" and {n} when run again")


# inspection: functions checkpoint and checkpoint_sequential
def checkpoint(function, *args, use_reentrant=None,
               preserve_rng_state=True, **named):
    """function(*args), computed again in the backward pass."""
    if not _C.is_grad_enabled():
        return function(*args, **named)
    part = _Part(function, args, named, preserve_rng_state)
    with saved_tensors_hooks(part.pack, part.unpack):
        return function(*args, **named)


def checkpoint_sequential(functions, segments, input,
                          use_reentrant=None, preserve_rng_state=True):
    """Run a Sequential in segments, all but the last checkpointed."""
    def run(part, x):
        for function in part:
            x = function(x)
        return x

    if hasattr(functions, "children"):
        functions = functions.children()
    functions = list(functions)
    size = len(functions) // segments
    for k in range(segments - 1):
        input = checkpoint(run, functions[k * size:(k + 1) * size],
                           input, preserve_rng_state=preserve_rng_state)
    return run(functions[(segments - 1) * size:], input)
