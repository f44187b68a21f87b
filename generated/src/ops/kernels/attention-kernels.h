/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "attention": edit that, not this file. */
/* n scores p become weights, and gradients g of weights, if there are
   any, those of scores; up to `end`, a multiple of the lanes, there is
   room in p and there are zeros in g.  For float [0] and double [1]. */
#pragma once
#include "core/isa.h"

enum { TD_ATTEND_LANES = 16 };
typedef struct {
    void (*row[2])(int64_t n, int64_t end, void *p, void *g);
} td_attend_level;
TD_ISA_TABLE(td_attend_level, td_attend);
