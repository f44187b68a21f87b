/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "attention": edit that, not this file. */
/* n rows of scores p, one for each key and TD_ATTEND_LANES wide, become
   weights, and those of gradients g of weights, if there are any, of
   scores; column l has seen + l keys at most.  For float [0] and
   double [1]. */
#pragma once
#include "core/isa.h"

enum { TD_ATTEND_LANES = 32 };
typedef struct {
    void (*columns[2])(int64_t n, int64_t seen, void *p, void *g);
} td_attend_level;
TD_ISA_TABLE(td_attend_level, td_attend);
