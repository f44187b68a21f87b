# SPDX-License-Identifier: MIT
# Tangled from the chapter "dialect": edit that, not this file.
"""Questions about types of elements, and types that are classes."""
from math import floor as _floor
from .. import _C, Tensor
from .._tensor import _CASTS, _Shown
from . import NAMES
from .spelling import _legacy
# dialect: names for types
def _category(dtype):
    return 2 if dtype.is_floating_point else int(dtype is not _C.bool)


def can_cast(from_, to):
    """Whether a value of dtype from_ stays its kind in dtype to."""
    return _category(from_) <= _category(to)


def promote_types(type1, type2):
    """The dtype of a result of two operands of these dtypes."""
    return _C._promote(type1, type2)


def _vote(x):
    """(0 for a tensor, 1 for one of rank 0, 2 for a number, dtype)"""
    if isinstance(x, Tensor):
        return int(x.ndim == 0), x.dtype
    return 2, _C.tensor(x).dtype


def result_type(tensor1, tensor2):
    """The dtype of a result of two operands, tensors or numbers."""
    (rank, strong), (other, weak) = sorted(
        map(_vote, (tensor1, tensor2)), key=lambda vote: vote[0])
    if rank == other:
        return _C._promote(strong, weak)
    return max(strong, weak, key=_category)


_FLOATS = {_C.float16: (10, 15), _C.bfloat16: (7, 127),
           _C.float32: (23, 127), _C.float64: (52, 1023)}


class _Info(_Shown):
    bits = property(lambda self: 8 * getattr(_C, self.dtype).itemsize)


class finfo(_Info):
    """What a floating dtype can hold: eps, max, tiny, ..."""

    def __init__(self, type=None):
        type = type or get_default_dtype()
        if type not in _FLOATS:
            raise TypeError(f"finfo: {type} is not a floating dtype")
        digits, high = _FLOATS[type]
        self.resolution = 10.0 ** -_floor(digits * 0.30103)
        largest = (2 - 2.0 ** -digits) * 2.0 ** high
        self.min, self.max = -largest, largest
        self.eps = 2.0 ** -digits
        self.smallest_normal = self.tiny = 2.0 ** (1 - high)
        self.dtype = repr(type).partition(".")[2]


class iinfo(_Info):
    """What an integer dtype can hold: bits, min, max."""

    def __init__(self, type):
        if _category(type) != 1:
            raise TypeError(f"iinfo: {type} is not an integer dtype")
        half = 2 ** (8 * type.itemsize - 1)
        self.min = -half if type.is_signed else 0
        self.max = self.min + 2 * half - 1
        self.dtype = repr(type).partition(".")[2]


def get_default_dtype():
    """The floating dtype that is used where none is given."""
    return _C._default_dtype(None)


def set_default_dtype(d):
    """Make float32 or float64 the dtype that floats get."""
    if d is None:
        raise TypeError("expected a dtype, not None")
    _C._default_dtype(d)


class _TensorType(type):
    """The class of FloatTensor and its kin."""

    def __call__(cls, *args):
        return _legacy(cls.__name__, cls.dtype, args, cls._place)

    def __instancecheck__(cls, x):
        return isinstance(x, Tensor) and x.dtype is cls.dtype \
            and x.is_cuda == (cls._place is not None)


_TYPES = {}
for _name in NAMES:
    if _name.endswith("Tensor"):
        _where, _, _short = f"treadle.{_name}".rpartition(".")
        _dtype = _CASTS[_short[:-6]]
        _place = "cuda" if "." in _name else None
        globals()[_name] = _TYPES[_dtype, _place] = _TensorType(
            _short, (), {"dtype": _dtype, "_place": _place,
                         "__module__": _where})


def _type_named(name):
    type = globals().get(name.partition(".")[2])
    if not isinstance(type, _TensorType):
        raise ValueError(f"type: invalid type: {name!r}")
    return type


def _type_of(x):
    type = _TYPES[x.dtype, "cuda" if x.is_cuda else None]
    return f"{type.__module__}.{type.__name__}"


def set_default_tensor_type(t):
    """Make FloatTensor or DoubleTensor what floats become."""
    t = _type_named(t) if isinstance(t, str) else t
    if t._place is not None:
        raise ValueError("tensors are made "
                         "on the CPU; pass device='cuda'")
    set_default_dtype(t.dtype)
