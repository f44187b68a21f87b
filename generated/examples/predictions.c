/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "measuring": edit that, not this file. */
/* Nanoseconds a number of seven sums of products, as a table. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include "../bench/measure.h"

typedef struct { int64_t n; float *x, *y; } operands;

/* measuring: a kernel to be timed */
static float dot(int64_t n, const float *x, const float *y)
{
    float lane[16] = { 0 }, sum = 0;
    for (int64_t i = 0; i < n; i += 16)
        for (int l = 0; l < 16; l++)
            lane[l] += x[i + l] * y[i + l];
    for (int l = 0; l < 16; l++)
        sum += lane[l];
    return sum;
}
/* measuring: sums of products to be predicted */
static double run_lanes(void *of)
{
    const operands *o = of;
    return (double)dot(o->n, o->x, o->y);
}

static double run_one_lane(void *of)
{
    const operands *o = of;
    float sum = 0;
    for (int64_t i = 0; i < o->n; i++)
        sum += o->x[i] * o->y[i];
    return (double)sum;
}

static double run_one_of_sixteen(void *of)
{
    const operands *o = of;
    float lane[4] = { 0 };
    for (int64_t i = 0; i < o->n; i += 64)
        for (int l = 0; l < 4; l++)
            lane[l] += o->x[i + 16 * l] * o->y[i + 16 * l];
    return (double)((lane[0] + lane[1]) + (lane[2] + lane[3]));
}

static volatile float kept[2 * 16];

static bool half(void *context, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    const operands *o = context;
    for (int64_t i = begin; i < end; i++)
        for (int r = 0; r < 100; r++)
            kept[16 * i] = dot(o->n / 2, o->x + i * o->n / 2,
                               o->y + i * o->n / 2);
    return true;
}

static double run_two_threads(void *of)
{
    td_parallel_for(2, 1, half, of);
    return 0;
}
/* measuring: print the predicted rows */
enum { L1 = 2048, L2 = 32768, MEMORY = 1 << 24 };
static const struct {
    const char *name;
    double (*run)(void *of);
    int64_t n;
    double value, numbers;      /* of which a round sums so many */
} rows[] = {
    { "one lane", run_one_lane, L1, 1, L1 },
    { "from L1", run_lanes, L1, 1, L1 },
    { "from L2", run_lanes, L2, 1, L2 },
    { "from memory", run_lanes, MEMORY, 1, MEMORY },
    { "\"one of sixteen, from memory\"", run_one_of_sixteen, MEMORY, 1,
      MEMORY / 16 },
    { "\"two threads, from L2\"", run_two_threads, 2 * L2, 1,
      200.0 * L2 },
    { "\"products below the normal range, from L1\"", run_lanes, L1,
      1e-22, L1 },
};

int main(void)
{
    const stopwatch w = { wall_seconds, 5e-3, 1e-5, 41 };
    operands o = { .x = malloc(MEMORY * 4), .y = malloc(MEMORY * 4) };
    if (!o.x || !o.y || !td_set_threads(2))
        return 1;
    printf("row,took\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        o.n = rows[i].n;
        for (int64_t j = 0; j < o.n; j++)
            o.x[j] = o.y[j] = (float)rows[i].value;
        contender c = { .run = rows[i].run, .of = &o };
        printf("%s,%.3g\n", rows[i].name,
               1e9 * time_one(&w, &c) / rows[i].numbers);
    }
    free(o.x);
    free(o.y);
    return 0;
}
