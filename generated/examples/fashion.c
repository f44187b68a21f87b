/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "trainings": edit that, not this file. */
/* Trains a network on images of clothes; goes on where it was killed.

   usage: fashion [EPOCHS [FILE [STOP]]]: with FILE the state is kept
   there and taken from there if it exists; ends at once before step
   STOP. */
#include <stdio.h>
#include <stdlib.h>
#include <treadle/treadle.h>
#include <unistd.h>

enum { CAPACITY = 16, BATCH = 64, EVERY = 100 };
typedef struct {
    const char *file;
    int64_t step, stop;
    td_dataset *train, *test;
    td_loader *loader;
    td_module *net;
    td_optimiser *sgd;
} training;

/* trainings: function tell_place */
static td_tensor *tell_place(const training *t)
{
    const td_random_state now = td_random_swap((td_random_state){ 0 });
    td_random_swap(now);
    const td_loader_place at = td_loader_tell(t->loader);
    const int64_t k[] = { (int64_t)now.seed, (int64_t)now.stream,
        (int64_t)at.drawn.seed, (int64_t)at.drawn.stream,
        (int64_t)at.epoch, at.next, t->step };
    return td_from_data(k, TD_DIMS(7),
                        (td_tensor_options){ .dtype = TD_INT64 });
}
/* trainings: function seek_place */
static void seek_place(training *t, td_tensor *place)
{
    int64_t k[7] = { 0 };
    for (int i = 0; i < 7; i++)
        k[i] = td_item_int(td_select(place, 0, i));
    td_loader_seek(t->loader, (td_loader_place){
        { (uint64_t)k[2], (uint64_t)k[3] }, (uint64_t)k[4], k[5] });
    td_random_swap((td_random_state){ (uint64_t)k[0], (uint64_t)k[1] });
    t->step = k[6];
}
/* trainings: functions that keep a training in C */
static bool save_training(training *t)
{
    td_named_tensor own[CAPACITY];
    td_to_save all[2 * CAPACITY + 1];
    char names[CAPACITY][sizeof own->name + 9];
    const int n = td_named_parameters(t->net, own, CAPACITY);
    td_scope_begin();
    for (int i = 0; i < n; i++) {
        snprintf(names[i], sizeof *names, "momentum.%.95s",
                 own[i].name);
        all[2 * i] = (td_to_save){ own[i].name, own[i].tensor };
        all[2 * i + 1] = (td_to_save){ names[i],
            td_optimiser_state(t->sgd, i, 0) };
    }
    all[2 * n] = (td_to_save){ "place", tell_place(t) };
    const bool good = !td_failed()
        && td_safetensors_save(t->file, all, 2 * n + 1, NULL);
    td_scope_end();
    return good;
}

static bool resume_training(training *t)
{
    td_named_tensor own[CAPACITY];
    char name[sizeof own->name + 9];
    td_scope_begin();
    td_safetensors *f = td_safetensors_open(t->file, false);
    const int n = td_named_parameters(t->net, own, CAPACITY);
    td_no_grad_begin();
    for (int i = 0; i < n && !td_failed(); i++) {
        snprintf(name, sizeof name, "momentum.%.95s", own[i].name);
        td_tensor *momentum = td_safetensors_get(f, name);
        td_copy_(own[i].tensor, td_safetensors_get(f, own[i].name));
        td_set_optimiser_state(t->sgd, i, 0, momentum);
    }
    td_no_grad_end();
    seek_place(t, td_failed() ? NULL : td_safetensors_get(f, "place"));
    td_scope_end();
    return !td_failed();
}
/* trainings: functions that train in C */
static td_module *convolution(int64_t in, int64_t out)
{
    return td_conv2d_module((td_args){ .in_channels = in,
        .out_channels = out, .kernel_size = TD_DIMS(3),
        .padding = TD_DIMS(1) });
}

static td_module *build_network(void)
{
    const td_linear_options plain = TD_DEFAULTS;
    const td_args by_two = { .kernel_size = TD_DIMS(2) };
    td_scope_begin();
    td_module *layers[] = {
        td_unflatten_module((td_args){ .dim = td_some(1),
                                       .sizes = TD_DIMS(1, 28, 28) }),
        convolution(1, 8), td_relu_module(),
        td_max_pool2d_module(by_two),
        convolution(8, 16), td_relu_module(),
        td_max_pool2d_module(by_two),
        td_flatten_module((td_args){ 0 }),
        td_linear_module(16 * 49, 128, plain), td_relu_module(),
        td_linear_module(128, 10, plain) };
    return td_scope_end_with(td_sequential(layers, 11));
}

static double learn(training *t, const td_batch *batch)
{
    td_zero_grad(t->sgd);
    td_tensor *loss = td_cross_entropy(td_forward(t->net, batch->input),
        batch->target, (td_cross_entropy_options)TD_DEFAULTS);
    td_backward(loss, (td_backward_options)TD_DEFAULTS);
    td_step(t->sgd);
    return td_item_double(loss);
}

static double train_epoch(training *t)
{
    double total = 0;
    int64_t steps = 0;
    td_batch batch;
    td_scope_begin();
    while (td_loader_next(t->loader, &batch)) {
        total += learn(t, &batch);
        t->step++, steps++;
        if (t->file && t->step % EVERY == 0)
            save_training(t);
        if (t->step == t->stop)
            _exit(9);               /* as if it had been killed */
        td_scope_end();
        td_scope_begin();
    }
    td_scope_end();
    return total / (double)(steps ? steps : 1);
}

static double share_right(training *t)
{
    double right = 0;
    td_batch batch;
    td_scope_begin();
    td_loader *loader = td_data_loader(t->test, 1000,
                                       (td_loader_options)TD_DEFAULTS);
    td_no_grad_begin();
    while (td_loader_next(loader, &batch))
        right += td_item_double(td_accuracy(
            td_forward(t->net, batch.input), batch.target, 1)) / 10;
    td_no_grad_end();
    td_scope_end();
    return 100 * right;
}
/* trainings: function main of a training in C */
int main(int argc, char **argv)
{
    training t = { .file = argc > 2 ? argv[2] : NULL,
                   .stop = argc > 3 ? atoll(argv[3]) : 0 };
    const int64_t epochs = argc > 1 ? atoll(argv[1]) : 5;
    td_tensor *parameters[CAPACITY];
    td_scope_begin();
    td_manual_seed(0);
    t.net = build_network();
    t.train = td_fashion_mnist(NULL, true);
    t.test = td_fashion_mnist(NULL, false);
    t.loader = td_data_loader(t.train, BATCH,
                              (td_loader_options){ .shuffle = true });
    const int n = td_parameters(t.net, parameters, CAPACITY);
    t.sgd = td_sgd(parameters, n, 0.02,
                   (td_sgd_options){ .momentum = 0.9 });
    if (t.file && access(t.file, F_OK) == 0)
        resume_training(&t);
    const int64_t steps = td_loader_length(t.loader);
    while (!td_failed() && t.step < epochs * steps) {
        const double loss = train_epoch(&t);
        if (!td_failed())
            printf("epoch %lld: mean loss %.4f, %.2f %% right\n",
                   (long long)(t.step / steps), loss, share_right(&t));
        fflush(stdout);
    }
    if (t.file && !td_failed())
        save_training(&t);
    if (td_failed())
        fprintf(stderr, "%s\n", td_error_message());
    td_scope_end();
    return td_failed();
}
