/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "loom": edit that, not this file. */
/* Benchmarks: a case is a function that is registered by a row
   BENCH(name, function) of the collector of benchmark cases.

       void bench_add(bench *b)
       {
           td_tensor *x = td_ones(TD_DIMS(1000), TD_DEFAULTS);
           bench_cost(b, 1000, 3 * 4000);
           while (bench_running(b))
               td_release(td_add(x, x));
           td_release(x);
       } */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* loom: struct bench */
enum { BATCHES = 7 };
typedef struct {
    double operations, bytes;    /* of one round */
    double began, seconds[BATCHES];
    int64_t left, rounds;        /* in this batch */
    int timed;                   /* batches so far */
    bool warm;                   /* rounds are settled */
} bench;

/* Floating-point operations, and bytes that must move, of one round. */
void bench_cost(bench *b, double operations, double bytes);
bool bench_next_batch(bench *b);
/* loom: function bench_running */
static inline bool bench_running(bench *b)
{
    return b->left-- > 0 || bench_next_batch(b);
}

#define BENCH(name, function) void function(bench *b);
#include "cases.inc"
#undef BENCH
