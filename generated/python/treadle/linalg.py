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
# linalg: further names of linalg


class LinAlgError(RuntimeError):
    """A matrix is singular, not positive definite, or not finite."""


def inv(A):
    """The inverses of square matrices."""
    return _C.inverse(A)


def det(A):
    """The determinants of square matrices."""
    return _C.det(A)


def slogdet(A):
    """sign and logabsdet of the determinants."""
    return _C.slogdet(A)


def cholesky(A, *, upper=False):
    """L with A = L L', or U with A = U' U; one triangle is read."""
    return cholesky(A.mT).mT if upper else _C.linalg_cholesky(A)


def _is_vector(A, B):
    return B.ndim == 1 or B.shape == A.shape[:-1]


def solve(A, B, *, left=True):
    """X with AX = B, or XA = B; B: matrices, or vectors [..., n]."""
    if not left:
        return solve(A.mT, B.mT).mT
    if _is_vector(A, B):
        return _C.linalg_solve(A, B.unsqueeze(-1)).squeeze(-1)
    return _C.linalg_solve(A, B)


def solve_triangular(A, B, *, upper, left=True, unitriangular=False):
    """solve of one triangle of A; with ones on its diagonal, if so."""
    A = (A.triu if upper else A.tril)()
    if unitriangular:
        A = A - A.tril().triu() + _C.eye(len(A.mT), dtype=A.dtype)
    return solve(A, B, left=left)


def qr(A, mode="reduced"):
    """Q and R with A = QR; mode "complete": Q square, "r": no Q."""
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError("qr received unrecognized mode "
                           f"{mode!r}: reduced, complete or r")
    y = _C.linalg_qr(A, mode == "complete")
    return type(y)((A.new_zeros(0), y.R)) if mode == "r" else y


def eigh(A, UPLO="L"):
    """eigenvalues and eigenvectors of symmetric A; one triangle is read.
    """
    if UPLO not in ("L", "U"):
        raise RuntimeError("Expected UPLO argument to be 'L' or 'U', but "
                           f"got {UPLO}")
    return _C.linalg_eigh(A if UPLO == "L" else A.mT)


def svd(A, full_matrices=True):
    """U, S and Vh with A = U diag(S) Vh."""
    y = _C.linalg_svd(A)
    return type(y)((_full(y.U), y.S, _full(y.Vh.mT).mT)) \
        if full_matrices else y


def _full(U):
    n = U.shape[-1]
    return U if n == U.shape[-2] else _C.cat(
        (U, qr(U.detach(), "complete").Q[..., n:]), -1)


def pinv(A, *, atol=None, rtol=None, hermitian=False):
    """The pseudo-inverse; singular values up to max(atol, rtol times the
    first) count as zero.  hermitian changes nothing."""
    return _C.linalg_pinv(A, atol, rtol)


def eigvalsh(A, UPLO="L"):
    """The eigenvalues of eigh."""
    return eigh(A, UPLO).eigenvalues


def svdvals(A):
    """The singular values of svd."""
    return _C.linalg_svd(A).S


def matrix_rank(A, *, atol=None, rtol=None, hermitian=False):
    """How many singular values exceed max(atol, rtol * the first)."""
    s = svdvals(A)
    if rtol is None:
        rtol = 0 if atol is not None else max(A.shape[-2:]) * 2.0 ** (
            -23 if A.dtype is _C.float32 else -52)
    return (s > (s[..., :1] * rtol).clamp(min=atol or 0)).sum(-1)


def cond(A, p=None):
    """norm(A, p) * norm(inv(A), p); p None or 2: s_1 / s_n, of any A."""
    s = svdvals(A)
    return s[..., 0] / s[..., -1] if p in (None, 2) else \
        matrix_norm(A, p) * matrix_norm(inv(A), p)


_Lstsq = namedtuple("lstsq", "solution residuals rank singular_values")


def lstsq(A, B, rcond=None, *, driver=None):
    """solution X of least |AX - B|, residuals, rank, singular_values.

    A: [..., m, n], B: [..., m, k] or, for vectors, [..., m].
    """
    if driver not in (None, "gelsy", "gels", "gelsd", "gelss"):
        raise RuntimeError(f"lstsq: unknown driver {driver!r}")
    if _is_vector(A, B):
        X, *more = lstsq(A, B.unsqueeze(-1), rcond, driver=driver)
        return _Lstsq(X.squeeze(-1), *more)
    X, none = pinv(A, rtol=rcond) @ B, A.new_zeros(0)
    rank = matrix_rank(A, rtol=rcond)
    return _Lstsq(
        X, none if driver in (None, "gelsy") or A.shape[-2] <= A.shape[-1]
        or (rank < A.shape[-1]).any() else (A @ X - B).square().sum(-2),
        none.to(_C.int64) if driver == "gels" else rank,
        svdvals(A) if driver in ("gelsd", "gelss") else none)


def logdet(input):
    """The logarithm of the determinant; nan if that is negative."""
    sign, log = slogdet(input)
    return _C.where(sign < 0, nan, log)


def pinverse(input, rcond=1e-15):
    """linalg.pinv with rtol=rcond."""
    return pinv(input, rtol=rcond)


_Svd = namedtuple("svd", "U S V")


def _svd(input, some=True, compute_uv=True):
    """U, S and V of input; zeros for U and V without compute_uv."""
    U, S, Vh = svd(input, not (some and compute_uv))
    return _Svd(U, S, Vh.mT) if compute_uv else _Svd(
        _C.zeros_like(U), S, _C.zeros_like(Vh))


Tensor.logdet, Tensor.pinverse, Tensor.svd = logdet, pinverse, _svd
