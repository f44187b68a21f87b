# SPDX-License-Identifier: MIT
# Tangled from the chapter "dialect": edit that, not this file.
"""Second spellings of methods and keywords: there from the start."""
import sys as _sys
from functools import wraps as _wraps
from struct import pack as _pack, unpack as _unpack
from .. import _C, Tensor
from .._tensor import (_give_methods, as_tensor as _as_tensor,
                       Generator as _Generator)
# dialect: second spellings
def _legacy(name, dtype, args, device=None):
    x = args[0] if len(args) == 1 else 0
    if isinstance(x, Tensor):
        if x.dtype is not dtype:
            raise TypeError(f"{name}: expected {dtype}, not {x.dtype}")
        return x.detach()
    if isinstance(x, float):
        raise TypeError(f"{name}: expected sizes or a sequence, "
                        "not a float")
    if isinstance(x, _C.Size) or (hasattr(x, "__index__")
                                  and not hasattr(x, "__len__")):
        return _C.empty(*(args or (0,)), dtype=dtype, device=device)
    return _C.tensor(x, dtype=dtype, device=device)


def _new(cls, *args, device=None):
    x = _legacy(cls.__name__, _C._default_dtype(None), args, device)
    return x if cls is Tensor else Tensor._make_subclass(cls, x)


Tensor._new = classmethod(_new)


def randint(low=0, high=None, size=None, **named):
    """Integers of [low, high) in a new tensor; low may be left out."""
    if size is None:
        low, high, size = 0, low, high
    if high is None:
        low, high = 0, low
    return _C.randint(low, high, size, **named)


class layout:
    """How elements are kept; there is one way, strided."""

    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return f"treadle.{self._name}"


class memory_format(layout):
    """The order of strides that is asked for."""


strided = layout("strided")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
_C.dtype.is_signed = property(
    lambda self: self not in (_C.uint8, _C.bool),
    doc="Whether it holds negative numbers.")
_C.dtype.is_complex = False


_SYNONYMS = {"axis": "dim", "keepdims": "keepdim", "x": "input",
             "x1": "input", "x2": "other"}
_WITHOUT_EFFECT = {"layout", "memory_format", "pin_memory",
                   "non_blocking"}
_SUMS = {"add", "add_", "sub", "sub_"}


def _spare(op, *args, **named):
    """A call of op with keywords that its row does not have."""
    rest = {k: v for k, v in named.items() if k not in _WITHOUT_EFFECT}
    out, wants_grad = rest.pop("out", None), False
    for second, first in _SYNONYMS.items():
        if second in rest and first not in rest:
            rest[first] = rest.pop(second)
    if op.__name__.endswith("_like"):
        wants_grad = rest.pop("requires_grad", False)
    if "alpha" in rest and op.__name__ in _SUMS:
        alpha = rest.pop("alpha")
        if "other" in rest:
            rest["other"] = rest["other"] * alpha
        else:
            args = (*args[:-1], args[-1] * alpha)
    if rest.keys() == named.keys():
        return NotImplemented
    result = op(*args, **rest)
    if named.get("pin_memory"):
        if result.is_leaf:
            wants_grad = wants_grad or result.requires_grad
            result = result.detach()
        result = result.pin_memory()
    if wants_grad:
        result.requires_grad_()
    return result if out is None else _into(out, result)


_Operator = type(_C.add.__self__)
_Operator._spare = _spare


def _operator_named(name):
    return getattr(_C, name).__self__


def _own_function(op, name):
    if name != op.__name__:
        raise AttributeError(f"'Operator' object has no attribute "
                             f"{name!r}")
    return getattr(_C, name)


_Operator.__reduce__ = lambda op: (_operator_named, (op.__name__,))
_Operator.__getattr__ = _own_function


def _into(out, result):
    from .types import can_cast
    if isinstance(result, tuple):
        return tuple(_into(o, r) for o, r in zip(out, result))
    if out.requires_grad or result.requires_grad:
        raise RuntimeError("out=: results that require grad cannot be "
                           "written into a tensor")
    if not can_cast(result.dtype, out.dtype):
        raise RuntimeError(f"out=: a result of {result.dtype} cannot "
                           f"be cast to {out.dtype}")
    if out.shape != result.shape:
        if out.numel():
            raise RuntimeError(
                f"out=: a result of shape {list(result.shape)} does "
                f"not fit a tensor of shape {list(out.shape)}")
        out.data = result.to(out.dtype)
        return out
    return out.copy_(result)


