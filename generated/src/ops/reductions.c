/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "softmax": edit that, not this file. */
#include <treadle/elementwise.h>
#include <treadle/reductions.h>
#include "core/device.h"
#include "ops/reductions.h"
#include "ops/kernels/reductions-kernels.h"
#include "core/space.h"
enum { GRAIN = 32 * 1024 };       /* numbers worth a thread's while */
/* reductions: struct reduction */
typedef struct {
    td_dtype from;                       /* type of the data */
    td_dtype type;                       /* type of the arithmetic */
    bool truth;                          /* count what is not zero */
    unsigned mask;                       /* the axes, as bits */
    td_space kept, reduced;
} reduction;
/* softmax: short helpers of the reductions */
static inline int64_t cut(int64_t whole, int64_t piece)
{
    return (whole + piece - 1) / piece;
}
static const td_row_kernels *rows_of(td_dtype type)
{
    const td_reduction_level *level = TD_ISA_PICK(td_reduction_level);
    return type == TD_FLOAT32 ? level->f32
         : type == TD_FLOAT64 ? level->f64 : level->i64;
}
/* reductions: function sort_by_stride */
static void sort_by_stride(td_dims *shape, int64_t *stride)
{
    for (int d = 1; d < shape->count; d++)
        for (int e = d; e > 0 && (uint64_t)stride[e] - 1
                               > (uint64_t)stride[e - 1] - 1; e--) {
            const int64_t size = shape->at[e], step = stride[e];
            shape->at[e] = shape->at[e - 1];
            stride[e] = stride[e - 1];
            shape->at[e - 1] = size;
            stride[e - 1] = step;
        }
}
/* reductions: function normalise */
static reduction normalise(const td_tensor *x, const td_tensor *out,
                           td_dtype type, unsigned mask, bool in_order)
{
    reduction r = { .from = x->dtype, .type = type, .mask = mask };
    td_space *const both[] = { &r.kept, &r.reduced };
    for (int i = 0; i < 2; i++) {
        td_space *s = both[i];
        td_space_begin(s, x, i == 0 ? ~mask : mask);
        if (out != NULL)
            td_space_add(s, out, i == 0 ? ~mask : mask);
        if (i == 1 && !in_order)
            sort_by_stride(&s->shape, s->stride[0]);
        td_collapse(&s->shape, s->operands, s->stride);
    }
    return r;
}
/* reductions: function fetch */
static const void *fetch(const reduction *r, char *line,
                         int64_t begin, int64_t n, void *buffer)
{
    const td_space *s = &r->reduced;
    unsigned char truth[BLOCK];             /* n is at most a block */
    if (r->truth) {
        td_space_carry(s, 0, line, begin, n, TD_BOOL, truth, false);
        td_convert(r->type, buffer, 1, TD_BOOL, truth, 1, n);
        return buffer;
    }
    if (r->from == r->type && (s->total == 1 || (s->shape.count == 1
                                           && s->stride[0][0] == 1)))
        return line + begin * s->size[0];
    td_space_carry(s, 0, line, begin, n, r->type, buffer, false);
    return buffer;
}
/* reductions: struct folding */
typedef struct {
    const reduction *r;
    const td_fold *fold;
    bool by_columns;
    int64_t band, bands, block, blocks;
    size_t size;                  /* of r->type */
    char *partial;                /* [blocks][kept.total] */
} folding;
/* reductions: function fold_units */
static int64_t fold_columns(const folding *f, int64_t band,
                            int64_t most, int64_t begin, int64_t n,
                            char *partial, void *buffer)
{
    (void)most, (void)buffer;
    /* reductions: fold one block of columns */
    td_space reduced = f->r->reduced;
    const td_space *kept = &f->r->kept;
    const int last = reduced.shape.count - 1;
    const int64_t across = kept->shape.at[kept->shape.count - 1];
    const int64_t per_row = cut(across, BAND);
    const int64_t column = band % per_row * BAND;
    const int64_t first = band / per_row * across + column;
    const int64_t width = td_least(BAND, across - column);
    char *out = partial + first * (int64_t)f->size;
    reduced.data[0] = td_space_place(kept, 0, first);
    memcpy(out, td_space_place(&reduced, 0, begin),
           (size_t)width * f->size);
    /* reductions: fold the other rows of the block */
    for (int64_t row = begin + 1, run; row < begin + n; row += run) {
        const int64_t size = reduced.shape.at[last];
        run = td_least(size - row % size, begin + n - row);
        f->fold->columns(run, width, td_space_place(&reduced, 0, row),
                         reduced.stride[0][last], out);
    }
    return 1;
}

