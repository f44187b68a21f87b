/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "attention": edit that, not this file. */
#include "ops/kernels/attention-kernels.h"
#include "ops/kernels/primitives.h"

enum { LANES = TD_ATTEND_LANES, STRETCH = 128 };
#define EACH(from, to, step)                                  \
    for (int64_t j = from; j < (to); j++)                     \
        for (int64_t l = 0, at = j * LANES; l < LANES; l++) { \
            step;                                             \
            at++;                                             \
        }
#define ADD_UP(sum, x)                                        \
    for (int64_t i = 0; i < n; i += STRETCH) {                \
        T part[LANES] = { 0 };                                \
        EACH(i, i + STRETCH < n ? i + STRETCH : n,            \
             part[l] += x)                                    \
        for (int l = 0; l < LANES; l++)                       \
            sum[l] += part[l];                                \
    }
#define BODY "ops/kernels/attention-columns.inc"
#include "ops/kernels/twice.inc"
const td_attend_level TD_ISA(td_attend) = { { columns_f32,
                                              columns_f64 } };
