# SPDX-License-Identifier: MIT
# Tangled from the chapter "activations": edit that, not this file.
# needs: package
"""Operators of several forms, and their other names."""
from functools import wraps as _wraps
from itertools import (accumulate as _accumulate,
                       zip_longest as _longest)
from math import prod as _prod
from . import _C, Tensor, linalg
from ._grad_mode import no_grad as _no_grad
from ._tensor import _choose, _extreme, _give_functions
# activations: functions of several forms


def div(input, other, *, rounding_mode=None):
    """Quotient; rounded down ("floor") or towards zero ("trunc")."""
    if rounding_mode is None:
        return _C.div(input, other)
    if rounding_mode == "floor":
        return _C.floor_divide(input, other)
    _choose("rounding_mode", rounding_mode, (None, "floor", "trunc"),
            RuntimeError)
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
# indexing: functions of several forms


def nonzero(input, *, as_tuple=False):
    """Coordinates that are not zero: rows, or a vector a dimension."""
    if not as_tuple:
        return _C.nonzero(input)
    rows = _C.nonzero(input if input.dim() else input.unsqueeze(0))
    return rows.unbind(1)


def where(condition, input=None, other=None):
    """input where condition holds, else other; alone: its places."""
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    return _C.where(condition, input, other)


def _scattering(op):
    def function(input, dim, index, src=None, *, value=None,
                 reduce=None):
        return op(input, dim, index, value if src is None else src,
                  reduce=reduce)
    function.__name__, function.__doc__ = op.__name__, op.__doc__
    return function


scatter, scatter_ = _scattering(_C.scatter), _scattering(_C.scatter_)


def index_put_(input, indices, values, accumulate=False):
    """input[indices] = values; with accumulate each place adds."""
    key = tuple(slice(None) if i is None else i for i in indices)
    return _C._put(input, key, values, accumulate)


def index_put(input, indices, values, accumulate=False):
    """A copy of input with values at indices; see index_put_."""
    return index_put_(input.clone(), indices, values, accumulate)


def as_strided(input, size, stride, storage_offset=None):
    """View by sizes, strides and the place of the first element."""
    base = input if input._base is None else input._base
    if storage_offset is None:
        storage_offset = input.storage_offset()
    return _C.strided_view(base, size, stride,
                           storage_offset - base.storage_offset())


