/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "matmul": edit that, not this file. */
/* needs: random */
/* Billions of operations a second of each rung, as a table. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <time.h>
#include <treadle/treadle.h>
#include "matmul-ladder.h"
typedef void rung(int64_t m, int64_t n, int64_t k, const float *a,
                  const float *b, float *c);
/* matmul: functions that time a rung */
static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double rate(int64_t n, rung *f, td_tensor *x, td_tensor *y,
                   td_tensor *z)
{
    const double work = 2.0 * (double)n * (double)n * (double)n;
    const int rounds = work < 1e7 ? (int)(1e7 / work) : 1;
    double best = 1e9;
    for (double spent = 0; spent < 0.5; ) {
        const double start = seconds();
        for (int r = 0; r < rounds; r++)
            if (f)
                f(n, n, n, td_data(x), td_data(y), td_data(z));
            else
                td_release(td_matmul(x, y));
        const double took = (seconds() - start) / rounds;
        best = took < best ? took : best;
        spent += took * rounds;
    }
    return work / best / 1e9;
}
static void print_line(int64_t n, rung *const *rungs)
{
    static const char *const levels[] = { "v2", "v3", "v4" };
    const td_tensor_options plain = { .dtype = TD_FLOAT32 };
    td_scope_begin();
    td_tensor *x = td_rand(TD_DIMS(n, n), plain);
    td_tensor *y = td_rand(TD_DIMS(n, n), plain);
    td_tensor *z = td_empty(TD_DIMS(n, n), plain);
    printf("%d", (int)n);
    for (int i = 0; i < 4; i++)
        printf(",%.2f", rate(n, rungs[i], x, y, z));
    for (int i = 0; i < 3; i++)
        if (td_set_isa(levels[i]))
            printf(",%.2f", rate(n, NULL, x, y, z));
        else
            printf(",");
    td_error_clear();
    printf("\n");
    td_scope_end();
}
int main(void)
{
    rung *const rungs[] = { rung_0, rung_1, rung_2, rung_3 };
    td_set_threads(1);
    printf("n,rung0,rung1,rung2,rung3,v2,v3,v4\n");
    for (int64_t n = 16; n <= 1024; n *= 2)
        print_line(n, rungs);
    return td_failed();
}