static int64_t fold_rows(const folding *f, int64_t band, int64_t most,
                         int64_t begin, int64_t n, char *partial,
                         void *buffer)
{
    /* reductions: fold one block of some rows */
    const td_space *kept = &f->r->kept;
    const int last = kept->shape.count - 1;
    const int64_t across = kept->shape.at[last];
    const int64_t whole = (f->r->reduced.total - begin) / f->block;
    const bool single = f->bands == 1 && whole > 0;
    const void *x = fetch(f->r, td_space_place(kept, 0, band), begin, n,
                          buffer);
    const int64_t many = x == buffer ? 1 : td_least(most,
        single ? whole : across - band % across);
    f->fold->rows(many, n, x, single ? n : kept->stride[0][last],
                  partial + band * (int64_t)f->size);
    return many;
}
TD_BODY(fold_units, const folding, f)
{
    _Alignas(64) double buffer[BLOCK];
    while (begin < end) {
        const int64_t block = begin / f->bands, band = begin % f->bands;
        const int64_t first = block * f->block;
        const int64_t left = f->r->reduced.total - first;
        char *partial = f->partial
                      + block * f->r->kept.total * f->size;
        begin += (f->by_columns ? fold_columns : fold_rows)(f, band,
            f->bands == 1 ? end - begin
                : td_least(end - begin, f->bands - band), first,
            td_least(f->block, left), partial, buffer);
    }
    return true;
}
/* reductions: function fold_all */
/* Fold everything into `out`.  Nothing may be empty. */
static bool fold_all(const reduction *r, int kind, td_tensor *out)
{
    folding f = { .r = r, .fold = &rows_of(r->type)->fold[kind],
                  .size = td_dtype_size(r->type) };
    /* reductions: plan bands and blocks */
    const td_space *kept = &r->kept, *reduced = &r->reduced;
    const int i = kept->shape.count - 1, j = reduced->shape.count - 1;
    const int64_t across = kept->shape.at[i];
    f.by_columns = kept->stride[0][i] == 1 && reduced->total > 1
        && reduced->stride[0][j] != 1 && r->from == r->type && !r->truth;
    f.band = f.by_columns ? td_least(across, BAND) : 1;
    f.bands = f.by_columns ? kept->total / across * cut(across, BAND)
                           : kept->total;
    f.block = f.by_columns ? BLOCK_ROWS : BLOCK;
    f.blocks = cut(reduced->total, f.block);
    const size_t row = (size_t)kept->total * f.size;
    const bool there = f.blocks == 1 && out->dtype == r->type;
    f.partial = there ? td_at(out) : td_scratch((size_t)f.blocks * row);
    if (!f.partial)
        return false;
    const int64_t work = f.band * td_least(f.block, reduced->total);
    if (!td_parallel_for(f.bands * f.blocks, GRAIN / work + 1,
                         fold_units, &f))
        return false;
    /* reductions: combine the blocks in a tree */
    for (int64_t step = 1; step < f.blocks; step *= 2)
        for (int64_t b = 0; b + step < f.blocks; b += 2 * step)
            f.fold->columns(1, kept->total,
                            f.partial + (size_t)(b + step) * row,
                            kept->total, f.partial + (size_t)b * row);
    if (!there)
        td_convert(out->dtype, td_at(out), 1, r->type, f.partial, 1,
                   kept->total);
    return true;
}
/* softmax: what every reduction begins with */
/* reductions: function td_axes_to_reduce */
/* The dimensions named by an attribute, as bits; all if it is absent or
   empty.  A scalar tensor has none, whatever is named. */
