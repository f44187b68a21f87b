/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "normalisation": edit that, not this file. */
/* Normalisations: one kernel, and composites around it. */
#include <float.h>
#include "ops/composite.h"
#include "core/device.h"
#include "ops/moments.h"
#include "ops/elementwise.h"
#include "ops/reductions.h"
#include "core/space.h"
#include <treadle/treadle.h>

enum { RUN = 4096, SHORT = 8 };

/* normalisation: struct standardising */
typedef struct {
    const td_moment_loops *loop;
    const char *x, *y;          /* y: of a gradient, else x again */
    const char *w, *b;          /* scale and shift a channel, or NULL */
    td_loop *after;             /* does it */
    char *out, *mean, *var;
    int64_t outer, channels, inner;
    int64_t size;               /* of an element */
    double eps;
    bool back;
} standardising;

/* normalisation: function sums_of */
static void sums_of(const standardising *s, int64_t c, double p,
                    const char *y, double sum[2])
{
    sum[0] = sum[1] = 0;
    for (int64_t o = 0; o < s->outer; o++)
        for (int64_t i = 0; i < s->inner; i += RUN) {
            const int64_t at = ((o * s->channels + c) * s->inner + i)
                             * s->size;
            const int64_t n = s->inner - i < RUN ? s->inner - i : RUN;
            s->loop->sums(n, s->x + at, p, y ? y + at : NULL, p, sum);
        }
}

/* normalisation: function standardise_some */
enum { ABREAST = 16 };

TD_BODY(standardise_some, const standardising, s)
{
    const int64_t n = s->outer * s->inner;
    const int64_t size[] = { s->size, s->size, s->size, s->size };
    char *room = s->w ? td_scratch((size_t)(s->inner * s->size)) : NULL;
    if (s->w && room == NULL)
        return false;
    const td_dtype type = s->size == 8 ? TD_FLOAT64 : TD_FLOAT32;
    for (int64_t c = begin, many; c < end; c += many) {
        double m[ABREAST] = { 0 }, v[ABREAST], sum[ABREAST][2];
        char *mean = s->mean + c * s->size, *var = s->var + c * s->size;
        many = td_least(td_least(ABREAST, end - c), RUN / (n + 1) + 1);
        /* normalisation: sum what the channels need */
        for (int64_t k = 0; k < many && !s->back; k++) {
            sums_of(s, c + k, 0, NULL, sum[k]);
            m[k] = sum[k][0] / (double)n;
        }
        for (int64_t k = 0; k < many; k++)
            sums_of(s, c + k, m[k], s->y, sum[k]);
        if (s->back)
            td_convert(TD_FLOAT64, v, 1, type, var, 1, many);
        else {
            /* normalisation: correct the variances */
            for (int64_t k = 0; k < many; k++) {
                const double rest = sum[k][1] - sum[k][0] * sum[k][0] / (double)n;
                v[k] = rest < 0 ? 0 : rest / (double)n;
            }
            td_convert(type, mean, 1, TD_FLOAT64, m, 1, many);
            td_convert(type, var, 1, TD_FLOAT64, v, 1, many);
        }
        for (int64_t k = 0; k < many; k++) {
            double by[3];
            /* normalisation: find the three factors */
            by[0] = 1 / sqrt(v[k] + s->eps);
            by[1] = s->back ? sum[k][0] / (double)n : m[k];
            by[2] = s->back ? -by[0] * sum[k][1] / (double)n : 0;
            /* normalisation: blend each stretch of the channel */
            for (int64_t o = 0; o < s->outer; o++) {
                const int64_t at = (o * s->channels + c + k) * s->inner * s->size;
                char *data[] = { s->out + at, (char *)s->b, room, (char *)s->w };
                s->loop->blend(s->inner, s->x + at, s->y + at, by,
                               room ? room : data[0]);
                if (room)
                    td_frame_line(s->after, 4, data, size, s->inner);
            }
        }
    }
    return true;
}

