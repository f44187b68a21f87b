/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "views": edit that, not this file. */
#include <string.h>
#include "device.h"
#include "parallel.h"
#include "registry.h"

/* views: struct copy_plan */
typedef struct {
    td_dtype to, from;
    char *out;
    const char *in;
    int rank;
    int64_t shape[TD_MAX_RANK];
    int64_t out_step[TD_MAX_RANK], in_step[TD_MAX_RANK];
} copy_plan;

/* views: function add_dimension */
static void add_dimension(copy_plan *p, int64_t size, int64_t out_step,
                          int64_t in_step)
{
    const int last = p->rank - 1;
    if (size == 1)
        return;
    if (last >= 0 && p->out_step[last] == size * out_step
        && p->in_step[last] == size * in_step) {
        p->shape[last] *= size;
        p->out_step[last] = out_step;
        p->in_step[last] = in_step;
        return;
    }
    p->shape[p->rank] = size;
    p->out_step[p->rank] = out_step;
    p->in_step[p->rank++] = in_step;
}

/* views: function copy_tiles */
enum { TILE_ROWS = 16, TILE_COLUMNS = 256 };

static void copy_tiles(const copy_plan *p, char *out, const char *in,
                       int64_t row, int64_t rows)
{
    const int k = p->rank - 2, j = p->rank - 1;
    const int64_t os = (int64_t)td_dtype_size(p->to);
    const int64_t is = (int64_t)td_dtype_size(p->from);
    for (int64_t c = 0; c < p->shape[j]; c += TILE_COLUMNS) {
        const int64_t left = p->shape[j] - c;
        const int64_t n = left < TILE_COLUMNS ? left : TILE_COLUMNS;
        for (int64_t r = row; r < row + rows; r++)
            td_convert(p->to, out + (r * p->out_step[k]
                                     + c * p->out_step[j]) * os,
                       p->out_step[j], p->from,
                       in + (r * p->in_step[k]
                             + c * p->in_step[j]) * is,
                       p->in_step[j], n);
    }
}

/* views: function copy_units */
static bool copy_units(void *context, int64_t begin, int64_t end,
                       int worker)
{
    const copy_plan *p = context;
    const int64_t rows = p->shape[p->rank - 2];
    const int64_t blocks = (rows + TILE_ROWS - 1) / TILE_ROWS;
    (void)worker;
    for (int64_t unit = begin; unit < end; unit++) {
        /* views: find where the unit starts */
        int64_t at = unit / blocks, out = 0, in = 0;
        for (int d = p->rank - 3; d >= 0; d--) {
            out += at % p->shape[d] * p->out_step[d];
            in += at % p->shape[d] * p->in_step[d];
            at /= p->shape[d];
        }
        const int64_t row = unit % blocks * TILE_ROWS;
        copy_tiles(p, p->out + out * (int64_t)td_dtype_size(p->to),
                   p->in + in * (int64_t)td_dtype_size(p->from), row,
                   rows - row < TILE_ROWS ? rows - row : TILE_ROWS);
    }
    return true;
}

/* views: function copy_line */
static bool copy_line(void *context, int64_t begin, int64_t end,
                      int worker)
{
    const copy_plan *p = context;
    const int64_t out = p->rank ? p->out_step[0] : 1;
    const int64_t in = p->rank ? p->in_step[0] : 1;
    (void)worker;
    const int64_t os = (int64_t)td_dtype_size(p->to);
    const int64_t is = (int64_t)td_dtype_size(p->from);
    td_convert(p->to, p->out + begin * out * os, out, p->from,
               p->in + begin * in * is, in, end - begin);
    return true;
}

