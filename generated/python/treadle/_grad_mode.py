# SPDX-License-Identifier: MIT
# Tangled from the chapter "package": edit that, not this file.
"""no_grad and its relatives: context managers and decorators."""
import functools
import inspect
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
                except BaseException as error:
                    step, given = steps.throw, (error,)
        return wrapper


class _Bare(_Mode):
    def __new__(cls, function=None):
        self = super().__new__(cls)
        return self(function) if callable(function) else self


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


class inference_mode(_Bare):
    """Nothing is recorded inside; with mode=False, all is again."""
    mode = True, False

    def __init__(self, mode=True):
        self.mode = mode, not mode

    @staticmethod
    def swap(modes):
        before = is_inference_mode_enabled()
        _thread.inference, records = modes
        return before, _set_grad_enabled(records)