def embedding(input, weight, padding_idx=None, max_norm=None,
              norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """The row of weight for each element of input.

    Row padding_idx gets no gradient; rows longer than max_norm are
    shrunk to it, in weight.
    """
    if scale_grad_by_freq or sparse:
        raise NotImplementedError("embedding: gradients by frequency "
                                  "and sparse ones do not exist here")
    if max_norm is not None:
        with _no_grad():
            used = input.reshape(-1)
            rows = weight[used]
            length = rows.norm(norm_type, 1, True)
            weight[used] = rows * where(
                length > max_norm, max_norm / (length + 1e-7), 1.0)
    return _C.embedding(input, weight, padding_idx)
# arranging: functions of several forms


def _cuts(input, edges, dim):
    return tuple(_C.slice(input, dim, a, max(a, b))
                 for a, b in zip(edges, edges[1:]))


def split(tensor, split_size_or_sections=None, dim=0, *,
          split_size=None):
    """Views of so many positions of dim each, or of the given sizes."""
    sizes, n = split_size_or_sections, tensor.size(dim)
    if sizes is None:
        sizes = split_size
    if isinstance(sizes, int):
        if sizes < 0 or sizes == 0 and n:
            raise RuntimeError("split_size must be positive, "
                               f"got {sizes} for a size of {n}")
        return _cuts(tensor, [*range(0, n, sizes), n] if n else [0, 0],
                     dim)
    if min(sizes, default=0) < 0 or sum(sizes) != n:
        raise RuntimeError(f"the sizes {list(sizes)} do not add "
                           f"up to the size {n} of dimension {dim}")
    return _cuts(tensor, [0, *_accumulate(sizes)], dim)


def chunk(input, chunks, dim=0):
    """At most so many views of equal size, the last one smaller."""
    n = input.size(dim)
    if chunks <= 0:
        raise RuntimeError(f"expected chunks > 0, got {chunks}")
    return split(input, -(-n // chunks) if n else [0] * chunks, dim)


def tensor_split(input, indices_or_sections, dim=0):
    """So many views of nearly equal size, or cut at the indices."""
    at, n = indices_or_sections, input.size(dim)
    if isinstance(at, Tensor):
        at = at.tolist()
    if not isinstance(at, int):
        ends = [max(0, i + n) if i < 0 else min(i, n) for i in at]
        return _cuts(input, [0, *ends, n], dim)
    if at <= 0:
        raise RuntimeError(f"expected sections > 0, got {at}")
    sizes = [n // at + 1] * (n % at) + [n // at] * (at - n % at)
    return split(input, sizes, dim)


def unbind(input, dim=0):
    """Views of every position of dim, without that dimension."""
    return tuple(_C.select(input, dim, i)
                 for i in range(input.size(dim)))


def _spread(value, n):
    """A tuple of n values, given as one or as many."""
    return tuple(value) if isinstance(value, (tuple, list)) \
        else (value,) * n


def _many(tensors):
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        return tuple(tensors[0])
    return tensors


def broadcast_shapes(*shapes):
    """The shape to which all of them broadcast."""
    shapes, out = [_spread(s, 1) for s in shapes], []
    for sizes in _longest(*map(reversed, shapes), fillvalue=1):
        n, *others = {*sizes} - {1} or {1}
        if others:
            raise RuntimeError(f"{shapes} does not broadcast: sizes "
                               f"{sizes} in dimension {~len(out)}")
        out.insert(0, n)
    return _C.Size(out)


def broadcast_tensors(*tensors):
    """All tensors in one shape: views of those that have another."""
    tensors = _many(tensors)
    shape = broadcast_shapes(*(x.shape for x in tensors))
    return tuple(x if x.shape == shape else _C.expand(x, shape)
                 for x in tensors)


def meshgrid(*tensors, indexing="ij"):
    """Views that hold each vector along a dimension of its own."""
    tensors = _many(tensors)
    _choose("indexing", indexing, ("ij", "xy"), RuntimeError)
    if not tensors or any(x.ndim > 1 for x in tensors):
        raise RuntimeError("expected vectors or numbers")
    if len(tensors) > 8:
        raise RuntimeError(f"{len(tensors)} vectors, at most "
                           "8 are possible")
    shape = [x.numel() for x in tensors]
    grids = tuple(
        x.reshape([-1 if i == d else 1 for i in range(len(shape))])
        .expand(shape) for d, x in enumerate(tensors))
    return grids if indexing == "ij" or len(shape) < 2 else \
        tuple(x.transpose(0, 1) for x in grids)


def _at_least(rank):
    def function(*tensors):
        many = _many(tensors)
        wide = tuple(_deep(x, rank) for x in many)
        return wide[0] if len(wide) == 1 and many is tensors else wide
    function.__name__ = f"atleast_{rank}d"
    function.__doc__ = f"The tensors with at least {rank} dimensions."
    return function


def _deep(x, rank):
    while x.ndim < rank:
        x = _C.unsqueeze(x, -1 if x.ndim == 2 else 0)
    return x


atleast_1d, atleast_2d, atleast_3d = map(_at_least, (1, 2, 3))


def cartesian_prod(*tensors):
    """All tuples of one element of each vector, as rows."""
    tensors = _many(tensors)
    if not tensors or any(x.ndim != 1 for x in tensors):
        raise RuntimeError("expected vectors")
    if len(tensors) == 1:
        return tensors[0]
    sizes = [len(x) for x in tensors]
    return _C.stack([
        _C.repeat_interleave(x, _prod(sizes[d + 1:]))
        .repeat(_prod(sizes[:d])) for d, x in enumerate(tensors)], 1)


def _triangle(name, keep):
    def indices(row, col, offset=0, *, dtype=None, device=None):
        truths = _C.ones([row, col], dtype=_C.bool, device=device)
        _C.full((), max(row, col) - 1, dtype=dtype)
        return keep(truths, offset).nonzero().t().contiguous() \
            .to(dtype or _C.int64)
    indices.__name__ = name
    indices.__doc__ = f"Rows and columns of what {name[:4]} keeps."
    return indices


tril_indices = _triangle("tril_indices", _C.tril)
triu_indices = _triangle("triu_indices", _C.triu)


def einsum(equation, *operands):
    """Sum of products by subscripts: einsum("ij,jk->ik", a, b)."""
    if isinstance(equation, Tensor):
        given = (equation, *operands)
        text = [_letters(s) for s in given[1::2]]
        last = f"->{_letters(given[-1])}" if len(given) % 2 else ""
        equation = ",".join(text) + last
        operands = given[:len(given) // 2 * 2:2]
    return _C.einsum(equation, _many(operands))


def _letters(numbers):
    return "".join("..." if n is Ellipsis else
                   chr(n + (65 if n < 26 else 71)) for n in numbers)


def tensordot(a, b, dims=2):
    """Sum of products over dims, or over the last and first ones."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0 or dims > min(a.ndim, b.ndim):
            raise RuntimeError(f"dims is {dims}, expected 0 "
                               f"to {min(a.ndim, b.ndim)}")
        dims = range(a.ndim - dims, a.ndim), range(dims)
    left, right = dims
    return _C.tensordot(a, b, list(left), list(right))


def repeat_interleave(input, repeats=None, dim=None, *,
                      output_size=None):
    """Each position of dim repeated; alone, 0, 1, ... repeated."""
    if repeats is None:
        repeats, dim = input, 0
        input = _C.arange(0, len(input), device=input.device)
    return _C.repeat_interleave(input, repeats, dim,
                                output_size=output_size)
# statistics: functions of several forms


def _moment(name):
    operator = getattr(_C, name)

    def moment(input, dim=None, unbiased=None, keepdim=False, *,
               correction=None):
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        return operator(input, dim, unbiased, keepdim,
                        correction=correction)
    moment.__name__ = name
    moment.__doc__ = operator.__doc__
    return moment


var, std, var_mean, std_mean = map(
    _moment, ("var", "std", "var_mean", "std_mean"))
median = _extreme("median", _C.median, _C.median_dim, _C.median_dim)


def norm(input, p="fro", dim=None, keepdim=False, **more):
    """The p-norm over dim, or of all elements; "fro" is 2."""
    if p == "nuc":
        return linalg.matrix_norm(input, p, dim or (-2, -1), keepdim,
                                  **more)
    p = 2 if p is None or p == "fro" else p
    return _C.vector_norm(input, p, dim, keepdim, **more)


_give_functions(globals())
# activations: other names of operators


for _pair in """absolute abs, arccos acos, arccosh acosh, arcsin asin,
        arcsinh asinh, arctan atan, arctanh atanh, arctan2 atan2,
        clip clamp, concat cat, concatenate cat, divide div, fix trunc,
        ger outer, greater gt, greater_equal ge, H T, less lt,
        less_equal le, mH mT, moveaxis movedim, multiply mul,
        ndimension dim, negative neg, not_equal ne, ravel flatten,
        sgn sign, subtract sub, swapaxes transpose, swapdims transpose,
        true_divide div""".split(","):
    _second, _first = _pair.split()
    for _end in ("", "_"):
        _method = getattr(Tensor, _first + _end, None)
        _function = globals().get(_first + _end,
                                  getattr(_C, _first + _end, None))
        if _method is not None:
            setattr(Tensor, _second + _end, _method)
        if _function is not None:
            globals()[_second + _end] = _function
# indexing: other names of operators


def _where_method(self, condition, other):
    return where(condition, self, other)


Tensor.where = _where_method
# arranging: other names of operators


def _as(op):
    def method(self, other):
        return getattr(self, op)(other.shape)
    method.__name__ = op + "_as"
    method.__doc__ = f"{op} to the shape of another tensor."
    return method


Tensor.split = split
for _name in "view", "expand", "reshape":
    setattr(Tensor, _name + "_as", _as(_name))
