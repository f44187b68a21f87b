/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "views": edit that, not this file. */
#include <stdio.h>
#include <string.h>
#include "device.h"
#include "parallel.h"
#include "registry.h"

/* views: functions of the copying loop */
typedef struct { int64_t size, out, in; } walk; /* steps: elements */

typedef struct {
    td_dtype to, from;
    int64_t to_size, from_size;             /* bytes of an element */
    char *out;
    const char *in;
    int rank;
    walk at[TD_MAX_RANK];
} copy_plan;
static void add_dimension(copy_plan *p, int64_t size, int64_t out,
                          int64_t in)
{
    walk *last = p->rank > 0 ? &p->at[p->rank - 1] : NULL;
    if (size == 1)
        return;
    if (last != NULL && last->out == size * out
        && last->in == size * in)
        *last = (walk){ last->size * size, out, in };
    else
        p->at[p->rank++] = (walk){ size, out, in };
}
static void copy_run(const copy_plan *p, int64_t out, int64_t in,
                     const walk *w, int64_t n)
{
    td_convert(p->to, p->out + out * p->to_size, w->out, p->from,
               p->in + in * p->from_size, w->in, n);
}
static bool copy_line(void *context, int64_t begin, int64_t end,
                      int worker)
{
    const copy_plan *p = context;
    const walk *w = &p->at[0];
    (void)worker;
    copy_run(p, begin * w->out, begin * w->in, w, end - begin);
    return true;
}
enum { SIDE = 8 };

static inline void turn(char *restrict out, int64_t out_step,
                        const char *restrict in, int64_t in_step,
                        int64_t n, int64_t size)
{
    for (int64_t at = 0; at + SIDE <= n; at += SIDE)
        for (int64_t r = 0; r < SIDE; r++)
            for (int64_t c = 0; c < SIDE; c++)
                memcpy(out + (r * out_step + at + c) * size,
                       in + ((at + c) * in_step + r) * size,
                       (size_t)size);
}
static void turn_strip(const copy_plan *p, int64_t out, int64_t in)
{
    const walk *j = &p->at[p->rank - 1];
    const int64_t os = p->at[p->rank - 2].out, is = j->in, n = j->size;
    char *to = p->out + out * p->to_size;
    const char *from = p->in + in * p->from_size;
    switch (p->to_size) {
    case 1: turn(to, os, from, is, n, 1); return;
    case 2: turn(to, os, from, is, n, 2); return;
    case 4: turn(to, os, from, is, n, 4); return;
    default: turn(to, os, from, is, n, 8);
    }
}
enum { PIECE = 256 };

static void copy_strip(const copy_plan *p, int64_t out, int64_t in,
                       int64_t rows)
{
    const walk *k = &p->at[p->rank - 2], *j = &p->at[p->rank - 1];
    int64_t c = 0;
    if (p->to == p->from && j->out == 1 && k->in == 1 && rows == SIDE) {
        turn_strip(p, out, in);
        c = j->size / SIDE * SIDE;
    }
    for (int64_t n; c < j->size; c += n) {
        n = j->size - c < PIECE ? j->size - c : PIECE;
        for (int64_t r = 0; r < rows; r++)
            copy_run(p, out + r * k->out + c * j->out,
                     in + r * k->in + c * j->in, j, n);
    }
}
static int64_t strips_of(const copy_plan *p)
{
    return (p->at[p->rank - 2].size + SIDE - 1) / SIDE;
}

static bool copy_strips(void *context, int64_t begin, int64_t end,
                        int worker)
{
    const copy_plan *p = context;
    const walk *k = &p->at[p->rank - 2];
    (void)worker;
    for (int64_t strip = begin; strip < end; strip++) {
        const int64_t row = strip % strips_of(p) * SIDE;
        int64_t out = row * k->out, in = row * k->in;
        /* views: find where the strip starts */
        int64_t at = strip / strips_of(p);
        for (int d = p->rank - 3; d >= 0; d--) {
            out += at % p->at[d].size * p->at[d].out;
            in += at % p->at[d].size * p->at[d].in;
            at /= p->at[d].size;
        }
        copy_strip(p, out, in,
                   k->size - row < SIDE ? k->size - row : SIDE);
    }
    return true;
}
bool td_copy_elements(td_tensor *out, const td_tensor *in)
{
    copy_plan p = { .to = out->dtype, .from = in->dtype,
                    .to_size = (int64_t)td_dtype_size(out->dtype),
                    .from_size = (int64_t)td_dtype_size(in->dtype),
                    .out = td_at(out), .in = td_at(in),
                    .at = { { 1, 1, 1 } } };
    const int64_t grain = 32768, n = td_numel(out);
    if (!td_on_host(out) || !td_on_host(in))
        return td_copy_elsewhere(out, in);
    if (n == 0)
        return true;
    /* views: plan the copy dimension by dimension */
    const int more = out->rank - in->rank;
    for (int d = 0; d < out->rank; d++) {
        const bool repeat = d < more || in->shape[d - more] == 1;
        add_dimension(&p, out->shape[d], out->strides[d],
                      repeat ? 0 : in->strides[d - more]);
    }
    if (p.rank < 2)
        return td_parallel_for(n, grain, copy_line, &p);
    /* views: share the strips among threads */
    const int64_t rows = p.at[p.rank - 2].size;
    const int64_t width = p.at[p.rank - 1].size;
    return td_parallel_for(n / (rows * width) * strips_of(&p),
                           grain / (SIDE * width) + 1, copy_strips, &p);
}

