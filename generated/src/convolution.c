/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "convolution": edit that, not this file. */
/* Convolution, its adjoint, and the gradient of its weight. */
#include <string.h>
#include <treadle/arranging.h>
#include <treadle/convolution.h>
#include <treadle/elementwise.h>
#include <treadle/matmul.h>
#include <treadle/parallel.h>
#include "composite.h"
#include "device.h"
#include "gemm.h"

enum {
    WORK_GRAIN = 1024 * 1024,       /* multiplications of a chunk */
    STRIP_BYTES = 256 * 1024,       /* of X; must stay in the cache */
    LINE = 16                       /* rows of X begin at multiples */
};

/* convolution: struct geometry */
typedef struct {
    int dims;                   /* directions: 1 to 3 */
    bool batch;                 /* or a single picture */
    int64_t n, groups, c, o;    /* pictures; channels of a group */
    int64_t x[3], y[3], k[3];
    int64_t step[3], margin[3], gap[3];     /* s, m, delta */
} geometry;

static const geometry nothing_set = {
    .n = 1, .x = { 1, 1, 1 }, .y = { 1, 1, 1 }, .k = { 1, 1, 1 },
    .step = { 1, 1, 1 }, .gap = { 1, 1, 1 } };
/* convolution: function read_sizes */
static bool read_sizes(const char *op, const td_value *v,
                       const char *name, int64_t least, int dims,
                       int64_t *out)
{
    const int n = v->as.ints.count;
    bool good = n <= 1 || n == dims;
    for (int d = 0; good && d < dims; d++) {
        const int64_t s = n == 0 ? least
                                 : v->as.ints.at[n == 1 ? 0 : d];
        good = s >= least && s <= INT32_MAX;
        out[3 - dims + d] = s;
    }
    return good || td_fail(TD_ERROR_RUNTIME, op, "%s must be one "
        "integer or %d of them, each at least %lld", name, dims,
        (long long)least);
}
/* convolution: function read_channels */
static bool read_channels(const char *op, const td_dims *a,
                          const td_dims *w, int64_t groups, bool back,
                          geometry *g)
{
    char input[TD_SHAPE_TEXT], weight[TD_SHAPE_TEXT];
    td_dims_text(a, input);
    td_dims_text(w, weight);
    if (w->count < 3 || w->count > 5
        || (a->count != w->count && a->count != w->count - 1))
        return td_fail(TD_ERROR_RUNTIME, op, "expected a weight of 3 "
            "to 5 dimensions and an input of as many, or without the "
            "batch of one fewer; got input %s and weight %s", input,
            weight);
    g->dims = w->count - 2;
    g->batch = a->count == w->count;
    g->n = g->batch ? a->at[0] : 1;
    if (groups < 1 || groups > INT32_MAX || w->at[0] % groups != 0)
        return td_fail(TD_ERROR_RUNTIME, op, "groups is %lld, which "
            "does not divide the first dimension of weight %s",
            (long long)groups, weight);
    g->groups = groups;
    g->c = w->at[1];
    g->o = w->at[0] / groups;
    const int64_t wanted = groups * (back ? g->o : g->c);
    return a->at[g->batch] == wanted
        || td_fail(TD_ERROR_RUNTIME, op, "weight %s with groups=%lld "
            "expects an input with %lld channels, got %s", weight,
            (long long)groups, (long long)wanted, input);
}
/* convolution: function measure */
static int64_t span_of(const geometry *g, int i)
{
    return g->gap[i] * (g->k[i] - 1) + 1;
}

static int64_t places(const geometry *g, int i)
{
    const int64_t room = g->x[i] + 2 * g->margin[i] - span_of(g, i);
    return room < 0 ? 0 : room / g->step[i] + 1;
}

/* The least large side that has y[i] places. */
static int64_t least_side(const geometry *g, int i)
{
    return (g->y[i] - 1) * g->step[i] - 2 * g->margin[i]
         + span_of(g, i);
}

/* Fills g from the shapes of an input and a weight; back: the input is
   the small side. */
