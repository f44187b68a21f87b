/* needs: elementwise */
/* Every operator of chapter 5 over dtypes, layouts and shapes, against a
   plain reference; special values; accuracy; the same bits for any
   position, number of threads and executor; errors; failed memory. */
#include "treadle_test.h"
#include <inttypes.h>
#include <treadle/elementwise.h>
#include <treadle/isa.h>
#include <treadle/parallel.h>
#include "ops/elementwise.h"
#include "core/isa.h"
#include "core/registry.h"

static const td_device cpu = { TD_DEVICE_CPU, 0 };
static const td_dtype dtypes[] = { TD_FLOAT32, TD_FLOAT64, TD_INT64,
                                   TD_INT32, TD_UINT8, TD_BOOL };
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

/* Small numbers, never zero in floats, some negative. */
static td_tensor *small(td_dtype dtype, td_dims shape, layout how)
{
    if (td_dtype_is_floating(dtype))
        return random_tensor(shape, dtype, how, -3.6, 4.4);
    if (dtype == TD_UINT8)
        return random_tensor(shape, dtype, how, 0, 250);
    return random_tensor(shape, dtype, how, -7, 8);
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
R(cube, a * a * a)
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
    ONE(cube, INTS | LOOSE), ONE(relu, INTS),
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

static td_tensor *apply(const operator *o, td_tensor *a, td_tensor *b)
{
    return o->two ? o->two(a, b) : o->one(a);
}

/* Formulas of primitives may be 4 ulp away; plain ones are exact. */
static double allowed(const operator *o, td_dtype dtype, double wanted)
{
    if (!td_dtype_is_floating(dtype) || (o->flags & LOOSE) == 0)
        return 0;
    const double ulp = dtype == TD_FLOAT64 ? 0x1p-52 : 0x1p-23;
    return 4 * ulp * fabs(wanted) + 1e-44;
}

/* Two operands, or with sb NULL one, that broadcast to `shape`. */
static void check(const operator *o, td_dtype from, const td_dims *sa,
                  layout la, const td_dims *sb, layout lb,
                  const td_dims *shape)
{
    char text[TD_SHAPE_TEXT];
    td_scope_begin();
    td_tensor *a = small(from, *sa, la), *b = sb ? small(from, *sb, lb) : a;
    td_tensor *y = apply(o, a, b);
    if (y == NULL)
        fail_msg("%s(%s): %s", o->name, td_dtype_name(from),
                 td_error_message());
    const td_dtype to = result_of(o, from);
    assert_int_equal(y->dtype, to);
    assert_int_equal(y->rank, shape->count);
    assert_true(td_is_contiguous(y));
    const int64_t n = td_numel(y);
    a = td_expand(a, *shape);
    b = td_expand(b, *shape);
    comparison c = { 0 };
    for (int64_t i = 0; i < n; i++) {
        double u = at(a, i), v = at(b, i);
        if (to == TD_FLOAT32 && from != TD_FLOAT32) {
            u = (float)u;
            v = (float)v;
        }
        const double wanted = stored(to, o->f(u, v));
        compare(&c, at(y, i), wanted, allowed(o, to, wanted));
    }
    expect_right(c, "%s(%s) %s, %s and %s, of %.17g and %.17g", o->name,
                 td_dtype_name(from), td_dims_text(shape, text),
                 layout_names[la], layout_names[lb], at(a, c.first),
                 at(b, c.first));
    td_scope_end();
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
    for (int k = 0; k < OPERATORS; k++)
        for (int t = 0; t < DTYPES; t++)
            for (int s = 0; s < SHAPES; s++)
                for (int l = 0; l < LAYOUTS; l++)
                    if (operators[k].one && defined(&operators[k], dtypes[t]))
                        check(&operators[k], dtypes[t], &shapes[s],
                              (layout)l, NULL, PLAIN, &shapes[s]);
}

static void binary_over_dtypes_layouts_and_shapes(void **state)
{
    for (int k = 0; k < OPERATORS; k++)
        for (int t = 0; t < DTYPES; t++)
            for (int s = 0; s < SHAPES; s++)
                for (int l = 0; l < LAYOUTS * LAYOUTS; l++)
                    if (operators[k].two && defined(&operators[k], dtypes[t]))
                        check(&operators[k], dtypes[t], &shapes[s],
                              (layout)(l / LAYOUTS), &shapes[s],
                              (layout)(l % LAYOUTS), &shapes[s]);
}

static void broadcasting_follows_the_right_edge(void **state)
{
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
            for (int k = 0; k < OPERATORS; k++)
                if (operators[k].two && defined(&operators[k], dtypes[t]))
                    check(&operators[k], dtypes[t], &pairs[i][0], PLAIN,
                          &pairs[i][1], PLAIN, &pairs[i][2]);
}

/* Promotion ----------------------------------------------------------- */

static td_tensor *filled(td_dtype dtype, td_dims shape, double v)
{
    return td_full(shape, td_float(v), (td_tensor_options){ .dtype = dtype });
}

static const td_dims three = { 1, { 3 } }, number = { 0, { 0 } };

static td_dtype dtype_of_sum(td_tensor *a, td_tensor *b)
{
    td_tensor *y = td_add(a, b);
    assert_non_null(y);
    return y->dtype;
}

static void dimensioned_tensors_outvote_numbers_of_their_category(
    void **state)
{
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
    }
}

