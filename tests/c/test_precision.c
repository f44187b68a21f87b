/* needs: precision */
/* Halves in C: kernels that are given float32 instead, what must not be
   mixed, autocast of a thread, gradients, and memory that fails at every
   place in turn. */
#include "treadle_test.h"
#include <pthread.h>

static td_tensor *halves(td_dtype dtype)
{
    return td_to(td_add_scalar(td_arange(td_int(0), td_int(6), td_int(1), plain), td_float(0.5)), dtype);
}

static void kernels_are_given_float32(void **state)
{
    const td_dtype types[] = { TD_FLOAT16, TD_BFLOAT16 };
    for (int i = 0; i < 2; i++) {
        td_tensor *x = halves(types[i]), *m = td_reshape(x, TD_DIMS(2, 3));
        td_tensor *y = td_matmul(m, td_transpose(m, 0, 1));
        assert_int_equal(td_dtype_of(y), types[i]);
        VALUES(y, 8.75, 22.25, 22.25, 62.75);
        VALUES(td_sum(x, TD_REDUCE_DEFAULTS), 18);
        VALUES(td_mul_scalar(x, td_float(2)), 1, 3, 5, 7, 9, 11);
        assert_int_equal(td_dtype_of(td_eq(x, x)), TD_BOOL);
        assert_int_equal(td_dtype_of(td_add(x, td_to(x, TD_FLOAT32))), TD_FLOAT32);
        td_tensor *row = td_select(m, 0, 1);
        assert_ptr_equal(td_add_(row, row), row);
        VALUES(x, 0.5, 1.5, 2.5, 7, 9, 11);
    }
}

static void what_was_wrong_stays_wrong(void **state)
{
    td_tensor *h = halves(TD_FLOAT16), *f = halves(TD_FLOAT32);
    refused_saying(td_dot(h, f), TD_ERROR_RUNTIME, "dot: operands have types float16 and float32; both must have one");
    refused(td_matmul(h, td_reshape(h, TD_DIMS(2, 3))), TD_ERROR_RUNTIME, "shapes do not match");
    refused(td_sum(td_to(f, TD_INT8), TD_REDUCE_DEFAULTS), TD_ERROR_UNSUPPORTED, "sum: not available for int8");
    assert_false(td_set_autocast(TD_FLOAT32));
    expect_error(TD_ERROR_TYPE, "autocast: expected float16 or bfloat16, got float32");
    assert_int_equal(td_autocast_dtype(), TD_DTYPE_NONE);
}

static void *elsewhere(void *seen)
{
    *(td_dtype *)seen = td_autocast_dtype();
    return NULL;
}

static void autocast_is_of_a_thread(void **state)
{
    td_tensor *m = td_reshape(halves(TD_FLOAT32), TD_DIMS(2, 3)), *t = td_transpose(m, 0, 1);
    td_dtype seen = TD_BOOL;
    pthread_t thread;
    assert_true(td_set_autocast(TD_BFLOAT16));
    td_tensor *low = td_matmul(m, t), *same = td_mul(m, m), *twice = td_matmul(td_to(m, TD_FLOAT64), td_to(t, TD_FLOAT64));
    assert_int_equal(pthread_create(&thread, NULL, elsewhere, &seen), 0);
    pthread_join(thread, NULL);
    refused(td_matmul(m, m), TD_ERROR_RUNTIME, "matmul: shapes do not match");
    assert_int_equal(td_autocast_dtype(), TD_BFLOAT16);
    assert_true(td_set_autocast(TD_DTYPE_NONE));
    assert_int_equal(seen, TD_DTYPE_NONE);
    assert_int_equal(td_dtype_of(low), TD_BFLOAT16);
    assert_int_equal(td_dtype_of(same), TD_FLOAT32);
    assert_int_equal(td_dtype_of(twice), TD_FLOAT64);
    assert_int_equal(td_dtype_of(td_matmul(m, t)), TD_FLOAT32);
}

static void gradients_keep_the_type_of_their_tensor(void **state)
{
    td_tensor *w = td_set_requires_grad(td_reshape(halves(TD_FLOAT32), TD_DIMS(2, 3)), true);
    td_tensor *x = td_ones(TD_DIMS(4, 3), plain);
    td_set_autocast(TD_FLOAT16);
    td_tensor *y = td_linear(x, w, NULL);
    td_set_autocast(TD_DTYPE_NONE);
    assert_int_equal(td_dtype_of(y), TD_FLOAT16);
    assert_true(td_backward(td_sum(y, TD_REDUCE_DEFAULTS), (td_backward_options)TD_DEFAULTS));
    assert_int_equal(td_dtype_of(td_grad_of(w)), TD_FLOAT32);
    VALUES(td_grad_of(w), 4, 4, 4, 4, 4, 4);
}

static bool train(void *context)
{
    td_tensor *w = td_set_requires_grad(td_reshape(halves(TD_FLOAT32), TD_DIMS(2, 3)), true);
    td_tensor *h = halves(TD_BFLOAT16), *x = td_ones(TD_DIMS(4, 3), plain);
    td_set_autocast(TD_BFLOAT16);
    td_tensor *y = td_linear(x, w, NULL);
    td_set_autocast(TD_DTYPE_NONE);
    td_tensor *sum = td_sum(td_softmax(y, 1), TD_REDUCE_DEFAULTS);
    td_cumsum(h, 0);
    td_add_(h, h);
    return y && sum && td_backward(sum, (td_backward_options)TD_DEFAULTS) && !td_failed();
}

static void every_allocation_may_fail(void **state)
{
    assert_true(fail_each_allocation(train, NULL) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(kernels_are_given_float32),
        CASE(what_was_wrong_stays_wrong),
        CASE(autocast_is_of_a_thread),
        CASE(gradients_keep_the_type_of_their_tensor),
        CASE(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