/* normalisation: function walk_channels */
static bool walk_channels(td_tensor *x, td_tensor *y, td_tensor *w,
                          td_tensor *b, td_tensor *out,
                          td_tensor *mean, td_tensor *var, double eps,
                          bool back)
{
    td_scope_begin();
    x = td_contiguous(x);
    y = y ? td_contiguous(y) : x;
    w = w ? td_contiguous(w) : NULL;
    b = b ? td_contiguous(b) : NULL;
    var = td_contiguous(var);
    bool ok = !td_failed();
    if (ok && td_numel(mean) > 0) {
        standardising s = {
            .loop = TD_ISA_PICK(td_moments)->of
                  + (x->dtype == TD_FLOAT64),
            .x = td_at(x), .y = td_at(y), .out = td_at(out),
            .w = w ? td_at(w) : NULL, .b = b ? td_at(b) : NULL,
            .after = TD_ISA_PICK(td_elementwise)
                ->loop[TD_ROW_addcmul][x->dtype],
            .mean = td_at(mean), .var = td_at(var),
            .outer = x->shape[0], .channels = x->shape[1],
            .inner = x->shape[2], .eps = eps, .back = back,
            .size = (int64_t)td_dtype_size(x->dtype) };
        ok = td_parallel_for(s.channels, 8192 / (s.outer * s.inner + 1)
                             + 1, standardise_some, &s);
    }
    td_scope_end();
    return ok;
}

/* normalisation: kernel standardise */
TD_KERNEL(standardise, x)
{
    const td_device device = td_device_of(x);
    if (!td_check_computes(call, x->dtype, true))
        return false;
    if (x->rank != 3)
        return td_refuse(call, "expected 3 dimensions");
    for (int k = 0; k < 3; k++) {
        call->out[k] = td_tensor_new(k == 0 ? td_shape_of(x)
            : TD_DIMS(1, x->shape[1], 1), x->dtype, device);
        if (call->out[k] == NULL)
            return false;
    }
    if (!td_on_host(x))
        return td_compute_elsewhere(call, NULL, x->dtype, false);
    return walk_channels(x, NULL, NULL, NULL, call->out[0],
                         call->out[1], call->out[2], td_real(call, 0),
                         false);
}
TD_KERNEL(standardise_backward, g)
{
    td_tensor *y = td_input(call, 1);
    td_tensor *var = td_input(call, 2);
    const td_dims a = td_shape_of(g), b = td_shape_of(y);
    if (!td_check_computes(call, g->dtype, true))
        return false;
    if (g->rank != 3 || !td_dims_equal(&a, &b) || y->dtype != g->dtype
        || var->dtype != g->dtype || td_numel(var) != g->shape[1])
        return td_refuse(call, "expected two tensors of one shape "
                         "[outer, channels, inner] and [channels]");
    td_tensor *out = td_tensor_new(a, g->dtype, td_device_of(g));
    if (!td_return(call, out))
        return false;
    if (!td_on_host(out))
        return td_compute_elsewhere(call, NULL, g->dtype, false);
    return walk_channels(g, y, NULL, NULL, out, var, var,
                         td_real(call, 0), true);
}

/* normalisation: function standard */
static const td_reduce_options per_channel = {
    .dims = { 2, { 0, 2 } }, .keepdim = true };

static td_tensor *plus(td_tensor *a, td_tensor *b)
{
    return a ? td_add(a, b) : b;
}

/* normalisation: rule of standardise */
TD_RULE(standardise, g)
{
    td_tensor *y = td_saved_output(b, 0);
    td_tensor *var = td_saved_output(b, 2), *sum = NULL;
    const double eps = td_v_double(td_attribute(b, 0));
    if (td_failed())
        return;
    /* normalisation: call the loop if that is all */
    if (g && !b->grad[1] && !b->grad[2] && !b->create_graph
        && td_at_home(g)) {
        b->grad_in[0] = TD_CALL3(standardise_backward, g, y, var,
                                 td_v_float(eps));
        return;
    }
    /* normalisation: compose the gradient of operators */
    /* taken-out: exercise taken-out */
    const double n = (double)(y->shape[0] * y->shape[2]);
    td_tensor *r = td_rsqrt(td_add_scalar(var, td_float(eps)));
    if (g) {
        td_tensor *along = td_mul(y, td_mean(td_mul(g, y), per_channel));
        sum = td_mul(td_sub(td_sub(g, td_mean(g, per_channel)), along), r);
    }
    if (b->grad[1])
        sum = plus(sum, td_expand(td_mul_scalar(b->grad[1],
                                                td_float(1 / n)),
                                  td_input_dims(b, 0)));
    if (b->grad[2])
        sum = plus(sum, td_mul(y, td_div(td_mul_scalar(b->grad[2],
                                             td_float(2 / n)), r)));
    b->grad_in[0] = sum;
}

