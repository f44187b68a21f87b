/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "hooks": edit that, not this file. */
/* What a rule may ask.

   A rule computes the gradients of an operator's operands from those of
   its results.  It calls operators, so it can itself be recorded:

       void exp_rule(td_backward_pass *b)
       {
           td_tensor *y = td_saved_output(b, 0);
           b->grad_in[0] = td_mul(b->grad[0], y);
       }

   with the row RULE(exp, exp_rule, SAVES_RESULT).  The engine opens
   a scope around it, sums a gradient down to the operand's shape,
   converts it to the operand's dtype, and ignores those not needed. */
#pragma once
#include <treadle/autograd.h>
#include "core/registry.h"
#include "core/tensor.h"

/* backward: struct td_backward_pass */
typedef struct td_backward_pass {
    td_node *node;              /* for the engine's own files */
    const td_op *op;
    int n_in, n_out, n_attr;
    td_tensor *const *grad;     /* [n_out] NULL: nothing arrived */
    td_tensor **grad_in;        /* [n_in] to fill; owned by the scope */
    bool create_graph;
} td_backward_pass;

typedef void td_rule(td_backward_pass *b);
/* hooks: prototypes for rules */
bool td_needs(const td_backward_pass *b, int i);
typedef td_tensor *td_of_pass(const td_backward_pass *b, int i);
td_of_pass td_saved_input, td_saved_output;
td_value td_operand(const td_backward_pass *b, int i);
const td_value *td_attribute(const td_backward_pass *b, int i);
/* What arrived for operand i so far, if a rule may add to it in place;
   such a rule leaves grad_in[i] NULL. */
td_of_pass td_sum_so_far;
/* The gradient that arrived, if nobody else will look at it. */
td_of_pass td_spare_gradient;
/* Zeros of a shape with g where the view `op` shows a part of it. */
td_tensor *td_put_back(const td_op *op, td_tensor *g, td_dims shape,
                       int n, const td_value *at);
td_dims td_input_dims(const td_backward_pass *b, int i);
td_dtype td_input_dtype(const td_backward_pass *b, int i);
td_device td_input_device(const td_backward_pass *b, int i);
td_tensor *td_rule_call2(int op, td_value a, td_value b);
td_tensor *td_restore_axes(const td_backward_pass *b, td_tensor *g,
                           const td_value *axes);
/* recurrence: prototypes for rules */
/* For a pass that is recorded: the gradients of what `again` computes,
   the same by operators that have rules. */
void td_differentiate(td_backward_pass *b, bool (*again)(td_call *));
/* graph: prototypes of all rules */
#define RULE(name, function, ...) td_rule function;
#define NO_RULE(name, ...)
#define COMPOSITE(name, ...)
#include "grad/rules.inc"
