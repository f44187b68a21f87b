/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "fusion": edit that, not this file. */
/* A program, with large operators taken apart. */
#include <treadle/treadle.h>
#include "compiler/lower.h"

/* fusion: functions that expand */
static td_tensor *expand_linear(const td_ir_step *s, td_tensor **at)
{
    td_tensor *x = at[s->value[0]], *w = at[s->value[1]];
    td_dims shape = td_shape_of(x);
    td_tensor *rows = x->rank > 2 ? td_flatten(x, 0, -2) : x;
    if (x->rank < 2 || rows == NULL || rows->storage != x->storage)
        return NULL;
    td_tensor *y = td_matmul(rows, td_t(w));
    if (s->n_values > 2)
        y = td_add(y, at[s->value[2]]);
    shape.at[x->rank - 1] = w->shape[0];
    return x->rank > 2 ? td_reshape(y, shape) : y;
}

static td_tensor *expand_addcmul(const td_ir_step *s, td_tensor **at)
{
    td_tensor *a = at[s->value[1]];
    if (td_v_double(s->attr) != 1)
        a = td_mul_scalar(a, s->attr->as.scalar);
    return td_add(at[s->value[0]], s->in[2].kind == TD_SCALAR
        ? td_mul_scalar(a, s->in[2].scalar)
        : td_mul(a, at[s->value[2]]));
}
static td_tensor *expand_mean(const td_ir_step *s, td_tensor **at)
{
    td_tensor *x = at[s->value[0]];
    const td_value in = td_v_tensor(x);
    td_tensor *sum = td_run1(&td_ops[TD_OP_sum], 1, &in, 3, s->attr);
    const int64_t left = td_numel(sum);
    return sum == NULL || left == 0 ? NULL
        : td_div_scalar(sum, td_float((double)(td_numel(x) / left)));
}

static td_tensor *expand_sum_to_size(const td_ir_step *s,
                                     td_tensor **at)
{
    td_tensor *x = at[s->value[0]];
    td_dims size;
    td_reduce_options over = { .keepdim = true };
    td_v_dims(NULL, s->attr, &size);
    const int more = x->rank - size.count;
    for (int d = 0; d < x->rank; d++)
        if (d < more || (size.at[d - more] == 1 && x->shape[d] != 1))
            over.dims.at[over.dims.count++] = d;
    return td_reshape(over.dims.count ? td_sum(x, over) : x, size);
}

/* fusion: function expand_step */
static td_tensor *expand_step(const td_ir_step *s, td_tensor **at)
{
    switch (s->op - td_ops) {
    case TD_OP_linear: return expand_linear(s, at);
    case TD_OP_mean: return expand_mean(s, at);
    case TD_OP_addcmul: return expand_addcmul(s, at);
    case TD_OP_sum_to_size: return expand_sum_to_size(s, at);
    default: return NULL;
    }
}

/* fusion: functions that copy a program */
static void enter_values(const td_program *p, td_tensor **at)
{
    for (int v = 0; v < p->n_values && !td_failed(); v++) {
        const td_ir_value *value = &p->value[v];
        if (value->tensor != NULL)
            at[v] = value->tensor;
        else if (value->origin != TD_IR_RESULT)
            at[v] = td_trace_input(value->shape, value->dtype,
                                   value->device);
    }
}
static td_program *leave_values(const td_program *p, td_tensor **at)
{
    td_tensor **out = at + p->n_values;
    TD_EACH(k, p, outputs)
        out[k] = at[p->output[k]];
    for (int v = 0; v < p->n_values && !td_failed(); v++)
        if (p->value[v].update >= 0)
            td_trace_update(at[v], at[p->value[v].update]);
    return td_trace_end(out, p->n_outputs);
}

/* fusion: function td_program_expand */
td_program *td_program_expand(const td_program *p)
{
    td_tensor **at = td_ir_open(p), *y;
    td_program *fresh = NULL;
    if (at != NULL && td_trace_begin(true)) {
        enter_values(p, at);
        for (int s = 0; s < p->n_steps && !td_failed(); s++)
            if ((y = expand_step(&p->step[s], at)) != NULL)
                at[p->step[s].out[0]] = y;
            else if (!td_failed())
                td_ir_replay(&p->step[s], at, 0);
        fresh = td_keep(leave_values(p, at));
    }
    td_ir_close(p, at);
    return fresh;
}
