/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "codegen": edit that, not this file. */
/* needs: loom fusion networks */
#include <stdlib.h>
#include <treadle/treadle.h>
#include "bench.h"

/* codegen: functions of the compiled benchmarks */
static td_tensor *trace_like(td_tensor *x)
{
    return td_trace_input(td_shape_of(x), td_dtype_of(x),
                          td_device_of(x));
}

static void run_compiled(bench *b, td_tensor *result,
                         td_tensor *const *in, int n)
{
    td_program *p = td_trace_end(&result, 1);
    td_executable *e = td_compile(p, (td_compile_options){ 0 });
    td_tensor *out;
    for (int i = 0; i < 50; i++)        /* the system gives memory */
        if (td_execute(e, in, n, &out))
            td_release(out);
    while (bench_running(b))
        if (td_execute(e, in, n, &out))
            td_release(out);
}

static td_tensor *numbers(int64_t rows, int64_t columns)
{
    return td_rand(TD_DIMS(rows, columns), (td_tensor_options){ 0 });
}

/* codegen: benchmarks of compiled programs */
void bench_jit_chain(bench *b)
{
    td_tensor *x = numbers(1000, 1000);
    bench_cost(b, 5e6, 8e6);
    td_trace_begin(true);
    td_tensor *y = trace_like(x);
    y = td_abs(td_mul_scalar(td_neg(y), td_float(3)));
    run_compiled(b, td_relu(td_add_scalar(y, td_float(-1))), &x, 1);
}

void bench_jit_linear(bench *b)
{
    td_tensor *in[] = { numbers(1024, 1024), numbers(1024, 1024),
                        numbers(1, 1024) };
    bench_cost(b, 2.0 * 1024 * 1024 * 1024, 3 * 4 * 1024 * 1024);
    td_trace_begin(true);
    td_tensor *x = trace_like(in[0]), *w = trace_like(in[1]);
    td_tensor *bias = trace_like(in[2]);
    x = td_add(td_matmul(x, td_t(w)), bias);
    run_compiled(b, td_relu(x), in, 3);
}
void bench_jit_step(bench *b)
{
    static const int64_t sizes[] = { 784, 256, 128, 10 };
    td_tensor *p[6], *in[] = { numbers(64, 784), td_randint(0, 10,
        TD_DIMS(64), (td_tensor_options){ .dtype = TD_INT64 }) };
    for (int i = 0; i < 3; i++) {
        p[2 * i] = td_sub_scalar(numbers(sizes[i + 1], sizes[i]),
                                 td_float(0.5));
        p[2 * i + 1] = td_zeros(TD_DIMS(sizes[i + 1]),
                                (td_tensor_options){ 0 });
    }
    for (int i = 0; i < 6; i++)
        td_set_requires_grad(p[i], true);
    td_optimiser *sgd = td_sgd(p, 6, 0.001, (td_sgd_options){
        .momentum = 0.9 });
    bench_cost(b, 2 * 64 * (2 * 784 * 256 + 3 * (256 * 128 + 1280)),
               4 * 7 * (784 * 256 + 256 * 128 + 1280));
    /* codegen: trace the training step twice */
    for (int k = 0; k < 2; k++) {           /* first makes the momenta */
        if (k == 1)
            td_trace_begin(true);
        td_tensor *h = k ? trace_like(in[0]) : in[0];
        td_tensor *labels = k ? trace_like(in[1]) : in[1];
        td_zero_grad(sgd);
        for (int i = 0; i < 3; i++) {
            h = td_linear(h, p[2 * i], p[2 * i + 1]);
            h = i < 2 ? td_relu(h) : h;
        }
        h = td_cross_entropy(h, labels, (td_cross_entropy_options){ 0 });
        td_backward(h, (td_backward_options){ 0 });
        td_step(sgd);
        if (k == 1)
            run_compiled(b, h, in, 2);
    }
}
