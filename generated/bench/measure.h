/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "measuring": edit that, not this file. */
/* How long something takes, and how fast this machine can be.  Who
   includes it defines _POSIX_C_SOURCE before, for the clock.

       static double run(void *of) { ... return what_was_computed; }

       const stopwatch w = { wall_seconds, 1e-3, 1e-5, 11 };
       contender old = { .run = run, .of = a }, new = { ... };
       printf("%.2f times as fast\n", times_as_fast(&w, &old, &new)); */
#pragma once
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <treadle/treadle.h>

enum { MOST_PAIRS = 100 };

/* measuring: function wall_seconds */
static inline double wall_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
/* measuring: function median */
static inline int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of n > 0 numbers, which are sorted. */
static inline double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, ascending);
    return (x[(n - 1) / 2] + x[n / 2]) / 2;
}
/* measuring: struct contender */
typedef struct {
    double (*run)(void *of);    /* one round, and what it computed */
    void *of;
    int64_t rounds;             /* of a batch; find_rounds sets it */
    volatile double result;     /* each round's, so none is left out */
} contender;
/* measuring: struct stopwatch */
typedef struct {
    double (*now)(void);        /* the clock, in seconds */
    double least;               /* seconds that a batch lasts */
    double tolerance;           /* of results that are the same */
    int pairs;                  /* at most MOST_PAIRS */
} stopwatch;
/* measuring: function time_batch */
/* Seconds of one round. */
static inline double time_batch(const stopwatch *w, contender *c)
{
    const double began = w->now();
    for (int64_t i = 0; i < c->rounds; i++)
        c->result = c->run(c->of);
    return (w->now() - began) / (double)c->rounds;
}
/* measuring: function find_rounds */
static inline void find_rounds(const stopwatch *w, contender *c)
{
    c->rounds = 1;
    while (time_batch(w, c) * (double)c->rounds < w->least)
        c->rounds *= 2;
}
/* measuring: function time_one */
/* Seconds of one round, the median of so many batches. */
static inline double time_one(const stopwatch *w, contender *c)
{
    double took[MOST_PAIRS];
    find_rounds(w, c);
    for (int i = 0; i < w->pairs; i++)
        took[i] = time_batch(w, c);
    return median(took, w->pairs);
}
/* measuring: function times_as_fast */
static inline double times_as_fast(const stopwatch *w,
                                   contender *old, contender *new)
{
    double ratio[MOST_PAIRS];
    /* in-turn: exercise in-turn */
    const double a = old->run(old->of), b = new->run(new->of);
    if (!(fabs(a - b) <= w->tolerance * fabs(a)))
        return NAN;
    find_rounds(w, old);
    find_rounds(w, new);
    for (int i = 0; i < w->pairs; i++) {
        contender *first = i % 2 ? new : old;
        contender *second = i % 2 ? old : new;
        const double t = time_batch(w, first), u = time_batch(w, second);
        ratio[i] = i % 2 ? u / t : t / u;
    }
    return median(ratio, w->pairs);
}
/* measuring: kernel multiply_add */
#define MULTIPLY_ADD(name, bytes, chains, attribute)              \
    typedef float name##_vector                                   \
        __attribute__((vector_size(bytes)));                      \
    attribute static inline double name(int64_t rounds,           \
                                        volatile float *out)      \
    {                                                             \
        name##_vector sum[chains] = { 0 }, x = { 0 };             \
        for (size_t i = 0; i < bytes / 4; i++)                    \
            x[i] = 0.999f;                                        \
        for (int i = 0; i < chains; i++)                          \
            sum[i] = x * (float)i;                                \
        for (int64_t r = 0; r < rounds; r++)                      \
            _Pragma("GCC unroll 16")                              \
            for (int i = 0; i < chains; i++)                      \
                sum[i] = sum[i] * x + x;                          \
        for (int i = 0; i < chains; i++)                          \
            *out = sum[i][0];                                     \
        return 2.0 * chains * (bytes / 4) * (double)rounds;       \
    }