def _get_state(generator=None):
    """The state of random numbers, as bytes."""
    seed_and_stream = _C._random_state(generator)
    return _C.tensor(bytearray(_pack("<2Q", *seed_and_stream)))


def _set_state(generator, state):
    data = bytes(state.tolist())
    if len(data) != 16:
        raise ValueError("set_state: expected 16 bytes, "
                         f"got {len(data)}")
    _C._random_state(generator, *_unpack("<2Q", data))
    return generator


def _initial_seed(generator=None):
    """The number that the random numbers were seeded with."""
    return _C._random_state(generator)[0]


def _seed(generator=_C):
    """Seed random numbers with one of the system's."""
    from secrets import randbits
    number = randbits(63)
    generator.manual_seed(number)
    return number


_Generator.get_state, _Generator.set_state = _get_state, _set_state
_Generator.seed, _Generator.initial_seed = _seed, _initial_seed
_Generator.device = property(lambda self: _C.empty(0).device)


class _Methods:
    # dialect: methods under second names
    def type(self, dtype=None, non_blocking=False):
        """The name of the tensor's type, or the tensor as another."""
        from . import types
        if dtype is None:
            return types._type_of(self)
        if isinstance(dtype, str):
            dtype = types._type_named(dtype)
        if isinstance(dtype, types._TensorType):
            return self.to(dtype.dtype, device=dtype._place or "cpu")
        return self.to(dtype)
    def new(self, *args, device=None):
        """Sizes or data as a tensor of this one's dtype and device."""
        return _legacy("new", self.dtype, args, device or self.device)
    def random_(self, from_=0, to=None, *, generator=None):
        """Integers of [from_, to), or as many as the dtype can hold."""
        from . import types
        if to is None and from_:
            from_, to = 0, from_
        elif to is None and self.is_floating_point():
            to = int(2 / types.finfo(self.dtype).eps)
        elif to is None:
            to = 2 if self.dtype is _C.bool else types.iinfo(self.dtype).max
        return self.copy_(_C.randint(from_, to, self.shape,
                                     generator=generator))

    def exponential_(self, lambd=1.0, *, generator=None):
        """Waiting times: -log(u) / lambd for u in (0, 1]."""
        if not lambd > 0:
            raise RuntimeError(f"exponential_: lambd must be above 0, "
                               f"not {lambd}")
        u = _C.rand_like(self, generator=generator)
        return self.copy_((1 - u).log() / -lambd)
    layout = strided
    broadcast_to = _C.Tensor.expand
    is_sparse = is_quantized = is_mkldnn = is_meta = is_nested = False
    itemsize = property(Tensor.element_size)
    real = property(lambda self: self, doc="The tensor itself.")

    @property
    def is_cpu(self):
        """Whether the elements are in the host's memory."""
        return not self.is_cuda

    @property
    def nbytes(self):
        """Bytes of all elements."""
        return self.numel() * self.itemsize
    def __reversed__(self):
        return self.flip(0) if self.ndim else self

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return _as_tensor(array)

    def __complex__(self):
        return complex(self.item())
    def pin_memory(self, device=None):
        """The tensor in page-locked memory; itself if it is there."""
        return _C._pin_memory(self)

    def is_pinned(self, device=None):
        """Whether its memory is page-locked."""
        return _C._is_pinned(self)


_give_methods(_Methods)
# dialect: fill the class from tables
def _like(make):
    def method(self, *args, dtype=None, device=None, **named):
        return make(*args, dtype=dtype or self.dtype,
                    device=device or self.device, **named)
    method.__doc__ = make.__doc__
    return method


for _name in "empty", "zeros", "ones", "full", "tensor":
    setattr(Tensor, "new_" + _name, _like(getattr(_C, _name)))
for _name in "is_floating_point", "numel", "is_pinned":
    globals()[_name] = getattr(Tensor, _name)
# dialect: give operators their second names


def _renaming(function):
    @_wraps(function)
    def renamed(*args, **named):
        return function(*args, **{_SYNONYMS.get(k, k): v
                                  for k, v in named.items()})
    return renamed


for _name in "max min median var std var_mean std_mean".split():
    _function = _renaming(getattr(_sys.modules["treadle"], _name))
    globals()[_name] = _function
    if hasattr(Tensor, _name):
        setattr(Tensor, _name, _function)
