/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "elementwise": edit that, not this file. */
/* Elementwise operators.

   Operands broadcast and promote as in PyTorch; a td_scalar is weak.
   Results are new tensors, owned by the innermost scope or the caller;
   names that end in _ change their first operand and return it, as one
   more reference.  NULL means failure, see td_error_message().

       td_tensor *y = td_add_scalar(td_mul(a, b), td_float(0.5)); */
#ifndef TREADLE_ELEMENTWISE_H
#define TREADLE_ELEMENTWISE_H
#include <treadle/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* elementwise: prototypes of elementwise operators */
TD_API td_tensor *td_add(td_tensor *a, td_tensor *b);
TD_API td_tensor *td_add_scalar(td_tensor *x, td_scalar s);
TD_API td_tensor *td_sub(td_tensor *a, td_tensor *b);
TD_API td_tensor *td_sub_scalar(td_tensor *x, td_scalar s);
TD_API td_tensor *td_rsub_scalar(td_tensor *x, td_scalar s); /* s - x */
TD_API td_tensor *td_mul(td_tensor *a, td_tensor *b);
TD_API td_tensor *td_mul_scalar(td_tensor *x, td_scalar s);
TD_API td_tensor *td_div(td_tensor *a, td_tensor *b);
TD_API td_tensor *td_div_scalar(td_tensor *x, td_scalar s);
TD_API td_tensor *td_rdiv_scalar(td_tensor *x, td_scalar s); /* s / x */
TD_API td_tensor *td_reciprocal(td_tensor *x);
TD_API td_tensor *td_neg(td_tensor *x);
TD_API td_tensor *td_abs(td_tensor *x);
TD_API td_tensor *td_sign(td_tensor *x);
TD_API td_tensor *td_square(td_tensor *x);
TD_API td_tensor *td_add_(td_tensor *x, td_tensor *y);
TD_API td_tensor *td_add_scalar_(td_tensor *x, td_scalar s);
TD_API td_tensor *td_sub_(td_tensor *x, td_tensor *y);
TD_API td_tensor *td_sub_scalar_(td_tensor *x, td_scalar s);
TD_API td_tensor *td_mul_(td_tensor *x, td_tensor *y);
TD_API td_tensor *td_mul_scalar_(td_tensor *x, td_scalar s);
TD_API td_tensor *td_div_(td_tensor *x, td_tensor *y);
TD_API td_tensor *td_div_scalar_(td_tensor *x, td_scalar s);
TD_API td_tensor *td_exp(td_tensor *x);
TD_API td_tensor *td_log(td_tensor *x);
TD_API td_tensor *td_sqrt(td_tensor *x);
TD_API td_tensor *td_rsqrt(td_tensor *x);
TD_API td_tensor *td_pow(td_tensor *a, td_tensor *b);
TD_API td_tensor *td_pow_scalar(td_tensor *x, td_scalar s);  /* x ^ s */
TD_API td_tensor *td_rpow_scalar(td_tensor *x, td_scalar s); /* s ^ x */
TD_API td_tensor *td_sin(td_tensor *x);
TD_API td_tensor *td_cos(td_tensor *x);
TD_API td_tensor *td_tanh(td_tensor *x);
TD_API td_tensor *td_sigmoid(td_tensor *x);
TD_API td_tensor *td_relu(td_tensor *x);
TD_API td_tensor *td_maximum(td_tensor *a, td_tensor *b);
TD_API td_tensor *td_maximum_scalar(td_tensor *x, td_scalar s);
TD_API td_tensor *td_minimum(td_tensor *a, td_tensor *b);
TD_API td_tensor *td_minimum_scalar(td_tensor *x, td_scalar s);
TD_API td_tensor *td_eq(td_tensor *a, td_tensor *b);
TD_API td_tensor *td_eq_scalar(td_tensor *x, td_scalar s);
TD_API td_tensor *td_ne(td_tensor *a, td_tensor *b);
TD_API td_tensor *td_ne_scalar(td_tensor *x, td_scalar s);
TD_API td_tensor *td_lt(td_tensor *a, td_tensor *b);
TD_API td_tensor *td_lt_scalar(td_tensor *x, td_scalar s);
TD_API td_tensor *td_le(td_tensor *a, td_tensor *b);
TD_API td_tensor *td_le_scalar(td_tensor *x, td_scalar s);
TD_API td_tensor *td_gt(td_tensor *a, td_tensor *b);
TD_API td_tensor *td_gt_scalar(td_tensor *x, td_scalar s);
TD_API td_tensor *td_ge(td_tensor *a, td_tensor *b);
TD_API td_tensor *td_ge_scalar(td_tensor *x, td_scalar s);
TD_API td_tensor *td_isnan(td_tensor *x);
TD_API td_tensor *td_logical_not(td_tensor *x);
TD_API td_tensor *td_where(td_tensor *condition, td_tensor *a,
                           td_tensor *b);
TD_API td_tensor *td_where_scalar(td_tensor *condition, td_tensor *a,
                                  td_scalar b);
typedef struct { td_opt_f64 min, max; } td_clamp_options;

TD_API td_tensor *td_clamp(td_tensor *x, td_clamp_options options);

#ifdef __cplusplus
}
#endif
#endif