/* measuring: kernel add_rows */
#define ADD_ROWS(name, bytes, attribute)                          \
    typedef float name##_vector                                   \
        __attribute__((vector_size(bytes), may_alias));           \
    attribute static inline void name(int64_t n, void *out,       \
                                      const void *x,              \
                                      const void *y)              \
    {                                                             \
        name##_vector *sum = out;                                 \
        const name##_vector *a = x, *b = y;                       \
        for (int64_t i = 0; i < n * 4 / bytes; i++)               \
            sum[i] = a[i] + b[i];                                 \
        __asm__ volatile("" ::: "memory");                        \
    }
/* measuring: kernels for each width of vector */
MULTIPLY_ADD(multiply_add_16, 16, 12, )
#if defined __x86_64__
MULTIPLY_ADD(multiply_add_32, 32, 12,
             __attribute__((target("avx2,fma"))))
MULTIPLY_ADD(multiply_add_64, 64, 12,
             __attribute__((target("avx512f"))))
#endif

static inline double multiply_add(int64_t rounds, volatile float *out)
{
#if defined __x86_64__
    if (__builtin_cpu_supports("avx512f"))
        return multiply_add_64(rounds, out);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return multiply_add_32(rounds, out);
#endif
    return multiply_add_16(rounds, out);
}

ADD_ROWS(add_rows_16, 16, )
#if defined __x86_64__
ADD_ROWS(add_rows_32, 32, __attribute__((target("avx2"))))
ADD_ROWS(add_rows_64, 64, __attribute__((target("avx512f"))))
#endif

static inline void add_rows(int64_t n, void *out, const void *x,
                            const void *y)
{
#if defined __x86_64__
    if (__builtin_cpu_supports("avx512f")) {
        add_rows_64(n, out, x, y);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        add_rows_32(n, out, x, y);
        return;
    }
#endif
    add_rows_16(n, out, x, y);
}
/* measuring: function peak_body */
static inline bool peak_body(void *context, int64_t begin,
                             int64_t end, int worker)
{
    (void)worker;
    volatile float *out = context;
    for (int64_t i = begin; i < end; i++)
        multiply_add(2000000, &out[16 * i]);
    return true;
}
/* measuring: function bench_peak */
/* Operations a second of all threads. */
static inline double bench_peak(void)
{
    static float out[16 * 1024];
    double best = 0;
    const int threads = td_threads();
    for (int i = 0; i < 5; i++) {
        const double began = wall_seconds();
        td_parallel_for(threads, 1, peak_body, out);
        const double took = wall_seconds() - began;
        const double work = threads * multiply_add(1, out) * 2e6;
        best = fmax(best, work / took);
    }
    return best;
}
/* measuring: function bench_bandwidth */
typedef struct { float *x; int64_t part; int rounds; } path;

static inline bool path_body(void *context, int64_t begin,
                             int64_t end, int worker)
{
    (void)worker;
    const path *w = context;
    for (int64_t i = begin; i < end; i++) {
        float *out = w->x + 3 * i * w->part, *a = out + w->part;
        for (int r = 0; r < w->rounds; r++)
            add_rows(w->part, out, a, a + w->part);
    }
    return true;
}

/* Bytes a second of all threads, in so many bytes. */
static inline double bench_bandwidth(double bytes)
{
    const int threads = td_threads();
    const double least = 4096.0 * threads;
    const double total = bytes < least ? least : bytes;
    path w = { .part = (int64_t)(total / 12 / threads) & ~15 };
    w.rounds = 1 + (int)(16e6 / total);
    const size_t size = (size_t)(12 * w.part * threads);
    w.x = aligned_alloc(64, size);
    if (!w.x)
        return 0;
    memset(w.x, 0, size);
    double best = 0;
    for (int i = 0; i < 5; i++) {
        const double began = wall_seconds();
        td_parallel_for(threads, 1, path_body, &w);
        const double took = wall_seconds() - began;
        best = fmax(best, (double)size * w.rounds / took);
    }
    free(w.x);
    return best;
}
