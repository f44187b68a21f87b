/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "tensors": edit that, not this file. */
#include "core/error.h"
#include "core/tensor.h"

/* tensors: function td_dims_text */
const char *td_dims_text(const td_dims *shape, char text[TD_SHAPE_TEXT])
{
    int at = snprintf(text, TD_SHAPE_TEXT, "[");
    for (int d = 0; d < shape->count && d < TD_MAX_RANK; d++)
        at += snprintf(text + at, (size_t)(TD_SHAPE_TEXT - at),
                       "%s%" PRId64, d ? ", " : "", shape->at[d]);
    snprintf(text + at, (size_t)(TD_SHAPE_TEXT - at), "]");
    return text;
}

/* tensors: function td_dims_equal */
bool td_dims_equal(const td_dims *a, const td_dims *b)
{
    bool same = a->count == b->count;
    for (int d = 0; same && d < a->count; d++)
        same = a->at[d] == b->at[d];
    return same;
}

/* tensors: function td_dims_numel */
bool td_dims_numel(const char *operation, const td_dims *shape,
                   int64_t *numel)
{
    if (shape->count < 0 || shape->count > TD_MAX_RANK)
        return td_fail(TD_ERROR_VALUE, operation, "expected at most "
                       "%d dimensions, got %d", TD_MAX_RANK,
                       shape->count);
    int64_t n = 1;
    bool empty = false;
    for (int d = 0; d < shape->count; d++) {
        /* tensors: refuse a negative size */
        if (shape->at[d] < 0)
            return td_fail(TD_ERROR_RUNTIME, operation, "size %" PRId64
                " of dimension %d is negative", shape->at[d], d);
        empty |= shape->at[d] == 0;
        /* tensors: multiply the sizes without overflow */
        if (shape->at[d] != 0 && !td_mul_size(n, shape->at[d], &n)) {
            char text[TD_SHAPE_TEXT];
            td_dims_text(shape, text);
            return td_fail(TD_ERROR_RUNTIME, operation, "shape %s has more "
                           "elements than an int64 can count", text);
        }
    }
    *numel = empty ? 0 : n;
    return true;
}

/* tensors: function td_wrap_dim */
bool td_wrap_dim(const char *operation, int64_t dim, int rank, int *out)
{
    const int range = rank > 0 ? rank : 1;
    if (dim < -range || dim >= range)
        return td_fail(TD_ERROR_INDEX, operation, "dimension out of "
            "range (expected to be in range of [%d, %d], but got %"
            PRId64 ")", -range, range - 1, dim);
    *out = (int)(dim < 0 ? dim + range : dim);
    return true;
}

/* tensors: function td_dims_strides */
void td_dims_strides(const td_dims *shape, int64_t *strides)
{
    int64_t step = 1;
    for (int d = shape->count - 1; d >= 0; d--) {
        strides[d] = step;
        step *= shape->at[d] > 0 ? shape->at[d] : 1;
    }
}

/* tensors: functions between numbers and indices */
void td_unravel(int64_t number, const td_dims *shape, int64_t *index)
{
    for (int d = shape->count - 1; d > 0; d--) {
        index[d] = number % shape->at[d];
        number /= shape->at[d];
    }
    if (shape->count > 0)
        index[0] = number;
}

int64_t td_ravel(const int64_t *index, const td_dims *shape,
                 const int64_t *strides)
{
    int64_t at = 0;
    for (int d = 0; d < shape->count; d++)
        at += index[d] * strides[d];
    return at;
}

/* tensors: function refuse_to_broadcast */
static bool refuse_to_broadcast(const char *operation, const td_dims *a,
                                const td_dims *b, int d, int64_t x,
                                int64_t y)
{
    char left[TD_SHAPE_TEXT], right[TD_SHAPE_TEXT];
    return td_fail(TD_ERROR_RUNTIME, operation, "shapes %s and %s do "
        "not broadcast (dimension %d: %" PRId64 " against %" PRId64 ")",
        td_dims_text(a, left), td_dims_text(b, right), d, x, y);
}

/* tensors: function td_broadcast_dims */
bool td_broadcast_dims(const char *operation, const td_dims *a,
                       const td_dims *b, td_dims *out)
{
    /* broadcast: exercise broadcast */
    const int rank = a->count > b->count ? a->count : b->count;
    td_dims shape = { rank, { 0 } };
    for (int d = 0; d < rank; d++) {
        const int from_a = d - (rank - a->count);
        const int from_b = d - (rank - b->count);
        const int64_t x = from_a < 0 ? 1 : a->at[from_a];
        const int64_t y = from_b < 0 ? 1 : b->at[from_b];
        if (x != y && x != 1 && y != 1)
            return refuse_to_broadcast(operation, a, b, d, x, y);
        shape.at[d] = x == 1 ? y : x;
    }
    *out = shape;
    return true;
}

/* tensors: functions that broadcast tensors */
bool td_broadcast_shapes(const char *operation, const td_tensor *a,
                         const td_tensor *b, td_dims *out)
{
    const td_dims x = td_shape_of(a), y = td_shape_of(b);
    return td_broadcast_dims(operation, &x, &y, out);
}
