# SPDX-License-Identifier: MIT
# Tangled from the chapter "arranging": edit that, not this file.
# needs: package
"""Operators with many results or operands, and other names."""
from itertools import accumulate as _accumulate
from math import prod as _prod
from . import _C
from ._C import Tensor
from ._elementwise import _second_names


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
            raise RuntimeError("split: split_size must be positive, "
                               f"got {sizes} for a size of {n}")
        return _cuts(tensor, [*range(0, n, sizes), n] if n else [0, 0],
                     dim)
    if min(sizes, default=0) < 0 or sum(sizes) != n:
        raise RuntimeError(f"split: the sizes {list(sizes)} do not add "
                           f"up to the size {n} of dimension {dim}")
    return _cuts(tensor, [0, *_accumulate(sizes)], dim)


def chunk(input, chunks, dim=0):
    """At most so many views of equal size, the last one smaller."""
    n = input.size(dim)
    if chunks <= 0:
        raise RuntimeError(f"chunk: expected chunks > 0, got {chunks}")
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
        raise RuntimeError("tensor_split: expected sections > 0, got "
                           f"{at}")
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
    shapes = [_spread(s, 1) for s in shapes]
    out = [1] * max((len(s) for s in shapes), default=0)
    for shape in shapes:
        for i, n in enumerate(shape, len(out) - len(shape)):
            if n != 1 and out[i] not in (1, n):
                raise RuntimeError(
                    f"broadcast_shapes: {shape} does not broadcast: "
                    f"size {n} against {out[i]} in dimension {i}")
            out[i] = out[i] if n == 1 else n
    return _C.Size(out)


def broadcast_tensors(*tensors):
    """Views of all tensors in one shape."""
    tensors = _many(tensors)
    shape = broadcast_shapes(*(x.shape for x in tensors))
    return tuple(_C.expand(x, shape) for x in tensors)


def meshgrid(*tensors, indexing="ij"):
    """Views that hold each vector along a dimension of its own."""
    tensors = _many(tensors)
    if indexing not in ("ij", "xy"):
        raise RuntimeError("meshgrid: indexing must be 'xy' or 'ij', "
                           f"not {indexing!r}")
    if not tensors or any(x.ndim > 1 for x in tensors):
        raise RuntimeError("meshgrid: expected vectors or numbers")
    if len(tensors) > 8:
        raise RuntimeError(f"meshgrid: {len(tensors)} vectors make as "
                           "many dimensions, at most 8 are possible")
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
        raise RuntimeError("cartesian_prod: expected vectors")
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
            raise RuntimeError(f"tensordot: dims is {dims}, expected 0 "
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


def _repeat(self, *repeats):
    return _C.repeat(self, _many(repeats))


def _as(op):
    def method(self, other):
        return getattr(self, op)(other.shape)
    method.__name__ = op + "_as"
    method.__doc__ = f"{op} to the shape of another tensor."
    return method


_second_names("moveaxis movedim, swapaxes transpose,"
              "swapdims transpose, ger outer", globals())
pixel_shuffle = _C.pixel_shuffle
for _name in ("split", "chunk", "tensor_split", "unbind",
              "repeat_interleave"):
    setattr(Tensor, _name, globals()[_name])
for _name in "view", "expand", "reshape":
    setattr(Tensor, _name + "_as", _as(_name))
