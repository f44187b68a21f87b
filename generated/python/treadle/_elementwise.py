# SPDX-License-Identifier: MIT
# Tangled from the chapter "activations": edit that, not this file.
# needs: package
"""Forms and other names of elementwise operators."""
from functools import wraps as _wraps
from . import _C
from ._C import Tensor


def div(input, other, *, rounding_mode=None):
    """Quotient; rounded down ("floor") or towards zero ("trunc")."""
    if rounding_mode is None:
        return _C.div(input, other)
    if rounding_mode == "floor":
        return _C.floor_divide(input, other)
    if rounding_mode != "trunc":
        raise RuntimeError("div: rounding_mode must be None, 'floor' "
                           f"or 'trunc', not {rounding_mode!r}")
    rest = _C.fmod(input, other)
    if rest.dtype.is_floating_point:
        return _C.trunc(_C.div(input, other))
    return _C.floor_divide(_C.sub(input, rest), other)


def div_(input, other, *, rounding_mode=None):
    """div in place."""
    if rounding_mode is None:
        return _C.div_(input, other)
    return input.copy_(div(input, other, rounding_mode=rounding_mode))


def round(input, *, decimals=0):
    """The nearest number of so many decimals; halves to even."""
    if decimals == 0:
        return _C.round(input)
    scale = 10.0 ** abs(decimals)
    if decimals < 0:
        return _C.round(input / scale) * scale
    return _C.round(input * scale) / scale


@_wraps(_C.clamp)
def clamp(input, min=None, max=None):
    if not isinstance(min, Tensor) and not isinstance(max, Tensor):
        return _C.clamp(input, min, max)
    for bound, inside in ((min, _C.ge), (max, _C.le)):
        if bound is not None:
            kept = inside(input, bound) | (input != input)
            input = _C.where(kept, input, bound)
    return input


for _name, _op in list(globals().items()):
    if _name[0] not in "_T":
        setattr(Tensor, _name, _op)


def _second_names(pairs, names):
    for pair in pairs.split(","):
        second, first = pair.split()
        for end in ("", "_"):
            method = getattr(Tensor, first + end, None)
            made = names.get(first + end,
                             getattr(_C, first + end, None))
            if method is not None:
                setattr(Tensor, second + end, method)
            if made is not None:
                names[second + end] = made


_second_names("""absolute abs, arccos acos, arccosh acosh, arcsin asin,
    arcsinh asinh, arctan atan, arctanh atanh, arctan2 atan2,
    clip clamp, divide div, fix trunc, greater gt, greater_equal ge,
    less lt, less_equal le, multiply mul, negative neg, not_equal ne,
    sgn sign, subtract sub, true_divide div""", globals())
