/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "graph": edit that, not this file. */
/* What the formulas of composite operators share.  A formula gets the
   first operand, NULL if that is no tensor, and returns the first
   result, or NULL after a failure; it need not notice one itself, and
   may make as many tensors as it likes: the door has a scope open. */
#pragma once
#include <treadle/reductions.h>
#include "core/error.h"
#include "core/rule.h"

/* Opens the formula of `op`, whose first operand is the tensor `x`. */
#define TD_COMPOSED(op, x) \
    td_tensor *op##_formula(td_call *call, td_tensor *x)
#define COMPOSED_BY(name, formula, signature, sentence) \
    TD_COMPOSED(formula, x);
#include "ops/composites.inc"

/* Which of "some|words" attribute k is; the first if absent, and with
   an error if none of them. */
int td_choice(const td_call *call, int k, const char *words);
/* Attributes dim (one or several) and keepdim, if the operator has it
   (else -1), as reductions take them. */
td_reduce_options td_over(const td_call *call, int dim, int keepdim);

/* graph: prototypes of what formulas make */
/* A shape that broadcasts with any of that rank. */
td_dims td_dims_of_ones(int rank);
/* Options for tensors of that type, or x's, that lie where x does. */
td_tensor_options td_beside(const td_tensor *x, td_dtype dtype);
td_tensor_options td_like(const td_tensor *x);
/* Positions [start, end) along dim; INT64_MAX: to the end. */
td_tensor *td_part(td_tensor *x, int dim, int64_t start, int64_t end);
/* from, from + 1, ..., to - 1 */
td_tensor *td_count_up(int64_t from, int64_t to, td_tensor_options o);
/* Operand i, a tensor of rank 0 or a number, in x's type. */
td_tensor *td_number_like(const td_call *call, int i,
                          const td_tensor *x);