/* normalisation: function standard of a tensor */
/* x [outer, channels, inner], standardised for each channel; stat:
   the means and the variances. */
static td_tensor *standard(td_tensor *x, double eps,
                           td_tensor *stat[2])
{
    x = td_contiguous(x);
    if (td_failed())
        return NULL;
    if (td_at_home(x) && (x->shape[0] == 1 || x->shape[2] >= SHORT)) {
        /* normalisation: standardise by the kernel */
        const td_call call = TD_CALLED(standardise, (td_v_tensor(x)),
                                       td_v_float(eps));
        memcpy(stat, call.out + 1, 2 * sizeof *stat);
        return call.out[0];
    }
    x = td_to(x, td_dtype_wide(x->dtype));
    /* normalisation: standardise by operators */
    stat[0] = td_mean(x, per_channel);
    td_tensor *from = td_sub(x, stat[0]);
    stat[1] = td_mean(td_square(from), per_channel);
    return td_mul(from, td_rsqrt(td_add_scalar(stat[1],
                                               td_float(eps))));
}

/* normalisation: function affine */
/* y times weight plus bias, operands 1 and 2, if they are there: of
   shape `want`, shown as `as`. */
static td_tensor *affine(const td_call *call, td_tensor *y,
                         td_dims want, td_dims as)
{
    td_tensor *by[3] = { NULL }, *w, *b;
    for (int i = 1; i < 3 && i < call->n_in; i++)
        if ((w = td_input(call, i)) != NULL) {
            td_expect(call, i == 1 ? "weight" : "bias", w, want);
            by[i] = td_reshape(w, as);
        }
    if (td_failed())
        return NULL;
    w = by[1], b = by[2];
    y->storage->hidden = w && w->requires_grad;
    return w && b ? td_addcmul(b, y, w, td_int(1))
         : w ? td_mul(y, w) : b ? td_add(y, b) : y;
}

/* normalisation: kernel affine_backward */
enum { ROWS = 128 };

/* Are w numbers n weights, each for `inner` in a line, one or SHORT
   and more? */
static bool scales(const td_dims *w, const td_dims *all, int64_t *n,
                   int64_t *inner)
{
    int d = w->count - 1, e = all->count - 1;
    *n = *inner = 1;
    if (d < 0 || d > e)
        return false;
    for (; d >= 0 && w->at[d] == 1; d--, e--)
        *inner *= all->at[e];
    for (; d >= 0 && w->at[d] == all->at[e]; d--, e--)
        *n *= w->at[d];
    while (d >= 0 && w->at[d] == 1)
        d--;
    return d < 0 && (*inner == 1 || *inner >= SHORT);
}

typedef struct {
    const td_moment_loops *loop;
    const char *g, *y, *w;
    char *of_y, *of_w, *of_b;   /* the last two: a row for each block */
    int64_t rows, n, inner;     /* of n weights for `inner` each */
    int64_t bytes;              /* of a row of weights */
    td_dtype type;
} scaling;

TD_BODY(scale_back, const scaling, s)
{
    for (int64_t k = begin; k < end; k++) {
        char *of_w = s->of_w + k * s->bytes;
        char *of_b = s->of_b + k * s->bytes;
        const int64_t last = td_least((k + 1) * ROWS, s->rows);
        memset(of_w, 0, (size_t)s->bytes);
        memset(of_b, 0, (size_t)s->bytes);
        for (int64_t r = k * ROWS; r < last; r++)
            s->loop->scaled(s->n, s->g + r * s->bytes,
                            s->y + r * s->bytes, s->w,
                            s->of_y + r * s->bytes, of_w, of_b);
    }
    return true;
}

