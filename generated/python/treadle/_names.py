# SPDX-License-Identifier: MIT
# Tangled from the chapter "dialect": edit that, not this file.
"""Names and spellings that programs written for PyTorch use."""
import sys as _sys
import warnings as _warnings
from contextlib import (ContextDecorator as _Decorator,
                        contextmanager as _contextmanager)
from functools import wraps as _wraps
from math import floor as _floor, inf, nan, pi, e
from types import ModuleType as _Module, SimpleNamespace as _Namespace
from . import _C, _tensor, cuda
from ._C import Generator, Tensor, dtype
from ._tensor import _give_methods, as_tensor
from ._exchange import from_dlpack
# dialect: names for types
def _category(dtype):
    return 2 if dtype.is_floating_point else int(dtype is not _C.bool)


def can_cast(from_, to):
    """Whether a value of dtype from_ stays its kind in dtype to."""
    return _category(from_) <= _category(to)


def promote_types(type1, type2):
    """The dtype of a result of two operands of these dtypes."""
    return _C._promote(type1, type2)


def result_type(tensor1, tensor2):
    """The dtype of a result of two operands, tensors or numbers."""
    votes = [None] * 3          # of tensors, of rank 0, of numbers
    for x in (tensor1, tensor2):
        if not isinstance(x, Tensor):
            rank, of = 2, _C.tensor(x).dtype
        else:
            rank, of = int(x.ndim == 0), x.dtype
        votes[rank] = of if votes[rank] is None \
            else _C._promote(votes[rank], of)
    result, *weaker = [v for v in votes if v is not None]
    for other in weaker:
        if _category(other) > _category(result):
            result = other
    return result


_FLOATS = {_C.float16: (10, -14, 15), _C.bfloat16: (7, -126, 127),
           _C.float32: (23, -126, 127), _C.float64: (52, -1022, 1023)}


class _Info:
    def __repr__(self):
        fields = ", ".join(
            f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}"
            for k, v in vars(self).items() if k != "bits")
        return f"{type(self).__name__}({fields})"


class finfo(_Info):
    """What a floating dtype can hold: eps, max, tiny, ..."""

    def __init__(self, type=None):
        type = type or get_default_dtype()
        if type not in _FLOATS:
            raise TypeError(f"finfo: {type} is not a floating dtype")
        digits, low, high = _FLOATS[type]
        self.bits = 8 * type.itemsize
        self.resolution = 10.0 ** -_floor(digits * 0.30103)
        largest = (2 - 2.0 ** -digits) * 2.0 ** high
        self.min, self.max = -largest, largest
        self.eps = 2.0 ** -digits
        self.smallest_normal = self.tiny = 2.0 ** low
        self.dtype = repr(type).partition(".")[2]


class iinfo(_Info):
    """What an integer dtype can hold: bits, min, max."""

    def __init__(self, type):
        if _category(type) != 1:
            raise TypeError(f"iinfo: {type} is not an integer dtype")
        self.bits = 8 * type.itemsize
        half = 2 ** (self.bits - 1)
        self.min = -half if type.is_signed else 0
        self.max = self.min + 2 * half - 1
        self.dtype = repr(type).partition(".")[2]


dtype.is_signed = property(
    lambda self: self not in (_C.uint8, _C.bool),
    doc="Whether it holds negative numbers.")
dtype.is_complex = False


def get_default_dtype():
    """The floating dtype that is used where none is given."""
    return _C._default_dtype(None)


def set_default_dtype(d):
    """Make float32 or float64 the dtype that floats get."""
    if d is None:
        raise TypeError("set_default_dtype: expected a dtype, not None")
    _C._default_dtype(d)


def _legacy(name, dtype, args, device=None):
    if len(args) == 1 and isinstance(args[0], Tensor):
        if args[0].dtype is not dtype:
            raise TypeError(f"{name}: expected {dtype}, "
                            f"not {args[0].dtype}")
        return args[0].detach()
    if len(args) == 1 and not isinstance(args[0], _C.Size) and (
            hasattr(args[0], "__len__") or
            not hasattr(args[0], "__index__")):
        if isinstance(args[0], float):
            raise TypeError(f"{name}: expected sizes or a sequence, "
                            "not a float")
        return _C.tensor(args[0], dtype=dtype, device=device)
    return _C.empty(*(args or (0,)), dtype=dtype, device=device)


class _TensorType(type):
    """The class of FloatTensor and its kin."""

    def __call__(cls, *args):
        return _legacy(cls.__name__, cls.dtype, args, cls._place)

    def __instancecheck__(cls, x):
        return isinstance(x, Tensor) and x.dtype is cls.dtype \
            and x.is_cuda == (cls._place is not None)