/* views: functions that copy whole tensors */
static td_tensor *copied(td_tensor *x, td_dtype dtype)
{
    td_tensor *y = td_tensor_new(td_shape_of(x), dtype,
                                 td_device_of(x));
    if (y == NULL || td_copy_elements(y, x))
        return y;
    td_discard(y);
    return NULL;
}
static bool is_old_empty(const td_tensor *x)
{
    return x->rank == 1 && x->shape[0] == 0;
}

static bool joins(const char *op, const td_tensor *a,
                  const td_tensor *b, int dim, int number)
{
    bool same = a->rank == b->rank || (dim >= 0 && is_old_empty(b));
    for (int d = 0; same && b->rank == a->rank && d < a->rank; d++)
        same = d == dim || a->shape[d] == b->shape[d];
    if (same)
        return true;
    char left[TD_SHAPE_TEXT], right[TD_SHAPE_TEXT], along[40] = "";
    if (dim >= 0)
        snprintf(along, sizeof along, " but for dimension %d", dim);
    return td_fail(TD_ERROR_RUNTIME, op, "tensor %d has shape %s, "
                   "expected %s as the first%s", number,
                   td_shape_text(b, left), td_shape_text(a, right),
                   along);
}
static bool first_of_list(td_call *call, int more, td_tensor **first,
                          int *dim)
{
    td_tensor *const *at = call->in[0].as.tensors.at;
    const int n = call->in[0].as.tensors.count;
    int i = 0;
    if (n == 0)
        return td_fail(TD_ERROR_RUNTIME, call->op->name,
                       "expected a non-empty list of tensors");
    while (more == 0 && i + 1 < n && is_old_empty(at[i]))
        i++;
    *first = at[i];
    const int rank = (*first)->rank + more;
    /* views: refuse ranks that cannot be joined */
    if (rank > TD_MAX_RANK || rank == 0)
        return td_fail(TD_ERROR_RUNTIME, call->op->name, "the result would "
                       "have %d dimensions, expected 1 to %d", rank,
                       TD_MAX_RANK);
    return td_wrap_dim(call->op->name, td_v_get_int(&call->attr[0], 0),
                       rank, dim);
}
static bool copy_into_slices(td_tensor *y, td_tensor *const *at, int n,
                             int dim)
{
    td_tensor part = td_look(y);
    for (int i = 0; i < n; i++) {
        if (at[i]->rank != y->rank)
            continue;
        part.shape[dim] = at[i]->shape[dim];
        if (!td_copy_elements(&part, at[i]))
            return false;
        part.offset += part.shape[dim] * part.strides[dim];
    }
    return true;
}
bool td_writes_alone(const char *op, const td_tensor *x)
{
    for (int d = 0; d < x->rank; d++)
        if (x->strides[d] == 0 && x->shape[d] > 1 && td_numel(x) > 0)
            return td_fail(TD_ERROR_RUNTIME, op, "dimension %d of the "
                           "tensor is expanded, several elements share "
                           "one place; clone it before writing", d);
    return true;
}
static bool changed(td_call *call, td_tensor *x)
{
    td_bump_version(x);
    return td_return(call, td_share(x));
}

