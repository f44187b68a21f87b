/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "convolution": edit that, not this file. */
/* Convolution, its adjoint, and the gradient of its weight. */
#include "ops/composite.h"
#include "core/device.h"
#include "ops/gemm.h"
#include "ops/kernels/sliding-kernels.h"
#include "ops/kernels/winograd-kernels.h"
#include <treadle/treadle.h>

enum {
    WORK_GRAIN = 1024 * 1024,       /* multiplications of a chunk */
    STRIP_BYTES = 256 * 1024,       /* of X; must stay in the cache */
    TOGETHER = 1024,                /* places of small pictures */
    TILES = 5184,                   /* tiles times channels, at once */
    LINE = 16                       /* rows of X begin at multiples */
};

/* convolution: struct geometry */
typedef struct {
    int64_t n, groups, c, o;    /* pictures; channels of a group */
    int64_t x[2], y[2], k[2];   /* the two sides, the window */
    int64_t step[2], margin[2], gap[2];     /* s, m, delta */
    bool back;                  /* the input is the small side */
} geometry;
/* convolution: function measure */
static int64_t listed(const td_value *v, int i, int64_t least)
{
    const int n = v->as.ints.count;
    return n == 0 ? least : n > 2 ? -1 : v->as.ints.at[n == 1 ? 0 : i];
}

/* Fills g from the shapes of an input and a weight. */
static bool measure(td_dims a, td_dims w, const td_value *attr,
                    bool both_ways, geometry *g)
{
    const bool back = both_ways && td_v_get_bool(&attr[3]);
    const int64_t groups = td_v_get_int(&attr[both_ways ? 5 : 3], 1);
    char input[TD_SHAPE_TEXT], weight[TD_SHAPE_TEXT];
    if (a.count != 4 || w.count != 4 || groups < 1
        || groups > INT32_MAX || w.at[0] % groups != 0
        || a.at[1] != (back ? w.at[0] : w.at[1] * groups))
        return td_fail(TD_ERROR_RUNTIME, "convolution", "input %s does "
            "not go with weight %s and groups=%" PRId64 ": expected "
            "[N, C, H, W] and [O, C / groups, h, w], transposed "
            "[C, O / groups, h, w]",
            td_dims_text(&a, input), td_dims_text(&w, weight), groups);
    *g = (geometry){ .n = a.at[0], .groups = groups, .c = w.at[1],
                     .o = w.at[0] / groups, .back = back };
    for (int i = 0; i < 2; i++) {
        /* convolution: compute the other side's size */
        const int64_t s = listed(&attr[0], i, 1), m = listed(&attr[1], i, 0);
        const int64_t d = listed(&attr[2], i, 1), k = w.at[2 + i];
        const int64_t more = back ? listed(&attr[4], i, 0) : 0;
        const int64_t have = a.at[2 + i], bits = k | s | m | d | more | have;
        int64_t other = 0;
        if (bits >= 0 && bits <= INT32_MAX && k > 0 && d > 0 && more < s) {
            /* convolution: count places, or what they span */
            const int64_t span = d * (k - 1) + 1, room = have + 2 * m - span;
            other = back ? (have - 1) * s - 2 * m + span + more
                  : room < 0 ? 0 : room / s + 1;
        }
        if (other < 1)
            return td_fail(TD_ERROR_RUNTIME, "convolution", "a kernel of %"
                PRId64 " with stride %" PRId64 ", padding %" PRId64
                ", dilation %" PRId64 " and output_padding %" PRId64
                " has no place in dimension %d of input %s", k, s, m, d, more,
                2 + i, td_dims_text(&a, input));
        g->k[i] = k, g->step[i] = s, g->margin[i] = m, g->gap[i] = d;
        g->x[i] = back ? other : have;
        g->y[i] = back ? have : other;
    }
    return true;
}
/* convolution: struct convolution_plan */
enum { FORWARD, LARGE_SIDE, WEIGHT };   /* what is computed */

typedef struct {
    int64_t channels, phase;    /* numbers from phase to phase */
    const int64_t *size, *step, *margin;
} side;