static double only(td_tensor *y)
{
    assert_non_null(y);
    return at(y, 0);
}

static void a_scalar_is_rounded_to_the_dtype_of_the_loop(void **state)
{
    td_tensor *x = filled(TD_FLOAT32, three, 1);
    assert_true(only(td_mul_scalar(x, td_float(0.1))) == (double)0.1f);
    assert_true(only(td_rsub_scalar(x, td_float(3.5))) == 2.5);
    assert_true(only(td_rdiv_scalar(x, td_int(3))) == 3);
    assert_true(only(td_rpow_scalar(x, td_int(3))) == 3);
    td_tensor *i = filled(TD_INT64, three, 7);
    assert_true(only(td_div_scalar(i, td_int(2))) == 3.5);
    assert_true(only(td_add_scalar(i, td_int(INT64_C(9007199254740993))))
                == (double)INT64_C(9007199254741000));
}

static void comparisons_with_a_scalar_beyond_the_dtype_are_answered(
    void **state)
{
    td_tensor *x = filled(TD_UINT8, three, 200);
    assert_true(only(td_lt_scalar(x, td_int(300))) == 1);
    assert_true(only(td_gt_scalar(x, td_int(-1))) == 1);
    assert_true(only(td_eq_scalar(x, td_int(456))) == 0);
}

static void integers_wrap_and_bools_are_logical(void **state)
{
    td_tensor *u = filled(TD_UINT8, three, 200);
    assert_true(only(td_add(u, u)) == 144);
    assert_true(only(td_neg(u)) == 56);
    td_tensor *t = filled(TD_BOOL, three, 1);
    assert_true(only(td_add(t, t)) == 1);
    assert_true(only(td_mul(t, t)) == 1);
    td_tensor *i = filled(TD_INT32, three, 2147483647.0);
    assert_true(only(td_add(i, i)) == -2);
}

static void integer_powers(void **state)
{
    td_tensor *b = filled(TD_INT64, three, -3);
    assert_true(only(td_pow_scalar(b, td_int(3))) == -27);
    assert_true(only(td_pow_scalar(b, td_int(0))) == 1);
    assert_true(only(td_pow(b, b)) == 0);
    td_tensor *m = filled(TD_INT64, three, -1);
    assert_true(only(td_pow(m, b)) == -1);
}

/* Special values ------------------------------------------------------ */

static float of(td_tensor *(*f)(td_tensor *), float v)
{
    return (float)only(f(filled(TD_FLOAT32, three, v)));
}

