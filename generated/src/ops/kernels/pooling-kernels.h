/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "pooling": edit that, not this file. */
/* Maxima one[] of n windows and their places at[].  A window is `rows`
   lines of `size` numbers, `dilation` apart; x[0] is the first number
   of the first window and has the place `first`.  The next window is
   `step` further, the next line `apart` in memory and `down` in places.
   What eight windows see can be read, and one number behind it.  Of
   nothing but -infinity, the maximum is that, and the place 0. */
#pragma once
#include <stdbool.h>
#include "core/isa.h"

typedef struct {
    int64_t n, step, rows, size, dilation, apart, first, down;
    const void *x;
} td_windows;

typedef struct {
    void (*sweep_f32)(const td_windows *of, void *one, int64_t *at);
    void (*sweep_f64)(const td_windows *of, void *one, int64_t *at);
} td_pooling_level;
TD_ISA_TABLE(td_pooling_level, td_pooling);
