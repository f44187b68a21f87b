# SPDX-License-Identifier: MIT
# Tangled from the chapter "statistics": edit that, not this file.
# needs: package
"""Linear algebra: norms, and what later chapters add."""
from collections import namedtuple
from math import inf, nan
from . import _C
from ._C import Tensor, vector_norm


def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *,
                dtype=None):
    """The norm of matrices: "fro", "nuc", 1, -1, 2, -2, inf or -inf."""
    A = A if dtype is None else A.to(dtype)
    if ord == "fro":
        return _C.vector_norm(A, 2, dim, keepdim)
    if ord not in (1, -1, 2, -2, inf, -inf, "nuc"):
        raise RuntimeError(f"matrix_norm: Order {ord} not supported.")
    A = A.movedim(dim, (-2, -1))
    if ord in (2, -2, "nuc"):
        sizes = svdvals(A)
    else:
        sizes = A.abs().sum(-2 if abs(ord) == 1 else -1)
    found = sizes.sum(-1) if ord == "nuc" else (
        _C.amax if ord > 0 else _C.amin)(sizes, -1)
    for d in sorted(d % A.ndim for d in dim) if keepdim else ():
        found = found.unsqueeze(d)
    return found


def norm(A, ord=None, dim=None, keepdim=False, *, dtype=None):
    """vector_norm or, over two dimensions with an ord, matrix_norm."""
    rank = A.ndim if dim is None else \
        len(dim) if isinstance(dim, (tuple, list)) else 1
    if rank == 2 and ord is not None:
        return matrix_norm(A, ord, dim or (0, 1), keepdim, dtype=dtype)
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim,
                       dtype=dtype)
