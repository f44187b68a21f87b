/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "backward": edit that, not this file. */
#include "grad/autograd.h"
#include <treadle/elementwise.h>

/* backward: function td_rule_call2 */
td_tensor *td_rule_call2(int op, td_value a, td_value b)
{
    return td_run1(&td_ops[op], TD_VALUES(a, b), 0, NULL);
}
/* backward: function td_spread */
td_tensor *td_spread(const td_backward_pass *b, td_tensor *g)
{
    const td_value *axes = td_attribute(b, 0);
    td_dims shape = td_input_dims(b, 0);
    const bool all = b->n_attr == 0 || axes->kind != TD_INTS
                  || axes->as.ints.count == 0;
    const int n = all ? shape.count : axes->as.ints.count;
    for (int i = 0; i < n && shape.count > 0; i++) {
        const int64_t axis = all ? i : axes->as.ints.at[i];
        shape.at[axis < 0 ? axis + shape.count : axis] = 1;
    }
    return td_reshape(g, shape);
}
/* backward: rules for sums and differences */
void add_rule(td_backward_pass *b)
{
    b->grad_in[0] = b->grad_in[1] = b->grad[0];
}

void sub_rule(td_backward_pass *b)
{
    b->grad_in[0] = b->grad[0];
    if (td_needs(b, 1))
        b->grad_in[1] = td_neg(b->grad[0]);
}
/* backward: rule for products */
void mul_rule(td_backward_pass *b)
{
    for (int i = 0; i < 2; i++)
        if (td_needs(b, i))
            b->grad_in[i] = td_rule_call2(TD_OP_mul,
                td_v_tensor(b->grad[0]), td_operand(b, 1 - i));
}
/* backward: rule for sums over axes */
void sum_rule(td_backward_pass *b)
{
    b->grad_in[0] = td_expand(td_spread(b, b->grad[0]),
                              td_input_dims(b, 0));
}
