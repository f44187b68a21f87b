/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "parts": edit that, not this file. */
/* Rules of views and joins. */
#include "grad/autograd.h"

/* parts: rules for views */
TD_RULE(reshape, g)
{
    b->grad_in[0] = td_reshape(g, td_input_dims(b, 0));
}

TD_RULE(transpose, g)
{
    b->grad_in[0] = td_transpose(g, (int)td_rule_number(b, 0, 0),
                                 (int)td_rule_number(b, 1, 0));
}

TD_RULE(permute, g)
{
    const td_value *p = td_attribute(b, 0);
    td_dims back = { p->as.ints.count, { 0 } };
    for (int d = 0; d < back.count; d++) {
        const int64_t axis = p->as.ints.at[d];
        back.at[axis < 0 ? axis + back.count : axis] = d;
    }
    b->grad_in[0] = td_permute(g, back);
}

TD_RULE(t, g)
{
    b->grad_in[0] = td_t(g);
}

TD_RULE(identity, g)
{
    b->grad_in[0] = g;
}
/* parts: rules for joins */
TD_RULE(cat, g)
{
    int dim = (int)td_rule_number(b, 0, 0);
    int64_t at = 0;
    dim += dim < 0 ? g->rank : 0;
    TD_EACH(i, b, in) {
        const td_dims part = td_input_dims(b, i);
        if (part.count != g->rank)
            continue;           /* an old-style empty tensor */
        const td_opt_i64 start = { true, at };
        const td_opt_i64 end = { true, at += part.at[dim] };
        if (td_needs(b, i))
            b->grad_in[i] = td_slice(g, dim, start, end, 1);
    }
}

TD_RULE(stack, g)
{
    const int dim = (int)td_rule_number(b, 0, 0);
    TD_EACH(i, b, in)
        if (td_needs(b, i))
            b->grad_in[i] = td_select(g, dim, i);
}
