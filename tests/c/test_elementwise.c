/* needs: elementwise */
/* Every operator of chapter 5 over dtypes, layouts and shapes, against a
   plain reference; special values; accuracy; the same bits for any
   position, number of threads and executor; errors; failed memory. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <treadle/elementwise.h>
#include <treadle/isa.h>
#include <treadle/parallel.h>
#include "elementwise.h"
#include "isa.h"
#include "registry.h"
#include "tensor.h"

static const td_device cpu = { TD_DEVICE_CPU, 0 };
static const td_dtype dtypes[] = { TD_FLOAT32, TD_FLOAT64, TD_INT64,
                                   TD_INT32, TD_UINT8, TD_BOOL };
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

/* Tensors of any layout ---------------------------------------------- */

typedef enum { CONTIGUOUS, TRANSPOSED, STEPPED, EXPANDED, LAYOUTS } layout;
static const char *const layout_names[] = { "contiguous", "transposed",
                                            "stepped", "expanded" };

static uint64_t seed;

static uint64_t draw(void)
{
    uint64_t z = (seed += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Small numbers, never zero in floats, some negative. */
static void put_random(td_dtype dtype, void *at)
{
    const uint64_t r = draw();
    const double f = ((double)(r >> 11) / 9007199254740992.0 - 0.45) * 8;
    switch (dtype) {
    case TD_FLOAT32: *(float *)at = (float)f; break;
    case TD_FLOAT64: *(double *)at = f; break;
    case TD_INT64: *(int64_t *)at = (int64_t)(r % 15) - 7; break;
    case TD_INT32: *(int32_t *)at = (int32_t)(r % 15) - 7; break;
    case TD_UINT8: *(uint8_t *)at = (uint8_t)(r % 250); break;
    default: *(uint8_t *)at = r >> 40 & 1; break;
    }
}

static td_tensor *random_tensor(td_dtype dtype, td_dims shape, layout how)
{
    td_dims base = shape;
    const int last = shape.count - 1;
    if (how == STEPPED && last >= 0)
        base.at[last] = 2 * shape.at[last] + 1;
    if (how == TRANSPOSED && last > 0) {
        base.at[0] = shape.at[last];
        base.at[last] = shape.at[0];
    }
    if (how == EXPANDED && last >= 0)
        base.at[0] = shape.at[0] > 0;
    td_tensor *x = td_tensor_new(base, dtype, cpu);
    assert_non_null(x);
    const int64_t n = td_numel(x);
    for (int64_t i = 0; i < n; i++)
        put_random(dtype, (char *)td_at(x)
                          + i * (int64_t)td_dtype_size(dtype));
    if (how == TRANSPOSED && last > 0) {
        const int64_t s = x->strides[0];
        x->strides[0] = x->strides[last];
        x->strides[last] = s;
    }
    if (how == STEPPED && last >= 0) {
        x->strides[last] *= 2;
        x->offset = 1;
    }
    if (how == EXPANDED && last >= 0)
        x->strides[0] = 0;
    memcpy(x->shape, shape.at, sizeof x->shape);
    return x;
}

/* Address of an element, by its number in the broadcast shape. */
static const void *element(const td_tensor *x, const td_dims *shape,
                           int64_t number)
{
    int64_t at = x->offset;
    for (int d = shape->count - 1; d >= 0; d--) {
        const int own = d - (shape->count - x->rank);
        const int64_t index = number % shape->at[d];
        number /= shape->at[d];
        if (own >= 0 && x->shape[own] != 1)
            at += index * x->strides[own];
    }
    return (const char *)x->storage->data
         + at * (int64_t)td_dtype_size(x->dtype);
}

static double as_double(td_dtype dtype, const void *at)
{
    switch (dtype) {
    case TD_FLOAT32: return *(const float *)at;
    case TD_FLOAT64: return *(const double *)at;
    case TD_INT64: return (double)*(const int64_t *)at;
    case TD_INT32: return *(const int32_t *)at;
    default: return *(const uint8_t *)at;
    }
}

static double value(const td_tensor *x, const td_dims *shape, int64_t i)
{
    return as_double(x->dtype, element(x, shape, i));
}

/* A double as an element of an integer dtype wraps, as C does. */
static double stored(td_dtype dtype, double v)
{
    switch (dtype) {
    case TD_FLOAT32: return (float)v;
    case TD_INT64: return (double)(int64_t)v;
    case TD_INT32: return (int32_t)(int64_t)v;
    case TD_UINT8: return (uint8_t)(int64_t)v;
    case TD_BOOL: return v != 0;
    default: return v;
    }
}

/* The reference ------------------------------------------------------- */

enum { INTS = 1, BOOLS = 2, FLOAT_RESULT = 4, BOOL_RESULT = 8, LOOSE = 16 };

typedef struct {
    const char *name;
    td_tensor *(*one)(td_tensor *);
    td_tensor *(*two)(td_tensor *, td_tensor *);
    double (*f)(double a, double b);
    int flags;
} operator;

#define R(name, expression) \
    static double ref_##name(double a, double b) \
    { (void)a; (void)b; return (double)(expression); }
R(add, a + b) R(sub, a - b) R(mul, a * b) R(div, a / b) R(pow, pow(a, b))
R(neg, -a) R(abs, fabs(a)) R(sign, (a > 0) - (a < 0)) R(square, a * a)
R(reciprocal, 1 / a) R(exp, exp(a)) R(log, log(a)) R(sqrt, sqrt(a))
R(rsqrt, 1 / sqrt(a)) R(sin, sin(a)) R(cos, cos(a)) R(tanh, tanh(a))
R(sigmoid, 1 / (1 + exp(-a))) R(relu, a < 0 ? 0 : a)
R(maximum, a != a || a > b ? a : b) R(minimum, a != a || a < b ? a : b)
R(eq, a == b) R(ne, a != b) R(lt, a < b) R(le, a <= b) R(gt, a > b)
R(ge, a >= b) R(isnan, a != a) R(logical_not, a == 0)

#define ONE(name, flags) { #name, td_##name, NULL, ref_##name, flags }
#define TWO(name, flags) { #name, NULL, td_##name, ref_##name, flags }
static const operator operators[] = {
    TWO(add, INTS | BOOLS), TWO(sub, INTS), TWO(mul, INTS | BOOLS),
    TWO(div, INTS | BOOLS | FLOAT_RESULT),
    TWO(maximum, INTS | BOOLS), TWO(minimum, INTS | BOOLS),
    TWO(eq, INTS | BOOLS | BOOL_RESULT),
    TWO(ne, INTS | BOOLS | BOOL_RESULT),
    TWO(lt, INTS | BOOLS | BOOL_RESULT),
    TWO(le, INTS | BOOLS | BOOL_RESULT),
    TWO(gt, INTS | BOOLS | BOOL_RESULT),
    TWO(ge, INTS | BOOLS | BOOL_RESULT),
    TWO(pow, LOOSE),
    ONE(neg, INTS), ONE(abs, INTS), ONE(sign, INTS), ONE(square, INTS),
    ONE(relu, INTS),
    ONE(isnan, INTS | BOOLS | BOOL_RESULT),
    ONE(logical_not, INTS | BOOLS | BOOL_RESULT),
    ONE(reciprocal, INTS | BOOLS | FLOAT_RESULT | LOOSE),
    ONE(exp, INTS | BOOLS | FLOAT_RESULT | LOOSE),
    ONE(log, INTS | BOOLS | FLOAT_RESULT | LOOSE),
    ONE(sqrt, INTS | BOOLS | FLOAT_RESULT),
    ONE(rsqrt, INTS | BOOLS | FLOAT_RESULT | LOOSE),
    ONE(sin, INTS | BOOLS | FLOAT_RESULT | LOOSE),
    ONE(cos, INTS | BOOLS | FLOAT_RESULT | LOOSE),
    ONE(tanh, INTS | BOOLS | FLOAT_RESULT | LOOSE),
    ONE(sigmoid, INTS | BOOLS | FLOAT_RESULT | LOOSE),
};
enum { OPERATORS = sizeof operators / sizeof *operators };

static bool defined(const operator *o, td_dtype dtype)
{
    if (dtype == TD_BOOL)
        return (o->flags & BOOLS) != 0;
    return td_dtype_is_floating(dtype) || (o->flags & INTS) != 0;
}

static td_dtype result_of(const operator *o, td_dtype dtype)
{
    if ((o->flags & BOOL_RESULT) != 0)
        return TD_BOOL;
    if ((o->flags & FLOAT_RESULT) != 0 && !td_dtype_is_floating(dtype))
        return TD_FLOAT32;
    return dtype;
}

/* Formulas of primitives may be 4 ulp away; plain ones are exact. */
static bool near_enough(const operator *o, td_dtype dtype, double got,
                        double wanted)
{
    if (isnan(wanted) || isnan(got))
        return isnan(wanted) && isnan(got);
    if (got == wanted || !td_dtype_is_floating(dtype))
        return got == wanted;
    const double ulp = dtype == TD_FLOAT64 ? 0x1p-52 : 0x1p-23;
    return (o->flags & LOOSE) != 0
        && fabs(got - wanted) <= 4 * ulp * fabs(wanted) + 1e-44;
}

static void check(const operator *o, td_tensor *a, td_tensor *b,
                  const td_dims *shape, const char *where)
{
    td_tensor *y = b ? o->two(a, b) : o->one(a);
    if (y == NULL)
        fail_msg("%s %s: %s", o->name, where, td_error_message());
    const td_dtype from = a->dtype, to = result_of(o, from);
    assert_int_equal(y->dtype, to);
    assert_int_equal(y->rank, shape->count);
    assert_true(td_is_contiguous(y));
    const int64_t n = td_numel(y);
    for (int64_t i = 0; i < n; i++) {
        double u = value(a, shape, i), v = b ? value(b, shape, i) : 0;
        if (to == TD_FLOAT32 && from != TD_FLOAT32) {
            u = (float)u;
            v = (float)v;
        }
        const double got = value(y, shape, i);
        const double wanted = stored(to, o->f(u, v));
        if (!near_enough(o, to, got, wanted))
            fail_msg("%s(%s) %s: element %" PRId64 ": expected %.17g, "
                     "got %.17g for %.17g, %.17g", o->name,
                     td_dtype_name(from), where, i, wanted, got, u, v);
    }
    td_release(y);
}

/* Shapes: ranks 0 to 4, sizes 0, 1 and primes, rows short and long. */
static const td_dims shapes[] = {
    { 0, { 0 } }, { 1, { 0 } }, { 1, { 1 } }, { 1, { 17 } },
    { 1, { 1031 } }, { 2, { 31, 7 } }, { 2, { 3, 293 } },
    { 2, { 0, 3 } }, { 2, { 1, 13 } }, { 3, { 3, 5, 7 } },
    { 4, { 2, 1, 3, 11 } },
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void unary_over_dtypes_layouts_and_shapes(void **state)
{
    (void)state;
    char where[80];
    for (int k = 0; k < OPERATORS; k++)
        for (int t = 0; t < DTYPES; t++)
            for (int s = 0; s < SHAPES; s++)
                for (int l = 0; l < LAYOUTS; l++) {
                    if (!operators[k].one
                        || !defined(&operators[k], dtypes[t]))
                        continue;
                    snprintf(where, sizeof where, "shape %d, %s", s,
                             layout_names[l]);
                    td_tensor *x = random_tensor(dtypes[t], shapes[s],
                                                 (layout)l);
                    check(&operators[k], x, NULL, &shapes[s], where);
                    td_release(x);
                }
}

static void binary_over_dtypes_layouts_and_shapes(void **state)
{
    (void)state;
    char where[80];
    for (int k = 0; k < OPERATORS; k++)
        for (int t = 0; t < DTYPES; t++)
            for (int s = 0; s < SHAPES; s++)
                for (int l = 0; l < LAYOUTS * LAYOUTS; l++) {
                    if (!operators[k].two
                        || !defined(&operators[k], dtypes[t]))
                        continue;
                    snprintf(where, sizeof where, "shape %d, %s and %s",
                             s, layout_names[l / LAYOUTS],
                             layout_names[l % LAYOUTS]);
                    td_tensor *a = random_tensor(dtypes[t], shapes[s],
                                                 (layout)(l / LAYOUTS));
                    td_tensor *b = random_tensor(dtypes[t], shapes[s],
                                                 (layout)(l % LAYOUTS));
                    check(&operators[k], a, b, &shapes[s], where);
                    td_release(a);
                    td_release(b);
                }
}

static void broadcasting_follows_the_right_edge(void **state)
{
    (void)state;
    static const td_dims pairs[][3] = {
        { { 2, { 5, 7 } }, { 1, { 7 } }, { 2, { 5, 7 } } },
        { { 2, { 5, 1 } }, { 1, { 7 } }, { 2, { 5, 7 } } },
        { { 3, { 3, 1, 7 } }, { 2, { 5, 1 } }, { 3, { 3, 5, 7 } } },
        { { 2, { 5, 7 } }, { 0, { 0 } }, { 2, { 5, 7 } } },
        { { 0, { 0 } }, { 2, { 5, 7 } }, { 2, { 5, 7 } } },
        { { 2, { 3, 300 } }, { 1, { 300 } }, { 2, { 3, 300 } } },
        { { 2, { 3, 1 } }, { 1, { 300 } }, { 2, { 3, 300 } } },
        { { 2, { 0, 1 } }, { 1, { 4 } }, { 2, { 0, 4 } } },
        { { 4, { 2, 3, 1, 5 } }, { 3, { 3, 4, 1 } },
          { 4, { 2, 3, 4, 5 } } },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (int t = 0; t < DTYPES; t++)
            for (int k = 0; k < OPERATORS; k++) {
                if (!operators[k].two
                    || !defined(&operators[k], dtypes[t]))
                    continue;
                td_tensor *a = random_tensor(dtypes[t], pairs[i][0],
                                             CONTIGUOUS);
                td_tensor *b = random_tensor(dtypes[t], pairs[i][1],
                                             CONTIGUOUS);
                check(&operators[k], a, b, &pairs[i][2], "broadcast");
                td_release(a);
                td_release(b);
            }
}

/* Promotion ----------------------------------------------------------- */

static td_tensor *filled(td_dtype dtype, td_dims shape, double v)
{
    td_tensor *x = td_tensor_new(shape, dtype, cpu);
    const int64_t n = td_numel(x);
    for (int64_t i = 0; i < n; i++)
        td_convert(dtype, td_at(x), 0, TD_FLOAT64, &v, 0, 1),
        td_convert(dtype, (char *)td_at(x)
                          + i * (int64_t)td_dtype_size(dtype), 1,
                   TD_FLOAT64, &v, 1, 1);
    return x;
}

static const td_dims three = { 1, { 3 } }, number = { 0, { 0 } };

static td_dtype dtype_of_sum(td_tensor *a, td_tensor *b)
{
    td_tensor *y = td_add(a, b);
    assert_non_null(y);
    const td_dtype dtype = y->dtype;
    td_release(y);
    td_release(a);
    td_release(b);
    return dtype;
}

static void dimensioned_tensors_outvote_numbers_of_their_category(
    void **state)
{
    (void)state;
    static const td_dtype F = TD_FLOAT32, D = TD_FLOAT64, L = TD_INT64,
                          I = TD_INT32, U = TD_UINT8, B = TD_BOOL;
    const struct { td_dtype a; td_dims as; td_dtype b; td_dims bs;
                   td_dtype wanted; } rows[] = {
        { F, three, D, three, D }, { F, three, D, number, F },
        { D, number, F, three, F }, { F, number, D, number, D },
        { L, three, F, three, F }, { L, three, F, number, F },
        { L, three, D, number, D }, { I, three, L, number, I },
        { I, three, L, three, L }, { U, three, I, three, I },
        { U, three, L, number, U }, { B, three, U, three, U },
        { B, three, L, number, L }, { B, three, B, three, B },
        { B, three, F, number, F }, { L, number, F, three, F },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(dtype_of_sum(filled(rows[i].a, rows[i].as, 1),
                                      filled(rows[i].b, rows[i].bs, 1)),
                         rows[i].wanted);
}

static void scalars_are_weak(void **state)
{
    (void)state;
    const struct { td_dtype a; td_scalar s; td_dtype wanted; } rows[] = {
        { TD_FLOAT32, td_float(0.1), TD_FLOAT32 },
        { TD_FLOAT64, td_float(0.1), TD_FLOAT64 },
        { TD_FLOAT32, td_int(2), TD_FLOAT32 },
        { TD_INT64, td_float(1.5), TD_FLOAT32 },
        { TD_INT32, td_int(1), TD_INT32 },
        { TD_UINT8, td_int(7), TD_UINT8 },
        { TD_BOOL, td_int(1), TD_INT64 },
        { TD_BOOL, td_float(1), TD_FLOAT32 },
        { TD_BOOL, td_boolean(true), TD_BOOL },
        { TD_INT32, td_boolean(true), TD_INT32 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        td_tensor *x = filled(rows[i].a, three, 1);
        td_tensor *y = td_add_scalar(x, rows[i].s);
        assert_non_null(y);
        assert_int_equal(y->dtype, rows[i].wanted);
        td_release(y);
        td_release(x);
    }
}

static double only(td_tensor *y)
{
    assert_non_null(y);
    const double v = as_double(y->dtype, td_at(y));
    td_release(y);
    return v;
}

static void a_scalar_is_rounded_to_the_dtype_of_the_loop(void **state)
{
    (void)state;
    td_tensor *x = filled(TD_FLOAT32, three, 1);
    assert_true(only(td_mul_scalar(x, td_float(0.1))) == (double)0.1f);
    assert_true(only(td_rsub_scalar(x, td_float(3.5))) == 2.5);
    assert_true(only(td_rdiv_scalar(x, td_int(3))) == 3);
    assert_true(only(td_rpow_scalar(x, td_int(3))) == 3);
    td_release(x);
    td_tensor *i = filled(TD_INT64, three, 7);
    assert_true(only(td_div_scalar(i, td_int(2))) == 3.5);
    assert_true(only(td_add_scalar(i, td_int(INT64_C(9007199254740993))))
                == (double)INT64_C(9007199254741000));
    td_release(i);
}

static void comparisons_with_a_scalar_beyond_the_dtype_are_answered(
    void **state)
{
    (void)state;
    td_tensor *x = filled(TD_UINT8, three, 200);
    assert_true(only(td_lt_scalar(x, td_int(300))) == 1);
    assert_true(only(td_gt_scalar(x, td_int(-1))) == 1);
    assert_true(only(td_eq_scalar(x, td_int(456))) == 0);
    td_release(x);
}

static void integers_wrap_and_bools_are_logical(void **state)
{
    (void)state;
    td_tensor *u = filled(TD_UINT8, three, 200);
    assert_true(only(td_add(u, u)) == 144);
    assert_true(only(td_neg(u)) == 56);
    td_release(u);
    td_tensor *t = filled(TD_BOOL, three, 1);
    assert_true(only(td_add(t, t)) == 1);
    assert_true(only(td_mul(t, t)) == 1);
    td_release(t);
    td_tensor *i = filled(TD_INT32, three, 2147483647.0);
    assert_true(only(td_add(i, i)) == -2);
    td_release(i);
}

static void integer_powers(void **state)
{
    (void)state;
    td_tensor *b = filled(TD_INT64, three, -3);
    assert_true(only(td_pow_scalar(b, td_int(3))) == -27);
    assert_true(only(td_pow_scalar(b, td_int(0))) == 1);
    assert_true(only(td_pow(b, b)) == 0);
    td_tensor *m = filled(TD_INT64, three, -1);
    assert_true(only(td_pow(m, b)) == -1);
    td_release(b);
    td_release(m);
}

/* Special values ------------------------------------------------------ */

static float apply(td_tensor *(*f)(td_tensor *), float v)
{
    td_tensor *x = filled(TD_FLOAT32, three, v);
    const double y = only(f(x));
    td_release(x);
    return (float)y;
}

static void special_values_of_unary_operators(void **state)
{
    (void)state;
    const float inf = INFINITY;
    assert_true(isnan(apply(td_relu, NAN)));
    assert_true(apply(td_relu, inf) == inf);
    assert_true(apply(td_relu, -inf) == 0);
    assert_true(apply(td_sign, NAN) == 0);
    assert_true(apply(td_isnan, NAN) == 1);
    assert_true(apply(td_exp, inf) == inf && apply(td_exp, -inf) == 0);
    assert_true(apply(td_exp, 1000) == inf && apply(td_exp, -1000) == 0);
    assert_true(apply(td_exp, 0) == 1 && isnan(apply(td_exp, NAN)));
    assert_true(apply(td_log, 0) == -inf && apply(td_log, 1) == 0);
    assert_true(isnan(apply(td_log, -1)) && apply(td_log, inf) == inf);
    assert_true(isnan(apply(td_log, NAN)));
    assert_true(apply(td_tanh, 90) == 1 && apply(td_tanh, -inf) == -1);
    assert_true(isnan(apply(td_tanh, NAN)));
    assert_true(signbit(apply(td_tanh, -0.0f)) != 0);
    assert_true(signbit(apply(td_sin, -0.0f)) != 0);
    assert_true(isnan(apply(td_sin, inf)) && isnan(apply(td_cos, -inf)));
    assert_true(apply(td_sigmoid, -200) == 0);
    assert_true(apply(td_sigmoid, 200) == 1);
    assert_true(isnan(apply(td_sqrt, -1)));
    assert_true(apply(td_reciprocal, 0) == inf);
    assert_true(apply(td_rsqrt, 0) == inf);
}

static void nan_spreads_through_maximum_and_minimum(void **state)
{
    (void)state;
    td_tensor *n = filled(TD_FLOAT32, three, NAN);
    td_tensor *x = filled(TD_FLOAT32, three, 1);
    assert_true(isnan(only(td_maximum(n, x))));
    assert_true(isnan(only(td_maximum(x, n))));
    assert_true(isnan(only(td_minimum(n, x))));
    assert_true(isnan(only(td_minimum(x, n))));
    assert_true(only(td_ne(n, n)) == 1 && only(td_eq(n, n)) == 0);
    td_release(n);
    td_release(x);
}

static void powers_follow_annex_f(void **state)
{
    (void)state;
    static const float v[] = { 0.0f, -0.0f, 1, -1, 2, -2, 0.5f, -0.5f, 3,
        -3, 2.5f, INFINITY, -INFINITY, NAN, 1e-45f, 3e38f, 1e30f };
    const int n = sizeof v / sizeof *v;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            td_tensor *a = filled(TD_FLOAT32, three, v[i]);
            td_tensor *b = filled(TD_FLOAT32, three, v[j]);
            const double got = only(td_pow(a, b));
            const float wanted = powf(v[i], v[j]);
            if (isnan(wanted) ? !isnan(got)
                : fabs(got - wanted) > 1e-6 * fabs((double)wanted)
                  || !signbit(got) != !signbit(wanted))
                fail_msg("pow(%g, %g): expected %g, got %g", (double)v[i],
                         (double)v[j], (double)wanted, got);
            td_release(a);
            td_release(b);
        }
}

static void where_and_clamp(void **state)
{
    (void)state;
    for (int t = 0; t < DTYPES; t++)
        for (int l = 0; l < LAYOUTS; l++) {
            const td_dims shape = { 2, { 5, 37 } }, row = { 1, { 37 } };
            td_tensor *c = random_tensor(TD_BOOL, row, (layout)l);
            td_tensor *a = random_tensor(dtypes[t], shape, (layout)l);
            td_tensor *b = random_tensor(dtypes[t], shape, CONTIGUOUS);
            td_tensor *y = td_where(c, a, b);
            assert_non_null(y);
            assert_int_equal(y->dtype, dtypes[t]);
            for (int64_t i = 0; i < 5 * 37; i++)
                assert_true(value(y, &shape, i)
                            == (value(c, &shape, i) != 0
                                ? value(a, &shape, i)
                                : value(b, &shape, i)));
            td_release(y);
            td_release(c);
            td_release(b);
            if (dtypes[t] != TD_BOOL) {
                y = td_clamp(a, (td_clamp_options){
                    .min = td_some(1), .max = td_some(2) });
                assert_int_equal(y->dtype, dtypes[t]);
                for (int64_t i = 0; i < 5 * 37; i++)
                    assert_true(value(y, &shape, i)
                                == fmin(fmax(value(a, &shape, i), 1), 2));
                td_release(y);
            }
            td_release(a);
        }
    td_tensor *x = filled(TD_FLOAT32, three, 5);
    td_tensor *n = filled(TD_FLOAT32, three, NAN);
    assert_true(only(td_clamp(x, (td_clamp_options){
        .min = td_some(8), .max = td_some(2) })) == 2);
    assert_true(only(td_clamp(x, (td_clamp_options){
        .min = td_some(8) })) == 8);
    assert_true(only(td_clamp(x, (td_clamp_options){
        .max = td_some(2) })) == 2);
    assert_true(isnan(only(td_clamp(n, (td_clamp_options){
        .min = td_some(0), .max = td_some(1) }))));
    assert_true(isnan(only(td_clamp(x, (td_clamp_options){
        .min = td_some(NAN), .max = td_some(1) }))));
    assert_true(isnan(only(td_clamp(x, (td_clamp_options){
        .min = td_some(0), .max = td_some(NAN) }))));
    assert_true(isnan(only(td_clamp(x, (td_clamp_options){
        .min = td_some(NAN), .max = td_some(NAN) }))));
    td_release(x);
    td_release(n);
    td_tensor *i = filled(TD_INT32, three, 5);
    td_tensor *y = td_clamp(i, (td_clamp_options){ .min = td_some(0.5) });
    assert_int_equal(y->dtype, TD_FLOAT32);
    td_release(y);
    td_release(i);
}

/* Accuracy ------------------------------------------------------------ */

static double ulps(float got, double wanted)
{
    const float w = (float)wanted;
    if (got == w || (isnan(got) && isnan(wanted)))
        return 0;
    if (isnan(got) || isnan(w) || isinf(got) || isinf(w))
        return INFINITY;
    int e;
    frexp(wanted, &e);
    return fabs(got - wanted) / ldexp(1, e > -125 ? e - 24 : -149);
}

static const struct {
    const char *name;
    td_tensor *(*f)(td_tensor *);
    double (*reference)(double);
    double limit;
} precise[] = {
    { "exp", td_exp, exp, 1 }, { "log", td_log, log, 1 },
    { "tanh", td_tanh, tanh, 1.5 }, { "sin", td_sin, sin, 1.75 },
    { "cos", td_cos, cos, 1.75 }, { "sqrt", td_sqrt, sqrt, 0.51 },
};

/* Every 21001st float there is, denormal and huge ones included. */
static void primitives_are_within_two_ulp_at_every_level(void **state)
{
    (void)state;
    const int64_t n = (INT64_C(1) << 32) / 21001;
    td_tensor *x = td_tensor_new((td_dims){ 1, { n } }, TD_FLOAT32, cpu);
    for (int64_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)(i * 21001);
        memcpy((float *)td_at(x) + i, &bits, sizeof bits);
    }
    const int best = td_isa_best(), before = td_process()->isa;
    for (int level = 0; level <= best; level++) {
        td_process()->isa = level;
        for (size_t k = 0; k < sizeof precise / sizeof *precise; k++) {
            td_tensor *y = precise[k].f(x);
            double worst = 0;
            float at = 0;
            for (int64_t i = 0; i < n; i++) {
                const float v = ((float *)td_at(x))[i];
                const double u = ulps(((float *)td_at(y))[i],
                                      precise[k].reference(v));
                at = u > worst ? v : at;
                worst = u > worst ? u : worst;
            }
            if (worst > precise[k].limit)
                fail_msg("%s, %s: %.3g ulp at %a", precise[k].name,
                         td_isa(), worst, (double)at);
            td_release(y);
        }
    }
    td_process()->isa = before;
    td_release(x);
}

/* The same bits ------------------------------------------------------- */

static td_tensor *view_of(td_tensor *x, int64_t start, int64_t n)
{
    td_tensor *v = td_tensor_alias(x);
    v->rank = 1;
    v->shape[0] = n;
    v->strides[0] = 1;
    v->offset = x->offset + start;
    return v;
}

static void a_value_does_not_depend_on_its_position(void **state)
{
    (void)state;
    const td_dims shape = { 1, { 211 } };
    const int best = td_isa_best(), before = td_process()->isa;
    for (int level = 0; level <= best; level++)
        for (int k = 0; k < OPERATORS; k++)
            for (int t = 0; t < 2; t++) {
                td_process()->isa = level;
                const operator *o = &operators[k];
                const size_t size = td_dtype_size(
                    result_of(o, dtypes[t]));
                td_tensor *a = random_tensor(dtypes[t], shape, CONTIGUOUS);
                td_tensor *b = random_tensor(dtypes[t], shape, CONTIGUOUS);
                td_tensor *y = o->two ? o->two(a, b) : o->one(a);
                for (int start = 0; start < 40; start++) {
                    const int64_t n = 1 + (start * 7) % 41;
                    td_tensor *u = view_of(a, start, n);
                    td_tensor *v = view_of(b, start, n);
                    td_tensor *z = o->two ? o->two(u, v) : o->one(u);
                    if (memcmp(td_at(z), (char *)td_at(y)
                               + (size_t)start * size,
                               (size_t)n * size) != 0)
                        fail_msg("%s, %s, level %s: [%d, +%d) differs",
                                 o->name, td_dtype_name(dtypes[t]),
                                 td_isa(), start, (int)n);
                    td_release(u);
                    td_release(v);
                    td_release(z);
                }
                td_release(a);
                td_release(b);
                td_release(y);
            }
    td_process()->isa = before;
}

static void same_bits_for_threads_and_executors(void **state)
{
    (void)state;
    const td_dims shape = { 2, { 419, 331 } }, row = { 1, { 331 } };
    const int threads = td_threads();
    const td_executor executor = td_get_executor();
    for (int k = 0; k < OPERATORS; k++) {
        const operator *o = &operators[k];
        td_tensor *a = random_tensor(TD_FLOAT32, shape, TRANSPOSED);
        td_tensor *b = random_tensor(TD_FLOAT32, row, CONTIGUOUS);
        td_tensor *first = NULL;
        for (int e = 0; e < 3; e++)
            for (int t = 1; t <= 4; t *= 2) {
                if (!td_set_executor((td_executor)e)) {
                    td_error_clear();
                    continue;
                }
                assert_true(td_set_threads(t));
                td_tensor *y = o->two ? o->two(a, b) : o->one(a);
                assert_non_null(y);
                if (first != NULL) {
                    if (memcmp(td_at(first), td_at(y),
                               (size_t)td_numel(y)
                               * td_dtype_size(y->dtype)) != 0)
                        fail_msg("%s: executor %d, %d threads differ",
                                 o->name, e, t);
                    td_release(y);
                } else
                    first = y;
            }
        td_release(first);
        td_release(a);
        td_release(b);
    }
    td_set_executor(executor);
    td_set_threads(threads);
}

/* In place ------------------------------------------------------------ */

static void in_place_over_layouts_and_dtypes(void **state)
{
    (void)state;
    td_tensor *(*const forms[])(td_tensor *, td_tensor *)
        = { td_add_, td_sub_, td_mul_, td_div_ };
    double (*const plain[])(double, double)
        = { ref_add, ref_sub, ref_mul, ref_div };
    for (int k = 0; k < 4; k++)
        for (int t = 0; t < 4; t++)
            for (int s = 0; s < SHAPES; s++)
                for (int l = 0; l < EXPANDED; l++) {
                    if (k == 3 && t >= 2)
                        continue;
                    td_tensor *x = random_tensor(dtypes[t], shapes[s],
                                                 (layout)l);
                    td_tensor *y = random_tensor(dtypes[t], shapes[s],
                                                 TRANSPOSED);
                    const int64_t n = td_numel(x);
                    double *wanted = malloc((size_t)n * 8 + 8);
                    for (int64_t i = 0; i < n; i++)
                        wanted[i] = stored(dtypes[t],
                            plain[k](value(x, &shapes[s], i),
                                     value(y, &shapes[s], i)));
                    const unsigned version = x->storage->version;
                    assert_ptr_equal(forms[k](x, y), x);
                    assert_true(x->storage->version != version);
                    for (int64_t i = 0; i < n; i++)
                        assert_true(value(x, &shapes[s], i) == wanted[i]);
                    free(wanted);
                    td_release(x);      /* the reference returned */
                    td_release(x);
                    td_release(y);
                }
}

static void in_place_converts_within_its_category(void **state)
{
    (void)state;
    td_tensor *f = filled(TD_FLOAT32, three, 1);
    td_tensor *d = filled(TD_FLOAT64, three, 0.1);
    td_release(td_add_(f, d));
    assert_true(as_double(TD_FLOAT32, td_at(f)) == (double)(float)1.1);
    td_tensor *i = filled(TD_INT32, three, 5);
    td_tensor *l = filled(TD_INT64, three, 7);
    td_release(td_mul_(i, l));
    assert_true(as_double(TD_INT32, td_at(i)) == 35);
    td_release(td_add_scalar_(f, td_int(2)));
    assert_true(as_double(TD_FLOAT32, td_at(f)) == (double)(3.1f));
    td_release(f);
    td_release(d);
    td_release(i);
    td_release(l);
}

static void an_operand_may_share_memory_with_the_result(void **state)
{
    (void)state;
    td_tensor *x = td_tensor_new((td_dims){ 1, { 100 } }, TD_FLOAT32, cpu);
    float *p = td_at(x);
    for (int i = 0; i < 100; i++)
        p[i] = (float)i;
    td_release(td_add_(x, x));
    for (int i = 0; i < 100; i++)
        assert_true(p[i] == 2.0f * (float)i);
    td_tensor *to = view_of(x, 1, 99), *from = view_of(x, 0, 99);
    td_release(td_add_(to, from));
    for (int i = 1; i < 100; i++)
        assert_true(p[i] == 2.0f * (float)i + 2.0f * (float)(i - 1));
    td_tensor *back = view_of(x, 0, 10);
    back->strides[0] = 1;
    td_tensor *odd = view_of(x, 1, 10);
    odd->strides[0] = 2;
    float wanted[10];
    for (int i = 0; i < 10; i++)
        wanted[i] = p[i] * p[1 + 2 * i];
    td_release(td_mul_(back, odd));
    for (int i = 0; i < 10; i++)
        assert_true(p[i] == wanted[i]);
    td_tensor *square = random_tensor(TD_FLOAT32, (td_dims){ 2, { 9, 9 } },
                                      CONTIGUOUS);
    td_tensor *turned = td_transpose(square, 0, 1);
    td_tensor *sum = td_add(square, turned);
    td_release(td_add_(square, turned));
    assert_memory_equal(td_at(square), td_at(sum), 81 * sizeof(float));
    td_release(sum);
    td_release(turned);
    td_release(square);
    td_release(back);
    td_release(odd);
    td_release(to);
    td_release(from);
    td_release(x);
}

/* Errors -------------------------------------------------------------- */

static void fails(const void *result, td_error_code code, const char *text)
{
    assert_null(result);
    if (td_error() != code || strstr(td_error_message(), text) == NULL)
        fail_msg("expected error %d with '%s', got %d '%s'", code, text,
                 td_error(), td_error_message());
    td_error_clear();
}

static void errors_name_the_operator_and_what_was_wrong(void **state)
{
    (void)state;
    td_tensor *f = filled(TD_FLOAT32, three, 1);
    td_tensor *g = filled(TD_FLOAT32, (td_dims){ 2, { 2, 4 } }, 1);
    td_tensor *i = filled(TD_INT64, three, 1);
    td_tensor *u = filled(TD_UINT8, three, 1);
    td_tensor *b = filled(TD_BOOL, three, 1);
    td_tensor *h = td_tensor_new(three, TD_FLOAT16, cpu);
    memset(td_at(h), 0, 6);
    fails(td_add(f, g), TD_ERROR_RUNTIME, "add: shapes [3] and [2, 4]");
    fails(td_add(NULL, f), TD_ERROR_VALUE, "add: argument");
    fails(td_exp(NULL), TD_ERROR_VALUE, "exp: argument");
    fails(td_neg(b), TD_ERROR_RUNTIME, "neg: not defined for bool");
    fails(td_sub(b, b), TD_ERROR_RUNTIME, "ne()");
    fails(td_relu(b), TD_ERROR_RUNTIME, "relu: not defined for bool");
    fails(td_pow(b, b), TD_ERROR_RUNTIME, "pow: not defined for bool");
    fails(td_exp(h), TD_ERROR_UNSUPPORTED, "exp: float16");
    fails(td_add(h, f), TD_ERROR_UNSUPPORTED, "add");
    fails(td_add_scalar(u, td_int(300)), TD_ERROR_VALUE,
          "300 does not fit uint8");
    fails(td_pow_scalar(i, td_int(-1)), TD_ERROR_RUNTIME,
          "negative integer powers");
    fails(td_add_scalar_(i, td_float(1.5)), TD_ERROR_RUNTIME,
          "add_: the result is float32 and cannot be stored in int64");
    fails(td_div_scalar_(i, td_int(2)), TD_ERROR_RUNTIME, "div_");
    fails(td_add_(f, g), TD_ERROR_RUNTIME, "add_");
    fails(td_add_(b, i), TD_ERROR_RUNTIME, "stored in bool");
    td_tensor *one = filled(TD_FLOAT32, (td_dims){ 1, { 1 } }, 1);
    fails(td_add_(one, f), TD_ERROR_RUNTIME, "add_");
    one->strides[0] = 0;
    one->shape[0] = 5;
    fails(td_add_scalar_(one, td_int(1)), TD_ERROR_RUNTIME,
          "single memory location");
    one->shape[0] = 1;
    fails(td_where(f, f, f), TD_ERROR_RUNTIME, "where: the condition");
    fails(td_clamp(f, (td_clamp_options){ .min = { false, 0 } }),
          TD_ERROR_VALUE, "clamp: at least one");
    assert_false(td_set_isa("v9"));
    fails(NULL, TD_ERROR_VALUE, "set_isa");
    td_release(f);
    td_release(g);
    td_release(i);
    td_release(u);
    td_release(b);
    td_release(h);
    td_release(one);
}

static void two_scalars_are_no_tensor(void **state)
{
    (void)state;
    const td_value in[] = { td_v_int(1), td_v_int(2) };
    fails(td_run1(&td_ops[TD_OP_add], 2, in, 0, NULL), TD_ERROR_TYPE,
          "at least one operand must be a tensor");
}

static void nothing_runs_while_an_error_is_pending(void **state)
{
    (void)state;
    td_tensor *x = filled(TD_FLOAT32, three, 1);
    td_fail(TD_ERROR_VALUE, "first", "the first error");
    assert_null(td_add(x, td_exp(x)));
    assert_null(td_add_(x, x));
    fails(NULL, TD_ERROR_VALUE, "first: the first error");
    assert_true(as_double(TD_FLOAT32, td_at(x)) == 1);
    td_release(x);
}

static void every_failed_allocation_leaves_nothing_behind(void **state)
{
    (void)state;
    td_tensor *x = random_tensor(TD_FLOAT32, (td_dims){ 2, { 40, 50 } },
                                 TRANSPOSED);
    td_tensor *to = view_of(x, 1, 99), *from = view_of(x, 0, 99);
    const td_memory_info before = td_memory_stats();
    for (int form = 0; form < 3; form++) {
        bool done = false;
        for (int64_t n = 0; !done; n++) {
            assert_true(n < 100);
            td_memory_fail_after(n);
            td_tensor *y = form == 0 ? td_add(x, x)
                         : form == 1 ? td_clamp(x, (td_clamp_options){
                               .min = td_some(0) })
                         : td_add_(to, from);
            td_memory_fail_after(-1);
            done = y != NULL;
            if (!done)
                fails(NULL, TD_ERROR_MEMORY, "allocate");
            td_release(y);
            const td_memory_info now = td_memory_stats();
            assert_int_equal(now.live_tensors, before.live_tensors);
            assert_int_equal(now.bytes, before.bytes);
        }
    }
    td_release(to);
    td_release(from);
    td_release(x);
}

/* Levels -------------------------------------------------------------- */

static void levels_can_be_asked_and_set(void **state)
{
    (void)state;
    char before[16];
    snprintf(before, sizeof before, "%s", td_isa());
    assert_true(td_set_isa("base"));
    td_tensor *x = filled(TD_FLOAT32, three, 2);
    assert_true(fabs(only(td_exp(x)) - 7.38905609893065) < 1e-6);
    assert_true(td_set_isa(before));
    assert_string_equal(td_isa(), before);
    td_release(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unary_over_dtypes_layouts_and_shapes),
        cmocka_unit_test(binary_over_dtypes_layouts_and_shapes),
        cmocka_unit_test(broadcasting_follows_the_right_edge),
        cmocka_unit_test(
            dimensioned_tensors_outvote_numbers_of_their_category),
        cmocka_unit_test(scalars_are_weak),
        cmocka_unit_test(a_scalar_is_rounded_to_the_dtype_of_the_loop),
        cmocka_unit_test(
            comparisons_with_a_scalar_beyond_the_dtype_are_answered),
        cmocka_unit_test(integers_wrap_and_bools_are_logical),
        cmocka_unit_test(integer_powers),
        cmocka_unit_test(special_values_of_unary_operators),
        cmocka_unit_test(nan_spreads_through_maximum_and_minimum),
        cmocka_unit_test(powers_follow_annex_f),
        cmocka_unit_test(where_and_clamp),
        cmocka_unit_test(primitives_are_within_two_ulp_at_every_level),
        cmocka_unit_test(a_value_does_not_depend_on_its_position),
        cmocka_unit_test(same_bits_for_threads_and_executors),
        cmocka_unit_test(in_place_over_layouts_and_dtypes),
        cmocka_unit_test(in_place_converts_within_its_category),
        cmocka_unit_test(an_operand_may_share_memory_with_the_result),
        cmocka_unit_test(errors_name_the_operator_and_what_was_wrong),
        cmocka_unit_test(two_scalars_are_no_tensor),
        cmocka_unit_test(nothing_runs_while_an_error_is_pending),
        cmocka_unit_test(every_failed_allocation_leaves_nothing_behind),
        cmocka_unit_test(levels_can_be_asked_and_set),
    };
    return cmocka_run_group_tests_name("elementwise", tests, NULL, NULL);
}
