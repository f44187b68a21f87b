/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "in-place": edit that, not this file. */
/* Changes in place: bases of views, rewritten histories. */
#include "grad/autograd.h"
#include "core/device.h"
#include "ops/composite.h"
#include "ops/elementwise.h"
#include <treadle/treadle.h>

/* in-place: functions that know bases */
td_tensor *td_base(const td_tensor *x)
{
    return x && x->base && x->base->storage == x->storage ? x->base
                                                          : NULL;
}

void td_note_view(const td_call *call, bool recording)
{
    td_tensor *x = call->in[0].as.tensor;
    for (int k = 0; k < TD_MAX_RESULTS && call->out[k]; k++) {
        td_tensor *y = call->out[k];
        if (y == x || y->storage != x->storage || y->base != NULL)
            continue;
        y->quiet = x->quiet;
        if (td_is(call, detach))
            continue;
        y->untracked = x->untracked
                    || (x->requires_grad && !recording);
        if (recording) {
            y->base = td_retain(x->base ? x->base : x);
            y->seen = (unsigned)y->base->rebased;
        }
    }
}

td_tensor *td_data_of(td_tensor *x)
{
    td_tensor *y = td_detach(x);
    if (y != NULL)
        y->quiet = y->storage->shown = true;
    return y;
}

void td_count_leaf_view(td_tensor *x, bool on)
{
    on = on && td_base(x) != NULL;
    if (x->base != NULL && atomic_exchange(&x->leaf_view, on) != on)
        atomic_fetch_add(&x->base->leaf_views, on ? 1 : -1);
}

/* in-place: kernel strided_view */
static bool look_at(const td_call *call, const td_tensor *x,
                    td_tensor *y, int first)
{
    const td_dims size = td_numbers(call, first);
    const td_dims stride = td_numbers(call, first + 1);
    const int64_t n = td_numel(x);
    int64_t low = td_number(call, first + 2, 0), high = low, numel;
    if (td_failed() || !td_dims_numel(call->op->name, &size, &numel))
        return false;
    if (numel == 0 && low > n)
        low = n;
    bool fits = size.count == stride.count && low >= 0 && low <= n
             && td_is_contiguous(x);
    for (int d = 0; fits && d < size.count; d++) {
        fits = stride.at[d] >= 0 && (size.at[d] < 2 || numel == 0
            || stride.at[d] <= n / (size.at[d] - 1));
        high += size.at[d] > 1 && numel > 0 && fits
              ? (size.at[d] - 1) * stride.at[d] : 0;
    }
    td_lay(y, &size, stride.at);
    y->offset += low;
    return (fits && (high < n || numel == 0))
        || td_refuse(call, "sizes, strides and offset do not fit %"
            PRId64 " contiguous elements", n);
}

TD_LOOK(strided_view)
{
    return look_at(call, x, y, 0);
}

/* in-place: kernel strided_view_backward */
static bool overlaps(const td_tensor *x)
{
    int64_t reach = 0;
    bool done[TD_MAX_RANK] = { false };
    for (int round = 0; round < x->rank; round++) {
        int d = -1;
        for (int i = 0; i < x->rank; i++)
            if (!done[i] && (d < 0 || x->strides[i] < x->strides[d]))
                d = i;
        done[d] = true;
        if (x->shape[d] > 1 && x->strides[d] <= reach)
            return true;
        reach += x->shape[d] > 1
               ? (x->shape[d] - 1) * x->strides[d] : 0;
    }
    return false;
}

static int dimension_apart(const td_tensor *y)
{
    int64_t least = INT64_MAX;
    int apart = 0;
    for (int d = 0; d < y->rank; d++) {
        td_tensor rest = td_look(y);
        td_drop_dim(&rest, d);
        const int64_t cost = y->shape[d] < 2 ? INT64_MAX
            : y->shape[d] + (overlaps(&rest) ? INT64_MAX / 2 : 0);
        apart = cost < least ? d : apart;
        least = cost < least ? cost : least;
    }
    return apart;
}

static bool add_through(td_tensor *y, td_tensor *g)
{
    if (y == NULL || !overlaps(y))
        return td_add_(y, g) != NULL;
    const int d = dimension_apart(y);
    for (int64_t i = 0; i < y->shape[d] && !td_failed(); i++) {
        td_scope_begin();
        add_through(td_select(y, d, i), td_select(g, d, i));
        td_scope_end();
    }
    return !td_failed();
}

