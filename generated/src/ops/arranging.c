/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "arranging": edit that, not this file. */
/* Composites, views and copies that arrange elements, and products by
   subscripts. */
#include "ops/composite.h"
#include "ops/reductions.h"
#include <treadle/treadle.h>

/* arranging: helpers of this chapter */
static int64_t *room_for(int64_t n)
{
    return td_failed() ? NULL
                       : td_alloc_array((size_t)n + 1, sizeof(int64_t));
}

/* Positions at[0..n) of dimension d; `at` comes from room_for(n). */
static td_tensor *pick(td_tensor *x, int d, int64_t n, int64_t *at)
{
    td_tensor *v = at ? td_from_data(at, TD_DIMS(n),
                                     td_beside(x, TD_INT64)) : NULL;
    TD_FREE_ARRAY(at, n + 1);
    return td_index_select(x, d, v);
}
/* pictures: function margins */
static td_dims margins(const td_call *call)
{
    const td_dims pad = td_numbers(call, 0);
    for (int i = 0; i < pad.count; i++)
        if (pad.at[i] > INT64_C(1) << 60
            || pad.at[i] < -(INT64_C(1) << 60))
            td_refuse(call, "a margin is out of range");
    if (pad.count % 2 != 0 || pad.count / 2 > td_input(call, 0)->rank)
        td_refuse(call, "expected two margins for each of the last "
               "dimensions");
    return td_failed() ? TD_RANK_0 : pad;
}
/* arranging: kernels that arrange */
TD_KERNEL(flip, x)
{
    td_tensor from = td_look(x);
    const td_dims dims = td_numbers(call, 0);
    unsigned seen = 0;
    for (int i = 0; i < dims.count; i++) {
        const int d = td_dimension_once(call, dims.at[i], x->rank,
                                        &seen);
        if (x->rank == 0 || x->shape[d] < 2)
            continue;
        from.offset += (x->shape[d] - 1) * x->strides[d];
        from.strides[d] = -x->strides[d];
    }
    return !td_failed()
        && td_return(call, td_tensor_like(x, x->dtype))
        && td_copy_elements(call->out[0], &from);
}

TD_LOOK(diagonal)
{
    /* arranging: find where the diagonal starts and how it steps */
    const int64_t k = td_number(call, 0, 0);
    const int a = td_dimension(call, td_number(call, 1, 0), x->rank);
    const int b = td_dimension(call, td_number(call, 2, 1), x->rank);
    if (td_failed() || a == b)
        return td_refuse(call, "the two dimensions must be different");
    const int64_t m = x->shape[a] + (k < 0 ? k : 0);
    const int64_t n = x->shape[b] - (k > 0 ? k : 0);
    const int64_t size = m < n ? m : n;
    if (size > 0)
        y->offset += k < 0 ? -k * x->strides[a] : k * x->strides[b];
    td_drop_dim(y, a > b ? a : b);
    td_drop_dim(y, a > b ? b : a);
    y->shape[y->rank] = size > 0 ? size : 0;
    y->strides[y->rank++] = x->strides[a] + x->strides[b];
    return true;
}
/* arranging: functions that arrange */
TD_COMPOSED(narrow, x)
{
    const int64_t start = td_number(call, 1, 0);
    const int64_t length = td_number(call, 2, 0);
    const int d = td_dim_of(call);
    const int64_t n = x->shape[d], from = start < 0 ? start + n : start;
    const bool outside = from < 0 || from > n;
    if (x->rank == 0 || outside || length < 0 || length > n - from)
        td_fail(outside ? TD_ERROR_INDEX : TD_ERROR_RUNTIME, "narrow",
            "start %" PRId64 " and length %" PRId64 " do not fit "
            "dimension %d with size %" PRId64, start, length, d, n);
    return td_part(x, d, from, from + length);
}

TD_COMPOSED(unflatten, x)
{
    td_dims sizes = td_numbers(call, 1), shape = { 0, { 0 } };
    const int d = td_dim_of(call);
    if (x->rank == 0 || sizes.count == 0
        || x->rank - 1 + sizes.count > TD_MAX_RANK)
        return td_refuse(call, "expected 1 to 8 dimensions in all");
    /* arranging: give the open size what is left */
    td_tensor line = td_look(x);
    line.rank = 1;
    line.shape[0] = x->shape[d];
    td_infer_size(&line, &sizes);
    for (int i = 0; i < x->rank; i++)
        for (int k = 0; k < (i == d ? sizes.count : 1); k++)
            shape.at[shape.count++] = i == d ? sizes.at[k]
                                             : x->shape[i];
    return td_view(x, shape);
}

TD_COMPOSED(movedim, x)
{
    const td_dims from = td_numbers(call, 0), to = td_numbers(call, 1);
    td_dims order = { x->rank, { 0 } };
    unsigned taken = 0, filled = 0;
    if (from.count != to.count)
        return td_refuse(call, "expected as many destinations as "
                         "sources");
    for (int i = 0; i < from.count; i++) {
        const int s = td_dimension_once(call, from.at[i], x->rank,
                                        &taken);
        const int t = td_dimension_once(call, to.at[i], x->rank,
                                        &filled);
        order.at[t] = s;
    }
    if (td_failed())
        return NULL;
    for (int s = 0, t = 0; s < x->rank; s++) {
        while (filled >> t & 1)
            t++;
        if (!(taken >> s & 1))
            order.at[t++] = s;
    }
    return td_permute(x, order);
}

