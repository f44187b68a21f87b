/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "networks": edit that, not this file. */
/* Trains a network of three layers on images of clothes or digits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <treadle/treadle.h>

/* networks: struct training */
typedef struct {
    const char *data, *losses;   /* folder; file to write, or NULL */
    bool digits;                 /* MNIST, not Fashion-MNIST */
    int epochs, steps;           /* stop after so many; 0: never */
    double rate;
    uint64_t seed;

    td_dataset *train, *test;
    td_loader *loader;
    td_module *net;
    td_optimiser *sgd;
    FILE *record;
    int step;                    /* of the whole training */
    double total;                /* losses of this epoch, added up */
} training;
/* networks: function build_network */
static td_module *build_network(void)
{
    const td_linear_options plain = TD_DEFAULTS;
    td_scope_begin();
    td_module *layers[] = {
        td_linear_module(784, 256, plain), td_relu_module(),
        td_linear_module(256, 128, plain), td_relu_module(),
        td_linear_module(128, 10, plain) };
    return td_scope_end_with(td_sequential(layers, 5));
}
/* networks: function learn_batch */
/* Trains on one batch; its loss, or NaN after a failure. */
static double learn_batch(td_module *net, td_optimiser *sgd,
                         const td_batch *batch)
{
    /* four-calls: exercise four-calls */
    td_zero_grad(sgd);
    td_tensor *scores = td_forward(net, batch->input);
    td_tensor *loss = td_cross_entropy(scores, batch->target,
                          (td_cross_entropy_options)TD_DEFAULTS);
    td_backward(loss, (td_backward_options)TD_DEFAULTS);
    td_step(sgd);
    return td_failed() ? NAN : td_item_double(loss);
}
/* networks: function show_progress */
static bool finished(const training *t)
{
    return t->steps > 0 && t->step >= t->steps;
}
static void show_progress(const training *t, int epoch, int steps,
                          double loss)
{
    const int64_t all = td_loader_length(t->loader);
    if (steps % 50 == 0 || steps == all || finished(t))
        fprintf(stderr, "\repoch %d  step %d/%lld  loss %.4f ", epoch,
                steps, (long long)all, loss);
    if (steps == all || finished(t))
        fprintf(stderr, "\n");
}
/* networks: function train_epoch */
/* Trains one epoch; the number of its steps. */
static int train_epoch(training *t, int epoch)
{
    int steps = 0;
    td_batch batch;
    t->total = 0;
    td_scope_begin();
    while (!finished(t) && td_loader_next(t->loader, &batch)) {
        /* networks: learn from the batch and write it down */
        const double loss = learn_batch(t->net, t->sgd, &batch);
        t->total += loss;
        t->step++, steps++;
        if (t->record && !td_failed())
            fprintf(t->record, "%.9g\n", loss);
        show_progress(t, epoch, steps, loss);
        td_scope_end();
        td_scope_begin();
    }
    td_scope_end();
    return steps;
}
/* networks: function count_correct */
/* How many of the dataset's images the network names correctly. */
static int64_t count_correct(td_module *net, td_dataset *data)
{
    int64_t correct = 0;
    td_batch batch;
    td_scope_begin();
    td_loader *loader = td_data_loader(data, 1000,
                                       (td_loader_options)TD_DEFAULTS);
    td_no_grad_begin();
    td_scope_begin();
    while (td_loader_next(loader, &batch)) {
        /* networks: count the images that are named correctly */
        td_tensor *named = td_argmax(td_forward(net, batch.input),
                               (td_arg_options){ .dim = td_some(1) });
        td_tensor *right = td_eq(named, batch.target);
        correct += td_item_int(td_sum(right,
                                      (td_reduce_options)TD_DEFAULTS));
        td_scope_end();
        td_scope_begin();
    }
    td_scope_end();
    td_no_grad_end();
    td_scope_end();
    return correct;
}
/* networks: function set_option */
static bool set_option(training *t, const char *name, const char *value)
{
    char *end = "";
    if (strcmp(name, "--data") == 0)
        t->data = value;
    else if (strcmp(name, "--losses") == 0)
        t->losses = value;
    else if (strcmp(name, "--epochs") == 0)
        t->epochs = (int)strtol(value, &end, 10);
    else if (strcmp(name, "--steps") == 0)
        t->steps = (int)strtol(value, &end, 10);
    else if (strcmp(name, "--lr") == 0)
        t->rate = strtod(value, &end);
    else if (strcmp(name, "--seed") == 0)
        t->seed = strtoull(value, &end, 10);
    else
        return false;
    return *end == '\0' && *value != '\0';
}
/* networks: function read_options */
static bool read_options(training *t, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        if (strcmp(name, "--mnist") == 0) {
            t->digits = true;
            continue;
        }
        const char *value = i + 1 < argc ? argv[++i] : NULL;
        if (!value || !set_option(t, name, value)) {
            fprintf(stderr, "usage: classifier [--mnist] [--data DIR] "
                "[--epochs N] [--steps N] [--lr R] [--seed S] "
                "[--losses FILE]\n");
            return false;
        }
    }
    return true;
}
/* networks: function prepare_training */
static void prepare_training(training *t)
{
    td_tensor *parameters[6];
    td_manual_seed(t->seed);
    t->net = build_network();
    /* networks: open the images to learn from and to ask about */
    t->train = t->digits ? td_mnist(t->data, true)
                         : td_fashion_mnist(t->data, true);
    t->test = t->digits ? td_mnist(t->data, false)
                        : td_fashion_mnist(t->data, false);
    t->loader = td_data_loader(t->train, 64,
                               (td_loader_options){ .shuffle = true });
    const int n = td_parameters(t->net, parameters, 6);
    t->sgd = td_sgd(parameters, n, t->rate,
                    (td_sgd_options){ .momentum = 0.9 });
}
/* networks: function run_training */
static void run_training(training *t)
{
    for (int epoch = 1; epoch <= t->epochs && !td_failed(); epoch++) {
        const int steps = train_epoch(t, epoch);
        const int64_t right = count_correct(t->net, t->test);
        const int64_t all = td_dataset_size(t->test);
        if (td_failed() || steps == 0)
            break;
        printf("epoch %d: mean loss %.4f, %.2f %% of %lld test images "
               "right\n", epoch, t->total / steps,
               100.0 * (double)right / (double)all, (long long)all);
        fflush(stdout);
    }
}
/* networks: function main of the classifier */
int main(int argc, char **argv)
{
    training t = { .epochs = 5, .rate = 0.02 };
    /* networks: read the options and open the record */
    if (!read_options(&t, argc, argv))
        return 2;
    if (t.losses && !(t.record = fopen(t.losses, "w"))) {
        perror(t.losses);
        return 1;
    }
    td_scope_begin();
    prepare_training(&t);
    run_training(&t);
    if (td_failed())
        fprintf(stderr, "%s\n", td_error_message());
    td_scope_end();
    if (t.record)
        fclose(t.record);
    printf("graph nodes alive: %lld\n",
           (long long)td_live_node_count());
    return td_failed();
}
