# SPDX-License-Identifier: MIT
# Tangled from the chapter "porting": edit that, not this file.
# needs: exchange vocabulary jit
"""What programs need at their ends: files, comparisons, answers."""
import contextlib
import functools
import math
import os
import pickle
import secrets
import sys
import warnings
from . import _C, func, linalg
from ._C import Generator, Tensor
from ._exchange import _storage_of_bytes
from ._names import _module
from ._tensor import as_tensor
from ._vocabulary import unravel_index as _unravel

_package = sys.modules[__package__]
# porting: function save
def save(obj, f, pickle_module=pickle, pickle_protocol=4,
         _use_new_zipfile_serialization=True):
    """Write obj, with all its tensors, to a path or an open file.

    A path holds what it held before or all of obj, never a part.
    """
    if hasattr(f, "write"):
        return pickle_module.dump(obj, f, pickle_protocol)
    path = os.path.abspath(f)
    new = f"{path}.{os.getpid()}.new"
    try:
        with open(new, "wb") as file:
            pickle_module.dump(obj, file, pickle_protocol)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


# porting: class _Unpickler
_SAFE = {("collections", "OrderedDict"), ("builtins", "set"),
         ("builtins", "frozenset"), ("builtins", "bytearray"),
         ("builtins", "complex"), ("treadle", "Tensor"),
         ("treadle", "Size"), ("treadle._tensor", "device"),
         ("treadle.nn.module", "Parameter"),
         ("treadle._exchange", "_rebuild"),
         ("treadle._exchange", "_storage_of_bytes")}


class _Unpickler(pickle.Unpickler):
    def __init__(self, file, place, safe, **options):
        super().__init__(file, **options)
        self.place, self.safe = place, safe

    def find_class(self, module, name):
        if self.safe and (module, name) not in _SAFE and not (
                module == "treadle"
                and isinstance(getattr(_C, name, None), _C.dtype)):
            raise pickle.UnpicklingError(
                f"weights_only is set, and the file asks for {module}."
                f"{name}, which is neither a tensor nor a container")
        found = super().find_class(module, name)
        return functools.partial(self.place, found) \
            if found is _storage_of_bytes else found


# porting: function load
def load(f, map_location=None, pickle_module=None, *,
         weights_only=False, **pickle_load_args):
    """What save() wrote to a path or an open file.

    map_location says where tensors go: a device, a dictionary from
    devices to devices, or a function (storage, device) -> storage.  A
    file can run any program, unless weights_only is set.
    """
    if not hasattr(f, "read"):
        with open(f, "rb") as file:
            return load(file, map_location, pickle_module,
                        weights_only=weights_only, **pickle_load_args)

    def place(rebuild, data, device):
        if callable(map_location):
            return map_location(rebuild(data, "cpu"), device) \
                or rebuild(data, device)
        there = map_location.get(device, device) \
            if isinstance(map_location, dict) else map_location
        return rebuild(data, str(there or device))
    try:
        if pickle_module is not None:
            return pickle_module.load(f, **pickle_load_args)
        return _Unpickler(f, place, weights_only,
                          **pickle_load_args).load()
    except (pickle.UnpicklingError, EOFError, UnicodeDecodeError,
            IndexError, KeyError, AttributeError) as error:
        name = getattr(f, "name", "the file")
        raise RuntimeError(f"load: {name} is no file of treadle.save: "
                           f"{error}") from error


# porting: function assert_close
_BOUNDS = {_C.float16: (1e-3, 1e-5), _C.bfloat16: (1.6e-2, 1e-5),
           _C.float32: (1.3e-6, 1e-5), _C.float64: (1e-7, 1e-7)}


def assert_close(actual, expected, *, rtol=None, atol=None,
                 equal_nan=False, check_device=True, check_dtype=True,
                 msg=None, **_):
    """Raise AssertionError unless both are close, item by item."""
    if (rtol is None) != (atol is None):
        raise ValueError("assert_close: give both rtol and atol, or "
                         "neither")
    how = dict(rtol=rtol, atol=atol, equal_nan=equal_nan, msg=msg,
               check_device=check_device, check_dtype=check_dtype)
    if isinstance(expected, (dict, list, tuple)):
        keys = expected if isinstance(expected, dict) \
            else range(len(expected))
        if len(actual) != len(expected) or isinstance(expected, dict) \
                and actual.keys() != expected.keys():
            raise AssertionError(msg or "The items are others: "
                                 f"{actual!r} and {expected!r}")
        for key in keys:
            assert_close(actual[key], expected[key], **how)
        return
    if not isinstance(expected, Tensor):
        check_dtype = False
    a, b = as_tensor(actual), as_tensor(expected)
    for what in ["shape"] + ["dtype"] * check_dtype \
            + ["device"] * check_device:
        x, y = getattr(a, what), getattr(b, what)
        if x != y:
            raise AssertionError(msg or f"The values for attribute "
                                 f"{what!r} do not match: {x} != {y}.")
    # porting: compare element by element and report
    if rtol is None:
        rtol, atol = map(max, zip(*(_BOUNDS.get(x.dtype, (0, 0))
                                    for x in (a, b))))
    x, y = (v.detach().cpu().double() for v in (a, b))
    off = (x - y).abs()
    close = (a == b).cpu() if rtol == atol == 0 \
        else _C.isclose(x, y, rtol, atol, equal_nan)
    if close.all():
        return
    wrong = close.logical_not()
    lines = [f"Mismatched elements: {int(wrong.sum())} / {a.numel()}"]
    for name, size, most in (("absolute", off, atol),
                             ("relative", off / y.abs(), rtol)):
        size = _C.where(wrong, size, -1.0)
        at = int(size.argmax())
        place = tuple(int(i) for i in _unravel(_C.tensor(at), a.shape))
        lines.append(f"Greatest {name} difference: "
                     f"{size.flatten()[at].item()} at index {place} (up to "
                     f"{most} allowed)")
    raise AssertionError(msg or "Tensors are not close!\n\n"
                         + "\n".join(lines))


