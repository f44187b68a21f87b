/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "attention": edit that, not this file. */
#include "ops/kernels/attention-kernels.h"
#include "ops/kernels/primitives.h"

enum { LANES = TD_ATTEND_LANES };
#define ADD(a, b) ((a) + (b))
#define LARGER(a, b) ((b) > (a) ? (b) : (a))
#define FOLD(lane, x, STEP)                                   \
    for (int64_t j = 0; j < end; j += LANES)                  \
        for (int l = 0; l < LANES; l++)                       \
            lane[l] = STEP(lane[l], x);                       \
    for (int half = LANES / 2; half > 0; half /= 2)           \
        for (int l = 0; l < half; l++)                        \
            lane[l] = STEP(lane[l], lane[l + half]);
#define BODY "ops/kernels/attention-row.inc"
#include "ops/kernels/twice.inc"
const td_attend_level TD_ISA(td_attend) = { { row_f32, row_f64 } };
