/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "order": edit that, not this file. */
/* Rules of sorting, selection and running totals. */
#include <float.h>
#include "ops/composite.h"
#include "ops/order.h"
#include <treadle/treadle.h>

/* order: rules of order */
TD_RULE(chosen, g)
{
    const int dim = (int)td_rule_number(
        b, td_is(b, topk) || td_is(b, kthvalue), -1);
    td_tensor *places = td_saved_output(b, 1);
    const td_dims shape = td_input_dims(b, 0);
    if (g->rank < shape.count) {
        g = td_unsqueeze(g, dim);
        places = td_unsqueeze(places, dim);
    }
    td_tensor *into = td_zeros(shape, td_like(g));
    b->grad_in[0] = b->create_graph
        ? TD_CALL3(scatter_add, into, places, g, td_v_int(dim))
        : TD_CALL3(scatter_add_, into, places, g, td_v_int(dim));
}

td_tensor *td_head(td_tensor *x, int dim)
{
    return td_part(x, dim, 0, -1);
}

td_tensor *td_tail(td_tensor *x, int dim)
{
    return td_part(x, dim, 1, INT64_MAX);
}

static td_tensor *recur(td_tensor *links, td_tensor *x, int dim,
                        bool reverse)
{
    return TD_CALL2(recurrence, links, x, td_v_int(dim),
                    td_v_bool(reverse));
}

TD_RULE(recurrence, g)
{
    const int dim = (int)td_rule_number(b, 0, -1);
    const bool reverse = td_v_get_bool(td_attribute(b, 1));
    td_tensor *w = recur(td_saved_input(b, 0), g, dim,
                         !reverse);
    b->grad_in[1] = w;
    if (td_needs(b, 0)) {
        td_tensor *y = td_saved_output(b, 0);
        b->grad_in[0] = reverse
            ? td_mul(td_head(w, dim), td_tail(y, dim))
            : td_mul(td_tail(w, dim), td_head(y, dim));
    }
}

TD_RULE(cumsum, g)
{
    const int dim = (int)td_rule_number(b, 0, -1);
    if (g->rank > 0) {
        td_tensor *one = td_ones(TD_RANK_0, td_like(g));
        g = recur(td_expand(one, td_shape_of(td_tail(g, dim))), g, dim,
                  true);
    }
    b->grad_in[0] = g;
}

/* The gradient of a running product y of x. */
static td_tensor *product_gradient(td_tensor *x, td_tensor *y,
                                   td_tensor *g, int dim)
{
    td_tensor *w = recur(td_tail(x, dim), g, dim, true);
    td_tensor *parts[] = { td_part(w, dim, 0, 1),
        td_mul(td_tail(w, dim), td_head(y, dim)) };
    return td_failed() ? NULL : td_cat(parts, 2, dim);
}

TD_RULE(cumprod, g)
{
    const int dim = (int)td_rule_number(b, 0, -1);
    b->grad_in[0] = g->rank == 0 ? g : product_gradient(
        td_to(td_saved_input(b, 0), g->dtype), td_saved_output(b, 0), g,
        dim);
}

TD_RULE(prod, g)
{
    td_tensor *x = td_saved_input(b, 0);
    int dim = 0;
    if (x == NULL || x->rank == 0 || td_numel(x) == 0) {
        b->grad_in[0] = x && x->rank == 0 ? g : td_zeros_like(x,
            (td_tensor_options)TD_DEFAULTS);
        return;
    }
    if (td_attribute(b, 0)->kind == TD_NONE)
        x = td_reshape(x, TD_DIMS(-1));
    td_wrap_dim("prod", td_rule_number(b, 0, -1), td_rank(x), &dim);
    td_dims shape = td_shape_of(x);
    shape.at[dim] = 1;
    x = td_to(x, g->dtype);
    td_tensor *last = td_reshape(g, shape), *rest = td_head(x, dim);
    td_tensor *parts[] = { td_zeros_like(rest, TD_OF(g->dtype)), last };
    if (td_failed())
        return;
    b->grad_in[0] = td_reshape(product_gradient(x, td_cumprod(x, dim),
        td_cat(parts, 2, dim), dim), td_input_dims(b, 0));
}

TD_RULE(logcumsumexp, g)
{
    td_tensor *x = td_saved_input(b, 0);
    const int dim = (int)td_rule_number(b, 0, -1);
    const double least = g->dtype == TD_FLOAT32 ? -FLT_MAX : -DBL_MAX;
    td_tensor *y = td_maximum_scalar(td_saved_output(b, 0),
                                     td_float(least));
    if (g->rank > 0)
        g = recur(td_exp(td_sub(td_head(y, dim), td_tail(y, dim))), g,
                  dim, true);
    b->grad_in[0] = td_mul(g, td_exp(td_sub(x, y)));
}