bool td_axes_to_reduce(const td_call *call, const td_tensor *x,
                       const td_value *dim, unsigned *mask)
{
    td_dims named;
    td_v_dims(call, dim, &named);
    *mask = named.count == 0 ? (1u << x->rank) - 1 : 0;
    for (int i = 0; i < named.count; i++)
        td_dimension_once(call, named.at[i], x->rank, mask);
    return !td_failed();
}
/* reductions: function reduced_shape */
static td_dims reduced_shape(const td_tensor *x, unsigned mask,
                             bool keepdim)
{
    td_dims shape = { 0 };
    for (int d = 0; d < x->rank; d++)
        if (!(mask >> d & 1))
            shape.at[shape.count++] = x->shape[d];
        else if (keepdim)
            shape.at[shape.count++] = 1;
    return shape;
}
/* reductions: function td_check_computes */
bool td_check_computes(const td_call *call, td_dtype dtype,
                       bool floating)
{
    if (!td_dtype_computes(dtype))
        return td_fail(TD_ERROR_UNSUPPORTED, call->op->name,
                       "not available for %s; convert with to()",
                       td_dtype_name(dtype));
    if (floating && !td_dtype_is_floating(dtype))
        return td_fail(TD_ERROR_RUNTIME, call->op->name,
                       "needs floating-point numbers, got %s; convert "
                       "with to() or dtype=", td_dtype_name(dtype));
    return true;
}
/* reductions: function folding_type */
static td_dtype folding_type(td_dtype dtype)
{
    return td_dtype_is_floating(dtype) ? dtype : TD_INT64;
}
/* reductions: function reduce_elsewhere */
static bool reduce_elsewhere(const char *what, td_tensor *x,
                             unsigned mask, td_dtype type,
                             const td_call *results)
{
    const td_value in = td_v_tensor(x);
    const td_dims shape = reduced_shape(x, mask, true);
    td_dims dims = { 0 };
    td_tensor wide[2];
    for (int d = 0; d < x->rank; d++)
        if (mask >> d & 1)
            dims.at[dims.count++] = d;
    const td_value attr = td_v_ints(&dims);
    td_call call = { .n_in = 1, .in = &in, .n_attr = 1, .attr = &attr };
    for (int k = 0; k < 2 && results->out[k] != NULL; k++) {
        const td_dims own = td_shape_of(results->out[k]);
        wide[k] = td_look_as(results->out[k],
                             own.count < x->rank ? &shape : &own);
        call.out[k] = &wide[k];
    }
    return td_compute_elsewhere(&call, what, type, false);
}
static const char *const fold_names[2][4] = { /* by r->truth */
    { "sum", "amax", "amin", "prod" }, { "sum", "any", "all", "prod" }
};
/* reductions: function reduce */
/* A fold of x; empty_value is the result of folding nothing. */
static td_tensor *reduce(td_tensor *x, td_dims shape,
                         const reduction *r, int kind, td_dtype dtype,
                         int64_t empty_value)
{
    td_tensor *out = td_tensor_new(shape, dtype, x->storage->device);
    if (!out || r->kept.total == 0)
        return out;
    const bool done = r->reduced.total == 0
        ? td_fill_all(out, td_int(empty_value))
        : td_on_host(out) ? fold_all(r, kind, out)
        : reduce_elsewhere(fold_names[r->truth][kind], x, r->mask,
                           r->type, &(td_call){ .out = { out } });
    if (done)
        return out;
    td_discard(out);
    return NULL;
}
/* reductions: function fail_empty */
static bool fail_empty(const td_call *call, const td_value *dim)
{
    return td_refuse_as(call, dim->kind == TD_NONE ? TD_ERROR_RUNTIME
                              : TD_ERROR_INDEX,
                        "there is nothing to choose from");
}
/* reductions: function fold */
enum { REFUSED = -1 };          /* instead of a value of nothing */

