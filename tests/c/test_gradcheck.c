/* needs: gradcheck */
/* The gradient check: what it accepts, what it refuses, what it catches. */
#include "treadle_test.h"

static const td_tensor_options leaf_f64 = { .dtype = TD_FLOAT64, .requires_grad = true };
static const td_gradcheck_options usual = TD_DEFAULTS;

static td_tensor *ramp(int rows, int columns)
{
    td_tensor *x = td_zeros(TD_DIMS(rows, columns), (td_tensor_options){ .dtype = TD_FLOAT64 });
    for (int i = 0; i < rows * columns; i++)
        ((double *)td_data(x))[i] = 0.3 + 0.17 * i;
    return td_set_requires_grad(x, true);
}

static td_tensor *product(void *context, td_tensor *const *in)
{
    return td_matmul(in[0], td_sin(in[1]));
}

static td_tensor *ignores_second(void *context, td_tensor *const *in)
{
    return td_exp(in[0]);
}

static td_tensor *constant(void *context, td_tensor *const *in)
{
    return td_full(TD_DIMS(2), td_float(1), (td_tensor_options){ .dtype = TD_FLOAT64 });
}

static td_tensor *detached(void *context, td_tensor *const *in)
{
    return td_mul(td_detach(in[0]), in[0]);
}

static td_tensor *single(void *context, td_tensor *const *in)
{
    return td_to(in[0], TD_FLOAT32);
}

static td_tensor *failing(void *context, td_tensor *const *in)
{
    return td_matmul(in[0], in[0]);
}

static td_tensor *not_a_number(void *context, td_tensor *const *in)
{
    return td_log(td_neg(in[0]));
}

static void right_rules_pass(void **state)
{
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
    td_tensor *base = td_detach(ramp(4, 3));
    td_tensor *in[2] = { td_set_requires_grad(td_select(base, 1, 1), true), td_full(TD_RANK_0, td_float(0.5), leaf_f64) };
    assert_true(td_gradcheck(ignores_second, NULL, 2, in, usual));
    assert_true(td_gradgradcheck(ignores_second, NULL, 2, in, usual));
    assert_true(td_gradcheck(ignores_second, NULL, 1, &in[1], usual));
}

static void constants_have_zero_derivatives(void **state)
{
    td_tensor *x = ramp(1, 3);
    assert_true(td_gradcheck(constant, NULL, 1, &x, usual));
    assert_true(td_gradgradcheck(constant, NULL, 1, &x, usual));
}

static void missing_paths_are_found(void **state)
{
    td_tensor *x = ramp(1, 3);
    refused(td_gradcheck(detached, NULL, 1, &x, usual), TD_ERROR_RUNTIME, "result element 0 by input element 0");
}

static void bounds_can_be_chosen(void **state)
{
    td_tensor *x = ramp(1, 2);
    const td_gradcheck_options loose = { .rtol = td_some(0.6) };
    assert_true(td_gradcheck(detached, NULL, 1, &x, loose));
    const td_gradcheck_options strict = { .eps = td_some(0.5), .atol = td_some(0), .rtol = td_some(1e-6) };
    refused(td_gradcheck(ignores_second, NULL, 1, &x, strict), TD_ERROR_RUNTIME, "the rule says 1.349");
}

static void single_precision_is_refused(void **state)
{
    td_tensor *x = td_full(TD_DIMS(2), td_float(1), (td_tensor_options){ .requires_grad = true }), *y = ramp(1, 2);
    refused(td_gradcheck(ignores_second, NULL, 1, &x, usual), TD_ERROR_TYPE, "input 0 is float32");
    refused(td_gradcheck(single, NULL, 1, &y, usual), TD_ERROR_TYPE, "result is float32");
}

static void shared_elements_are_refused(void **state)
{
    td_tensor *one = td_full(TD_DIMS(1), td_float(1), (td_tensor_options){ .dtype = TD_FLOAT64 });
    td_tensor *x = td_set_requires_grad(td_expand(one, TD_DIMS(3)), true);
    refused(td_gradcheck(ignores_second, NULL, 1, &x, usual), TD_ERROR_VALUE, "share memory");
}

static void errors_of_the_function_come_through(void **state)
{
    td_tensor *x = ramp(2, 3);
    refused(td_gradcheck(failing, NULL, 1, &x, usual), TD_ERROR_RUNTIME, "matmul");
    refused(td_gradgradcheck(failing, NULL, 1, &x, usual), TD_ERROR_RUNTIME, "matmul");
}

static void a_check_without_numbers_is_not_passed(void **state)
{
    td_tensor *x = ramp(1, 2);
    assert_false(td_gradcheck(not_a_number, NULL, 1, &x, usual));
    td_error_clear();
}

static void inputs_are_put_back(void **state)
{
    td_tensor *x = ramp(2, 2);
    double copy[4];
    memcpy(copy, td_data(x), sizeof copy);
    assert_true(td_gradgradcheck(ignores_second, NULL, 1, &x, usual));
    assert_memory_equal(copy, td_data(x), sizeof copy);
}

static void too_many_inputs_are_refused(void **state)
{
    td_tensor *in[20];
    for (int i = 0; i < 20; i++)
        in[i] = ramp(1, 1);
    refused(td_gradcheck(ignores_second, NULL, 20, in, usual), TD_ERROR_VALUE, "at most");
    refused(td_gradgradcheck(ignores_second, NULL, 16, in, usual), TD_ERROR_VALUE, "at most");
}

static bool check_product(void *in)
{
    return td_gradcheck(product, NULL, 2, in, usual);
}

static void every_allocation_may_fail(void **state)
{
    td_tensor *in[2] = { ramp(1, 2), ramp(2, 1) };
    assert_in_range(fail_each_allocation(check_product, in), 1, 4999);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(right_rules_pass),
        CASE(views_and_numbers_can_be_checked),
        CASE(constants_have_zero_derivatives),
        CASE(missing_paths_are_found),
        CASE(bounds_can_be_chosen),
        CASE(single_precision_is_refused),
        CASE(shared_elements_are_refused),
        CASE(errors_of_the_function_come_through),
        CASE(a_check_without_numbers_is_not_passed),
        CASE(inputs_are_put_back),
        CASE(too_many_inputs_are_refused),
        CASE(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
