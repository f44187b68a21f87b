# SPDX-License-Identifier: MIT
# Tangled from the chapter "vocabulary": edit that, not this file.
# needs: layers
"""Names that are formulas of operators."""
import builtins
import math
import re
from functools import reduce
from itertools import (accumulate, combinations as _chosen,
                       combinations_with_replacement as _repeated)
from . import _C, Tensor, linalg
from ._C import *
from ._forms import (_deep, _many, atleast_2d, broadcast_tensors, clamp,
                     div, index_put, split, tensor_split)
from ._tensor import _choose, _give_functions, _results, as_tensor
from .nn import functional as _F

_before = set(globals())
# vocabulary: function _define
_ROW = re.compile(r"^(\w+)\((.*?)\) = *(.*?)(?=^\w|\Z)", re.M | re.S)


def _define(names, text):
    """Put into names the functions of a text: name(...) = formula."""
    for name, parameters, formula in _ROW.findall(text):
        made = eval(f"lambda {parameters}: ({formula})", names)
        made.__name__ = made.__qualname__ = name
        made.__doc__ = f"= {' '.join(formula.split())}"
        names[name] = made


# vocabulary: functions that need a few lines
def _view(self, *size):
    """The same elements in another shape; or bytes in another dtype."""
    return _C.view_dtype(self, size[0]) \
        if size and size[0].__class__ is _C.dtype \
        else _C.view(self, *size)


def cdist(x1, x2, p=2.0, compute_mode=None):
    """Distances of all pairs of rows; of many by one product."""
    ways = [None, "use_mm_for_euclid_dist_if_necessary",
            "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"]
    if compute_mode not in ways:
        raise ValueError(f"compute_mode must be one of {ways}, got "
                         f"{compute_mode!r}")
    many = ways.index(compute_mode) < 2 and builtins.max(
        x1.shape[-2], x2.shape[-2]) > 25
    if p != 2 or not (many or compute_mode == ways[2]) \
            or x1.dtype not in (_C.float32, _C.float64):
        far = x1.unsqueeze(-2) - x2.unsqueeze(-3)
        return far.norm(p if far.shape[-1] else 1, -1)
    square = ((x1 * x1).sum(-1, True) - 2 * (x1 @ x2.mT)
              + (x2 * x2).sum(-1).unsqueeze(-2))
    same = square <= 0
    return where(same, 0, where(same, 1, square).sqrt())


def cov(input, *, correction=1, fweights=None, aweights=None):
    """Covariances of the rows, each column an observation."""
    if input.ndim > 2:
        raise RuntimeError("expected at most 2 dimensions, got "
                           f"shape {list(input.shape)}")
    x = atleast_2d(input)
    a = ones_like(x.sum(0)) if aweights is None else aweights
    for v in (fweights, aweights):
        if v is not None and (v < 0).any():
            raise RuntimeError("a weight is negative")
    w = a if fweights is None else a * fweights
    total = w.sum()
    d = x - (x * w).sum(1, True) / total
    left = (total - correction * (w * a).sum() / total).clamp(min=0)
    c = (d * w) @ d.t() / left
    return c.squeeze()


def _correlation(c):
    if c.ndim == 0:
        return c / c
    s = c.diagonal().sqrt()
    return (c / s / s.unsqueeze(-1)).clamp(-1, 1)


def cross(input, other, dim=None):
    """Vector product along dim, or the first dimension of size 3."""
    a, b = broadcast_tensors(input, other)
    if dim is None and 3 in a.shape:
        dim = list(a.shape).index(3)
    if dim is None or a.shape[dim] != 3:
        raise RuntimeError("expected a dimension of size 3, got "
                           f"shape {list(a.shape)} and dim={dim}")
    return roll(a, -1, dim) * roll(b, -2, dim) \
        - roll(a, -2, dim) * roll(b, -1, dim)


def _written(src, copy, view):
    view(copy).copy_(src)
    return copy


def _cut(input, at, dim, least):
    if input.ndim < least or isinstance(at, int) and (
            at < 1 or input.shape[dim] % at):
        raise RuntimeError(f"cannot cut shape {list(input.shape)} into "
                           f"{at}")
    return tensor_split(input, at, dim)


def vander(x, N=None, increasing=False):
    """Powers of the elements of a vector, a row for each."""
    n = len(x) if N is None else N
    if x.ndim != 1 or n < 0:
        raise RuntimeError("expected a vector and N not below "
                           f"0, got shape {list(x.shape)} and N={n}")
    powers = arange(0, n, device=x.device)
    return x.unsqueeze(-1) ** (powers if increasing else powers.flip(0))


