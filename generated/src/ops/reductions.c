/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "softmax": edit that, not this file. */
#include <math.h>
#include <treadle/reductions.h>
#include "core/device.h"
#include "core/parallel.h"
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
    return type == TD_FLOAT32 ? &level->f32
         : type == TD_FLOAT64 ? &level->f64 : &level->i64;
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
static const void *fetch(const reduction *r, const char *line,
                         int64_t begin, int64_t n, void *buffer)
{
    const td_space *s = &r->reduced;
    unsigned char truth[BLOCK];             /* n is at most a block */
    if (r->truth) {
        td_space_gather(s, 0, line, begin, n, TD_BOOL, truth);
        td_convert(r->type, buffer, 1, TD_BOOL, truth, 1, n);
        return buffer;
    }
    if (r->from == r->type && (s->total == 1 || (s->shape.count == 1
                                           && s->stride[0][0] == 1)))
        return line + begin * (int64_t)td_dtype_size(r->from);
    td_space_gather(s, 0, line, begin, n, r->type, buffer);
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
/* reductions: function plan_folding */
static void plan_folding(folding *f)
{
    const td_space *kept = &f->r->kept, *reduced = &f->r->reduced;
    const int i = kept->shape.count - 1, j = reduced->shape.count - 1;
    const int64_t across = kept->shape.at[i];
    f->by_columns = kept->stride[0][i] == 1 && reduced->total > 1
        && reduced->stride[0][j] != 1 && f->r->from == f->r->type
        && !f->r->truth;
    f->band = f->by_columns ? td_least(across, BAND) : 1;
    f->bands = f->by_columns ? kept->total / across * cut(across, BAND)
                             : kept->total;
    f->block = f->by_columns ? BLOCK_ROWS : BLOCK;
    f->blocks = cut(reduced->total, f->block);
}
/* reductions: function fold_units */
static void fold_columns(const folding *f, int64_t band, int64_t begin,
                         int64_t n, char *partial)
{
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
}

static void fold_row(const folding *f, int64_t band, int64_t begin,
                     int64_t n, char *partial)
{
    /* reductions: fold one block of a row */
    _Alignas(64) double buffer[BLOCK];
    const void *x = fetch(f->r, td_space_place(&f->r->kept, 0, band), begin,
                          n, buffer);
    f->fold->row(n, x, partial + band * (int64_t)f->size);
}
static bool fold_units(void *context, int64_t begin, int64_t end,
                       int worker)
{
    const folding *f = context;
    (void)worker;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t block = unit / f->bands;
        const int64_t first = block * f->block;
        const int64_t left = f->r->reduced.total - first;
        char *partial = f->partial
                      + (size_t)(block * f->r->kept.total) * f->size;
        (f->by_columns ? fold_columns : fold_row)(f, unit % f->bands,
            first, td_least(f->block, left), partial);
    }
    return true;
}
/* reductions: function combine_blocks_in_a_tree */
static void combine_blocks_in_a_tree(const folding *f)
{
    const int64_t width = f->r->kept.total;
    const size_t row = (size_t)width * f->size;
    for (int64_t step = 1; step < f->blocks; step *= 2)
        for (int64_t b = 0; b + step < f->blocks; b += 2 * step)
            f->fold->columns(1, width,
                             f->partial + (size_t)(b + step) * row,
                             width, f->partial + (size_t)b * row);
}
/* reductions: function fold_all */
/* Fold everything into `out`, kept.total numbers of r->type.  Nothing
   may be empty. */
