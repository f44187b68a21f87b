/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "gradcheck": edit that, not this file. */
/* Is this derivative right?  Compares gradients with difference
   quotients, in float64.

   The function must be smooth near its inputs and give equal results
   for equal inputs.  Failing the check is an error that names it.

       static td_tensor *f(void *context, td_tensor *const *in)
       {
           return td_mul(in[0], in[1]);
       }
       ...
       td_tensor *in[] = { a, b };      (float64, requiring gradients)
       bool right = td_gradcheck(f, NULL, 2, in,
                             (td_gradcheck_options)TD_DEFAULTS); */
#pragma once
#include <treadle/autograd.h>

typedef td_tensor *td_check_function(void *context,
                                     td_tensor *const *in);

typedef struct td_gradcheck_options {
    td_opt_f64 eps;         /* step, 1e-6 */
    td_opt_f64 atol;        /* absolute bound, 1e-5 */
    td_opt_f64 rtol;        /* relative bound, 1e-3 */
} td_gradcheck_options;

/* gradcheck: prototypes of the gradient checks */
typedef bool td_checks(td_check_function *f, void *context, int n_in,
                       td_tensor *const *in,
                       td_gradcheck_options options);
TD_API td_checks td_gradcheck, td_gradgradcheck;
