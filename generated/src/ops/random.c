/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "random": edit that, not this file. */
#include "ops/kernels/random-kernels.h"
#include "core/device.h"
#include "core/registry.h"
#include "core/space.h"
#include <float.h>

static const td_device cpu = { TD_DEVICE_CPU, 0 };

/* random: struct td_generator */
struct td_generator {
    td_object object;
    td_random_state state;
};
/* random: struct fill */
typedef struct fill fill;
typedef bool fill_block(const fill *, int64_t begin, int64_t end,
                        void *out);
struct fill {
    fill_block *block;
    td_dtype drawn;              /* what the block is made of */
    td_tensor *x;
    td_stream stream;
    double a, b;                 /* parameters of the distribution */
    int64_t low;                 /* and of the integers */
    uint64_t range;
    const td_tensor *probabilities;
    td_space space;              /* of x, and the probabilities */
};
enum { FILL_BLOCK = 256, FILL_GRAIN = 8192 };
/* random: struct pair */
typedef struct { double at[2]; } pair;
/* random: functions that keep the state */
/* random: function thread_state */
/* This thread's state; at first use, seed 0 and a range of its own. */
static td_random_state *thread_state(void)
{
    td_thread *self = td_self();
    if (!self->random_seeded) {
        const uint64_t before = atomic_fetch_add(
            &td_process()->threads_that_drew, 1);
        self->random = (td_random_state){ 0, before << 40 };
        self->random_seeded = true;
    }
    return &self->random;
}
/* random: function td_manual_seed */
void td_manual_seed(uint64_t seed)
{
    td_self()->random = (td_random_state){ seed, 0 };
    td_self()->random_seeded = true;
}
/* random: function td_random_swap */
td_random_state td_random_swap(td_random_state state)
{
    td_random_state *own = thread_state();
    const td_random_state before = *own;
    *own = state;
    return before;
}
/* random: function td_generator_new */
static const td_class generator_class = {
    .name = "generator", .destroy = NULL };

