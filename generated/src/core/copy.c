/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "views": edit that, not this file. */
#include "core/device.h"
#include "core/parallel.h"
#include "core/registry.h"
#include "core/space.h"

/* views: function take_innermost */
typedef struct { int64_t size, out, in; } walk; /* steps: elements */

typedef struct {
    td_space outer;                         /* result and source */
    walk down, along;                       /* the dimensions within */
} copy_plan;

static walk take_innermost(td_space *s)
{
    const int d = --s->shape.count;
    return (walk){ s->shape.at[d], s->stride[0][d], s->stride[1][d] };
}

/* views: function copy_run */
static void copy_run(const copy_plan *p, char *out, const char *in,
                     int64_t n)
{
    td_convert(p->outer.dtype[0], out, p->along.out,
               p->outer.dtype[1], in, p->along.in, n);
}

/* views: function copy_line */
TD_BODY(copy_line, const copy_plan, p)
{
    const int64_t out = begin * p->along.out * p->outer.size[0];
    const int64_t in = begin * p->along.in * p->outer.size[1];
    copy_run(p, p->outer.data[0] + out, p->outer.data[1] + in,
             end - begin);
    return true;
}

/* views: function turn */
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

/* views: function turn_strip */
static void turn_strip(const copy_plan *p, char *out, const char *in)
{
    const int64_t os = p->down.out, is = p->along.in;
    const int64_t n = p->along.size;
    switch (p->outer.size[0]) {
    case 1: turn(out, os, in, is, n, 1); return;
    case 2: turn(out, os, in, is, n, 2); return;
    case 4: turn(out, os, in, is, n, 4); return;
    default: turn(out, os, in, is, n, 8);
    }
}

/* views: function copy_strips */
enum { PIECE = 256 };

static int64_t strips_of(const copy_plan *p)
{
    return (p->down.size + SIDE - 1) / SIDE;
}

TD_BODY(copy_strips, const copy_plan, p)
{
    const walk *k = &p->down, *j = &p->along;
    const int64_t to = p->outer.size[0], from = p->outer.size[1];
    const int64_t strips = strips_of(p);
    int64_t matrix = -1;
    char *out = NULL;
    const char *in = NULL;
    for (int64_t strip = begin; strip < end; strip++) {
        const int64_t row = strip % strips * SIDE;
        const int64_t rows = td_least(k->size - row, SIDE);
        if (strip / strips != matrix) {
            matrix = strip / strips;
            out = td_space_place(&p->outer, 0, matrix);
            in = td_space_place(&p->outer, 1, matrix);
        }
        /* views: copy the strip */
        int64_t c = 0;
        if (j->in == 0 && j->out == 1 && k->out == j->size) {
            c = j->size;
            td_convert_each(p->outer.dtype[0], out + row * c * to, c,
                            p->outer.dtype[1], in + row * k->in * from, k->in,
                            rows);
        } else if (p->outer.dtype[0] == p->outer.dtype[1] && j->out == 1
                   && k->in == 1 && rows == SIDE) {
            turn_strip(p, out + row * k->out * to, in + row * from);
            c = j->size / SIDE * SIDE;
        }
        for (int64_t n; c < j->size; c += n) {
            n = td_least(j->size - c, PIECE);
            for (int64_t r = row; r < row + rows; r++)
                copy_run(p, out + (r * k->out + c * j->out) * to,
                         in + (r * k->in + c * j->in) * from, n);
        }
    }
    return true;
}

/* views: function td_copy_elements */
bool td_copy_elements(td_tensor *out, const td_tensor *in)
{
    copy_plan p;
    td_space *s = &p.outer;
    const int64_t grain = 32768;
    if (!td_on_host(out) || !td_on_host(in))
        return td_copy_elsewhere(out, in);
    td_space_begin(s, out, TD_ALL_DIMS);
    td_space_add(s, in, TD_ALL_DIMS);
    if (s->total == 0)
        return true;
    td_collapse(&s->shape, s->operands, s->stride);
    p.along = take_innermost(s);
    if (s->shape.count == 0)
        return td_parallel_for(s->total, grain, copy_line, &p);
    p.down = take_innermost(s);
    /* views: walk along the longer of two sides */
    if (p.along.size < SIDE && p.along.size < p.down.size) {
        const walk along = p.along;
        p.along = p.down;
        p.down = along;
    }
    /* views: share the strips among threads */
    const int64_t matrix = p.down.size * p.along.size;
    return td_parallel_for(s->total / matrix * strips_of(&p),
                           grain / (SIDE * p.along.size) + 1, copy_strips,
                           &p);
}

/* views: function td_copied */
td_tensor *td_copied_to(const td_tensor *x, td_dtype dtype,
                        td_device device)
{
    td_tensor *y = td_tensor_new(td_shape_of(x), dtype, device);
    if (y == NULL || td_copy_elements(y, x))
        return y;
    td_discard(y);
    return NULL;
}

td_tensor *td_copied(const td_tensor *x, td_dtype dtype)
{
    return td_copied_to(x, dtype, td_device_of(x));
}

/* views: function joins of a list */
static bool is_old_empty(const td_tensor *x)
{
    return x->rank == 1 && x->shape[0] == 0;
}

static bool joins(const td_tensor *a, const td_tensor *b, int dim,
                  int number)
{
    bool same = a->rank == b->rank || (dim >= 0 && is_old_empty(b));
    for (int d = 0; same && b->rank == a->rank && d < a->rank; d++)
        same = d == dim || a->shape[d] == b->shape[d];
    if (same)
        return true;
    char left[TD_SHAPE_TEXT], right[TD_SHAPE_TEXT], along[40] = "";
    if (dim >= 0)
        snprintf(along, sizeof along, " but for dimension %d", dim);
    return td_fail(TD_ERROR_RUNTIME, "cat", "tensor %d has shape %s, "
                   "expected %s as the first%s", number,
                   td_shape_text(b, left), td_shape_text(a, right),
                   along);
}

