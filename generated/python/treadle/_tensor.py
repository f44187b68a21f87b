# SPDX-License-Identifier: MIT
# Tangled from the chapter "package": edit that, not this file.
"""Methods of Tensor that need no C."""
import re as _re
from collections import namedtuple as _namedtuple
from functools import lru_cache as _lru_cache, partial as _partial
from math import prod as _prod
from . import _C, Tensor, return_types as _types
# package: class device
class device:
    """Where a tensor lives: device('cpu')."""
    __slots__ = ("type", "index")

    def __init__(self, type="cpu", index=None):
        if isinstance(type, int):
            type = f"cuda:{type}"
        kind, _, number = str(type).partition(":")
        if kind not in ("cpu", "cuda"):
            raise RuntimeError("device: expected 'cpu' or 'cuda', not "
                               f"{type!r}")
        self.type = kind
        self.index = int(number) if number else index

    def __str__(self):
        return self.type if self.index is None \
            else f"{self.type}:{self.index}"

    def __repr__(self):
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"

    def __eq__(self, other):
        return isinstance(other, device) and str(self) == str(other)

    def __hash__(self):
        return hash(str(self))


def _destination(what, dtype, device):
    """The switches among `what`, and which dtype and device it is."""
    flags = [w for w in what if isinstance(w, bool)]
    for w in what[:len(what) - len(flags)]:
        if isinstance(w, (_C.dtype, type)):
            dtype = w
        elif isinstance(w, Tensor):
            dtype, device = w.dtype, w.device
        elif isinstance(w, int):
            device = f"cuda:{w}"
        elif w is not None:
            device = w
    return flags, dtype, device
# package: class Generator, and methods of small objects


class _Shown:
    """Shows its attributes."""

    def __repr__(self):
        shown = ", ".join(
            f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}"
            for k, v in vars(self).items() if k[0] != "_")
        return f"{type(self).__name__}({shown})"


class Generator:
    """Random numbers apart from those of the thread."""
    __module__, __slots__ = "treadle", ("_box",)

    def __init__(self, device="cpu"):
        self._box = _C._generator(device)

    def manual_seed(self, seed):
        """Seeds this generator and starts it anew; returns it."""
        _C._random_state(self, seed, 0)
        return self

    def __getstate__(self):
        return _C._random_state(self)

    def __setstate__(self, state):
        self.__init__()
        _C._random_state(self, *state)


def _numel(self):
    """The product of the sizes."""
    return _prod(self)


def _shown(self):
    parts = ",\n".join(map("{}={!r}".format, self._fields, self))
    return f"{type(self).__module__}.{type(self).__name__}(\n{parts})"


def _results(name, fields):
    """The type `name` of results whose parts are named so."""
    kind = _namedtuple(name, fields, module=_types.__name__)
    kind.__repr__ = _shown
    setattr(_types, name, kind)
    return kind


for _f in vars(_C).values():
    _named = _re.search("-> tensor (.+)", _f.__doc__ or "")
    if _named:
        _f.__self__._results = _partial(tuple.__new__, _results(
            _f.__name__.removesuffix("_dim"),
            _named[1].replace("tensor", "")))
_C.Size.numel = _numel
_C.Size.__repr__ = lambda self: f"treadle.Size({list(self)})"
_C.dtype.__reduce__ = lambda self: repr(self)[8:]
type(_C.add.__self__).__doc__ = property(
    lambda op: getattr(_C, op.__name__).__doc__)
# package: functions that make tensors of anything
def is_tensor(object):
    """Whether `object` is a Tensor."""
    return isinstance(object, Tensor)


def as_tensor(data, dtype=None, device=None):
    """`data` as a tensor, sharing its memory if that is possible."""
    if not isinstance(data, Tensor):
        try:
            data = _C.from_numpy(data)
        except (TypeError, ValueError, BufferError):
            found = Tensor._of_others(data)
            if found is data:
                return _C.tensor(data, dtype=dtype, device=device)
            return as_tensor(found, dtype, device)
    return data.to(dtype=dtype, device=device)


def arange(start=None, end=None, step=1, *, dtype=None, device=None,
           requires_grad=False):
    """start, start + step, ... before end; arange(n) starts at 0."""
    if end is None:
        start, end = 0, start
    start = 0 if start is None else start
    return _C.arange(start, end, step, dtype=dtype, device=device,
                     requires_grad=requires_grad)


