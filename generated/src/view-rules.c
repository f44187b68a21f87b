/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "parts": edit that, not this file. */
/* Rules of views, parts, joins and selections, and their kernels. */
#include "autograd.h"
#include "device.h"
#include <treadle/elementwise.h>
#include <treadle/parallel.h>

/* parts: kernels that put back */
static td_tensor *zeros_for(const td_call *call)
{
    td_dims shape;
    if (!td_v_dims(call, &call->attr[0], &shape))
        return NULL;
    td_tensor *g = call->in[0].as.tensor;
    return td_zeros(shape, (td_tensor_options){
        .dtype = g->dtype, .device = td_device_of(g) });
}

static td_opt_i64 optional(const td_value *v)
{
    td_opt_i64 o = { v->kind == TD_SCALAR, td_v_get_int(v, 0) };
    return o;
}

static int int_of(const td_value *v)
{
    return (int)td_v_get_int(v, 0);
}

bool slice_backward_kernel(td_call *call)
{
    const td_value *at = call->attr;
    td_scope_begin();
    td_tensor *out = zeros_for(call);
    td_copy_(td_slice(out, int_of(&at[1]), optional(&at[2]),
                      optional(&at[3]), td_v_get_int(&at[4], 1)),
             call->in[0].as.tensor);
    return td_return(call, td_scope_end_with(out));
}

bool select_backward_kernel(td_call *call)
{
    const td_value *at = call->attr;
    td_scope_begin();
    td_tensor *out = zeros_for(call);
    td_copy_(td_select(out, int_of(&at[1]), td_v_get_int(&at[2], 0)),
             call->in[0].as.tensor);
    return td_return(call, td_scope_end_with(out));
}

/* parts: loops of index_select_backward */
typedef struct {
    char *out;
    const char *grad;
    const int64_t *index;
    int64_t rows, taken, inner;     /* n of out, n of grad, m */
    bool wide;                      /* double */
} slice_sum;

#define ADD_ROWS(T)                                                   \
    for (int64_t j = 0; j < s->taken; j++) {                          \
        T *to = (T *)s->out + (o * s->rows + s->index[j]) * s->inner; \
        const T *from = (const T *)s->grad                            \
                      + (o * s->taken + j) * s->inner;                \
        for (int64_t i = 0; i < s->inner; i++)                        \
            to[i] += from[i];                                         \
    }

static bool add_slices_of(void *context, int64_t begin, int64_t end,
                          int worker)
{
    const slice_sum *s = context;
    (void)worker;
    for (int64_t o = begin; o < end; o++)
        if (s->wide)
            ADD_ROWS(double)
        else
            ADD_ROWS(float)
    return true;
}

static bool fits_rows(const td_call *call, const td_tensor *out,
                      const td_tensor *g, const td_tensor *index,
                      int dim)
{
    const int64_t rows = out->rank > 0 ? out->shape[dim] : 1;
    const int64_t n = td_numel(index), *at = td_at(index);
    td_dims taken = td_shape_of(out), got = td_shape_of(g);
    char want[TD_SHAPE_TEXT], text[TD_SHAPE_TEXT];
    if (out->rank > 0)
        taken.at[dim] = n;
    if (!td_dims_equal(&taken, &got) || (out->rank == 0 && n != 1))
        return td_fail(TD_ERROR_RUNTIME, call->op->name, "grad of "
                       "shape %s does not fit %lld indices, expected "
                       "%s", td_dims_text(&got, text), (long long)n,
                       td_dims_text(&taken, want));
    for (int64_t j = 0; td_on_host(index) && j < n; j++)
        if (at[j] < 0 || at[j] >= rows)
            return td_fail(TD_ERROR_INDEX, call->op->name, "index %lld "
                           "is out of range for dimension %d of size "
                           "%lld", (long long)at[j], dim,
                           (long long)rows);
    return true;
}

static bool add_slices(td_tensor *out, td_tensor *g, td_tensor *index,
                       int dim)
{
    int64_t outer = 1, inner = 1;
    for (int d = 0; d < out->rank; d++)
        if (d < dim)
            outer *= out->shape[d];
        else if (d > dim)
            inner *= out->shape[d];
    if (out->dtype != TD_FLOAT32 && out->dtype != TD_FLOAT64)
        return td_fail(TD_ERROR_UNSUPPORTED, "index_select_backward",
                       "%s gradients are not added; convert to float32",
                       td_dtype_name(out->dtype));
    const td_value in[] = { td_v_tensor(g), td_v_tensor(index) };
    const td_value attr = td_v_int(dim);
    if (!td_on_host(out))
        return td_compute_elsewhere(
            &(td_call){ .n_in = 2, .in = in, .n_attr = 1,
                        .attr = &attr, .out = { out } },
            "index_add", out->dtype, false);
    slice_sum s = { td_at(out), td_at(g), td_at(index),
                    out->rank ? out->shape[dim] : 1, td_numel(index),
                    inner, out->dtype == TD_FLOAT64 };
    return td_parallel_for(outer, 1, add_slices_of, &s);
}