TD_BODY(scale_planes_back, const scaling, s)
{
    const int64_t size = s->bytes / s->n;
    for (int64_t k = begin; k < end; k++) {
        double sum[2] = { 0 }, by[3] = { 0 };
        td_convert(TD_FLOAT64, by, 1, s->type,
                   s->w + k % s->n * size, 1, 1);
        for (int64_t i = 0; i < s->inner; i += RUN) {
            const int64_t at = (k * s->inner + i) * size;
            const int64_t n = td_least(RUN, s->inner - i);
            s->loop->sums(n, s->g + at, 0, s->y + at, 0, sum);
            s->loop->blend(n, s->g + at, s->g + at, by, s->of_y + at);
        }
        td_convert(s->type, s->of_b + k * size, 1, TD_FLOAT64, sum, 1,
                   1);
        td_convert(s->type, s->of_w + k * size, 1, TD_FLOAT64, sum + 1,
                   1, 1);
    }
    return true;
}

TD_KERNEL(affine_backward, g)
{
    td_tensor *y = td_input(call, 1), *w = td_input(call, 2);
    const td_dims a = td_shape_of(g), b = td_shape_of(y);
    const td_dims c = td_shape_of(w);
    int64_t n, inner;
    if (!td_check_computes(call, g->dtype, true))
        return false;
    if (!td_dims_equal(&a, &b) || !scales(&c, &a, &n, &inner)
        || g->dtype != y->dtype || g->dtype != w->dtype)
        return td_refuse(call, "expected floats of one type: two of "
                         "one shape, and weights of rows, or of planes "
                         "of at least 8");
    const int64_t rows = td_numel(g) / (n * inner + (n * inner == 0));
    const int64_t blocks = inner > 1 ? rows : (rows + ROWS - 1) / ROWS;
    for (int k = 0; k < 3; k++) {
        call->out[k] = td_tensor_new(k == 0 ? a : TD_DIMS(blocks, n),
                                     g->dtype, td_device_of(g));
        if (call->out[k] == NULL)
            return false;
    }
    if (!td_on_host(g))
        return td_compute_elsewhere(call, NULL, g->dtype, false);
    td_scope_begin();
    g = td_contiguous(g), y = td_contiguous(y), w = td_contiguous(w);
    /* normalisation: walk back over all blocks */
    bool done = !td_failed();
    if (done) {
        scaling s = { TD_ISA_PICK(td_moments)->of
                      + (g->dtype == TD_FLOAT64), td_at(g), td_at(y),
            td_at(w), td_at(call->out[0]), td_at(call->out[1]),
            td_at(call->out[2]), rows, n, inner,
            n * (int64_t)td_dtype_size(g->dtype), g->dtype };
        done = inner > 1
            ? td_parallel_for(rows * n, 32768 / (inner + 1) + 1,
                              scale_planes_back, &s)
            : td_parallel_for(blocks, 32768 / (ROWS * n + 1) + 1,
                              scale_back, &s);
    }
    td_scope_end();
    return done;
}

bool td_affine_back(td_backward_pass *b, td_tensor *g)
{
    const td_dims row = td_input_dims(b, 0);
    const td_dims all = td_input_dims(b, 1);
    const td_dims like = td_input_dims(b, 2);
    const td_dtype type = td_input_dtype(b, 0);
    int64_t n, inner;
    bool may = td_at_home(g) && !b->create_graph
            && scales(&row, &all, &n, &inner)
            && (inner > 1 || n < td_numel(g))
            && td_dims_equal(&row, &like)
            && td_dtype_wide(type) == type && g->rank == all.count
            && td_v_double(td_attribute(b, 0)) == 1;
    for (int i = 0; i < 3; i++)
        may = may && td_needs(b, i) && td_input_dtype(b, i) == type;
    if (!may)
        return false;
    const td_value in[] = { td_v_tensor(g),
        td_v_tensor(td_saved_input(b, 1)),
        td_v_tensor(td_saved_input(b, 2)) };
    const td_call parts = td_called(&td_ops[TD_OP_affine_backward], 3,
                                    in, 0, NULL);
    b->grad_in[1] = parts.out[0];
    for (int i = 0; i < 2; i++)
        b->grad_in[2 - 2 * i] = td_reshape(
            td_sum(parts.out[1 + i], TD_OVER(0)), row);
    return true;
}

