/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "measuring": edit that, not this file. */
/* ceilings chains: multiply-adds by the number of chains, as a table;
   ceilings footprint: bytes a second by how many are touched. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include "../bench/measure.h"

#if defined __x86_64__
#define FOR(name) __attribute__((target(name)))
#define HAS(name) __builtin_cpu_supports(name)
#else
#define FOR(name)
#define HAS(name) false
#endif
#define EACH(F) F(1) F(2) F(3) F(4) F(6) F(8) F(10) F(12)
#define CHAINS(n) MULTIPLY_ADD(sse_##n, 16, n, )               \
                  MULTIPLY_ADD(avx2_##n, 32, n, FOR("avx2,fma")) \
                  MULTIPLY_ADD(avx512_##n, 64, n, FOR("avx512f"))
EACH(CHAINS)
/* measuring: rates of chains */
typedef double chains(int64_t rounds, volatile float *out);

static double rate(chains *f)
{
    static float out;
    double best = 0;
    for (int i = 0; i < 9; i++) {
        const double began = wall_seconds();
        const double work = f(1000000, &out);
        best = fmax(best, work / (wall_seconds() - began));
    }
    return best / 1e9;
}

static const struct {
    int count;
    chains *sse, *avx2, *avx512;
} rows[] = {
#define ROW(n) { n, sse_##n, avx2_##n, avx512_##n },
    EACH(ROW)
};

static void print_chains(void)
{
    printf("chains,sse,avx2,avx512\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        printf("%d,%.1f,", rows[i].count, rate(rows[i].sse));
        if (HAS("avx2") && HAS("fma"))
            printf("%.1f", rate(rows[i].avx2));
        printf(",");
        if (HAS("avx512f"))
            printf("%.1f", rate(rows[i].avx512));
        printf("\n");
    }
}
/* measuring: rates by footprint */
static void print_footprints(void)
{
    printf("kib,rate\n");
    for (double kib = 6; kib < 2e5; kib *= 1.4) {
        double best = 0;
        for (int i = 0; i < 5; i++)
            best = fmax(best, bench_bandwidth(1024 * kib));
        printf("%.0f,%.2f\n", kib, best / 1e9);
    }
}

int main(int argc, char **argv)
{
    if (!td_set_threads(1))
        return 1;
    if (argc > 1 && strcmp(argv[1], "chains") == 0)
        print_chains();
    else
        print_footprints();
    return 0;
}
