/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "loom": edit that, not this file. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <treadle/treadle.h>
#include "bench.h"
#include "measure.h"

/* loom: function bench_cost */
void bench_cost(bench *b, double operations, double bytes)
{
    b->operations = operations;
    b->bytes = bytes;
}
/* loom: function bench_next_batch */
bool bench_next_batch(bench *b)
{
    const double now = wall_seconds();
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
    b->began = wall_seconds();
    return true;
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
    const double took = median(b->seconds, BATCHES);
    const double rate = b->bytes > 0 ? bench_bandwidth(b->bytes) : 1;
    const double floor = fmax(b->bytes / rate, b->operations / peak);
    printf("%-28s %7d %12.3f %12.2f %11.2f\n", name, td_threads(),
           1e6 * took, 1e6 * floor, floor / took);
    fflush(stdout);
    return true;
}

static bool count(const char *name, bench *b)
{
    printf("%s,%g,%g,%.3f\n", name, b->operations, b->bytes,
           1e6 * median(b->seconds, BATCHES));
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
    const bool counts = argc > 1 && strcmp(argv[1], "--counts") == 0;
    argc -= counts, argv += counts;
    if (!counts)
        printf("%-28s %7s %12s %12s %11s\n", "case", "threads", "us",
               "floor us", "floor/time");
    const int most = cores < 2 || counts ? 1 : 2;
    for (int threads = 1; threads <= most; threads++) {
        /* loom: measure the selected cases on threads */
        if (!td_set_threads(threads))
            return 1;
        const double peak = counts ? 0 : bench_peak();
        for (int i = 0; cases[i].name; i++) {
            if (!is_selected(cases[i].name, argc - 1, argv + 1))
                continue;
            bench b = { 0 };
            td_scope_begin();
            cases[i].run(&b);
            td_scope_end();
            bad += counts && !td_failed() ? !count(cases[i].name, &b)
                                          : !report(cases[i].name, &b, peak);
        }
    }
    return bad > 0;
}