td_generator *td_generator_new(uint64_t seed)
{
    td_generator *g = td_object_new(&generator_class, sizeof *g);
    if (g)
        g->state = (td_random_state){ seed, 0 };
    return g;
}
/* random: function td_generator_state */
td_random_state td_generator_state(td_generator *generator,
                                   const td_random_state *state)
{
    const td_random_state before = generator->state;
    if (state)
        generator->state = *state;
    return before;
}
/* random: function next_stream */
/* The next stream of a TD_GENERATOR value; TD_NONE: the thread's. */
static td_stream next_stream(const td_value *generator)
{
    td_random_state *state = thread_state();
    if (generator->kind == TD_GENERATOR)
        state = &((td_generator *)generator->as.generator)->state;
    const td_stream stream = td_stream_of(*state);
    state->stream++;
    return stream;
}
/* random: functions that draw blocks */
/* random: function unit */
static inline double unit24(uint64_t x)
{
    return (double)(x >> 40) * 0x1p-24;
}
static inline double unit53(uint64_t x)
{
    return (double)(x >> 11) * 0x1p-53;
}
/* random: function uniforms */
static bool uniforms(const fill *f, int64_t begin, int64_t end,
                     void *out)
{
    /* random: find the span and the last number below the end */
    const bool single = f->x->dtype == TD_FLOAT32;
    const double a = f->a, b = f->b;
    const double span = single ? (float)(b - a) : b - a;
    const double last = !(a < b) ? a
        : single ? nextafterf((float)b, (float)a) : nextafter(b, a);
    for (int64_t i = begin; i < end; i++) {
        const uint64_t x = td_draw(f->stream, (uint64_t)i);
        double value = single ? (float)(a + span * unit24(x))
                              : fma(span, unit53(x), a);
        value = value < b ? value : last;
        /* random: store the number in its own type */
        if (single)
            ((float *)out)[i - begin] = (float)value;
        else
            ((double *)out)[i - begin] = value;
    }
    return true;
}
/* random: function normal_pair */
/* Two independent normal numbers from two draws: Box, Muller 1958. */
static pair normal_pair(uint64_t x, uint64_t y)
{
    const double u = unit53(x) + 0x1p-53;             /* (0, 1] */
    const double square = -2 * log(u), r = sqrt(square);
    const double fraction = (double)(y >> 14) * 0x1p-50;  /* [0, 1) */
    /* random: carry what rounding took off */
    const double quarter = 0.78539816339744830962;        /* pi / 4 */
    const double quarter_rest = 3.061616997868383e-17;
    const double r_rest = r > 0 ? fma(-r, r, square) / (2 * r) : 0;
    const double angle = fraction * quarter;
    const double rest = fma(fraction, quarter, -angle)
                      + fraction * quarter_rest;
    const double s = sin(angle), c = cos(angle);
    const double sine = fma(r, s, r_rest * s + r * c * rest);
    const double cosine = fma(r, c, r_rest * c - r * s * rest);
    const bool swap = y & 4;
    return (pair){ {
        (y & 1 ? -1 : 1) * (swap ? cosine : sine),
        (y & 2 ? -1 : 1) * (swap ? sine : cosine) } };
}
/* random: function normal_at */
/* Element i, from *p if that still holds the pair i belongs to. */
static double normal_at(const fill *f, int64_t i, int64_t begin,
                        pair *p)
{
    const uint64_t even = (uint64_t)i & ~(uint64_t)1;
    if (i == begin || (uint64_t)i == even)
        *p = normal_pair(td_draw(f->stream, even),
                         td_draw(f->stream, even + 1));
    return f->a + f->b * p->at[i & 1];
}
/* random: function normals */
static bool normals(const fill *f, int64_t begin, int64_t end,
                    void *out)
{
    double *at = out;
    pair p;
    /* random: draw pairs for single precision */
    const int64_t first = begin + (begin & 1), pairs = (end - first) / 2;
    if (f->x->dtype == TD_FLOAT32 && pairs > 0) {
        if (begin < first)
            *at++ = normal_at(f, begin, begin, &p);
        TD_ISA_PICK(td_random)->normals(pairs, f->stream, (uint64_t)first,
                                        f->a, f->b, at);
        at += 2 * pairs;
        begin = first + 2 * pairs;
    }
    for (int64_t i = begin; i < end; i++, at++)
        *at = normal_at(f, i, begin, &p);
    return true;
}
/* random: function integers */
static bool integers(const fill *f, int64_t begin, int64_t end,
                     void *out)
{
    for (int64_t i = begin; i < end; i++)
        ((int64_t *)out)[i - begin] = (int64_t)((uint64_t)f->low
            + td_draw_below(f->stream, (uint64_t)i, f->range));
    return true;
}
/* random: function coins */
static bool coins(const fill *f, int64_t begin, int64_t end, void *out)
{
    const int64_t n = end - begin;
    float *heads = out;
    double chance[FILL_BLOCK];
    if (f->probabilities != NULL)
        td_space_carry(&f->space, 1, f->space.data[1], begin, n,
                       TD_FLOAT64, chance, false);
    for (int64_t i = 0; f->probabilities != NULL && i < n; i++)
        if (!(chance[i] >= 0 && chance[i] <= 1))
            return td_fail(TD_ERROR_VALUE, "bernoulli",
                "probability %g at position %" PRId64
                " is not between 0 and 1", chance[i], begin + i);
    for (int64_t i = 0; i < n; i++)
        heads[i] = unit53(td_draw(f->stream, (uint64_t)(begin + i)))
                 < (f->probabilities != NULL ? chance[i] : f->a);
    return true;
}
/* random: function shuffle */
static void shuffle(int64_t *order, int64_t n, td_stream stream)
{
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t j = (int64_t)td_draw_below(stream, (uint64_t)i,
                                                 (uint64_t)i + 1);
        const int64_t moved = order[i];
        order[i] = order[j];
        order[j] = moved;
    }
}
/* random: functions that fill tensors */
/* random: function fill_range */
TD_BODY(fill_range, const fill, f)
{
    const bool direct = f->drawn == f->x->dtype
                     && td_is_contiguous(f->x);
    for (int64_t i = begin, stop; i < end; i = stop) {
        stop = end - i < FILL_BLOCK ? end : i + FILL_BLOCK;
        _Alignas(8) char buffer[FILL_BLOCK * 8];
        if (!f->block(f, i, stop, direct
                      ? td_space_place(&f->space, 0, i) : buffer))
            return false;
        if (!direct)
            td_space_carry(&f->space, 0, f->space.data[0], i, stop - i,
                           f->drawn, buffer, true);
    }
    return true;
}
/* random: function fill_tensor */
static bool fill_tensor(fill f, const td_value *generator)
{
    td_tensor *wanted = f.x;
    f.stream = next_stream(generator);
    if (!td_on_host(wanted))
        f.x = td_tensor_new(td_shape_of(wanted), wanted->dtype, cpu);
    if (f.x == NULL)
        return false;
    td_space_begin(&f.space, f.x, TD_ALL_DIMS);
    if (f.probabilities != NULL)
        td_space_add(&f.space, f.probabilities, TD_ALL_DIMS);
    td_collapse(&f.space.shape, f.space.operands, f.space.stride);
    bool ok = td_self()->symbolic
        || td_parallel_for(f.space.total, FILL_GRAIN, fill_range, &f);
    if (f.x != wanted) {
        ok = ok && td_copy_elements(wanted, f.x);
        td_discard(f.x);
    }
    return ok;
}
/* random: function distributions */
static fill interval(td_tensor *x, double low, double high)
{
    return (fill){ .x = x, .a = low, .b = high,
                   .drawn = x->dtype, .block = uniforms };
}
static fill bell(td_tensor *x, double mean, double deviation)
{
    return (fill){ .x = x, .a = mean, .b = deviation,
                   .drawn = TD_FLOAT64, .block = normals };
}
/* random: function check_floating */
static bool check_floating(td_dtype dtype)
{
    return dtype == TD_FLOAT32 || dtype == TD_FLOAT64
        || td_fail(TD_ERROR_TYPE, "random", "draws float32 or float64, "
                   "not %s", td_dtype_name(dtype));
}
/* random: function fill_in_place */
static bool fill_in_place(td_call *call, fill f,
                          const td_value *generator)
{
    if (!td_writes_alone(f.x)
        || !fill_tensor(f, generator))
        return false;
    td_bump_version(f.x);
    return td_return(call, td_share(f.x));
}
/* random: kernels of random numbers */
/* random: kernel rand_kernel */
static bool fresh(td_call *call,
                  fill spread(td_tensor *, double, double))
{
    td_tensor *x = td_new_sized(call, 0, td_default_dtype());
    return td_return(call, x) && check_floating(x->dtype)
        && fill_tensor(spread(x, 0, 1), &call->attr[call->n_attr - 3]);
}

