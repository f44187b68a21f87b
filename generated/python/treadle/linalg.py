# SPDX-License-Identifier: MIT
# Tangled from the chapter "statistics": edit that, not this file.
# needs: package
"""Linear algebra: norms."""
from math import inf
from . import _C
from ._C import vector_norm


def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *,
                dtype=None):
    """The norm of matrices: "fro", 1, -1, inf or -inf."""
    A = A if dtype is None else A.to(dtype)
    if ord == "fro":
        return _C.vector_norm(A, 2, dim, keepdim)
    if ord not in (1, -1, inf, -inf):
        raise NotImplementedError(f"matrix_norm: ord={ord!r} needs "
                                  "singular values, and there are none")
    row, column = (d % A.ndim for d in dim)
    first, last = (row, column) if abs(ord) == 1 else (column, row)
    sums = A.abs().sum(first, True)
    found = (_C.amax if ord > 0 else _C.amin)(sums, last, True)
    return found if keepdim else found.squeeze((row, column))


def norm(A, ord=None, dim=None, keepdim=False, *, dtype=None):
    """vector_norm or, over two dimensions with an ord, matrix_norm."""
    rank = A.ndim if dim is None else \
        len(dim) if isinstance(dim, (tuple, list)) else 1
    if rank == 2 and ord is not None:
        return matrix_norm(A, ord, dim or (0, 1), keepdim, dtype=dtype)
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim,
                       dtype=dtype)
