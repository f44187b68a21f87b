# SPDX-License-Identifier: MIT
# Tangled from the chapter "package": edit that, not this file.
"""Errors begin with the name of the function that was called."""
import re as _re
import sys as _sys
from functools import wraps as _wraps
from inspect import signature as _signature
from types import FunctionType as _Function
from ._C import Tensor

_OURS = (TypeError, ValueError, RuntimeError, IndexError, OverflowError,
         NotImplementedError)
_FILES = {f"{__package__}.{name}" for name in """_tensor _forms
    _composed compat.spelling compat.types compat.creation
    compat.settings random linalg nn.functional nn._curves
    nn._arranging _casts""".split()}
# package: functions that name errors
def _no_tensor(function, name, args, named, error):
    wrong = getattr(error, "obj", args[0] if args else None)
    given = _signature(function).bind(*args, **named).arguments
    for key, value in given.items():
        if value is wrong or isinstance(value, (tuple, list)) \
                and any(x is wrong for x in value):
            return TypeError(f"{name}(): argument '{key}' must be a "
                             f"Tensor, not {type(wrong).__name__}")
    return TypeError(f"{name}: {error}")


def _naming(function, name):
    @_wraps(function)
    def named(*args, **given):
        try:
            return function(*args, **given)
        except AttributeError as error:
            raise _no_tensor(function, name, args, given, error)
        except _OURS as error:
            text = str(error)
            if type(error) in _OURS and not text.startswith(
                    (name + "(", name + ": ")):
                text = _re.sub(r"^[a-z]\w*(\(\))?: ", "", text)
                error.args = f"{name}: {text}",
            raise
    named.__qualname__ = function.__qualname__ = name
    return named


def name_errors(*places):
    """Wrap the functions in places that stand for operators."""
    done = {}
    for place in places or [Tensor, *(
            _sys.modules[name] for name in [__package__, *_FILES]
            if name in _sys.modules)]:
        for name, f in list(vars(place).items()):
            if type(f) is not _Function or name[0] == "_" \
                    or f.__globals__["__name__"] not in _FILES:
                continue
            if f not in done:
                done[f] = _naming(f, name)
            setattr(place, name, done[f])