static bool measure(const char *op, td_dims a, td_dims w,
                    const td_value *attr, int64_t groups, bool back,
                    geometry *g)
{
    int64_t more[3] = { 0 };
    *g = nothing_set;
    if (!read_channels(op, &a, &w, groups, back, g)
        || !read_sizes(op, &attr[0], "stride", 1, g->dims, g->step)
        || !read_sizes(op, &attr[1], "padding", 0, g->dims, g->margin)
        || !read_sizes(op, &attr[2], "dilation", 1, g->dims, g->gap)
        || (back && !read_sizes(op, &attr[4], "output_padding", 0,
                                g->dims, more)))
        return false;
    for (int i = 3 - g->dims; i < 3; i++) {
        const int64_t have = a.at[a.count - 3 + i];
        g->k[i] = w.at[w.count - 3 + i];
        (back ? g->y : g->x)[i] = have;
        /* convolution: compute and check the other side */
        if (g->k[i] < 1 || g->k[i] > INT32_MAX || have > INT32_MAX)
            return td_fail(TD_ERROR_RUNTIME, op, "dimension %d: a kernel of "
                "%lld numbers for an input of %lld is out of range", i,
                (long long)g->k[i], (long long)have);
        if (more[i] >= g->step[i] && more[i] >= g->gap[i])
            return td_fail(TD_ERROR_RUNTIME, op, "output_padding %lld must be "
                "smaller than stride %lld or dilation %lld",
                (long long)more[i], (long long)g->step[i],
                (long long)g->gap[i]);
        if (back)
            g->x[i] = least_side(g, i) + more[i];
        else
            g->y[i] = places(g, i);
        if (have > 0 && (back ? g->x : g->y)[i] > 0)
            continue;
        return td_fail(TD_ERROR_RUNTIME, op, "a kernel of %lld with dilation "
            "%lld does not fit an input of %lld with padding %lld, which "
            "leaves a size of %lld", (long long)g->k[i],
            (long long)g->gap[i], (long long)have, (long long)g->margin[i],
            (long long)(back ? g->x : g->y)[i]);
    }
    return true;
}
/* convolution: function list_of */
static td_dims list_of(const geometry *g, const int64_t v[3])
{
    td_dims list = { g->dims, { 0 } };
    for (int d = 0; d < g->dims; d++)
        list.at[d] = v[3 - g->dims + d];
    return list;
}

/* The large side (back) or the small one, as a shape. */
static td_dims side_of(const geometry *g, bool back)
{
    const td_dims space = list_of(g, back ? g->x : g->y);
    td_dims shape = { 0, { 0 } };
    if (g->batch)
        shape.at[shape.count++] = g->n;
    shape.at[shape.count++] = g->groups * (back ? g->c : g->o);
    for (int d = 0; d < g->dims; d++)
        shape.at[shape.count++] = space.at[d];
    return shape;
}
/* convolution: struct convolution_plan */
enum { FORWARD, LARGE_SIDE, WEIGHT };   /* what is computed */

