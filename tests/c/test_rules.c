/* needs: gradcheck */
/* Rules at the places that difference quotients cannot check. */
#include "treadle_test.h"
#include "ops/formula.h"
#include "core/registry.h"

static const td_tensor_options leaf_f64 = { .dtype = TD_FLOAT64, .requires_grad = true };
static const td_reduce_options all = TD_DEFAULTS;

static td_tensor *numbers(int n, const double *x)
{
    return td_from_data(x, TD_DIMS(n), leaf_f64);
}
#define NUMBERS(...) numbers(sizeof (double[]){ __VA_ARGS__ } / sizeof(double), (double[]){ __VA_ARGS__ })

/* x's gradient of the sum of y, and the same with the pass recorded. */
static td_tensor *grad(td_tensor *y, td_tensor *x, bool recorded)
{
    td_tensor *sum = td_sum(y, all), *g = NULL;
    td_grad(&sum, 1, &x, 1, &g, (td_grad_options){ .retain_graph = true, .create_graph = recorded });
    return g;
}

static void expect(int n, const double *expected, td_tensor *y, td_tensor *x)
{
    for (int recorded = 0; recorded < 2; recorded++) {
        const td_tensor *g = grad(y, x, recorded);
        comparison c = { 0 };
        assert_non_null(g);
        for (int i = 0; i < n; i++)
            compare(&c, at(g, i), expected[i], 1e-12);
        expect_right(c, "gradient, recorded: %d", recorded);
    }
}
#define EXPECT(y, x, ...) expect(sizeof (double[]){ __VA_ARGS__ } / sizeof(double), (double[]){ __VA_ARGS__ }, y, x)

static void kinks_follow_the_convention(void **state)
{
    td_tensor *x = NUMBERS(-2, -0.0, 0, 3, NAN);
    EXPECT(td_relu(x), x, 0, 0, 0, 1, 1);
    EXPECT(td_abs(x), x, -1, 0, 0, 1, 0);
    EXPECT(td_sign(x), x, 0, 0, 0, 0, 0);
    x = NUMBERS(0, 4);
    EXPECT(td_sqrt(x), x, INFINITY, 0.25);
    EXPECT(td_log(x), x, INFINITY, 0.25);
    EXPECT(td_reciprocal(x), x, -INFINITY, -0.0625);
}

static void infinite_gradients_are_chosen_not_multiplied(void **state)
{
    td_tensor *x = NUMBERS(0, 4);       /* the slope of sqrt at 0 is infinite */
    EXPECT(td_sqrt(td_relu(x)), x, 0, 0.25);
    EXPECT(td_sqrt(td_maximum(x, td_full(TD_DIMS(2), td_float(1), wide))), x, 0, 0.25);
}

static void powers_at_zero(void **state)
{
    td_tensor *x = NUMBERS(0, 0, 0, -8, 2), *e = NUMBERS(0, 1, 2, 3, 0);
    EXPECT(td_pow(x, e), x, 0, 1, 0, 192, 0);
    td_tensor *b = NUMBERS(0, 2, 0), *p = NUMBERS(2, 0, 0);
    EXPECT(td_pow(b, p), p, 0, log(2), 0);
    td_tensor *y = NUMBERS(-3, 0, 2);
    EXPECT(td_pow_scalar(y, td_int(2)), y, -6, 0, 4);
    EXPECT(td_pow_scalar(y, td_int(0)), y, 0, 0, 0);
    EXPECT(td_rpow_scalar(y, td_float(1)), y, 0, 0, 0);
}

static void ties_share(void **state)
{
    td_tensor *a = NUMBERS(1, 2, 3), *b = NUMBERS(3, 2, 1);
    EXPECT(td_maximum(a, b), a, 0, 0.5, 1);
    EXPECT(td_maximum(a, b), b, 1, 0.5, 0);
    EXPECT(td_minimum(a, b), a, 1, 0.5, 0);
    td_tensor *x = NUMBERS(1, 3, 3, 2);
    EXPECT(td_amax(x, all), x, 0, 0.5, 0.5, 0);
    EXPECT(td_max(x), x, 0, 0.5, 0.5, 0);
    EXPECT(td_amin(x, all), x, 1, 0, 0, 0);
}

static void clamp_passes_at_its_edges(void **state)
{
    td_tensor *x = NUMBERS(-2, -1, 0, 1, 2, NAN);
    const td_value in = td_v_tensor(x), attr[2] = { td_v_float(-1), td_v_float(1) };
    EXPECT(td_run1(&td_ops[TD_OP_clamp], 1, &in, 2, attr), x, 0, 1, 1, 1, 0, 0);
}