static void special_values_of_unary_operators(void **state)
{
    const float inf = INFINITY;
    assert_true(isnan(of(td_relu, NAN)));
    assert_true(of(td_relu, inf) == inf);
    assert_true(of(td_relu, -inf) == 0);
    assert_true(of(td_sign, NAN) == 0);
    assert_true(of(td_isnan, NAN) == 1);
    assert_true(of(td_exp, inf) == inf && of(td_exp, -inf) == 0);
    assert_true(of(td_exp, 1000) == inf && of(td_exp, -1000) == 0);
    assert_true(of(td_exp, 0) == 1 && isnan(of(td_exp, NAN)));
    assert_true(of(td_log, 0) == -inf && of(td_log, 1) == 0);
    assert_true(isnan(of(td_log, -1)) && of(td_log, inf) == inf);
    assert_true(isnan(of(td_log, NAN)));
    assert_true(of(td_tanh, 90) == 1 && of(td_tanh, -inf) == -1);
    assert_true(isnan(of(td_tanh, NAN)));
    assert_true(signbit(of(td_tanh, -0.0f)) != 0);
    assert_true(signbit(of(td_sin, -0.0f)) != 0);
    assert_true(isnan(of(td_sin, inf)) && isnan(of(td_cos, -inf)));
    assert_true(of(td_sigmoid, -200) == 0);
    assert_true(of(td_sigmoid, 200) == 1);
    assert_true(isnan(of(td_sqrt, -1)));
    assert_true(of(td_reciprocal, 0) == inf);
    assert_true(of(td_rsqrt, 0) == inf);
}

static void nan_spreads_through_maximum_and_minimum(void **state)
{
    td_tensor *n = filled(TD_FLOAT32, three, NAN);
    td_tensor *x = filled(TD_FLOAT32, three, 1);
    assert_true(isnan(only(td_maximum(n, x))));
    assert_true(isnan(only(td_maximum(x, n))));
    assert_true(isnan(only(td_minimum(n, x))));
    assert_true(isnan(only(td_minimum(x, n))));
    assert_true(only(td_ne(n, n)) == 1 && only(td_eq(n, n)) == 0);
}

static void powers_follow_annex_f(void **state)
{
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
        }
}

static void where_and_clamp(void **state)
{
    for (int t = 0; t < DTYPES; t++)
        for (int l = 0; l < LAYOUTS; l++) {
            const td_dims shape = { 2, { 5, 37 } }, row = { 1, { 37 } };
            td_tensor *c = small(TD_BOOL, row, (layout)l);
            td_tensor *a = small(dtypes[t], shape, (layout)l);
            td_tensor *b = small(dtypes[t], shape, PLAIN);
            td_tensor *y = td_where(c, a, b);
            assert_non_null(y);
            assert_int_equal(y->dtype, dtypes[t]);
            c = td_expand(c, shape);
            comparison chosen = { 0 }, between = { 0 };
            for (int64_t i = 0; i < 5 * 37; i++)
                compare(&chosen, at(y, i), at(at(c, i) != 0 ? a : b, i), 0);
            expect_right(chosen, "where");
            if (dtypes[t] != TD_BOOL) {
                y = td_clamp(a, (td_clamp_options){
                    .min = td_some(1), .max = td_some(2) });
                assert_int_equal(y->dtype, dtypes[t]);
                for (int64_t i = 0; i < 5 * 37; i++)
                    compare(&between, at(y, i), fmin(fmax(at(a, i), 1), 2),
                            0);
                expect_right(between, "clamp");
            }
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
    td_tensor *i = filled(TD_INT32, three, 5);
    td_tensor *y = td_clamp(i, (td_clamp_options){ .min = td_some(0.5) });
    assert_int_equal(y->dtype, TD_FLOAT32);
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
        }
    }
    td_process()->isa = before;
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
    const td_dims shape = { 1, { 211 } };
    const int best = td_isa_best(), before = td_process()->isa;
    for (int level = 0; level <= best; level++)
        for (int k = 0; k < OPERATORS; k++)
            for (int t = 0; t < 2; t++) {
                td_scope_begin();
                td_process()->isa = level;
                const operator *o = &operators[k];
                const size_t size = td_dtype_size(
                    result_of(o, dtypes[t]));
                td_tensor *a = small(dtypes[t], shape, PLAIN);
                td_tensor *b = small(dtypes[t], shape, PLAIN);
                td_tensor *y = apply(o, a, b);
                for (int start = 0; start < 40; start++) {
                    const int64_t n = 1 + (start * 7) % 41;
                    td_tensor *u = view_of(a, start, n);
                    td_tensor *v = view_of(b, start, n);
                    td_tensor *z = apply(o, u, v);
                    if (memcmp(td_at(z), (char *)td_at(y)
                               + (size_t)start * size,
                               (size_t)n * size) != 0)
                        fail_msg("%s, %s, level %s: [%d, +%d) differs",
                                 o->name, td_dtype_name(dtypes[t]),
                                 td_isa(), start, (int)n);
                }
                td_scope_end();
            }
    td_process()->isa = before;
}