/* x with dimension d `times` as long; the copies of what lies from
   dimension `first` on stand side by side. */
static td_tensor *repeated(const td_call *call, td_tensor *x, int d,
                           int first, int64_t times)
{
    td_dims shape = td_shape_of(x), one = { 3, { 1, 1, 1 } };
    for (int i = 0; i < shape.count; i++)
        one.at[i < first ? 0 : 2] *= shape.at[i];
    td_dims all = one;
    all.at[1] = times;
    if (times < 0 || !td_mul_size(shape.at[d], times, &shape.at[d]))
        return td_refuse(call, "cannot repeat so often");
    return td_reshape(td_expand(td_reshape(x, one), all), shape);
}

static td_tensor *apart(td_tensor *y, const td_tensor *x)
{
    return y && (y->storage == x->storage || !td_is_contiguous(y))
         ? td_clone(y) : y;
}

TD_COMPOSED(repeat, x)
{
    td_tensor *y;
    const td_dims times = td_numbers(call, 0);
    if (td_is(call, repeat) && times.count < x->rank)
        return td_refuse(call, "there must be a count for each "
                         "dimension");
    const int rank = x->rank > times.count ? x->rank : times.count;
    td_dims shape = td_dims_of_ones(rank);
    for (int d = 0; d < x->rank; d++)
        shape.at[rank - x->rank + d] = x->shape[d];
    y = td_reshape(x, shape);
    for (int d = rank - 1, k = times.count - 1; k >= 0; d--, k--)
        if (times.at[k] != 1)
            y = repeated(call, y, d, d, times.at[k]);
    return apart(y, x);
}

TD_COMPOSED(repeat_interleave, x)
{
    td_tensor *y = x;
    const td_value *times = &call->in[1];
    td_tensor *each = times->kind == TD_SCALAR ? NULL
                    : times->as.tensor;
    const int64_t wanted = td_number(call, 1, -1);
    const int d = td_dim_of(call);
    if (call->attr[0].kind == TD_NONE || x->rank == 0)
        y = td_reshape(x, TD_DIMS(-1));
    if (each == NULL || td_numel(each) == 1) {
        y = repeated(call, y, d, d + 1, each ? td_item_int(each)
                     : td_scalar_int(times->as.scalar));
    } else if (y != NULL) {
        /* arranging: pick each position as often as wanted */
        int64_t total = 0;
        const int64_t n = td_numel(each);
        td_tensor *c = td_contiguous(each);
        if (!td_dtype_is_integer(each->dtype) || each->rank > 1
            || n != (y->rank > 0 ? y->shape[d] : 1))
            return td_refuse(call, "expected a vector of integers, one "
                             "for each position");
        for (int64_t i = 0; i < n && !td_failed(); i++) {
            const int64_t more = td_scalar_int(td_element(c, i));
            if (more < 0 || !td_add_size(total, more, &total))
                td_refuse(call, "cannot repeat so often");
        }
        int64_t *at = room_for(total);
        for (int64_t i = 0, k = 0; at != NULL && i < n; i++)
            for (int64_t t = td_scalar_int(td_element(c, i)); t > 0; t--)
                at[k++] = i;
        y = pick(y, d, total, at);
    }
    if (y != NULL && wanted >= 0 && y->shape[d] != wanted)
        return td_refuse(call, "output_size is not the sum of repeats");
    return apart(y, x);
}

static td_tensor *rolled(td_tensor *x, int d, int64_t shift)
{
    const int64_t n = x && x->rank > 0 ? x->shape[d] : 0;
    const int64_t by = n > 0 ? (shift % n + n) % n : 0;
    if (by == 0)
        return x;
    td_tensor *const parts[] = { td_part(x, d, n - by, n),
                                 td_part(x, d, 0, n - by) };
    return td_cat(parts, 2, d);
}

TD_COMPOSED(roll, x)
{
    td_tensor *y = x;
    const td_dims shifts = td_numbers(call, 0);
    const td_dims dims = td_numbers(call, 1);
    if (shifts.count == 0
        || shifts.count != (dims.count ? dims.count : 1))
        return td_refuse(call, "expected a shift for each dimension");
    for (int i = 0; i < dims.count; i++)
        y = rolled(y, td_dimension(call, dims.at[i], x->rank),
                   shifts.at[i]);
    if (dims.count == 0)
        y = td_reshape(rolled(td_flatten(x, 0, -1), 0, shifts.at[0]),
                       td_shape_of(x));
    return apart(y, x);
}

TD_COMPOSED(rot90, x)
{
    td_dims dims = td_numbers(call, 1);
    const int64_t turns = (td_number(call, 0, 1) % 4 + 4) % 4;
    if (dims.count == 0)
        dims = TD_DIMS(0, 1);
    const int a = td_dimension(call, dims.at[0], x->rank);
    const int b = td_dimension(call, dims.at[1], x->rank);
    if (dims.count != 2 || x->rank < 2 || a == b)
        return td_refuse(call, "expected two dimensions to turn in");
    return turns == 0 ? td_clone(x) : turns == 2 ? td_flip(x, dims)
         : td_transpose(td_flip(x, TD_DIMS(turns == 1 ? b : a)), a, b);
}

