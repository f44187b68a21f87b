/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "convolution": edit that, not this file. */
#include "ops/kernels/sliding-kernels.h"
#include <string.h>
#ifdef __AVX__
enum { VECTOR = 32 };               /* bytes */
#else
enum { VECTOR = 16 };
#endif
#define BODY "ops/kernels/sliding.inc"
#include "ops/kernels/twice.inc"
const td_sliding_level TD_ISA(td_sliding) = {
    { slide_f32, slide_f64 } };
