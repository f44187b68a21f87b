/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "optimisers": edit that, not this file. */
/* The loops that take one step, by level and by type. */
#pragma once
#include "core/isa.h"

/* optimisers: struct step */
typedef struct {
    void *theta, *state[3];      /* NULL: none; state[0] is m */
    const void *g;
    double rate, mu, take, decay, sign;
    bool nesterov;
    /* optimisers: numbers of a step that adapts */
    double keep, follow, scale, eps, shrink, later;
    bool leads;                  /* the mean takes the gradient's place */
} step;
typedef void step_loop(const step *s, int64_t begin, int64_t end);
typedef struct {
    step_loop *sgd[2], *adaptive[2];     /* of double, of float */
} td_step_level;
TD_ISA_TABLE(td_step_level, td_step_level);
