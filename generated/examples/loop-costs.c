/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "parallel": edit that, not this file. */
/* What a parallel loop costs, and what it brings. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <time.h>
#include <treadle/treadle.h>

/* parallel: bodies whose cost we measure */
static volatile double sink;    /* volatile: the sums must be made */

static bool work(void *context, int64_t begin, int64_t end, int worker)
{
    double sum = worker;
    for (int64_t i = begin; i < end; i++)
        for (int k = 0; k < *(int *)context; k++)
            sum += (double)(i ^ k);
    sink = sum;
    return true;
}
static double microseconds(int rounds, int length)
{
    struct timespec a, b;
    double best = 1e30;
    for (int run = 0; run < 7; run++) {
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (int i = 0; i < rounds; i++)
            td_parallel_for(64, 1, work, &length);
        clock_gettime(CLOCK_MONOTONIC, &b);
        const double time = 1e6 * (double)(b.tv_sec - a.tv_sec)
            + 1e-3 * (double)(b.tv_nsec - a.tv_nsec);
        best = time / rounds < best ? time / rounds : best;
    }
    return best;
}

int main(void)
{
    const char *names[] = { "pool", "openmp", "serial" };
    const int most = td_threads();
    double alone = 0;
    printf("executor  threads   empty loop   faster with work\n");
    for (int e = TD_EXECUTOR_SERIAL; e >= TD_EXECUTOR_POOL; e--)
        for (int t = e == TD_EXECUTOR_SERIAL ? most : 2; t <= most;
             t *= 2) {
            td_error_clear();
            if (!td_set_executor((td_executor)e) || !td_set_threads(t))
                continue;
            const double empty = microseconds(2000, 0);
            const double busy = microseconds(20, 20000);
            alone = e == TD_EXECUTOR_SERIAL ? busy : alone;
            printf("%-8s %8d %9.2f us %11.2f times\n", names[e],
                   e == TD_EXECUTOR_SERIAL ? 1 : t, empty,
                   alone / busy);
        }
    return 0;
}
