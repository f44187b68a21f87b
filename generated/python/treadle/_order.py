# SPDX-License-Identifier: MIT
# Tangled from the chapter "statistics": edit that, not this file.
# needs: package
"""Functions about order that have several forms."""
from . import _C
from ._C import Tensor


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




def median(input, dim=None, keepdim=False):
    """median(input): the middle element; median(input, dim): values and
    indices along dim."""
    if dim is None:
        return _C.median(input)
    return _C.median_dim(input, dim, keepdim)


def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """The p-norm over dim, or of all elements; "fro" is 2."""
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(
            f"norm: p must be a number or 'fro', not {p!r}")
    p = 2 if p is None or p == "fro" else p
    out = {} if out is None else {"out": out}
    return _C.vector_norm(input, p, dim, keepdim, dtype=dtype, **out)


for _method in (var, std, median, norm):
    setattr(Tensor, _method.__name__, _method)
