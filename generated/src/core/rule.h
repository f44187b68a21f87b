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

   with the row RULE(exp, SAVES_RESULT).  The engine opens
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
/* May the rule write over what arrived or was saved?  Nobody else has
   it, and the pass is the last one over this graph. */
bool td_is_spare(const td_backward_pass *b, const td_tensor *x);
/* Zeros of a shape with g where the view `op` shows a part of it. */
td_tensor *td_put_back(const td_op *op, td_tensor *g, td_dims shape,
                       int n, const td_value *at);
td_dims td_input_dims(const td_backward_pass *b, int i);
td_dtype td_input_dtype(const td_backward_pass *b, int i);
td_device td_input_device(const td_backward_pass *b, int i);
td_tensor *td_rule_call2(int op, td_value a, td_value b);
/* g with the axes that a reduction dropped, each of size one. */
td_tensor *td_spread(const td_backward_pass *b, td_tensor *g);
/* parts: prototypes for rules */
/* Opens the rule `name`, with the gradient `g` of the first result. */
#define TD_RULE(name, g)                                              \
    static void name##_by(td_backward_pass *b, td_tensor *g);         \
    void name##_rule(td_backward_pass *b)                             \
    {                                                                 \
        name##_by(b, b->grad[0]);                                     \
    }                                                                 \
    static void name##_by(td_backward_pass *b, td_tensor *g)

/* As td_number, for a rule. */
static inline int64_t td_rule_number(const td_backward_pass *b, int k,
                                     int64_t otherwise)
{
    return td_v_get_int(td_attribute(b, k), otherwise);
}
/* normalisation: prototypes for rules */
/* All gradients of addcmul at once, if its products are of rows. */
bool td_affine_back(td_backward_pass *b, td_tensor *g);
/* recurrence: prototypes for rules */
/* For a pass that is recorded: the gradients of what `again` computes,
   the same by operators that have rules. */
void td_differentiate(td_backward_pass *b, bool (*again)(td_call *));
/* graph: prototypes of all rules */
#define RULE_BY(name, function, ...) td_rule function;
#define NO_RULE(name, ...)
#define COMPOSITE(name, ...)
#include "grad/rules.inc"
