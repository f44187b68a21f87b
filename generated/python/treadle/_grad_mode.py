# SPDX-License-Identifier: MIT
# Tangled from the chapter "package": edit that, not this file.
"""no_grad and its relatives: context managers and decorators."""
import functools
from ._C import _set_grad_enabled, is_grad_enabled


class _Mode:
    """Sets the mode of recording for a block or a function."""

    def __enter__(self):
        self.before = is_grad_enabled()
        _set_grad_enabled(self.mode)
        return self

    def __exit__(self, *exception):
        _set_grad_enabled(self.before)

    def __call__(self, function):
        @functools.wraps(function)
        def wrapper(*args, **named):
            with self.copy():
                return function(*args, **named)
        return wrapper

    def copy(self):
        return type(self)()


class no_grad(_Mode):
    """Nothing is recorded inside."""
    mode = False

    def __new__(cls, function=None):
        self = super().__new__(cls)
        return self if function is None else self(function)


class enable_grad(_Mode):
    """Recording is on inside, whatever it was outside."""
    mode = True

    def __new__(cls, function=None):
        self = super().__new__(cls)
        return self if function is None else self(function)


class set_grad_enabled(_Mode):
    """Sets the mode at once; as a context, until its end."""

    def __init__(self, mode):
        self.mode, self.before = bool(mode), is_grad_enabled()
        _set_grad_enabled(self.mode)

    def __enter__(self):
        return self

    def __call__(self, function):
        _set_grad_enabled(self.before)
        return super().__call__(function)

    def copy(self):
        return set_grad_enabled(self.mode)
