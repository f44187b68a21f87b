# SPDX-License-Identifier: MIT
# Tangled from the chapter "indexing": edit that, not this file.
# needs: package
"""Reading and writing at places that are data."""
from . import _C
from ._C import Tensor
from ._grad_mode import no_grad as _no_grad


def nonzero(input, *, as_tuple=False):
    """Coordinates that are not zero: rows, or a vector a dimension."""
    if not as_tuple:
        return _C.nonzero(input)
    rows = _C.nonzero(input if input.dim() else input.unsqueeze(0))
    return tuple(_C.select(rows, 1, d) for d in range(rows.shape[1]))


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


def _where_method(self, condition, other):
    return where(condition, self, other)


__all__ = [name for name in globals() if name[0] not in "_T"]
for _name in __all__:
    setattr(Tensor, _name, globals()[_name])
Tensor.where = _where_method


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
