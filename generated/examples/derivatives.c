/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "derivatives": edit that, not this file. */
/* One derivative, three ways: by difference, forward, backward. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
/* derivatives: struct step of a formula */
enum { INPUT, ADD, SUBTRACT, MULTIPLY, LOG, SINE };
typedef struct {
    int does;               /* INPUT, ADD, ... */
    int a, b;               /* the steps that are its operands */
} step;
/* derivatives: the formula as a list of steps */
/* ln x0 + x0 x1 - sin x1 */
static const step formula[] = {
    { INPUT,    0, 0 },     /* v0 */
    { INPUT,    0, 0 },     /* v1 */
    { LOG,      0, 0 },     /* v2 */
    { MULTIPLY, 0, 1 },     /* v3 */
    { SINE,     1, 0 },     /* v4 */
    { ADD,      2, 3 },     /* v5 */
    { SUBTRACT, 5, 4 },     /* v6 */
};
enum { STEPS = sizeof formula / sizeof formula[0] };
/* derivatives: function run */
static double run(int n, const step *s, double *v)
{
    for (int i = 0; i < n; i++) {
        const double x = v[s[i].a], y = v[s[i].b];
        switch (s[i].does) {
        case ADD:      v[i] = x + y; break;
        case SUBTRACT: v[i] = x - y; break;
        case MULTIPLY: v[i] = x * y; break;
        case LOG:      v[i] = log(x); break;
        case SINE:     v[i] = sin(x); break;
        }
    }
    return v[n - 1];
}
/* derivatives: function forward */
static double forward(int n, const step *s, const double *v,
                      double *dot)
{
    for (int i = 0; i < n; i++) {
        const double x = v[s[i].a], y = v[s[i].b];
        const double dx = dot[s[i].a], dy = dot[s[i].b];
        /* derivatives: carry the derivative through one step */
        switch (s[i].does) {
        case ADD:      dot[i] = dx + dy; break;
        case SUBTRACT: dot[i] = dx - dy; break;
        case MULTIPLY: dot[i] = dx * y + x * dy; break;
        case LOG:      dot[i] = dx / x; break;
        case SINE:     dot[i] = dx * cos(x); break;
        }
    }
    return dot[n - 1];
}
/* derivatives: function backward */
static void backward(int n, const step *s, const double *v, double *bar)
{
    /* ten-lines: exercise ten-lines */
    for (int i = 0; i < n; i++)
        bar[i] = i == n - 1;
    for (int i = n - 1; i >= 0; i--) {
        const int a = s[i].a, b = s[i].b;
        const double g = bar[i];
        switch (g == 0 ? INPUT : s[i].does) {
        case ADD:      bar[a] += g; bar[b] += g; break;
        case SUBTRACT: bar[a] += g; bar[b] -= g; break;
        case MULTIPLY: bar[a] += g * v[b]; bar[b] += g * v[a]; break;
        case LOG:      bar[a] += g / v[a]; break;
        case SINE:     bar[a] += g * cos(v[a]); break;
        }
    }
}
/* derivatives: function difference */
static double difference(int n, const step *s, double *v, int input,
                         double h)
{
    const double here = run(n, s, v), x = v[input];
    v[input] = x + h;
    const double there = run(n, s, v);
    v[input] = x;
    return (there - here) / h;
}
/* derivatives: struct problem */
typedef struct {
    int inputs, n;
    step *s;
    double *v, *dot, *gradient;
} problem;
/* derivatives: time a whole gradient */
static double by_differences(const problem *p)
{
    for (int i = 0; i < p->inputs; i++)
        p->gradient[i] = difference(p->n, p->s, p->v, i, 1e-8);
    return p->gradient[0];
}

static double by_columns(const problem *p)
{
    run(p->n, p->s, p->v);
    for (int i = 0; i < p->inputs; i++) {
        for (int k = 0; k < p->inputs; k++)
            p->dot[k] = k == i;
        p->gradient[i] = forward(p->n, p->s, p->v, p->dot);
    }
    return p->gradient[0];
}

static double by_row(const problem *p)
{
    run(p->n, p->s, p->v);
    backward(p->n, p->s, p->v, p->gradient);
    return p->gradient[0];
}
/* derivatives: function sum_of_sines */
static problem sum_of_sines(int inputs)
{
    const int n = inputs + 3 * (inputs - 1);
    problem p = { inputs, n, calloc((size_t)n, sizeof *p.s),
                  calloc((size_t)n, sizeof(double)),
                  calloc((size_t)n, sizeof(double)),
                  calloc((size_t)n, sizeof(double)) };
    for (int i = 0; i < inputs; i++)
        p.v[i] = 0.5 + 1.0 / (i + 1);
    for (int i = 1, at = inputs; i < inputs; i++, at += 3) {
        p.s[at] = (step){ MULTIPLY, i - 1, i };
        p.s[at + 1] = (step){ SINE, at, 0 };
        p.s[at + 2] = i == 1 ? (step){ MULTIPLY, at + 1, at + 1 }
                             : (step){ ADD, at - 1, at + 1 };
    }
    return p;
}
/* derivatives: function time_of */
static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double once(const problem *p)
{
    return run(p->n, p->s, p->v);
}

static double time_of(double way(const problem *), const problem *p)
{
    volatile double keep = 0;
    double best = 1e9;
    int rounds = 1;
    for (int times = 0; times < 9; ) {
        const double start = seconds();
        for (int r = 0; r < rounds; r++)
            keep = way(p);
        const double took = seconds() - start;
        if (took < 0.002 && rounds < 1 << 20) {
            rounds *= 2;
            continue;
        }
        best = took / rounds < best ? took / rounds : best;
        times++;
    }
    (void)keep;
    return best;
}
/* derivatives: print what was asked for */
static void print_costs(void)
{
    printf("inputs,difference,forward,backward\n");
    for (int inputs = 2; inputs <= 1024; inputs *= 2) {
        problem p = sum_of_sines(inputs);
        const double one = time_of(once, &p);
        printf("%d,%.2f,%.2f,%.2f\n", inputs,
               time_of(by_differences, &p) / one,
               time_of(by_columns, &p) / one,
               time_of(by_row, &p) / one);
        free(p.s), free(p.v), free(p.dot), free(p.gradient);
    }
}

static void print_errors(void)
{
    printf("h,error\n");
    for (int k = 1; k <= 15; k++) {
        double v[STEPS] = { 2, 5 };
        const double h = pow(10, -k);
        printf("%.0e,%.3e\n", h,
               fabs(difference(STEPS, formula, v, 0, h) - 5.5));
    }
}

int main(int count, char **argument)
{
    if (count > 1 && strcmp(argument[1], "cost") == 0)
        print_costs();
    else if (count > 1)
        print_errors();
    else {
        /* derivatives: derive the formula in three ways */
        double v[STEPS] = { 2, 5 }, bar[STEPS];
        const double value = run(STEPS, formula, v);
        backward(STEPS, formula, v, bar);
        double by_x0[STEPS] = { 1, 0 }, by_x1[STEPS] = { 0, 1 };
        printf("value     %.12f\n", value);
        printf("quotient  %.12f  %.12f  three runs\n",
               difference(STEPS, formula, v, 0, 1e-8),
               difference(STEPS, formula, v, 1, 1e-8));
        printf("forward   %.12f  %.12f  two walks\n",
               forward(STEPS, formula, v, by_x0),
               forward(STEPS, formula, v, by_x1));
        printf("backward  %.12f  %.12f  one walk\n", bar[0], bar[1]);
    }
    return 0;
}
