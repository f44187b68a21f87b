/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "views": edit that, not this file. */
#include "core/space.h"

/* views: function td_space_begin */
void td_space_begin(td_space *s, const td_tensor *x, unsigned dims)
{
    s->shape.count = s->operands = 0;
    s->total = 1;
    for (int d = 0; d < x->rank; d++)
        if (dims >> d & 1) {
            s->shape.at[s->shape.count++] = x->shape[d];
            s->total *= x->shape[d];
        }
    td_space_add(s, x, dims);
}

/* views: function td_space_add */
void td_space_add(td_space *s, const td_tensor *x, unsigned dims)
{
    const int k = s->operands++;
    int to = s->shape.count;
    s->data[k] = td_at(x);
    s->dtype[k] = x->dtype;
    s->size[k] = (int64_t)td_dtype_size(x->dtype);
    for (int d = x->rank - 1; d >= 0; d--)
        if (dims >> d & 1)
            s->stride[k][--to] = x->shape[d] == 1 ? 0 : x->strides[d];
    while (to > 0)
        s->stride[k][--to] = 0;
}

/* views: function td_space_place */
void *td_space_place(const td_space *s, int k, int64_t i)
{
    const int64_t *stride = s->stride[k];
    int64_t offset = 0;
    for (int d = s->shape.count - 1; d > 0; d--) {
        const int64_t size = s->shape.at[d], rest = i / size;
        offset += (i - rest * size) * stride[d];
        i = rest;
    }
    if (i > 0)
        offset += i * stride[0];
    return s->data[k] + offset * s->size[k];
}

/* views: function joins */
/* Can dimension d, and e inside it, be walked as one? */
static bool joins(const td_dims *shape, int operands,
                  td_steps *stride, int d, int e)
{
    for (int k = 0; k < operands; k++)
        if (stride[k][d] != stride[k][e] * shape->at[e])
            return false;
    return true;
}

/* views: function move_dimension */
static void move_dimension(td_dims *shape, int operands,
                           td_steps *stride, int to, int from)
{
    shape->at[to] = shape->at[from];
    for (int k = 0; k < operands; k++)
        stride[k][to] = stride[k][from];
}

/* views: function td_collapse */
void td_collapse(td_dims *shape, int operands, td_steps *stride)
{
    /* collapse: exercise collapse */
    int kept = 0;
    for (int d = 0; d < shape->count; d++) {
        int64_t times = 1;
        if (shape->at[d] == 1)
            continue;
        if (kept > 0 && joins(shape, operands, stride, kept - 1, d))
            times = shape->at[--kept];
        move_dimension(shape, operands, stride, kept, d);
        shape->at[kept++] *= times;
    }
    if (kept == 0) {
        shape->at[kept++] = 1;
        for (int k = 0; k < operands; k++)
            stride[k][0] = 0;
    }
    shape->count = kept;
}

/* views: function td_space_carry */
void td_space_carry(const td_space *s, int k, void *data, int64_t start,
                    int64_t n, td_dtype as, void *block, bool back)
{
    const int row = s->shape.count - 1;
    const int64_t stride = s->stride[k][row];
    const int64_t down = row > 0 ? s->stride[k][row - 1] : 0;
    const int64_t size = (int64_t)td_dtype_size(as);
    int64_t index[TD_MAX_RANK], run;
    if (n > 0)          /* or there may be no first element */
        td_unravel(start, &s->shape, index);
    for (; n > 0; n -= run) {
        int64_t offset = 0;
        for (int d = 0; d <= row; d++)
            offset += index[d] * s->stride[k][d];
        char *at = (char *)data + offset * s->size[k];
        run = td_least(n, s->shape.at[row] - index[row]);
        if (back)
            td_convert(s->dtype[k], at, stride, as, block, 1, run);
        else if (stride == 0 && row > 0 && run == s->shape.at[row]) {
            /* views: spread the numbers of several rows */
            const int64_t rows = td_least(n / run, s->shape.at[row - 1]
                                                   - index[row - 1]);
            td_convert_each(as, block, run, s->dtype[k], at, down, rows);
            index[row - 1] += rows - 1;
            block = (char *)block + (rows - 1) * run * size;
            n -= (rows - 1) * run;
        } else
            td_convert(as, block, 1, s->dtype[k], at, stride, run);
        block = (char *)block + run * size;
        /* views: move on, not past the end of the row */
        index[row] += run;
        for (int d = row; d > 0 && index[d] == s->shape.at[d]; d--) {
            index[d] = 0;
            index[d - 1]++;
        }
    }
}

/* views: functions of lines */
int td_lines_add(td_lines *l, const td_tensor *x, int dim)
{
    const int k = l->space.operands;
    const bool single = dim < 0 || x->rank == 0;
    const unsigned dims = single ? TD_ALL_DIMS : ~(1u << dim);
    if (k == 0)
        td_space_begin(&l->space, x, dims);
    else
        td_space_add(&l->space, x, dims);
    l->step[k] = single ? 1 : x->strides[dim];
    l->size[k] = single ? 1 : x->shape[dim];
    return k;
}
void td_lines_carry(const td_lines *l, int k, int64_t i, td_dtype as,
                    void *block, bool back)
{
    const td_dtype own = l->space.dtype[k];
    void *at = td_space_place(&l->space, k, i);
    if (back)
        td_convert(own, at, l->step[k], as, block, 1, l->size[k]);
    else
        td_convert(as, block, 1, own, at, l->step[k], l->size[k]);
}
td_tensor td_look_as(const td_tensor *fresh, const td_dims *shape)
{
    td_tensor y = td_look(fresh);
    td_lay(&y, shape, NULL);
    return y;
}
