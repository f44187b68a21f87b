/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "parallel": edit that, not this file. */
/* How much faster two threads are than one, by the length of a loop. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <time.h>
#include <treadle/treadle.h>

enum { LONGEST = 1 << 20, WORK = 1 << 21 };

static float x[LONGEST], y[LONGEST];

/* memory: function seconds */
static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* parallel: time a loop by its length */
static bool add(void *unused, int64_t begin, int64_t end, int worker)
{
    (void)unused, (void)worker;
    for (int64_t i = begin; i < end; i++)
        y[i] += x[i];
    return true;
}

static bool raise(void *unused, int64_t begin, int64_t end, int worker)
{
    (void)unused, (void)worker;
    for (int64_t i = begin; i < end; i++)
        y[i] = expf(x[i]);
    return true;
}

static double shortest(td_parallel_body *body, int n, int threads)
{
    double best = 1e9;
    td_set_threads(threads);
    td_parallel_for(n, 1, body, NULL);
    for (int run = 0; run < 5 + WORK / n / 8; run++) {
        const double begin = seconds();
        td_parallel_for(n, 1, body, NULL);
        const double time = seconds() - begin;
        best = time < best ? time : best;
    }
    return best;
}

static double faster(td_parallel_body *body, int n)
{
    return shortest(body, n, 1) / shortest(body, n, 2);
}

int main(void)
{
    for (int i = 0; i < LONGEST; i++)
        x[i] = (float)(i % 100) / 50;
    puts("elements,addition,exponential");
    for (int n = 128; n <= LONGEST; n *= 2)
        printf("%d,%.3f,%.3f\n", n, faster(add, n), faster(raise, n));
    return td_failed();
}