/* normalisation: function normalised */
/* The input seen as [outer, channels, inner], standardised, and with
   numbers of shape `want`, shown as `as`, in its own shape. */
static td_tensor *normalised(const td_call *call, td_dims seen, int eps,
                             td_dims want, td_dims as,
                             td_tensor *stat[2])
{
    td_tensor *x = td_input(call, 0);
    td_tensor *y = standard(td_reshape(x, seen),
                            td_real(call, eps), stat);
    y = affine(call, td_reshape(y, td_shape_of(x)), want, as);
    return td_to(y, x->dtype);
}

/* normalisation: formulas of normalisations */
static td_dims trailing(const td_call *call, int64_t *n)
{
    const td_tensor *x = td_input(call, 0);
    const td_dims shape = td_numbers(call, 0);
    const int rows = x->rank - shape.count;
    bool same = rows >= 0 && shape.count > 0;
    *n = 1;
    for (int d = 0; same && d < shape.count; d++) {
        same = shape.at[d] == x->shape[rows + d];
        *n *= shape.at[d];
    }
    char text[TD_SHAPE_TEXT];
    if (!same)
        td_refuse(call, "the input does not end in normalized_shape %s",
                  td_dims_text(&shape, text));
    td_check_computes(call, td_dtype_wide(x->dtype), true);
    return shape;
}

/* All of it in one walk; NULL where the parts are wanted. */
static td_tensor *at_once(const td_call *call, td_dims shape,
                          td_dims seen)
{
    td_tensor *x = td_input(call, 0), *by[2];
    const bool records = !td_self()->grad_off;
    bool may = td_at_home(x) && td_dtype_wide(x->dtype) == x->dtype
            && !(records && x->requires_grad);
    /* tracing: leave the parts to a trace */
    may = may && td_self()->trace == NULL;
    for (int i = 0; i < 2; i++) {
        by[i] = td_input(call, 1 + i);
        const td_dims own = td_shape_of(by[i]);
        may = may && by[i] && by[i]->dtype == x->dtype
           && td_dims_equal(&own, &shape)
           && !(records && by[i]->requires_grad);
    }
    if (!may)
        return NULL;
    td_tensor *y = td_empty(seen, td_like(x)), *stat[2];
    for (int i = 0; i < 2; i++)
        stat[i] = td_empty(TD_DIMS(1, seen.at[1], 1), td_like(x));
    return !td_failed() && walk_channels(td_reshape(x, seen), NULL,
        by[0], by[1], y, stat[0], stat[1], td_real(call, 1), false)
        ? td_reshape(y, td_shape_of(x)) : NULL;
}

TD_COMPOSED(layer_norm, x)
{
    td_tensor *stat[2];
    int64_t n;
    const td_dims shape = trailing(call, &n);
    const int64_t rows = n > 0 ? td_numel(x) / n : 1;
    const td_dims seen = TD_DIMS(1, rows, n);
    td_tensor *y = td_failed() ? NULL : at_once(call, shape, seen);
    return y || td_failed() ? y
        : normalised(call, seen, 1, shape, shape, stat);
}

TD_COMPOSED(rms_norm, x)
{
    int64_t n;
    const td_dims shape = trailing(call, &n);
    td_reduce_options last = { .keepdim = true };
    for (int d = 0; d < shape.count; d++)
        last.dims.at[last.dims.count++] = d - shape.count;
    const td_dtype given = x->dtype;
    x = td_to(x, td_dtype_wide(given));
    /* normalisation: divide by the root of the mean square */
    const double eps = call->attr[1].kind == TD_SCALAR
        ? td_real(call, 1)
        : given == TD_FLOAT64 ? DBL_EPSILON : FLT_EPSILON;
    td_tensor *mean = td_mean(td_square(x), last);
    td_tensor *r = td_rsqrt(td_add_scalar(mean, td_float(eps)));
    return td_to(affine(call, td_mul(x, r), shape, shape), given);
}

static td_dims along_channels(const td_tensor *x)
{
    td_dims as = td_dims_of_ones(x->rank);
    as.at[1] = x->shape[1];
    return as;
}

