/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "measuring": edit that, not this file. */
/* One kernel timed wrongly in six ways, and by the rule against it. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include "../bench/measure.h"

enum { N = 1 << 20, FEW = 16, CALLS = 300 };
static volatile float kept;

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
/* measuring: operands and contenders of the six ways */
typedef struct { int64_t n; float *x, *y; } operands;
static operands all;

static void fill(operands *o, float value)
{
    for (int64_t i = 0; i < o->n; i++)
        o->x[i] = o->y[i] = value;
}

static double run_dot(void *of)
{
    const operands *o = of;
    return (double)dot(o->n, o->x, o->y);
}

/* By rules one to five, in seconds a number. */
static double by_the_rules(operands *o)
{
    const stopwatch w = { wall_seconds, 1e-3, 1e-5, 21 };
    contender c = { .run = run_dot, .of = o };
    return time_one(&w, &c) / (double)o->n;
}
/* measuring: neighbours of the six ways */
enum { MOST = 64 };
static pthread_t neighbours[MOST];
static int present;
static volatile bool stay;

static void *bother(void *unused)
{
    while (stay)
        ;
    return unused;
}

static void call_neighbours(void)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    stay = true;
    for (present = 0; present < cores && present < MOST; present++)
        if (pthread_create(&neighbours[present], NULL, bother, NULL))
            break;
}

static void send_them_away(void)
{
    stay = false;
    while (present > 0)
        pthread_join(neighbours[--present], NULL);
}
/* measuring: six ways and the rules */
static double first_call(double *right)
{
    /* measuring: time the first call */
    float *x = calloc(N, sizeof *x), *y = calloc(N, sizeof *y);
    const double began = wall_seconds();
    kept = dot(N, x, y);
    const double took = wall_seconds() - began;
    free(x);
    free(y);
    *right = by_the_rules(&all);
    return took / N;
}

static bool hundred_halves(void *context, int64_t begin, int64_t end,
                           int worker)
{
    (void)worker;
    const operands *o = context;
    for (int64_t i = begin; i < end; i++)
        for (int r = 0; r < 100; r++)
            kept = dot(N / 2, o->x + i * N / 2, o->y + i * N / 2);
    return true;
}

static double two_threads(double *right)
{
    double wrong = *right = 1;
    for (int i = 0; i < 100; i++) {
        const double start = wall_seconds();
        /* measuring: time two threads with clock */
        const clock_t began = clock();
        td_parallel_for(2, 1, hundred_halves, &all);
        const double took = (double)(clock() - began) / CLOCKS_PER_SEC;
        const double wall = wall_seconds() - start;
        wrong = wall < *right ? took : wrong;
        *right = fmin(wall, *right);
    }
    *right /= 100 * N;
    return wrong / 100 / N;
}

static double unused_result(double *right)
{
    /* measuring: time calls without a result */
    const double began = wall_seconds();
    for (int i = 0; i < 100; i++)
        dot(N, all.x, all.y);
    const double took = wall_seconds() - began;
    *right = by_the_rules(&all);
    return took / 100 / N;
}

static double mean_with_neighbours(double *right)
{
    double took[CALLS], sum = 0;
    call_neighbours();
    for (int i = 0; i < CALLS; i++) {
        const double began = wall_seconds();
        kept = dot(N, all.x, all.y);
        took[i] = wall_seconds() - began;
        sum += took[i];
    }
    send_them_away();
    *right = median(took, CALLS) / N;
    return sum / CALLS / N;
}

static double few_numbers(double *right)
{
    operands few = { FEW, all.x, all.y };
    double took[CALLS];
    for (int i = 0; i < CALLS; i++) {
        const double began = wall_seconds();
        kept = dot(few.n, few.x, few.y);
        took[i] = wall_seconds() - began;
    }
    *right = by_the_rules(&few);
    return median(took, CALLS) / FEW;
}

static double tiny_numbers(double *right)
{
    *right = by_the_rules(&all);
    fill(&all, 1e-22f);
    const double wrong = by_the_rules(&all);
    fill(&all, 1);
    return wrong;
}
/* measuring: a program beside itself */
static int until_they_come;

static double wall_and_neighbours(void)
{
    if (--until_they_come == 0)
        call_neighbours();
    return wall_seconds();
}

static void against_itself(void)
{
    stopwatch w = { wall_seconds, 2e-2, 1e-5, 11 };
    contender old = { .run = run_dot, .of = &all }, new = old;
    const double before = time_one(&w, &old);
    call_neighbours();
    const double after = time_one(&w, &new);
    send_them_away();
    printf("one after the other  %5.2f times as fast\n",
           before / after);
    w.now = wall_and_neighbours;
    w.pairs = 21;
    until_they_come = 60;
    const double pairs = times_as_fast(&w, &old, &new);
    send_them_away();
    printf("by turns             %5.2f times as fast\n", pairs);
}
/* measuring: print the six ways */
static const struct {
    const char *name;
    double (*way)(double *right);
} ways[] = {
    { "the first call", first_call },
    { "two threads, by clock()", two_threads },
    { "the result is not used", unused_result },
    { "the mean, beside others", mean_with_neighbours },
    { "sixteen numbers, one call", few_numbers },
    { "all numbers are 1e-22", tiny_numbers },
};

int main(int argc, char **argv)
{
    (void)argv;
    all = (operands){ N, malloc(N * 4), malloc(N * 4) };
    if (!all.x || !all.y || !td_set_threads(2))
        return 1;
    fill(&all, 1);
    if (argc > 1) {
        against_itself();
        return 0;
    }
    printf("%-26s %11s %11s\n", "", "ns a number", "by the rule");
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        double right = 0;
        const double wrong = ways[i].way(&right);
        printf("%-26s %11.3f %11.3f\n", ways[i].name, 1e9 * wrong,
               1e9 * right);
    }
    return 0;
}
