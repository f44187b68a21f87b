/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "pooling": edit that, not this file. */
/* Windows, poolings and dropout. */
#include "ops/composite.h"
#include "core/device.h"
#include "ops/reductions.h"
#include "ops/kernels/pooling-kernels.h"
#include <treadle/treadle.h>

/* pooling: struct pooling */
typedef struct {
    int64_t n, m;               /* sizes of input and output */
    int64_t size, step, margin, dilation;   /* size 0: adaptive */
} axis;

typedef struct { int64_t from, to, width; } span;

typedef struct pooling {
    axis axis[3];               /* in, down, across */
    void *many, *one;           /* planes; a number a window */
    int64_t *at;                /* places, of a maximum */
    int64_t reach;              /* of a sweep, if it is one */
    bool back, counted;         /* means divide by width */
    int64_t divisor;            /* or by this, if not 0 */
    void (*work)(const struct pooling *, int64_t plane,
                 const span *d, const span *h, int64_t k, void *room);
} pooling;

/* pooling: function span_of */
static inline span span_of(const axis *a, int64_t i)
{
    if (a->size == 0) {
        const int64_t from = i * a->n / a->m;
        const int64_t to = ((i + 1) * a->n + a->m - 1) / a->m;
        return (span){ from, to, to - from };
    }
    int64_t from = i * a->step - a->margin;
    int64_t to = from + a->dilation * (a->size - 1) + 1;
    if (to > a->n + a->margin)
        to = a->n + a->margin;
    const int64_t width = to - from;
    if (from < 0)
        from += (a->dilation - 1 - from) / a->dilation * a->dilation;
    return (span){ from, to < a->n ? to : a->n, width };
}

/* Numbers of a line that a sweep reads; 0 if there is none. */
static inline int64_t reach_of(const pooling *p)
{
    const axis *a = &p->axis[2];
    const double plane = (double)p->axis[0].n * (double)p->axis[1].n
                       * (double)a->n;
    const int64_t many = a->m < 8 ? 8 : a->m, line = a->margin + a->n;
    const int64_t reach = (many - 1) * a->step + 2
                        + (a->size - 1) * a->dilation;
    return a->size == 0 || a->m < 4 || a->step > 64
        || plane > INT32_MAX / 2 ? 0 : reach > line ? reach : line;
}

/* pooling: walks of both types */
#define BODY "ops/pooling.inc"
#include "ops/kernels/twice.inc"

/* pooling: function pool_planes */
TD_BODY(pool_planes, const pooling, p)
{
    const int64_t in = p->axis[0].m, down = p->axis[1].m;
    const int64_t across = p->axis[2].m;
    const int64_t room = p->reach * p->axis[1].size + 1;
    void *line = td_scratch((size_t)room * sizeof(double));
    int64_t k = begin * in * down * across;
    for (int64_t plane = begin; line && plane < end; plane++)
        for (int64_t f = 0; f < in; f++) {
            const span d = span_of(&p->axis[0], f);
            for (int64_t i = 0; i < down; i++, k += across) {
                const span h = span_of(&p->axis[1], i);
                p->work(p, plane, &d, &h, k, line);
            }
        }
    return line != NULL;
}

/* pooling: function count_windows */
static int64_t count_windows(const td_call *call, const axis *a,
                             bool ceil)
{
    const int64_t most = INT32_MAX;
    if (a->size < 1 || a->step < 1 || a->dilation < 1 || a->margin < 0
        || a->size > most || a->step > most || a->dilation > most
        || a->margin > a->size / 2)
        td_refuse(call, "expected kernel_size, stride and dilation "
                  "above 0 and a padding of at most half kernel_size");
    if (td_failed())
        return 0;
    const int64_t left = a->n + 2 * a->margin
                       - a->dilation * (a->size - 1) - 1;
    const int64_t more = left + (ceil ? a->step - 1 : 0);
    int64_t m = more < 0 ? 0 : more / a->step + 1;
    if (ceil && (m - 1) * a->step >= a->n + a->margin)
        m--;
    if (m < 1)
        td_refuse(call, "no window of size %" PRId64 " fits %" PRId64
            " numbers with padding %" PRId64, a->size, a->n,
            a->margin);
    return m;
}

