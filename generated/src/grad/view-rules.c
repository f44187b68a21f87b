/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "parts": edit that, not this file. */
/* Rules of views and joins. */
#include "grad/autograd.h"

static int int_of(const td_value *v)
{
    return (int)td_v_get_int(v, 0);
}

/* parts: rules for views */
void reshape_rule(td_backward_pass *b)
{
    b->grad_in[0] = td_reshape(b->grad[0], td_input_dims(b, 0));
}

void transpose_rule(td_backward_pass *b)
{
    b->grad_in[0] = td_transpose(b->grad[0],
        int_of(td_attribute(b, 0)),
        int_of(td_attribute(b, 1)));
}

void permute_rule(td_backward_pass *b)
{
    const td_value *p = td_attribute(b, 0);
    td_dims back = { p->as.ints.count, { 0 } };
    for (int d = 0; d < back.count; d++) {
        const int64_t axis = p->as.ints.at[d];
        back.at[axis < 0 ? axis + back.count : axis] = d;
    }
    b->grad_in[0] = td_permute(b->grad[0], back);
}

void t_rule(td_backward_pass *b)
{
    b->grad_in[0] = td_t(b->grad[0]);
}

void identity_rule(td_backward_pass *b)
{
    b->grad_in[0] = b->grad[0];
}
/* parts: rules for joins */
void cat_rule(td_backward_pass *b)
{
    td_tensor *g = b->grad[0];
    int dim = int_of(td_attribute(b, 0));
    int64_t at = 0;
    dim += dim < 0 ? g->rank : 0;
    for (int i = 0; i < b->n_in; i++) {
        const td_dims part = td_input_dims(b, i);
        if (part.count != g->rank)
            continue;           /* an old-style empty tensor */
        const td_opt_i64 start = { true, at };
        const td_opt_i64 end = { true, at += part.at[dim] };
        if (td_needs(b, i))
            b->grad_in[i] = td_slice(g, dim, start, end, 1);
    }
}

void stack_rule(td_backward_pass *b)
{
    const int dim = int_of(td_attribute(b, 0));
    for (int i = 0; i < b->n_in; i++)
        if (td_needs(b, i))
            b->grad_in[i] = td_select(b->grad[0], dim, i);
}
