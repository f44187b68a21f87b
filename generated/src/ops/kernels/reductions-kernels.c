/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "reductions": edit that, not this file. */
/* The loops of the reductions, compiled for each instruction set. */
#include "ops/kernels/primitives.h"
#include "ops/kernels/reductions-kernels.h"
#define PASTE_NOW(a, b) a##b
#define PASTE(a, b) PASTE_NOW(a, b)
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
/* reductions: kernels of the exponentials */
#define EXP_ROW(name, T)                                              \
    static void name(int64_t n, const void *x_, double shift,         \
                     void *y_)                                        \
    {                                                                 \
        const T *x = x_, c = (T)shift;                                \
        T *y = y_;                                                    \
        for (int64_t i = 0; i < n; i++)                               \
            y[i] = p_exp(x[i] - c);                                   \
    }
EXP_ROW(exp_row_f32, float)
EXP_ROW(exp_row_f64, double)
/* y[i] = (x[i] - shift) * scale */
#define AFFINE_ROW(name, T)                                           \
    static void name(int64_t n, const void *x_, double shift,         \
                     double scale, void *y_)                          \
    {                                                                 \
        const T *x = x_, c = (T)shift, a = (T)scale;                  \
        T *y = y_;                                                    \
        for (int64_t i = 0; i < n; i++)                               \
            y[i] = (x[i] - c) * a;                                    \
    }
AFFINE_ROW(affine_row_f32, float)
AFFINE_ROW(affine_row_f64, double)
#define BOTH(fold, suffix) \
    { fold##_row##suffix, fold##_columns##suffix }
#define FOLDS(suffix)                                                 \
    { [TD_FOLD_SUM] = BOTH(sum, suffix),                              \
      [TD_FOLD_MAX] = BOTH(max, suffix),                              \
      [TD_FOLD_MIN] = BOTH(min, suffix),                              \
      [TD_FOLD_PRODUCT] = BOTH(product, suffix) }
const td_reduction_level TD_ISA(td_reduction_level) = {
    { FOLDS(_f32), find_f32, exp_row_f32, affine_row_f32 },
    { FOLDS(_f64), find_f64, exp_row_f64, affine_row_f64 },
    { FOLDS(_i64), find_i64, NULL, NULL } };