def block_diag(*tensors):
    """A matrix with the given ones along its diagonal."""
    blocks = [_deep(x, 2) for x in _many(tensors)]
    for b in blocks:
        if b.ndim > 2:
            raise RuntimeError("expected at most 2 "
                               f"dimensions, got shape {list(b.shape)}")
    ends = list(accumulate(b.shape[1] for b in blocks))
    return cat([pad(b, (end - b.shape[1], ends[-1] - end))
                for b, end in zip(blocks, ends)], 0)


def diff(input, n=1, dim=-1, prepend=None, append=None):
    """Differences of neighbours along dim, n times."""
    x = cat([x for x in (prepend, input, append) if x is not None], dim)
    for _ in range(builtins.min(n, x.shape[dim])):
        x = slice(x, dim, 1) - slice(x, dim, 0, -1)
    return x


def _trapezia(y, x, dx, dim):
    if x is not None:
        dx = x.diff(dim=dim if x.ndim == y.ndim else -1)
        if x.ndim == 1:
            dx = dx.reshape([-1] + [1] * (y.ndim - 1 - dim % y.ndim))
    return (slice(y, dim, 1) + slice(y, dim, 0, -1)) * dx / 2


def isin(elements, test_elements, *, assume_unique=False,
         invert=False):
    """True where an element occurs among test_elements, or does not."""
    x, tests = as_tensor(elements), as_tensor(test_elements).flatten()
    if tests.numel() == 0:
        return full_like(x, invert, dtype=_C.bool)
    both = _C._promote(x.dtype, tests.dtype)
    both = _C.uint8 if both is _C.bool else both
    x, tests = x.to(both), tests.to(both).sort()[0]
    at = searchsorted(tests, x).clamp(max=len(tests) - 1)
    return (tests[at] == x) != invert


_Median = _results("nanmedian", "values indices")


def nanmedian(input, dim=None, keepdim=False):
    """The median of what is not NaN: of all, or (values, indices)."""
    x, d = (input.flatten(), 0) if dim is None else (input, dim)
    line = x.sort(d)
    left = (line[0] == line[0]).sum(d, True)
    middle = floor_divide((left - 1).clamp(min=0), 2)
    found = [f.gather(d, middle) for f in line]
    if dim is None:
        return found[0].reshape(())
    return _Median(*(f if keepdim else f.squeeze(d) for f in found))


def searchsorted(sorted_sequence, values, *, sorter=None, **options):
    """Where values belong in a sequence that sorter may have sorted."""
    if sorter is not None:
        if sorter.shape != sorted_sequence.shape:
            raise RuntimeError(
                "expected a sorter of shape "
                f"{list(sorted_sequence.shape)}, got "
                f"{list(sorter.shape)}")
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    return _C.searchsorted(sorted_sequence, values, **options)


def _quantiles(name, skip, sentence):
    def quantile(input, q, dim=None, keepdim=False, *,
                 interpolation="linear"):
        # vocabulary: look the quantiles up
        way = _choose("argument 'interpolation'", interpolation, {
            "linear": lambda at: at, "lower": floor, "higher": ceil,
            "nearest": round, "midpoint":
            lambda at: floor(at) / 2 + ceil(at) / 2}, RuntimeError)
        q = as_tensor(q, dtype=input.dtype, device=input.device)
        if not input.is_floating_point() or not input.numel():
            raise RuntimeError(f"argument 'input' must be floats, "
                               f"got {input.dtype} {list(input.shape)}")
        if q.ndim > 1 or not ((q >= 0) & (q <= 1)).all():
            raise RuntimeError("argument 'q' must be one number or a vector "
                               "of numbers, from 0 to 1")
        x = input.flatten() if dim is None else input.movedim(dim, -1)
        x = x.reshape(1) if x.ndim == 0 else x.sort(-1)[0]
        known = (x == x).sum(-1, True)
        last = (known if skip else full_like(known, x.shape[-1])) - 1
        at = way(q.reshape(-1) * last.clamp(min=0))
        low, high = (x.gather(-1, f(at).long()) for f in (floor, ceil))
        y = low.lerp(high, at - floor(at))
        if not skip:
            y = where(known < x.shape[-1], x[..., -1:], y)
        y = y.movedim(-1, 0) if q.ndim else y.squeeze(-1)
        if not keepdim or not input.ndim:
            return y
        if dim is None:
            return y.reshape([*q.shape] + [1] * input.ndim)
        return y.unsqueeze(dim + q.ndim * (dim >= 0))
    quantile.__name__, quantile.__doc__ = name, sentence
    return quantile


quantile = _quantiles("quantile", False,
    """The q-quantiles of all elements or along dim; NaN if any is.""")
nanquantile = _quantiles("nanquantile", True,
    """As quantile, of what is not NaN.""")