/* The attributes are dim and keepdim, or none. */
static td_tensor *fold(td_call *call, int kind, td_dtype dtype,
                       int64_t empty_value)
{
    static const td_value absent[2];        /* both TD_NONE */
    const td_value *attr = call->n_attr > 0 ? call->attr : absent;
    td_tensor *x = td_input(call, 0);
    unsigned mask;
    if (!td_check_computes(call, x->dtype, false)
        || !td_check_computes(call, dtype, false)
        || !td_axes_to_reduce(call, x, attr, &mask))
        return NULL;
    reduction r = normalise(x, NULL, folding_type(dtype), mask, false);
    r.truth = dtype == TD_BOOL;
    if (empty_value == REFUSED && r.reduced.total == 0
        && !fail_empty(call, attr))
        return NULL;
    return reduce(x, reduced_shape(x, mask, td_v_get_bool(&attr[1])),
                  &r, kind, dtype, empty_value);
}
/* reductions: kernel sum */
static td_dtype own_type(const td_call *call)
{
    return td_input(call, 0)->dtype;
}

static td_dtype sum_type(const td_call *call)
{
    return td_v_get_dtype(&call->attr[2],
                          folding_type(own_type(call)));
}
#define FOLD(name, kind, dtype, empty_value)                          \
    bool name##_kernel(td_call *call)                                 \
    {                                                                 \
        return td_return(call, fold(call, kind, dtype, empty_value)); \
    }
