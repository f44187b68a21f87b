/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "linalg": edit that, not this file. */
/* Dense linear algebra of batches [..., m, n], float32 or float64.

       td_tensor *x = td_solve(a, b);          // a x = b
       td_tensor *vh, *s, *u = td_svd(a, false, &s, &vh);

   Errors: TD_ERROR_SINGULAR for what has no answer (a singular matrix,
   one that is not positive definite, no convergence),
   TD_ERROR_UNSUPPORTED without LAPACK, TD_ERROR_RUNTIME for shapes and
   dtypes. */
#ifndef TREADLE_LINALG_H
#define TREADLE_LINALG_H
#include <treadle/tensor.h>
#ifdef __cplusplus
extern "C" {
#endif
TD_API td_tensor *td_inv(td_tensor *a);
TD_API td_tensor *td_det(td_tensor *a);
/* L with a = L L'. */
TD_API td_tensor *td_cholesky(td_tensor *a);
TD_API td_tensor *td_pinv(td_tensor *a);
/* x with a x = b; b [..., n, k] or [..., n] */
TD_API td_tensor *td_solve(td_tensor *a, td_tensor *b);
TD_API td_tensor *td_solve_triangular(td_tensor *a, td_tensor *b,
                                      bool upper);
/* x with the least |a x - b|, and of those the shortest; b [..., m, k] */
TD_API td_tensor *td_lstsq(td_tensor *a, td_tensor *b);
/* The sign. */
TD_API td_tensor *td_slogdet(td_tensor *a, td_tensor **logabsdet);
/* Q, of as many columns as a has rows or columns. */
TD_API td_tensor *td_qr(td_tensor *a, td_tensor **r);
/* Eigenvalues. */
TD_API td_tensor *td_eigh(td_tensor *a, td_tensor **vectors);
/* U. */
TD_API td_tensor *td_svd(td_tensor *a, bool full, td_tensor **s,
                         td_tensor **vh);
#ifdef __cplusplus
}
#endif
#endif