TD_COMPOSED(tril, x)
{
    const bool upper = td_is(call, triu);
    const td_tensor_options o = td_beside(x, TD_INT64);
    if (x->rank < 2)
        return td_refuse(call, "expected at least two dimensions");
    const int64_t m = td_size(x, -2), n = td_size(x, -1);
    int64_t k = td_number(call, 0, 0);
    k = k < -m ? -m : k > n ? n : k;
    td_tensor *edge = td_unsqueeze(td_count_up(k, k + m, o), 1);
    td_tensor *j = td_count_up(0, n, o);
    return td_where_scalar(upper ? td_ge(j, edge) : td_le(j, edge), x,
                           td_boolean(false));
}

static td_tensor *embedded(const td_call *call, td_tensor *x, int64_t k,
                           int64_t dim1, int64_t dim2)
{
    if (x->rank == 0 || x->rank == TD_MAX_RANK)
        return td_refuse(call, "expected 1 to 7 dimensions");
    if (k > INT64_C(1) << 60 || k < -(INT64_C(1) << 60))
        return td_refuse(call, "the diagonal is out of range");
    const int64_t n = td_size(x, -1) + (k < 0 ? -k : k);
    const int a = td_dimension(call, dim1, x->rank + 1);
    const int b = td_dimension(call, dim2, x->rank + 1);
    td_dims shape = { x->rank + 1, { 0 } };
    for (int d = 0, from = 0; d <= x->rank; d++)
        shape.at[d] = d == a || d == b ? n : x->shape[from++];
    return td_put_back(&td_ops[TD_OP_diagonal], x, shape,
        TD_VALUES(td_v_int(k), td_v_int(a), td_v_int(b)));
}

TD_COMPOSED(diag_embed, x)
{
    return embedded(call, x, td_number(call, 0, 0),
                    td_number(call, 1, -2), td_number(call, 2, -1));
}

TD_COMPOSED(diag, x)
{
    const int64_t k = td_number(call, 0, 0);
    return x->rank == 1 ? embedded(call, x, k, 0, 1)
         : x->rank == 2 ? td_clone(td_diagonal(x, k, 0, 1))
         : td_refuse(call, "expected a vector or a matrix");
}

TD_COMPOSED(trace, x)
{
    return x->rank == 2
         ? td_sum(td_diagonal(x, 0, 0, 1), TD_REDUCE_DEFAULTS)
         : td_refuse(call, "expected a matrix");
}
/* pictures: kernels on pictures */

TD_KERNEL(constant_pad_nd, x)
{
    td_tensor from = td_look(x), to;
    const td_dims pad = margins(call);
    td_dims shape = td_shape_of(x);
    for (int i = 0; i < pad.count / 2; i++)
        shape.at[x->rank - 1 - i] += pad.at[2 * i] + pad.at[2 * i + 1];
    if (td_failed()
        || !td_return(call, td_tensor_new(shape, x->dtype,
                                          td_device_of(x)))
        || !td_fill_all(call->out[0], call->attr[1].as.scalar))
        return false;
    to = td_look(call->out[0]);
    bool empty = td_numel(&to) == 0;
    for (int i = 0; i < pad.count / 2; i++) {
        /* pictures: fit both descriptions to the margins */
        const int d = x->rank - 1 - i;
        const int64_t low = pad.at[2 * i], high = pad.at[2 * i + 1];
        to.offset += low > 0 ? low * to.strides[d] : 0;
        from.offset += low < 0 ? -low * from.strides[d] : 0;
        from.shape[d] += (low < 0 ? low : 0) + (high < 0 ? high : 0);
        to.shape[d] = from.shape[d];
        empty = empty || from.shape[d] <= 0;
    }
    return empty || td_copy_elements(&to, &from);
}

TD_LOOK(unfold)
{
    const int64_t size = td_number(call, 1, 0);
    const int64_t step = td_number(call, 2, 0);
    const int64_t dilation = td_number(call, 3, 1);
    const int d = td_dim_of(call);
    if (x->rank == 0 || x->rank == TD_MAX_RANK)
        td_refuse(call, "expected 1 to 7 dimensions");
    const int64_t n = x->shape[d];
    if (size < 0 || step <= 0 || dilation <= 0 || size > n
        || (size > 1 && dilation > (n - 1) / (size - 1)))
        td_refuse(call, "a window of size %" PRId64 " with step %"
            PRId64 " and dilation %" PRId64 " does not fit dimension "
            "%d", size, step, dilation, d);
    if (td_failed())
        return false;
    const int64_t span = size > 0 ? dilation * (size - 1) + 1 : 0;
    y->shape[d] = (n - span) / step + 1;
    y->strides[d] = x->strides[d] * (y->shape[d] > 1 ? step : 1);
    y->shape[y->rank] = size;
    y->strides[y->rank++] = x->strides[d] * (size > 1 ? dilation : 1);
    return true;
}
/* pictures: functions on pictures */

enum { CONSTANT, REFLECT, REPLICATE, CIRCULAR };

