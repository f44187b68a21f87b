# SPDX-License-Identifier: MIT
# Tangled from the chapter "dialect": edit that, not this file.
"""Mixed precision: blocks and scalers that change nothing."""
import warnings as _warnings
from contextlib import ContextDecorator as _Decorator


class autocast(_Decorator):
    """A block that may compute in fewer bits, and does not.

    Unless enabled=False it warns that everything stays as it is.
    """

    def __init__(self, *args, **named):
        if _is_on(args, named):
            _warnings.warn("autocast has no effect yet: float32 stays "
                           "float32", stacklevel=2)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass


def _is_on(args, named):
    return named.get("enabled", next(
        (a for a in args if isinstance(a, bool)), True))


class GradScaler:
    """Scales by one: gradients of float32 need no more.

    Unless enabled=False it warns that nothing is scaled.
    """

    def __init__(self, *args, **named):
        if _is_on(args, named):
            _warnings.warn("GradScaler has no effect yet: gradients "
                           "are float32 and are not scaled",
                           stacklevel=2)

    def scale(self, outputs):
        return outputs

    def step(self, optimizer, *args, **named):
        return optimizer.step(*args, **named)

    def unscale_(self, optimizer):
        pass

    update = load_state_dict = lambda self, *args: None
    get_scale = lambda self: 1.0
    state_dict = lambda self: {}
    is_enabled = lambda self: False
