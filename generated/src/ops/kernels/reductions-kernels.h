/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "reductions": edit that, not this file. */
/* Kernels of the reductions: folds of blocks of rows and columns, and
   the exponentials of softmax. */
#pragma once
#include "core/isa.h"
/* reductions: constants of the reduction tree */
enum {
    LANES = 64,                /* sums kept side by side in a block */
    SHORT = 32, SIDE = 16,     /* rows of so few go so many abreast */
    BLOCK = 4096,              /* numbers of one block of a row */
    BLOCK_ROWS = 128,          /* rows of one block of columns */
    BAND = 1024                /* columns of one block of columns */
};
/* reductions: struct td_fold */
typedef struct {
    void (*row)(int64_t n, const void *x, void *out);
    void (*rows)(int64_t count, int64_t n, const void *x, int64_t step,
                 void *out);
    void (*columns)(int64_t rows, int64_t width, const void *x,
                    int64_t stride, void *out);
} td_fold;
/* reductions: struct td_reduction_level */
enum { TD_FOLD_SUM, TD_FOLD_MAX, TD_FOLD_MIN, TD_FOLD_PRODUCT };
typedef struct {
    td_fold fold[4];              /* by TD_FOLD_... */
    int64_t (*find)(int64_t n, const void *x, const void *value);
    void (*exp)(int64_t n, const void *x, double shift, void *y);
    void (*affine)(int64_t n, const void *x, double shift,
                   double scale, void *y);
    void (*back)(int64_t n, const void *g, const void *y, double sum,
                 void *out);
    void (*exp_columns)(int64_t n, int64_t width, const void *x,
                        int64_t step, bool log, void *y);
} td_row_kernels;
typedef struct {
    const td_row_kernels *f32, *f64, *i64;
} td_reduction_level;
TD_ISA_TABLE(td_reduction_level, td_reduction_level);