def _multiplied(x, dim, index, src):
    """x times what src has at the places of index, with gradients."""
    a, b = where(x == 0, 1, x), where(src == 0, 1, src)
    y = scatter(a.detach(), dim, index, b.detach(), reduce="multiply")
    zeros = (x == 0).to(x.dtype) \
        .scatter_add(dim, index, (src == 0).to(x.dtype))
    if x.is_floating_point():
        logs = a.abs().log().scatter_add(dim, index, b.abs().log())
        y = y * where(logs.isfinite(), (logs - logs.detach()).exp(), 1)
    zero = where(x == 0, x, 0) \
        .scatter_add(dim, index, where(src == 0, src, 0))
    return where(zeros == 0, y, where(zeros == 1, y * zero, 0))


def scatter_reduce(input, dim, index, src, reduce, *,
                   include_self=True):
    """Elements of src reduced where index says, and those of input.

    reduce is "sum", "prod", "mean", "amax" or "amin".
    """
    _choose("reduce", reduce, ("sum", "prod", "mean", "amax", "amin"),
            RuntimeError)
    src = src[tuple(builtins.slice(n) for n in index.shape)]
    old = include_self | scatter(zeros_like(input, dtype=_C.bool), dim,
                                 index, True).logical_not()
    x = where(old, input, int(reduce == "prod"))
    new = ones_like(src)
    if reduce == "prod":
        return _multiplied(x, dim, index, src)
    if reduce in ("amax", "amin"):
        last, order = src.detach().sort(dim, reduce == "amin")
        y = scatter(input.detach(), dim, index.gather(dim, order), last)
        if include_self:
            y = getattr(_C, reduce[1:] + "imum")(y, input.detach())
        if not input.is_floating_point():
            return y
        old = old & ((input == y) | (input != input))
        new = (src == y.gather(dim, index)) | (src != src)
        x, src = where(old, input, 0), where(new, src, 0)
    # vocabulary: add up, and divide for a mean
    total = x.scatter_add(dim, index, src)
    if reduce == "sum":
        return total
    count = old.to(x.dtype).scatter_add(dim, index, new.to(x.dtype))
    return div(total, count, rounding_mode=None
               if x.is_floating_point() else "floor")


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """A random choice along dim, soft; or hard with soft gradients."""
    noise = empty_like(logits).exponential_().log()
    soft = softmax((logits - noise) / tau, dim)
    if not hard:
        return soft
    choice = scatter(zeros_like(logits), dim, soft.argmax(dim, True),
                     1.0)
    return choice - soft.detach() + soft


def _fill_diagonal_(self, fill_value, wrap=False):
    """Set the elements whose indices are all equal."""
    if self.ndim < 2 or self.ndim > 2 and len(set(self.shape)) > 1:
        raise RuntimeError("expected equal dimensions, "
                           f"got shape {list(self.shape)}")
    (self.diagonal() if self.ndim == 2 and not wrap else
     self.view(-1)[::builtins.sum(self.stride())]).fill_(fill_value)
    return self