_TYPES = {}
for _name, _dtype in {
        "Float": _C.float32, "Double": _C.float64, "Half": _C.float16,
        "BFloat16": _C.bfloat16, "Long": _C.int64, "Int": _C.int32,
        "Short": _C.int16, "Char": _C.int8, "Byte": _C.uint8,
        "Bool": _C.bool}.items():
    for _where, _place in ((globals(), None), (vars(cuda), "cuda")):
        _where[_name + "Tensor"] = _TYPES[_dtype, _place] = _TensorType(
            _name + "Tensor", (), {"dtype": _dtype, "_place": _place,
            "__module__": "treadle.cuda" if _place else "treadle"})


def _type_named(name):
    for type in _TYPES.values():
        full = f"{type.__module__}.{type.__name__}"
        if name.partition(".")[2] == full.partition(".")[2]:
            return type
    raise ValueError(f"type: invalid type: {name!r}")


def set_default_tensor_type(t):
    """Make FloatTensor or DoubleTensor what floats become."""
    t = _type_named(t) if isinstance(t, str) else t
    if t._place is not None:
        raise ValueError("set_default_tensor_type: tensors are made "
                         "on the CPU; pass device='cuda'")
    set_default_dtype(t.dtype)


def _new(cls, *args, device=None):
    x = _legacy(cls.__name__, get_default_dtype(), args, device)
    return x if cls is Tensor else Tensor._make_subclass(cls, x)


Tensor._new = classmethod(_new)


# dialect: names that ask about tensors
def logspace(start, end, steps, base=10.0, **named):
    """Powers of base whose exponents are evenly spaced."""
    wide = _C.linspace(start, end, steps, dtype=_C.float64)
    given = {"dtype": get_default_dtype(), **named}
    given["dtype"] = given["dtype"] or get_default_dtype()
    grad = given.pop("requires_grad", False)
    exact = base ** wide
    if not given["dtype"].is_floating_point:
        _C.tensor(exact[:1].tolist() + exact[-1:].tolist(), **given)
    return exact.to(**given).requires_grad_(grad)


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


# dialect: names that make tensors
def asarray(obj, *, dtype=None, device=None, copy=None,
            requires_grad=False):
    """obj as a tensor; shares its memory unless it must not or cannot.

    copy=True always copies; copy=False is a ValueError where it must.
    """
    x, lent = obj, True
    try:
        if isinstance(obj, Tensor):
            x = obj if requires_grad else obj.detach()
        elif hasattr(obj, "__dlpack__"):
            x = from_dlpack(obj, copy=False)
        else:
            x = _C.from_numpy(obj)
    except (TypeError, ValueError, BufferError):
        x, lent = _C.tensor(obj), False
    y = x.to(dtype=dtype, device=device)
    lent = lent and y is x
    if copy is False and not lent:
        raise ValueError("asarray: the data must be copied, and "
                         "copy is False")
    y = y.clone() if copy and lent else y
    return y if y.requires_grad == requires_grad \
        else y.requires_grad_(requires_grad)


def frombuffer(buffer, *, dtype, count=-1, offset=0,
               requires_grad=False):
    """count elements of dtype at byte `offset` of a buffer."""
    data, size = memoryview(buffer).cast("B"), dtype.itemsize
    if count == 0 or len(data) == 0 or not 0 <= offset < len(data):
        raise ValueError(f"frombuffer: count {count}, offset {offset} "
                         f"leave nothing of {len(data)} bytes")
    if count < 0 and (len(data) - offset) % size:
        raise ValueError(
            f"frombuffer: {len(data)} bytes after offset {offset} are "
            f"no multiple of the {size} bytes of an element")
    n = (len(data) - offset) // size if count < 0 else count
    if offset + n * size > len(data):
        raise ValueError(f"frombuffer: {n} elements at offset {offset} "
                         f"are more than {len(data)} bytes")
    data = data[offset:offset + n * size]
    x = _C.tensor(data) if data.readonly else _C.from_numpy(data)
    x = x if x.data_ptr() % size == 0 else x.clone()
    if dtype is _C.bool and x.max() > 1:
        x = x.clamp(max=1)
    return _C._over_storage(x, dtype, (n,), (1,), 0) \
        .requires_grad_(requires_grad)


