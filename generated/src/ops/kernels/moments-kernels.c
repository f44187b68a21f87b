/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "normalisation": edit that, not this file. */
/* The loops of the normalisations, compiled for each instruction
   set. */
#include "ops/moments.h"
#include "ops/kernels/kernel-loops.h"
enum { WAYS = 32, FIRST = 0, SQUARES, PRODUCTS };
#define BODY "ops/kernels/moments.inc"
#include "ops/kernels/twice.inc"
const td_moments TD_ISA(td_moments) = {
    { { sums_f32, blend_f32, scaled_f32 },
      { sums_f64, blend_f64, scaled_f64 } } };