typedef struct {
    const geometry *g;
    int role;
    bool direct;                /* the picture itself is X */
    const char *bias;           /* of y's channels, or NULL */
    td_dtype dtype;
    int64_t size;               /* bytes of a number */
    int64_t taps, lines, strip; /* rows of X; lines of y, at once */
    int64_t ld;                 /* numbers from row to row of X */
    int64_t large, places;      /* numbers of a channel of x and y */
    int64_t height[2];          /* of the buffer, with margins */
    int64_t phase, pitch, room; /* bytes: see below; the buffer */
    int64_t *tap, *line;        /* bytes into the buffer */
    char *x, *w, *y;
} plan;
/* convolution: function lay_out */
static bool lay_out(plan *p)
{
    const geometry *g = p->g;
    const int64_t s = g->step[2], wide = g->x[2] + 2 * g->margin[2];
    for (int i = 0; i < 2; i++)
        p->height[i] = g->x[i] + 2 * g->margin[i];
    p->phase = (wide + s - 1) / s * p->size;
    p->pitch = p->phase * s;
    const td_dims all = { 4, { g->c, p->height[0], p->height[1],
                               p->pitch } };
    if (!td_dims_numel("convolution", &all, &p->room))
        return false;
    p->room = (p->room + TD_ALIGNMENT - 1) / TD_ALIGNMENT * TD_ALIGNMENT;
    p->tap = td_alloc_array((size_t)(p->taps + p->lines + 1),
                            sizeof(int64_t));
    if (p->tap == NULL)
        return false;
    p->line = p->tap + p->taps;
    /* convolution: fill both tables of offsets */
    for (int64_t t = 0; t < p->taps; t++) {
        const int64_t k = t % g->k[2] * g->gap[2], j = t / g->k[2];
        const int64_t i = j / g->k[1], c = i / g->k[0];
        const int64_t high = c * p->height[0] + i % g->k[0] * g->gap[0];
        const int64_t row = high * p->height[1] + j % g->k[1] * g->gap[1];
        p->tap[t] = row * p->pitch + k % s * p->phase + k / s * p->size;
    }
    for (int64_t l = 0; l < p->lines; l++)
        p->line[l] = (l / g->y[1] * g->step[0] * p->height[1]
                      + l % g->y[1] * g->step[1]) * p->pitch;
    return true;
}
/* convolution: function carry */
/* A line of the picture into a line of the buffer, or back. */
static void carry_line(const plan *p, char *at, char *x, bool back)
{
    const geometry *g = p->g;
    const int64_t s = g->step[2], m = g->margin[2];
    for (int64_t f = 0; f < s; f++) {
        const int64_t first = ((f - m) % s + s) % s;
        const int64_t n = (g->x[2] - first + s - 1) / s;
        char *here = at + f * p->phase + (first + m) / s * p->size;
        char *there = x + first * p->size;
        if (n > 0 && back)
            td_convert(p->dtype, there, s, p->dtype, here, 1, n);
        else if (n > 0)
            td_convert(p->dtype, here, 1, p->dtype, there, s, n);
    }
}

static void carry(const plan *p, char *buffer, char *x, bool back)
{
    const geometry *g = p->g;
    for (int64_t r = 0; r < g->c * p->height[0]; r++) {
        const int64_t i = r % p->height[0] - g->margin[0];
        char *at = buffer + (r * p->height[1] + g->margin[1]) * p->pitch;
        for (int64_t j = 0; i >= 0 && i < g->x[0] && j < g->x[1]; j++) {
            carry_line(p, at, x, back);
            at += p->pitch;
            x += g->x[2] * p->size;
        }
    }
}
/* convolution: function gather_columns */
enum { MOUTHFUL = 32 };

/* Lines [from, to) of all windows: row t of X is what tap t meets, and
   rows are ld numbers apart. */