bool strided_view_backward_kernel(td_call *call)
{
    td_tensor *g = call->in[0].as.tensor;
    td_scope_begin();
    td_tensor *out = td_zeros(td_numbers(call, 0), td_like(g));
    if (td_return(call, out)) {
        td_tensor y = td_look(out);
        if (!look_at(call, out, &y, 1)
            || !td_expect(call, "grad", g, td_shape_of(&y)))
            ;
        else if (!overlaps(&y))
            td_copy_elements(&y, g);
        else if (!td_self()->symbolic)
            add_through(td_tensor_alias(&y), g);
    }
    return td_return(call, td_scope_end_with(out));
}

/* in-place: rules of strided views */
td_tensor *td_put_back(const td_op *op, td_tensor *g, td_dims shape,
                       int n, const td_value *at)
{
    if (td_failed())
        return NULL;
    td_tensor whole = td_look_as(g, &shape);
    whole.offset = 0;
    const td_value looked = td_v_tensor(&whole);
    td_call look = { .op = op, .n_in = 1, .in = &looked, .n_attr = n,
                     .attr = at };
    td_scope_begin();
    if (op->kernel(&look)) {
        td_dims size = td_shape_of(look.out[0]), stride = size;
        memcpy(stride.at, look.out[0]->strides, sizeof stride.at);
        g = TD_CALL(strided_view_backward, g, td_v_ints(&shape),
                    td_v_ints(&size), td_v_ints(&stride),
                    td_v_int(look.out[0]->offset));
    }
    return td_scope_end_with(td_failed() ? NULL : g);
}

void part_rule(td_backward_pass *b)
{
    const td_node *node = b->node;
    td_tensor *sum = td_sum_so_far(b, 0);
    const td_value whole = td_v_tensor(sum);
    if (sum != NULL)
        add_through(td_run1(node->op, 1, &whole, node->n_attr,
                            node->attr), b->grad[0]);
    else
        b->grad_in[0] = td_put_back(node->op, b->grad[0],
            td_input_dims(b, 0), node->n_attr, node->attr);
}

static td_tensor *part_of(td_tensor *g, const td_value *at)
{
    const td_value in = td_v_tensor(g);
    return td_run1(&td_ops[TD_OP_strided_view], 1, &in, 3, at);
}

void strided_view_backward_rule(td_backward_pass *b)
{
    b->grad_in[0] = part_of(td_contiguous(b->grad[0]),
                            td_attribute(b, 1));
}

/* in-place: functions that rewrite histories */
typedef struct {
    td_dims size, stride;
    td_value attr[3];
} geometry;

/* Where x lies in its base. */
static bool place_in_base(const td_tensor *x, geometry *g)
{
    g->size = td_shape_of(x);
    g->stride.count = x->rank;
    memcpy(g->stride.at, x->strides, sizeof x->strides);
    g->attr[0] = td_v_ints(&g->size);
    g->attr[1] = td_v_ints(&g->stride);
    g->attr[2] = td_v_int(x->offset - x->base->offset);
    return td_is_contiguous(x->base)
        || td_fail(TD_ERROR_UNSUPPORTED, "view", "a change in place of "
                   "a view is not recorded where the elements of its "
                   "base are not contiguous; clone it");
}

void td_follow_base(td_tensor *x)
{
    geometry g;
    const unsigned then = x->seen, now = x->base->rebased;
    const td_value in = td_v_tensor(x->base);
    const td_call as = { .op = &td_ops[TD_OP_strided_view], .n_in = 1,
                         .in = &in, .n_attr = 3, .attr = g.attr,
                         .n_out = 1, .out = { x } };
    const bool derives = td_base(x) && x->base->requires_grad
                      && td_dtype_is_floating(x->dtype);
    td_node *node = derives && place_in_base(x, &g) ? td_node_for(&as)
                                                    : NULL;
    if (derives && node == NULL)
        return;
    /* in-place: put the node in its place, the first to come */
    pthread_mutex_t *lock = td_lock(x);
    const bool first = x->seen == then && node != NULL;
    td_node *old = first ? x->node : NULL;
    const int old_slot = x->slot;
    if (first) {
        x->node = td_retain(node);
        x->slot = 0;
        x->requires_grad = true;
    }
    x->seen = now;
    pthread_mutex_unlock(lock);
    if (first && x->watched)
        td_watch(x, old, old_slot);
    td_release(old);
    td_release(node);
}

static bool record_change(const td_call *call)
{
    td_tensor *x = call->in[0].as.tensor;
    td_tensor *base = td_base(x) ? x->base : x;
    td_value in[TD_MAX_PARAMETERS];
    geometry g;
    td_call as = { .op = call->op, .n_in = call->n_in, .in = in };
    memcpy(in, call->in, (size_t)call->n_in * sizeof *in);
    in[0] = td_v_tensor(base);
    if (base != x) {
        as.n_attr = 3;
        as.attr = g.attr;
        if (!place_in_base(x, &g))
            return false;
    }
    as.n_out = 1;
    as.out[0] = base;
    if (!td_record_call(&as))
        return false;
    base->rebased++;
    if (base != x)
        td_follow_base(x);
    return !td_failed();
}