# porting: function vmap
def vmap(func, in_dims=0, out_dims=0, randomness="different"):
    """func for every slice of its arguments, the results stacked.

    This is a loop, one call for each slice.  Random numbers differ from
    slice to slice, or not, if randomness is "same", and are refused if
    it is "error".
    """
    if randomness not in ("different", "same", "error"):
        raise ValueError("Only allowed values for randomness are "
            f"'error', 'different', or 'same'. Got {randomness}")

    @functools.wraps(func)
    def each(*args, **named):
        dims = in_dims if isinstance(in_dims, (tuple, list)) \
            else (in_dims,) * len(args)
        if len(dims) != len(args) or any(
                d is not None and not (isinstance(x, Tensor)
                                       and -x.ndim <= d < x.ndim)
                for x, d in zip(args, dims)):
            raise ValueError("vmap: in_dims must name a dimension of "
                             "each tensor, and None for the rest")
        sizes = {x.shape[d] for x, d in zip(args, dims)
                 if d is not None}
        if len(sizes) != 1 or sizes == {0}:
            raise ValueError("vmap: expected one size above 0 to map "
                             f"over, got {sorted(sizes)}")
        state, results = _C._random_state(None), []
        for i in range(*sizes):
            if randomness == "same":
                _C._random_state(None, *state)
            results.append(func(*(
                x if d is None else x.select(d, i)
                for x, d in zip(args, dims)), **named))
        if randomness == "error" and state != _C._random_state(None):
            raise RuntimeError("vmap: called random operation while in "
                               "randomness error mode")
        if not isinstance(results[0], tuple):
            return _C.stack(results, out_dims)
        out = out_dims if isinstance(out_dims, (tuple, list)) \
            else (out_dims,) * len(results[0])
        return tuple(map(_C.stack, map(list, zip(*results)), out))
    return each


func.vmap = vmap
# porting: names without a machine
def compile(model=None, **options):
    """The model itself, which runs as it is; see also td.jit."""
    warnings.warn("compile has no effect: the model runs as it is; "
                  "td.jit compiles functions", stacklevel=2)
    return (lambda model: model) if model is None else model


def set_default_device(device):
    """Where new tensors are made: there is only "cpu"."""
    if str(device).partition(":")[0] != "cpu":
        raise NotImplementedError(
            "set_default_device: tensors are made on the CPU unless "
            f"device={str(device)!r} stands in the call")


def _seed(self):
    """Seed this generator with a number of the system's."""
    number = secrets.randbits(63)
    self.manual_seed(number)
    return number


Generator.seed = _seed
_HOMES = """digamma erf erfc erfinv exp2 expm1 log1p log_softmax logit
    logsumexp polygamma round sinc softmax xlogy zeta expit=sigmoid
    gammaln=lgamma psi=digamma multigammaln=mvlgamma""".split()
special = _module("special", **{
    pair.split("=")[0]: getattr(_package, pair.split("=")[-1])
    for pair in _HOMES},
    ndtr=lambda input: 0.5 * _C.erfc(input * -math.sqrt(0.5)),
    ndtri=lambda input: math.sqrt(2) * _C.erfinv(2 * input - 1),
    entr=lambda input: _C.where(input < 0, -math.inf,
                                -_C.xlogy(input, input)))
testing = _module("testing", assert_close=assert_close)
version = _module("version", __version__=_package.__version__,
                  cuda=None, hip=None)
# porting: names that are absent
_ABSENT = {
    "matrices are not inverted, solved or decomposed here": """
        cholesky cholesky_inverse cholesky_solve cond det eig eigh
        eigvals eigvalsh geqrf householder_product inv inverse ldl
        lobpcg logdet lstsq lu lu_factor lu_solve lu_unpack matrix_exp
        matrix_rank ormqr pca_lowrank pinv pinverse qr slogdet solve
        solve_triangular svd svd_lowrank svdvals symeig
        triangular_solve""",
    "there are no complex tensors": """angle cdouble cfloat chalf
        complex complex64 complex128 fft ifft imag istft polar
        rfft stft view_as_complex view_as_real""",
    "there are no sparse tensors": """coalesce col_indices
        crow_indices hspmm indices smm sparse sparse_coo_tensor
        sparse_csr_tensor sspaddmm to_dense to_sparse values""",
    "there are no quantised tensors": """dequantize int_repr q_scale
        q_zero_point qint8 qint32 quantization quantize_per_channel
        quantize_per_tensor quint8""",
    "dimensions have no names": "align_as align_to names refine_names",
    "one process computes": """distributed is_shared multiprocessing
        share_memory_""",
    "a tensor keeps its memory": """resize_ resize_as_ set_ storage""",
    "programs are not exported this way": "fx hub onnx package"}
_REASONS = {name: reason for reason, names in _ABSENT.items()
            for name in names.split()}


def _absent_from(where):
    def absent(name):
        reason = _REASONS.get(name)
        raise AttributeError(f"{where} has no attribute {name!r}"
                             + (f": {reason}" if reason else ""))
    return absent


def _absent_method(name):
    def absent(self):
        _absent_from("'treadle.Tensor' object")(name)
    return property(absent)


__getattr__ = _absent_from("module 'treadle'")
linalg.__getattr__ = _absent_from("module 'treadle.linalg'")
for _name in _REASONS:
    if not hasattr(Tensor, _name):
        setattr(Tensor, _name, _absent_method(_name))