bool rand_kernel(td_call *call) { return fresh(call, interval); }
/* random: kernel randn_kernel */
bool randn_kernel(td_call *call) { return fresh(call, bell); }
/* random: kernel randint_kernel */
bool randint_kernel(td_call *call)
{
    const int64_t low = td_number(call, 0, 0);
    const int64_t high = td_number(call, 1, 0);
    td_tensor *x = td_new_sized(call, 2, TD_INT64);
    if (!td_return(call, x))
        return false;
    /* random: refuse bounds that do not fit */
    const td_dtype dtype = x->dtype;
    const int64_t most = INT64_C(1) << (dtype == TD_FLOAT32 ? 24 : 53);
    if (low >= high)
        return td_fail(TD_ERROR_VALUE, "random", "low = %" PRId64
            " must be below high = %" PRId64, low, high);
    if (dtype >= TD_BOOL)
        return td_fail(TD_ERROR_TYPE, "random", "cannot draw whole "
                       "numbers as %s", td_dtype_name(dtype));
    if (!(td_dtype_is_floating(dtype) ? low >= -most && high - 1 <= most
          : td_scalar_fits(td_int(low), dtype)
            && td_scalar_fits(td_int(high - 1), dtype)
            && (low >= 0 || dtype != TD_UINT8)))
        return td_fail(TD_ERROR_VALUE, "random", "[%" PRId64 ",%" PRId64
                       ") does not fit %s", low, high,
                       td_dtype_name(dtype));
    return fill_tensor((fill){ .x = x, .low = low, .drawn = TD_INT64,
        .range = (uint64_t)high - (uint64_t)low,
        .block = integers }, &call->attr[3]);
}
/* random: kernel randperm_kernel */
bool randperm_kernel(td_call *call)
{
    const int64_t n = td_number(call, 0, 0);
    if (n < 0)
        return td_fail(TD_ERROR_VALUE, "randperm",
                       "n = %" PRId64 " must not be negative", n);
    td_tensor *x = td_tensor_new(TD_DIMS(n), TD_INT64, cpu);
    if (x == NULL)
        return false;
    const td_stream stream = next_stream(&call->attr[1]);
    if (td_on_host(x))
        shuffle(td_at(x), n, stream);
    return td_return(call, td_sent(x, td_device_wanted(call)));
}
/* random: kernel uniform_kernel */
TD_KERNEL(uniform, x)
{
    const double a = td_real(call, 0);
    const double b = td_real(call, 1);
    if (!check_floating(x->dtype))
        return false;
    /* random: refuse an interval that is none */
    const bool single = x->dtype == TD_FLOAT32;
    const double most = single ? FLT_MAX : DBL_MAX;
    if (!(a <= b))
        return td_fail(TD_ERROR_VALUE, "random", "the interval [%g,%g) "
                       "ends before it begins", a, b);
    if (!(fabs(a) <= most && fabs(b) <= most && b - a <= most))
        return td_fail(TD_ERROR_VALUE, "random", "the interval [%g,%g) "
            "is not finite in %s", a, b, td_dtype_name(x->dtype));
    return fill_in_place(call, interval(x, single ? (float)a : a,
                         single ? (float)b : b), &call->attr[2]);
}
/* random: kernel normal_kernel */
TD_KERNEL(normal, x)
{
    const double mean = td_real(call, 0);
    const double deviation = td_real(call, 1);
    if (!check_floating(x->dtype))
        return false;
    if (!(deviation >= 0))
        return td_fail(TD_ERROR_VALUE, "normal_",
                       "std = %g must not be negative", deviation);
    return fill_in_place(call, bell(x, mean, deviation),
                         &call->attr[2]);
}
/* random: kernel bernoulli_in_place_kernel */
static bool is_chance(double p)
{
    return (p >= 0 && p <= 1)
        || td_fail(TD_ERROR_VALUE, "random", "p = %g is not between 0 "
                   "and 1", p);
}

