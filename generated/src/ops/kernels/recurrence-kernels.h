/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "recurrence": edit that, not this file. */
/* A row of one step of a GRU [1] or an LSTM [0] in double [1]. */
#pragma once
#include "core/isa.h"

typedef struct {
    int64_t m;
    const void *x, *b, *g;      /* from the input; b_hh; arrived at h */
    const void *h0, *c0;        /* before */
    void *h, *kept;             /* kept: gates, then c or U h + b */
    void *dh, *dc, *dx, *du;
} td_step;

typedef struct {
    void (*step[2][2])(const td_step *row);
    void (*back[2][2])(const td_step *row);
} td_recurrence_level;
TD_ISA_TABLE(td_recurrence_level, td_recurrence);
