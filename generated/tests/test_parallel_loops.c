/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "parallel": edit that, not this file. */
/* needs: parallel */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <treadle/treadle.h>

/* parallel: bodies for the parallel tests */
static bool add_up(void *context, int64_t begin, int64_t end, void *sum)
{
    for (int64_t i = begin; i < end; i++)
        *(float *)sum += ((const float *)context)[i];
    return true;
}

static void add(void *context, void *into, const void *from)
{
    (void)context;
    *(float *)into += *(const float *)from;
}
static bool reject_negative(void *context, int64_t begin, int64_t end,
                            int worker)
{
    const float *x = context;
    (void)worker;
    for (int64_t i = begin; i < end; i++)
        if (x[i] < 0)
            return td_fail(TD_ERROR_VALUE, "check",
                           "element %d is negative", (int)i);
    return true;
}

/* parallel: tests of the parallel chapter */
static void sums_have_the_same_bits_on_any_threads(void **state)
{
    (void)state;
    float x[10000], first = 0;
    const float zero = 0;
    for (int i = 0; i < 10000; i++)
        x[i] = 1.0f / (float)(1 + i * 7919 % 10000);
    for (int threads = 1; threads <= 7; threads++) {
        float sum = 0;
        assert_true(td_set_threads(threads));
        assert_true(td_parallel_reduce(10000, 128, sizeof sum, &zero,
                                       add_up, add, x, &sum));
        first = threads == 1 ? sum : first;
        assert_memory_equal(&sum, &first, sizeof sum);
    }
}
static void the_first_failure_is_the_one_reported(void **state)
{
    (void)state;
    float x[1000] = { 0 };
    for (int i = 357; i < 1000; i++)
        x[i] = -1;
    for (int threads = 1; threads <= 7; threads++) {
        assert_true(td_set_threads(threads));
        assert_false(td_parallel_for(1000, 1, reject_negative, x));
        assert_string_equal(td_error_message(),
                            "check: element 357 is negative");
        td_error_clear();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_have_the_same_bits_on_any_threads),
        cmocka_unit_test(the_first_failure_is_the_one_reported),
    };
    return cmocka_run_group_tests_name("loops", tests, NULL, NULL);
}