static td_tensor *padded(td_tensor *x, int d, int mode, int64_t low,
                         int64_t high)
{
    const int64_t n = x->shape[d], to = n + low + high;
    const int64_t most = mode == REPLICATE ? INT64_MAX
                       : mode == REFLECT ? n - 1 : n;
    const int64_t first = low < 0 ? -low : 0;
    const int64_t left = n - first + (high < 0 ? high : 0);
    /* pictures: refuse margins that are too large */
    if (low > most || high > most || to < 1 || n < 1
        || (mode == CIRCULAR && left < 1)) {
        td_fail(TD_ERROR_RUNTIME, "pad", "margins %" PRId64 " and %" PRId64
            " do not go with the size %" PRId64 " of dimension %d in this "
            "mode", low, high, n, d);
        return NULL;
    }
    int64_t *at = room_for(to);
    for (int64_t j = -low; at != NULL && j < to - low; j++) {
        const int64_t a = j < 0 ? -j : j;
        at[j + low] = mode == REFLECT ? (a < n ? a : 2 * (n - 1) - a)
            : mode == REPLICATE ? (j < 0 ? 0 : j < n ? j : n - 1)
            : first + ((j - first) % left + left) % left;
    }
    return pick(x, d, to, at);
}

TD_COMPOSED(pad, x)
{
    const int mode = td_choice(call, 1,
                               "constant|reflect|replicate|circular");
    const td_dims pad = margins(call);
    const bool filled = call->attr[2].kind == TD_SCALAR;
    const td_value value = filled ? call->attr[2] : td_v_int(0);
    const int more = x->rank - pad.count / 2;
    if (mode == CONSTANT)
        return TD_CALL(constant_pad_nd, x, td_v_ints(&pad), value);
    if (pad.count == 0 || more < 1 || more > 2)
        td_fail(TD_ERROR_UNSUPPORTED, "pad", "this mode pads all "
                "dimensions but the first one or two; got %d margins "
                "for rank %d", pad.count, x->rank);
    if (td_v_double(&value) != 0)
        td_refuse(call, "only mode constant takes a value");
    for (int i = 0; i < pad.count / 2 && !td_failed(); i++)
        x = padded(x, x->rank - 1 - i, mode, pad.at[2 * i],
                   pad.at[2 * i + 1]);
    return x;
}

typedef struct { td_dims whole, size, stride, border; } film;

/* Of pictures [N, C, H, W]; of columns C is the number of rows. */
static bool read_film(const td_call *call, bool columns, td_dims whole,
                      film *f)
{
    enum { SIZE, GAP, MARGIN, STEP, PAIRS };
    int64_t v[PAIRS], along = 1;
    *f = (film){ whole, whole, { 6, { 0 } }, { 4, { 0 } } };
    f->size.count = 6;
    for (int k = 1; k >= 0; k--) {
        for (int i = 0; i < PAIRS; i++) {
            const td_dims pair = td_numbers(call, columns + i);
            v[i] = pair.at[k];
            if (pair.count != 2 || v[i] < (i != MARGIN)
                || v[i] > INT32_MAX)
                return td_refuse(call, "expected two sizes, dilations "
                    "and strides above 0 and two paddings from 0 on");
        }
        /* pictures: lay windows along one side of the pictures */
        const int64_t n = f->whole.at[2 + k] += 2 * v[MARGIN];
        const int64_t left = n - v[GAP] * (v[SIZE] - 1) - 1;
        f->size.at[2 + k] = v[SIZE];
        f->size.at[4 + k] = left < 0 ? 0 : left / v[STEP] + 1;
        f->stride.at[2 + k] = v[GAP] * along;
        f->stride.at[4 + k] = v[STEP] * along;
        f->border.at[2 - 2 * k] = columns ? -v[MARGIN] : v[MARGIN];
        f->border.at[3 - 2 * k] = f->border.at[2 - 2 * k];
        along *= n;
    }
    f->size.at[1] /= columns ? f->size.at[2] * f->size.at[3] : 1;
    f->whole.at[1] = f->size.at[1];
    f->stride.at[0] = along * f->size.at[1];
    f->stride.at[1] = along;
    return true;
}

TD_COMPOSED(im2col, x)
{
    film f;
    td_tensor *y = x->rank == 3 ? td_unsqueeze(x, 0) : x;
    if (!y || !read_film(call, false, td_shape_of(y), &f))
        return NULL;
    if (y->rank != 4 || y->shape[1] == 0 || f.size.at[4] == 0
        || f.size.at[5] == 0)
        return td_refuse(call, "expected [N, C, H, W] or [C, H, W] "
                         "with room for at least one window");
    y = td_pad(y, f.border, "constant", 0);
    y = TD_CALL(strided_view, td_contiguous(y), td_v_ints(&f.size),
                td_v_ints(&f.stride), td_v_int(0));
    y = td_flatten(td_flatten(y, 4, 5), 1, 3);
    return x->rank == 3 ? td_squeeze(y, TD_DIMS(0)) : y;
}

TD_COMPOSED(col2im, x)
{
    film f;
    td_tensor *y;
    const td_dims out = td_numbers(call, 0);
    td_check_computes(call, x->dtype, true);
    if (out.count != 2 || x->rank < 2 || x->rank > 3)
        return td_refuse(call, "expected two output sizes and columns "
                         "[N, C * kernel, L] or [C * kernel, L]");
    const int64_t rows = td_size(x, -2);
    if (!read_film(call, true, TD_DIMS(x->rank == 3 ? x->shape[0] : 1,
                   rows, out.at[0], out.at[1]), &f))
        return NULL;
    const int64_t many = f.size.at[4] * f.size.at[5];
    if (rows == 0 || rows % (f.size.at[2] * f.size.at[3]) || many == 0
        || td_size(x, -1) != many)
        return td_refuse(call, "the columns do not go with the "
                         "windows");
    y = TD_CALL(strided_view_backward, td_reshape(x, f.size),
                td_v_ints(&f.whole), td_v_ints(&f.size),
                td_v_ints(&f.stride), td_v_int(0));
    y = td_pad(y, f.border, "constant", 0);
    return x->rank == 2 ? td_squeeze(y, TD_DIMS(0)) : y;
}

