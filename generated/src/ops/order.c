/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "order": edit that, not this file. */
/* Operators on lines: order, running totals, search. */
#include "core/device.h"
#include "core/space.h"
#include "ops/composite.h"
#include "ops/reductions.h"
#include <treadle/treadle.h>

enum { FEW = 48, LINE_GRAIN = 16 * 1024 };

/* order: struct lines */
typedef union { double real; int64_t whole; uint64_t bits; } number;
typedef struct { uint64_t key; int64_t place; } item;

typedef struct lines lines;
typedef number *line_body(const lines *w, number *line);

struct lines {
    line_body *body;
    const td_tensor *x;
    int dim;
    int64_t n, k;                   /* size of a line; of results */
    td_lines all;                   /* x is operand 0 */
    int other, values, indices;     /* operands; 0: not wanted */
    size_t room;                    /* bytes of working memory */
    bool real, turned, flag;        /* turned: largest first, or back */
    int64_t nth;                    /* the rank wanted, from 0 */
};
/* order: function lines_along */
static bool lines_along(td_call *call, lines *w, td_tensor *x,
                        int64_t dim)
{
    *w = (lines){ .x = x, .real = td_dtype_is_floating(x->dtype),
                  .dim = td_dimension(call, dim, x->rank) };
    if (!td_check_computes(call, x->dtype, false) || td_failed())
        return false;
    td_lines_add(&w->all, x, w->dim);
    w->k = w->n = w->all.size[0];
    return true;
}
/* order: function run_lines */
TD_BODY(some_lines, const lines, w)
{
    const td_dtype form = w->real ? TD_FLOAT64 : TD_INT64;
    number *line = td_storage_alloc(w->room);
    const bool good = line != NULL;
    for (int64_t i = begin; good && i < end; i++) {
        /* order: load a line, work on it and store it */
        td_lines_carry(&w->all, 0, i, form, line, false);
        if (w->other > 0)
            td_lines_carry(&w->all, w->other, i, form, line + w->n, false);
        number *values = w->body(w, line);
        if (w->values > 0)
            td_lines_carry(&w->all, w->values, i, form, values, true);
        if (w->indices > 0)
            td_lines_carry(&w->all, w->indices, i, TD_INT64, values + w->k,
                           true);
    }
    td_storage_free(line, w->room);
    return good;
}

/* Results have w->k elements a line: of type `dtype`, unless it is
   none, and indices if wanted. */
static bool run_lines(td_call *call, lines *w, line_body *body,
                      size_t per_element, td_dtype dtype, bool indices,
                      bool dropped)
{
    w->body = body;
    w->room = (size_t)(w->n + 2) * per_element;
    /* order: make the results of all lines */
    const td_dtype types[] = { dtype, indices ? TD_INT64 : TD_DTYPE_NONE };
    int *const results[] = { &w->values, &w->indices };
    td_tensor **next = call->out;
    td_dims shape = td_shape_of(w->x);
    if (shape.count > 0)
        shape.at[w->dim] = w->k;
    for (int i = 0; i < 2; i++)
        if (types[i] != TD_DTYPE_NONE) {
            /* order: make a result and describe its lines */
            td_tensor *out = td_tensor_new(shape, types[i], td_device_of(w->x));
            *results[i] = out ? td_lines_add(&w->all, out, w->dim) : 0;
            if (out && dropped && shape.count > 0)
                td_drop_dim(out, w->dim);
            *next++ = out;
        }
    if (td_failed())
        return false;
    if (!td_on_host(call->out[0]))
        return td_compute_elsewhere(call, NULL, w->x->dtype, false);
    td_space *s = &w->all.space;
    td_collapse(&s->shape, s->operands, s->stride);
    return td_parallel_for(s->total, LINE_GRAIN / (w->n + 1) + 1,
                           some_lines, w);
}
/* order: function key_of */
/* Unsigned, in ascending order of the number; NaN is largest. */
static uint64_t key_of(bool real, number v)
{
    const uint64_t top = UINT64_C(1) << 63;
    if (!real)
        return v.bits ^ top;
    if (v.real != v.real)
        return UINT64_MAX;
    v.real += 0.0;                      /* -0 becomes 0 */
    return v.bits & top ? ~v.bits : v.bits | top;
}
/* order: function insert_each */
static item *insert_each(item *a, int64_t n)
{
    for (int64_t j = 1; j < n; j++) {
        const item x = a[j];
        int64_t k = j;
        for (; k > 0 && a[k - 1].key > x.key; k--)
            a[k] = a[k - 1];
        a[k] = x;
    }
    return a;
}
/* order: function sort_items */
/* Sorts n items at a, stably, with room at b; returns a or b. */
static item *sort_items(item *a, item *b, int64_t n)
{
    if (n <= FEW)
        return insert_each(a, n);
    uint64_t varies = 0;
    for (int64_t j = 0; j < n; j++)
        varies |= a[j].key ^ a[0].key;
    for (int shift = 0; shift < 64; shift += 8) {
        if ((varies >> shift & 255) == 0)
            continue;
        int64_t at[257] = { 0 };
        for (int64_t j = 0; j < n; j++)
            at[(a[j].key >> shift & 255) + 1]++;
        for (int box = 0; box < 256; box++)
            at[box + 1] += at[box];
        for (int64_t j = 0; j < n; j++)
            b[at[a[j].key >> shift & 255]++] = a[j];
        item *swap = a;
        a = b, b = swap;
    }
    return a;
}
/* order: function few_line */
/* The first w->k items in order. */
static number *few_line(const lines *w, number *line)
{
    const int64_t k = w->k, most = k < w->n / 2 ? 2 * k : w->n;
    item *a = (item *)(line + w->n), *b = a + most;
    int64_t found = 0;
    /* order: collect what may be among the first */
    const bool real = w->real, turned = w->turned;
    uint64_t bar = k > 0 ? UINT64_MAX : 0;
    double last = NAN;
    for (int64_t j = 0; j < w->n; j++) {
        const double x = line[j].real;
        if (real && (turned ? x <= last : x >= last))
            continue;
        const uint64_t up = key_of(real, line[j]), key = turned ? ~up : up;
        if (found >= k && key >= bar)
            continue;
        if (found == most) {
            memmove(a, sort_items(a, b, found), (size_t)k * sizeof *a);
            found = k;
            bar = a[k - 1].key;
            last = line[a[k - 1].place].real;
        }
        a[found++] = (item){ key, j };
    }
    const item *items = sort_items(a, b, found);
    number *values = (number *)(items == a ? b : a);
    for (int64_t j = 0; j < k; j++) {
        values[k + j].whole = items[j].place;
        values[j] = line[items[j].place];
    }
    return values;
}
/* order: function choose_place */
/* The place of the element that stands at `nth` in order, from 0; there
   is room for as many items again. */
