/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "tracing": edit that, not this file. */
/* needs: codegen networks */
/* A program, followed: one-step [smallest | chain | step] [WORD] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <treadle/treadle.h>
#include "compiler/backend-c.h"

static char text[1 << 18];
static const td_device cpu = { TD_DEVICE_CPU, 0 };
static td_tensor *weight[6];

/* tracing: function trace_step */
static td_program *trace_step(td_module *net, td_optimiser *sgd)
{
    td_trace_begin(true);
    td_tensor *x = td_trace_input(TD_DIMS(64, 784), TD_FLOAT32, cpu);
    td_tensor *t = td_trace_input(TD_DIMS(64), TD_INT64, cpu);
    td_zero_grad(sgd);
    td_tensor *loss = td_cross_entropy(td_forward(net, x), t,
                          (td_cross_entropy_options)TD_DEFAULTS);
    td_backward(loss, (td_backward_options)TD_DEFAULTS);
    td_step(sgd);
    return td_trace_end(&loss, 1);
}

/* tracing: traces to look at */
static td_program *trace_classifier(void)
{
    const td_linear_options plain = TD_DEFAULTS;
    td_module *layers[] = {
        td_linear_module(784, 256, plain), td_relu_module(),
        td_linear_module(256, 128, plain), td_relu_module(),
        td_linear_module(128, 10, plain) };
    td_module *net = td_sequential(layers, 5);
    const int n = td_parameters(net, weight, 6);
    return trace_step(net, td_sgd(weight, n, 0.1,
                                  (td_sgd_options)TD_DEFAULTS));
}

static td_program *trace_smallest(void)
{
    td_tensor *w = td_full((td_dims){ 0 }, td_float(2),
                           (td_tensor_options)TD_DEFAULTS);
    td_set_requires_grad(w, true);
    td_optimiser *sgd = td_sgd(&w, 1, 0.1,
                               (td_sgd_options)TD_DEFAULTS);
    td_trace_begin(true);
    td_tensor *x = td_trace_input((td_dims){ 0 }, TD_FLOAT32, cpu);
    td_zero_grad(sgd);
    td_tensor *loss = td_square(td_mul(w, x));
    td_backward(loss, (td_backward_options)TD_DEFAULTS);
    td_step(sgd);
    return td_trace_end(&loss, 1);
}
static td_program *trace_chain(void)
{
    td_trace_begin(true);
    td_tensor *x = td_trace_input(TD_DIMS(1000, 1000), TD_FLOAT32, cpu);
    td_tensor *y = td_relu(td_add_scalar(td_abs(td_mul_scalar(
        td_neg(x), td_float(3))), td_float(-1)));
    return td_trace_end(&y, 1);
}

/* tracing: functions that show a program */
static int readers_of(const td_program *p, int v)
{
    int n = 0;
    TD_EACH(s, p, steps)
        for (int i = 0; i < p->step[s].n_in; i++)
            for (int k = 0; k < p->step[s].in[i].count; k++)
                n += p->step[s].in[i].values[k] == v;
    return n;
}

static void show_readers(const td_program *p)
{
    int once = 0, next = 0;
    TD_EACH(s, p, steps)
        for (int k = 0; k < p->step[s].n_out; k++) {
            const int v = p->step[s].out[k];
            const bool one = readers_of(p, v) == 1;
            once += one;
            for (int i = 0; one && s + 1 < p->n_steps
                            && i < p->step[s + 1].n_in; i++)
                next += p->step[s + 1].in[i].count > 0
                     && p->step[s + 1].in[i].values[0] == v;
        }
    printf("%d calls of operators in one step\n"
           "%d results are read once and never again\n"
           "%d of these by the very next call\n", p->n_steps, once,
           next);
}