TD_COMPOSED(pixel_shuffle, x)
{
    const bool out = td_is(call, pixel_shuffle);
    const int64_t r = td_number(call, 0, 0);
    td_dims shape = td_shape_of(x);
    int64_t *const s = shape.at + (x->rank > 2 ? x->rank - 3 : 0);
    if (x->rank < 3 || r <= 0 || (out ? s[0] / r % r || s[0] % r
                                      : s[1] % r || s[2] % r))
        return td_refuse(call, out ? "expected [..., C r r, H, W] and "
            "a factor r above 0" : "expected [..., C, H r, W r] and a "
            "factor r above 0");
    int64_t n = 1, h = s[1], w = s[2];
    for (int d = 0; d < x->rank - 2; d++)
        n *= x->shape[d];
    if (out) {
        s[0] = s[0] / r / r, s[1] *= r, s[2] *= r;
        x = td_reshape(x, TD_DIMS(n / r / r, r, r, h, w));
        x = td_permute(x, TD_DIMS(0, 3, 1, 4, 2));
    } else {
        s[0] *= r * r, s[1] /= r, s[2] /= r;
        x = td_reshape(x, TD_DIMS(n, s[1], r, s[2], r));
        x = td_permute(x, TD_DIMS(0, 2, 4, 1, 3));
    }
    return td_reshape(x, shape);
}

enum { NEAREST, EXACT, LINEAR, BILINEAR, TRILINEAR, BICUBIC };

typedef struct {
    int filter;
    bool align;
    int64_t n, m;           /* old and new size */
    double step;            /* from one new position to the next */
} sampling;

static td_tensor *resampled(td_tensor *x, int d, const sampling *s)
{
    const int taps = s->filter <= EXACT ? 1
                   : s->filter < BICUBIC ? 2 : 4;
    td_dims line = td_dims_of_ones(x->rank);
    td_tensor *sum = NULL;
    line.at[d] = s->m;
    for (int k = 0; k < taps && !td_failed(); k++) {
        double *weight = (double *)room_for(s->m);
        int64_t *at = room_for(s->m);
        for (int64_t j = 0; at && weight && j < s->m; j++) {
            /* pictures: find position and weight of a tap */
            const float half = s->filter == EXACT ? 0.5f : 0;
            double p = s->align ? (double)j * s->step
                                : ((double)j + 0.5) * s->step - 0.5;
            if (s->filter <= EXACT)
                p = (double)floorf(((float)j + half) * (float)s->step);
            else if (s->filter < BICUBIC && p < 0)
                p = 0;
            const double below = floor(p), part = p - below;
            const int64_t i = (int64_t)below + k - (s->filter == BICUBIC);
            /* pictures: find the cubic weight */
            const double t = fabs(part - (double)(k - 1)), a = -0.75;
            const double cubic = t <= 1 ? ((a + 2) * t - (a + 3)) * t * t + 1
                : t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
            weight[j] = s->filter == BICUBIC ? cubic : k == 0 ? 1 - part : part;
            at[j] = i < 0 ? 0 : i < s->n ? i : s->n - 1;
        }
        td_tensor *w = !weight || taps == 1 ? NULL
            : td_to(td_from_data(weight, line, td_beside(x,
                                 TD_FLOAT64)), x->dtype);
        TD_FREE_ARRAY(weight, s->m + 1);
        td_tensor *y = pick(x, d, s->m, at);
        y = w ? td_mul(y, w) : y;
        sum = k > 0 ? td_add(sum, y) : y;
    }
    return sum;
}

TD_COMPOSED(interpolate, x)
{
    td_tensor *y = x;
    const td_dims size = td_numbers(call, 0);
    sampling s = { td_choice(call, 1, "nearest|nearest-exact|linear|"
                             "bilinear|trilinear|bicubic"),
                   td_flag(call, 2), 0, 0, 0 };
    /* pictures: refuse what cannot be resized */
    const int rank_for[] = { x->rank, x->rank, 3, 4, 5, 4 };
    if (x->rank < 3 || x->rank > 5 || size.count != x->rank - 2
        || x->rank != rank_for[s.filter]
        || (s.filter > EXACT && !td_dtype_is_floating(x->dtype)))
        return td_refuse_as(call, TD_ERROR_UNSUPPORTED, "this mode with %d "
            "sizes does not resize %s of rank %d", size.count,
            td_dtype_name(x->dtype), x->rank);
    for (int i = 0; i < size.count; i++)
        if (size.at[i] < 1 || x->shape[2 + i] < 1)
            return td_refuse(call, "sizes must be greater than 0");
    for (int i = 0; i < size.count && y != NULL; i++) {
        const double scale = td_real(call, 3 + i);
        s.n = x->shape[2 + i], s.m = size.at[i];
        s.step = !s.align ? scale > 0 ? 1 / scale
                                      : (double)s.n / (double)s.m
               : s.m > 1 ? (double)(s.n - 1) / (double)(s.m - 1) : 0;
        if (s.n != s.m || s.filter <= EXACT || s.filter == BICUBIC)
            y = resampled(y, 2 + i, &s);
    }
    return apart(y, x);
}
/* einsum: functions that multiply */
TD_COMPOSED(mm, a)
{
    td_tensor *b = td_input(call, 1);
    const bool dots = td_is(call, vdot);
    const int left = dots ? 1 : 2, right = td_is(call, mm) ? 2 : 1;
    if (a->rank != left || b->rank != right)
        return td_refuse(call, "expected ranks %d and %d", left, right);
    return dots ? td_dot(a, b) : td_matmul(a, b);
}

