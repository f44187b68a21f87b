# SPDX-License-Identifier: MIT
# Tangled from the chapter "statistics": edit that, not this file.
# needs: package
"""Linear algebra: norms, and what later chapters add."""
from math import inf, nan
from . import _C, Tensor, _errors, vector_norm
from ._tensor import _choose, _give_functions, _results


def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *,
                dtype=None):
    """The norm of matrices: "fro", "nuc", 1, -1, 2, -2, inf or -inf."""
    A = A if dtype is None else A.to(dtype)
    if ord == "fro":
        return _C.vector_norm(A, 2, dim, keepdim)
    if ord not in (1, -1, 2, -2, inf, -inf, "nuc"):
        raise RuntimeError(f"Order {ord} not supported.")
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


_errors._OURS += LinAlgError,
det, slogdet = _C.det, _C.slogdet


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
    k = int(unitriangular)
    A = A.triu(k) if upper else A.tril(-k)
    if k:
        A = A + _C.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    return solve(A, B, left=left)


def qr(A, mode="reduced"):
    """Q and R with A = QR; mode "complete": Q square, "r": no Q."""
    _choose("mode", mode, ("reduced", "complete", "r"), RuntimeError)
    y = _C.linalg_qr(A, mode == "complete")
    return y._replace(Q=A.new_zeros(0)) if mode == "r" else y


def eigh(A, UPLO="L"):
    """eigenvalues and eigenvectors of A; one triangle is read."""
    _choose("UPLO", UPLO, ("L", "U"), RuntimeError)
    return _C.linalg_eigh(A if UPLO == "L" else A.mT)


def svd(A, full_matrices=True):
    """U, S and Vh with A = U diag(S) Vh."""
    y = _C.linalg_svd(A)
    return y._replace(U=_full(y.U), Vh=_full(y.Vh.mT).mT) \
        if full_matrices else y


def _full(U):
    n = U.shape[-1]
    return U if n == U.shape[-2] else _C.cat(
        (U, qr(U.detach(), "complete").Q[..., n:]), -1)


def _cut(A, atol, rtol):
    return atol or 0.0, rtol if rtol is not None else 0.0 \
        if atol is not None else max(A.shape[-2:], default=0) * 2.0 ** (
            -23 if A.dtype is _C.float32 else -52)

_Least = _results("linalg_lstsq",
                  "solution residuals rank singular_values")
_Old = _results("svd", "U S V")


def lstsq(A, B, rcond=None, *, driver=None):
    """solution X of least |AX - B|, and the rank of A.

    A: [..., m, n], B: [..., m, k] or, for vectors, [..., m].
    """
    _choose("driver", driver, (None, "gelsy"), NotImplementedError)
    P, none = pinv(A, rtol=rcond), A.new_zeros(0)
    X = (P @ B.unsqueeze(-1)).squeeze(-1) if _is_vector(A, B) else P @ B
    return _Least(X, none, matrix_rank(A, rtol=rcond), none)


def cholesky(A, *, upper=False):
    """L with A = L L', or U with A = U' U; one triangle is read."""
    return cholesky(A.mT).mT if upper else _C.linalg_cholesky(A)


def pinv(A, *, atol=None, rtol=None, hermitian=False):
    """The pseudo-inverse; singular values up to max(atol, rtol times
    the first) count as zero.  hermitian changes nothing."""
    return _C.linalg_pinv(A, *_cut(A, atol, rtol))


def matrix_rank(A, *, atol=None, rtol=None, hermitian=False):
    """How many singular values exceed max(atol, rtol * the first)."""
    s, (atol, rtol) = svdvals(A), _cut(A, atol, rtol)
    return (s > (s[..., :1] * rtol).clamp(min=atol)).sum(-1)


def cond(A, p=None):
    """The norm p of A times that of its inverse; None stands for 2."""
    if p in (None, 2):
        s = svdvals(A)
        return s[..., 0] / s[..., -1]
    return norm(A, p, (-2, -1)) * norm(inv(A), p, (-2, -1))


def logdet(input):
    """The logarithm of the determinant; nan if that is negative."""
    sign, log = slogdet(input)
    return _C.where(sign < 0, nan, log)


def pinverse(input, rcond=1e-15):
    """linalg.pinv with rtol=rcond."""
    return pinv(input, rtol=rcond)


def _svd(input, some=True, compute_uv=True):
    """U, S and V of input; zeros for U and V without compute_uv."""
    U, S, Vh = svd(input, not (some and compute_uv))
    return _Old(*(U, S, Vh.mT) if compute_uv else (U * 0, S, Vh * 0))


_give_functions(globals())
Tensor.svd = _svd