/* pooling: function per_dimension */
static td_dims per_dimension(const td_call *call, int k, int dims,
                             td_dims otherwise)
{
    td_dims list = td_numbers(call, k);
    if (list.count == 0)
        list = otherwise;
    if (list.count == 1)
        list.at[1] = list.at[2] = list.at[0];
    else if (list.count != dims)
        td_refuse(call, "expected one number or %d in each list, "
                  "not %d", dims, list.count);
    list.count = dims;
    return list;
}

/* pooling: function read_windows */
static bool name_has(const td_op *op, const char *part)
{
    return strstr(td_op_name(op), part) != NULL;
}

static int directions(const td_op *op)
{
    return name_has(op, "3d") ? 3 : name_has(op, "2d") ? 2 : 1;
}

/* Windows over the last dimensions of *shape, which becomes that of
   the result. */
static bool read_windows(const td_call *call, pooling *p,
                         td_dims *shape)
{
    const bool adaptive = name_has(call->op, "adaptive");
    const bool max = name_has(call->op, "max");
    const int dims = directions(call->op);
    const int at = p->back, first = shape->count - dims;
    if (first < 1 || first > 2)
        return td_refuse(call, "expected %d or %d dimensions", dims + 1,
                         dims + 2);
    for (int d = 0; d < shape->count; d++)
        if (shape->at[d] < (d >= first - !adaptive))
            return td_refuse(call, "only the batch may be of size 0");
    td_dims size = per_dimension(call, at, dims, TD_RANK_0);
    td_dims step = size, margin = TD_DIMS(0, 0, 0);
    td_dims dilation = TD_DIMS(1, 1, 1);
    bool ceil = false;
    /* pooling: read what only windows of a size have */
    if (!adaptive) {
        const td_value *more = &call->attr[at + 3 + max];
        step = per_dimension(call, at + 1, dims, size);
        margin = per_dimension(call, at + 2, dims, TD_DIMS(0));
        ceil = td_v_get_bool(&more[0]);
        if (max)
            dilation = per_dimension(call, at + 3, dims, TD_DIMS(1));
        else
            p->counted = td_v_get_bool(&more[1]);
        if (!max && dims > 1 && more[2].kind == TD_SCALAR
            && (p->divisor = td_v_get_int(&more[2], 0)) == 0)
            return td_refuse(call, "divisor_override must not be 0");
    }
    for (int k = 0; k < dims && !td_failed(); k++) {
        axis *a = &p->axis[3 - dims + k];
        *a = (axis){ shape->at[first + k], size.at[k],
                     adaptive ? 0 : size.at[k], step.at[k],
                     margin.at[k], dilation.at[k] };
        if (!adaptive)
            a->m = count_windows(call, a, ceil);
        else if (a->m < 0 || a->m > INT32_MAX)
            td_refuse(call, "expected output sizes from 0 on");
        shape->at[first + k] = a->m;
    }
    return !td_failed();
}

/* pooling: kernel of all poolings */
TD_KERNEL(pool, x)
{
    const bool max = name_has(call->op, "max");
    const bool wide = x->dtype == TD_FLOAT64;
    pooling p = { .axis = { { 1, 1, 1, 1, 0, 1 },
                            { 1, 1, 1, 1, 0, 1 } },
                  .back = name_has(call->op, "backward") };
    const td_dims in = p.back ? td_numbers(call, 0) : td_shape_of(x);
    td_dims out = in;
    if (!td_check_computes(call, x->dtype, true)
        || !read_windows(call, &p, &out))
        return false;
    if (p.back && !td_expect(call, "grad", x, out))
        return false;
    p.reach = max ? reach_of(&p) : 0;
    p.work = max ? (wide ? largest_f64 : largest_f32)
                 : (wide ? mean_f64 : mean_f32);
    td_scope_begin();
    /* pooling: make the results of a pooling */
    const td_device home = { TD_DEVICE_CPU, 0 };
    td_tensor *y = td_tensor_new(p.back ? in : out, x->dtype, home);
    if (max)
        call->out[1] = td_tensor_new(out, TD_INT64, home);
    if (p.back && y != NULL)
        td_fill_all(y, td_int(0));
    /* pooling: walk over all planes */
    const int64_t area = p.axis[0].m * p.axis[1].m * p.axis[2].m;
    td_tensor *plain = td_failed() || !td_on_host(y) ? NULL
                     : td_contiguous(td_brought(x, home));
    if (plain != NULL && area > 0) {
        p.many = td_at(p.back ? y : plain);
        p.one = td_at(p.back ? plain : y);
        p.at = max ? td_at(call->out[1]) : NULL;
        td_parallel_for(td_numel(p.back ? x : y) / area,
                        8192 / area + 1, pool_planes, &p);
    }
    return td_send_results(call, y);
}

