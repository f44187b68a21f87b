/* needs: activations */
/* What Python cannot reach of the chapter's operators: the primitives at
   every level, C functions, calls packed by hand, failing memory. */
#include "treadle_test.h"
#include <math.h>
#include "core/isa.h"
#include "core/registry.h"
#include "core/tensor.h"

static double gelu(double x)
{
    return x * (erfc(-x * 0.70710678118654752440) / 2);
}

static const struct {
    const char *name;
    td_tensor *(*f)(td_tensor *);
    double (*reference)(double);
} precise[] = {
    { "expm1", td_expm1, expm1 }, { "log1p", td_log1p, log1p },
    { "log2", td_log2, log2 }, { "log10", td_log10, log10 },
    { "exp2", td_exp2, exp2 }, { "erf", td_erf, erf },
    { "erfc", td_erfc, erfc }, { "tan", td_tan, tan },
    { "asin", td_asin, asin }, { "acos", td_acos, acos },
    { "atan", td_atan, atan }, { "sinh", td_sinh, sinh },
    { "cosh", td_cosh, cosh }, { "asinh", td_asinh, asinh },
    { "acosh", td_acosh, acosh }, { "atanh", td_atanh, atanh },
    { "gelu_erf", td_gelu_erf, gelu },
};

/* Distance in units of the last place of what was wanted. */
static double ulps(float got, double wanted)
{
    const float w = (float)wanted;
    int e;
    if (got == w || (isnan(got) && isnan(wanted)))
        return 0;
    if (isnan(got) || isnan(w) || isinf(got) || isinf(w))
        return INFINITY;
    frexp(wanted, &e);
    return fabs(got - wanted) / ldexp(1, e > -125 ? e - 24 : -149);
}

static double worst_of(const td_tensor *x, const td_tensor *y,
                       double (*reference)(double), float *at_worst)
{
    double worst = 0;
    for (int64_t i = 0; i < td_numel(x); i++) {
        const float v = ((const float *)td_at(x))[i];
        const double u = ulps(((const float *)td_at(y))[i], reference(v));
        *at_worst = u > worst ? v : *at_worst;
        worst = u > worst ? u : worst;
    }
    return worst;
}

/* Every 41003rd float there is, denormal and huge ones included. */
static void primitives_are_within_two_ulp_at_every_level(void **state)
{
    const int64_t n = (INT64_C(1) << 32) / 41003;
    td_tensor *x = td_empty(TD_DIMS(n), plain);
    for (int64_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)(i * 41003);
        memcpy((float *)td_at(x) + i, &bits, sizeof bits);
    }
    const int best = td_isa_best(), before = td_process()->isa;
    for (int level = 0; level <= best; level++) {
        td_process()->isa = level;
        for (size_t k = 0; k < sizeof precise / sizeof *precise; k++) {
            float at = 0;
            const double worst = worst_of(x, precise[k].f(x),
                                          precise[k].reference, &at);
            if (worst > (precise[k].f == td_gelu_erf ? 7 : 2))
                fail_msg("%s, %s: %.3g ulp at %a", precise[k].name,
                         td_isa(), worst, (double)at);
        }
    }
    td_process()->isa = before;
}

/* Pairs of all sizes, zeros of both signs, infinities and NaN among them. */
static void angles_and_lengths_of_points_are_rounded_once(void **state)
{
    enum { SOME = 40, PAIRS = SOME * SOME };
    static const float special[] = { 0, -0.0f, INFINITY, -INFINITY, NAN, 1,
        -1, 1e-45f, -1e-45f, 3.4e38f, -3.4e38f, 0.41421357f };
    float v[SOME];
    uint32_t bits = 12345;
    td_tensor *a = td_empty(TD_DIMS(PAIRS), plain);
    td_tensor *b = td_empty(TD_DIMS(PAIRS), plain);
    for (int i = 0; i < SOME; i++, bits = bits * 1664525u + 1013904223u)
        memcpy(&v[i], &bits, sizeof bits);
    memcpy(v, special, sizeof special);
    for (int i = 0; i < PAIRS; i++) {
        ((float *)td_at(a))[i] = v[i / SOME];
        ((float *)td_at(b))[i] = v[i % SOME];
    }
    const int best = td_isa_best(), before = td_process()->isa;
    for (int level = 0; level <= best; level++) {
        td_process()->isa = level;
        const float *angle = td_at(td_atan2(a, b));
        const float *length = td_at(td_hypot(a, b));
        for (int i = 0; i < PAIRS; i++) {
            const float y = v[i / SOME], x = v[i % SOME];
            if (ulps(angle[i], atan2(y, x)) > 0.51
                || (!isnan(angle[i]) && signbit(angle[i]) != signbit(y)))
                fail_msg("atan2(%a, %a), %s: %a", (double)y, (double)x,
                         td_isa(), (double)angle[i]);
            if (ulps(length[i], hypot(y, x)) > 0.51)
                fail_msg("hypot(%a, %a), %s: %a", (double)y, (double)x,
                         td_isa(), (double)length[i]);
        }
    }
    td_process()->isa = before;
}

