# SPDX-License-Identifier: MIT
# Tangled from the chapter "dialect": edit that, not this file.
"""Mixed precision: blocks and scalers that change nothing."""
import warnings as _warnings
from contextlib import ContextDecorator as _Decorator


class _Permission:
    def __init__(self, *args, **named):
        if named.get("enabled", next(
                (a for a in args if isinstance(a, bool)), True)):
            _warnings.warn(f"{type(self).__name__} has no effect yet: "
                           + self._so, stacklevel=2)


class autocast(_Permission, _Decorator):
    """A block that may compute in fewer bits, and does not.

    Unless enabled=False it warns that everything stays as it is.
    """
    _so = "float32 stays float32"

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass


class GradScaler(_Permission):
    """Scales by one: gradients of float32 need no more.

    Unless enabled=False it warns that nothing is scaled.
    """
    _so = "gradients are float32 and are not scaled"

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
