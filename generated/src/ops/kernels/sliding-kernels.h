/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "convolution": edit that, not this file. */
/* Loops of depthwise convolutions, by type: float, double. */
#pragma once
#include "core/isa.h"

typedef struct {
    void (*slide[2])(int64_t lines, int64_t n, int64_t taps,
                     const int64_t *tap, const void *w, const void *in,
                     int64_t next, const void *bias, void *out);
} td_sliding_level;
TD_ISA_TABLE(td_sliding_level, td_sliding);