/* views: function td_copy_elements */
bool td_copy_elements(td_tensor *out, const td_tensor *in)
{
    copy_plan p = { .to = out->dtype, .from = in->dtype,
                    .out = td_at(out), .in = td_at(in) };
    const int more = out->rank - in->rank;
    int64_t n = 1, grain = 32768;
    if (!td_on_host(out) || !td_on_host(in))
        return td_copy_elsewhere(out, in);
    /* views: plan the copy dimension by dimension */
    for (int d = 0; d < out->rank; d++) {
        const bool repeat = d < more || in->shape[d - more] == 1;
        add_dimension(&p, out->shape[d], out->strides[d],
                      repeat ? 0 : in->strides[d - more]);
        n *= out->shape[d];
    }
    if (n == 0)
        return true;
    if (p.rank < 2)
        return td_parallel_for(n, grain, copy_line, &p);
    /* views: copy a plan with rows and columns */
    const int64_t rows = p.shape[p.rank - 2], width = p.shape[p.rank - 1];
    const int64_t blocks = (rows + TILE_ROWS - 1) / TILE_ROWS;
    const int64_t unit = (rows < TILE_ROWS ? rows : TILE_ROWS) * width;
    return td_parallel_for(n / (rows * width) * blocks, grain / unit + 1,
                           copy_units, &p);
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
    bool same = a->rank == b->rank || is_old_empty(b);
    for (int d = 0; same && b->rank == a->rank && d < a->rank; d++)
        same = d == dim || a->shape[d] == b->shape[d];
    if (same)
        return true;
    char left[TD_SHAPE_TEXT], right[TD_SHAPE_TEXT];
    return td_fail(TD_ERROR_RUNTIME, op, "tensor %d has shape %s, "
                   "which does not join %s along dimension %d", number,
                   td_shape_text(b, left), td_shape_text(a, right),
                   dim);
}
static bool first_of_list(td_call *call, int more, td_tensor **first,
                          int *dim)
{
    if (call->in[0].as.tensors.count == 0)
        return td_fail(TD_ERROR_RUNTIME, call->op->name,
                       "expected a non-empty list of tensors");
    const int n = call->in[0].as.tensors.count;
    int i = 0;
    while (more == 0 && i + 1 < n
           && is_old_empty(call->in[0].as.tensors.at[i]))
        i++;
    *first = call->in[0].as.tensors.at[i];
    /* views: refuse ranks that cannot be joined */
    const int rank = (*first)->rank + more;
    if (rank > TD_MAX_RANK || rank == 0)
        return td_fail(TD_ERROR_RUNTIME, call->op->name, "tensors of "
                       "rank %d cannot be joined", (*first)->rank);
    return td_wrap_dim(call->op->name, td_v_get_int(&call->attr[0], 0),
                       (*first)->rank + more, dim);
}
static bool copy_into_slices(td_tensor *y, td_tensor *const *at, int n,
                             int dim)
{
    td_tensor part = *y;
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
static int64_t integer_at(const td_tensor *index, int64_t i)
{
    const int64_t at = index->rank ? i * index->strides[0] : 0;
    const void *p = td_at(index);
    return index->dtype == TD_INT64 ? ((const int64_t *)p)[at]
                                    : ((const int32_t *)p)[at];
}
static bool gather(td_tensor *y, const td_tensor *x,
                   const td_tensor *index, int dim, int64_t n,
                   int64_t size)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = integer_at(index, i);
        if (at < 0 || at >= size)
            return td_fail(TD_ERROR_INDEX, "index_select", "index %lld "
                           "at position %lld is out of range for "
                           "dimension %d of size %lld", (long long)at,
                           (long long)i, dim, (long long)size);
    }
    /* views: copy one position after the other */
    td_tensor to = *y, from = *x;
    if (x->rank > 0)
        to.shape[dim] = from.shape[dim] = 1;
    for (int64_t i = 0; i < n; i++) {
        const int64_t step = x->rank ? x->strides[dim] : 0;
        to.offset = y->offset + (x->rank ? i * y->strides[dim] : 0);
        from.offset = x->offset + integer_at(index, i) * step;
        if (!td_copy_elements(&to, &from))
            return false;
    }
    return true;
}
static bool writes_alone(const char *op, const td_tensor *x)
{
    for (int d = 0; d < x->rank; d++)
        if (x->strides[d] == 0 && x->shape[d] > 1)
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

bool contiguous_kernel(td_call *call)
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
    td_tensor *const *at = call->in[0].as.tensors.at;
    td_tensor *first;
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
    td_tensor *const *at = call->in[0].as.tensors.at;
    td_tensor *first;
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
    if (!td_return(call, y))
        return false;
    /* views: copy each tensor of the stack */
    td_tensor part = *y;
    part.rank--;
    for (int d = dim; d < part.rank; d++) {
        part.shape[d] = y->shape[d + 1];
        part.strides[d] = y->strides[d + 1];
    }
    for (int i = 0; i < n; i++) {
        if (!td_copy_elements(&part, at[i]))
            return false;
        part.offset += y->strides[dim];
    }
    return true;
}
bool index_select_kernel(td_call *call)
{
    td_tensor *x = call->in[0].as.tensor;
    td_tensor *index = call->in[1].as.tensor;
    int dim;
    if (!td_wrap_dim("index_select", td_v_get_int(&call->attr[0], 0),
                     x->rank, &dim))
        return false;
    /* views: refuse what cannot be an index */
    if (index->dtype != TD_INT64 && index->dtype != TD_INT32)
        return td_fail(TD_ERROR_TYPE, "index_select", "argument "
                       "'index' must be int64 or int32, got %s",
                       td_dtype_name(index->dtype));
    if (index->rank > 1)
        return td_fail(TD_ERROR_INDEX, "index_select", "argument "
                       "'index' must be a vector, got rank %d",
                       index->rank);
    td_dims shape = td_shape_of(x);
    const int64_t n = td_numel(index);
    const int64_t size = x->rank ? x->shape[dim] : 1;
    if (x->rank > 0)
        shape.at[dim] = n;
    else if (n != 1)
        return td_fail(TD_ERROR_INDEX, "index_select", "a tensor of "
                       "rank 0 has one position, got %lld",
                       (long long)n);
    td_tensor *y = td_tensor_new(shape, x->dtype, td_device_of(x));
    if (!td_return(call, y))
        return false;
    return td_on_host(y) ? gather(y, x, index, dim, n, size)
         : td_compute_elsewhere(call, NULL, y->dtype, false);
}
bool fill__kernel(td_call *call)
{
    td_tensor *x = call->in[0].as.tensor;
    return writes_alone("fill_", x)
        && td_fill_all(x, call->attr[0].as.scalar)
        && changed(call, x);
}
bool zero__kernel(td_call *call)
{
    td_tensor *x = call->in[0].as.tensor;
    return writes_alone("zero_", x) && td_fill_all(x, td_int(0))
        && changed(call, x);
}
bool copy__kernel(td_call *call)
{
    td_tensor *x = call->in[0].as.tensor, *from = call->in[1].as.tensor;
    td_dims both;
    if (!writes_alone("copy_", x)
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
    if (x->storage != from->storage)
        return td_copy_elements(x, from) && changed(call, x);
    /* views: copy the source aside first */
    td_tensor *aside = copied(from, from->dtype);
    const bool ok = aside != NULL && td_copy_elements(x, aside);
    td_discard(aside);
    return ok && changed(call, x);
}

/* views: typed functions that copy */
td_tensor *td_contiguous(td_tensor *x)
{
    if (x != NULL && !td_failed() && td_is_contiguous(x))
        return td_share(x);
    return td_run1(&td_ops[TD_OP_contiguous], 1,
                   (td_value[]){ td_v_tensor(x) }, 0, NULL);
}
td_tensor *td_clone(td_tensor *x)
{
    return td_run1(&td_ops[TD_OP_clone], 1,
                   (td_value[]){ td_v_tensor(x) }, 0, NULL);
}
td_tensor *td_to(td_tensor *x, td_dtype dtype)
{
    if (x != NULL && !td_failed() && x->dtype == dtype)
        return td_share(x);
    const td_value attr = { .kind = TD_DTYPE, .as.dtype = dtype };
    return td_run1(&td_ops[TD_OP_to], 1,
                   (td_value[]){ td_v_tensor(x) }, 1, &attr);
}
td_tensor *td_cat(td_tensor *const *tensors, int n, int dim)
{
    const td_value attr = td_v_int(dim);
    return td_run1(&td_ops[TD_OP_cat], 1,
                   (td_value[]){ td_v_tensors(n, tensors) }, 1, &attr);
}
td_tensor *td_stack(td_tensor *const *tensors, int n, int dim)
{
    const td_value attr = td_v_int(dim);
    return td_run1(&td_ops[TD_OP_stack], 1,
                   (td_value[]){ td_v_tensors(n, tensors) }, 1, &attr);
}
td_tensor *td_index_select(td_tensor *x, int dim, td_tensor *index)
{
    const td_value attr = td_v_int(dim);
    return td_run1(&td_ops[TD_OP_index_select], 2,
        (td_value[]){ td_v_tensor(x), td_v_tensor(index) }, 1, &attr);
}
td_tensor *td_copy_(td_tensor *x, td_tensor *src)
{
    return td_run1(&td_ops[TD_OP_copy_], 2,
        (td_value[]){ td_v_tensor(x), td_v_tensor(src) }, 0, NULL);
}
td_tensor *td_fill_(td_tensor *x, td_scalar value)
{
    const td_value attr = td_v_scalar(value);
    return td_run1(&td_ops[TD_OP_fill_], 1,
                   (td_value[]){ td_v_tensor(x) }, 1, &attr);
}

td_tensor *td_zero_(td_tensor *x)
{
    return td_run1(&td_ops[TD_OP_zero_], 1,
                   (td_value[]){ td_v_tensor(x) }, 0, NULL);
}