static int64_t place_of_nth(item *items, int64_t n, int64_t nth)
{
    if (n <= FEW)
        return insert_each(items, n)[nth].place;
    /* order: find the key that stands there */
    const item *a = items;
    item *b = items + n;
    uint64_t key = 0;
    for (int shift = 56; shift >= 0; shift -= 8) {
        int64_t count[256] = { 0 }, kept = 0;
        uint64_t box = 0;
        for (int64_t j = 0; j < n; j++)
            count[a[j].key >> shift & 255]++;
        while (nth >= count[box])
            nth -= count[box++];
        key |= box << shift;
        if (count[box] == n)
            continue;
        for (int64_t j = 0; j < n; j++)
            if ((a[j].key >> shift & 255) == box)
                b[kept++] = a[j];
        a = b;
        n = kept;
    }
    for (int64_t j = 0;; j++)
        if (items[j].key == key && nth-- == 0)
            return j;
}
/* order: function choose_line */
enum { MEDIAN = -1, MODE = -2 };

static number *choose_line(const lines *w, number *line)
{
    const int64_t n = w->n;
    item *items = (item *)(line + n);
    for (int64_t j = 0; j < n; j++)
        items[j] = (item){ key_of(w->real, line[j]), j };
    int64_t place = n;
    if (w->nth == MODE) {
        /* order: find the longest run */
        const item *a = sort_items(items, items + n, n);
        int64_t run = 0, longest = 0;
        for (int64_t j = 0; j < n; j++) {
            run = j > 0 && a[j].key == a[j - 1].key ? run + 1 : 1;
            if (run > longest) {
                longest = run;
                place = a[j].place;
            }
        }
    } else if (w->nth == MEDIAN && w->real) {
        for (place = 0; place < n && items[place].key != UINT64_MAX;)
            place++;
    }
    if (place == n)
        place = place_of_nth(items, n, w->nth == MEDIAN ? (n - 1) / 2
                                                        : w->nth);
    line[0] = line[place];
    line[1].whole = place;
    return line;
}
/* order: function there_are */
static bool there_are(const td_call *call, const lines *w, int64_t k,
                      int64_t least)
{
    return (k >= least && k <= w->n)
        || td_refuse(call, "k is %" PRId64 ", but dimension %d has %"
            PRId64 " elements, and k is at least %" PRId64, k, w->dim,
            w->n, least);
}

