/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "softmax": edit that, not this file. */
/* needs: random */
/* Nanoseconds for each of a million numbers, one thread. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <treadle/treadle.h>
enum { N = 1000 };
static const td_arg_options whole = TD_DEFAULTS;
static const td_reduce_options rows = { .dims = { 1, { 1 } } };
static const td_reduce_options columns = { .dims = { 1, { 0 } } };
/* softmax: what is timed */
static td_tensor *one_by_one(td_tensor *x)
{
    const float *at = td_data(x);
    float sum = 0;
    for (int i = 0; i < N * N; i++)
        sum += at[i];
    return td_full(TD_DIMS(1), td_float((double)sum),
                   (td_tensor_options)TD_DEFAULTS);
}
static td_tensor *sum(td_tensor *x)
{
    return td_sum(x, TD_REDUCE_DEFAULTS);
}
static td_tensor *sum_rows(td_tensor *x) { return td_sum(x, rows); }
static td_tensor *sum_columns(td_tensor *x)
{
    return td_sum(x, columns);
}
static td_tensor *largest(td_tensor *x) { return td_max(x); }
static td_tensor *place(td_tensor *x) { return td_argmax(x, whole); }
static td_tensor *softmax(td_tensor *x) { return td_softmax(x, 1); }
static td_tensor *log_softmax(td_tensor *x)
{
    return td_log_softmax(x, 1);
}
static td_tensor *logsumexp(td_tensor *x)
{
    return td_logsumexp(x, rows);
}
static td_tensor *in_double(td_tensor *x)
{
    return td_sum(x, (td_reduce_options){ .dtype = TD_FLOAT64 });
}
typedef struct {
    const char *name;
    td_tensor *(*make)(td_tensor *);
    bool ascending;
} timed;
enum { SUMS = 5 };               /* the first of these */
static const timed cases[] = {
    { "one by one", one_by_one, false },
    { "sum", sum, false }, { "sum by rows", sum_rows, false },
    { "sum by columns", sum_columns, false },
    { "sum in double", in_double, false },
    { "max", largest, false }, { "argmax", place, false },
    { "argmax ascending", place, true }, { "exp", td_exp, false },
    { "logsumexp", logsumexp, false },
    { "log softmax", log_softmax, false },
    { "softmax", softmax, false },
};
/* softmax: time one of them */
static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void print_time(const timed *t, td_tensor *x)
{
    double best = 1e9;
    for (int i = 0; i < 20; i++) {
        td_scope_begin();
        const double start = seconds();
        t->make(x);
        const double took = seconds() - start;
        best = took < best ? took : best;
        td_scope_end();
    }
    printf("%s,%.3f\n", t->name, best * 1e9 / (N * N));
}

int main(int count, char **argument)
{
    const bool sums = count > 1 && strcmp(argument[1], "sums") == 0;
    td_set_threads(1);
    td_scope_begin();
    td_tensor *x = td_rand(TD_DIMS(N, N),
                           (td_tensor_options)TD_DEFAULTS);
    td_tensor *sorted = td_reshape(td_arange(td_int(0), td_int(N * N),
        td_int(1), (td_tensor_options){ .dtype = TD_FLOAT32 }),
        TD_DIMS(N, N));
    printf("operation,ns\n");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (sums == (i < SUMS))
            print_time(&cases[i], cases[i].ascending ? sorted : x);
    td_scope_end();
    return td_failed();
}
