/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "loom": edit that, not this file. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <treadle/treadle.h>
#include "bench.h"

/* loom: functions that read clock and order */
static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void bench_cost(bench *b, double operations, double bytes)
{
    b->operations = operations;
    b->bytes = bytes;
}
/* loom: function bench_next_batch */
bool bench_next_batch(bench *b)
{
    const double now = seconds();
    const double took = now - b->began;
    if (b->rounds == 0)
        b->rounds = 1;
    else if (!b->warm && took < 5e-3 && !td_failed())
        b->rounds *= 2;
    else if (!b->warm)
        b->warm = true;
    else
        b->seconds[b->timed++] = took / (double)b->rounds;
    if (b->timed == BATCHES || td_failed())
        return false;
    b->left = b->rounds - 1;
    b->began = seconds();
    return true;
}
/* loom: kernel multiply_add */
#define MULTIPLY_ADD(name, bytes, attribute)                         \
    typedef float name##_vector __attribute__((vector_size(bytes))); \
    attribute static double name(int64_t rounds, volatile float *out) \
    {                                                                \
        name##_vector sum[12] = { 0 }, x = { 0 };                    \
        for (size_t i = 0; i < bytes / 4; i++)                       \
            x[i] = 0.999f;                                           \
        for (int i = 0; i < 12; i++)                                 \
            sum[i] = x * (float)i;     /* or they would be one */    \
        for (int64_t r = 0; r < rounds; r++)                         \
            _Pragma("GCC unroll 12")                                 \
            for (int i = 0; i < 12; i++)                             \
                sum[i] = sum[i] * x + x;                             \
        for (int i = 0; i < 12; i++)                                 \
            *out = sum[i][0];                                        \
        return 2.0 * 12 * (bytes / 4) * (double)rounds;              \
    }
/* loom: kernels for each width of vector */
MULTIPLY_ADD(multiply_add_16, 16, )
#if defined __x86_64__
MULTIPLY_ADD(multiply_add_32, 32, __attribute__((target("avx2,fma"))))
MULTIPLY_ADD(multiply_add_64, 64, __attribute__((target("avx512f"))))
#endif

static double multiply_add(int64_t rounds, volatile float *out)
{
#if defined __x86_64__
    if (__builtin_cpu_supports("avx512f"))
        return multiply_add_64(rounds, out);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return multiply_add_32(rounds, out);
#endif
    return multiply_add_16(rounds, out);
}
/* loom: function bench_peak */
static bool peak_body(void *context, int64_t begin, int64_t end,
                      int worker)
{
    (void)worker;
    volatile float *out = context;
    for (int64_t i = begin; i < end; i++)
        multiply_add(2000000, &out[16 * i]);
    return true;
}

double bench_peak(void)
{
    static float out[16 * 1024];
    double best = 0;
    const int threads = td_threads();
    for (int i = 0; i < 5; i++) {
        const double began = seconds();
        td_parallel_for(threads, 1, peak_body, out);
        const double took = seconds() - began;
        const double work = threads * multiply_add(1, out) * 2e6;
        best = work / took > best ? work / took : best;
    }
    return best;
}
/* loom: function bench_bandwidth */
typedef struct { float *x; int64_t part; int rounds; } walk;

static bool walk_body(void *context, int64_t begin, int64_t end,
                      int worker)
{
    (void)worker;
    const walk *w = context;
    for (int64_t i = begin; i < end; i++) {
        float *restrict out = w->x + 3 * i * w->part;
        const float *a = out + w->part, *b = a + w->part;
        for (int r = 0; r < w->rounds; r++) {
            for (int64_t j = 0; j < w->part; j++)
                out[j] = a[j] + b[j];
            __asm__ volatile("" ::: "memory");
        }
    }
    return true;
}
double bench_bandwidth(double bytes)
{
    const int threads = td_threads();
    const double least = 4096.0 * threads;
    const double total = bytes < least ? least : bytes;
    walk w = { .part = (int64_t)(total / 12 / threads) & ~15 };
    w.rounds = 1 + (int)(16e6 / total);
    const size_t size = (size_t)(12 * w.part * threads);
    w.x = aligned_alloc(64, size);
    if (!w.x)
        return 0;
    memset(w.x, 0, size);
    double best = 0;
    for (int i = 0; i < 5; i++) {
        const double began = seconds();
        td_parallel_for(threads, 1, walk_body, &w);
        const double took = seconds() - began;
        const double rate = (double)size * w.rounds / took;
        best = rate > best ? rate : best;
    }
    free(w.x);
    return best;
}
/* loom: table of cases */
static const struct {
    const char *name;
    void (*run)(bench *b);
} cases[] = {
#define BENCH(name, function) { #name, function },
#include "cases.inc"
#undef BENCH
    { NULL, NULL }
};
/* loom: function report */
static bool report(const char *name, bench *b, double peak)
{
    if (td_failed()) {
        printf("%-28s %7d  %s\n", name, td_threads(),
               td_error_message());
        td_error_clear();
        return false;
    }
    qsort(b->seconds, BATCHES, sizeof b->seconds[0], ascending);
    const double took = b->seconds[BATCHES / 2];
    const double rate = b->bytes > 0 ? bench_bandwidth(b->bytes) : 1;
    const double moving = b->bytes / rate;
    const double computing = b->operations / peak;
    const double floor = moving > computing ? moving : computing;
    printf("%-28s %7d %12.3f %12.2f %11.2f\n", name, td_threads(),
           1e6 * took, 1e6 * floor, floor / took);
    fflush(stdout);
    return true;
}
/* loom: function is_selected */
static bool is_selected(const char *name, int count, char **wanted)
{
    for (int i = 0; i < count; i++)
        if (strncmp(name, wanted[i], strlen(wanted[i])) == 0)
            return true;
    return count == 0;
}
/* loom: function print_ceilings */
static int print_ceilings(int threads, double bytes)
{
    if (!td_set_threads(threads))
        return 1;
    printf("%g %g\n", bench_peak(), bench_bandwidth(bytes));
    return 0;
}

int main(int argc, char **argv)
{
    int bad = 0;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (argc == 4 && strcmp(argv[1], "--ceilings") == 0)
        return print_ceilings(atoi(argv[2]), atof(argv[3]));
    printf("%-28s %7s %12s %12s %11s\n", "case", "threads", "us",
           "floor us", "floor/time");
    for (int threads = 1; threads <= (cores < 2 ? 1 : 2); threads++) {
        /* loom: measure the selected cases on threads */
        if (!td_set_threads(threads))
            return 1;
        const double peak = bench_peak();
        for (int i = 0; cases[i].name; i++) {
            if (!is_selected(cases[i].name, argc - 1, argv + 1))
                continue;
            bench b = { 0 };
            td_scope_begin();
            cases[i].run(&b);
            td_scope_end();
            bad += !report(cases[i].name, &b, peak);
        }
    }
    return bad > 0;
}