TD_KERNEL(bernoulli_in_place, x)
{
    const double p = td_real(call, 0);
    return is_chance(p) && fill_in_place(call, (fill){ .x = x, .a = p,
        .drawn = TD_FLOAT32, .block = coins }, &call->attr[1]);
}
/* random: kernel bernoulli_kernel */
TD_KERNEL(bernoulli, p)
{
    const bool given = call->attr[0].kind == TD_SCALAR;
    fill f = { .block = coins, .probabilities = given ? NULL : p,
               .drawn = TD_FLOAT32, .a = td_real(call, 0) };
    if (given && !is_chance(f.a))
        return false;
    if (!given && !td_on_host(p))
        return td_fail(TD_ERROR_UNSUPPORTED, "bernoulli", "the "
                       "probabilities must be values on the cpu");
    if (!given && !check_floating(p->dtype))
        return false;
    f.x = td_tensor_new(td_shape_of(p), p->dtype, td_device_of(p));
    return td_return(call, f.x) && fill_tensor(f, &call->attr[1]);
}
/* random: typed functions of random numbers */
/* random: typed functions that draw */
TD_CREATED_PAIR(rand, td_v_none())
TD_CREATED_PAIR(randn, td_v_none())
TD_CREATED(randint, (td_v_int(low), td_v_int(high), td_v_ints(&shape),
                     td_v_none()),
           int64_t low, int64_t high, td_dims shape)
/* random: function td_randperm */
td_tensor *td_randperm(int64_t n)
{
    return TD_RUN(randperm, (), td_v_int(n), td_v_none(), td_v_none());
}
/* random: function td_uniform_ */
TD_TYPED(uniform_, (td_v_float(low), td_v_float(high), td_v_none()),
         double low, double high)
TD_TYPED(normal_,
         (td_v_float(mean), td_v_float(deviation), td_v_none()),
         double mean, double deviation)
TD_TYPED(bernoulli_, (td_v_float(p), td_v_none()), double p)
/* random: function td_bernoulli */
td_tensor *td_bernoulli(td_tensor *probabilities)
{
    return TD_CALL(bernoulli, probabilities, td_v_none(), td_v_none());
}
