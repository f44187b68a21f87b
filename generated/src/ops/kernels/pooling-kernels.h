/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "pooling": edit that, not this file. */
/* Maxima of n windows that no border cuts, of rows by columns numbers,
   step apart, and their places, of which that of x is first. */
#pragma once
#include "core/isa.h"

typedef struct {
    void (*largest_f32)(int64_t n, int64_t step, int64_t rows,
                        int64_t columns, const float *x, int64_t across,
                        int64_t first, float *one, int64_t *at);
    void (*largest_f64)(int64_t n, int64_t step, int64_t rows,
                        int64_t columns, const double *x,
                        int64_t across, int64_t first, double *one,
                        int64_t *at);
} td_pooling_level;
TD_ISA_TABLE(td_pooling_level, td_pooling);
