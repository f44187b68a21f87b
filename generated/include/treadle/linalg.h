/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "linalg": edit that, not this file. */
/* Dense linear algebra of batches [..., m, n], float32 or float64.

       td_tensor *x = td_solve(a, b);          // a x = b
       td_tensor *vh, *s, *u = td_svd(a, &s, &vh);

   Errors: TD_ERROR_SINGULAR for what has no answer (a singular matrix,
   one that is not positive definite, no convergence),
   TD_ERROR_UNSUPPORTED without LAPACK, TD_ERROR_RUNTIME for shapes and
   dtypes. */
#pragma once
#include <treadle/elementwise.h>
TD_API td_of_one td_inv, td_det, td_cholesky;
/* x with a x = b. */
TD_API td_of_two td_solve;
/* Singular values up to rtol times the first count as zero; x of
   lstsq has the least |a x - b|. */
TD_API td_with_real td_pinv;
TD_API td_tensor *td_lstsq(td_tensor *a, td_tensor *b, double rtol);
/* The sign and log |det|; Q and R; eigenvalues and vectors. */
typedef td_tensor *td_of_pair(td_tensor *x, td_tensor **second);
TD_API td_of_pair td_slogdet, td_qr, td_eigh;
/* U, S and Vh. */
TD_API td_tensor *td_svd(td_tensor *a, td_tensor **s, td_tensor **vh);
