/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "reductions": edit that, not this file. */
/* The loops of the reductions, compiled for each instruction set. */
#include "ops/kernels/primitives.h"
#include "ops/kernels/reductions-kernels.h"
#define PASTE_NOW(a, b) a##b
#define PASTE(a, b) PASTE_NOW(a, b)
/* reductions: make vectors half as wide */
#if defined __AVX512F__ && !defined __clang__
#define HALF_WIDE __attribute__((target("prefer-vector-width=256")))
#else
#define HALF_WIDE
#endif
/* reductions: steps of the folds */
#define IS_NAN(x) ((x) != (x))
#define ADD(a, b) ((a) + (b))
#define LARGER(a, b) ((((b) > (a)) | IS_NAN(b)) ? (b) : (a))
#define SMALLER(a, b) ((((b) < (a)) | IS_NAN(b)) ? (b) : (a))
#define TIMES(a, b) ((a) * (b))
#define ZERO(x) ((T)0)
#define ONE(x) ((T)1)
#define SAME(x) (x)
#define T float
#define SUFFIX _f32
#include "ops/kernels/reductions-type.inc"
#define T double
#define SUFFIX _f64
#include "ops/kernels/reductions-type.inc"
#undef IS_NAN
#define IS_NAN(x) false
#define T int64_t
#define SUFFIX _i64
#include "ops/kernels/reductions-type.inc"
#define BOTH(fold, suffix) \
    { fold##_row##suffix, fold##_columns##suffix }
#define ROWS(suffix)                                                  \
    { { [TD_FOLD_SUM] = BOTH(sum, suffix),                            \
        [TD_FOLD_MAX] = BOTH(max, suffix),                            \
        [TD_FOLD_MIN] = BOTH(min, suffix),                            \
        [TD_FOLD_PRODUCT] = BOTH(product, suffix) },                  \
      find##suffix, exp_row##suffix, affine_row##suffix,              \
      back_row##suffix, exp_columns##suffix }
const td_reduction_level TD_ISA(td_reduction_level) = {
    ROWS(_f32), ROWS(_f64), ROWS(_i64) };