static bool fold_all(const reduction *r, int kind, void *out)
{
    folding f = { .r = r, .fold = &rows_of(r->type)->fold[kind],
                  .size = td_dtype_size(r->type) };
    plan_folding(&f);
    const size_t row = (size_t)r->kept.total * f.size;
    f.partial = f.blocks == 1 ? out
              : td_scratch((size_t)f.blocks * row);
    if (!f.partial)
        return false;
    const int64_t work = f.band * td_least(f.block, r->reduced.total);
    if (!td_parallel_for(f.bands * f.blocks, GRAIN / work + 1,
                         fold_units, &f))
        return false;
    combine_blocks_in_a_tree(&f);
    if (f.blocks > 1)
        memcpy(out, f.partial, row);
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
/* reductions: function fold_into */
static td_dtype folding_type(td_dtype dtype)
{
    return td_dtype_is_floating(dtype) ? dtype : TD_INT64;
}

static bool fold_into(const reduction *r, int kind, td_tensor *out)
{
    const int64_t n = r->kept.total;
    if (out->dtype == r->type)
        return fold_all(r, kind, td_at(out));
    const size_t bytes = (size_t)n * td_dtype_size(r->type);
    void *wide = td_storage_alloc(bytes);
    const bool done = wide && fold_all(r, kind, wide);
    if (done)
        td_convert(out->dtype, td_at(out), 1, r->type, wide, 1, n);
    td_storage_free(wide, bytes);
    return done;
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
static const char *name_of_fold(const reduction *r, int kind)
{
    return kind == TD_FOLD_SUM ? "sum"
         : kind == TD_FOLD_PRODUCT ? "prod"
         : kind == TD_FOLD_MAX ? (r->truth ? "any" : "amax")
                               : (r->truth ? "all" : "amin");
}
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
        : td_on_host(out) ? fold_into(r, kind, out)
        : reduce_elsewhere(name_of_fold(r, kind), x, r->mask, r->type,
                           &(td_call){ .out = { out } });
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
        && r.kept.total > 0 && !fail_empty(call, attr))
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
static bool divide(td_tensor *out, double by)
{
    const int64_t n = td_numel(out);
    float *f = td_at(out);
    double *d = td_at(out);
    const td_value in[] = { td_v_tensor(out), td_v_float(by) };
    if (!td_on_host(out))
        return td_compute_elsewhere(
            &(td_call){ .n_in = 2, .in = in, .out = { out } }, "div",
            out->dtype, true);
    for (int64_t i = 0; i < n; i++)
        if (out->dtype == TD_FLOAT32)
            f[i] = (float)(f[i] / by);
        else
            d[i] /= by;
    return true;
}

bool mean_kernel(td_call *call)
{
    const td_tensor *x = td_input(call, 0);
    const td_dtype dtype = td_v_get_dtype(&call->attr[2], x->dtype);
    td_tensor *out = !td_check_computes(call, dtype, true) ? NULL
        : fold(call, TD_FOLD_SUM, dtype, 0);
    const int64_t n = td_numel(out);
    return td_return(call, out)
        && (n == 0 || divide(out, (double)(td_numel(x) / n)));
}
/* reductions: kernel sum_to_size */
bool sum_to_size_kernel(td_call *call)
{
    td_tensor *x = td_input(call, 0);
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
/* softmax: function find_extreme */
/* The extreme value of one result and its index among the reduced. */
static int64_t find_extreme(const reduction *r, int kind, int64_t kept,
                            double *best)
{
    const td_row_kernels *rows = rows_of(r->type);
    const td_fold *fold = &rows->fold[kind];
    const char *line = td_space_place(&r->kept, 0, kept);
    const size_t size = td_dtype_size(r->type);
    int64_t index = 0;
    for (int64_t at = 0; at < r->reduced.total; at += BLOCK) {
        _Alignas(64) double buffer[BLOCK];
        const int64_t n = td_least(BLOCK, r->reduced.total - at);
        const void *x = fetch(r, line, at, n, buffer);
        /* softmax: skip the block unless it beats the best */
        double here, both = *best;
        fold->row(n, x, &here);
        fold->columns(1, 1, &here, 1, &both);
        if (at > 0 && rows->find(1, &both, best) == 0)
            continue;
        memcpy(best, &here, size);
        index = at + rows->find(n, x, &here);
    }
    return index;
}
/* softmax: struct search */
typedef struct {
    const reduction *r;
    int kind;
    int64_t *indices;
    char *values;                 /* NULL: not wanted */
    td_dtype dtype;               /* of the values */
} search;
/* softmax: function search_some */
static bool search_some(void *context, int64_t begin, int64_t end,
                        int worker)
{
    const search *s = context;
    const int64_t size = (int64_t)td_dtype_size(s->dtype);
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        double best = 0;
        s->indices[i] = find_extreme(s->r, s->kind, i, &best);
        if (s->values)
            td_convert(s->dtype, s->values + i * size, 1, s->r->type,
                       &best, 1, 1);
    }
    return true;
}
/* softmax: kernel search */
bool search_kernel(td_call *call)
{
    const int op = (int)(call->op - td_ops);
    const bool least = op == TD_OP_argmin || op == TD_OP_min_dim;
    const bool with_values = op == TD_OP_max_dim || op == TD_OP_min_dim;
    td_tensor *x = td_input(call, 0);
    unsigned mask;
    if (!td_check_computes(call, x->dtype, false)
        || !td_axes_to_reduce(call, x, call->attr, &mask))
        return false;
    const reduction r = normalise(x, NULL, folding_type(x->dtype), mask,
                                  true);
    if (r.reduced.total == 0 && r.kept.total > 0)
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
static double fold_number(td_dtype type, const td_fold *fold, int64_t n,
                          const void *x)
{
    union { float f; double d; } out;
    fold->row(n, x, &out);
    return type == TD_FLOAT32 ? (double)out.f : out.d;
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
    if (w->what == SOFTMAX) {
        rows->exp(n, x, m, y);
        rows->affine(n, y, 0, 1 / sum_row(type, n, y), y);
        return;
    }
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

static bool finish_some(void *context, int64_t begin, int64_t end,
                        int worker)
{
    const exponentials *w = context;
    const td_space *row = &w->r.reduced, *kept = &w->r.kept;
    const td_row_kernels *rows = rows_of(w->r.type);
    const int64_t n = row->total, step = row->stride[1][0];
    const bool spread = step > 1;
    const size_t room = td_dtype_size(w->r.type)
                      * (n / 16 + 1) * 16;
    char *scratch = td_scratch(2 * room);
    (void)worker;
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
        if (w->y)
            rows->back(n, x, w->y + (out - kept->data[1]),
                       sum_row(w->r.type, n, x), to);
        else
            finish_row(w, n, x, scratch + room, to);
        if (spread)
            td_convert(w->r.type, out, step, w->r.type, scratch, 1, n);
    }
    return scratch != NULL;
}
/* softmax: function take_exponentials */
static bool take_exponentials(td_call *call, int what)
{
    td_tensor *x = td_input(call, 0);
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
/* softmax: kernels that take exponentials */
bool softmax_kernel(td_call *call)
{
    return take_exponentials(call, SOFTMAX);
}

bool log_softmax_kernel(td_call *call)
{
    return take_exponentials(call, LOG_SOFTMAX);
}

bool logsumexp_kernel(td_call *call)
{
    return take_exponentials(call, LOGSUMEXP);
}
/* reductions: functions of the reductions */
static td_tensor *run_reduction(int op, td_tensor *input,
                                td_reduce_options options, bool typed)
{
    const td_value attr[] = {
        options.dims.count ? td_v_ints(&options.dims) : td_v_none(),
        td_v_bool(options.keepdim), td_v_dtype(options.dtype)
    };
    return td_run1(&td_ops[op], TD_VALUES(td_v_tensor(input)),
                   typed ? 3 : 2, attr);
}

td_tensor *td_sum(td_tensor *input, td_reduce_options options)
{
    return run_reduction(TD_OP_sum, input, options, true);
}

td_tensor *td_mean(td_tensor *input, td_reduce_options options)
{
    return run_reduction(TD_OP_mean, input, options, true);
}

td_tensor *td_prod(td_tensor *input, td_arg_options options)
{
    return TD_CALL(prod, input, td_v_opt_int(options.dim),
                   td_v_bool(options.keepdim), td_v_none());
}
td_tensor *td_sum_to_size(td_tensor *input, td_dims size)
{
    return TD_CALL(sum_to_size, input, td_v_ints(&size));
}
#define REDUCTION(name)                                              \
    td_tensor *td_##name(td_tensor *input, td_reduce_options options) \
    {                                                                \
        return run_reduction(TD_OP_##name, input, options, false);   \
    }
REDUCTION(amax)
REDUCTION(amin)
REDUCTION(any)
REDUCTION(all)
REDUCTION(logsumexp)
#undef REDUCTION
td_tensor *td_max(td_tensor *input)
{
    return TD_CALL(max, input);
}

td_tensor *td_min(td_tensor *input)
{
    return TD_CALL(min, input);
}
/* softmax: typed functions that search and scale */
#define ARGUMENT_OF(name)                                              \
    td_tensor *td_##name(td_tensor *input, td_arg_options options)     \
    {                                                                  \
        return TD_CALL(name, input, td_v_opt_int(options.dim),         \
                       td_v_bool(options.keepdim));                    \
    }
ARGUMENT_OF(argmax)
ARGUMENT_OF(argmin)
td_tensor *td_run_pair(int op, td_tensor *input, int n,
                       const td_value *attr, td_tensor **second)
{
    const td_value in[] = { td_v_tensor(input) };
    td_call call = { .op = &td_ops[op], .n_in = 1, .n_attr = n,
                     .in = in, .attr = attr };
    const bool done = td_run(&call);
    if (second)
        *second = done ? call.out[1] : NULL;
    else if (done)
        td_release(call.out[1]);
    return done ? call.out[0] : NULL;
}

#define EXTREME_OF(name)                                               \
    td_tensor *td_##name(td_tensor *input, int dim, bool keepdim,      \
                         td_tensor **indices)                          \
    {                                                                  \
        return td_run_pair(TD_OP_##name, input, TD_VALUES(             \
            td_v_int(dim), td_v_bool(keepdim)), indices);              \
    }
EXTREME_OF(max_dim)
EXTREME_OF(min_dim)
#define ALONG(name)                                                    \
    td_tensor *td_##name(td_tensor *input, int dim)                    \
    {                                                                  \
        return TD_CALL(name, input, td_v_int(dim), td_v_none());       \
    }
ALONG(softmax)
ALONG(log_softmax)