def randint(low=0, high=None, size=None, **named):
    """Integers of [low, high) in a new tensor; low may be left out."""
    if size is None:
        low, high, size = 0, low, high
    if high is None:
        low, high = 0, low
    return _C.randint(low, high, size, **named)


def randint_like(input, low, high=None, **named):
    """Integers of [low, high) in the shape of input."""
    low, high = (0, low) if high is None else (low, high)
    named.setdefault("dtype", input.dtype)
    named.setdefault("device", input.device)
    return _C.randint(low, high, input.shape, **named)


def normal(mean, std=1.0, size=None, *, generator=None, **named):
    """Normal numbers, of given size or in the shape of mean and std."""
    if not isinstance(std, Tensor) and std < 0:
        raise RuntimeError(f"normal: std = {std} is negative")
    if size is not None:
        return _C.randn(size, generator=generator, **named) * std + mean
    shape = (mean + std if isinstance(mean, Tensor) else std + mean)
    return _C.randn_like(shape, generator=generator) * std + mean


def scalar_tensor(s, **named):
    """A tensor of rank 0."""
    named["dtype"] = named.get("dtype") or get_default_dtype()
    return _C.tensor(s, **named)


# dialect: names of settings
_SYNONYMS = {"axis": "dim", "keepdims": "keepdim", "x": "input",
             "x1": "input", "x2": "other"}
_WITHOUT_EFFECT = {"layout", "memory_format", "pin_memory",
                   "non_blocking"}
_SUMS = {"add", "add_", "sub", "sub_"}


def _spare(op, *args, **named):
    """A call of op with keywords that its row does not have."""
    rest = {k: v for k, v in named.items() if k not in _WITHOUT_EFFECT}
    if named.get("pin_memory"):
        pin_memory(None)
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


def _renaming(function):
    @_wraps(function)
    def renamed(*args, **named):
        return function(*args, **{_SYNONYMS.get(k, k): v
                                  for k, v in named.items()})
    return renamed


for _name in "max min median var std var_mean std_mean".split():
    _function = _renaming(getattr(_sys.modules[__package__],
                                  _name))
    globals()[_name] = _function
    if hasattr(Tensor, _name):
        setattr(Tensor, _name, _function)


def _into(out, result):
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


_PROFILES = {"default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80),
             "full": (4, 2 ** 62, 3, 80)}


def set_printoptions(precision=None, threshold=None, edgeitems=None,
                     linewidth=None, profile=None, sci_mode=None):
    """How tensors are printed; what is None stays as it is."""
    if profile is not None:
        set_printoptions(*_PROFILES[profile])
        _C._print_option(4, -1)
    if threshold == inf:
        threshold = 2 ** 62
    _tensor._LINE[0] = linewidth or _tensor._LINE[0]
    for which, value in enumerate((precision, threshold, edgeitems,
                                   linewidth, sci_mode)):
        if value is not None:
            _C._print_option(which, int(value))


def _get_state(generator=None):
    """The state of random numbers, as bytes."""
    seed, stream = _C._random_state(generator)
    return _C.tensor(bytearray(seed.to_bytes(8, "little")
                               + stream.to_bytes(8, "little")))


def _set_state(generator, state):
    data = bytes(state.tolist())
    if len(data) != 16:
        raise ValueError("set_state: expected 16 bytes, "
                         f"got {len(data)}")
    _C._random_state(generator, int.from_bytes(data[:8], "little"),
                     int.from_bytes(data[8:], "little"))
    return generator


get_rng_state = _get_state


def set_rng_state(new_state):
    """Go on with random numbers where get_rng_state was called."""
    _set_state(None, new_state)


def initial_seed():
    """The number this thread's random numbers were seeded with."""
    return _C._random_state(None)[0]


def seed():
    """Seed this thread's random numbers with one of the system's."""
    from secrets import randbits
    number = randbits(63)
    _C.manual_seed(number)
    return number


Generator.get_state = _get_state
Generator.set_state = _set_state
Generator.initial_seed = lambda self: _C._random_state(self)[0]
Generator.device = property(lambda self: _C.empty(0).device)