/* order: kernels of sorting */
TD_KERNEL(sort, x)
{
    lines w;
    const int at = call->n_attr > 3;
    const bool places = td_is(call, argsort);
    if (!lines_along(call, &w, x, td_number(call, at, -1)))
        return false;
    /* order: take no more than are wanted */
    const int64_t k = at > 0 ? td_number(call, 0, 1) : w.n;
    if (!there_are(call, &w, k, 0))
        return false;
    w.k = x->rank > 0 ? k : 1;
    w.turned = td_flag(call, at + 1);
    return run_lines(call, &w, few_line, 40,
                     places ? TD_DTYPE_NONE : x->dtype, true, false);
}

/* dim and keepdim are the attributes from `at` on; kthvalue has one
   before them. */
TD_KERNEL(choose, x)
{
    lines w;
    const int at = call->n_attr > 2;
    const int64_t k = td_number(call, 0, 1);
    if (!lines_along(call, &w, x, td_number(call, at, -1)))
        return false;
    if (w.n == 0 && w.all.space.total > 0)
        return td_fail(TD_ERROR_INDEX, "choose", "dimension %d has "
                       "size 0 and nothing to choose from", w.dim);
    if (at > 0 && !there_are(call, &w, k, 1))
        return false;
    w.nth = at > 0 ? k - 1
          : td_is(call, mode) ? MODE : MEDIAN;
    w.k = 1;
    return run_lines(call, &w, choose_line, 40, x->dtype, true,
                     !td_flag(call, at + 1));
}

bool median_kernel(td_call *call)
{
    td_scope_begin();
    td_tensor *x = td_reshape(td_input(call, 0), TD_DIMS(-1));
    td_tensor *y = x != NULL && td_numel(x) == 0
        ? td_full(TD_RANK_0,
                  td_float(td_dtype_is_floating(x->dtype) ? NAN : 0),
                  td_like(x))
        : td_median_dim(x, 0, false, NULL);
    return td_return(call, td_scope_end_with(y));
}
/* order: bodies of running operators */
#define TOTAL(member, op)                                             \
    for (int64_t j = 1; j < w->n; j++)                                \
        line[j].member = line[j - 1].member op line[j].member

static number *total_line(const lines *w, number *line)
{
    if (w->real && w->flag)
        TOTAL(real, *);
    else if (w->real) {
        /* order: add the numbers of the line in fours */
        double sum = line[w->n].real = line[w->n + 1].real
                   = line[w->n + 2].real = 0;
        for (number *at = line; at < line + w->n; at += 4) {
            const double two = at[0].real + at[1].real;
            const double four = two + (at[2].real + at[3].real);
            at[0].real += sum;
            at[1].real = sum + two;
            at[2].real += at[1].real;
            at[3].real = sum += four;
        }
    } else if (w->flag)
        TOTAL(whole, *);
    else
        TOTAL(whole, +);
    return line;
}

static number *log_line(const lines *w, number *line)
{
    for (int64_t j = 1; j < w->n; j++) {
        const double a = line[j - 1].real, b = line[j].real;
        const double high = a > b ? a : b, low = a > b ? b : a;
        line[j].real = isnan(a) || isnan(b) ? a + b
            : high == low && isinf(high) ? high
            : high + log1p(exp(low - high));
    }
    return line;
}

static number *extreme_line(const lines *w, number *line)
{
    int64_t at = 0;
    uint64_t best = 0;
    for (int64_t j = 0; j < w->n; j++) {
        uint64_t key = key_of(w->real, line[j]);
        if (w->turned && !(w->real && key == UINT64_MAX))
            key = ~key;
        at = key >= best ? j : at;
        best = key >= best ? key : best;
        line[j] = line[at];
        line[w->n + j].whole = at;
    }
    return line;
}

/* y[j] = link * y[neighbour] + x[j], from one end to the other. */
static number *recur_line(const lines *w, number *line)
{
    const int64_t n = w->n;
    const number *link = line + n;
    for (int64_t j = 1; !w->turned && j < n; j++)
        line[j].real += link[j - 1].real * line[j - 1].real;
    for (int64_t j = n - 2; w->turned && j >= 0; j--)
        line[j].real += link[j].real * line[j + 1].real;
    return line;
}
/* order: kernels of running operators */
TD_KERNEL(running, x)
{
    lines w;
    const bool totals = call->n_attr > 1;
    const bool logs = td_is(call, logcumsumexp);
    td_dtype dtype = x->dtype;
    if (totals)
        dtype = td_v_get_dtype(&call->attr[1],
            td_dtype_is_floating(dtype) ? dtype : TD_INT64);
    if (!lines_along(call, &w, x, td_number(call, 0, 0))
        || !td_check_computes(call, dtype, logs))
        return false;
    w.real = td_dtype_is_floating(dtype);
    w.flag = td_is(call, cumprod);
    w.turned = td_is(call, cummin);
    return run_lines(call, &w, totals ? total_line
                     : logs ? log_line : extreme_line, 16, dtype,
                     !totals && !logs, false);
}

