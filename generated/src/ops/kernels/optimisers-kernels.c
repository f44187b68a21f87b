/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "optimisers": edit that, not this file. */
/* The loops that take one step, compiled for each level. */
#include "ops/kernels/optimisers-kernels.h"
#include <math.h>

/* optimisers: kernels that take one step */
#define T float
#define NAME sgd_float32
#include "ops/kernels/optimisers-sgd.inc"
#define T double
#define NAME sgd_float64
#include "ops/kernels/optimisers-sgd.inc"
#define T float
#define NAME adaptive_float32
#define BODY adapt_some_float32
#define ROOT sqrtf
#include "ops/kernels/optimisers-adaptive.inc"
#define T double
#define NAME adaptive_float64
#define BODY adapt_some_float64
#define ROOT sqrt
#include "ops/kernels/optimisers-adaptive.inc"
const td_step_level TD_ISA(td_step_level) = {
    .sgd = { sgd_float64, sgd_float32 },
    .adaptive = { adaptive_float64, adaptive_float32 },
};