@_contextmanager
def _fork_rng(devices=None, enabled=True):
    state = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Nothing changes: all operators are, on every device."""


def set_float32_matmul_precision(precision):
    """Nothing changes: products of float32 keep its precision."""
    if precision not in ("highest", "high", "medium"):
        raise ValueError("set_float32_matmul_precision: expected "
                         "'highest', 'high' or 'medium', got "
                         f"{precision!r}")


def _module(name, **content):
    made = _sys.modules[f"treadle.{name}"] = _Module(f"treadle.{name}")
    vars(made).update(content, __path__=[])
    return made


def _no():
    return False


random = _module(
    "random", get_rng_state=get_rng_state, set_rng_state=set_rng_state,
    seed=seed, manual_seed=_C.manual_seed, initial_seed=initial_seed,
    fork_rng=_fork_rng)
backends = _module(
    "backends", __doc__="""Switches of libraries that are not used here.

    They can be set, for programs that do, and change nothing.
    """,
    cudnn=_module("backends.cudnn", benchmark=False, enabled=False,
                  deterministic=True, is_available=_no),
    cuda=_module("backends.cuda", is_built=_no,
                 matmul=_Namespace(allow_tf32=False)),
    mps=_module("backends.mps", is_available=_no, is_built=_no),
    mkl=_module("backends.mkl", is_available=_no))


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


def pin_memory(input, device=None):
    """The tensor itself, and a warning: no memory is pinned."""
    _warnings.warn("pin_memory has no effect: no memory is pinned",
                   stacklevel=3)
    return input


Tensor.pin_memory = pin_memory
amp = _module("amp", autocast=autocast, GradScaler=GradScaler)
cuda.amp = _module("cuda.amp", autocast=autocast, GradScaler=GradScaler)
cuda.manual_seed = cuda.manual_seed_all = lambda seed: None
cuda.current_device = lambda: 0


class _Methods:
    # dialect: methods under second names
    def type(self, dtype=None, non_blocking=False):
        """The name of the tensor's type, or the tensor as another."""
        if dtype is None:
            type = _TYPES[self.dtype, "cuda" if self.is_cuda else None]
            return f"{type.__module__}.{type.__name__}"
        if isinstance(dtype, str):
            dtype = _type_named(dtype)
        if isinstance(dtype, _TensorType):
            return self.to(dtype.dtype, device=dtype._place or "cpu")
        return self.to(dtype)
    def new_tensor(self, data, *, dtype=None, device=None,
                   requires_grad=False):
        """data as a tensor of this one's dtype and device."""
        return _C.tensor(data, dtype=dtype or self.dtype,
                         device=device or self.device,
                         requires_grad=requires_grad)

    def new(self, *args, device=None):
        """Sizes or data as a tensor of this one's dtype and device."""
        return _legacy("new", self.dtype, args, device or self.device)
    def random_(self, from_=0, to=None, *, generator=None):
        """Integers of [from_, to), or as many as the dtype can hold."""
        if to is None and from_:
            from_, to = 0, from_
        elif to is None and self.is_floating_point():
            to = 2 * 2 ** _FLOATS[self.dtype][0]
        elif to is None:
            to = 2 if self.dtype is _C.bool else iinfo(self.dtype).max
        return self.copy_(_C.randint(from_, to, self.shape,
                                     generator=generator))

    def exponential_(self, lambd=1.0, *, generator=None):
        """Waiting times: -log(u) / lambd for u in (0, 1]."""
        u = _C.rand_like(self, generator=generator)
        return self.copy_((1 - u).log() / -lambd)
    layout = strided
    broadcast_to = _C.Tensor.expand
    is_sparse = is_quantized = is_mkldnn = is_meta = is_nested = False

    @property
    def is_cpu(self):
        """Whether the elements are in the host's memory."""
        return not self.is_cuda

    @property
    def itemsize(self):
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self):
        """Bytes of all elements."""
        return self.numel() * self.dtype.itemsize

    @property
    def real(self):
        """The tensor itself."""
        return self
    def __reversed__(self):
        n = len(self) if self.ndim else 0
        return self.index_select(0, _C.arange(n - 1, -1, -1)) if n else self

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return as_tensor(array)

    def __complex__(self):
        return complex(self.item())


_give_methods(_Methods)
# dialect: fill the class from tables
def _like(make):
    def method(self, *args, dtype=None, device=None, **named):
        return make(*args, dtype=dtype or self.dtype,
                    device=device or self.device, **named)
    method.__doc__ = make.__doc__
    return method


for _name in "empty", "zeros", "ones", "full":
    setattr(Tensor, "new_" + _name, _like(getattr(_C, _name)))
for _name in "is_floating_point", "numel":
    globals()[_name] = getattr(Tensor, _name)
for _second, _first in {"ndimension": "dim", "H": "T", "mH": "mT",
                        "ravel": "flatten", "concat": "cat",
                        "concatenate": "cat"}.items():
    setattr(Tensor, _second, getattr(Tensor, _first))
    if hasattr(_C, _first):
        globals()[_second] = getattr(_C, _first)
