/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rules": edit that, not this file. */
/* The rules of elementwise rows: loops made of their formulas, and the
   formulas themselves as text. */
#pragma once
#include "core/frame.h"
#include "core/isa.h"

enum {
#define UNARY_RULE(name, ...) TD_GRADIENT_##name,
#define BINARY_RULE UNARY_RULE
#include "ops/elementwise.inc"
    TD_GRADIENT_COUNT
};

typedef struct {
    td_loop *loop[TD_GRADIENT_COUNT + 1][2][TD_FLOAT64 + 1];
} td_gradient_level;

TD_ISA_TABLE(td_gradient_level, td_gradients);

/* rules: struct td_gradient_row */
typedef struct {
    int number;                 /* TD_GRADIENT_... */
    const char *text[2];        /* gradients of the operands */
} td_gradient_row;

extern const td_gradient_row td_gradient_rows[];
