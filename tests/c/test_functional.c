/* needs: functional */
/* Derivatives as functions, anomaly mode and saving hooks, from C. */
#include "treadle_test.h"

static td_tensor *pair[2];

static void make_pair(void)
{
    for (int i = 0; i < 2; i++) {
        pair[i] = td_zeros(TD_DIMS(3), wide);
        for (int k = 0; k < 3; k++)
            ((double *)td_data(pair[i]))[k] = 1 + k + i;
    }
}

static double element(td_tensor *x, int64_t k)
{
    return ((double *)td_data(td_contiguous(x)))[k];
}

static td_tensor *product(void *context, td_tensor *const *in)
{
    return td_mul(td_mul(in[0], in[0]), in[1]);
}

static td_tensor *total(void *context, td_tensor *const *in)
{
    return td_sum(product(context, in), (td_reduce_options)TD_DEFAULTS);
}

static td_tensor *constant(void *context, td_tensor *const *in)
{
    return td_zeros(TD_DIMS(2), wide);
}

static void products_with_vectors(void **state)
{
    make_pair();
    td_tensor *v = td_ones(TD_DIMS(3), wide), *pulled[2], *pushed;
    td_tensor *y = td_vjp(product, NULL, 2, pair, v, pulled);
    assert_false(td_failed());
    assert_false(td_requires_grad(y) || td_requires_grad(pulled[0]));
    td_tensor *const both[] = { v, v };
    td_jvp(product, NULL, 2, pair, both, &pushed);
    for (int k = 0; k < 3; k++) {
        const double a = 1 + k, b = 2 + k;
        assert_true(element(y, k) == a * a * b);
        assert_true(element(pulled[0], k) == 2 * a * b);
        assert_true(element(pulled[1], k) == a * a);
        assert_true(element(pushed, k) == 2 * a * b + a * a);
    }
    assert_false(td_requires_grad(pair[0]));
}

static void jacobian_and_hessian(void **state)
{
    make_pair();
    td_tensor *j[2], *h[4];
    assert_true(td_jacobian(product, NULL, 2, pair, j));
    assert_true(td_hessian(total, NULL, 2, pair, h));
    for (int k = 0; k < 9; k++) {
        const double a = 1 + k % 3, b = 2 + k % 3, one = k % 4 == 0;
        assert_true(element(j[0], k) == one * 2 * a * b);
        assert_true(element(h[0], k) == one * 2 * b);
        assert_true(element(h[1], k) == one * 2 * a);
        assert_true(element(h[2], k) == one * 2 * a);
        assert_true(element(h[3], k) == 0);
    }
    assert_int_equal(td_shape_of(j[1]).count, 2);
}

static void independence_gives_zeros(void **state)
{
    make_pair();
    td_tensor *j[2], *h[4], *pushed;
    assert_true(td_jacobian(constant, NULL, 2, pair, j));
    assert_true(td_numel(j[0]) == 6 && element(j[0], 5) == 0);
    assert_non_null(td_jvp(constant, NULL, 2, pair, pair, &pushed));
    assert_true(td_numel(pushed) == 2 && element(pushed, 1) == 0);
    assert_false(td_hessian(constant, NULL, 2, pair, h));
    assert_non_null(strstr(td_error_message(), "one element"));
    td_error_clear();
}

static bool everything(void *unused)
{
    td_tensor *j[2], *h[4], *pushed, *pulled[2];
    return td_jacobian(product, NULL, 2, pair, j)
        && td_hessian(total, NULL, 2, pair, h)
        && td_jvp(product, NULL, 2, pair, pair, &pushed)
        && td_vjp(product, NULL, 2, pair, pair[0], pulled);
}

static void every_allocation_may_fail(void **state)
{
    make_pair();
    fail_each_allocation(everything, NULL);
}

static void here(char *text, size_t room)
{
    snprintf(text, room, "line 41 of the model");
}

static void a_nan_is_named(void **state)
{
    td_tensor *x = td_full(TD_DIMS(1), td_float(0), (td_tensor_options){ .requires_grad = true });
    td_set_anomaly(TD_ANOMALY_NAN, here);
    td_tensor *y = td_mul_scalar(td_sqrt(td_mul_scalar(x, td_float(1))), td_float(0));
    assert_false(td_backward(y, (td_backward_options)TD_DEFAULTS));
    assert_non_null(strstr(td_error_message(), "SqrtBackward0"));
    assert_string_equal(td_anomaly_where(), "line 41 of the model");
    td_error_clear();
    y = td_mul_scalar(x, td_float(2));
    assert_true(td_backward(y, (td_backward_options)TD_DEFAULTS));
    assert_null(td_anomaly_where());
    td_set_anomaly(TD_ANOMALY_OFF, NULL);
}

static int kept;

static void *keep(void *context, td_tensor *x)
{
    kept++;
    return td_retain(x);
}

static td_tensor *give(void *context, void *packed)
{
    return td_retain(packed);
}

static void drop(void *packed)
{
    kept--;
    td_release(packed);
}

static bool saved_elsewhere(void *unused)
{
    td_tensor *x = td_full(TD_DIMS(3), td_float(2), (td_tensor_options){ .requires_grad = true });
    if (!td_saved_hooks_begin((td_saved_hooks){ keep, give, drop, NULL, NULL }))
        return false;
    td_tensor *y = td_sum(td_mul(td_exp(x), x), (td_reduce_options)TD_DEFAULTS), *g, *h;
    td_saved_hooks_end();
    bool ok = td_grad(&y, 1, &x, 1, &g, (td_grad_options){ .create_graph = true });
    y = ok ? td_sum(g, (td_reduce_options)TD_DEFAULTS) : NULL;
    ok = y != NULL && td_grad(&y, 1, &x, 1, &h, (td_grad_options)TD_DEFAULTS);
    return ok && fabs(((float *)td_data(h))[0] - 4 * exp(2)) < 1e-4;
}

static void saving_hooks_see_every_saved_tensor(void **state)
{
    td_scope_begin();
    assert_true(saved_elsewhere(NULL));
    td_scope_end();
    assert_int_equal(kept, 0);
    td_saved_hooks_end();
    assert_true(td_failed());
    td_error_clear();
    fail_each_allocation(saved_elsewhere, NULL);
    assert_int_equal(kept, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(products_with_vectors),
        CASE(jacobian_and_hessian),
        CASE(independence_gives_zeros),
        CASE(every_allocation_may_fail),
        CASE(a_nan_is_named),
        CASE(saving_hooks_see_every_saved_tensor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
