/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "pooling": edit that, not this file. */
#include <math.h>
#include "ops/kernels/pooling-kernels.h"

#define BODY "ops/kernels/pooling-sweep.inc"
#include "ops/kernels/twice.inc"
const td_pooling_level TD_ISA(td_pooling) = { sweep_f32, sweep_f64 };
