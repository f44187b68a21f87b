/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "optimisers": edit that, not this file. */
/* The loops that take one step, compiled for each level. */
#include "ops/kernels/optimisers-kernels.h"
#include <tgmath.h>

/* optimisers: kernels that take one step */
#define BODY "ops/kernels/optimisers-sgd.inc"
#include "ops/kernels/twice.inc"
#define ROOT sqrt
#define BODY "ops/kernels/optimisers-adaptive.inc"
#include "ops/kernels/twice.inc"
const td_step_level TD_ISA(td_step_level) = {
    .sgd = { sgd_f64, sgd_f32 },
    .adaptive = { adaptive_f64, adaptive_f32 },
};
