/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "graph": edit that, not this file. */
/* What the formulas of composite operators share.  A formula returns
   the first result, or NULL after a failure; it need not notice one
   itself, and may make as many tensors as it likes: the door has a
   scope open. */
#pragma once
#include <treadle/reductions.h>
#include "core/error.h"
#include "core/rule.h"

#define COMPOSED_AS(name, signature, sentence) \
    td_tensor *name##_formula(td_call *call);
#include "ops/composites.inc"

/* Attribute k as a number that keeps its type. */
td_scalar td_scalar_at(const td_call *call, int k, td_scalar otherwise);
/* Which of n words attribute k is, the first if absent; n and an error
   if none of them. */
int td_choice(const td_call *call, int k, int n,
              const char *const *words);
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
/* Operand i, a tensor of rank 0 or a number, in x's type. */
td_tensor *td_number_like(const td_call *call, int i,
                          const td_tensor *x);