FOLD(sum, TD_FOLD_SUM, sum_type(call), 0)
FOLD(prod, TD_FOLD_PRODUCT, sum_type(call), 1)
/* reductions: kernel mean */
TD_KERNEL(mean, x)
{
    const td_dtype dtype = td_v_get_dtype(&call->attr[2], x->dtype);
    if (!td_check_computes(call, dtype, true))
        return false;
    td_scope_begin();
    td_tensor *y = td_run1(&td_ops[TD_OP_sum], 1, call->in, 3,
                           call->attr);
    const int64_t n = td_numel(y);
    if (n > 0)
        y = td_div_scalar(y, td_float((double)(td_numel(x) / n)));
    return td_return(call, td_scope_end_with(y));
}
/* reductions: kernel sum_to_size */
TD_KERNEL(sum_to_size, x)
{
    td_dims size;
    if (!td_v_dims(call, &call->attr[0], &size)
        || !td_check_computes(call, x->dtype, false))
        return false;
    unsigned mask = 0;
    bool fits = size.count <= x->rank;
    for (int d = 0; fits && d < x->rank; d++) {
        const int j = d - x->rank + size.count;
        if (j < 0 || (size.at[j] == 1 && x->shape[d] != 1))
            mask |= 1u << d;
        else if (size.at[j] != x->shape[d])
            fits = false;
    }
    /* reductions: refuse a size that was not broadcast */
    char to[TD_SHAPE_TEXT];
    if (!fits)
        return td_refuse(call, "expected a broadcast of %s",
                         td_dims_text(&size, to));
    if (mask == 0)
        return td_return(call, td_tensor_alias(x));
    const reduction r = normalise(x, NULL, folding_type(x->dtype), mask,
                                  false);
    return td_return(call, reduce(x, size, &r, TD_FOLD_SUM, r.type, 0));
}
/* reductions: kernel amax */
FOLD(amax, TD_FOLD_MAX, own_type(call), REFUSED)
FOLD(amin, TD_FOLD_MIN, own_type(call), REFUSED)
/* reductions: kernel any */
FOLD(any, TD_FOLD_MAX, TD_BOOL, 0)
FOLD(all, TD_FOLD_MIN, TD_BOOL, 1)
#undef FOLD
/* softmax: operators that search a maximum */
/* softmax: struct search */
typedef struct {
    const reduction *r;
    int kind;
    int64_t *indices;
    char *values;                 /* NULL: not wanted */
    td_dtype dtype;               /* of the values */
} search;
/* softmax: function search_some */
TD_BODY(search_some, const search, s)
{
    const reduction *r = s->r;
    const td_row_kernels *rows = rows_of(r->type);
    const td_fold *fold = &rows->fold[s->kind];
    const int64_t size = (int64_t)td_dtype_size(s->dtype);
    for (int64_t i = begin; i < end; i++) {
        double best = 0;
        /* softmax: find the extreme value and its index */
        char *line = td_space_place(&r->kept, 0, i);
        for (int64_t at = 0; at < r->reduced.total; at += BLOCK) {
            _Alignas(64) double buffer[BLOCK];
            const int64_t n = td_least(BLOCK, r->reduced.total - at);
            const void *x = fetch(r, line, at, n, buffer);
            /* softmax: skip the block unless it beats the best */
            double here, both = best;
            fold->row(n, x, &here);
            fold->columns(1, 1, &here, 1, &both);
            if (at > 0 && rows->find(1, &both, &best) == 0)
                continue;
            memcpy(&best, &here, td_dtype_size(r->type));
            s->indices[i] = at + rows->find(n, x, &here);
        }
        if (s->values)
            td_convert(s->dtype, s->values + i * size, 1, r->type,
                       &best, 1, 1);
    }
    return true;
}
/* softmax: kernel search */
TD_KERNEL(search, x)
{
    const int op = (int)(call->op - td_ops);
    const bool least = op == TD_OP_argmin || op == TD_OP_min_dim;
    const bool with_values = op == TD_OP_max_dim || op == TD_OP_min_dim;
    unsigned mask;
    if (!td_check_computes(call, x->dtype, false)
        || !td_axes_to_reduce(call, x, call->attr, &mask))
        return false;
    const reduction r = normalise(x, NULL, folding_type(x->dtype), mask,
                                  true);
    if (r.reduced.total == 0)
        return fail_empty(call, &call->attr[0]);
    const td_dims shape = reduced_shape(x, mask,
                                    td_flag(call, 1));
    /* softmax: make room for values and indices */
    const td_device device = x->storage->device;
    td_tensor **out = call->out;
    if (with_values)
        *out++ = td_tensor_new(shape, x->dtype, device);
    td_tensor *indices = *out = td_tensor_new(shape, TD_INT64, device);
    if (td_failed())
        return false;
    search s = { &r, least ? TD_FOLD_MIN : TD_FOLD_MAX,
                 td_at(indices), with_values
                 ? td_at(call->out[0]) : NULL, x->dtype };
    const int64_t grain = GRAIN / (r.reduced.total + 1) + 1;
    return td_on_host(indices)
        ? td_parallel_for(r.kept.total, grain, search_some, &s)
        : reduce_elsewhere(td_op_name(call->op), x, mask, r.type, call);
}
/* softmax: operators that take exponentials */
/* softmax: function fold_number */
static double number(td_dtype type, const void *of, int64_t i)
{
    return type == TD_FLOAT32 ? (double)((const float *)of)[i]
                              : ((const double *)of)[i];
}

static double fold_number(td_dtype type, const td_fold *fold, int64_t n,
                          const void *x)
{
    double out;
    fold->row(n, x, &out);
    return number(type, &out, 0);
}
/* softmax: function sum_row */
static double sum_row(td_dtype type, int64_t n, const void *x)
{
    const td_fold *fold = &rows_of(type)->fold[TD_FOLD_SUM];
    const char *at = x;
    double sum = 0;
    for (int64_t i = 0; i < n; i += BLOCK)
        sum += fold_number(type, fold, td_least(BLOCK, n - i),
                           at + i * (int64_t)td_dtype_size(type));
    return sum;
}
/* softmax: struct exponentials */
enum { SOFTMAX, LOG_SOFTMAX, LOGSUMEXP };

