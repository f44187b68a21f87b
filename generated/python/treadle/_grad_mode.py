# SPDX-License-Identifier: MIT
# Tangled from the chapter "package": edit that, not this file.
"""no_grad and its relatives: context managers and decorators."""
import functools
import inspect
import sys
import threading
from copy import copy
from ._C import _set_grad_enabled, is_grad_enabled


class _Mode:
    """Sets a mode, that of recording, for a block or a function."""
    swap, copy = _set_grad_enabled, copy

    def __enter__(self):
        self.before = self.swap(self.mode)
        return self

    def __exit__(self, *exception):
        self.swap(self.before)

    def __call__(self, function):
        if inspect.isgeneratorfunction(function):
            return self.each_step(function)

        @functools.wraps(function)
        def wrapper(*args, **named):
            with self.copy():
                return function(*args, **named)
        return wrapper

    def each_step(self, function):
        @functools.wraps(function)
        def wrapper(*args, **named):
            steps = function(*args, **named)
            step, given = steps.send, (None,)
            while True:
                try:
                    with self.copy():
                        answer = step(*given)
                except StopIteration as end:
                    return end.value
                try:
                    step, given = steps.send, ((yield answer),)
                except GeneratorExit:
                    with self.copy():
                        steps.close()
                    raise
                except BaseException:
                    step, given = steps.throw, sys.exc_info()[1:2]
        return wrapper


class _Bare(_Mode):
    def __new__(cls, function=None):
        self = super().__new__(cls)
        return self if function is None else self(function)


class no_grad(_Bare):
    """Nothing is recorded inside."""
    mode = False


class enable_grad(_Bare):
    """Recording is on inside, whatever it was outside."""
    mode = True


class set_grad_enabled(_Mode):
    """Sets the mode at once; as a context, until its end."""

    def __init__(self, mode):
        self.mode = bool(mode)
        super().__enter__()

    def __enter__(self):
        return self

    def __call__(self, function):
        self.__exit__()
        return super().__call__(function)

    def copy(self):
        return set_grad_enabled(self.mode)


settings = []       # of a thread: f() is its value, f(value) sets it


def under(values, function, *args, **named):
    """function(*args, **named) while the settings are these."""
    before = [f(value) for f, value in zip(settings, values)]
    try:
        return function(*args, **named)
    finally:
        for f, value in zip(settings, before):
            f(value)


_thread = threading.local()


def is_inference_mode_enabled():
    """Whether inference_mode() is open in this thread."""
    return getattr(_thread, "inference", False)


class inference_mode(_Mode):
    """Nothing is recorded inside; with mode=False, all is again."""

    def __new__(cls, mode=True):
        self = super().__new__(cls)
        self.inference = mode is not False
        self.mode = not self.inference
        return self(mode) if callable(mode) else self

    def __enter__(self):
        self.outer = is_inference_mode_enabled()
        _thread.inference = self.inference
        return super().__enter__()

    def __exit__(self, *exception):
        _thread.inference = self.outer
        super().__exit__()
