/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "arithmetic": edit that, not this file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <treadle/treadle.h>

/* arithmetic: helpers of the elementwise lessons */
static int open_scope(void **state)
{
    (void)state;
    td_scope_begin();
    return 0;
}

static int close_scope(void **state)
{
    (void)state;
    td_scope_end();
    return td_failed();
}
#define lesson(test) \
    cmocka_unit_test_setup_teardown(test, open_scope, close_scope)
static td_tensor *ramp(int n)
{
    td_tensor *x = td_arange(td_float(-n), td_float(n), td_float(2),
                             (td_tensor_options){ 0 });
    return td_mul_scalar(x, td_float(0.0713));
}

static td_tensor *piece(td_tensor *x, int64_t start, int64_t n)
{
    return td_slice(x, 0, (td_opt_i64)td_some(start),
                    (td_opt_i64)td_some(start + n), 1);
}

/* arithmetic: test that a value ignores its position */
static void a_value_ignores_its_position(void **state)
{
    td_tensor *x = ramp(97), *whole = td_sigmoid(x);
    for (int64_t start = 0; start < 40; start++) {
        td_tensor *part = td_sigmoid(piece(x, start, 23));
        assert_memory_equal(td_data(part),
                            (float *)td_data(whole) + start,
                            23 * sizeof(float));
    }
    (void)state;
}

/* arithmetic: test that neighbours are read before they change */
static void neighbours_are_read_before_they_change(void **state)
{
    td_tensor *x = td_ones(TD_DIMS(1000), (td_tensor_options){ 0 });
    td_add_(piece(x, 1, 999), piece(x, 0, 999));
    for (int i = 1; i < 1000; i++)
        assert_true(((float *)td_data(x))[i] == 2);
    (void)state;
}

/* arithmetic: test that a matrix plus its transpose is symmetric */
static void a_matrix_plus_its_transpose_is_symmetric(void **state)
{
    td_tensor *a = td_reshape(ramp(49), TD_DIMS(7, 7));
    td_tensor *sum = td_add(a, td_transpose(a, 0, 1));
    const float *s = td_data(sum);
    for (int i = 0; i < 7; i++)
        for (int j = 0; j < 7; j++)
            assert_true(s[7 * i + j] == s[7 * j + i]);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        lesson(a_value_ignores_its_position),
        lesson(neighbours_are_read_before_they_change),
        lesson(a_matrix_plus_its_transpose_is_symmetric),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
