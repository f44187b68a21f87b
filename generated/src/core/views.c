/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "views": edit that, not this file. */
#include "core/registry.h"
#include "core/tensor.h"

/* views: functions that read a call for views */
td_dims td_numbers(const td_call *call, int k)
{
    td_dims dims;
    td_v_dims(call, &call->attr[k], &dims);
    return dims;
}

int td_dim_of(const td_call *call)
{
    return td_dimension(call, td_number(call, 0, 0),
                        td_input(call, 0)->rank);
}

/* views: function exchange */
static bool exchange(const td_tensor *x, int a, int b, td_tensor *y)
{
    y->shape[a] = x->shape[b], y->shape[b] = x->shape[a];
    y->strides[a] = x->strides[b], y->strides[b] = x->strides[a];
    return true;
}

/* views: view transpose */
TD_LOOK(transpose)
{
    const int a = td_dim_of(call);
    return exchange(x, a, td_dimension(call, td_number(call, 1, 1),
                                       x->rank), y);
}

/* views: view t */
TD_LOOK(t)
{
    return (x->rank <= 2
            || td_refuse(call, "expected at most 2 dimensions"))
        && exchange(x, 0, x->rank == 2, y);
}

/* views: view permute */
TD_LOOK(permute)
{
    const td_dims dims = td_numbers(call, 0);
    unsigned seen = 0;
    if (dims.count != x->rank)
        return td_refuse(call, "%d dimensions were given, expected all",
                         dims.count);
    for (int d = 0; d < x->rank; d++) {
        /* views: take dimension d of the permutation */
        const int from = td_dimension_once(call, dims.at[d], x->rank, &seen);
        y->shape[d] = x->shape[from];
        y->strides[d] = x->strides[from];
    }
    return true;
}

/* views: function fold_strides */
static bool fold_strides(const td_tensor *x, const td_dims *shape,
                         int64_t *strides)
{
    /* seam: exercise seam */
    int d = shape->count - 1;
    int64_t run = 1, step = x->rank ? x->strides[x->rank - 1] : 1;
    for (int old = x->rank - 1; old >= 0; old--) {
        run *= x->shape[old];
        const bool seam = old == 0 || (x->shape[old - 1] != 1
            && x->strides[old - 1] != run * step);
        if (!seam)
            continue;
        int64_t left = run;
        int64_t at = step;
        while (d >= 0 && (left > 1 || shape->at[d] == 1)) {
            if (left % shape->at[d] != 0)
                return false;
            left /= shape->at[d];
            strides[d] = at;
            at *= shape->at[d--];
        }
        if (left != 1)
            return false;
        if (old > 0)
            step = x->strides[old - 1];
        run = 1;
    }
    while (d >= 0)
        strides[d--] = step;
    return true;
}

/* views: function fold of views */
static bool fold(td_tensor *y, const td_dims *shape)
{
    int64_t strides[TD_MAX_RANK] = { 0 };
    const bool empty = td_numel(y) == 0;
    if (!empty && !fold_strides(y, shape, strides))
        return false;
    td_lay(y, shape, empty ? NULL : strides);
    return true;
}

/* views: function refuse_to_fold */
static bool refuse_to_fold(const td_tensor *x, const td_dims *shape)
{
    char from[TD_SHAPE_TEXT], to[TD_SHAPE_TEXT];
    return td_fail(TD_ERROR_RUNTIME, "tensor", "shape %s is invalid "
        "for input of shape %s: it must multiply to %" PRId64,
        td_dims_text(shape, to), td_shape_text(x, from), td_numel(x));
}

/* views: function td_infer_size */
bool td_infer_size(const td_tensor *x, td_dims *shape)
{
    int64_t known = 1, numel = td_numel(x);
    int unknown = -1, inferred = 0;
    for (int d = 0; d < shape->count; d++) {
        if (shape->at[d] == -1)
            unknown = d, inferred++;
        else if (shape->at[d] < 0 ||
                 !td_mul_size(known, shape->at[d], &known))
            return refuse_to_fold(x, shape);
    }
    /* views: divide for the size left open */
    if (inferred > 1)
        return td_fail(TD_ERROR_RUNTIME, "tensor",
                       "only one dimension can be inferred");
    if (inferred && (known == 0 || numel % known != 0))
        return refuse_to_fold(x, shape);
    if (inferred)
        shape->at[unknown] = numel / known;
    return inferred || known == numel
        || refuse_to_fold(x, shape);
}

/* views: view view */
TD_LOOK(view)
{
    char to[TD_SHAPE_TEXT];
    td_dims shape = td_numbers(call, 0);
    return td_infer_size(x, &shape) && (fold(y, &shape)
        || td_refuse(call, "size %s is not compatible with the strides "
                     "of the input; use reshape, which copies",
                     td_dims_text(&shape, to)));
}

/* views: function fold_or_copy */
static bool fold_or_copy(td_call *call, const td_tensor *x,
                         const td_dims *shape)
{
    td_tensor y = td_look(x);
    if (fold(&y, shape))
        return td_return(call, td_tensor_alias(&y));
    const td_dims old = td_shape_of(x);
    td_tensor *copy = td_tensor_new(*shape, x->dtype, td_device_of(x));
    if (!td_return(call, copy))
        return false;
    td_tensor straight = td_look(copy);
    return fold(&straight, &old) && td_copy_elements(&straight, x);
}

/* views: function reshape_kernel */
TD_KERNEL(reshape, x)
{
    td_dims shape = td_numbers(call, 0);
    return td_infer_size(x, &shape) && fold_or_copy(call, x, &shape);
}

