# SPDX-License-Identifier: MIT
# Tangled from the chapter "statistics": edit that, not this file.
# needs: package
"""Linear algebra: norms."""
from . import _C


def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    """The ord-norm of x over dim, or of all its elements."""
    return _C.vector_norm(x, ord, dim, keepdim, dtype=dtype)


def norm(A, ord=None, dim=None, keepdim=False, *, dtype=None):
    """The norm of a vector, or with ord=None or 'fro' of anything."""
    if ord in (None, "fro"):
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if isinstance(ord, str) or (A.ndim if dim is None else
            len(dim) if isinstance(dim, (tuple, list)) else 1) != 1:
        raise NotImplementedError(
            f"linalg.norm: ord={ord!r} of a matrix; there are 'fro' "
            "and the norms of vectors")
    return vector_norm(A, ord, dim, keepdim, dtype=dtype)