/* The result is just below a power of two, where ulps are smallest beside it. */
static void gelu_is_within_seven_ulp_where_it_is_worst(void **state)
{
    enum { N = 1 << 18 };
    float *x = malloc(N * sizeof *x);
    for (uint32_t i = 0, bits; i < N; i++) {
        const float from = -2.25f;
        memcpy(&bits, &from, sizeof bits);
        bits -= i;
        memcpy(x + i, &bits, sizeof bits);
    }
    td_tensor *all = td_from_data(x, TD_DIMS(N), plain);
    const int best = td_isa_best(), before = td_process()->isa;
    for (int level = 0; level <= best; level++) {
        td_process()->isa = level;
        const float *y = td_at(td_gelu_erf(all));
        for (int i = 0; i < N; i++)
            if (!(ulps(y[i], x[i] * erfc(-x[i] * 0.70710678118654752440) / 2) <= 7))
                fail_msg("%s: %.9g at %a", td_isa(), (double)y[i], (double)x[i]);
    }
    td_process()->isa = before;
    free(x);
}

/* The slope is zero at -0.75, where ulps mean nothing. */
static void the_slope_of_gelu_is_within_four_ulp_of_one(void **state)
{
    const int64_t n = 300007;
    td_tensor *x = td_linspace(-16, 16, n, plain);
    const int best = td_isa_best(), before = td_process()->isa;
    for (int level = 0; level <= best; level++) {
        td_process()->isa = level;
        const float *y = td_at(td_gelu_slope(x));
        for (int64_t i = 0; i < n; i++) {
            const double v = ((const float *)td_at(x))[i];
            const double tail = erfc(-v * 0.70710678118654752440) / 2;
            const double wanted = tail + v * exp(-v * v / 2) * 0.39894228040143267794;
            if (!(fabs(y[i] - wanted) <= 0x1p-22))
                fail_msg("%s: %.9g at %a, expected %.9g", td_isa(), (double)y[i], v, wanted);
        }
    }
    td_process()->isa = before;
}

static void functions_of_c_take_numbers(void **state)
{
    td_tensor *x = td_full(TD_DIMS(3), td_float(-5), plain);
    VALUES(td_remainder_scalar(x, td_int(3)), 1, 1, 1);
    VALUES(td_fmod_scalar(x, td_int(3)), -2, -2, -2);
    VALUES(td_floor_divide_scalar(x, td_int(2)), -3, -3, -3);
    VALUES(td_leaky_relu(x, td_float(0.5)), -2.5, -2.5, -2.5);
    VALUES(td_fmax(x, td_full(TD_DIMS(1), td_float(NAN), plain)),
           -5, -5, -5);
    VALUES(td_relu6(td_neg(x)), 5, 5, 5);
}

static void a_missing_operand_is_an_error(void **state)
{
    td_tensor *x = td_full(TD_DIMS(3), td_float(-5), plain);
    const td_value in[] = { td_v_tensor(x), td_v_none() };
    refused(td_run1(&td_ops[TD_OP_elu], 2, in, 0, NULL), TD_ERROR_VALUE,
            "elu: operand 2 is missing");
    const td_value attr[] = { td_v_none(), td_v_none() };
    refused(td_run1(&td_ops[TD_OP_hardtanh], 1, in, 2, attr),
            TD_ERROR_TYPE, "do not fit the signature");
}

static bool each_kind(void *context)
{
    td_tensor *x = context;
    td_tensor *m = td_gt_scalar(x, td_int(0));
    const td_value three[] = { td_v_tensor(x), td_v_tensor(x),
                               td_v_tensor(x) };
    const td_value fill[] = { td_v_tensor(x), td_v_tensor(m),
                              td_v_float(2) };
    const td_value one = td_v_int(1), form = td_v_none();
    return m && td_run1(&td_ops[TD_OP_addcmul], 3, three, 1, &one)
        && td_run1(&td_ops[TD_OP_gelu], 1, three, 1, &form)
        && td_run1(&td_ops[TD_OP_prelu], 2, (td_value[]){
               three[0], td_v_tensor(td_ones(TD_DIMS(1), plain)) }, 0, NULL)
        && td_run1(&td_ops[TD_OP_masked_fill], 3, fill, 0, NULL)
        && td_run1(&td_ops[TD_OP_exp_], 1, three, 0, NULL)
        && td_remainder_scalar(td_to(x, TD_INT64), td_int(2));
}

static void every_failed_allocation_leaves_nothing_behind(void **state)
{
    td_tensor *x = td_full(TD_DIMS(5), td_float(0.1), plain);
    assert_in_range(fail_each_allocation(each_kind, x), 3, 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(primitives_are_within_two_ulp_at_every_level),
        CASE(angles_and_lengths_of_points_are_rounded_once),
        CASE(gelu_is_within_seven_ulp_where_it_is_worst),
        CASE(the_slope_of_gelu_is_within_four_ulp_of_one),
        CASE(functions_of_c_take_numbers),
        CASE(a_missing_operand_is_an_error),
        CASE(every_failed_allocation_leaves_nothing_behind),
    };
    return cmocka_run_group_tests_name("activations", tests, NULL, NULL);
}
