/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "memory": edit that, not this file. */
/* Microseconds and page faults for a block, from malloc and from us. */
#define _XOPEN_SOURCE 700
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <treadle/treadle.h>
#include "../src/core/memory.h"

enum { BLOCKS = 16, STEPS = 20, PAGE = 4096 };

/* memory: read the clock and the faults */
/* memory: function seconds */
static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

/* memory: a step of memory-cache */
static void step(bool cached, size_t bytes)
{
    char *block[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        block[i] = cached ? td_storage_alloc(bytes)
                          : aligned_alloc(TD_ALIGNMENT, bytes);
        for (size_t at = 0; block[i] != NULL && at < bytes; at += PAGE)
            block[i][at] = 1;
    }
    for (int i = 0; i < BLOCKS; i++)
        if (cached)
            td_storage_free(block[i], bytes);
        else
            free(block[i]);
}

/* memory: measure the steps of memory-cache */
static void measure(bool cached, size_t bytes)
{
    double best = 1e9;
    long before = 0;
    for (int i = 0; i < STEPS; i++) {
        if (i == STEPS / 2)
            before = faults();
        const double begin = seconds();
        step(cached, bytes);
        const double time = seconds() - begin;
        best = time < best ? time : best;
    }
    printf(",%.3f,%.1f", 1e6 * best / BLOCKS,
           (double)(faults() - before) / BLOCKS / (STEPS - STEPS / 2));
}

int main(void)
{
    puts("kilobytes,malloc,malloc faults,cache,cache faults");
    for (size_t kilobytes = 4; kilobytes <= 8192; kilobytes *= 2) {
        printf("%zu", kilobytes);
        measure(false, kilobytes * 1024);
        measure(true, kilobytes * 1024);
        puts("");
    }
    return 0;
}
