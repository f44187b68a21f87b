/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "convolution": edit that, not this file. */
/* Transforms of tiles of 6 by 6: Winograd's F(4x4, 3x3). */
#pragma once
#include "core/isa.h"

typedef struct {
    /* n numbers behind each of 36 taps of x, to 36 rows of v */
    void (*before)(int64_t n, const float *x, const int64_t *tap,
                   float *v, int64_t step);
    /* 36 rows of m to 16 of y */
    void (*after)(int64_t n, const float *m, int64_t step, float *y,
                  int64_t phase);
    /* 9 rows of w to 36 of u */
    void (*weights)(int64_t n, const float *w, float *u, int64_t step);
} td_winograd_level;
TD_ISA_TABLE(td_winograd_level, td_winograd);
