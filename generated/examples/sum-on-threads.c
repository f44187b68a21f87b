/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "parallel": edit that, not this file. */
/* A sum on many threads: made by hand, or brought by the pool. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <treadle/treadle.h>

enum { MOST = 8, MANY = 4000000 };

/* parallel: a part of a sum */
typedef struct {
    const float *x;
    int64_t begin, end;
    float sum;
} part;

static void *add_part(void *p)
{
    part *mine = p;
    for (int64_t i = mine->begin; i < mine->end; i++)
        mine->sum += mine->x[i];
    return NULL;
}

/* parallel: function sum_by_hand */
static float sum_by_hand(const float *x, int64_t n, int threads)
{
    pthread_t thread[MOST];
    part parts[MOST];
    float sum = 0;
    for (int t = 0; t < threads; t++) {
        parts[t] = (part){ x, n * t / threads,
                           n * (t + 1) / threads, 0 };
        pthread_create(&thread[t], NULL, add_part, &parts[t]);
    }
    for (int t = 0; t < threads; t++) {
        pthread_join(thread[t], NULL);
        sum += parts[t].sum;
    }
    return sum;
}

/* parallel: function sum_together */
/* parallel: add up a part, add two sums */
static bool map(void *x, int64_t begin, int64_t end, void *sum)
{
    for (int64_t i = begin; i < end; i++)
        *(float *)sum += ((float *)x)[i];
    return true;
}

static void combine(void *x, void *into, const void *from)
{
    (void)x;
    *(float *)into += *(const float *)from;
}

static float sum_together(float *x, int64_t n)
{
    const float zero = 0;
    float sum = 0;
    td_parallel_reduce(n, 4096, sizeof sum, &zero, map, combine, x,
                       &sum);
    return sum;
}

/* memory: function seconds */
static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* parallel: time a sum and print it */
static void report(float *x, int64_t n, int threads, bool pool)
{
    double best = 1e9;
    float sum = 0;
    for (int run = 0; run < 20; run++) {
        part whole = { x, 0, n, 0 };
        if (pool)
            td_set_threads(threads);
        const double begin = seconds();
        if (!pool && threads == 1) {
            add_part(&whole);
            sum = whole.sum;
        } else
            sum = pool ? sum_together(x, n)
                       : sum_by_hand(x, n, threads);
        const double time = seconds() - begin;
        best = time < best ? time : best;
    }
    printf("%7d %8d  %8.5f %13.1f\n", (int)n, threads, (double)sum,
           1e6 * best);
}

int main(int argc, char **argv)
{
    const bool pool = argc > 1 && strcmp(argv[1], "pool") == 0;
    float *x = malloc(MANY * sizeof *x);
    for (int i = 0; x != NULL && i < MANY; i++)
        x[i] = 1 / (float)(i + 1);
    printf("numbers  threads       sum  microseconds\n");
    for (int64_t n = 1000; x != NULL && n <= MANY; n *= MANY / 1000)
        for (int threads = 1; threads <= MOST; threads *= 2)
            report(x, n, threads, pool);
    free(x);
    return td_failed();
}
