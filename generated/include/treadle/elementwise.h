/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "arithmetic": edit that, not this file. */
/* Elementwise operators.

   Operands broadcast and promote as in PyTorch; a td_scalar is weak.
   Results are new tensors, owned by the innermost scope or the caller;
   names that end in _ change their first operand and return it, as one
   more reference.  NULL means failure, see td_error_message().

       td_tensor *y = td_add_scalar(td_mul(a, b), td_float(0.5)); */
#pragma once
#include <treadle/tensor.h>

/* arithmetic: prototypes of elementwise operators */
#define TD_FUNCTIONS_1(name) TD_API td_of_one td_##name;
#define TD_FUNCTIONS_2(name) \
    TD_API td_of_two td_##name; \
    TD_API td_with_scalar td_##name##_scalar;
#define ROW(name, formula, sentence, operands, dtypes, flags) \
    TD_FUNCTIONS_##operands(name)
#define CURVE_OF(name, parameter, formula, sentence) \
    TD_API td_with_scalar td_##name;
#define INPLACE(name, row, sentence) \
    TD_API td_of_two td_##name; \
    TD_API td_with_scalar td_##row##_scalar_;
#include <treadle/elementwise_rows.h>
TD_API td_with_scalar td_rsub_scalar,   /* s - x */
    td_rdiv_scalar, td_rpow_scalar;     /* s / x, s ^ x */
TD_API td_tensor *td_where(td_tensor *condition, td_tensor *a,
                           td_tensor *b);
TD_API td_tensor *td_where_scalar(td_tensor *condition, td_tensor *a,
                                  td_scalar b);
typedef struct { td_opt_f64 min, max; } td_clamp_options;

TD_API td_tensor *td_clamp(td_tensor *x, td_clamp_options options);
TD_API td_tensor *td_addcmul(td_tensor *x, td_tensor *a, td_tensor *b,
                             td_scalar value);
