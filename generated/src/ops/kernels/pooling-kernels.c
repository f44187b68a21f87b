/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "pooling": edit that, not this file. */
#include "ops/kernels/pooling-kernels.h"

enum { LANES = 8, FEW = 4 };
#define BODY "ops/kernels/pooling-largest.inc"
#include "ops/kernels/twice.inc"
const td_pooling_level TD_ISA(td_pooling) = {
    largest_f32, largest_f64
};