static void gather(const plan *p, const char *buffer, int64_t from,
                   int64_t to, char *columns, int64_t ld)
{
    const int64_t bytes = p->g->y[2] * p->size, taps = p->taps;
    const int64_t *tap = p->tap, *line = p->line, size = p->size;
    for (int64_t t = 0; t < taps; t++) {
        char *out = columns + t * ld * size;
        for (int64_t l = from; l < to; l++, out += bytes) {
            const char *at = buffer + tap[t] + line[l];
            for (int64_t b = 0; b < bytes; b += MOUTHFUL)
                memcpy(out + b, at + b, MOUTHFUL);
        }
    }
}
/* convolution: choose loops by type */
#define T float
#define NAME(x) x##_float
#include "convolution-lines.inc"
#undef T
#undef NAME
#define T double
#define NAME(x) x##_double
#include "convolution-lines.inc"
#undef T
#undef NAME
#define FOR_TYPE(name, ...)                                     \
    (p->dtype == TD_FLOAT32 ? name##_float(__VA_ARGS__)         \
                            : name##_double(__VA_ARGS__))
/* convolution: function multiply */
static bool multiply(const plan *p, char *w, char *columns, int64_t ld,
                     char *y, int64_t wide)
{
    const int64_t o = p->g->o, t = p->taps, all = p->places;
    const double more = p->bias != NULL;
    const td_product roles[] = {
        [FORWARD] = { o, wide, t, 1, more, w, t, 1,
                      columns, ld, 1, y, all },
        [LARGE_SIDE] = { t, wide, o, 1, p->direct, w, 1, t,
                         y, all, 1, columns, ld },
        [WEIGHT] = { o, t, wide, 1, 1, y, all, 1,
                     columns, 1, ld, w, t } };
    return td_gemm(p->dtype, &roles[p->role]);
}
/* convolution: function convolve */
static bool convolve_strips(const plan *p, char *buffer, char *x,
                            char *w, char *y)
{
    for (int64_t l = 0; l < p->lines; l += p->strip) {
        const int64_t to = l + p->strip < p->lines ? l + p->strip
                                                   : p->lines;
        const int64_t wide = (to - l) * p->g->y[2];
        const int64_t ld = p->direct ? p->places : p->ld;
        const int64_t begin = l * p->g->y[2] * p->size;
        char *columns = p->direct ? x + begin : buffer + p->room;
        if (!p->direct && p->role != LARGE_SIDE)
            gather(p, buffer, l, to, columns, ld);
        if (!multiply(p, w, columns, ld, y + begin, wide))
            return false;
        if (!p->direct && p->role == LARGE_SIDE)
            FOR_TYPE(scatter, p, buffer, l, to, columns, ld);
    }
    return true;
}

static bool convolve(const plan *p, int64_t unit, char *buffer, char *w)
{
    const geometry *g = p->g;
    const int64_t group = unit % g->groups;
    const bool slides = g->o == 1 && !p->direct;
    char *x = p->x + unit * g->c * p->large * p->size;
    char *y = p->y + unit * g->o * p->places * p->size;
    bool ok = true;
    w += group * g->o * p->taps * p->size;
    if (!p->direct)
        carry(p, buffer, x, false);
    if (p->role == FORWARD && (slides || p->bias != NULL))
        FOR_TYPE(begin, p, group, y);
    if (slides)
        FOR_TYPE(slide, p, buffer, w, y);
    else
        ok = convolve_strips(p, buffer, x, w, y);
    if (!p->direct && p->role == LARGE_SIDE)
        carry(p, buffer, x, true);
    return ok;
}
/* convolution: functions that convolve a batch */
static bool convolve_range(const plan *p, int64_t begin, int64_t end,
                           char *w)
{
    const size_t bytes = (size_t)(p->room + p->taps * p->ld * p->size)
                       + 2 * MOUTHFUL;
    char *buffer = p->direct ? NULL : td_storage_alloc(bytes);
    bool ok = p->direct || buffer != NULL;
    if (buffer != NULL)
        memset(buffer, 0, (size_t)p->room);
    for (int64_t u = begin; ok && u < end; u++)
        ok = convolve(p, u, buffer, w);
    td_storage_free(buffer, bytes);
    return ok;
}

static bool convolve_some(void *context, int64_t begin, int64_t end,
                          int worker)
{
    const plan *p = context;
    (void)worker;
    return convolve_range(p, begin, end, p->w);
}

static bool convolve_pictures(void *context, int64_t begin, int64_t end,
                              void *sum)
{
    const plan *p = context;
    return convolve_range(p, begin * p->g->groups,
                          end * p->g->groups, sum);
}

static void add_weights(void *context, void *into, const void *from)
{
    const plan *p = context;
    const int64_t n = p->g->groups * p->g->o * p->taps;
    FOR_TYPE(add, into, from, 1, n);
}

static bool convolve_batch(plan *p)
{
    const geometry *g = p->g;
    const int64_t units = g->n * g->groups;
    const int64_t work = g->o * p->taps * p->places + 1;
    if (p->role == WEIGHT)
        return td_parallel_reduce(g->n, (g->n + 7) / 8,
            (size_t)(g->groups * g->o * p->taps * p->size), p->w,
            convolve_pictures, add_weights, p, p->w);
    if (units == 1)
        return convolve_some(p, 0, 1, 0);
    return td_parallel_for(units, WORK_GRAIN / work + 1,
                           convolve_some, p);
}

static bool run(const geometry *g, int role, const td_tensor *bias,
                td_tensor *x, td_tensor *w, td_tensor *y)
{
    if (td_failed())
        return false;
    plan p = { .g = g, .role = role, .dtype = x->dtype,
               .bias = bias != NULL ? td_at(bias) : NULL,
               .size = (int64_t)td_dtype_size(x->dtype),
               .taps = g->c * g->k[0] * g->k[1] * g->k[2],
               .lines = g->y[0] * g->y[1], .direct = true,
               .large = g->x[0] * g->x[1] * g->x[2],
               .x = td_at(x), .w = td_at(w), .y = td_at(y) };
    p.places = p.lines * g->y[2];
    for (int i = 0; i < 3; i++)
        p.direct = p.direct && g->k[i] == 1 && g->margin[i] == 0
                && g->step[i] == 1 && g->x[i] == g->y[i];
    const int64_t line = p.taps * g->y[2] * p.size;
    p.strip = STRIP_BYTES / (line + 1) + 1;
    if (p.strip > p.lines || p.direct)
        p.strip = p.lines;
    p.ld = (p.strip * g->y[2] + LINE - 1) / LINE * LINE;
    const bool ok = lay_out(&p) && convolve_batch(&p);
    td_free(p.tap, (size_t)(p.taps + p.lines + 1) * sizeof(int64_t));
    return ok;
}
/* convolution: function fitted */
/* The small side with a number for each place, or as it was. */
static td_tensor *fitted(const geometry *g, td_tensor *y, bool full)
{
    td_dims pad = { 2 * g->dims, { 0 } };
    bool same = true;
    for (int d = 0; y != NULL && d < g->dims; d++) {
        const int64_t to = full ? places(g, 2 - d) : g->y[2 - d];
        pad.at[2 * d + 1] = to - y->shape[y->rank - 1 - d];
        same = same && pad.at[2 * d + 1] == 0;
    }
    return same ? y : TD_CALL(constant_pad_nd, y, td_v_ints(&pad),
                              td_v_int(0));
}
/* convolution: function by_columns */
static td_tensor *by_columns(const geometry *g, int role, td_tensor *a,
                             td_tensor *b)
{
    const td_dims pair = { 2, { 0 } };
    td_dims v[5] = { pair, pair, pair, pair, pair };
    const int64_t *from[] = { g->k, g->gap, g->margin, g->step, g->x };
    for (int i = 0; i < 10; i++)
        v[i / 2].at[i % 2] = from[i / 2][1 + i % 2];
    const int64_t t = g->c * g->k[1] * g->k[2];
    const int64_t l = places(g, 1) * places(g, 2);
    td_tensor *x = a, *w = b;
    td_tensor *y = role == LARGE_SIDE ? fitted(g, a, true) : b;
    if (g->dims > 2)
        td_fail(TD_ERROR_UNSUPPORTED, "convolution", "three directions "
                "are computed on the CPU only");
    if (role != LARGE_SIDE) {
        x = td_reshape(x, TD_DIMS(g->n, g->groups * g->c, g->x[1],
                                  g->x[2]));
        x = TD_CALL(im2col, x, td_v_ints(&v[0]), td_v_ints(&v[1]),
                    td_v_ints(&v[2]), td_v_ints(&v[3]));
        x = td_reshape(x, TD_DIMS(g->n, g->groups, t, l));
    }
    if (role != FORWARD)
        y = td_reshape(y, TD_DIMS(g->n, g->groups, g->o, l));
    if (role == WEIGHT)
        return td_sum(td_matmul(y, td_transpose(x, 2, 3)),
                      (td_reduce_options){ .dims = TD_DIMS(0) });
    w = td_reshape(w, TD_DIMS(g->groups, g->o, t));
    if (role == FORWARD)
        return td_matmul(w, x);
    x = td_reshape(td_matmul(td_transpose(w, 1, 2), y),
                   TD_DIMS(g->n, g->groups * t, l));
    return TD_CALL(col2im, x, td_v_ints(&v[4]), td_v_ints(&v[0]),
        td_v_ints(&v[1]), td_v_ints(&v[2]), td_v_ints(&v[3]));
}
/* convolution: function compute of convolutions */
/* bias: [channels, 1, ...] or NULL. */
static td_tensor *compute(const geometry *g, int role, td_dims shape,
                          td_tensor *a, td_tensor *b, td_tensor *bias)
{
    if (!td_on_host(a) && !td_self()->symbolic && td_numel(a) > 0) {
        td_tensor *y = td_reshape(by_columns(g, role, a, b), shape);
        return bias != NULL ? td_add(y, bias) : y;
    }
    td_tensor *out = td_tensor_new(shape, a->dtype, td_device_of(a));
    if (out == NULL || td_self()->symbolic || td_numel(out) == 0)
        return out;
    a = td_contiguous(a);
    b = td_contiguous(b);
    if (role == FORWARD && td_numel(a) > 0)
        run(g, role, bias ? td_contiguous(bias) : NULL, a, b, out);
    else if ((bias == NULL ? td_fill_all(out, td_int(0))
                           : td_copy_elements(out, bias))
             && td_numel(a) > 0)
        run(g, role, NULL, role == WEIGHT ? a : out,
            role == WEIGHT ? out : b, role == WEIGHT ? b : a);
    return out;
}
/* convolution: function same_types */
static bool same_types(const char *op, const td_tensor *a,
                       const td_tensor *b, const td_tensor *bias)
{
    const bool same = a->dtype == b->dtype
                   && (bias == NULL || bias->dtype == a->dtype);
    if (same && (a->dtype == TD_FLOAT32 || a->dtype == TD_FLOAT64))
        return true;
    return td_fail(same ? TD_ERROR_UNSUPPORTED : TD_ERROR_RUNTIME, op,
        "operands have types %s, %s and %s; expected float32 or "
        "float64 for all", td_dtype_name(a->dtype),
        td_dtype_name(b->dtype),
        td_dtype_name(bias != NULL ? bias->dtype : b->dtype));
}
/* convolution: kernels that convolve */
static bool computed(td_call *call, const geometry *g, int role,
                     td_dims shape, td_tensor *bias)
{
    td_no_grad_begin();
    td_scope_begin();
    if (bias != NULL) {
        td_dims tall = { 1 + g->dims, { bias->shape[0], 1, 1, 1 } };
        bias = td_reshape(bias, tall);
    }
    td_tensor *y = compute(g, role, shape, td_input(call, 0),
                           td_input(call, 1), bias);
    y = td_scope_end_with(td_failed() ? NULL : y);
    td_no_grad_end();
    return td_return(call, y);
}

bool convolution_kernel(td_call *call)
{
    td_tensor *a = td_input(call, 0), *w = td_input(call, 1);
    td_tensor *bias = call->in[2].kind == TD_NONE ? NULL
                                                  : td_input(call, 2);
    const bool back = td_v_get_bool(&call->attr[3]);
    geometry g;
    if (!measure("convolution", td_shape_of(a), td_shape_of(w),
                 call->attr, td_number(call, 5, 1), back, &g)
        || !same_types("convolution", a, w, bias))
        return false;
    const td_dims shape = side_of(&g, back);
    const int64_t channels = shape.at[g.batch];
    if (bias && (bias->rank != 1 || bias->shape[0] != channels))
        return td_fail(TD_ERROR_RUNTIME, "convolution", "expected a "
                       "bias with one dimension of %lld numbers, got "
                       "rank %d", (long long)channels, bias->rank);
    return computed(call, &g, back ? LARGE_SIDE : FORWARD, shape, bias);
}

/* The weight of the convolution from x to y. */
static td_dims weight_dims(td_dims x, td_dims y, const td_value *size,
                           int64_t groups)
{
    const int n = size->as.ints.count;
    const int at = x.count == n + 2;
    td_dims w = { 2 + n, { 0 } };
    if (n < 1 || n > 3 || x.count < n + 1 || y.count < n + 1)
        return TD_RANK_0;
    w.at[0] = y.at[at];
    w.at[1] = groups > 0 ? x.at[at] / groups : 0;
    for (int d = 0; d < n; d++)
        w.at[2 + d] = size->as.ints.at[d];
    return w;
}

bool convolution_weight_kernel(td_call *call)
{
    const char *op = "convolution_weight";
    const td_tensor *x = td_input(call, 0), *y = td_input(call, 1);
    const int64_t groups = td_number(call, 4, 1);
    const td_dims have = td_shape_of(y);
    const td_dims w = weight_dims(td_shape_of(x), have, &call->attr[0],
                                  groups);
    geometry g;
    if (!measure(op, td_shape_of(x), w, call->attr + 1, groups, false,
                 &g) || !same_types(op, x, y, NULL))
        return false;
    const td_dims wanted = side_of(&g, false);
    char text[TD_SHAPE_TEXT], got[TD_SHAPE_TEXT];
    if (!td_dims_equal(&have, &wanted))
        return td_fail(TD_ERROR_RUNTIME, op, "expected a grad of shape "
            "%s, got %s", td_dims_text(&wanted, text),
            td_dims_text(&have, got));
    return computed(call, &g, WEIGHT, w, NULL);
}
/* convolution: rules that convolve */
static td_tensor *convolved(const geometry *g, td_tensor *a,
                            td_tensor *w, bool back)
{
    int64_t more[3];
    for (int i = 0; i < 3; i++)
        more[i] = back ? g->x[i] - least_side(g, i) : 0;
    const td_dims step = list_of(g, g->step);
    const td_dims margin = list_of(g, g->margin);
    const td_dims gap = list_of(g, g->gap), extra = list_of(g, more);
    const td_value in[] = { td_v_tensor(a), td_v_tensor(w),
                            td_v_none() };
    const td_value attr[] = { td_v_ints(&step), td_v_ints(&margin),
        td_v_ints(&gap), td_v_bool(back), td_v_ints(&extra),
        td_v_int(g->groups) };
    return td_run1(&td_ops[TD_OP_convolution], 3, in, 6, attr);
}

static td_tensor *weighed(const geometry *g, td_tensor *x, td_tensor *y)
{
    const td_dims k = list_of(g, g->k), step = list_of(g, g->step);
    const td_dims margin = list_of(g, g->margin);
    const td_dims gap = list_of(g, g->gap);
    const td_value in[] = { td_v_tensor(x), td_v_tensor(y) };
    const td_value attr[] = { td_v_ints(&k), td_v_ints(&step),
        td_v_ints(&margin), td_v_ints(&gap), td_v_int(g->groups) };
    return td_run1(&td_ops[TD_OP_convolution_weight], 2, in, 5, attr);
}

bool convolution_rule(td_backward_pass *b)
{
    const bool back = td_v_get_bool(td_attribute(b, 3));
    td_tensor *grad = b->grad[0];
    td_reduce_options all = { .dims = { 0, { 0 } } };
    geometry g;
    if (!measure("convolution", td_input_dims(b, 0),
                 td_input_dims(b, 1), td_attribute(b, 0),
                 td_v_get_int(td_attribute(b, 5), 1), back, &g))
        return false;
    if (td_needs(b, 0)) {
        td_tensor *y = convolved(&g, grad, td_saved_input(b, 1), !back);
        b->grad_in[0] = back ? fitted(&g, y, false) : y;
    }
    if (td_needs(b, 1)) {
        td_tensor *a = td_saved_input(b, 0);
        b->grad_in[1] = back ? weighed(&g, grad, fitted(&g, a, true))
                             : weighed(&g, a, grad);
    }
    for (int d = 0; d < grad->rank; d++)
        if (d != g.batch)
            all.dims.at[all.dims.count++] = d;
    if (b->n_in > 2 && td_needs(b, 2))
        b->grad_in[2] = td_sum(grad, all);
    return !td_failed();
}

bool convolution_weight_rule(td_backward_pass *b)
{
    const int64_t groups = td_v_get_int(td_attribute(b, 4), 1);
    const td_dims x = td_input_dims(b, 0);
    const td_dims w = weight_dims(x, td_input_dims(b, 1),
                                  td_attribute(b, 0), groups);
    geometry g;
    if (!measure("convolution_weight", x, w, td_attribute(b, 1),
                 groups, false, &g))
        return false;
    if (td_needs(b, 0))
        b->grad_in[0] = convolved(&g, td_saved_input(b, 1), b->grad[0],
                                  true);
    if (td_needs(b, 1))
        b->grad_in[1] = convolved(&g, td_saved_input(b, 0), b->grad[0],
                                  false);
    return !td_failed();
}
/* convolution: function td_convolution */
td_tensor *td_convolution(td_tensor *input, td_tensor *weight,
                          td_tensor *bias, td_convolution_options o)
{
    const td_value in[] = { td_v_tensor(input), td_v_tensor(weight),
                            td_v_optional(bias) };
    const td_value attr[] = { td_v_ints(&o.stride),
        td_v_ints(&o.padding), td_v_ints(&o.dilation),
        td_v_bool(o.transposed), td_v_ints(&o.output_padding),
        td_v_int(o.groups != 0 ? o.groups : 1) };
    return td_run1(&td_ops[TD_OP_convolution], 3, in, 6, attr);
}