TD_COMPOSED(outer, a)
{
    td_tensor *b = td_input(call, 1);
    return a->rank == 1 && b->rank == 1 ? td_mul(td_unsqueeze(a, 1), b)
         : td_refuse(call, "expected two vectors");
}

TD_COMPOSED(baddbmm, x)
{
    const int op = td_is(call, baddbmm) ? TD_OP_bmm
                 : td_is(call, addmv) ? TD_OP_mv : TD_OP_outer;
    const td_scalar beta = call->attr[0].as.scalar;
    const td_scalar alpha = call->attr[1].as.scalar;
    td_tensor *y = td_run1(&td_ops[op], 2, &call->in[1], 0, NULL);
    const td_dtype type = y ? td_promote(x->dtype, y->dtype) : x->dtype;
    if (!td_dtype_is_floating(type)
        && (beta.kind == TD_SCALAR_FLOAT
            || alpha.kind == TD_SCALAR_FLOAT))
        return td_refuse(call, "integers need whole factors");
    x = td_expand(x, td_shape_of(y));
    if (td_scalar_double(alpha) != 1)
        y = td_mul_scalar(y, alpha);
    if (td_scalar_double(beta) != 1)
        x = td_mul_scalar(x, beta);
    return td_scalar_double(beta) != 0 ? td_add(x, y) : td_to(y, type);
}

TD_COMPOSED(matrix_power, x)
{
    td_tensor *p = x, *y = NULL;
    int64_t n = td_number(call, 0, 0);
    if (p->rank < 2 || p->shape[p->rank - 1] != p->shape[p->rank - 2])
        return td_refuse(call, "expected square matrices");
    const td_op *inverse = td_op_find("inverse");
    if (n < 0 && (inverse == NULL || n == INT64_MIN))
        return td_refuse(call, "the exponent is out of range");
    if (n < 0) {
        p = td_run1(inverse, TD_VALUES(td_v_tensor(p)),
                    TD_VALUES(td_v_bool(true)));
        n = -n;
    }
    if (n == 0)
        return td_clone(td_expand(td_eye(p->shape[p->rank - 1],
            (td_opt_i64){ false, 0 }, td_like(p)), td_shape_of(p)));
    for (; n > 0; n /= 2) {
        if (n % 2 == 1)
            y = y ? td_matmul(y, p) : p;
        if (n > 1)
            p = td_matmul(p, p);
    }
    return apart(y, x);
}

TD_COMPOSED(kron, a)
{
    td_tensor *b = td_input(call, 1);
    const int rank = a->rank > b->rank ? a->rank : b->rank;
    if (2 * rank > TD_MAX_RANK)
        return td_refuse(call, "expected at most 4 dimensions");
    for (int d = a->rank; d > 0; d--)
        a = td_unsqueeze(a, d);
    for (int d = b->rank - 1; d >= 0; d--)
        b = td_unsqueeze(b, d);
    td_tensor *y = td_mul(a, b);
    for (int d = 0; d < rank; d++)
        y = td_flatten(y, d, d + 1);
    return y;
}

typedef struct {
    td_tensor *x;
    char letter[TD_MAX_RANK + 1];       /* ends with '\0' */
} term;

static int place_of(const term *t, char letter)
{
    const char *p = strchr(t->letter, letter);
    return p != NULL ? (int)(p - t->letter) : -1;
}

/* In b, where a has not the letter or has size 1. */
static int64_t size_of(const term *a, const term *b, char letter)
{
    const int d = place_of(a, letter);
    const int64_t n = d < 0 ? 1 : a->x->shape[d];
    return n == 1 && b != NULL ? size_of(b, NULL, letter) : n;
}

static void sum_away(term *t, const char *other, const char *wanted)
{
    td_reduce_options o = { .dtype = t->x->dtype };
    char *kept = t->letter;
    for (int d = 0; t->letter[d] != '\0'; d++) {
        const char c = t->letter[d];
        if (strchr(wanted, c) || strchr(other, c))
            *kept++ = c;
        else
            o.dims.at[o.dims.count++] = d;
    }
    *kept = '\0';
    if (o.dims.count > 0)
        t->x = td_sum(t->x, o);
}

/* The letters of text that are among others, or that are not. */
static void sift(char *out, const char *text, const char *others,
                 bool among)
{
    for (; *text != '\0'; text++)
        if ((strchr(others, *text) != NULL) == among)
            *out++ = *text;
    *out = '\0';
}

