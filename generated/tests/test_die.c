/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "random": edit that, not this file. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <treadle/treadle.h>

/* random: test that a die is fair */
static void a_die_is_fair(void **state)
{
    (void)state;
    td_scope_begin();
    td_manual_seed(6);
    td_tensor *throws = td_randint(1, 7, TD_DIMS(60000),
                               (td_tensor_options)TD_DEFAULTS);
    const int64_t *face = td_data(throws);
    double count[7] = { 0 }, chi = 0;
    for (int i = 0; i < 60000; i++)
        count[face[i]]++;
    for (int k = 1; k <= 6; k++)
        chi += (count[k] - 10000) * (count[k] - 10000) / 10000;
    td_scope_end();
    assert_true(chi < 20.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_die_is_fair) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