typedef struct {
    reduction r;          /* with the result as operand 1 */
    int what;             /* is made of each row */
    const char *y;        /* or of its gradient: the result was y */
    bool tidy;            /* x has the type of the result */
} exponentials;
/* softmax: function finish_row */
/* Of the n numbers x; e: room for as many; y: the result, may be x. */
static void finish_row(const exponentials *w, int64_t n, const void *x,
                       void *e, void *y)
{
    const td_dtype type = w->r.type;
    const td_row_kernels *rows = rows_of(type);
    const double m = n == 0 ? -INFINITY
        : fold_number(type, &rows->fold[TD_FOLD_MAX], n, x);
    /* log-sum-exp: exercise log-sum-exp */
    double rest = 0;
    if (w->what == LOG_SOFTMAX || isfinite(m)) {
        rows->exp(n, x, m, e);
        rest = sum_row(type, n, e);
        if (rest < 2) {
            const int64_t i = rows->find(n, x, type == TD_FLOAT32
                ? (const void *)&(float){ (float)m } : &m);
            const size_t size = td_dtype_size(type);
            memset((char *)e + (size_t)i * size, 0, size);
            rest = log1p(sum_row(type, n, e));
        } else {
            rest = log(rest);
        }
    }
    if (w->what == LOG_SOFTMAX) {
        rows->affine(n, x, m, 1, y);
        rows->affine(n, y, rest, 1, y);
        return;
    }
    rest += m;
    td_convert(type, y, 1, TD_FLOAT64, &rest, 1, 1);
}

/* Rows of n > 0 numbers, `step` apart in x and `next` in y. */
static void softmax_rows(td_dtype type, int64_t few, int64_t n,
                         const char *x, int64_t step, char *y,
                         int64_t next)
{
    const td_row_kernels *rows = rows_of(type);
    const int64_t size = (int64_t)td_dtype_size(type);
    double most[SIDE], sum[SIDE];
    rows->fold[TD_FOLD_MAX].rows(few, n, x, step, most);
    for (int64_t k = 0; k < few; k++)
        rows->exp(n, x + k * step * size, number(type, most, k),
                  y + k * next * size);
    if (n <= BLOCK)
        rows->fold[TD_FOLD_SUM].rows(few, n, y, next, sum);
    for (int64_t k = 0; k < few; k++, y += next * size)
        rows->affine(n, y, 0, 1 / (n <= BLOCK ? number(type, sum, k)
                                   : sum_row(type, n, y)), y);
}

