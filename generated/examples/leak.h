/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "leak": edit that, not this file. */
/* needs: data */
/* An engine of variables and closures, and a network that it trains
   on pictures of clothes.  Who includes this says before it, in
   capture and gradient, how a closure keeps its own result.

   usage: leak [loss | counters | rss | alive | alone] [STEPS] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/runtime.h"

enum { LEAF, MATMUL, TRANSPOSE, SLICE, ADD, RELU, CROSS_ENTROPY, OPS };
static const char *const op_names[OPS] = {
    "leaf", "matmul", "transpose", "slice", "add", "relu",
    "cross entropy"
};
static int64_t made[OPS], freed[OPS];

/* leak: class of a var */
static void var_destroy(void *object)
{
    var *v = object;
    td_release(v->value);
    td_release(v->grad);
    for (int i = 0; i < 3; i++)
        td_release(v->backward.held[i]);
    for (int i = 0; i < 2; i++)
        td_release(v->backward.kept[i]);
    freed[v->op]++;
}

static const td_class var_class = { "var", var_destroy,
                                    TD_COUNT_OTHERS };
/* leak: function new_var */
static var *new_var(int op, td_tensor *value)
{
    var *v = td_object_new(&var_class, sizeof *v);
    v->op = op;
    v->value = td_retain(value);
    v->grad = td_retain(td_zeros_like(value,
                            (td_tensor_options)TD_DEFAULTS));
    made[op]++;
    return v;
}
/* leak: addition with a past */
static void add_backward(closure *c)
{
    td_tensor *g = c->seen->grad;
    for (int i = 0; i < 2; i++)
        td_add_(c->held[i]->grad,
                td_sum_to_size(g, td_shape_of(c->held[i]->value)));
}

static var *add(var *a, var *b)
{
    var *y = new_var(ADD, td_add(a->value, b->value));
    y->backward = (closure){ .run = add_backward, .seen = y,
        .held = { td_retain(a), td_retain(b) } };
    return y;
}
/* leak: rectifier with a past */
static void relu_backward(closure *c)
{
    td_tensor *open = td_gt_scalar(c->held[0]->value, td_float(0));
    td_add_(c->held[0]->grad, td_mul(c->seen->grad, open));
}

static var *relu(var *a)
{
    var *y = new_var(RELU, td_relu(a->value));
    y->backward = (closure){ .run = relu_backward, .seen = y,
                             .held = { td_retain(a) } };
    return y;
}
/* leak: product with a past */
static void matmul_backward(closure *c)
{
    var *a = c->held[0], *b = c->held[1];
    td_tensor *g = gradient(c);
    td_add_(a->grad, td_matmul(g, td_t(b->value)));
    td_add_(b->grad, td_matmul(td_t(a->value), g));
}

static var *matmul(var *a, var *b)
{
    var *y = new_var(MATMUL, td_matmul(a->value, b->value));
    y->backward = (closure){ .run = matmul_backward,
        .held = { td_retain(a), td_retain(b) } };
    return capture(y);
}
/* leak: transposition with a past */
static void transpose_backward(closure *c)
{
    td_add_(c->held[0]->grad, td_t(gradient(c)));
}

static var *transpose(var *a)
{
    var *y = new_var(TRANSPOSE, td_t(a->value));
    y->backward = (closure){ .run = transpose_backward,
                             .held = { td_retain(a) } };
    return capture(y);
}
/* leak: slice with a past */
static td_tensor *rows(td_tensor *x, int64_t start, int64_t end)
{
    const td_opt_i64 first = td_some(start), last = td_some(end);
    return td_slice(x, 0, first, last, 1);
}

static void slice_backward(closure *c)
{
    td_add_(rows(c->held[0]->grad, c->start, c->end), gradient(c));
}

static var *slice(var *a, int64_t start, int64_t end)
{
    var *y = new_var(SLICE, rows(a->value, start, end));
    y->backward = (closure){ .run = slice_backward,
        .held = { td_retain(a) }, .start = start, .end = end };
    return capture(y);
}
/* leak: cross entropy with a past */
static void cross_entropy_backward(closure *c)
{
    td_tensor *p = td_softmax(c->held[0]->value, 1);
    const double n = (double)td_size(p, 0);
    const double g = td_item_double(c->seen->grad) / n;
    td_add_(c->held[0]->grad,
            td_mul_scalar(td_sub(p, c->kept[0]), td_float(g)));
}