static td_tensor *folded(const term *t, const term *other,
                         const char *const part[3])
{
    td_dims order = { 0, { 0 } }, full = order;
    td_dims fold = { 3, { 1, 1, 1 } };
    for (int i = 0; i < 3; i++)
        for (const char *c = part[i]; *c != '\0'; c++) {
            const int64_t n = size_of(t, other, *c);
            order.at[order.count++] = place_of(t, *c);
            full.at[full.count++] = n;
            fold.at[i] *= n;
        }
    return td_reshape(td_expand(td_permute(t->x, order), full), fold);
}

static bool too_many(int n)
{
    return td_fail(TD_ERROR_RUNTIME, "einsum", "a product would have "
                   "%d dimensions, at most 8 are possible", n);
}

static bool contract(term *a, term *b, const char *wanted)
{
    char batch[TD_MAX_RANK + 1], left[TD_MAX_RANK + 1],
         right[TD_MAX_RANK + 1], summed[TD_MAX_RANK + 1],
         all[3 * TD_MAX_RANK + 1];
    sum_away(a, b->letter, wanted);
    sum_away(b, a->letter, wanted);
    sift(all, a->letter, b->letter, true);
    sift(batch, all, wanted, true);
    sift(summed, all, wanted, false);
    sift(left, a->letter, b->letter, false);
    sift(right, b->letter, a->letter, false);
    strcat(strcat(strcpy(all, batch), left), right);
    td_dims shape = { (int)strlen(all), { 0 } };
    if (td_failed() || (shape.count > TD_MAX_RANK
                        && !too_many(shape.count)))
        return false;
    for (int d = 0; d < shape.count; d++)
        shape.at[d] = size_of(a, b, all[d]);
    a->x = td_reshape((*summed ? td_bmm : td_mul)(
        folded(a, b, (const char *[]){ batch, left, summed }),
        folded(b, a, (const char *[]){ batch, summed, right })), shape);
    strcpy(a->letter, all);
    return a->x != NULL;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int letters_in(const char *at)
{
    int n = 0;
    for (; *at != '\0' && *at != ',' && *at != '-'; at++)
        n += is_letter(*at);
    return n;
}

/* Reads up to the next comma, arrow or end. */
static bool read_subscript(const char **at, int rank, term *t)
{
    int dots = rank - letters_in(*at);
    bool ok = dots >= 0;
    char *out = t->letter;
    if (rank > TD_MAX_RANK)
        return too_many(rank);
    for (; ok && **at && **at != ',' && **at != '-'; ++*at) {
        if (is_letter(**at)) {
            *out++ = **at;
        } else if (strncmp(*at, "...", 3) == 0) {
            for (; dots > 0; dots--)
                *out++ = (char)dots;
            *at += 2;
        } else {
            ok = **at == ' ';
        }
    }
    *out = '\0';
    return (ok && dots == 0)
        || td_fail(TD_ERROR_RUNTIME, "einsum", "a subscript does not "
                   "name the %d dimensions of its operand", rank);
}

static bool take_diagonals(term *t)
{
    for (char *c = t->letter; *c != '\0' && t->x != NULL;) {
        char *twin = strchr(c + 1, *c);
        if (twin == NULL) {
            c++;
            continue;
        }
        const int d = (int)(c - t->letter), e = (int)(twin - t->letter);
        const char both[] = { *c, '\0' };
        if (t->x->shape[d] != t->x->shape[e])
            return td_fail(TD_ERROR_RUNTIME, "einsum", "the sizes of "
                "the repeated subscript %c differ: %" PRId64 " and %"
                PRId64, *c, t->x->shape[d], t->x->shape[e]);
        t->x = td_diagonal(t->x, 0, d, e);
        memmove(twin, twin + 1, strlen(twin));
        memmove(c, c + 1, strlen(c));
        strcat(t->letter, both);
    }
    return t->x != NULL;
}

static bool read_result(const char *at, const int *counts, int dots,
                        term *out)
{
    const bool arrow = at[0] == '-' && at[1] == '>';
    char implied[64] = "...", *end = implied + 3;
    for (int c = 'A'; c <= 'z'; c++)
        if (counts[c] == 1)
            *end++ = (char)c;
    const char *text = arrow ? at + 2 : implied;
    if (!read_subscript(&text, letters_in(text)
            + (strstr(text, "...") ? dots : 0), out))
        return false;
    at = arrow ? text : at;
    for (const char *c = out->letter; *c != '\0'; c++)
        if (counts[(int)*c] == 0 || strchr(c + 1, *c))
            return td_fail(TD_ERROR_RUNTIME, "einsum", "the result's "
                           "subscripts must occur in an operand, and "
                           "only once in the result");
    return *at == '\0' || td_fail(TD_ERROR_RUNTIME, "einsum",
        "'%s' cannot follow the subscripts of the operands", at);
}

static bool sizes_agree(const term *t, int n)
{
    const term *first[128] = { NULL };
    for (int i = 0; i < n; i++)
        for (const char *c = t[i].letter; *c != '\0'; c++) {
            const term **k = &first[(int)*c];
            const int64_t a = size_of(&t[i], NULL, *c);
            *k = *k == NULL && a != 1 ? &t[i] : *k;
            if (a != 1 && size_of(*k, NULL, *c) != a)
                return td_fail(TD_ERROR_RUNTIME, "einsum", "subscript "
                    "%c has size %" PRId64 " in operand %d and %" PRId64
                    " in operand %d", is_letter(*c) ? *c : '.',
                    size_of(*k, NULL, *c), (int)(*k - t), a, i);
        }
    return true;
}

enum { MOST_TERMS = 16 };

static td_tensor *contract_all(term *t, int n, const term *out)
{
    td_dims order = { 0, { 0 } };
    for (int i = 1; i < n; i++) {
        char wanted[(MOST_TERMS + 1) * (TD_MAX_RANK + 1)];
        strcpy(wanted, out->letter);
        for (int k = i + 1; k < n; k++)
            strcat(wanted, t[k].letter);
        if (!contract(t, &t[i], wanted))
            return NULL;
    }
    sum_away(t, "", out->letter);
    for (const char *c = out->letter; *c != '\0'; c++)
        order.at[order.count++] = place_of(t, *c);
    return td_permute(t->x, order);
}

TD_COMPOSED(einsum, x)
{
    (void)x;                    /* a list is none */
    term t[MOST_TERMS], out;
    const char *at = call->attr[0].as.string;
    const int n = call->in[0].as.tensors.count;
    int counts[128] = { 0 }, dots = 0;
    if (n < 1 || n > MOST_TERMS)
        return td_refuse(call, "expected 1 to 16 operands");
    for (int i = 0; i < n; i++) {
        /* einsum: read the subscript of an operand */
        t[i].x = call->in[0].as.tensors.at[i];
        const int wide = t[i].x->rank - letters_in(at);
        dots = wide > dots ? wide : dots;
        if (!read_subscript(&at, t[i].x->rank, &t[i]))
            return NULL;
        for (const char *c = t[i].letter; *c != '\0'; c++)
            counts[(int)*c]++;
        if (!take_diagonals(&t[i]))
            return NULL;
        if (i + 1 < n && *at++ != ',')
            return td_refuse(call, "there are more operands than subscripts");
    }
    return read_result(at, counts, dots, &out) && sizes_agree(t, n)
         ? contract_all(t, n, &out) : NULL;
}

static td_tensor *dotted(td_tensor *x, td_tensor *y, td_dims of_x,
                         td_dims of_y)
{
    term a = { .x = x }, b = { .x = y };
    memcpy(a.letter, "abcdefgh", (size_t)x->rank);
    memcpy(b.letter, "ijklmnop", (size_t)y->rank);
    for (int i = 0; i < of_x.count; i++)
        a.letter[of_x.at[i]] = b.letter[of_y.at[i]] = (char)('q' + i);
    return contract(&a, &b, "abcdefghijklmnop") ? a.x : NULL;
}

TD_COMPOSED(tensordot, x)
{
    td_tensor *y = td_input(call, 1);
    td_dims left = td_numbers(call, 0), right = td_numbers(call, 1);
    unsigned of_x = 0, of_y = 0;
    if (left.count != right.count)
        return td_refuse(call, "expected as many dimensions of one as "
                         "of the other");
    for (int i = 0; i < left.count; i++) {
        const int a = td_dimension_once(call, left.at[i], x->rank,
                                        &of_x);
        const int b = td_dimension_once(call, right.at[i], y->rank,
                                        &of_y);
        const int64_t n = x->shape[a], m = y->shape[b];
        if (x->rank == 0 || y->rank == 0
            || (n != m && n != 1 && m != 1))
            td_refuse(call, "a dimension is missing or of another "
                      "size than its partner");
        left.at[i] = a, right.at[i] = b;
    }
    return dotted(x, y, left, right);
}

TD_COMPOSED(inner, x)
{
    td_tensor *y = td_input(call, 1);
    const int a = x->rank - 1, b = y->rank - 1;
    if (a < 0 || b < 0)
        return td_mul(x, y);
    return x->shape[a] == y->shape[b]
         ? dotted(x, y, TD_DIMS(a), TD_DIMS(b))
         : td_refuse(call, "the last dimensions have different sizes");
}
/* arranging: rules that arrange */
TD_RULE(flip, g)
{
    b->grad_in[0] = TD_CALL(flip, g, *td_attribute(b, 0));
}
/* pictures: rules on pictures */

TD_RULE(constant_pad_nd, g)
{
    td_dims back = { td_attribute(b, 0)->as.ints.count, { 0 } };
    for (int i = 0; i < back.count; i++)
        back.at[i] = -td_attribute(b, 0)->as.ints.at[i];
    b->grad_in[0] = TD_CALL(constant_pad_nd, g,
                         td_v_ints(&back), td_v_int(0));
}
/* arranging: typed functions that arrange */
TD_TYPED(movedim, (td_v_ints(&source), td_v_ints(&destination)),
         td_dims source, td_dims destination)
TD_TYPED(diagonal, (td_v_int(offset), td_v_int(dim1), td_v_int(dim2)),
         int64_t offset, int dim1, int dim2)
TD_TYPED(repeat, (td_v_ints(&repeats)), td_dims repeats)
TD_TYPED(flip, (td_v_ints(&dims)), td_dims dims)
TD_TYPED(tril, (td_v_int(diagonal)), int64_t diagonal)
TD_TYPED(pad, (td_v_ints(&margins), td_v_string(mode),
               td_v_float(value)),
         td_dims margins, const char *mode, double value)

td_tensor *td_einsum(const char *equation, td_tensor *const *operands,
                     int n)
{
    return TD_RUN(einsum, (td_v_tensors(n, operands)),
                  td_v_string(equation));
}