TD_BODY(finish_some, const exponentials, w)
{
    const td_space *row = &w->r.reduced, *kept = &w->r.kept;
    const td_row_kernels *rows = rows_of(w->r.type);
    const int64_t n = row->total, step = row->stride[1][0];
    const bool spread = step > 1;
    const size_t room = td_dtype_size(w->r.type)
                      * (n / 16 + 1) * 16;
    char *scratch = td_scratch(2 * room);
    for (int64_t i = begin, few = 1; scratch && i < end; i += few) {
        char *line = td_space_place(kept, 0, i);
        char *out = td_space_place(kept, 1, i);
        /* softmax: make a few columns if they lie so */
        if (w->tidy && step >= 16) {
            few = td_least(td_least(LANES, end - i), step - i % step);
            rows->exp_columns(n, few, line, step, w->what == LOG_SOFTMAX, out);
            continue;
        }
        char *to = spread ? scratch : out;
        const void *x = fetch(&w->r, line, 0, n, scratch);
        few = 1;
        if (w->what == SOFTMAX && !w->y) {
            /* softmax: make a few rows of softmax */
            const int last = kept->shape.count - 1;
            const int64_t across = kept->shape.at[last];
            if (x == line && to == out)
                few = td_least(td_least(td_least(SIDE, end - i), BLOCK / n + 1),
                               across - i % across);
            softmax_rows(w->r.type, few, n, x, kept->stride[0][last], to,
                         kept->stride[1][last]);
        } else if (w->y)
            rows->back(n, x, w->y + (out - kept->data[1]),
                       sum_row(w->r.type, n, x), to);
        else
            finish_row(w, n, x, scratch + room, to);
        if (spread)
            td_convert(w->r.type, out, step, w->r.type, scratch, 1, n);
    }
    return scratch != NULL;
}
/* softmax: kernel of exponentials */
TD_KERNEL(exponential, x)
{
    const int what = td_is(call, softmax) ? SOFTMAX
                   : td_is(call, logsumexp) ? LOGSUMEXP : LOG_SOFTMAX;
    td_tensor *y = call->n_in > 1 ? td_input(call, 1) : NULL;
    const td_dtype dtype = td_v_get_dtype(&call->attr[1], x->dtype);
    unsigned mask;
    if (!td_check_computes(call, x->dtype, false)
        || !td_check_computes(call, dtype, true)
        || !td_axes_to_reduce(call, x, call->attr, &mask))
        return false;
    /* softmax: refuse a result that is in other order */
    if (y && !(td_expect(call, "result", y, td_shape_of(x))
               && y->dtype == dtype && 2 * mask >> x->rank))
        return td_refuse(call, "result must be rows of the same type");
    const unsigned lost = what == LOGSUMEXP ? mask : 0;
    td_tensor *out = td_tensor_new(
        reduced_shape(x, lost, td_flag(call, 1)), dtype,
        x->storage->device);
    if (!td_return(call, out) || td_numel(out) == 0)
        return out != NULL;
    if (!td_on_host(out))
        return reduce_elsewhere(td_op_name(call->op), x, mask, dtype,
                                call);
    const td_dims wide = reduced_shape(x, lost, true);
    const td_tensor look = td_look_as(out, &wide);
    td_scope_begin();
    x = td_contiguous(x);
    y = y ? td_contiguous(y) : NULL;
    bool ok = !td_failed();
    if (ok) {
        /* softmax: finish the rows of operands in order */
        exponentials work = { normalise(x, &look, dtype, mask, false), what,
                              y ? td_at(y) : NULL, x->dtype == dtype };
        ok = td_parallel_for(work.r.kept.total,
                             GRAIN / (4 * work.r.reduced.total + 1) + 1,
                             finish_some, &work);
    }
    td_scope_end();
    return ok;
}
/* reductions: functions of the reductions */
#define REDUCTION(name, ...) \
    TD_TYPED(name, (o.dims.count ? td_v_ints(&o.dims) : td_v_none(), \
                    td_v_bool(o.keepdim), __VA_ARGS__), \
             td_reduce_options o)
REDUCTION(sum, td_v_dtype(o.dtype))
REDUCTION(mean, td_v_dtype(o.dtype))

TD_TYPED(prod, (td_v_opt_int(options.dim), td_v_bool(options.keepdim),
                td_v_none()), td_arg_options options)
TD_TYPED(sum_to_size, (td_v_ints(&size)), td_dims size)
REDUCTION(amax)
REDUCTION(amin)
REDUCTION(any)
REDUCTION(all)
REDUCTION(logsumexp)
TD_OF_ONE(max)
TD_OF_ONE(min)
/* softmax: typed functions that search and scale */
#define ARGUMENT_OF(name) \
    TD_TYPED(name, (td_v_opt_int(options.dim), \
                    td_v_bool(options.keepdim)), td_arg_options options)
ARGUMENT_OF(argmax)
ARGUMENT_OF(argmin)
td_tensor *td_run_pair(int op, td_tensor *input, int n,
                       const td_value *attr, td_tensor **second)
{
    const td_value in = td_v_tensor(input);
    const td_call call = td_called(&td_ops[op], 1, &in, n, attr);
    if (second)
        *second = call.out[1];
    else
        td_release(call.out[1]);
    return call.out[0];
}

TD_PICKING(max_dim, (td_v_int(dim), td_v_bool(keepdim)),
           int dim, bool keepdim)
TD_PICKING(min_dim, (td_v_int(dim), td_v_bool(keepdim)),
           int dim, bool keepdim)
TD_TYPED(softmax, (td_v_int(dim), td_v_none()), int dim)
TD_TYPED(log_softmax, (td_v_int(dim), td_v_none()), int dim)