static var *cross_entropy(var *scores, td_tensor *labels)
{
    const td_tensor_options plain = TD_DEFAULTS;
    td_tensor *log_p = td_log_softmax(scores->value, 1);
    td_tensor *classes = td_arange(td_int(0),
        td_int(td_size(log_p, 1)), td_int(1), plain);
    td_tensor *truth = td_to(td_eq(td_unsqueeze(labels, 1), classes),
                             TD_FLOAT32);
    td_tensor *sum = td_sum(td_mul(log_p, truth),
                            (td_reduce_options)TD_DEFAULTS);
    const double n = (double)td_size(log_p, 0);
    var *y = new_var(CROSS_ENTROPY,
                     td_mul_scalar(sum, td_float(-1 / n)));
    y->backward = (closure){ .run = cross_entropy_backward, .seen = y,
        .held = { td_retain(scores) }, .kept = { td_retain(truth) } };
    return y;
}
/* leak: function sort_past */
static void sort_past(var *v, var **order, int *n)
{
    if (v == NULL || v->sorted)
        return;
    v->sorted = true;
    sort_past(v->backward.held[0], order, n);
    sort_past(v->backward.held[1], order, n);
    order[(*n)++] = v;
}
/* leak: function send_all_back */
static void send_all_back(var *y)
{
    var *order[64];
    int n = 0;
    sort_past(y, order, &n);
    td_fill_(y->grad, td_float(1));
    while (n-- > 0) {
        td_scope_begin();
        if (order[n]->backward.run != NULL)
            order[n]->backward.run(&order[n]->backward);
        td_scope_end();
        order[n]->sorted = false;
    }
}
/* leak: function layer */
static var *layer(var *x, var *p)
{
    const int64_t in = td_size(x->value, 1);
    var *w = transpose(p);
    return add(matmul(x, slice(w, 0, in)), slice(w, in, in + 1));
}
/* leak: function learn */
static double learn(var *p[2], const td_batch *batch)
{
    var *x = new_var(LEAF, batch->input);
    var *scores = layer(relu(layer(x, p[0])), p[1]);
    var *loss = cross_entropy(scores, batch->target);
    send_all_back(loss);
    for (int i = 0; i < 2; i++) {
        td_sub_(p[i]->value, td_mul_scalar(p[i]->grad, td_float(0.1)));
        td_zero_(p[i]->grad);
    }
    return td_item_double(loss->value);
}
/* leak: functions that report on the run */
static double resident(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1)
        pages = 0;
    if (file != NULL)
        fclose(file);
    return (double)(pages * sysconf(_SC_PAGESIZE)) / 1e6;
}

/* leak: function report_counters */
static void report_counters(int step)
{
    const td_memory_info m = td_memory_stats();
    const int64_t others = m.live_objects - m.live_tensors
                         - m.live_nodes;
    printf("%4d %6.0f %7.0f %7.0f %7d %6lld %8lld %7lld\n", step,
           resident(), (double)m.bytes / 1e6,
           (double)m.cached_bytes / 1e6, td_self()->depth,
           (long long)m.live_nodes, (long long)m.live_tensors,
           (long long)others);
}

static void report(const char *what, int step, double loss)
{
    static double total;
    total += loss;
    if (step == 1 && strcmp(what, "counters") == 0)
        printf("step    RSS  in use  cached  scopes  nodes  tensors"
               "  others\n");
    if (step == 1 && strcmp(what, "rss") == 0)
        printf("step,rss\n");
    if (strcmp(what, "rss") == 0 && (step % 10 == 0 || step == 1))
        printf("%d,%.1f\n", step, resident());
    else if (strcmp(what, "counters") == 0 && step % 50 == 0)
        report_counters(step);
    else if (strcmp(what, "loss") == 0 && step % 100 == 0)
        printf("steps %3d to %3d  mean loss %.3f\n", step - 99, step,
               total / 100);
    total = step % 100 ? total : 0;
    fflush(stdout);
}
/* leak: function parameter of the network */
static var *parameter(int64_t out, int64_t in)
{
    const td_tensor_options plain = TD_DEFAULTS;
    td_tensor *p = td_randn(TD_DIMS(out, in + 1), plain);
    return new_var(LEAF, td_mul_scalar(p, td_float(0.03)));
}
/* leak: function train */
static void train(const char *what, int steps)
{
    var *p[] = { parameter(128, 784), parameter(10, 128) };
    td_loader *loader = td_data_loader(td_fashion_mnist(NULL, true),
        64, (td_loader_options){ .shuffle = true });
    td_batch batch;
    td_scope_begin();
    for (int i = 1; i <= steps && td_loader_next(loader, &batch); i++) {
        report(what, i, learn(p, &batch));
        td_scope_end();
        td_scope_begin();
    }
    td_scope_end();
}
/* leak: function call of one operator */
static var *call(int op, var *a, var *b)
{
    switch (op) {
    case MATMUL:
        return matmul(a, b);
    case TRANSPOSE:
        return transpose(a);
    case SLICE:
        return slice(a, 0, 1);
    case ADD:
        return add(a, b);
    case RELU:
        return relu(a);
    case CROSS_ENTROPY:
        return cross_entropy(a, td_zeros(TD_DIMS(3),
            (td_tensor_options){ .dtype = TD_INT64 }));
    default:
        return new_var(LEAF, a->value);
    }
}
/* leak: function try_alone */
static void try_alone(int op, var *a, var *b)
{
    const int64_t before = td_memory_stats().live_objects;
    td_scope_begin();
    call(op, a, b);
    td_scope_end();
    printf("%-14s leaves %lld objects\n", op_names[op],
           (long long)(td_memory_stats().live_objects - before));
}

/* leak: main function of the leaking program */
int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "loss";
    td_scope_begin();
    td_manual_seed(0);
    if (strcmp(what, "alone") == 0) {
        var *a = parameter(3, 2), *b = parameter(3, 2);
        for (int op = LEAF + 1; op < OPS; op++)
            try_alone(op, a, b);
    } else {
        train(what, argc > 2 ? atoi(argv[2]) : 938);
    }
    for (int op = 0; strcmp(what, "alive") == 0 && op < OPS; op++)
        printf("%-14s made %5lld  alive %5lld\n", op_names[op],
               (long long)made[op], (long long)(made[op] - freed[op]));
    td_scope_end();
    if (td_failed())
        fprintf(stderr, "%s\n", td_error_message());
    return td_failed();
}
