/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "reductions": edit that, not this file. */
/* The loops of the reductions, compiled for each instruction set. */
#include "ops/kernels/kernel-loops.h"
#include "ops/kernels/reductions-kernels.h"
/* reductions: steps of the folds */
#define IS_NAN(x) ((x) != (x))
#define ADD(a, b) ((a) + (b))
#define LARGER(a, b) ((((b) > (a)) | IS_NAN(b)) ? (b) : (a))
#define SMALLER(a, b) ((((b) < (a)) | IS_NAN(b)) ? (b) : (a))
#define TIMES(a, b) ((a) * (b))
#define ZERO(x) ((T)0)
#define ONE(x) ((T)1)
#define SAME(x) (x)
#define DOWN(many)                                                    \
    for (; rows >= many; rows -= many, x += many * stride)            \
        for (int64_t j = 0; j < width; j++) {                         \
            T sum = out[j];                                           \
            for (int k = 0; k < many; k++)                            \
                sum = STEP(sum, x[k * stride + j]);                   \
            out[j] = sum;                                             \
        }
#define BODY "ops/kernels/reductions-type.inc"
#include "ops/kernels/twice.inc"
#undef IS_NAN
#define IS_NAN(x) false
#define T int64_t
#define NAME(x) x##_i64
#include "ops/kernels/reductions-type.inc"
const td_reduction_level TD_ISA(td_reduction_level) = {
    &rows_f32, &rows_f64, &rows_i64 };
