/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "sgemm": edit that, not this file. */
/* needs: sgemm */
/* Where the time of a product goes, and what it counts.

   sgemm heights      share of the peak by the tile's height
   sgemm bill         share of useful work, packing, the rest
   sgemm time M N K   seconds of the best of many products; with
                      one more word, A is transposed
   sgemm lines        lines from L2 and beyond, by depth
   sgemm deal         rows computed, by how they are cut
   sgemm peak         operations a second of the adder alone   */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <treadle/treadle.h>
#include "ops/kernels/gemm-kernels.h"
enum { LARGEST = 2048 };
static _Alignas(64) float a[LARGEST * LARGEST], b[LARGEST * LARGEST];
static _Alignas(64) float c[LARGEST * LARGEST];
/* sgemm: functions that keep the best time */
#define LEVELS(X) X(v1) X(v2) X(v3) X(v4) X(neon) X(base)
#define DECLARE(level) \
    extern const td_gemm_level td_gemm_level_##level \
        __attribute__((weak));
LEVELS(DECLARE)

static const td_gemm_kernel *kernel(void)
{
#define IS(level) \
    if (strcmp(td_isa(), #level) == 0) \
        return td_gemm_level_##level.of[0];
    LEVELS(IS)
    return NULL;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double best_of(void (*f)(const void *), const void *context)
{
    double best = 1e9, spent = 0;
    for (int rounds = 1, turns = 0; spent < 0.5 || turns < 20; ) {
        const double start = seconds();
        for (int r = 0; r < rounds; r++)
            f(context);
        const double took = seconds() - start;
        spent += took;
        if (took < 3e-4)
            rounds *= 2;
        else if (++turns > 0)
            best = took / rounds < best ? took / rounds : best;
    }
    return best;
}
/* sgemm: function peak_rate */
enum { TURNS = 20000, SUMS = 12 };
#if defined __x86_64__
#define ADD_UP(name, level, bytes)                                    \
    __attribute__((target(level))) static void name(const void *to)   \
    {                                                                 \
        typedef float wide __attribute__((vector_size(bytes)));       \
        wide sum[SUMS] = { { 0 } }, x = { 0 }, y = { 0 };             \
        _Pragma("GCC unroll 12")                                      \
        for (int s = 0; s < SUMS; s++)                                \
            __asm__ volatile("" : "+v"(sum[s]));                      \
        for (int t = 0; t < TURNS; t++) {                             \
            _Pragma("GCC unroll 12")                                  \
            for (int s = 0; s < SUMS; s++)                            \
                sum[s] = sum[s] * x + y;                              \
            __asm__ volatile("" : "+v"(x), "+v"(y));                  \
        }                                                             \
        _Pragma("GCC unroll 12")                                      \
        for (int s = 0; s < SUMS; s++)                                \
            memcpy((char *)(uintptr_t)to + bytes * s, &sum[s], bytes); \
    }
ADD_UP(add_sixteen, "avx512f", 64)
ADD_UP(add_eight, "avx2,fma", 32)
#endif

static double peak_rate(void)
{
#if defined __x86_64__
    const double adds = 2.0 * TURNS * SUMS;
    if (__builtin_cpu_supports("avx512f"))
        return adds * 16 / best_of(add_sixteen, c);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return adds * 8 / best_of(add_eight, c);
#endif
    return 1;
}
/* sgemm: functions that measure tiles */
static void run_tile(const void *tile)
{
    kernel()->tile(tile);
}

/* sgemm: kernel of eight by eight */
static inline __attribute__((always_inline)) void
eight(const td_tile *t)
{
    const float *x = t->a, *y = t->b;
    float sum[8][8] = { { 0 } }, *z = t->c;
    for (int64_t p = 0; p < t->depth; p++, x += 8, y += 8)
        for (int i = 0; i < 8; i++)
            for (int j = 0; j < 8; j++)
                sum[i][j] += x[i] * y[j];
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++)
            z[i * t->ldc + j] = sum[i][j];
}
typedef float lanes __attribute__((vector_size(32), aligned(4),
                                   may_alias));
static inline __attribute__((always_inline)) void
eight_in_vectors(const td_tile *t)
{
    const float *x = t->a, *y = t->b;
    lanes sum[8] = { { 0 } };
    float *z = t->c;
    for (int64_t p = 0; p < t->depth; p++, x += 8, y += 8)
        _Pragma("GCC unroll 8")
        for (int i = 0; i < 8; i++)
            sum[i] += x[i] * *(const lanes *)y;
    _Pragma("GCC unroll 8")
    for (int i = 0; i < 8; i++)
        *(lanes *)(z + i * t->ldc) = sum[i];
}
#if defined __x86_64__
__attribute__((target("avx2,fma")))
static void run_eight(const void *t)
{
    eight(t);
}
__attribute__((target("avx2,fma")))
static void run_eight_in_vectors(const void *t)
{
    eight_in_vectors(t);
}
#endif

static void print_heights(void)
{
    td_tile t = { .wide = kernel()->columns, .depth = 384, .alpha = 1,
                  .a = a, .rsa = 1, .b = b, .follow = true,
                  .c = c, .ldc = 64, .next = (const char *)c };
    printf("rows,share\n");
    for (t.rows = 1; t.rows <= kernel()->rows; t.rows++) {
        t.csa = t.rows;
        const double work = 2.0 * (double)(t.rows * kernel()->columns);
        printf("%d,%.3f\n", (int)t.rows,
               384 * work / best_of(run_tile, &t) / peak_rate());
    }
    /* sgemm: print the kernels of eight by eight */
    #if defined __x86_64__
    t.rows = t.csa = 8;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        printf("eight,%.3f\nvectors,%.3f\n",
               384 * 128 / best_of(run_eight, &t) / peak_rate(),
               384 * 128 / best_of(run_eight_in_vectors, &t) / peak_rate());
    #endif
}
/* sgemm: functions that write the bill */
static void multiply(const void *product)
{
    td_gemm(TD_FLOAT32, product);
}

static td_product product(int64_t m, int64_t n, int64_t k)
{
    return (td_product){ .m = m, .n = n, .k = k, .alpha = 1,
        .a = a, .rsa = k, .csa = 1, .b = b, .rsb = n, .csb = 1,
        .c = c, .ldc = n };
}

static void print_time(int64_t m, int64_t n, int64_t k, bool turned)
{
    td_product of = product(m, n > 0 ? n : m, k > 0 ? k : m);
    if (turned)
        of.rsa = 1, of.csa = m;
    printf("%.9f\n", best_of(multiply, &of));
}
static void pack_operands(const void *product)
{
    static _Alignas(64) float to[LARGEST * 1024];
    const td_gemm_kernel *k = kernel();
    const td_product *of = product;
    const int64_t n = of->n, tiles = (n + k->rows - 1) / k->rows;
    const bool placed_a = n <= 256, placed_b = n <= 100;
    const int64_t strip = k->columns / (n > 16 ? 1 : 2);
    for (int64_t p = 0; p < n; p += DEPTH) {
        const int64_t depth = n - p < DEPTH ? n - p : DEPTH;
        for (int64_t j = 0; j < n; j += strip) {
            const int64_t width = n - j < strip ? n - j : strip;
            if (!placed_b || width < strip)
                k->pack(depth, strip, width, b + p * n + j, 1, n,
                        to + j * depth);
        }
        for (int64_t t = 0; !placed_a && t < tiles; t++) {
            const int64_t i = t * n / tiles;
            const int64_t h = (t + 1) * n / tiles - i;
            k->pack(depth, h, h, a + i * n + p, n, 1,
                    to + t % BLOCK * k->rows * depth);
        }
    }
}
static void print_bill(void)
{
    static const int sizes[] = { 16, 17, 32, 33, 48, 64, 100, 128,
                                 200, 256, 384, 512, 1000, 1024, 2048 };
    printf("n,useful,thrown,packing,rest\n");
    for (int s = 0; s < (int)(sizeof sizes / sizeof *sizes); s++) {
        const double n = sizes[s];
        const double w = (double)kernel()->columns / (n > 16 ? 1 : 2);
        const td_product of = product(sizes[s], sizes[s], sizes[s]);
        const double peak = peak_rate();
        const double all = best_of(multiply, &of) * peak;
        const double packing = best_of(pack_operands, &of) * peak / all;
        const int64_t columns = ((int64_t)(n + w - 1) / (int64_t)w)
                              * (int64_t)w;
        const double useful = 2 * n * n * n / all;
        const double thrown = 2 * n * n * ((double)columns - n) / all;
        printf("%d,%.3f,%.3f,%.3f,%.3f\n", sizes[s], useful, thrown,
               packing, 1 - useful - thrown - packing);
    }
}
/* sgemm: functions that count lines */
enum { SIZE = 1024, LINE = 64 };
/* sgemm: a cache that forgets the oldest */
typedef struct {
    int64_t sets, ways, missed, *line;
} cache;

static bool look(cache *of, int64_t line)
{
    int64_t *set = of->line + line % of->sets * of->ways, w = 0;
    while (w < of->ways - 1 && set[w] != line)
        w++;
    const bool found = set[w] == line;
    memmove(set + 1, set, (size_t)w * sizeof *set);
    set[0] = line;
    of->missed += !found;
    return found;
}
/* sgemm: functions that walk the strip */
typedef struct {
    int64_t depth, rows, steps;
    cache near, far;
} walk;

static void touch(walk *of, int64_t address, int64_t bytes)
{
    for (int64_t l = address / LINE; l <= (address + bytes - 1) / LINE;
         l++)
        if (!look(&of->near, l + 1))
            look(&of->far, l + 1);
}

static void walk_tile(walk *of, int64_t x, int64_t y, int64_t z,
                      int64_t depth)
{
    for (int64_t i = 0; i < of->rows; i++)
        touch(of, z + i * SIZE * 4, 128);
    for (int64_t p = 0; p < depth; p++, of->steps++) {
        touch(of, y + p * 128, 128);
        touch(of, x + p * of->rows * 4, of->rows * 4);
    }
    for (int64_t i = 0; i < of->rows; i++)
        touch(of, z + i * SIZE * 4, 128);
}
static void walk_product(walk *of)
{
    const int64_t tiles = SIZE / of->rows, giga = 1 << 30;
    for (int64_t p = 0; p < SIZE; p += of->depth) {
        const int64_t depth = SIZE - p < of->depth ? SIZE - p
                                                   : of->depth;
        for (int64_t t = 0; t < tiles; t += BLOCK)
            for (int64_t s = 0; s < SIZE / 32; s++)
                for (int64_t r = t; r < tiles && r < t + BLOCK; r++)
                    walk_tile(of, giga + (r - t) * of->rows * depth * 4,
                              2 * giga + s * 32 * depth * 4,
                              3 * giga + (r * of->rows * SIZE + s * 32)
                                       * 4, depth);
    }
}
static void print_lines(void)
{
    static const int64_t depths[] = { 64, 96, 128, 160, 192, 256, 384,
                                      512 };
    printf("depth,l2,memory\n");
    for (int i = 0; i < 8; i++) {
        walk of = { .depth = depths[i], .rows = 14,
                    .near = { 64, 8, 0, NULL },
                    .far = { 2048, 8, 0, NULL } };
        of.near.line = calloc(64 * 8, sizeof *of.near.line);
        of.far.line = calloc(2048 * 8, sizeof *of.far.line);
        walk_product(&of);
        printf("%d,%.3f,%.3f\n", (int)of.depth,
               (double)of.near.missed / (double)of.steps,
               (double)of.far.missed / (double)of.steps);
        free(of.near.line), free(of.far.line);
    }
}
/* sgemm: functions that count rows */
static int64_t old_height(int64_t m, int64_t first)
{
    const int64_t left = m - first;
    return left > 8 ? 14 : 8;
}

static void print_deals(void)
{
    static const int64_t heights[] = { 15, 16, 17, 32, 64, 100, 128,
                                       256, 1024 };
    printf("   m   14 and 8  equal   two threads: 14 and 8  equal  "
           "dealt\n");
    for (int i = 0; i < 9; i++) {
        const int64_t m = heights[i];
        int64_t cut = 0, old[2] = { 0 }, n = 0, f = (m + 13) / 14;
        for (int64_t r = 0; r < m; r += 14)
            n++;
        for (int64_t r = 0, t = 0; r < m; r += 14, t++) {
            cut += old_height(m, r);
            old[t >= n / 2] += old_height(m, r);
        }
        /* sgemm: print a line of the deals */
        const int64_t even = (f + 1) / 2 * 2;
        const int64_t equal = m - f / 2 * m / f;
        const int64_t dealt = m - even / 2 * m / even;
        printf("%4d %10d %6d %22d %6d %6d\n", (int)m, (int)cut, (int)m,
               (int)(2 * (old[1] > old[0] ? old[1] : old[0])),
               (int)(2 * equal), (int)(2 * dealt));
    }
}
int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    for (int i = 0; i < LARGEST * LARGEST; i++) {
        a[i] = (float)(i % 97) / 97;
        b[i] = (float)(i % 89) / 89 - 0.5f;
    }
    td_set_threads(1);
    /* sgemm: do what is asked for */
    if (strcmp(what, "heights") == 0)
        print_heights();
    else if (strcmp(what, "bill") == 0)
        print_bill();
    else if (strcmp(what, "time") == 0)
        print_time(argc > 2 ? atoi(argv[2]) : 1024,
                   argc > 3 ? atoi(argv[3]) : 0,
                   argc > 4 ? atoi(argv[4]) : 0, argc > 5);
    else if (strcmp(what, "peak") == 0)
        printf("%g\n", peak_rate());
    else if (strcmp(what, "lines") == 0)
        print_lines();
    else
        print_deals();
    return td_failed();
}
