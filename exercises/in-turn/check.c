/* Who was called when, by a clock that only the rounds move: no time is measured here. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include "../bench/measure.h"

double times_between(const stopwatch *w, contender *old, contender *new);

/* What happens, a letter each: t the clock is read, O and N a round of the old and the new one. */
enum { LONGEST = 4000 };
static char events[LONGEST + 1];
static int happened;
static double now;

static void note(char what)
{
    if (happened < LONGEST)
        events[happened++] = what;
    events[happened] = 0;
}

static double fake_clock(void)
{
    note('t');
    return now;
}

/* Takes `takes` but for the batches of pairs, which take each its own. */
typedef struct {
    char letter;
    double result, takes;
    const double *later;            /* after `before` rounds, if not NULL */
    int before, rounds;
} actor;

static double act(void *of)
{
    actor *a = of;
    note(a->letter);
    now += a->later && a->rounds >= a->before ? a->later[a->rounds - a->before] : a->takes;
    a->rounds++;
    return a->result;
}

/* What the frame asks for, of rounds that always take the same. */
static void put(char *to, char c, int n)
{
    for (size_t at = strlen(to); n > 0; n--)
        to[at++] = c, to[at] = 0;
}

static void put_batch(char *to, char c, int rounds)
{
    put(to, 't', 1), put(to, c, rounds), put(to, 't', 1);
}

static int put_settling(char *to, char c, double takes, double least)
{
    int rounds = 1;
    put_batch(to, c, 1);
    while (takes * rounds < least)
        put_batch(to, c, rounds *= 2);
    return rounds;
}

static void by_the_frame(char *to, double old, double new, const stopwatch *w)
{
    strcpy(to, "ON");
    const int rounds_old = put_settling(to, 'O', old, w->least), rounds_new = put_settling(to, 'N', new, w->least);
    for (int i = 0; i < w->pairs; i++) {
        put_batch(to, i % 2 ? 'N' : 'O', i % 2 ? rounds_new : rounds_old);
        put_batch(to, i % 2 ? 'O' : 'N', i % 2 ? rounds_old : rounds_new);
    }
}

static double run(stopwatch w, actor old, actor new)
{
    happened = 0, now = 1000, events[0] = 0;
    w.now = fake_clock;
    contender a = { .run = act, .of = &old }, b = { .run = act, .of = &new };
    return times_between(&w, &a, &b);
}

static void check_ratio(double got, double expected)
{
    check_numbers(&got, &expected, 1, 1e-9);
}

static void check_order(const char *what, double old, double new, double least, int pairs)
{
    static char expected[LONGEST + 1];
    const stopwatch w = { .least = least, .pairs = pairs };
    by_the_frame(expected, old, new, &w);
    check_case(what, "both once; both settle; then pairs, old first in the first of them, new first in the next");
    const double got = run(w, (actor){ 'O', 7, old, NULL, 0, 0 }, (actor){ 'N', 7, new, NULL, 0, 0 });
    if (strcmp(events, expected) != 0) {
        int at = 0;
        while (events[at] == expected[at])
            at++;
        check_wrong("  what happened differs at event %d\n  expected  ...%.60s\n  got       ...%.60s", at,
                    expected + (at < 10 ? 0 : at - 10), events + (at < 10 ? 0 : at - 10));
    }
    check_ratio(got, old / new);
}

static void check_results(const char *what, double old, double new, double tolerance, bool same)
{
    const stopwatch w = { .least = 1, .pairs = 3, .tolerance = tolerance };
    check_case(what, "the same is |a - b| <= tolerance * |a|, which NaN never is");
    const double got = run(w, (actor){ 'O', old, 6, NULL, 0, 0 }, (actor){ 'N', new, 3, NULL, 0, 0 });
    if (!same && !isnan(got))
        check_wrong("  results   %g and %g\n  expected  NaN\n  got       %g", old, new, got);
    if (!same && strcmp(events, "ON") != 0)
        check_wrong("  expected  nothing but one round of each\n  got       %.60s", events);
    if (same)
        check_ratio(got, 2);
}

/* Batches of one round, so that the third round of each belongs to the first pair. */
static void check_median(const char *what, int pairs, const double *old, const double *new, double expected)
{
    const stopwatch w = { .least = 1, .pairs = pairs };
    check_case(what, "the median of old / new over the pairs");
    check_ratio(run(w, (actor){ 'O', 7, 5, old, 2, 0 }, (actor){ 'N', 7, 5, new, 2, 0 }), expected);
}

int main(void)
{
    check_order("two that are alike, one pair", 2, 2, 1, 1);
    check_results("the results differ", 7, 8, 0, false);
    check_results("the new one returns NaN", 7, NAN, 1e-3, false);
    check_results("the old one returns NaN", NAN, 7, 1e-3, false);
    check_results("both return NaN", NAN, NAN, 1e-3, false);
    check_results("infinity beside a number", 7, INFINITY, 1e-3, false);
    check_results("large numbers that differ by little", 1000, 1000.5, 1e-3, true);
    check_results("negative ones", -1000, -1000.5, 1e-3, true);
    check_results("small numbers that differ by much", 0.001, 0.0015, 1e-3, false);
    check_results("the new one is a bit less", 1000, 999.5, 1e-3, true);
    check_results("the new one is much less", 1000, 990, 1e-3, false);
    check_results("the difference is the tolerance", 1024, 1025, 1.0 / 1024, true);
    check_results("the new one is zero", 5, 0, 1e-3, false);
    check_order("new is late in every pair", 2, 2, 1, 2);
    check_order("three pairs", 4, 2, 1, 3);
    check_order("batches of eight rounds and of two", 0.25, 1, 2, 4);
    check_order("as many pairs as there is room for", 1, 3, 1, MOST_PAIRS);

    check_median("one pair was disturbed", 3, (double[]){ 4, 8, 6 }, (double[]){ 2, 2, 6 }, 2);
    check_median("four pairs have two in the middle", 4, (double[]){ 2, 4, 6, 20 }, (double[]){ 2, 2, 2, 2 }, 2.5);
    check_median("the machine becomes ten times as slow", 5, (double[]){ 3, 3, 30, 30, 30 },
                 (double[]){ 1, 1, 10, 10, 10 }, 3);
    check_median("the old one was timed while it was slow", 5, (double[]){ 1, 6, 9, 16, 25 },
                 (double[]){ 5, 2, 3, 4, 1 }, 3);
    check_median("pairs in falling order", 6, (double[]){ 60, 50, 40, 30, 20, 10 }, (double[]){ 1, 1, 1, 1, 1, 1 }, 35);
    return check_end();
}
