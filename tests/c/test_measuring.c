/* needs: measuring */
/* The stopwatch, by a clock that only the rounds move: nothing here depends on how long anything takes. */
#define _POSIX_C_SOURCE 200809L
#include "treadle_test.h"
#include "../bench/measure.h"

static char events[200];
static double now;

static double fake_clock(void)
{
    strcat(events, "t");
    return now;
}

typedef struct {
    const char *letter;
    double takes, result;
} actor;

static double act(void *of)
{
    const actor *a = of;
    strcat(events, a->letter);
    now += a->takes;
    return a->result;
}

static double compared(actor old, actor new, stopwatch w)
{
    contender a = { .run = act, .of = &old }, b = { .run = act, .of = &new };
    events[0] = 0;
    w.now = fake_clock;
    return times_as_fast(&w, &a, &b);
}

static void test_the_median_of_odd_and_even_numbers(void **state)
{
    (void)state;
    double one[] = { 7 }, two[] = { 9, 4 }, five[] = { 5, -1, 100, 3, 4 };
    double six[] = { 8, 1, 1e9, 6, 7, 2 }, same[] = { 2, 2, 2, 2 };
    assert_true(median(one, 1) == 7 && median(two, 2) == 6.5);
    assert_true(median(five, 5) == 4 && median(six, 6) == 6.5);
    assert_true(median(same, 4) == 2);
}

static void test_rounds_double_until_a_batch_lasts(void **state)
{
    (void)state;
    actor a = { "x", 0.25, 3 };
    contender c = { .run = act, .of = &a };
    const stopwatch w = { .now = fake_clock, .least = 1, .pairs = 3 };
    events[0] = 0;
    assert_true(time_one(&w, &c) == 0.25);
    assert_string_equal(events, "txt" "txxt" "txxxxt" "txxxxt" "txxxxt" "txxxxt");
    assert_true(c.rounds == 4 && c.result == 3);
}

static void test_old_and_new_take_turns(void **state)
{
    (void)state;
    const stopwatch w = { .least = 1, .pairs = 3 };
    const double ratio = compared((actor){ "o", 1, 5 }, (actor){ "n", 0.5, 5 }, w);
    assert_true(ratio == 2);
    assert_string_equal(events, "on" "tot" "tnt" "tnnt" "tot" "tnnt" "tnnt" "tot" "tot" "tnnt");
}

static void test_what_differs_is_not_timed(void **state)
{
    (void)state;
    const struct { double old, new; bool same; } pairs[] = {
        { 5, 5, true }, { 5, 5.01, false }, { 1000, 1000.5, true }, { -1000, -1000.5, true },
        { 0.001, 0.0015, false }, { 5, NAN, false }, { NAN, 5, false }, { NAN, NAN, false },
        { 5, INFINITY, false }, { 0, 0, true },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const stopwatch w = { .least = 1, .pairs = 2, .tolerance = 1e-3 };
        const double ratio = compared((actor){ "o", 3, pairs[i].old }, (actor){ "n", 1, pairs[i].new }, w);
        assert_true(pairs[i].same ? ratio == 3 : isnan(ratio));
        assert_true(pairs[i].same || strcmp(events, "on") == 0);
    }
}

/* Operations are counted, chains differ, and every thread's part is added up. */
static void test_the_limits_do_what_they_count(void **state)
{
    (void)state;
    volatile float out = 0;
    assert_true(multiply_add_16(10, &out) == 2.0 * 12 * 4 * 10);
    float x = 11 * 0.999f;
    for (int i = 0; i < 10; i++)
        x = x * 0.999f + 0.999f;
    assert_true(fabsf(out - x) < 1e-4f);
    _Alignas(64) float rows[3][48];
    for (int i = 0; i < 48; i++)
        rows[0][i] = -1, rows[1][i] = (float)i, rows[2][i] = 2;
    add_rows(32, rows[0], rows[1], rows[2]);
    for (int i = 0; i < 48; i++)
        assert_true(rows[0][i] == (i < 32 ? (float)i + 2 : -1));
    assert_true(bench_peak() > 0 && bench_bandwidth(1) > 0 && bench_bandwidth(1e6) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_the_median_of_odd_and_even_numbers), CASE(test_rounds_double_until_a_batch_lasts),
        CASE(test_old_and_new_take_turns), CASE(test_what_differs_is_not_timed),
        CASE(test_the_limits_do_what_they_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
