/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "parts": edit that, not this file. */
/* Rules of choices, reductions and products of matrices. */
#include "grad/autograd.h"
#include <treadle/treadle.h>

/* rules: rules for choices */
static td_value zero(void)
{
    return td_v_float(0);
}

static td_tensor *choose(td_tensor *condition, td_value a, td_value b)
{
    return TD_RUN(where, (td_v_tensor(condition), a, b));
}

void where_rule(td_backward_pass *b)
{
    td_tensor *condition = td_saved_input(b, 0);
    const td_value g = td_v_tensor(b->grad[0]);
    if (td_needs(b, 1))
        b->grad_in[1] = choose(condition, g, zero());
    if (td_needs(b, 2))
        b->grad_in[2] = choose(condition, zero(), g);
}

void clamp_rule(td_backward_pass *b)
{
    td_tensor *x = td_saved_input(b, 0);
    td_tensor *g = b->grad[0];
    /* clamp: exercise clamp */
    const int side[2] = { TD_OP_ge, TD_OP_le };
    for (int i = 0; i < 2; i++)
        if (td_attribute(b, i)->kind == TD_SCALAR)
            g = choose(td_rule_call2(side[i], td_v_tensor(x),
                                     *td_attribute(b, i)),
                       td_v_tensor(g), zero());
    b->grad_in[0] = g;
}
/* parts: rules for reductions */
TD_RULE(mean, g)
{
    const td_dims shape = td_input_dims(b, 0);
    int64_t n = 0;
    if (td_dims_numel("mean", &shape, &n) && n > 0)
        g = td_mul_scalar(g, td_float((double)td_numel(g) / (double)n));
    b->grad_in[0] = td_expand(td_spread(b, g), shape);
}

TD_RULE(sum_to_size, g)
{
    b->grad_in[0] = td_expand(g, td_input_dims(b, 0));
}

void extreme_rule(td_backward_pass *b)
{
    /* ties: exercise ties */
    td_tensor *x = td_saved_input(b, 0);
    td_tensor *y = td_spread(b, td_saved_output(b, 0));
    td_tensor *g = td_spread(b, b->grad[0]);
    td_tensor *mask = td_to(td_eq(x, y), td_input_dtype(b, 0));
    if (td_failed())
        return;
    td_tensor *ties = td_sum_to_size(mask, td_shape_of(y));
    b->grad_in[0] = td_mul(mask, td_div(g, ties));
}

TD_RULE(logsumexp, grad)
{
    td_tensor *x = td_saved_input(b, 0);
    td_tensor *y = td_spread(b, td_saved_output(b, 0));
    td_tensor *g = td_spread(b, grad);
    y = choose(td_eq_scalar(y, td_float(-INFINITY)), zero(),
               td_v_tensor(y));
    b->grad_in[0] = td_mul(g, td_exp(td_sub(x, y)));
}

static td_tensor *sum_along(const td_backward_pass *b, td_tensor *x)
{
    return td_sum(x, (td_reduce_options){ .keepdim = true,
        .dims = TD_DIMS(td_rule_number(b, 0, 0)) });
}

TD_RULE(softmax, g)
{
    td_tensor *y = td_saved_output(b, 0);
    td_tensor *mean = sum_along(b, td_mul(g, y));
    b->grad_in[0] = td_mul(y, td_sub(g, mean));
}

TD_RULE(log_softmax, g)
{
    td_tensor *y = td_saved_output(b, 0);
    /* parts: see whether to go back row by row */
    const int dim = (int)td_rule_number(b, 0, 0);
    const bool rows = y && !b->create_graph
        && (dim == -1 || dim == y->rank - 1)
        && td_device_of(y).kind == TD_DEVICE_CPU;
    b->grad_in[0] = rows
        ? TD_CALL2(log_softmax_backward, g, y, td_v_int(-1),
                   td_v_none())
        : td_sub(g, td_mul(td_exp(y), sum_along(b, g)));
}
/* parts: rules for products of matrices */
static td_tensor *swap(td_tensor *x)
{
    return td_transpose(x, -2, -1);
}

static td_tensor *as_matrix(td_tensor *x, int new)
{
    return x && x->rank == 1 ? td_unsqueeze(x, new) : x;
}

TD_RULE(matmul, g)
{
    const int rank_a = td_input_dims(b, 0).count;
    const int rank_b = td_input_dims(b, 1).count;
    if (rank_b == 1)
        g = td_unsqueeze(g, -1);
    if (rank_a == 1)
        g = td_unsqueeze(g, -2);
    if (td_needs(b, 0))
        b->grad_in[0] = td_matmul(g, swap(as_matrix(
            td_saved_input(b, 1), 1)));
    if (td_needs(b, 1))
        b->grad_in[1] = td_matmul(swap(as_matrix(
            td_saved_input(b, 0), 0)), g);
    if (td_needs(b, 1) && rank_b == 1)
        b->grad_in[1] = td_squeeze(b->grad_in[1], TD_DIMS(-1));
}

static td_tensor *as_rows(td_tensor *x)
{
    return td_rank(x) == 2 ? x : td_flatten(as_matrix(x, 0), 0, -2);
}

TD_RULE(linear, g)
{
    /* linear: exercise linear */
    if (td_needs(b, 0))
        b->grad_in[0] = td_matmul(g, td_saved_input(b, 1));
    if (td_needs(b, 1))
        b->grad_in[1] = td_matmul(swap(as_rows(g)),
                                  as_rows(td_saved_input(b, 0)));
    if (b->n_in > 2 && td_needs(b, 2))
        b->grad_in[2] = g;
}

static td_tensor *times(td_tensor *x, const td_value *factor)
{
    const double value = td_v_double(factor);
    return value == 1 ? x : td_mul_scalar(x, td_float(value));
}

TD_RULE(addmm, g)
{
    if (td_needs(b, 0))
        b->grad_in[0] = times(g, td_attribute(b, 0));
    if (td_needs(b, 1))
        b->grad_in[1] = times(td_matmul(g, swap(td_saved_input(b, 2))),
                              td_attribute(b, 1));
    if (td_needs(b, 2))
        b->grad_in[2] = times(td_matmul(swap(td_saved_input(b, 1)), g),
                              td_attribute(b, 1));
}

TD_RULE(addcmul, g)
{
    /* normalisation: take all three gradients in one walk */
    if (td_affine_back(b, g))
        return;
    b->grad_in[0] = g;
    g = times(g, td_attribute(b, 0));
    if (td_needs(b, 1))
        b->grad_in[1] = td_rule_call2(TD_OP_mul, td_v_tensor(g),
                                      td_operand(b, 2));
    if (td_needs(b, 2))
        b->grad_in[2] = td_mul(g, td_saved_input(b, 1));
}
