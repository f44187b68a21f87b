/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "attention": edit that, not this file. */
#include "ops/kernels/attention-kernels.h"
#include "ops/kernels/primitives.h"

enum { LANES = TD_ATTEND_LANES };
#define EACH(step)                                            \
    for (int64_t j = 0; j < n; j++)                           \
        for (int64_t l = 0, at = j * LANES; l < LANES; l++, at++) { \
            step;                                             \
        }
#define BODY "ops/kernels/attention-columns.inc"
#include "ops/kernels/twice.inc"
const td_attend_level TD_ISA(td_attend) = { { columns_f32,
                                              columns_f64 } };