static void logsumexp_of_nothing_but_minus_infinity(void **state)
{
    td_tensor *x = NUMBERS(-INFINITY, -INFINITY);
    EXPECT(td_logsumexp(x, all), x, 0, 0);
    x = NUMBERS(1000, -INFINITY, 1000);
    EXPECT(td_logsumexp(x, all), x, 0.5, 0, 0.5);
}

static void selections_take_vectors_of_integers(void **state)
{
    const int64_t pick[] = { 2, 0, 2 };
    td_tensor *a = td_reshape(td_arange(td_int(0), td_int(6), td_int(1), plain), TD_DIMS(2, 3));
    td_tensor *index = td_from_data(pick, TD_DIMS(3), (td_tensor_options){ .dtype = TD_INT64 });
    VALUES(td_index_select(a, 1, index), 2, 0, 2, 5, 3, 5);
    VALUES(td_index_select(td_t(td_reshape(a, TD_DIMS(3, 2))), 1, td_to(index, TD_INT32)), 4, 0, 4, 5, 1, 5);
    VALUES(td_index_select(td_t(a), 0, td_slice(index, 0, (td_opt_i64)TD_DEFAULTS, (td_opt_i64)TD_DEFAULTS, 2)),
           2, 5, 2, 5);
    refused(td_index_select(a, 0, index), TD_ERROR_INDEX,
            "index_select: index 2 is out of bounds for dimension 0 with size 2");
    refused(td_index_select(a, 0, a), TD_ERROR_INDEX, "vector");
    refused(td_index_select(a, 0, td_ones(TD_DIMS(1), plain)), TD_ERROR_INDEX, "float32");
    refused(td_index_select(a, 0, NULL), TD_ERROR_VALUE, "index_select: argument 'index' is NULL");
}

/* Rows are shared among threads by columns: the same bits for any number. */
static void sums_at_places_do_not_depend_on_threads(void **state)
{
    td_manual_seed(3);
    td_tensor *g = td_randn(TD_DIMS(997, 67), plain), *first = NULL;
    td_tensor *index = td_to(td_mul_scalar(td_rand(TD_DIMS(997), plain), td_int(13)), TD_INT64);
    for (int threads = 1; threads <= 3; threads++) {
        td_set_threads(threads);
        td_tensor *sum = td_put_points_(td_zeros(TD_DIMS(13, 67), plain), index, g, 0, 1, TD_PUT_ADD);
        first = first ? first : sum;
        assert_memory_equal(td_data(sum), td_data(first), 13 * 67 * sizeof(float));
    }
}

static void rows_taken_twice_add_up(void **state)
{
    td_tensor *x = td_full(TD_DIMS(3, 2), td_float(1), leaf_f64);
    const int64_t rows[3] = { 2, 0, 2 };
    td_tensor *index = td_from_data(rows, TD_DIMS(3), (td_tensor_options){ .dtype = TD_INT64 });
    EXPECT(td_index_select(x, 0, index), x, 1, 1, 0, 0, 2, 2);
    td_tensor *f = td_full(TD_DIMS(3, 2), td_float(1), (td_tensor_options){ .requires_grad = true });
    td_tensor *g = grad(td_index_select(f, 0, index), f, false);
    assert_true(((float *)td_data(g))[4] == 2);
}

static void gradients_of_parts_are_zero_elsewhere(void **state)
{
    td_tensor *x = NUMBERS(1, 2, 3, 4, 5);
    EXPECT(td_slice(x, 0, (td_opt_i64)td_some(1), (td_opt_i64)td_some(-1), 2), x, 0, 1, 0, 1, 0);
    EXPECT(td_select(x, -1, -2), x, 0, 0, 0, 1, 0);
}

static void conversions_convert_the_gradient_back(void **state)
{
    td_tensor *x = NUMBERS(1, 2);
    td_tensor *g = grad(td_to(x, TD_FLOAT32), x, false);
    assert_int_equal(td_dtype_of(g), TD_FLOAT64);
    assert_false(td_requires_grad(td_to(x, TD_INT64)));
    td_tensor *h = td_to(x, TD_FLOAT16);
    assert_true(td_requires_grad(h));
}

static void nothing_but_shape_needs_no_rule(void **state)
{
    td_tensor *x = NUMBERS(1, 2);
    assert_false(td_requires_grad(td_zeros_like(x, (td_tensor_options)TD_DEFAULTS)));
    assert_false(td_requires_grad(td_eq(x, x)));
    assert_false(td_requires_grad(td_isnan(x)));
}

