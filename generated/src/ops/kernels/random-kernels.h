/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "random": edit that, not this file. */
/* Normal numbers a + b z, of float's exactness: pairs of them from the
   draws first, first + 1, ... */
#pragma once
#include "core/isa.h"
#include "ops/random.h"

typedef struct {
    void (*normals)(int64_t pairs, td_stream stream, uint64_t first,
                    double a, double b, double *out);
} td_random_level;
TD_ISA_TABLE(td_random_level, td_random);
