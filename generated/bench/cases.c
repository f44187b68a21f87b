/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "loom": edit that, not this file. */
#include <treadle/treadle.h>
#include "bench.h"

/* loom: functions for operands of a benchmark */
static td_tensor *random_matrix(int64_t rows, int64_t columns)
{
    return td_randn(TD_DIMS(rows, columns), (td_tensor_options){ 0 });
}

static void repeat(bench *b, td_tensor *f(td_tensor *),
                   double operations, double bytes)
{
    td_tensor *x = random_matrix(1000, 1000);
    bench_cost(b, operations, bytes);
    while (bench_running(b))
        td_release(f(x));
}
/* loom: benchmarks of elementwise operators */
static void repeat_pair(bench *b, int64_t rows,
                        td_tensor *f(td_tensor *, td_tensor *))
{
    td_tensor *x = random_matrix(1000, 1000);
    td_tensor *y = random_matrix(rows, 1000);
    bench_cost(b, 1e6, 4e6 * 2 + 4e3 * (double)rows);
    while (bench_running(b))
        td_release(f(x, y));
}

void bench_add(bench *b) { repeat_pair(b, 1000, td_add); }
void bench_mul(bench *b) { repeat_pair(b, 1000, td_mul); }
void bench_broadcast_add(bench *b) { repeat_pair(b, 1, td_add); }
void bench_relu(bench *b) { repeat(b, td_relu, 1e6, 8e6); }
void bench_exp(bench *b) { repeat(b, td_exp, 16e6, 8e6); }
/* loom: benchmarks of views and copies */
void bench_transpose(bench *b)
{
    td_tensor *x = random_matrix(1000, 1000);
    while (bench_running(b))
        td_release(td_transpose(x, 0, 1));
}

void bench_contiguous_transpose(bench *b)
{
    td_tensor *x = td_transpose(random_matrix(1000, 1000), 0, 1);
    bench_cost(b, 0, 8e6);
    while (bench_running(b))
        td_release(td_contiguous(x));
}
/* loom: benchmarks of reductions */
static td_tensor *sum_all(td_tensor *x)
{
    return td_sum(x, (td_reduce_options){ 0 });
}

static td_tensor *sum_dim0(td_tensor *x)
{
    return td_sum(x, (td_reduce_options){ .dims = TD_DIMS(0) });
}

static td_tensor *softmax_rows(td_tensor *x)
{
    return td_softmax(x, 1);
}

void bench_sum(bench *b) { repeat(b, sum_all, 1e6, 4e6); }
void bench_sum_dim0(bench *b) { repeat(b, sum_dim0, 1e6, 4e6); }
void bench_softmax(bench *b) { repeat(b, softmax_rows, 20e6, 8e6); }
/* loom: benchmarks of matrix products */
static void multiply(bench *b, int64_t m, int64_t k, int64_t n)
{
    td_tensor *x = random_matrix(m, k), *y = random_matrix(k, n);
    const double elements = (double)(m * k + k * n + m * n);
    const double products = (double)m * (double)n * (double)k;
    bench_cost(b, 2 * products, 4 * elements);
    while (bench_running(b))
        td_release(td_matmul(x, y));
}

void bench_gemm_64(bench *b) { multiply(b, 64, 64, 64); }
void bench_gemm_128(bench *b) { multiply(b, 128, 128, 128); }
void bench_gemm_256(bench *b) { multiply(b, 256, 256, 256); }
void bench_gemm_512(bench *b) { multiply(b, 512, 512, 512); }
void bench_gemm_1000(bench *b) { multiply(b, 1000, 1000, 1000); }
void bench_gemm_1024(bench *b) { multiply(b, 1024, 1024, 1024); }
void bench_gemm_2048(bench *b) { multiply(b, 2048, 2048, 2048); }
void bench_gemm_layer(bench *b) { multiply(b, 64, 784, 256); }
void bench_gemm_thin(bench *b) { multiply(b, 1024, 64, 1024); }
/* loom: benchmarks of small operators */
void bench_tiny_op(bench *b)
{
    td_tensor *x = td_randn(TD_DIMS(4), (td_tensor_options){ 0 });
    bench_cost(b, 4, 48);
    while (bench_running(b))
        td_release(td_add(x, x));
}

void bench_grad_chain(bench *b)
{
    td_tensor *x = td_ones(TD_DIMS(4), (td_tensor_options){ 0 });
    td_set_requires_grad(x, true);
    while (bench_running(b)) {
        td_scope_begin();
        td_tensor *y = x;
        for (int i = 0; i < 100; i++)
            y = td_mul(y, x);
        td_backward(td_sum(y, (td_reduce_options){ 0 }),
                    (td_backward_options){ 0 });
        td_set_grad(x, NULL);
        td_scope_end();
    }
}
/* loom: benchmarks of gradients */
static void product_and_back(bench *b, int64_t m, int64_t k, int64_t n)
{
    td_tensor *x = random_matrix(m, k), *w = random_matrix(k, n);
    td_set_requires_grad(x, true);
    td_set_requires_grad(w, true);
    bench_cost(b, 6.0 * (double)m * (double)n * (double)k,
               12.0 * (double)(m * k + k * n + m * n));
    while (bench_running(b)) {
        td_scope_begin();
        td_tensor *y = td_matmul(x, w);
        td_backward(td_mean(td_mul(y, y), (td_reduce_options){ 0 }),
                    (td_backward_options){ 0 });
        td_set_grad(x, NULL);
        td_set_grad(w, NULL);
        td_scope_end();
    }
}

void bench_grad_matmul(bench *b)
{
    product_and_back(b, 100, 100, 100);
}

void bench_grad_linear(bench *b)
{
    product_and_back(b, 1024, 1024, 1024);
}
/* loom: benchmark of a training step */
enum { BATCH = 64, PIXELS = 784, CLASSES = 10 };

static td_module *three_layers(void)
{
    const td_linear_options with_bias = { 0 };
    td_module *layers[] = {
        td_linear_module(PIXELS, 256, with_bias), td_relu_module(),
        td_linear_module(256, 128, with_bias), td_relu_module(),
        td_linear_module(128, CLASSES, with_bias)
    };
    return td_sequential(layers, 5);
}
void bench_step_mlp(bench *b)
{
    td_tensor *parameters[16];
    td_tensor *x = random_matrix(BATCH, PIXELS);
    td_tensor *labels = td_randint(0, CLASSES, TD_DIMS(BATCH),
                                   (td_tensor_options){ 0 });
    td_module *net = three_layers();
    const int count = td_parameters(net, parameters, 16);
    td_optimiser *sgd = td_sgd(parameters, count, 0.01,
                               (td_sgd_options){ .momentum = 0.9 });
    const double weights = 784 * 256, rest = 256 * 128 + 128 * 10;
    bench_cost(b, 2 * BATCH * (2 * weights + 3 * rest),
               4 * 7 * (weights + rest));
    while (bench_running(b)) {
        td_scope_begin();
        td_zero_grad(sgd);
        td_backward(td_cross_entropy(td_forward(net, x), labels,
                                     (td_cross_entropy_options){ 0 }),
                    (td_backward_options){ 0 });
        td_step(sgd);
        td_scope_end();
    }
}