TD_KERNEL(recurrence, links)
{
    lines w;
    td_tensor *x = td_input(call, 1);
    if (!lines_along(call, &w, x, td_number(call, 0, 0))
        || !td_check_computes(call, x->dtype, true))
        return false;
    td_dims wanted = td_shape_of(x), got = td_shape_of(links);
    char text[TD_SHAPE_TEXT];
    wanted.at[w.dim] -= wanted.count > 0 && w.n > 0;
    if (!td_dims_equal(&wanted, &got) || links->dtype != x->dtype)
        return td_refuse(call, "links must be %s and of input's dtype",
                         td_dims_text(&wanted, text));
    w.other = td_lines_add(&w.all, links, w.dim);
    w.turned = td_flag(call, 1);
    return run_lines(call, &w, recur_line, 16, x->dtype, false, false);
}
/* order: bodies of searching */
/* How many of the sorted numbers come before each; on the right of
   its equals, those too. */
static number *search_line(const lines *w, number *line)
{
    const number *sorted = line + w->n;
    for (int64_t j = 0; j < w->n; j++) {
        const uint64_t key = key_of(w->real, line[j]);
        const bool right = w->flag
            || (w->real && line[j].real != line[j].real);
        int64_t low = 0, n = w->all.size[w->other];
        while (n > 0) {
            const int64_t half = n / 2;
            const uint64_t middle = key_of(w->real, sorted[low + half]);
            const bool before = right ? middle <= key : middle < key;
            low += before ? half + 1 : 0;
            n = before ? n - half - 1 : half;
        }
        line[j].whole = low;
    }
    return line;
}
/* order: kernels of searching */

static bool lines_to_search(td_call *call, lines *w, td_tensor *sorted,
                            td_tensor *x)
{
    bool fits = sorted->rank == 1 || (sorted->rank == x->rank
                                      && x->rank > 0);
    for (int d = 0; fits && sorted->rank > 1 && d < x->rank - 1; d++)
        fits = sorted->shape[d] == x->shape[d];
    if (!fits)
        return td_refuse(call, "one sorted line is needed, or as many "
                         "as there are lines of values");
    x = sorted->rank == 1 ? td_reshape(x, TD_DIMS(-1)) : x;
    return x && lines_along(call, w, x, -1);
}


TD_KERNEL(searchsorted, sorted)
{
    lines w;
    const td_value *in = &call->in[1];
    /* order: read the side of a search */
    const bool asked = td_flag(call, 1);
    const bool right = call->attr[2].kind == TD_STRING
                     ? td_choice(call, 2, "left|right") : asked;
    if (asked && !right)
        td_refuse(call, "side 'left' contradicts right");
    td_scope_begin();
    td_tensor *x = in->kind == TD_TENSOR ? in->as.tensor
        : td_full(TD_RANK_0, in->as.scalar, td_beside(sorted,
            in->as.scalar.kind == TD_SCALAR_FLOAT ? TD_FLOAT64
                                                  : TD_INT64));
    bool good = x && lines_to_search(call, &w, sorted, x);
    if (good && td_return(call, td_keep(td_tensor_new(td_shape_of(x),
            td_flag(call, 0) ? TD_INT32 : TD_INT64,
            td_device_of(x))))) {
        w.real = w.real || td_dtype_is_floating(sorted->dtype);
        const td_dims shape = td_shape_of(w.x);
        const td_tensor y = td_look_as(call->out[0], &shape);
        w.indices = td_lines_add(&w.all, &y, w.dim);
        w.other = td_lines_add(&w.all, sorted, w.dim);
        w.flag = right;
        w.k = 0;
        good = run_lines(call, &w, search_line, 8 * (size_t)(2
            + td_size(sorted, -1) / (w.n + 1)), TD_DTYPE_NONE, false,
            false);
    }
    td_scope_end();
    return good && !td_failed();
}


bool bucketize_kernel(td_call *call)
{
    if (td_input(call, 1)->rank != 1)
        return td_refuse(call, "boundaries must have 1 dimension");
    return td_return(call, TD_RUN(searchsorted,
        (call->in[1], call->in[0]), call->attr[0], call->attr[1],
        td_v_none()));
}
/* order: functions of order */
TD_PICKING(sort, (td_v_int(dim), td_v_bool(descending),
                  td_v_bool(true)), int dim, bool descending)
TD_PICKING(topk, (td_v_int(k), td_v_int(dim), td_v_bool(largest),
                  td_v_bool(true)), int64_t k, int dim, bool largest)
TD_PICKING(median_dim, (td_v_int(dim), td_v_bool(keepdim)),
           int dim, bool keepdim)

TD_TYPED(cumsum, (td_v_int(dim), td_v_none()), int dim)

TD_TYPED(cumprod, (td_v_int(dim), td_v_none()), int dim)