static td_tensor *operate(int which, void *context)
{
    td_tensor **in = context;
    return apply(&operators[which], in[0], in[1]);
}

static void same_bits_for_threads_and_executors(void **state)
{
    td_tensor *in[] = {
        small(TD_FLOAT32, (td_dims){ 2, { 419, 331 } }, TURNED),
        small(TD_FLOAT32, (td_dims){ 1, { 331 } }, PLAIN) };
    expect_same_bits(operate, OPERATORS, in);
}

/* In place ------------------------------------------------------------ */

static void in_place_over_layouts_and_dtypes(void **state)
{
    td_tensor *(*const forms[])(td_tensor *, td_tensor *)
        = { td_add_, td_sub_, td_mul_, td_div_ };
    double (*const by_hand[])(double, double)
        = { ref_add, ref_sub, ref_mul, ref_div };
    for (int k = 0; k < 4; k++)
        for (int t = 0; t < 4; t++)
            for (int s = 0; s < SHAPES; s++)
                for (int l = 0; l < SPREAD; l++) {
                    if (k == 3 && t >= 2)
                        continue;
                    td_tensor *x = small(dtypes[t], shapes[s], (layout)l);
                    td_tensor *y = small(dtypes[t], shapes[s], TURNED);
                    const int64_t n = td_numel(x);
                    double wanted[1031];
                    for (int64_t i = 0; i < n; i++)
                        wanted[i] = stored(dtypes[t],
                            by_hand[k](at(x, i), at(y, i)));
                    const unsigned version = x->storage->version;
                    assert_ptr_equal(forms[k](x, y), x);
                    assert_true(x->storage->version != version);
                    expect_values(x, 0, (int)n, wanted);
                }
}

static void in_place_converts_within_its_category(void **state)
{
    td_tensor *f = filled(TD_FLOAT32, three, 1);
    td_tensor *d = filled(TD_FLOAT64, three, 0.1);
    td_add_(f, d);
    assert_true(at(f, 0) == (double)(float)1.1);
    td_tensor *i = filled(TD_INT32, three, 5);
    td_tensor *l = filled(TD_INT64, three, 7);
    td_mul_(i, l);
    assert_true(at(i, 0) == 35);
    td_add_scalar_(f, td_int(2));
    assert_true(at(f, 0) == (double)(3.1f));
}