static void show(const td_program *p)
{
    if (p != NULL && td_program_print(p, text, sizeof text) > 0)
        fputs(text, stdout);
}
static void show_lives(const td_lowered *l)
{
    printf("value,first,last,from,upto\n");
    for (int v = 0; l != NULL && v < l->program->n_values; v++) {
        const td_placed *x = &l->value[v];
        if (x->place >= 0)
            printf("%d,%d,%d,%g,%g\n", v, x->first, x->last + 1,
                   (double)x->place / 1024, (double)(x->place
                       + (x->like->storage->bytes + 63) / 64 * 64)
                   / 1024);
    }
}

static void show_lowered(const char *word, td_program *p)
{
    td_lowered *l = td_lower(p);
    char *code = NULL;
    if (strcmp(word, "simplified") == 0 && l != NULL)
        show(l->program);
    else if (strcmp(word, "lives") == 0)
        show_lives(l);
    else if (strcmp(word, "plan") == 0 && l != NULL
             && td_lowered_print(l, text, sizeof text) > 0)
        fputs(text, stdout);
    else if (l != NULL && (code = td_emit_c(l, false)) != NULL)
        fputs(code, stdout);
    free(code);
    td_lowered_free(l);
}
static void show_losses(const char *backend)
{
    td_tensor *loss, *in[2];
    td_manual_seed(1);
    td_program *p = trace_classifier();
    td_executable *e = td_compile(p,
        (td_compile_options){ .backend = backend });
    in[0] = td_rand(TD_DIMS(64, 784), (td_tensor_options){ 0 });
    in[1] = td_randint(0, 10, TD_DIMS(64),
                       TD_OF(TD_INT64));
    printf("%-12s", backend);
    for (int i = 0; i < 3 && td_execute(e, in, 2, &loss); i++)
        printf(" %.7f", td_item_double(loss));
    puts("");
}
static const char *read_text(void)
{
    text[fread(text, 1, sizeof text - 1, stdin)] = '\0';
    return text;
}

static td_tensor *count_up(const td_ir_value *v)
{
    int64_t n = 1;
    for (int d = 0; d < v->shape.count; d++)
        n *= v->shape.at[d];
    td_tensor *x = td_arange(td_float(1), td_float((double)(n + 1)),
                             td_float(1), (td_tensor_options){ 0 });
    return td_reshape(td_to(x, v->dtype), v->shape);
}

static void show_both(const char *backend)
{
    td_program *p = td_program_parse(text);
    td_executable *e = td_compile(p,
        (td_compile_options){ .backend = backend });
    td_tensor *in[8], *out[8];
    int n = 0;
    for (int v = 0; e != NULL && v < p->n_values && n < 8; v++)
        if (p->value[v].origin == TD_IR_INPUT)
            in[n++] = count_up(&p->value[v]);
    printf("%-12s", backend);
    if (!td_execute(e, in, n, out))
        return;
    td_tensor *y = td_contiguous(td_to(out[0], TD_FLOAT64));
    const double *number = td_data(y);
    for (int i = 0; i < td_numel(y) && i < 8; i++)
        printf(" %g", number[i]);
    puts("");
}

int main(int n, char **words)
{
    const char *what = n > 2 ? words[1] : "step";
    const char *word = n > 1 ? words[n - 1] : "trace";
    td_scope_begin();
    td_program *p = strcmp(what, "smallest") == 0 ? trace_smallest()
        : strcmp(what, "chain") == 0 ? trace_chain()
        : trace_classifier();
    if (strcmp(word, "check") == 0)
        show(td_program_parse(read_text()));
    else if (strcmp(word, "both") == 0)
        read_text(), show_both("interpreter"), show_both("c");
    else if (strcmp(word, "trace") == 0)
        show(p);
    else if (strcmp(word, "readers") == 0)
        show_readers(p);
    else if (strcmp(word, "expanded") == 0)
        show(td_program_expand(p));
    else if (strcmp(word, "losses") == 0)
        show_losses("interpreter"), show_losses("c");
    else
        show_lowered(word, p);
    if (td_failed())
        printf("%s\n", td_error_message());
    td_scope_end();
    return td_failed();
}