/* How many numbers a channel of one example has. */
static int64_t in_a_channel(const td_call *call)
{
    const td_tensor *x = td_input(call, 0);
    int64_t n = 1;
    if (x->rank < 2)
        td_refuse_as(call, TD_ERROR_INDEX,
                     "expected [batch, channels, ...]");
    for (int d = 2; d < x->rank; d++)
        n *= x->shape[d];
    td_check_computes(call, td_dtype_wide(x->dtype), true);
    return n;
}

static bool enough(const td_call *call, int64_t n)
{
    return n != 1 || td_refuse_as(call, TD_ERROR_VALUE,
        "expected more than 1 value per channel in training");
}

TD_COMPOSED(group_norm, x)
{
    td_tensor *stat[2];
    const int64_t groups = td_number(call, 0, 1);
    int64_t n = in_a_channel(call);
    if (td_failed())
        return NULL;
    const int64_t channels = x->shape[1];
    if (groups < 1 || channels % groups != 0)
        return td_refuse(call, "the number of channels must be "
                         "divisible by num_groups");
    n *= channels / groups;
    if (!enough(call, n * x->shape[0]))
        return NULL;
    return normalised(call, TD_DIMS(1, x->shape[0] * groups, n), 1,
                      TD_DIMS(channels), along_channels(x), stat);
}

/* Moves a running statistic `part` of the way to that of a batch. */
static void move_towards(td_tensor *running, td_tensor *now,
                         double part, double correction)
{
    if (td_failed() || td_numel(now) == 0)
        return;
    td_tensor *rows = td_reshape(td_detach(now),
                                 TD_DIMS(-1, td_numel(running)));
    td_tensor *mean = td_mean(rows, TD_OVER(0));
    td_add_(td_mul_scalar_(running, td_float(1 - part)),
            td_mul_scalar(mean, td_float(part * correction)));
}

static td_tensor *with_own(const td_call *call, td_tensor *running[2],
                           int64_t n)
{
    td_tensor *x = td_input(call, 0), *stat[2];
    const bool instance = td_is(call, instance_norm);
    const int64_t batch = x->shape[0], channels = x->shape[1];
    const double part = td_real(call, 1);
    const double count = (double)(instance ? n : n * batch);
    if (!enough(call, instance ? n : n * batch))
        return NULL;
    td_tensor *y = normalised(call, instance
            ? TD_DIMS(1, batch * channels, n)
            : TD_DIMS(batch, channels, n), 2,
        TD_DIMS(channels), along_channels(x), stat);
    if (td_numel(x) > 0 && running[0])
        move_towards(running[0], stat[0], part, 1);
    if (td_numel(x) > 0 && running[1])
        move_towards(running[1], stat[1], part, count / (count - 1));
    return y;
}

static td_tensor *with_running(const td_call *call,
                               td_tensor *running[2])
{
    td_tensor *x = td_input(call, 0);
    const td_dims want = TD_DIMS(x->shape[1]), as = along_channels(x);
    td_tensor *scale = td_rsqrt(td_add_scalar(running[1],
        td_float(td_real(call, 2))));
    td_tensor *shift = affine(call, td_neg(td_mul(running[0], scale)),
                              want, want);
    if (td_input(call, 1) != NULL)
        scale = td_mul(scale, td_input(call, 1));
    td_tensor *y = td_addcmul(td_reshape(shift, as), x,
                              td_reshape(scale, as), td_int(1));
    return td_to(y, x->dtype);
}

TD_COMPOSED(batch_norm, x)
{
    static const char *const names[] = { "running_mean",
                                         "running_var" };
    const bool own = td_flag(call, 0);
    td_tensor *running[2] = { NULL, NULL };
    const int64_t n = in_a_channel(call);
    for (int i = 0; i < 2 && !td_failed(); i++) {
        running[i] = td_input(call, 3 + i);
        if (running[i])
            td_expect(call, names[i], running[i], TD_DIMS(x->shape[1]));
        else if (!own)
            td_refuse(call, "%s must be given in evaluation", names[i]);
    }
    return td_failed() ? NULL : own ? with_own(call, running, n)
                                    : with_running(call, running);
}
