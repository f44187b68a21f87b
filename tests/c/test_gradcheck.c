/* needs: gradcheck */
/* The gradient check: what it accepts, what it refuses, what it catches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include <treadle/treadle.h>

static const td_tensor_options leaf_f64 = { .dtype = TD_FLOAT64, .requires_grad = true };
static const td_gradcheck_options usual = TD_DEFAULTS;
static td_memory_info before;

static int begin(void **state)
{
    (void)state;
    before = td_memory_stats();
    td_scope_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    td_error_clear();
    td_scope_end();
    const td_memory_info after = td_memory_stats();
    return after.live_objects != before.live_objects || after.bytes != before.bytes;
}

static void expect_error(td_error_code code, const char *text)
{
    assert_int_equal(td_error(), code);
    if (strstr(td_error_message(), text) == NULL)
        fail_msg("expected '%s' in '%s'", text, td_error_message());
    td_error_clear();
}

static td_tensor *ramp(int rows, int columns)
{
    td_tensor *x = td_zeros(TD_DIMS(rows, columns), (td_tensor_options){ .dtype = TD_FLOAT64 });
    for (int i = 0; i < rows * columns; i++)
        ((double *)td_data(x))[i] = 0.3 + 0.17 * i;
    return td_set_requires_grad(x, true);
}

static td_tensor *product(void *context, td_tensor *const *in)
{
    (void)context;
    return td_matmul(in[0], td_sin(in[1]));
}

static td_tensor *ignores_second(void *context, td_tensor *const *in)
{
    (void)context;
    return td_exp(in[0]);
}

static td_tensor *constant(void *context, td_tensor *const *in)
{
    (void)context;
    (void)in;
    return td_full(TD_DIMS(2), td_float(1), (td_tensor_options){ .dtype = TD_FLOAT64 });
}

static td_tensor *detached(void *context, td_tensor *const *in)
{
    (void)context;
    return td_mul(td_detach(in[0]), in[0]);
}

static td_tensor *single(void *context, td_tensor *const *in)
{
    (void)context;
    return td_to(in[0], TD_FLOAT32);
}

static td_tensor *failing(void *context, td_tensor *const *in)
{
    (void)context;
    return td_matmul(in[0], in[0]);
}

static td_tensor *not_a_number(void *context, td_tensor *const *in)
{
    (void)context;
    return td_log(td_neg(in[0]));
}

static void right_rules_pass(void **state)
{
    (void)state;
    td_tensor *in[2] = { ramp(2, 3), ramp(3, 2) };
    assert_true(td_gradcheck(product, NULL, 2, in, usual));
    assert_true(td_gradgradcheck(product, NULL, 2, in, usual));
    for (int i = 0; i < 2; i++)
        assert_null(td_grad_of(in[i]));
    in[1] = td_detach(in[1]);
    assert_true(td_gradcheck(product, NULL, 2, in, usual));
}

static void views_and_numbers_can_be_checked(void **state)
{
    (void)state;
    td_tensor *base = td_detach(ramp(4, 3));
    td_tensor *in[2] = { td_set_requires_grad(td_select(base, 1, 1), true), td_full(TD_RANK_0, td_float(0.5), leaf_f64) };
    assert_true(td_gradcheck(ignores_second, NULL, 2, in, usual));
    assert_true(td_gradgradcheck(ignores_second, NULL, 2, in, usual));
    assert_true(td_gradcheck(ignores_second, NULL, 1, &in[1], usual));
}

static void constants_have_zero_derivatives(void **state)
{
    (void)state;
    td_tensor *x = ramp(1, 3);
    assert_true(td_gradcheck(constant, NULL, 1, &x, usual));
    assert_true(td_gradgradcheck(constant, NULL, 1, &x, usual));
}

static void missing_paths_are_found(void **state)
{
    (void)state;
    td_tensor *x = ramp(1, 3);
    assert_false(td_gradcheck(detached, NULL, 1, &x, usual));
    expect_error(TD_ERROR_RUNTIME, "result element 0 by input element 0");
}

static void bounds_can_be_chosen(void **state)
{
    (void)state;
    td_tensor *x = ramp(1, 2);
    const td_gradcheck_options loose = { .rtol = td_some(0.6) };
    assert_true(td_gradcheck(detached, NULL, 1, &x, loose));
    const td_gradcheck_options wide = { .eps = td_some(0.5), .atol = td_some(0), .rtol = td_some(1e-6) };
    assert_false(td_gradcheck(ignores_second, NULL, 1, &x, wide));
    expect_error(TD_ERROR_RUNTIME, "the rule says 1.349");
}

static void single_precision_is_refused(void **state)
{
    (void)state;
    td_tensor *x = td_full(TD_DIMS(2), td_float(1), (td_tensor_options){ .requires_grad = true }), *y = ramp(1, 2);
    assert_false(td_gradcheck(ignores_second, NULL, 1, &x, usual));
    expect_error(TD_ERROR_TYPE, "input 0 is float32");
    assert_false(td_gradcheck(single, NULL, 1, &y, usual));
    expect_error(TD_ERROR_TYPE, "result is float32");
}

static void shared_elements_are_refused(void **state)
{
    (void)state;
    td_tensor *one = td_full(TD_DIMS(1), td_float(1), (td_tensor_options){ .dtype = TD_FLOAT64 });
    td_tensor *x = td_set_requires_grad(td_expand(one, TD_DIMS(3)), true);
    assert_false(td_gradcheck(ignores_second, NULL, 1, &x, usual));
    expect_error(TD_ERROR_VALUE, "share memory");
}

static void errors_of_the_function_come_through(void **state)
{
    (void)state;
    td_tensor *x = ramp(2, 3);
    assert_false(td_gradcheck(failing, NULL, 1, &x, usual));
    expect_error(TD_ERROR_RUNTIME, "matmul");
    assert_false(td_gradgradcheck(failing, NULL, 1, &x, usual));
    expect_error(TD_ERROR_RUNTIME, "matmul");
}

static void a_check_without_numbers_is_not_passed(void **state)
{
    (void)state;
    td_tensor *x = ramp(1, 2);
    assert_false(td_gradcheck(not_a_number, NULL, 1, &x, usual));
    td_error_clear();
}

static void inputs_are_put_back(void **state)
{
    (void)state;
    td_tensor *x = ramp(2, 2);
    double copy[4];
    memcpy(copy, td_data(x), sizeof copy);
    assert_true(td_gradgradcheck(ignores_second, NULL, 1, &x, usual));
    assert_memory_equal(copy, td_data(x), sizeof copy);
}

static void too_many_inputs_are_refused(void **state)
{
    (void)state;
    td_tensor *in[20];
    for (int i = 0; i < 20; i++)
        in[i] = ramp(1, 1);
    assert_false(td_gradcheck(ignores_second, NULL, 20, in, usual));
    expect_error(TD_ERROR_VALUE, "at most");
    assert_false(td_gradgradcheck(ignores_second, NULL, 16, in, usual));
    expect_error(TD_ERROR_VALUE, "at most");
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    td_tensor *in[2] = { ramp(1, 2), ramp(2, 1) };
    bool ok = false;
    for (int n = 0; !ok && n < 5000; n++) {
        td_memory_fail_after(n);
        ok = td_gradcheck(product, NULL, 2, in, usual);
        td_memory_fail_after(-1);
        if (!ok)
            expect_error(TD_ERROR_MEMORY, "memory");
    }
    assert_true(ok);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(right_rules_pass),
        TEST(views_and_numbers_can_be_checked),
        TEST(constants_have_zero_derivatives),
        TEST(missing_paths_are_found),
        TEST(bounds_can_be_chosen),
        TEST(single_precision_is_refused),
        TEST(shared_elements_are_refused),
        TEST(errors_of_the_function_come_through),
        TEST(a_check_without_numbers_is_not_passed),
        TEST(inputs_are_put_back),
        TEST(too_many_inputs_are_refused),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