typedef struct {
    const geometry *g;
    int role;
    bool direct, tiled;         /* the picture itself is X; by tiles */
    td_dtype dtype;
    int64_t size;               /* bytes of a number */
    int64_t taps, strip, ld;    /* rows of X; lines; row to row */
    int64_t large, small;       /* numbers of a channel */
    int64_t many;               /* pictures in the buffer */
    int64_t plane, pitch;       /* numbers to the next picture, line */
    int64_t phase, room;        /* to the next phase, in the buffer */
    int64_t beside;             /* numbers behind the room */
    int64_t *tap;               /* numbers into the buffer */
    side of_x, of_y;
    const void *bias;           /* of the result's channels, or NULL */
    float *u;                   /* transformed weights, or NULL */
    char *x, *w, *y;
} plan;

/* What a side without steps, or without margins, has of them. */
static const int64_t one[] = { 1, 1 }, none[] = { 0, 0 };
/* convolution: function lay_out */
static bool lay_out(plan *p)
{
    const geometry *g = p->g;
    /* convolution: measure the buffer */
    int64_t extent[2], reach[2];
    for (int i = 0; i < 2; i++) {
        const int64_t s = g->step[i], m = g->margin[i];
        reach[i] = g->gap[i] * (g->k[i] - 1) / s;
        extent[i] = (g->x[i] + m + s - 1) / s;
        if (extent[i] < g->y[i] + reach[i] - m / s)
            extent[i] = g->y[i] + reach[i] - m / s;
        if (extent[i] < g->y[i])
            extent[i] = g->y[i];
    }
    const td_dims all = { 5, { g->c + g->o, g->step[0], g->step[1],
        extent[0] + reach[0] + 1, extent[1] + reach[1] + LINE } };
    if (!td_dims_numel("convolution", &all, &p->room))
        return false;
    /* convolution: choose how many pictures share the buffer */
    p->pitch = extent[1];
    p->plane = extent[0] * extent[1];
    const int64_t parts = g->n * p->plane < 8 * TOGETHER ? 4 : 8;
    p->many = td_least(TOGETHER / p->plane, (g->n + parts - 1) / parts);
    if (p->many < 1 || p->role == LARGE_SIDE || p->direct)
        p->many = 1;
    p->phase = p->many * p->plane + reach[0] * p->pitch + reach[1];
    p->phase = (p->phase + LINE - 1) / LINE * LINE;
    p->room = g->c * g->step[0] * g->step[1] * p->phase + TD_SLIVER;
    p->of_x = (side){ g->c, p->phase, g->x, g->step, g->margin };
    p->of_y = (side){ g->o, p->phase, g->y, one, none };
    p->beside = p->role == LARGE_SIDE ? p->taps * p->ld
                                      : g->o * p->phase;
    /* convolution: find where each tap begins */
    for (int64_t t = 0; t < p->taps; t++) {
        const int64_t j = t / g->k[1], h = j % g->k[0] * g->gap[0];
        const int64_t k = t % g->k[1] * g->gap[1], v = g->step[0];
        const int64_t s = g->step[1], c = j / g->k[0];
        p->tap[t] = ((c * v + h % v) * s + k % s) * p->phase
                  + h / v * p->pitch + k / s;
    }
    return true;
}
/* convolution: choose loops by type */
#if defined __GNUC__ && !defined __clang__
#pragma GCC push_options
#pragma GCC optimize("no-tree-loop-distribute-patterns")
#endif
#define BODY "ops/convolution-lines.inc"
#include "ops/kernels/twice.inc"
#if defined __GNUC__ && !defined __clang__
#pragma GCC pop_options
#endif
#define FOR_TYPE(name, ...)                                     \
    (p->dtype == TD_FLOAT32 ? name##_f32(__VA_ARGS__)           \
                            : name##_f64(__VA_ARGS__))
/* convolution: functions that turn a geometry */
static bool is_direct(const geometry *g)
{
    bool direct = true;
    for (int i = 0; i < 2; i++)
        direct = direct && g->k[i] == 1 && g->step[i] == 1
              && g->margin[i] == 0;
    return direct;
}

static bool turn(const geometry *g, geometry *turned)
{
    *turned = (geometry){ .n = g->n, .groups = g->groups, .c = g->o,
                          .o = g->c };
    for (int i = 0; i < 2; i++) {
        turned->x[i] = g->y[i], turned->y[i] = g->x[i];
        turned->k[i] = g->k[i], turned->step[i] = 1;
        turned->gap[i] = g->gap[i];
        turned->margin[i] = g->gap[i] * (g->k[i] - 1) - g->margin[i];
        if (g->step[i] != 1 || turned->margin[i] < 0)
            return false;
    }
    return !is_direct(g);
}
/* convolution: functions for tiles */
/* Can windows of three be computed from tiles of six by six? */
static bool cut_in_tiles(const geometry *g, int role, td_dtype dtype)
{
    bool can = dtype == TD_FLOAT32 && role != LARGE_SIDE
            && g->c % 16 == 0 && g->o % 16 == 0;
    for (int i = 0; i < 2; i++)
        can = can && g->k[i] == 3 && g->step[i] == 1 && g->gap[i] == 1
           && g->y[i] >= 7;
    return can;
}

static int64_t between(int64_t low, int64_t x, int64_t high)
{
    const int64_t most = td_least(x, high);
    return most < low ? low : most;
}

static bool lay_out_tiles(plan *p)
{
    const geometry *g = p->g;
    const int64_t down = (g->y[0] + 3) / 4, across = (g->y[1] + 3) / 4;
    const int64_t most = TILES / (g->c + g->o);
    p->many = between(1, most / (down * across), (g->n + 3) / 4);
    p->strip = between(1, most / across, p->many * down);
    p->pitch = 4 * across + 2;
    p->plane = (4 * down + 2) * p->pitch;
    const td_dims all = { 4, { p->many * 36, g->c + g->o, 4 * down + 2,
                               p->pitch } };
    if (!td_dims_numel("convolution", &all, &p->room))
        return false;
    p->room = p->many * p->plane * (g->c + g->o);
    p->beside = 36 * (p->strip * across * (g->c + g->o) + 2 * LINE)
              + (p->role == WEIGHT ? g->groups * p->taps * g->o : 0);
    p->of_x = (side){ g->c, p->plane * g->c, g->x, one, g->margin };
    p->of_y = (side){ g->o, p->plane * g->o, g->y, one, none };
    for (int64_t t = 0; t < 52; t++)
        p->tap[t] = t < 36 ? (t / 6 * p->pitch + t % 6) * g->c
            : ((t - 36) / 4 * p->pitch + (t - 36) % 4) * g->o;
    return true;
}

static void fill_steps(int64_t *at, int count, int64_t step)
{
    for (int i = 0; i < count; i++)
        at[i] = i * step;
}

static void transform_weights(const geometry *g, bool back, float *w,
                              float *u)
{
    const td_winograd_level *level = TD_ISA_PICK(td_winograd);
    int64_t w_at[9], u_at[36];
    fill_steps(w_at, 9, g->o);
    fill_steps(u_at, 36, g->c * g->o);
    for (int64_t i = 0; i < g->groups; i++, u += 36 * g->c * g->o)
        for (int64_t c = 0; c < g->c; c++, w += 9 * g->o)
            if (back)
                level->gather(g->o, u + c * g->o, u_at, w, w_at);
            else
                level->weigh(g->o, w, w_at, u + c * g->o, u_at);
}

static void turn_pictures(const plan *p, const side *of, bool back,
                          int64_t count, float *buffer, char *data,
                          const float *bias)
{
    const td_winograd_level *level = TD_ISA_PICK(td_winograd);
    const int64_t c = of->channels, wide = of->size[1];
    const int64_t area = of->size[0] * wide;
    for (int64_t i = 0; i < count; i++)
        for (int64_t l = 0; l < of->size[0]; l++) {
            float *line = (float *)data + i * p->g->groups * c * area
                        + l * wide;
            float *to = buffer + i * of->phase
                + ((l + of->margin[0]) * p->pitch + of->margin[1]) * c;
            const int64_t room = area - l * wide;
            if (back)
                level->turn(wide, c, to, c, line, area, bias, room);
            else
                level->turn(c, wide, line, area, to, c, NULL, room);
        }
}

/* Where tile t of the lines of tiles from `line` on begins. */
static int64_t pixel_of(const plan *p, int64_t line, int64_t t)
{
    const int64_t across = p->pitch / 4, down = p->plane / p->pitch / 4;
    line += t / across;
    return line / down * p->plane
         + 4 * (line % down * p->pitch + t % across);
}

static bool multiply_tiles(const plan *p, int64_t group, int64_t lines,
                           float *buffer, bool first)
{
    const td_winograd_level *level = TD_ISA_PICK(td_winograd);
    const int64_t c = p->g->c, o = p->g->o, across = p->pitch / 4;
    const int64_t *y_tap = p->tap + 36;
    float *y = buffer + p->many * p->of_x.phase;
    float *u = buffer + p->room + group * p->taps * o;
    float *v = buffer + p->room + (p->role == WEIGHT
                                   ? p->g->groups * p->taps * o : 0);
    bool ok = true;
    for (int64_t line = 0; ok && line < lines; line += p->strip) {
        const int64_t n = between(0, lines - line, p->strip) * across;
        const int64_t at_v = (n * c / LINE | 1) * LINE;
        const int64_t at_m = (n * o / LINE | 1) * LINE;
        float *m = v + 36 * at_v;
        int64_t v_at[36], m_at[36];
        fill_steps(v_at, 36, at_v);
        fill_steps(m_at, 36, at_m);
        for (int64_t t = 0; t < n; t++) {
            const int64_t at = pixel_of(p, line, t);
            level->before(c, buffer + at * c, p->tap, v + t * c, v_at);
            if (p->role == WEIGHT)
                level->spread(o, y + at * o, y_tap, m + t * o, m_at);
        }
        if (p->role == WEIGHT) {
            /* convolution: multiply for the weight */
            for (int64_t k = 0; ok && k < 36; k++)
                ok = td_gemm(p->dtype, &(td_product){ c, o, n, 1, !first,
                    v + k * at_v, 1, c, m + k * at_m, o, 1,
                    u + k * c * o, o, NULL });
            first = false;
            continue;
        }
        /* convolution: multiply tiles */
        for (int64_t k = 0; ok && k < 36; k++)
            ok = td_gemm(p->dtype, &(td_product){ n, o, c, 1, 0,
                v + k * at_v, c, 1, p->u + (36 * group + k) * c * o, o, 1,
                m + k * at_m, o, NULL });
        for (int64_t t = 0; ok && t < n; t++)
            level->after(o, m + t * o, m_at,
                         y + pixel_of(p, line, t) * o, y_tap);
    }
    return ok;
}
/* convolution: function multiply */
static bool multiply(const plan *p, char *w, char *columns, char *y,
                     int64_t wide)
{
    const int64_t o = p->g->o, t = p->taps, ld = p->ld, all = p->small;
    const td_product roles[] = {
        [FORWARD] = { o, wide, t, 1, 1, w, t, 1, columns, ld, 1,
                      y, all, NULL },
        [LARGE_SIDE] = { t, wide, o, 1, p->direct, w, 1, t, y, all, 1,
                         columns, ld, NULL },
        [WEIGHT] = { o, t, wide, 1, 1, y, all, 1, columns, 1, ld,
                     w, t, NULL } };
    return td_gemm(p->dtype, &roles[p->role]);
}
/* convolution: function convolve */
static bool stamp(const plan *p, char *buffer, char *columns, char *w,
                  char *y)
{
    const geometry *g = p->g;
    memset(buffer, 0, (size_t)(p->room * p->size));
    for (int64_t l = 0; l < g->y[0]; l += p->strip) {
        const int64_t to = td_least(l + p->strip, g->y[0]);
        if (!multiply(p, w, columns, y + l * g->y[1] * p->size,
                      (to - l) * g->y[1]))
            return false;
        FOR_TYPE(scatter, p, (void *)buffer, l, to, columns);
    }
    return true;
}

static bool convolve(const plan *p, int64_t group, int64_t first,
                     int64_t count, char *buffer, char *w, bool begin)
{
    const geometry *g = p->g;
    const int64_t at = first * g->groups + group;
    const bool large = p->role == LARGE_SIDE;
    char *x = p->x + at * g->c * p->large * p->size;
    char *y = p->y + at * g->o * p->small * p->size;
    char *other = buffer + p->room * p->size;
    const int64_t places = (count - 1) * p->plane
                         + (g->y[0] - 1) * p->pitch + g->y[1];
    td_product of = { .m = g->o, .n = p->taps, .k = p->taps, .alpha = 1,
                      .b = buffer, .csb = 1, .rows = p->tap };
    if (p->tiled) {
        /* convolution: convolve by tiles */
        const bool forward = p->role == FORWARD;
        float *from = (float *)buffer, *to = from + p->many * p->of_x.phase;
        const float *bias = p->bias;
        turn_pictures(p, &p->of_x, false, count, from, x, NULL);
        if (!forward)
            turn_pictures(p, &p->of_y, false, count, to, y, NULL);
        if (!multiply_tiles(p, group, count * (p->plane / p->pitch / 4), from,
                            begin))
            return false;
        if (forward)
            turn_pictures(p, &p->of_y, true, count, to, y,
                          bias ? bias + group * g->o : NULL);
        return true;
    }
    w += group * g->o * p->taps * p->size;
    if (p->direct) {
        /* convolution: begin the result with its bias */
        if (p->role == FORWARD)
            FOR_TYPE(begin, p, group, g->o, p->small, y);
        else if (large)
            FOR_TYPE(begin, p, group, g->c, p->large, x);
        return multiply(p, w, x, y, p->small);
    }
    if (large && !stamp(p, buffer, other, w, y))
        return false;
    if (!large)
        FOR_TYPE(carry, p, &p->of_x, false, group, count, buffer, x);
    if (p->role == FORWARD && p->taps == g->k[0] * g->k[1]
        && g->o == 1) {
        /* convolution: slide over the pictures */
        const bool wide = p->dtype == TD_FLOAT64;
        const char *bias = p->bias;
        for (int64_t i = 0; i < count; i++)
            TD_ISA_PICK(td_sliding)->slide[wide](g->y[0], g->y[1], p->taps,
                p->tap, w, buffer + i * p->plane * p->size, p->pitch,
                bias ? bias + group * p->size : NULL,
                y + i * g->groups * p->small * p->size);
        return true;
    } else if (p->role == FORWARD) {
        /* convolution: multiply weights and taps */
        of.n = places;
        of.a = w, of.rsa = 1, of.csa = g->o;
        of.c = other, of.ldc = p->phase;
        if (!td_gemm(p->dtype, &of))
            return false;
    } else if (p->role == WEIGHT) {
        /* convolution: multiply lines of both sides */
        if (count < p->many)
            memset(other, 0, (size_t)(g->o * p->phase * p->size));
        FOR_TYPE(carry, p, &p->of_y, false, group, count, other, y);
        of.k = (places + LINE - 1) / LINE * LINE;
        of.a = other, of.rsa = p->phase;
        of.c = w, of.ldc = p->taps, of.beta = 1;
        td_dots(p->dtype, &of);
        return true;
    }
    FOR_TYPE(carry, p, large ? &p->of_x : &p->of_y, true, group, count,
             large ? buffer : other, large ? x : y);
    return true;
}
/* convolution: functions that convolve a batch */
static bool convolve_range(const plan *p, int64_t begin, int64_t end,
                           char *w)
{
    const geometry *g = p->g;
    const size_t room = (size_t)(p->room * p->size);
    const size_t bytes = room + (size_t)(p->beside * p->size);
    char *buffer = p->direct ? NULL : td_storage_alloc(bytes);
    bool ok = p->direct || buffer != NULL;
    if (buffer != NULL)
        memset(buffer, 0, p->tiled ? room : bytes);
    for (int64_t u = begin; ok && u < end; u++) {
        const int64_t first = u / g->groups * p->many;
        ok = convolve(p, u % g->groups, first,
                      td_least(p->many, g->n - first), buffer, w,
                      u < begin + g->groups);
    }
    if (ok && p->tiled && p->role == WEIGHT)
        transform_weights(g, true, (float *)w,
                          (float *)(buffer + room));
    td_storage_free(buffer, bytes);
    return ok;
}

TD_BODY(convolve_some, const plan, p)
{
    return convolve_range(p, begin, end, p->w);
}

static int64_t weights_of(const plan *p)
{
    const geometry *g = p->g;
    return g->groups * g->o * g->c * g->k[0] * g->k[1];
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
    FOR_TYPE(add, into, from, 1, weights_of(p));
}

static bool convolve_batch(plan *p)
{
    const geometry *g = p->g;
    const int64_t blocks = (g->n + p->many - 1) / p->many;
    const int64_t units = blocks * g->groups, weights = g->o * p->taps;
    if (p->role == WEIGHT)
        return td_parallel_reduce(blocks, (blocks + 7) / 8,
            (size_t)(weights_of(p) * p->size), p->w,
            convolve_pictures, add_weights, p, p->w);
    if (units == 1)
        return convolve_some(p, 0, 1, 0);
    return td_parallel_for(units, WORK_GRAIN
                           / (weights * p->small * p->many + 1) + 1,
                           convolve_some, p);
}

static void run(const geometry *g, int role, const td_tensor *bias,
                td_tensor *x, td_tensor *w, td_tensor *y)
{
    if (td_failed())
        return;
    plan p = { .g = g, .role = role, .dtype = x->dtype,
               .size = (int64_t)td_dtype_size(x->dtype),
               .taps = g->c * g->k[0] * g->k[1],
               .direct = is_direct(g),
               .large = g->x[0] * g->x[1], .small = g->y[0] * g->y[1],
               .bias = bias != NULL ? td_at(bias) : NULL,
               .x = td_at(x), .w = td_at(w), .y = td_at(y) };
    p.tiled = cut_in_tiles(g, role, p.dtype);
    const size_t bytes = p.tiled && role == FORWARD     /* four each */
        ? (size_t)weights_of(&p) * 4 * sizeof *p.u : 0;
    if (p.tiled)
        p.taps *= 4;
    p.tap = td_alloc_array((size_t)p.taps + 1, sizeof *p.tap);
    p.u = bytes > 0 ? td_storage_alloc(bytes) : NULL;
    if (p.u != NULL)
        transform_weights(g, false, (float *)p.w, p.u);
    /* convolution: choose how many lines a strip has */
    p.strip = STRIP_BYTES / (p.taps * g->y[1] * p.size + 1) + 1;
    if (p.strip > g->y[0] || p.direct)
        p.strip = g->y[0];
    p.ld = p.direct ? p.small
         : (p.strip * g->y[1] + LINE - 1) / LINE * LINE;
    if (!td_failed() && (p.tiled ? lay_out_tiles(&p) : lay_out(&p)))
        convolve_batch(&p);
    td_free(p.tap, ((size_t)p.taps + 1) * sizeof *p.tap);
    td_storage_free(p.u, bytes);
}
/* convolution: function by_columns */
#define PAIR(v) td_v_ints(&(td_dims){ 2, { (v)[0], (v)[1] } })

static td_tensor *by_columns(const geometry *g, int role, td_tensor *a,
                             td_tensor *b)
{
    const int64_t t = g->c * g->k[0] * g->k[1], l = g->y[0] * g->y[1];
    td_tensor *x = a, *y = role == WEIGHT ? b : a, *w = b;
    if (role != LARGE_SIDE)
        x = td_reshape(TD_CALL(im2col, x, PAIR(g->k), PAIR(g->gap),
                               PAIR(g->margin), PAIR(g->step)),
                       TD_DIMS(g->n, g->groups, t, l));
    if (role != FORWARD)
        y = td_reshape(y, TD_DIMS(g->n, g->groups, g->o, l));
    if (role == WEIGHT)
        return td_sum(td_matmul(y, td_transpose(x, 2, 3)),
                      TD_OVER(0));
    w = td_reshape(w, TD_DIMS(g->groups, g->o, t));
    if (role == FORWARD)
        return td_matmul(w, x);
    /* convolution: go back from columns to pictures */
    x = td_reshape(td_matmul(td_transpose(w, 1, 2), y),
                   TD_DIMS(g->n, g->groups * t, l));
    return TD_CALL(col2im, x, PAIR(g->x), PAIR(g->k), PAIR(g->gap),
                   PAIR(g->margin), PAIR(g->step));
}
/* convolution: kernels that convolve */
static td_tensor *computed(const geometry *g, int role, td_dims shape,
                           td_tensor *a, td_tensor *b, td_tensor *bias)
{
    if (!td_on_host(a) && !td_self()->symbolic && g->n > 0) {
        td_tensor *y = td_reshape(by_columns(g, role, a, b), shape);
        return bias == NULL ? y
             : td_add(y, td_reshape(bias, TD_DIMS(-1, 1, 1)));
    }
    td_tensor *out = td_tensor_new(shape, a->dtype, td_device_of(a));
    if (td_failed() || td_self()->symbolic || td_numel(out) == 0)
        return out;
    if (role == WEIGHT || !td_on_host(out))
        td_fill_all(out, td_int(0));
    a = td_contiguous(a);
    /* convolution: turn or transpose the weight */
    geometry turned;
    const int64_t window = g->k[0] * g->k[1];
    if (role == LARGE_SIDE && turn(g, &turned)) {
        b = td_reshape(b, TD_DIMS(g->groups, g->o, g->c, window));
        b = td_flip(td_permute(b, TD_DIMS(0, 1, 3, 2)), TD_DIMS(2));
        g = &turned;
        role = FORWARD;
    } else if (role == FORWARD && !is_direct(g)) {
        b = td_reshape(b, TD_DIMS(g->groups, g->o, g->c * window));
        b = td_permute(b, TD_DIMS(0, 2, 1));
    }
    b = td_contiguous(b);
    if (td_on_host(out))
        run(g, role, bias != NULL ? td_contiguous(bias) : NULL,
            role == LARGE_SIDE ? out : a, role == WEIGHT ? out : b,
            role == FORWARD ? out : role == WEIGHT ? b : a);
    if (!td_failed() && role == WEIGHT
        && cut_in_tiles(g, role, a->dtype)) {
        out = td_reshape(out, TD_DIMS(g->groups, g->c * window, g->o));
        out = td_contiguous(td_permute(out, TD_DIMS(0, 2, 1)));
    }
    return td_reshape(out, shape);
}

static bool compute(td_call *call, const geometry *g, int role,
                    td_dims shape)
{
    td_tensor *a = td_input(call, 0), *b = td_input(call, 1);
    td_tensor *bias = call->n_in < 3 ? NULL : td_input(call, 2);
    if ((a->dtype != TD_FLOAT32 && a->dtype != TD_FLOAT64)
        || b->dtype != a->dtype || (bias && bias->dtype != a->dtype))
        return td_fail(TD_ERROR_RUNTIME, call->op->name, "expected all "
            "operands in float32 or all in float64, got %s and %s",
            td_dtype_name(a->dtype), td_dtype_name(b->dtype));
    if (bias && !td_expect(call, "bias", bias, TD_DIMS(shape.at[1])))
        return false;
    td_self()->muted++;
    td_scope_begin();
    td_tensor *y = computed(g, role, shape, a, b, bias);
    y = td_scope_end_with(td_failed() ? NULL : y);
    td_self()->muted--;
    return td_return(call, y);
}

bool convolution_kernel(td_call *call)
{
    geometry g;
    if (!measure(td_shape_of(td_input(call, 0)),
                 td_shape_of(td_input(call, 1)), call->attr, true, &g))
        return false;
    return compute(call, &g, g.back ? LARGE_SIDE : FORWARD, g.back
        ? TD_DIMS(g.n, g.groups * g.c, g.x[0], g.x[1])
        : TD_DIMS(g.n, g.groups * g.o, g.y[0], g.y[1]));
}

bool convolution_weight_kernel(td_call *call)
{
    const td_dims w = td_numbers(call, 0);
    geometry g;
    if (td_failed() || !measure(td_shape_of(td_input(call, 0)), w,
                                call->attr + 1, false, &g))
        return false;
    const td_dims y = TD_DIMS(g.n, g.groups * g.o, g.y[0], g.y[1]);
    return td_expect(call, "grad", td_input(call, 1), y)
        && compute(call, &g, WEIGHT, w);
}
/* convolution: rules that convolve */
static td_tensor *convolved(const geometry *g, td_tensor *a,
                            td_tensor *w, bool back)
{
    int64_t more[2];
    for (int i = 0; i < 2; i++)
        /* convolution: count what the large side has left */
        more[i] = !back ? 0 : g->x[i] + 2 * g->margin[i]
                - (g->y[i] - 1) * g->step[i]
                - g->gap[i] * (g->k[i] - 1) - 1;
    return TD_RUN(convolution,
        (td_v_tensor(a), td_v_tensor(w), td_v_none()),
        PAIR(g->step), PAIR(g->margin), PAIR(g->gap), td_v_bool(back),
        PAIR(more), td_v_int(g->groups));
}

static td_tensor *weighed(const geometry *g, td_tensor *x, td_tensor *y)
{
    const td_dims w = TD_DIMS(g->groups * g->o, g->c, g->k[0], g->k[1]);
    return TD_CALL2(convolution_weight, x, y, td_v_ints(&w),
                    PAIR(g->step), PAIR(g->margin), PAIR(g->gap),
                    td_v_int(g->groups));
}

TD_RULE(convolution, grad)
{
    geometry g;
    if (!measure(td_input_dims(b, 0), td_input_dims(b, 1),
                 td_attribute(b, 0), true, &g))
        return;
    /* convolution: ask the other two readings for gradients */
    if (td_needs(b, 0))
        b->grad_in[0] = convolved(&g, grad, td_saved_input(b, 1),
                                  !g.back);
    if (td_needs(b, 1)) {
        td_tensor *a = td_saved_input(b, 0);
        b->grad_in[1] = weighed(&g, g.back ? grad : a, g.back ? a : grad);
    }
    if (td_needs(b, 2))
        b->grad_in[2] = td_sum(grad, TD_OVER(0, 2, 3));
}

void convolution_weight_rule(td_backward_pass *b)
{
    const td_value *size = td_attribute(b, 0);
    td_dims w = { 4, { 0 } };
    geometry g;
    memcpy(w.at, size->as.ints.at, 4 * sizeof w.at[0]);
    if (!measure(td_input_dims(b, 0), w, size + 1, false, &g))
        return;
    /* convolution: give each operand what the other two make */
    for (int i = 0; i < 2; i++)
        if (td_needs(b, i))
            b->grad_in[i] = convolved(&g, td_saved_input(b, 1 - i),
                                      b->grad[0], i == 0);
}
/* convolution: function td_convolution */
td_tensor *td_convolution(td_tensor *input, td_tensor *weight,
                          td_tensor *bias, td_convolution_options o)
{
    return TD_RUN(convolution, (td_v_tensor(input),
            td_v_tensor(weight), td_v_optional(bias)),
        td_v_ints(&o.stride), td_v_ints(&o.padding),
        td_v_ints(&o.dilation), td_v_bool(o.transposed),
        td_v_ints(&o.output_padding),
        td_v_int(o.groups != 0 ? o.groups : 1));
}
