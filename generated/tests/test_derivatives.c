/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "derivatives": edit that, not this file. */
/* needs: derivatives */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

int dual_numbers_main(void);
#define main dual_numbers_main
#include "../examples/dual_numbers.c"
#undef main

static void forward_and_backward_agree(void **state)
{
    double bar[2];
    (void)state;
    backward(2, 5, bar);
    assert_true(fabs(bar[0] - 5.5) < 1e-15);
    assert_true(fabs(bar[1] - (2 - cos(5))) < 1e-15);
    assert_true(forward((dual){ 2, 1 }, (dual){ 5, 0 }).dot == bar[0]);
    assert_true(forward((dual){ 2, 0 }, (dual){ 5, 1 }).dot == bar[1]);
}

static void quotient_loses_half_the_digits(void **state)
{
    (void)state;
    const double error = fabs(difference(1e-8, 1, 0) - 5.5);
    assert_true(error < 1e-6);
    assert_true(fabs(difference(1e-15, 1, 0) - 5.5) > 1e-3);
    assert_true(fabs(difference(1e-1, 1, 0) - 5.5) > 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_and_backward_agree),
        cmocka_unit_test(quotient_loses_half_the_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