static void an_operand_may_share_memory_with_the_result(void **state)
{
    td_tensor *x = td_tensor_new((td_dims){ 1, { 100 } }, TD_FLOAT32, cpu);
    float *p = td_at(x);
    for (int i = 0; i < 100; i++)
        p[i] = (float)i;
    td_add_(x, x);
    for (int i = 0; i < 100; i++)
        assert_true(p[i] == 2.0f * (float)i);
    td_tensor *to = view_of(x, 1, 99), *from = view_of(x, 0, 99);
    td_add_(to, from);
    for (int i = 1; i < 100; i++)
        assert_true(p[i] == 2.0f * (float)i + 2.0f * (float)(i - 1));
    td_tensor *back = view_of(x, 0, 10);
    back->strides[0] = 1;
    td_tensor *odd = view_of(x, 1, 10);
    odd->strides[0] = 2;
    float wanted[10];
    for (int i = 0; i < 10; i++)
        wanted[i] = p[i] * p[1 + 2 * i];
    td_mul_(back, odd);
    for (int i = 0; i < 10; i++)
        assert_true(p[i] == wanted[i]);
    td_tensor *square = small(TD_FLOAT32, (td_dims){ 2, { 9, 9 } }, PLAIN);
    td_tensor *turned = td_transpose(square, 0, 1);
    td_tensor *sum = td_add(square, turned);
    td_add_(square, turned);
    assert_memory_equal(td_at(square), td_at(sum), 81 * sizeof(float));
}

/* Errors -------------------------------------------------------------- */

static void errors_name_the_operator_and_what_was_wrong(void **state)
{
    td_tensor *f = filled(TD_FLOAT32, three, 1);
    td_tensor *g = filled(TD_FLOAT32, (td_dims){ 2, { 2, 4 } }, 1);
    td_tensor *i = filled(TD_INT64, three, 1);
    td_tensor *u = filled(TD_UINT8, three, 1);
    td_tensor *b = filled(TD_BOOL, three, 1);
    td_tensor *h = td_tensor_new(three, TD_INT8, cpu);
    memset(td_at(h), 0, 3);
    refused(td_add(f, g), TD_ERROR_RUNTIME, "add: shapes [3] and [2, 4]");
    refused(td_add(NULL, f), TD_ERROR_VALUE, "add: argument");
    refused(td_exp(NULL), TD_ERROR_VALUE, "exp: argument");
    refused(td_neg(b), TD_ERROR_RUNTIME, "neg: not defined for bool");
    refused(td_sub(b, b), TD_ERROR_RUNTIME, "ne()");
    refused(td_relu(b), TD_ERROR_RUNTIME, "relu: not defined for bool");
    refused(td_pow(b, b), TD_ERROR_RUNTIME, "pow: not defined for bool");
    refused(td_exp(h), TD_ERROR_UNSUPPORTED, "exp: int8");
    refused(td_add(h, f), TD_ERROR_UNSUPPORTED, "add");
    refused(td_add_scalar(u, td_int(300)), TD_ERROR_VALUE,
            "300 does not fit uint8");
    refused(td_pow_scalar(i, td_int(-1)), TD_ERROR_RUNTIME,
            "negative integer powers");
    refused(td_add_scalar_(i, td_float(1.5)), TD_ERROR_RUNTIME,
            "add_: the result is float32 and cannot be stored in int64");
    refused(td_div_scalar_(i, td_int(2)), TD_ERROR_RUNTIME, "div_");
    refused(td_add_(f, g), TD_ERROR_RUNTIME, "add_");
    refused(td_add_(b, i), TD_ERROR_RUNTIME, "stored in bool");
    td_tensor *one = filled(TD_FLOAT32, (td_dims){ 1, { 1 } }, 1);
    refused(td_add_(one, f), TD_ERROR_RUNTIME, "add_");
    one->strides[0] = 0;
    one->shape[0] = 5;
    refused(td_add_scalar_(one, td_int(1)), TD_ERROR_RUNTIME,
            "several elements share one place");
    one->shape[0] = 1;
    refused(td_where(f, f, f), TD_ERROR_RUNTIME, "where: the condition");
    refused(td_clamp(f, (td_clamp_options){ .min = { false, 0 } }),
            TD_ERROR_VALUE, "clamp: at least one");
    assert_false(td_set_isa("v9"));
    expect_error(TD_ERROR_VALUE, "set_isa");
}