bool index_select_backward_kernel(td_call *call)
{
    td_scope_begin();
    td_tensor *out = zeros_for(call);
    td_tensor *g = td_contiguous(call->in[0].as.tensor);
    td_tensor *index = td_to(td_contiguous(call->in[1].as.tensor),
                             TD_INT64);
    int dim;
    if (!td_failed()
        && td_wrap_dim(call->op->name, td_v_get_int(&call->attr[1], 0),
                       out->rank, &dim)
        && fits_rows(call, out, g, index, dim))
        add_slices(out, g, index, dim);
    return td_return(call, td_scope_end_with(out));
}
/* parts: rules for views */
bool reshape_rule(td_backward_pass *b)
{
    b->grad_in[0] = td_reshape(b->grad[0], td_input_dims(b, 0));
    return !td_failed();
}

bool transpose_rule(td_backward_pass *b)
{
    b->grad_in[0] = td_transpose(b->grad[0],
        int_of(td_attribute(b, 0)),
        int_of(td_attribute(b, 1)));
    return !td_failed();
}

bool permute_rule(td_backward_pass *b)
{
    const td_value *p = td_attribute(b, 0);
    td_dims back = { p->as.ints.count, { 0 } };
    for (int d = 0; d < back.count; d++) {
        const int64_t axis = p->as.ints.at[d];
        back.at[axis < 0 ? axis + back.count : axis] = d;
    }
    b->grad_in[0] = td_permute(b->grad[0], back);
    return !td_failed();
}

bool t_rule(td_backward_pass *b)
{
    b->grad_in[0] = td_t(b->grad[0]);
    return !td_failed();
}

bool identity_rule(td_backward_pass *b)
{
    b->grad_in[0] = b->grad[0];
    return true;
}
/* parts: rules for parts */
static td_tensor *put_back(td_backward_pass *b, int op, int n)
{
    /* parts: add to a sum that has begun */
    td_tensor *sum = td_sum_so_far(b, 0);
    if (sum != NULL) {
        const td_value whole = td_v_tensor(sum);
        td_add_(td_run1(b->node->op, 1, &whole, n, td_attribute(b, 0)),
                b->grad[0]);
        return NULL;
    }
    const td_dims shape = td_input_dims(b, 0);
    const td_value in = td_v_tensor(b->grad[0]);
    td_value attr[6] = { td_v_ints(&shape) };
    for (int i = 0; i < n; i++)
        attr[1 + i] = *td_attribute(b, i);
    return td_run1(&td_ops[op], 1, &in, 1 + n, attr);
}

static td_tensor *take_again(td_backward_pass *b, int op, int n)
{
    const td_value in = td_v_tensor(b->grad[0]);
    return td_run1(&td_ops[op], 1, &in, n, td_attribute(b, 1));
}

bool slice_rule(td_backward_pass *b)
{
    b->grad_in[0] = put_back(b, TD_OP_slice_backward, 4);
    return !td_failed();
}

bool slice_backward_rule(td_backward_pass *b)
{
    b->grad_in[0] = take_again(b, TD_OP_slice, 4);
    return !td_failed();
}

bool select_rule(td_backward_pass *b)
{
    b->grad_in[0] = put_back(b, TD_OP_select_backward, 2);
    return !td_failed();
}

bool select_backward_rule(td_backward_pass *b)
{
    b->grad_in[0] = take_again(b, TD_OP_select, 2);
    return !td_failed();
}
/* parts: rules for joins */
bool cat_rule(td_backward_pass *b)
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
    return !td_failed();
}

bool stack_rule(td_backward_pass *b)
{
    const int dim = int_of(td_attribute(b, 0));
    for (int i = 0; i < b->n_in; i++)
        if (td_needs(b, i))
            b->grad_in[i] = td_select(b->grad[0], dim, i);
    return !td_failed();
}
/* parts: rules for selections */
bool index_select_rule(td_backward_pass *b)
{
    const td_dims shape = td_input_dims(b, 0);
    const td_value in[] = { td_v_tensor(b->grad[0]),
                            td_v_tensor(td_saved_input(b, 1)) };
    const td_value attr[] = { td_v_ints(&shape), *td_attribute(b, 0) };
    if (!td_failed())
        b->grad_in[0] = td_run1(&td_ops[TD_OP_index_select_backward],
                                2, in, 2, attr);
    return !td_failed();
}

bool index_select_backward_rule(td_backward_pass *b)
{
    b->grad_in[0] = td_index_select(b->grad[0],
        int_of(td_attribute(b, 1)), td_saved_input(b, 1));
    return !td_failed();
}