/* views: function flatten_kernel */
TD_KERNEL(flatten, x)
{
    const int first = td_dim_of(call);
    const int last = td_dimension(call, td_number(call, 1, -1),
                                  x->rank);
    if (first > last)
        return td_refuse(call, "start_dim %d comes after end_dim %d",
                         first, last);
    /* views: multiply the sizes to be flattened */
    td_dims shape = { x->rank == 0, { 1 } };
    for (int d = 0; d < x->rank; d++)
        if (d > first && d <= last)
            shape.at[shape.count - 1] *= x->shape[d];
        else
            shape.at[shape.count++] = x->shape[d];
    return fold_or_copy(call, x, &shape);
}

/* views: view unsqueeze */
TD_LOOK(unsqueeze)
{
    if (x->rank == TD_MAX_RANK)
        return td_refuse(call, "a tensor has at most %d dimensions",
                         TD_MAX_RANK);
    const int at = td_dimension(call, td_number(call, 0, 0),
                                x->rank + 1);
    td_dims shape = { x->rank + 1, { 0 } };
    for (int d = 0; d < shape.count; d++)
        shape.at[d] = d == at ? 1 : x->shape[d - (d > at)];
    return fold(y, &shape);
}

/* views: function td_drop_dim */
void td_drop_dim(td_tensor *y, int dim)
{
    y->rank--;
    for (int d = dim; d < y->rank; d++) {
        y->shape[d] = y->shape[d + 1];
        y->strides[d] = y->strides[d + 1];
    }
}

/* views: view squeeze */
TD_LOOK(squeeze)
{
    const bool all = call->attr[0].kind != TD_INTS;
    const td_dims dims = td_numbers(call, 0);
    unsigned named = 0;
    for (int i = 0; i < dims.count; i++)
        named |= 1u << td_dimension(call, dims.at[i], x->rank);
    for (int d = x->rank - 1; d >= 0; d--)
        if (x->shape[d] == 1 && (all || named >> d & 1))
            td_drop_dim(y, d);
    return true;
}

/* views: view expand */
TD_LOOK(expand)
{
    const td_dims size = td_numbers(call, 0);
    const int more = size.count - x->rank;
    if (more < 0)
        return td_refuse(call, "%d sizes are too few", size.count);
    y->rank = size.count;
    for (int d = 0; d < size.count; d++) {
        /* views: expand dimension d or refuse */
        const int64_t have = d < more ? 1 : x->shape[d - more];
        const int64_t want = size.at[d] == -1 && d >= more ? have : size.at[d];
        if (want < 0 || (have != want && have != 1))
            return td_fail(TD_ERROR_RUNTIME, "expand", "size %" PRId64
                " of dimension %d cannot be expanded to %" PRId64, have, d,
                want);
        y->shape[d] = want;
        y->strides[d] = d < more || have != want ? 0 : x->strides[d - more];
    }
    return true;
}

/* views: function clip */
static int64_t clip(int64_t at, int64_t size)
{
    at += at < 0 ? size : 0;
    return at < 0 ? 0 : at > size ? size : at;
}

/* views: view slice */
TD_LOOK(slice)
{
    const int64_t step = td_number(call, 3, 1);
    if (x->rank == 0)
        return td_fail(TD_ERROR_INDEX, "slice", "a tensor of rank 0 "
                       "cannot be sliced");
    const int d = td_dim_of(call);
    if (step <= 0)
        return td_fail(TD_ERROR_VALUE, "slice", "step must be greater "
            "than zero, got %" PRId64, step);
    const int64_t size = x->shape[d];
    const int64_t from = clip(td_number(call, 1, 0), size);
    const int64_t to = clip(td_number(call, 2, size), size);
    /* views: take the elements of the slice */
    y->shape[d] = to > from ? (to - from - 1) / step + 1 : 0;
    y->offset += y->shape[d] > 0 ? from * x->strides[d] : 0;
    y->strides[d] *= y->shape[d] > 1 ? step : 1;
    return true;
}

/* views: view select */
TD_LOOK(select)
{
    const int64_t index = td_number(call, 1, 0);
    if (x->rank == 0)
        return td_fail(TD_ERROR_INDEX, "select", "a tensor of rank 0 "
                       "cannot be indexed; use item()");
    const int d = td_dim_of(call);
    const int64_t size = x->shape[d];
    if (index < -size || index >= size)
        return td_fail(TD_ERROR_INDEX, "select", "index %" PRId64
            " is out of bounds for dimension %d with size %" PRId64,
            index, d, size);
    y->offset += (index < 0 ? index + size : index) * x->strides[d];
    td_drop_dim(y, d);
    return true;
}

/* views: typed functions of views */
TD_OF_ONE(t)
TD_TYPED(transpose, (td_v_int(dim0), td_v_int(dim1)),
         int dim0, int dim1)
TD_TYPED(permute, (td_v_ints(&dims)), td_dims dims)
TD_TYPED(view, (td_v_ints(&size)), td_dims size)
TD_TYPED(reshape, (td_v_ints(&shape)), td_dims shape)
TD_TYPED(flatten, (td_v_int(start_dim), td_v_int(end_dim)),
         int start_dim, int end_dim)
TD_TYPED(unsqueeze, (td_v_int(dim)), int dim)
TD_TYPED(squeeze, (dims.count ? td_v_ints(&dims) : td_v_none()),
         td_dims dims)
TD_TYPED(expand, (td_v_ints(&size)), td_dims size)
TD_TYPED(select, (td_v_int(dim), td_v_int(index)),
         int dim, int64_t index)
TD_TYPED(slice, (td_v_int(dim), td_v_opt_int(start), td_v_opt_int(end),
                 td_v_int(step)),
         int dim, td_opt_i64 start, td_opt_i64 end, int64_t step)
