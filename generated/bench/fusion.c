/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "codegen": edit that, not this file. */
/* needs: loom fusion networks attention */
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
enum { MOST_WEIGHTS = 56 };

typedef struct {
    td_tensor *(*scores)(td_tensor *const *w, td_tensor *x);
    td_tensor *w[MOST_WEIGHTS], *in[2];     /* in: batch, labels */
    int n;
    td_optimiser *rule;
} model;

static void add_weight(model *m, td_dims shape)
{
    td_tensor *x = td_randn(shape, (td_tensor_options){ 0 });
    x = td_mul_scalar(x, td_float(0.05));
    td_set_requires_grad(x, true);
    m->w[m->n++] = x;
}

static td_tensor *learn(const model *m, td_tensor *const *in)
{
    td_zero_grad(m->rule);
    td_tensor *loss = td_cross_entropy(m->scores(m->w, in[0]), in[1],
                                       (td_cross_entropy_options){ 0 });
    td_backward(loss, (td_backward_options){ 0 });
    td_step(m->rule);
    return loss;
}
static void train(bench *b, model *m, td_tensor *x, int labels,
                  int classes, bool compile)
{
    m->in[0] = x;
    m->in[1] = td_randint(0, classes, TD_DIMS(labels),
        TD_OF(TD_INT64));
    m->rule = m->n > 6
        ? td_adapt(TD_ADAMW, m->w, m->n, 0.001, (td_adapt_options){ 0 })
        : td_sgd(m->w, m->n, 0.001, (td_sgd_options){
                     .momentum = 0.9 });
    learn(m, m->in);
    if (compile) {
        td_trace_begin(true);
        td_tensor *in[] = { trace_like(x), trace_like(m->in[1]) };
        run_compiled(b, learn(m, in), m->in, 2);
        return;
    }
    while (bench_running(b)) {
        td_scope_begin();
        learn(m, m->in);
        td_scope_end();
    }
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
static td_tensor *three_layers(td_tensor *const *w, td_tensor *x)
{
    x = td_relu(td_linear(x, w[0], w[1]));
    x = td_relu(td_linear(x, w[2], w[3]));
    return td_linear(x, w[4], w[5]);
}

void bench_jit_step(bench *b)
{
    static const int64_t sizes[] = { 784, 256, 128, 10 };
    model m = { .scores = three_layers };
    for (int i = 0; i < 3; i++) {
        add_weight(&m, TD_DIMS(sizes[i + 1], sizes[i]));
        add_weight(&m, TD_DIMS(sizes[i + 1]));
    }
    bench_cost(b, 2 * 64 * (2 * 784 * 256 + 3 * (256 * 128 + 1280)),
               4 * 7 * (784 * 256 + 256 * 128 + 1280));
    train(b, &m, numbers(64, 784), 64, 10, true);
}
static td_tensor *by_name(const char *name, int n_in,
                          td_tensor *const *x, int n_attr,
                          const td_value *attr)
{
    td_value in[4];
    for (int i = 0; i < n_in; i++)
        in[i] = (td_value){ .kind = x[i] ? TD_TENSOR : TD_NONE,
                            .as.tensor = x[i] };
    td_call call = { .op = td_op_find(name), .n_in = n_in, .in = in,
                     .n_attr = n_attr, .attr = attr };
    return td_run(&call) ? call.out[0] : NULL;
}
static td_tensor *convolutional(td_tensor *const *w, td_tensor *x)
{
    static const int64_t two[] = { 2, 2 };
    const td_value window[5] = { { .kind = TD_INTS,
                                   .as.ints = { 2, two } } };
    for (int i = 0; i < 4; i += 2) {
        x = td_convolution(x, w[i], w[i + 1], (td_convolution_options){
                               .padding = TD_DIMS(1) });
        x = td_relu(x);
        x = by_name("max_pool2d", 1, &x, 5, window);
    }
    return td_linear(td_flatten(x, 1, -1), w[4], w[5]);
}

static void cnn_step(bench *b, bool compile)
{
    model m = { .scores = convolutional };
    add_weight(&m, TD_DIMS(8, 1, 3, 3));
    add_weight(&m, TD_DIMS(8));
    add_weight(&m, TD_DIMS(16, 8, 3, 3));
    add_weight(&m, TD_DIMS(16));
    add_weight(&m, TD_DIMS(10, 784));
    add_weight(&m, TD_DIMS(10));
    bench_cost(b, 2.0 * 64 * (2 * 784 * 72 + 3 * (196 * 1152 + 7840)),
               4.0 * 64 * 784 * 40);
    train(b, &m, td_reshape(numbers(64, 784), TD_DIMS(64, 1, 28, 28)),
          64, 10, compile);
}

void bench_step_cnn(bench *b) { cnn_step(b, false); }
void bench_jit_cnn(bench *b) { cnn_step(b, true); }
static td_tensor *norm(td_tensor *x, td_tensor *const *w)
{
    static const int64_t width = 128;
    const td_value over[2] = { { .kind = TD_INTS,
                                 .as.ints = { 1, &width } } };
    return by_name("layer_norm", 3, (td_tensor *[]){ x, w[0], w[1] }, 2,
                   over);
}

static td_tensor *attend(td_tensor *x)
{
    const td_value causal[4] = {
        { .kind = TD_SCALAR, .as.scalar = td_float(0) },
        { .kind = TD_SCALAR,
          .as.scalar = { .kind = TD_SCALAR_BOOL, .as.b = true } } };
    td_tensor *part[4] = { NULL };
    for (int k = 0; k < 3; k++)
        part[k] = td_transpose(td_reshape(td_slice(x, -1,
            (td_opt_i64)td_some(128 * k),
            (td_opt_i64)td_some(128 * (k + 1)), 1),
            TD_DIMS(16, 128, 4, 32)), 1, 2);
    x = by_name("scaled_dot_product_attention", 4, part, 4, causal);
    return td_reshape(td_transpose(x, 1, 2), TD_DIMS(16, 128, 128));
}
static td_tensor *gpt(td_tensor *const *w, td_tensor *x)
{
    const td_value exact = { .kind = TD_NONE };
    x = td_add(td_embedding(x, w[0]), w[1]);
    for (w += 2; *w != NULL; w += 12) {
        td_tensor *y = td_linear(norm(x, w), w[2], w[3]);
        x = td_add(x, td_linear(attend(y), w[4], w[5]));
        y = td_linear(norm(x, w + 6), w[8], w[9]);
        y = by_name("gelu", 1, &y, 1, &exact);
        x = td_add(x, td_linear(y, w[10], w[11]));
    }
    return td_reshape(x, TD_DIMS(-1, 128));
}
static td_tensor *letters(td_tensor *const *w, td_tensor *x)
{
    return td_matmul(gpt(w, x), td_t(w[0]));
}

static void gpt_step(bench *b, bool compile)
{
    static const int64_t shape[6][2] = { { 128 }, { 384, 128 },
        { 128, 128 }, { 128 }, { 512, 128 }, { 128, 512 } };
    model m = { .scores = letters };
    add_weight(&m, TD_DIMS(65, 128));
    add_weight(&m, TD_DIMS(128, 128));
    for (int i = 0; i < 24; i++) {
        const int64_t *s = shape[i % 6];
        add_weight(&m, s[1] ? TD_DIMS(s[0], s[1]) : TD_DIMS(s[0]));
        add_weight(&m, TD_DIMS(s[0]));
    }
    bench_cost(b, 2048.0 * 6 * (4 * 196608 + 65 * 128 + 4 * 2 * 16384),
               2048.0 * 4 * 4 * 40 * 128);
    td_tensor *x = td_randint(0, 65, TD_DIMS(16, 128),
                              TD_OF(TD_INT64));
    train(b, &m, x, 2048, 65, compile);
}

void bench_step_gpt(bench *b) { gpt_step(b, false); }
void bench_jit_gpt(bench *b) { gpt_step(b, true); }
