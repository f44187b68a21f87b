/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "derivatives": edit that, not this file. */
/* needs: derivatives */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

int derivatives_main(int, char **);
#define main derivatives_main
#include "../examples/derivatives.c"
#undef main

/* derivatives: tests of the three ways */
static void forward_and_backward_agree(void **state)
{
    double v[STEPS] = { 2, 5 }, bar[STEPS];
    double by_x0[STEPS] = { 1, 0 }, by_x1[STEPS] = { 0, 1 };
    (void)state;
    run(STEPS, formula, v);
    backward(STEPS, formula, v, bar);
    assert_true(fabs(bar[0] - 5.5) < 1e-15);
    assert_true(fabs(bar[1] - (2 - cos(5))) < 1e-15);
    assert_true(forward(STEPS, formula, v, by_x0) == bar[0]);
    assert_true(forward(STEPS, formula, v, by_x1) == bar[1]);
}

static void quotient_loses_half_the_digits(void **state)
{
    static const double widths[] = { 1e-8, 1e-15, 1e-1 };
    (void)state;
    for (int i = 0; i < 3; i++) {
        double v[STEPS] = { 2, 5 };
        const double error = fabs(difference(STEPS, formula, v, 0,
                                             widths[i]) - 5.5);
        assert_true(i == 0 ? error < 1e-6 : error > 1e-3);
    }
}
/* derivatives: tests of the walk back */
static void a_step_used_twice_adds_up(void **state)
{
    const step square[] = { { INPUT, 0, 0 }, { MULTIPLY, 0, 0 } };
    double v[2] = { 3 }, bar[2];
    (void)state;
    run(2, square, v);
    backward(2, square, v, bar);
    assert_true(bar[0] == 6);
}

static void what_does_not_matter_is_silent(void **state)
{
    const step list[] = { { INPUT, 0, 0 }, { LOG, 0, 0 },
                          { ADD, 0, 0 } };
    double v[3] = { 0 }, bar[3];
    (void)state;
    run(3, list, v);
    backward(3, list, v, bar);
    assert_true(bar[0] == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_and_backward_agree),
        cmocka_unit_test(quotient_loses_half_the_digits),
        cmocka_unit_test(a_step_used_twice_adds_up),
        cmocka_unit_test(what_does_not_matter_is_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
