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
TD_API td_of_two td_add, td_sub, td_mul;
TD_API td_with_scalar td_add_scalar, td_sub_scalar, td_mul_scalar,
    td_rsub_scalar;                     /* s - x */
TD_API td_of_one td_reciprocal;
TD_API td_of_two td_div;
TD_API td_with_scalar td_div_scalar,
    td_rdiv_scalar;                     /* s / x */
TD_API td_of_one td_neg, td_abs, td_sign, td_square;
TD_API td_of_two td_add_, td_sub_, td_mul_, td_div_;
TD_API td_with_scalar td_add_scalar_, td_sub_scalar_, td_mul_scalar_,
    td_div_scalar_;
TD_API td_of_one td_exp, td_log, td_sqrt, td_rsqrt;
TD_API td_of_two td_pow;
TD_API td_with_scalar td_pow_scalar,    /* x ^ s */
    td_rpow_scalar;                     /* s ^ x */
TD_API td_of_one td_sin, td_cos;
TD_API td_of_one td_tanh, td_sigmoid, td_relu;
TD_API td_of_two td_maximum, td_minimum;
TD_API td_with_scalar td_maximum_scalar, td_minimum_scalar;
TD_API td_of_one td_isnan, td_logical_not;
TD_API td_of_two td_eq, td_ne, td_lt, td_le, td_gt, td_ge;
TD_API td_with_scalar td_eq_scalar, td_ne_scalar, td_lt_scalar,
    td_le_scalar, td_gt_scalar, td_ge_scalar;
TD_API td_tensor *td_where(td_tensor *condition, td_tensor *a,
                           td_tensor *b);
TD_API td_tensor *td_where_scalar(td_tensor *condition, td_tensor *a,
                                  td_scalar b);
typedef struct { td_opt_f64 min, max; } td_clamp_options;

TD_API td_tensor *td_clamp(td_tensor *x, td_clamp_options options);
/* activations: prototypes of elementwise operators */
TD_API td_of_one td_expm1, td_log1p, td_log2, td_log10, td_exp2;
TD_API td_of_two td_logaddexp, td_xlogy;
TD_API td_with_scalar td_logaddexp_scalar, td_xlogy_scalar;
TD_API td_of_one td_tan, td_asin, td_acos, td_atan, td_sinh, td_cosh,
    td_asinh, td_acosh, td_atanh;
TD_API td_of_two td_atan2, td_hypot;
TD_API td_with_scalar td_atan2_scalar, td_hypot_scalar;
TD_API td_of_one td_erf, td_erfc;
TD_API td_of_one td_floor, td_ceil, td_round, td_trunc, td_frac;
TD_API td_of_two td_fmod, td_remainder, td_floor_divide;
TD_API td_with_scalar td_fmod_scalar, td_remainder_scalar,
    td_floor_divide_scalar;
TD_API td_of_one td_isfinite, td_isinf, td_isposinf, td_isneginf;
TD_API td_of_two td_logical_and, td_logical_or, td_logical_xor,
    td_bitwise_and, td_bitwise_or, td_bitwise_xor,
    td_bitwise_left_shift, td_bitwise_right_shift, td_fmax, td_fmin,
    td_heaviside;
TD_API td_with_scalar td_logical_and_scalar, td_logical_or_scalar,
    td_logical_xor_scalar, td_bitwise_and_scalar, td_bitwise_or_scalar,
    td_bitwise_xor_scalar, td_bitwise_left_shift_scalar,
    td_bitwise_right_shift_scalar, td_fmax_scalar, td_fmin_scalar,
    td_heaviside_scalar;
TD_API td_of_one td_silu, td_mish, td_gelu_erf, td_gelu_slope,
    td_gelu_tanh, td_selu,
    td_logsigmoid, td_hardsigmoid, td_hardswish, td_softsign, td_relu6;
TD_API td_with_scalar td_leaky_relu, td_elu, td_softplus_curve;
/* vocabulary: prototypes of elementwise operators */
TD_API td_of_one td_lgamma, td_digamma, td_erfinv;
TD_API td_of_two td_zeta, td_copysign, td_nextafter, td_gcd;
TD_API td_with_scalar td_zeta_scalar, td_copysign_scalar,
    td_nextafter_scalar, td_gcd_scalar;
/* losses: prototypes of elementwise operators */
TD_API td_of_two td_bce_curve;
TD_API td_with_scalar td_bce_curve_scalar;