def _choose(what, value, table, error=ValueError):
    """What a dict has for the value; or the value, if listed."""
    if value not in table:
        raise error(f"{what} must be one of {list(table)}, "
                    f"got {value!r}")
    return table[value] if isinstance(table, dict) else value


_LINE = [80]
# package: functions max and min
def _extreme(name, whole, along, of_two):
    def extreme(input, dim=None, keepdim=False, **more):
        dim = more.pop("other", dim)
        if dim is None:
            return whole(input, **more)
        if isinstance(dim, Tensor):
            return of_two(input, dim, **more)
        return along(input, dim, keepdim, **more)
    extreme.__name__ = name
    extreme.__doc__ = f"{whole.__doc__}  Along dim: and indices."
    return extreme


max = _extreme("max", _C.max, _C.max_dim, _C.maximum)
min = _extreme("min", _C.min, _C.min_dim, _C.minimum)
# package: class Node
@_lru_cache(None)
def _kind(base, name):
    return type(name, (base,), {"__slots__": ()})


class Node:
    """The operator that made a tensor, and where gradients go."""
    __slots__ = ("_box", "_key", "_name")

    def __new__(cls, *of):
        return object.__new__(_kind(cls, of[2]) if of[2:] else cls)

    def __init__(self, box, key, name):
        self._box, self._key, self._name = box, key, name

    def name(self):
        return self._name

    @property
    def next_functions(self):
        """Pairs (Node or None, which of its results)."""
        def end(x):
            return Node(*x) if isinstance(x, tuple) else \
                AccumulateGrad(x) if isinstance(x, Tensor) else x
        return tuple((end(x), slot)
                     for x, slot in _C._node_edges(self._box))

    def __eq__(self, other):
        return isinstance(other, Node) and self._key == other._key

    def __hash__(self):
        return hash(self._key)

    def __repr__(self):
        return f"<{self._name}>"


class AccumulateGrad(Node):
    """The end of a graph: a leaf that collects its gradient."""
    __slots__ = ("variable",)
    next_functions = ()

    def __init__(self, leaf):
        super().__init__(None, id(leaf), "AccumulateGrad")
        self.variable = leaf
# package: class RemovableHandle
class RemovableHandle:
    """Removes a hook: h.remove(), or at the end of `with h:`."""

    def __init__(self, tensor, number):
        import weakref
        self.tensor, self.number = weakref.ref(tensor), number

    def remove(self):
        tensor = self.tensor()
        if tensor is not None:
            _C._remove_hook(tensor, self.number)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()
