/* needs: linalg */
/* Dense linear algebra in C: what each function returns, its gradient
   through all operators that samples know of, its refusals, traces of
   memory that fails at every place in turn. */
#include "treadle_test.h"

static td_tensor *matrix(int64_t batch, int64_t m, int64_t n)
{
    td_tensor *x = td_zeros(TD_DIMS(batch, m, n), wide);
    for (int64_t i = 0; i < batch * m * n; i++)
        ((double *)td_data(x))[i] = (double)(draw() % 1000) / 500 - 1;
    return x;
}

static td_tensor *turned(td_tensor *x) { return td_transpose(x, -2, -1); }

static void same(td_tensor *a, td_tensor *b)
{
    assert_non_null(a);
    assert_non_null(b);
    assert_true(td_item_double(td_amax(td_abs(td_sub(a, b)), TD_REDUCE_DEFAULTS)) < 1e-10);
}

static void each_function_does_what_it_says(void **state)
{
    td_tensor *a = matrix(2, 4, 4), *b = matrix(2, 4, 3), *eye = td_eye(4, (td_opt_i64){ 0 }, wide);
    td_tensor *second, *s, *vh, *symmetric = td_add(td_matmul(a, turned(a)), eye);
    same(td_matmul(a, td_inv(a)), td_add(eye, td_mul_scalar(a, td_float(0))));
    same(td_matmul(a, td_solve(a, b)), b);
    td_tensor *sign = td_slogdet(a, &second);
    same(td_mul(sign, td_exp(second)), td_det(a));
    td_tensor *l = td_cholesky(symmetric);
    same(td_matmul(l, turned(l)), symmetric);
    td_tensor *q = td_qr(b, &second);
    same(td_matmul(q, second), b);
    td_tensor *w = td_eigh(symmetric, &second);
    same(td_matmul(td_mul(second, td_unsqueeze(w, -2)), turned(second)), symmetric);
    td_tensor *u = td_svd(b, &s, &vh);
    same(td_matmul(td_mul(u, td_unsqueeze(s, -2)), vh), b);
    same(td_matmul(td_pinv(b, 1e-12), b), td_add(td_eye(3, (td_opt_i64){ 0 }, wide),
                                                  td_zeros(TD_DIMS(2, 3, 3), wide)));
    td_tensor *x = td_lstsq(b, a, 1e-12);           /* the error stands on b */
    td_tensor *left = td_matmul(turned(b), td_sub(td_matmul(b, x), a));
    same(left, td_mul_scalar(left, td_float(0)));
    assert_false(td_failed());
}

static td_tensor *all_of_them(void *context, td_tensor *const *in)
{
    td_tensor *r, *vh, *s, *a = in[0];
    td_tensor *symmetric = td_add(td_matmul(a, turned(a)), td_eye(3, (td_opt_i64){ 0 }, wide));
    td_tensor *sum = td_add(td_inv(a), td_solve(a, td_cholesky(symmetric)));
    sum = td_mul(sum, td_unsqueeze(td_unsqueeze(td_det(a), -1), -1));
    td_tensor *u = td_svd(a, &s, &vh);
    sum = td_add(sum, td_mul(td_square(u), td_unsqueeze(s, -1)));
    td_tensor *q = td_qr(a, &r);
    sum = td_add(td_add(sum, td_matmul(r, q)), td_pinv(a, 1e-12));
    td_tensor *w = td_eigh(symmetric, &r);
    td_tensor *sign = td_slogdet(a, &s);
    return td_add(td_add(sum, td_mul(td_square(r), td_unsqueeze(w, -1))),
                  td_mul(td_unsqueeze(td_unsqueeze(s, -1), -1), td_unsqueeze(td_unsqueeze(sign, -1), -1)));
}

static void gradients_are_right_twice(void **state)
{
    td_tensor *x = td_set_requires_grad(td_add(matrix(2, 3, 3), td_eye(3, (td_opt_i64){ 0 }, wide)), true);
    const td_gradcheck_options o = TD_DEFAULTS;
    assert_true(td_gradcheck(all_of_them, NULL, 1, &x, o));
    assert_true(td_gradgradcheck(all_of_them, NULL, 1, &x, o));
}

static void what_has_no_answer_is_refused(void **state)
{
    td_tensor *one = td_ones(TD_DIMS(2, 2, 2), plain), *bad = td_full(TD_DIMS(3, 3), td_float(INFINITY), plain);
    td_tensor *second, *third;
    refused(td_inv(one), TD_ERROR_SINGULAR, "(Batch element 0): The diagonal element 2 is zero");
    refused(td_solve(one, one), TD_ERROR_SINGULAR, "The solver failed");
    refused(td_cholesky(td_neg(one)), TD_ERROR_SINGULAR, "leading minor of order 1");
    refused(td_svd(bad, &second, &third), TD_ERROR_SINGULAR, "non-finite");
    refused(td_eigh(bad, &second), TD_ERROR_SINGULAR, "non-finite");
    refused(td_inv(td_ones(TD_DIMS(3, 2), plain)), TD_ERROR_RUNTIME, "square");
    refused(td_det(td_ones(TD_DIMS(3), plain)), TD_ERROR_RUNTIME, "at least 2 dimensions");
    refused(td_qr(td_full(TD_RANK_0, td_float(1), plain), &second), TD_ERROR_RUNTIME, "at least 2 dimensions");
    refused(td_solve(one, td_ones(TD_DIMS(3, 1), plain)), TD_ERROR_RUNTIME, "Incompatible");
    refused(td_inv(NULL), TD_ERROR_VALUE, "");
}

static bool a_step(void *context)
{
    td_tensor *x = td_set_requires_grad(td_from_data((double[]){ 4, 1, 0, 1, 3, 1, 0, 1, 2 }, TD_DIMS(1, 3, 3), wide), true);
    td_tensor *y = all_of_them(NULL, &x);
    return y && td_backward(td_sum(y, TD_REDUCE_DEFAULTS), (td_backward_options)TD_DEFAULTS);
}

static void every_allocation_may_fail(void **state)
{
    assert_true(fail_each_allocation(a_step, NULL) > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(each_function_does_what_it_says),
        CASE(gradients_are_right_twice),
        CASE(what_has_no_answer_is_refused),
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, begin_bare, end_bare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