static void empty_shapes_have_empty_gradients(void **state)
{
    td_tensor *a = td_zeros(TD_DIMS(0, 3), leaf_f64), *b = td_zeros(TD_DIMS(3, 2), leaf_f64);
    td_tensor *y = td_sum(td_tanh(td_matmul(a, b)), all), *in[2] = { a, b }, *g[2];
    assert_true(td_grad(&y, 1, in, 2, g, (td_grad_options)TD_DEFAULTS));
    assert_int_equal(td_numel(g[0]), 0);
    assert_int_equal(td_numel(g[1]), 6);
    for (int i = 0; i < 6; i++)
        assert_true(((double *)td_data(td_contiguous(g[1])))[i] == 0);
}

static void layouts_and_dtypes_mix(void **state)
{
    td_tensor *a = td_full(TD_DIMS(3, 5), td_float(0.5), leaf_f64);
    td_tensor *b = td_full(TD_DIMS(5, 3), td_float(2), (td_tensor_options){ .requires_grad = true });
    td_tensor *y = td_sum(td_div(td_t(a), b), all), *in[2] = { a, b }, *g[2];
    assert_true(td_grad(&y, 1, in, 2, g, (td_grad_options)TD_DEFAULTS));
    assert_int_equal(td_dtype_of(g[1]), TD_FLOAT32);
    assert_true(((double *)td_data(td_contiguous(g[0])))[7] == 0.5);
    assert_true(((float *)td_data(td_contiguous(g[1])))[7] == -0.125f);
}

static void same_bits_for_any_number_of_threads(void **state)
{
    static double first[50000];
    td_tensor *x = td_linspace(-3, 3, 50000, wide);
    td_set_requires_grad(x, true);
    const int threads = td_threads();
    for (int n = 1; n <= 4; n++) {
        td_set_threads(n);
        td_tensor *g = grad(td_tanh(td_mul(x, td_sigmoid(x))), x, false);
        if (n == 1)
            memcpy(first, td_data(g), sizeof first);
        assert_memory_equal(first, td_data(g), sizeof first);
    }
    td_set_threads(threads);
}

static void formulas_bind_like_c(void **state)
{
    static const struct { const char *text; double value; } table[] = {
        { "g - x - y", 5 - 3 - 2 }, { "g / x / y", 5.0 / 3 / 2 }, { "-g * x", -15 }, { "g - -x", 8 },
        { "g + x * y", 11 }, { "(g + x) * y", 16 }, { "select(g > x, y, g)", 2 }, { "select(g <= x, y, g)", 5 },
        { "select((g < x) | (x > y), 1, 0) * g", 5 }, { "K(0.5) * g", 2.5 }, { "2 * g * x", 30 },
        { "p_abs(-g)", 5 }, { "p_pow(x, y)", 9 }, { "select(g != g, 1, 0) + g", 5 }, { "1.5 - g", -3.5 },
    };
    const td_value bound[3] = { td_v_tensor(NUMBERS(5)), td_v_tensor(NUMBERS(3)), td_v_tensor(NUMBERS(2)) };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        td_formula f;
        td_value result;
        assert_true(td_formula_parse(table[i].text, &f));
        assert_true(td_formula_run(&f, "gxy", bound, &result));
        if (fabs(td_item_double(result.as.tensor) - table[i].value) > 1e-15)
            fail_msg("%s is %g", table[i].text, td_item_double(result.as.tensor));
    }
}

static void malformed_formulas_are_refused(void **state)
{
    static const char *const table[] = { "", "g +", "(g", "g)", "g x", "select(g, x", "K()", "p_nothing(g)", "z",
                                         "g < x < y x", "gg", "+ g", "g ** x", "f(g,x,y,g)", "1 2", "g / (1 + fabs(x))" };
    td_formula f;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (td_formula_parse(table[i], &f) || f.count != 0)
            fail_msg("'%s' was read", table[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(kinks_follow_the_convention),
        CASE(infinite_gradients_are_chosen_not_multiplied),
        CASE(powers_at_zero),
        CASE(ties_share),
        CASE(clamp_passes_at_its_edges),
        CASE(logsumexp_of_nothing_but_minus_infinity),
        CASE(selections_take_vectors_of_integers), CASE(sums_at_places_do_not_depend_on_threads),
        CASE(rows_taken_twice_add_up),
        CASE(gradients_of_parts_are_zero_elsewhere),
        CASE(conversions_convert_the_gradient_back),
        CASE(nothing_but_shape_needs_no_rule),
        CASE(empty_shapes_have_empty_gradients),
        CASE(layouts_and_dtypes_mix),
        CASE(same_bits_for_any_number_of_threads),
        CASE(formulas_bind_like_c),
        CASE(malformed_formulas_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