/* views: kernels that copy */
bool clone_kernel(td_call *call)
{
    td_tensor *x = call->in[0].as.tensor;
    return td_return(call, copied(x, x->dtype));
}
bool to_kernel(td_call *call)
{
    td_tensor *x = call->in[0].as.tensor;
    const td_dtype dtype = td_v_get_dtype(&call->attr[0], x->dtype);
    if (dtype <= TD_DTYPE_NONE || dtype >= TD_DTYPE_COUNT)
        return td_fail(TD_ERROR_TYPE, "to", "%d is not a dtype",
                       (int)dtype);
    return td_return(call, copied(x, dtype));
}
bool cat_kernel(td_call *call)
{
    td_tensor *const *at = call->in[0].as.tensors.at, *first;
    const int n = call->in[0].as.tensors.count;
    int dim;
    if (!first_of_list(call, 0, &first, &dim))
        return false;
    td_dims shape = td_shape_of(first);
    td_dtype dtype = first->dtype;
    shape.at[dim] = 0;
    /* views: add up the sizes to be joined */
    for (int i = 0; i < n; i++) {
        if (!joins("cat", first, at[i], dim, i))
            return false;
        if (at[i]->rank == first->rank
            && !td_add_size(shape.at[dim], at[i]->shape[dim],
                            &shape.at[dim]))
            return td_fail(TD_ERROR_RUNTIME, "cat",
                           "too many elements");
        dtype = td_promote(dtype, at[i]->dtype);
    }
    td_tensor *y = td_tensor_new(shape, dtype, td_device_of(first));
    return td_return(call, y) && copy_into_slices(y, at, n, dim);
}
bool stack_kernel(td_call *call)
{
    td_tensor *const *at = call->in[0].as.tensors.at, *first;
    const int n = call->in[0].as.tensors.count;
    int dim;
    if (!first_of_list(call, 1, &first, &dim))
        return false;
    td_dtype dtype = first->dtype;
    for (int i = 0; i < n; i++) {
        if (!joins("stack", first, at[i], -1, i))
            return false;
        dtype = td_promote(dtype, at[i]->dtype);
    }
    td_dims shape = { first->rank + 1, { 0 } };
    for (int d = 0; d < shape.count; d++)
        shape.at[d] = d == dim ? n : first->shape[d - (d > dim)];
    td_tensor *y = td_tensor_new(shape, dtype, td_device_of(first));
    /* views: copy each tensor of the stack */
    if (!td_return(call, y))
        return false;
    td_tensor part = td_look(y);
    td_drop_dim(&part, dim);
    bool ok = true;
    for (int i = 0; ok && i < n; i++, part.offset += y->strides[dim])
        ok = td_copy_elements(&part, at[i]);
    return ok;
}
static bool fill_with(td_call *call, td_scalar value)
{
    td_tensor *x = call->in[0].as.tensor;
    return td_writes_alone(call->op->name, x)
        && td_check_fits(call->op->name, value, x->dtype)
        && td_fill_all(x, value) && changed(call, x);
}

bool fill__kernel(td_call *call)
{
    return fill_with(call, call->attr[0].as.scalar);
}

bool zero__kernel(td_call *call) { return fill_with(call, td_int(0)); }
bool copy__kernel(td_call *call)
{
    td_tensor *x = call->in[0].as.tensor, *from = call->in[1].as.tensor;
    td_dims both;
    if (!td_writes_alone("copy_", x)
        || !td_broadcast_shapes("copy_", x, from, &both))
        return false;
    const td_dims shape = td_shape_of(x);
    /* views: refuse a source of larger shape */
    if (!td_dims_equal(&both, &shape)) {
        char left[TD_SHAPE_TEXT], right[TD_SHAPE_TEXT];
        return td_fail(TD_ERROR_RUNTIME, "copy_", "shape %s cannot be "
                       "copied into shape %s",
                       td_shape_text(from, right),
                       td_shape_text(x, left));
    }
    td_tensor *aside = x->storage != from->storage ? NULL
                     : copied(from, from->dtype);
    const bool ok = !td_failed()
        && td_copy_elements(x, aside ? aside : from);
    td_discard(aside);
    return ok && changed(call, x);
}

/* views: typed functions that copy */
static td_tensor *call_on(int op, td_value in, const td_value *attr)
{
    return td_run1(&td_ops[op], 1, &in, attr != NULL, attr);
}
td_tensor *td_contiguous(td_tensor *x)
{
    if (x != NULL && !td_failed() && td_is_contiguous(x))
        return td_share(x);
    return call_on(TD_OP_contiguous, td_v_tensor(x), NULL);
}

td_tensor *td_to(td_tensor *x, td_dtype dtype)
{
    const td_value attr = { .kind = TD_DTYPE, .as.dtype = dtype };
    if (x != NULL && !td_failed() && x->dtype == dtype)
        return td_share(x);
    return call_on(TD_OP_to, td_v_tensor(x), &attr);
}
td_tensor *td_clone(td_tensor *x)
{
    return call_on(TD_OP_clone, td_v_tensor(x), NULL);
}
td_tensor *td_cat(td_tensor *const *tensors, int n, int dim)
{
    const td_value attr = td_v_int(dim);
    return call_on(TD_OP_cat, td_v_tensors(n, tensors), &attr);
}

td_tensor *td_stack(td_tensor *const *tensors, int n, int dim)
{
    const td_value attr = td_v_int(dim);
    return call_on(TD_OP_stack, td_v_tensors(n, tensors), &attr);
}
td_tensor *td_copy_(td_tensor *x, td_tensor *src)
{
    return td_run1(&td_ops[TD_OP_copy_], 2,
        (td_value[]){ td_v_tensor(x), td_v_tensor(src) }, 0, NULL);
}

td_tensor *td_fill_(td_tensor *x, td_scalar value)
{
    const td_value attr = td_v_scalar(value);
    return call_on(TD_OP_fill_, td_v_tensor(x), &attr);
}

td_tensor *td_zero_(td_tensor *x)
{
    return call_on(TD_OP_zero_, td_v_tensor(x), NULL);
}