bool td_begin_change(td_call *call, td_plan *plan)
{
    return td_mute(call, plan) && td_may_change(call);
}

bool td_end_change(td_call *call, bool ok)
{
    td_unmute(call, ok);
    return ok && (!td_dtype_is_floating(call->in[0].as.tensor->dtype)
                  || record_change(call));
}

bool td_may_change(const td_call *call)
{
    const td_tensor *x = call->in[0].as.tensor, *base = td_base(x);
    const td_tensor *whole = base ? base : x;
    const char *why = x->requires_grad && x->node == NULL
        ? "a leaf that requires a gradient cannot be changed in "
          "place while gradients are recorded; use no_grad"
        : whole->requires_grad && whole->node == NULL
        ? "a view of a leaf that requires a gradient cannot be "
          "changed in place while gradients are recorded; use no_grad"
        : x->untracked
        ? "a view that was made while gradients were not recorded "
          "cannot be changed in place while they are; clone it"
        : whole->leaf_views > 0
        ? "a tensor of which a leaf is a view cannot be changed in "
          "place while gradients are recorded; clone that leaf" : NULL;
    return why == NULL
        || td_fail(TD_ERROR_RUNTIME, call->op->name, "%s", why);
}

/* in-place: rule of overwriting */
void overwrite_rule(td_backward_pass *b)
{
    td_tensor *g = b->grad[0];
    const bool whole = b->node->n_attr == 0;
    /* overwrite: exercise overwrite */
    const td_value *at = whole ? NULL : td_attribute(b, 0);
    td_tensor *part = g;
    if (!whole)
        part = part_of(g = td_contiguous(g), at);
    if (b->n_in > 1 && td_needs(b, 1))
        b->grad_in[1] = part;
    if (!td_needs(b, 0))
        return;
    td_tensor *gone = td_zeros(td_shape_of(g), (td_tensor_options){
        .dtype = whole ? g->dtype : TD_BOOL, .device = td_device_of(g) });
    b->grad_in[0] = gone;
    if (!whole && td_fill_(part_of(gone, at), td_boolean(true)))
        b->grad_in[0] = TD_RUN(where, (td_v_tensor(gone), td_v_float(0),
                                       td_v_tensor(g)));
}

/* in-place: functions that change by a copy */
const td_op *td_plain_form(const td_op *op)
{
    char name[64] = "";
    const size_t n = strlen(op->name);
    if (n < sizeof name && op->name[n - 1] == '_')
        memcpy(name, op->name, n - 1);
    return td_op_find(name);
}

bool td_wants_record(const td_call *call)
{
    bool any = false;
    TD_EACH(i, call, in)
        any |= td_any_requires_grad(&call->in[i]);
    return any && td_grad_enabled();
}

bool td_change_by_copy(td_call *call)
{
    td_tensor *x = call->in[0].as.tensor;
    td_value in[TD_MAX_PARAMETERS];
    const td_op *op = td_traits_of(call->op)->plain;
    const bool records = td_wants_record(call);
    if (op == NULL)
        return td_fail(TD_ERROR_UNSUPPORTED, td_op_name(call->op),
            "changing a tensor in place is not recorded here; use "
            "no_grad");
    if (records && !td_may_change(call))
        return false;
    const bool saves = td_rule_of(op)->kind != TD_RULE_FUNCTION
        || td_saves(op, call) & (SAVES_INPUT(0) | SAVES_INPUT(1));
    td_tensor *old = records && saves ? td_clone(x) : x;
    TD_EACH(i, call, in) {
        in[i] = call->in[i];
        if (in[i].kind == TD_TENSOR && in[i].as.tensor == x)
            in[i].as.tensor = old;
    }
    td_call plain = *call;
    plain.op = op;
    plain.in = in;
    plain.into = records ? NULL : x;
    /* tracing: keep what a trace writes down apart */
    if (td_self()->trace)
        plain.into = NULL;
    td_tensor *y = old != NULL && td_run(&plain) ? plain.out[0] : NULL;
    const td_dims shape = td_shape_of(y);
    if (y == x)
        td_bump_version(x);
    else if (y && td_may_store(x, y->dtype, &shape))
        td_copy_(x, y);
    return !td_failed() && td_return(call, td_share(x));
}