class _Methods:
    max = max
    min = min
    # package: methods about gradients
    @property
    def grad_fn(self):
        """The operator that made this tensor, or None."""
        node = _C._node_of(self)
        return None if node is None else Node(*node)

    def backward(self, gradient=None, retain_graph=None,
                 create_graph=False, inputs=None):
        """Add to .grad of every leaf below; see autograd.backward."""
        from .autograd import backward
        backward(self, (gradient,), retain_graph, create_graph,
                 inputs=inputs)

    def register_hook(self, hook):
        """Call hook(grad) when this tensor's gradient is known.

        The hook may return another gradient.  Returns a handle with
        a method remove().
        """
        return RemovableHandle(self, _C._register_hook(self, hook))

    def register_post_accumulate_grad_hook(self, hook):
        """Call hook(self) when this leaf has got its gradient."""
        return RemovableHandle(self, _C._register_hook(self, hook, True))

    def retain_grad(self):
        """Keep .grad although this tensor is no leaf."""
        _C._retain_grad(self)

    def requires_grad_(self, requires_grad=True):
        """Switch recording on or off for this leaf; returns it."""
        self.requires_grad = requires_grad
        return self
    # package: methods about shape
    def size(self, dim=None):
        """The shape, or the size of one dimension."""
        if dim is None:
            return self.shape
        if not -self.ndim <= dim < self.ndim:
            raise IndexError(f"dimension {dim} is out of range of "
                             f"shape {list(self.shape)}")
        return self.shape[dim]

    def stride(self, dim=None):
        """Elements to step over, for each dimension or one."""
        if dim is None:
            return self._strides
        self.size(dim)                  # which refuses what is none
        return self._strides[dim]

    def dim(self):
        """The number of dimensions."""
        return self.ndim

    nelement = Tensor.numel

    @property
    def T(self):
        """The transpose: all dimensions in reverse order."""
        return self.permute(tuple(range(self.ndim))[::-1])

    @property
    def mT(self):
        """The last two dimensions exchanged."""
        return self.transpose(-2, -1)
    # package: methods about types
    @property
    def device(self):
        """Where the elements are."""
        return device(self._device)

    @property
    def is_cuda(self):
        """Whether a CUDA device holds the elements."""
        return self._device != "cpu"

    def cuda(self, device=None, non_blocking=False):
        """On a CUDA device, the first unless another is named."""
        return self.to(device or "cuda")

    def cpu(self):
        """On the CPU."""
        return self.to("cpu")
    def contiguous(self, memory_format=None):
        """The tensor itself if it is row-major, else such a copy."""
        return self if self.is_contiguous() else _C.contiguous(self)

    def to(self, *what, dtype=None, device=None, non_blocking=False,
           copy=False, memory_format=None):
        """In another dtype or on another device: x.to(td.float64)."""
        flags, dtype, device = _destination(what, dtype, device)
        copy = flags[1] if len(flags) > 1 else copy
        place = self._device if device is None else str(device)
        place = {"cuda": "cuda:0", "cpu:0": "cpu"}.get(place, place)
        there = self if place == self._device else _C.to_device(self, place)
        if dtype is not None and dtype is not self.dtype:
            there = _C.to(there, dtype)
        return there.clone() if copy and there is self else there

    def type_as(self, other):
        """This tensor in the dtype of another."""
        return self.to(other.dtype)

    def is_floating_point(self):
        """Whether gradients can flow through this dtype."""
        return self.dtype.is_floating_point

    def element_size(self):
        """Bytes of an element."""
        return self.dtype.itemsize
    # package: methods about NumPy
    __array_priority__ = 1000
    _of_others = staticmethod(lambda data: data)

    def numpy(self, *, force=False):
        """A NumPy array on the same memory; or, by force, a copy."""
        if force:
            self = self.detach().cpu()
        if self._device != "cpu":
            raise TypeError(f"can't convert {self._device} device type "
                            "tensor to numpy; use x.cpu()")
        if self.requires_grad:
            raise RuntimeError("a tensor that requires grad cannot "
                               "be shared; use x.detach().numpy()")
        import numpy
        return numpy.asarray(memoryview(self))

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        if dtype is None or array.dtype == dtype:
            return array.copy() if copy else array
        if copy is False:
            raise ValueError(f"__array__: {self.dtype} as {dtype} is a "
                             "copy, and copy is False")
        return array.astype(dtype)

    def __contains__(self, value):
        equal = self == value
        if not isinstance(equal, Tensor):
            raise RuntimeError("in: a Tensor holds no "
                               f"{value.__class__.__name__}")
        return equal.any().item()
    # package: methods about printing
    def __repr__(self):
        text, *notes = _re.split(", (?=[a-z]+=)", self._text()[:-1])
        if self.grad_fn is not None:
            notes.append(f"grad_fn={self.grad_fn}")
        elif self.requires_grad:
            notes.append("requires_grad=True")
        length = len(text) - text.rfind("\n") + 1
        for note in notes:
            note = note.replace("dtype=", "dtype=treadle.")
            long = length + len(note) + 2 > _LINE[0]
            text += (",\n       " if long else ", ") + note
            length = (7 if long else length + 2) + len(note)
        return text + ")"

    def __format__(self, form):
        if self.ndim == 0:
            return format(self.item(), form)
        return object.__format__(self, form)


def _give_methods(methods):
    for name, value in list(vars(methods).items()):
        if name not in ("__dict__", "__weakref__", "__module__",
                        "__doc__"):
            setattr(Tensor, name, value)


_give_methods(_Methods)
# package: methods named after types
_CASTS = {
    "Float": _C.float32, "Double": _C.float64, "Half": _C.float16,
    "BFloat16": _C.bfloat16, "Long": _C.int64, "Int": _C.int32,
    "Short": _C.int16, "Char": _C.int8, "Byte": _C.uint8,
    "Bool": _C.bool}
for _name, _dtype in _CASTS.items():
    def _cast(self, memory_format=None, *, _dtype=_dtype):
        return self.to(_dtype)
    _cast.__name__ = _name.lower()
    _cast.__doc__ = f"In {repr(_dtype)[8:]}."
    setattr(Tensor, _cast.__name__, _cast)


def _give_functions(names):
    for name, f in list(names.items()):
        if name[0] != "_" and hasattr(f, "__code__") \
                and str(f.__code__.co_varnames).startswith("('input"):
            setattr(Tensor, name, f)
