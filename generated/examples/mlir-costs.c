/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "tools": edit that, not this file. */
/* needs: networks mlir */
/* One training step: eager, compiled by way of C, by way of MLIR.
   With an argument it only compiles a linear layer, to look at. */
#include <stdio.h>
#include <time.h>
#include <treadle/treadle.h>

static td_tensor *learn(td_module *net, td_optimiser *sgd,
                        td_tensor *x, td_tensor *labels)
{
    td_zero_grad(sgd);
    td_tensor *loss = td_cross_entropy(td_forward(net, x), labels,
        (td_cross_entropy_options)TD_DEFAULTS);
    td_backward(loss, (td_backward_options)TD_DEFAULTS);
    td_step(sgd);
    return loss;
}

/* tools: function that looks at a linear layer */
static void look(td_module *linear)
{
    const td_device cpu = { TD_DEVICE_CPU, 0 };
    td_trace_begin(true);
    td_tensor *y = td_forward(linear, td_trace_input(TD_DIMS(16, 10),
                                                     TD_FLOAT32, cpu));
    td_program *p = td_trace_end(&y, 1);
    td_release(td_compile(p, (td_compile_options){
        .backend = "mlir-loops" }));
}

/* tools: function that measures a training step */
static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void measure(td_module *net)
{
    const td_device cpu = { TD_DEVICE_CPU, 0 };
    td_tensor *w[6], *at[2] = {
        td_randn(TD_DIMS(64, 784), (td_tensor_options)TD_DEFAULTS),
        td_randint(0, 10, TD_DIMS(64), (td_tensor_options){
            .dtype = TD_INT64 }) };
    td_parameters(net, w, 6);
    td_optimiser *sgd = td_sgd(w, 6, 0.01, (td_sgd_options){
        .momentum = 0.9 });
    double eager = 1;
    for (int k = 0; k < 100; k++) {
        const double began = now();
        td_scope_begin();
        learn(net, sgd, at[0], at[1]);
        td_scope_end();
        eager = now() - began < eager ? now() - began : eager;
    }
    printf("%-7s%29.0f us a step\n", "eager", eager * 1e6);
    td_trace_begin(true);
    td_tensor *x = td_trace_input(TD_DIMS(64, 784), TD_FLOAT32, cpu);
    td_tensor *t = td_trace_input(TD_DIMS(64), TD_INT64, cpu);
    td_tensor *loss = learn(net, sgd, x, t);
    td_program *p = td_trace_end(&loss, 1);
    for (int k = 0; k < 2 && !td_failed(); k++)
        /* tools: compile the step and time it */
        {
            double best = 1, began = now();
            td_executable *e = td_compile(p, (td_compile_options){
                .backend = k ? "mlir" : "c" });
            const double compiled = now() - began;
            for (int n = 0; e != NULL && n < 300; n++) {
                td_tensor *y = NULL;
                began = now();
                td_execute(e, at, 2, &y);
                best = now() - began < best ? now() - began : best;
                td_release(y);
            }
            printf("%-7s%6.0f ms to compile, %6.0f us a step\n",
                   k ? "mlir" : "c", compiled * 1e3, best * 1e6);
            td_release(e);
        }
}

int main(int argc, char **argv)
{
    const td_linear_options o = TD_DEFAULTS;
    (void)argv;
    if (argc > 1)
        look(td_linear_module(10, 10, o));
    else
        measure(td_sequential((td_module *[]){
            td_linear_module(784, 256, o), td_relu_module(),
            td_linear_module(256, 128, o), td_relu_module(),
            td_linear_module(128, 10, o) }, 5));
    if (td_failed())
        printf("%s\n", td_error_message());
    return td_failed();
}