/* pooling: rules of poolings */

TD_RULE(max_pool, g)
{
    const td_dims shape = td_input_dims(b, 0);
    const int dims = directions(b->op);
    const td_value x = td_operand(b, 0);
    td_scope_begin();
    const td_call again = td_called(b->op, 1, &x, b->n_attr,
                                    td_attribute(b, 0));
    td_tensor *at = td_scope_end_with(again.out[1]);
    const td_tensor_options like = td_beside(g, td_input_dtype(b, 0));
    td_tensor *planes[] = { td_zeros(shape, like), at, g };
    td_value in[3];
    for (int i = 0; i < 3; i++)
        in[i] = td_v_tensor(td_flatten(planes[i], -dims, -1));
    const int op = b->create_graph ? TD_OP_scatter_add
                                   : TD_OP_scatter_add_;
    if (!td_failed())
        b->grad_in[0] = td_reshape(td_run1(&td_ops[op], 3, in,
            TD_VALUES(td_v_int(-1))), shape);
}

TD_RULE(avg_pool, grad)
{
    const td_dims shape = td_input_dims(b, 0);
    const td_value g = td_v_tensor(grad);
    const int n = b->n_attr;
    td_value attr[8] = { td_v_ints(&shape) };
    memcpy(attr + 1, td_attribute(b, 0), (size_t)n * sizeof *attr);
    b->grad_in[0] = td_run1(b->op + 1, 1, &g, n + 1, attr);
}

TD_RULE(avg_pool_backward, grad)
{
    const td_value g = td_v_tensor(grad);
    b->grad_in[0] = td_run1(b->op - 1, 1, &g,
                            b->n_attr - 1, td_attribute(b, 1));
}

/* pooling: formulas of poolings */
bool max_pool_kernel(td_call *call)
{
    return td_return(call, td_run1(call->op + 1, 1, call->in,
                                   call->n_attr, call->attr));
}

/* pooling: formulas of dropout */
TD_COMPOSED(dropout, x)
{
    const bool alpha = name_has(call->op, "alpha");
    const bool features = name_has(call->op, "feature");
    const double p = td_real(call, 0);
    td_dims shape = td_shape_of(x);
    if (!(p >= 0 && p <= 1)) {
        td_fail(TD_ERROR_VALUE, td_op_name(call->op), "the probability "
                "has to be between 0 and 1, but got %g", p);
        return NULL;
    }
    if (features && x->rank < 2)
        return td_refuse(call, "expected at least 2 dimensions");
    if (!td_flag(call, 1) || p == 0)
        return td_share(x);
    if (!td_check_computes(call, x->dtype, true))
        return NULL;
    for (int d = 2; d < shape.count && features; d++)
        shape.at[d] = 1;
    td_tensor *keep = td_bernoulli_(td_empty(shape,
        td_like(x)), 1 - p);
    const double scale = p < 1 ? 1 / (1 - p) : 0;
    if (!alpha)
        return td_mul(x, td_mul_scalar(keep, td_float(scale)));
    /* pooling: move what is dropped to the low end */
    const double low = 1.7580993408473766;
    const double a = p < 1 ? 1 / sqrt((low * low * p + 1) * (1 - p)) : 0;
    td_tensor *moved = td_mul_scalar(td_sub_scalar(keep, td_float(1 - p)),
                                     td_float(low * a));
    return td_add(td_mul(x, td_mul_scalar(keep, td_float(a))), moved);
}