/* views: function length_of */
static int64_t length_of(const td_tensor *x, int rank, int dim,
                         int more)
{
    return more ? 1 : x->rank == rank ? x->shape[dim] : 0;
}

/* views: function join_kernel */
bool join_kernel(td_call *call)
{
    const int more = td_is(call, stack);
    td_tensor *const *at = call->in[0].as.tensors.at;
    const int n = call->in[0].as.tensors.count;
    /* views: find the first of the list, and the dimension */
    int from = 0;
    if (n == 0)
        return td_refuse(call, "expected a non-empty list of tensors");
    while (more == 0 && from + 1 < n && is_old_empty(at[from]))
        from++;
    const td_tensor *first = at[from];
    const int rank = first->rank + more;
    /* views: refuse ranks that cannot be joined */
    if (rank > TD_MAX_RANK || rank == 0)
        return td_refuse(call, "the result would have %d dimensions, "
                         "expected 1 to %d", rank, TD_MAX_RANK);
    const int dim = td_dimension(call, td_number(call, 0, 0), rank);
    td_dims shape = { rank, { 0 } };
    td_dtype dtype = first->dtype;
    if (td_failed())
        return false;
    for (int d = 0; d < rank; d++)
        if (d != dim)
            shape.at[d] = first->shape[d - (more && d > dim)];
    /* views: add up the sizes to be joined */
    for (int i = 0; i < n; i++) {
        if (!joins(first, at[i], more ? -1 : dim, i))
            return false;
        if (!td_add_size(shape.at[dim], length_of(at[i], shape.count, dim,
                                                  more), &shape.at[dim]))
            return td_refuse(call, "too many elements");
        dtype = td_promote(dtype, at[i]->dtype);
    }
    td_tensor *y = td_tensor_new(shape, dtype, td_device_of(first));
    bool ok = td_return(call, y);
    int64_t offset = 0;
    /* views: copy each part into its window */
    for (int i = 0; ok && i < n; i++) {
        td_tensor window = td_look(y);
        window.offset = offset;
        window.shape[dim] = length_of(at[i], y->rank, dim, more);
        offset += window.shape[dim] * y->strides[dim];
        if (more)
            td_drop_dim(&window, dim);
        ok = td_copy_elements(&window, at[i]);
    }
    return ok;
}

/* views: function td_writes_alone */
bool td_writes_alone(const td_tensor *x)
{
    for (int d = 0; d < x->rank; d++)
        if (x->strides[d] == 0 && x->shape[d] > 1 && td_numel(x) > 0)
            return td_fail(TD_ERROR_RUNTIME, "tensor",
                "dimension %d of the tensor is expanded, several "
                "elements share one place; clone it before writing", d);
    return true;
}

/* views: function changed */
static bool changed(td_call *call, td_tensor *x)
{
    td_bump_version(x);
    return td_return(call, td_share(x));
}

/* views: function clone_kernel */
TD_KERNEL(clone, x)
{
    return td_return(call, td_copied(x, x->dtype));
}

/* views: function to_kernel */
TD_KERNEL(to, x)
{
    return td_return(call, td_copied(x,
        td_v_get_dtype(&call->attr[0], x->dtype)));
}

/* views: function fill__kernel */
TD_KERNEL(fill_, x)
{
    const td_scalar value = call->n_attr > 0
        ? call->attr[0].as.scalar : td_int(0);          /* of zero_ */
    td_tensor places = td_look(x);
    for (int d = 0; d < x->rank; d++)
        if (x->strides[d] == 0 && x->shape[d] > 1)
            places.shape[d] = 1;
    return td_fill_all(&places, value) && changed(call, x);
}

/* views: function copy__kernel */
TD_KERNEL(copy_, x)
{
    td_tensor *from = td_input(call, 1);
    td_dims both;
    if (!td_writes_alone(x)
        || !td_broadcast_shapes("copy_", x, from, &both))
        return false;
    const td_dims shape = td_shape_of(x);
    /* views: refuse a source of larger shape */
    if (!td_dims_equal(&both, &shape))
        return td_refuse(call, "the second shape cannot be copied into the "
                         "first");
    td_tensor *aside = x->storage != from->storage ? NULL
                     : td_copied(from, from->dtype);
    const bool ok = !td_failed()
        && td_copy_elements(x, aside ? aside : from);
    td_discard(aside);
    return ok && changed(call, x);
}

/* views: typed functions that copy */
td_tensor *td_contiguous(td_tensor *x)
{
    if (x != NULL && td_is_contiguous(x))
        return td_share(x);
    return TD_CALL(contiguous, x);
}

td_tensor *td_to(td_tensor *x, td_dtype dtype)
{
    if (x != NULL && x->dtype == dtype)
        return td_share(x);
    return TD_CALL(to, x, { .kind = TD_DTYPE, .as.dtype = dtype });
}
TD_OF_ONE(clone)
#define JOINED(op)                                                    \
    td_tensor *td_##op(td_tensor *const *tensors, int n, int dim)     \
    {                                                                 \
        return TD_RUN(op, (td_v_tensors(n, tensors)), td_v_int(dim)); \
    }
JOINED(cat)
JOINED(stack)
TD_OF_TWO(copy_)
TD_TYPED(fill_, (td_v_scalar(value)), td_scalar value)
TD_OF_ONE(zero_)