static void two_scalars_are_no_tensor(void **state)
{
    const td_value in[] = { td_v_int(1), td_v_int(2) };
    refused(td_run1(&td_ops[TD_OP_add], 2, in, 0, NULL), TD_ERROR_TYPE,
            "at least one operand must be a tensor");
}

static void nothing_runs_while_an_error_is_pending(void **state)
{
    td_tensor *x = filled(TD_FLOAT32, three, 1);
    td_fail(TD_ERROR_VALUE, "first", "the first error");
    assert_null(td_add(x, td_exp(x)));
    assert_null(td_add_(x, x));
    expect_error(TD_ERROR_VALUE, "first: the first error");
    assert_true(at(x, 0) == 1);
}

static bool each_form(void *context)
{
    td_tensor **in = context;
    return td_add(in[0], in[0])
        && td_clamp(in[0], (td_clamp_options){ .min = td_some(0) })
        && td_add_(in[1], in[2]);
}

static void every_failed_allocation_leaves_nothing_behind(void **state)
{
    td_tensor *x = small(TD_FLOAT32, (td_dims){ 2, { 40, 50 } }, TURNED);
    td_tensor *in[] = { x, view_of(x, 1, 99), view_of(x, 0, 99) };
    assert_in_range(fail_each_allocation(each_form, in), 3, 300);
}

/* Levels -------------------------------------------------------------- */

static void levels_can_be_asked_and_set(void **state)
{
    char before[16];
    snprintf(before, sizeof before, "%s", td_isa());
    assert_true(td_set_isa("base"));
    td_tensor *x = filled(TD_FLOAT32, three, 2);
    assert_true(fabs(only(td_exp(x)) - 7.38905609893065) < 1e-6);
    assert_true(td_set_isa(before));
    assert_string_equal(td_isa(), before);
}

static void caches_are_plausible_or_unknown(void **state)
{
    const td_cache_sizes c = td_cache_info();
    assert_true(c.l1 == 0 || (c.l1 >= 4 << 10 && c.l1 <= 1 << 20));
    assert_true(c.l2 == 0 || (c.l2 >= c.l1 && c.l2 <= 1 << 28));
    assert_true(c.l3 == 0 || (c.l3 >= c.l1 && c.l3 <= INT64_C(1) << 36));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(unary_over_dtypes_layouts_and_shapes),
        CASE(binary_over_dtypes_layouts_and_shapes),
        CASE(broadcasting_follows_the_right_edge),
        CASE(dimensioned_tensors_outvote_numbers_of_their_category),
        CASE(scalars_are_weak),
        CASE(a_scalar_is_rounded_to_the_dtype_of_the_loop),
        CASE(comparisons_with_a_scalar_beyond_the_dtype_are_answered),
        CASE(integers_wrap_and_bools_are_logical),
        CASE(integer_powers),
        CASE(special_values_of_unary_operators),
        CASE(nan_spreads_through_maximum_and_minimum),
        CASE(powers_follow_annex_f),
        CASE(where_and_clamp),
        CASE(primitives_are_within_two_ulp_at_every_level),
        CASE(a_value_does_not_depend_on_its_position),
        CASE(same_bits_for_threads_and_executors),
        CASE(in_place_over_layouts_and_dtypes),
        CASE(in_place_converts_within_its_category),
        CASE(an_operand_may_share_memory_with_the_result),
        CASE(errors_name_the_operator_and_what_was_wrong),
        CASE(two_scalars_are_no_tensor),
        CASE(nothing_runs_while_an_error_is_pending),
        CASE(every_failed_allocation_leaves_nothing_behind),
        CASE(levels_can_be_asked_and_set),
        CASE(caches_are_plausible_or_unknown),
    };
    return cmocka_run_group_tests_name("elementwise", tests, NULL, NULL);
}
