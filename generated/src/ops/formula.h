/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rules": edit that, not this file. */
/* Formulas of the elementwise table, read from their text.

   td_formula_parse reads `text` into terms, each an operator of the
   registry applied to earlier terms, or a constant, or one of the names
   g x a b y.  Equal terms are shared.  td_formula_run evaluates them
   through td_run, so the evaluation can be recorded or traced.

       td_formula f;
       td_formula_parse("g * (1 - y * y)", &f); */
#pragma once
#include "core/registry.h"

/* rules: struct td_formula */
#define TD_TERMS 32

typedef enum {
    TD_TERM_CONSTANT, TD_TERM_NAME, TD_TERM_CALL
} td_term_kind;

typedef struct td_term {
    td_term_kind kind;
    double constant;
    char name;                  /* g, x, a, b or y */
    int op;                     /* TD_OP_..., of a call */
    int n, arg[3];              /* its operands: earlier terms */
} td_term;

typedef struct td_formula {
    int count;
    td_term term[TD_TERMS];     /* the last one is the result */
} td_formula;

bool td_formula_parse(const char *text, td_formula *out);
bool td_formula_run(const td_formula *f, const char *names,
                    const td_value *bound, td_value *result);