_define(globals(), """
addbmm(input, batch1, batch2, *, beta=1, alpha=1) = (lambda y: y + (
    input.to(y.dtype) * beta if beta else 0))(
        alpha * bmm(batch1, batch2).sum(0))
chain_matmul(*matrices) = reduce(mm, _many(matrices))
bilinear(input1, input2, weight, bias=None) =
    einsum("...i,oij,...j->...o", (input1, weight, input2))
    + (0 if bias is None else bias)
dist(input, other, p=2) = (input - other).norm(p)
pdist(input, p=2.0) = sub(
    *input[combinations(arange(0, len(input))).t()]).norm(p, 1)
corrcoef(input) = _correlation(cov(input))
hstack(tensors) =
    cat([_deep(x, 1) for x in tensors], int(tensors[0].ndim > 1))
vstack(tensors) = cat([_deep(x, 2) for x in tensors], 0)
row_stack(tensors) = vstack(tensors)
dstack(tensors) = cat([_deep(x, 3) for x in tensors], 2)
column_stack(tensors) = cat(
    [x if x.ndim > 1 else x.reshape(-1, 1) for x in tensors], 1)
broadcast_to(input, size) = expand(input, size)
fliplr(input) = flip(input, (1,))
flipud(input) = flip(input, (0,) if input.size(0) else ())
argwhere(input) = nonzero(input)
slice_scatter(input, src, dim=0, start=None, end=None, step=1) =
    _written(src, input.clone(), lambda x: slice(x, dim, start or 0,
        x.shape[dim] if end is None else end, step))
select_scatter(input, src, dim, index) =
    _written(src, input.clone(), lambda x: select(x, dim, index))
diagonal_scatter(input, src, offset=0, dim1=0, dim2=1) = _written(
    src, input.clone(), lambda x: diagonal(x, offset, dim1, dim2))
diagflat(input, offset=0) = input.flatten().diag(offset)
index_reduce(input, dim, index, source, reduce, *, include_self=True) =
    scatter_reduce(input, dim, index.reshape(
        [-1] + [1] * (input.ndim - 1 - dim % input.ndim)).expand(
        source.shape), source, reduce, include_self=include_self)
put(input, index, source, accumulate=False) = index_put(
    input.flatten(), (index,), source, accumulate).reshape(input.shape)
fill(input, value) = input.clone().fill_(value)
msort(input) = input.sort(0)[0]
narrow_copy(input, dim, start, length) =
    input.narrow(dim, start, length).clone()
channel_shuffle(input, groups) =
    input.unflatten(1, (groups, -1)).transpose(1, 2).flatten(1, 2)
combinations(input, r=2, with_replacement=False) = input[tensor(list(
    (_repeated if with_replacement else _chosen)(range(len(input)), r)),
    dtype=int64).reshape(-1, r)]
unravel_index(indices, shape) = tuple(
    floor_divide(indices, math.prod(shape[d + 1:])) % shape[d]
    for d in range(len(shape)))
hsplit(input, indices_or_sections) = _cut(
    input, indices_or_sections, int(input.ndim > 1), 1)
vsplit(input, indices_or_sections) =
    _cut(input, indices_or_sections, 0, 2)
dsplit(input, indices_or_sections) =
    _cut(input, indices_or_sections, 2, 3)
logit(input, eps=None) = (lambda p: (p / (1.0 - p)).log())(
    input if eps is None else input.clamp(eps, 1 - eps))
equal(input, other) = (
    input.shape == other.shape and (input == other).all().item())
allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False) =
    isclose(input, other, rtol, atol, equal_nan).all().item()
clamp_min(input, min) = clamp(input, min)
clamp_max(input, max) = clamp(input, None, max)
float_power(input, exponent) = pow(*(x.double()
    if isinstance(x, Tensor) else float(x) for x in (input, exponent)))
rsub(input, other, *, alpha=1) = other - alpha * input
polygamma(n, input) = digamma(input) if n == 0 else (
    (-1) ** (n + 1) * math.gamma(n + 1.0) * zeta(n + 1.0, input))
mvlgamma(input, p) = lgamma(
    input.unsqueeze(-1) - arange(0, p).to(input) / 2).sum(-1)
    + p * (p - 1) / 4 * math.log(math.pi)
trapezoid(y, x=None, *, dx=1, dim=-1) =
    _trapezia(y, x, dx, dim).sum(dim)
cumulative_trapezoid(y, x=None, *, dx=1, dim=-1) =
    _trapezia(y, x, dx, dim).cumsum(dim)
softmin(input, dim=-1, _stacklevel=3, dtype=None) =
    softmax(-input, dim, dtype=dtype)
adjoint(input) = input.mT
get_device(input) = input.device.index if input.is_cuda else -1
is_complex(input) = False
is_conj(input) = False
is_neg(input) = False
is_nonzero(input) = builtins.bool(input)
is_same_size(input, other) = input.shape == other.shape
is_signed(input) = input.dtype.is_signed
real(input) = input
conj(input) = input
conj_physical(input) = input
positive(input) = input
resolve_conj(input) = input
resolve_neg(input) = input
""")
_define(vars(linalg), """
diagonal(A, *, offset=0, dim1=-2, dim2=-1) =
    _C.diagonal(A, offset, dim1, dim2)
vecdot(x, y, *, dim=-1) = (x * y).sum(dim)
inv(A) = _C.inverse(A)
eigvalsh(A, UPLO="L") = eigh(A, UPLO).eigenvalues
svdvals(A) = _C.linalg_svd(A).S
""")
# vocabulary: make methods of functions
trapz, split_with_sizes = trapezoid, split
pairwise_distance = _F.pairwise_distance
__all__ = [name for name in set(globals()) - _before if name[0] != "_"]
__all__.append("searchsorted")


def _updating(name):
    def update(self, *args, **named):
        y = getattr(self.clone(), name)(*args, **named)
        if y.is_floating_point() and not self.is_floating_point():
            raise RuntimeError(f"the result is {y.dtype} and "
                               f"cannot be stored in {self.dtype}")
        return self.copy_(y)
    return update


_give_functions(globals())
Tensor.view, Tensor.split_with_sizes = _view, split
Tensor.fill_diagonal_ = _fill_diagonal_
Tensor.polygamma = lambda self, n: polygamma(n, self)
for _name in """addbmm clamp_max clamp_min float_power index_reduce
        logit mvlgamma polygamma put scatter_reduce""".split():
    setattr(Tensor, _name + "_", _updating(_name))
for _name in """bilinear channel_shuffle gumbel_softmax pdist
        softmin""".split():
    setattr(_F, _name, globals()[_name])
linalg.matmul, linalg.matrix_power = matmul, matrix_power
linalg.multi_dot = lambda tensors: chain_matmul(*tensors)
linalg.cross = lambda input, other, *, dim=-1: cross(input, other, dim)
