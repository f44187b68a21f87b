/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "normalisation": edit that, not this file. */
/* Loops of the normalisations over rows of n numbers:
   sums adds sum(x - p) and sum((x - p) (y - q)) to sum[], the second
   unless y is NULL; where y is x, q must be p;
   blend computes out = (x - by[1]) by[0] + y by[2], the second unless
   y is x;
   scaled adds g y to of_w and g to of_b, and makes of_y = g w. */
#pragma once
#include "core/isa.h"

typedef struct {
    void (*sums)(int64_t n, const void *x, double p, const void *y,
                 double q, double sum[2]);
    void (*blend)(int64_t n, const void *x, const void *y,
                  const double by[3], void *out);
    void (*scaled)(int64_t n, const void *g, const void *y,
                   const void *w, void *of_y, void *of_w, void *of_b);
} td_moment_loops;

typedef struct { td_moment_loops of[2]; } td_moments;  /* 1: double */
TD_ISA_TABLE(td_moments, td_moments);
