/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "trainings": edit that, not this file. */
/* The loop of four programs, which train a network and go on where
   they were killed.

   usage: NAME [EPOCHS [FOLDER [STOP]]]: in FOLDER the state is kept and
   taken from if it is there, beside the weights, a table of numbers and
   a picture of losses; ends at once, as if killed, after step STOP. */
#pragma once
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <treadle/treadle.h>
#include <unistd.h>

enum { TENSORS = 160, STATES = 4, PLACE = 9, NUMBERS = 4, EVERY = 100 };
static const td_tensor_options reals = { .dtype = TD_FLOAT64 };

typedef struct training training;
struct training {
    const char *names[NUMBERS];  /* the first is the steps' own loss */
    int64_t epochs, batch;
    double rate, momentum;       /* without momentum: AdamW */
    void (*measure)(training *t, const td_batch *batch,
                    td_tensor **found);      /* the rest; loss first */
    void (*tell)(training *t);   /* at the end; or NULL */
    td_dataset *train, *test;
    td_module *net;
    td_optimiser *optimiser;
    td_loader *loader;
    const char *folder;
    int64_t step, steps, stop;   /* steps: of an epoch */
    double (*history)[NUMBERS];  /* of each epoch; the last one sums */
    void *own;                   /* the program's */
};

/* trainings: functions that name files in C */
static char path[4096];

static const char *file(const training *t, const char *name)
{
    snprintf(path, sizeof path, "%s/%s", t->folder, name);
    return path;
}
/* The first of two that is there, in the folder of data sets. */
static inline const char *find_data(const char *name, const char *other)
{
    const char *folder = getenv("TREADLE_DATA");
    folder = folder ? folder : "data";
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (access(path, R_OK) != 0)
        snprintf(path, sizeof path, "%s/%s", folder, other);
    return path;
}
/* trainings: functions that tell and seek a place */
/* trainings: function tell_place */
static td_tensor *tell_place(const training *t)
{
    const td_random_state now = td_random_swap((td_random_state){ 0 });
    td_random_swap(now);
    const td_loader_place at = td_loader_tell(t->loader);
    int64_t kept = 0;
    for (int k = 0; k < STATES; k++)
        kept |= td_optimiser_state(t->optimiser, 0, k) ? 1 << k : 0;
    const int64_t k[PLACE] = { (int64_t)now.seed, (int64_t)now.stream,
        (int64_t)at.drawn.seed, (int64_t)at.drawn.stream,
        (int64_t)at.epoch, at.next, kept, t->epochs, t->step };
    return td_from_data(k, TD_DIMS(PLACE),
                        (td_tensor_options){ .dtype = TD_INT64 });
}
/* trainings: function seek_place */
static void seek_place(training *t, td_safetensors *f)
{
    char name[24];
    int64_t k[PLACE] = { 0 };
    td_tensor *place = td_failed() ? NULL
                                   : td_safetensors_get(f, "place");
    for (int i = 0; i < PLACE; i++)
        k[i] = td_item_int(td_select(place, 0, i));
    if (!td_failed() && k[7] != t->epochs)
        td_fail(TD_ERROR_VALUE, "checkpoint", "has epochs %lld, not "
                "%lld", (long long)k[7], (long long)t->epochs);
    const int n = td_parameters(t->net, NULL, 0);
    for (int i = 0; i < n * STATES && !td_failed(); i++) {
        snprintf(name, sizeof name, "optimiser.%d.%d", i / STATES,
                 i % STATES);
        if (k[6] >> i % STATES & 1)
            td_set_optimiser_state(t->optimiser, i / STATES, i % STATES,
                                   td_safetensors_get(f, name));
    }
    td_loader_seek(t->loader, (td_loader_place){
        { (uint64_t)k[2], (uint64_t)k[3] }, (uint64_t)k[4], k[5] });
    td_random_swap((td_random_state){ (uint64_t)k[0], (uint64_t)k[1] });
    t->step = k[8];
}
/* trainings: function read_history */
static void read_history(training *t, td_safetensors *f)
{
    td_tensor *rows = td_failed() ? NULL
                                  : td_safetensors_get(f, "history");
    const int64_t epoch = t->step / t->steps;
    if (rows && (t->step < 0 || epoch > t->epochs
        || td_dtype_of(rows) != TD_FLOAT64
        || td_numel(rows) != (epoch + 1) * NUMBERS))
        td_fail(TD_ERROR_VALUE, "checkpoint", "a history that does not "
                "fit step %lld", (long long)t->step);
    if (!td_failed())
        memcpy(t->history, td_data(rows),
               (size_t)(epoch + 1) * sizeof *t->history);
}
/* trainings: functions that keep a training in C */
static bool save_training(const training *t)
{
    td_named_tensor own[TENSORS];
    td_to_save all[TENSORS * (1 + STATES) + 2];
    char names[TENSORS][STATES][24];
    td_scope_begin();
    const int n = td_named_state(t->net, own, TENSORS);
    const int moved = td_parameters(t->net, NULL, 0);
    int count = 0;
    for (int i = 0; i < n; i++)
        all[count++] = (td_to_save){ own[i].name, own[i].tensor };
    for (int i = 0; i < moved * STATES; i++) {
        char *name = names[i / STATES][i % STATES];
        td_tensor *x = td_optimiser_state(t->optimiser, i / STATES,
                                          i % STATES);
        snprintf(name, sizeof names[0][0], "optimiser.%d.%d",
                 i / STATES, i % STATES);
        if (x)
            all[count++] = (td_to_save){ name, x };
    }
    all[count++] = (td_to_save){ "place", tell_place(t) };
    all[count++] = (td_to_save){ "history", td_from_data(t->history,
        TD_DIMS(t->step / t->steps + 1, NUMBERS), reals) };
    const bool good = !td_failed() && td_safetensors_save(
        file(t, "checkpoint.safetensors"), all, count, NULL);
    td_scope_end();
    return good;
}

static bool resume_training(training *t)
{
    td_named_tensor own[TENSORS];
    td_scope_begin();
    td_safetensors *f = td_safetensors_open(
        file(t, "checkpoint.safetensors"), false);
    const int n = td_named_state(t->net, own, TENSORS);
    td_no_grad_begin();
    for (int i = 0; i < n && !td_failed(); i++)
        td_copy_(own[i].tensor, td_safetensors_get(f, own[i].name));
    td_no_grad_end();
    seek_place(t, f);
    read_history(t, f);
    td_scope_end();
    return !td_failed();
}
/* trainings: functions that report a training in C */
static void write_table(const training *t, int64_t epochs)
{
    FILE *f = fopen(file(t, "log.csv"), "w");
    if (!f)
        return;
    fprintf(f, "epoch");
    for (int k = 0; k < NUMBERS && t->names[k]; k++)
        fprintf(f, ",%s", t->names[k]);
    for (int64_t i = 0; i < epochs; i++) {
        fprintf(f, "\n%lld", (long long)i + 1);
        for (int k = 0; k < NUMBERS && t->names[k]; k++)
            fprintf(f, ",%.9g", t->history[i][k]);
    }
    fprintf(f, "\n");
    fclose(f);
}

static void write_curves(const training *t, int64_t epochs)
{
    static const char *const inks[] = { "#2F5D8A", "#B5532A" };
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < 2 * epochs; i++) {
        low = fmin(low, t->history[i / 2][i % 2]);
        high = fmax(high, t->history[i / 2][i % 2]);
    }
    FILE *f = fopen(file(t, "curves.svg"), "w");
    if (!f)
        return;
    /* trainings: draw the losses of the epochs */
    const double wide = epochs > 1 ? (double)(epochs - 1) : 1;
    const double tall = high > low ? high - low : 1;
    fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\" "
        "height=\"400\" font-family=\"sans-serif\" font-size=\"12\">\n"
        "<path d=\"M60 40V360H620\" stroke=\"#1F2933\" fill=\"none\"/>\n"
        "<text x=\"8\" y=\"44\">%.4g</text>\n"
        "<text x=\"8\" y=\"364\">%.4g</text>\n"
        "<text x=\"600\" y=\"378\">%lld</text>\n", high, low,
        (long long)epochs);
    for (int k = 0; k < 2; k++) {
        fprintf(f, "<text x=\"560\" y=\"%d\" fill=\"%s\">%s</text>\n"
            "<polyline fill=\"none\" stroke=\"%s\" points=\"", 50 + 16 * k,
            inks[k], t->names[k], inks[k]);
        for (int64_t i = 0; i < epochs; i++)
            fprintf(f, "%.1f,%.1f ", 60 + 560 * (double)i / wide,
                    360 - 320 * (t->history[i][k] - low) / tall);
        fprintf(f, "\"/>\n");
    }
    fprintf(f, "</svg>\n");
    fclose(f);
}

static double seconds(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void show_progress(const training *t, double begun,
                          int64_t first, double *shown)
{
    const double now = seconds();
    const int64_t done = t->step - t->step / t->steps * t->steps;
    const int64_t at = done ? done : t->steps;
    if (!isatty(2) || (now - *shown < 0.1 && at < t->steps))
        return;
    *shown = now;
    const int64_t epoch = (t->step - 1) / t->steps;
    const double rate = (double)(t->step - first) / (now - begun);
    const int left = (int)((double)(t->steps - at) / rate);
    fprintf(stderr, "\r|%-20.*s| %lld/%lld  epoch %lld  loss %.4f  "
        "%.1f/s  %d:%02d left\x1b[K", (int)(20 * at / t->steps),
        "####################", (long long)at, (long long)t->steps,
        (long long)epoch + 1, t->history[epoch][0] / (double)at, rate,
        left / 60, left % 60);
    fflush(stderr);
}
/* trainings: functions that train in C */
static void clip_gradients(td_tensor **p, int n, double most)
{
    double squares = 0;
    td_no_grad_begin();
    for (int i = 0; i < n; i++)
        squares += td_item_double(td_sum(td_square(td_grad_of(p[i])),
                                         (td_reduce_options){ 0 }));
    for (int i = 0; i < n && sqrt(squares) > most; i++)
        td_mul_scalar_(td_grad_of(p[i]),
                       td_float(most / (sqrt(squares) + 1e-6)));
    td_no_grad_end();
}

static double learn(training *t, const td_batch *batch)
{
    td_tensor *found[NUMBERS] = { NULL }, *p[TENSORS];
    const int n = td_parameters(t->net, p, TENSORS);
    td_zero_grad(t->optimiser);
    t->measure(t, batch, found);
    td_backward(found[0], (td_backward_options)TD_DEFAULTS);
    clip_gradients(p, td_failed() ? 0 : n, 1);
    td_set_learning_rate(t->optimiser, td_one_cycle_lr(t->rate,
        (double)t->step, (double)(t->epochs * t->steps + 1), 0.3, 25,
        1e4));
    td_step(t->optimiser);
    return td_failed() ? NAN : td_item_double(found[0]);
}

static void evaluate(training *t, double *means)
{
    double total[NUMBERS] = { 0 }, count = 0;
    td_batch batch;
    td_scope_begin();
    td_loader *loader = td_data_loader(t->test, t->batch,
                                       (td_loader_options)TD_DEFAULTS);
    td_no_grad_begin();
    td_train(t->net, false);
    td_scope_begin();
    while (td_loader_next(loader, &batch)) {
        td_tensor *found[NUMBERS] = { NULL };
        t->measure(t, &batch, found);
        for (int k = 1; k < NUMBERS && t->names[k]; k++)
            total[k] += td_item_double(found[k - 1])
                      * (double)batch.size;
        count += (double)batch.size;
        td_scope_end();
        td_scope_begin();
    }
    td_scope_end();
    td_train(t->net, true);
    td_no_grad_end();
    td_scope_end();
    for (int k = 1; k < NUMBERS; k++)
        means[k] = total[k] / count;
}

static void end_epoch(training *t)
{
    const int64_t epoch = t->step / t->steps;
    double *row = t->history[epoch - 1];
    row[0] /= (double)t->steps;
    evaluate(t, row);
    if (td_failed())
        return;
    printf("epoch %lld:", (long long)epoch);
    for (int k = 0; k < NUMBERS && t->names[k]; k++)
        printf("%s %s %.4g", k ? "," : "", t->names[k], row[k]);
    printf("\n");
    fflush(stdout);
    if (t->folder) {
        write_table(t, epoch);
        write_curves(t, epoch);
        save_training(t);
    }
}

static volatile sig_atomic_t caught;

static void note_signal(int number)
{
    caught = number;
    signal(number, SIG_DFL);
}

static void train_epoch(training *t)
{
    td_batch batch;
    const double begun = seconds();
    const int64_t first = t->step, epoch = t->step / t->steps;
    double shown = begun;
    td_scope_begin();
    while (!caught && td_loader_next(t->loader, &batch)) {
        t->history[epoch][0] += learn(t, &batch);
        t->step++;
        show_progress(t, begun, first, &shown);
        if (t->folder && (caught || t->step % EVERY == 0))
            save_training(t);
        if (t->step == t->stop)
            _exit(9);               /* as if it had been killed */
        td_scope_end();
        td_scope_begin();
    }
    td_scope_end();
    if (isatty(2))
        fprintf(stderr, "\n");
    if (!td_failed() && t->step == (epoch + 1) * t->steps)
        end_epoch(t);
}

static int64_t number_of(const char *word)
{
    char *end;
    const int64_t n = strtoll(word, &end, 10);
    if (end == word || *end != '\0' || n < 0) {
        fprintf(stderr, "expected a number, got '%s'\n", word);
        exit(2);
    }
    return n;
}

static void begin_training(training *t, int argc, char **argv)
{
    t->epochs = argc > 1 ? number_of(argv[1]) : t->epochs;
    t->folder = argc > 2 ? argv[2] : NULL;
    t->stop = argc > 3 ? number_of(argv[3]) : 0;
    if (t->folder)
        mkdir(t->folder, 0777);
    signal(SIGINT, note_signal);
    signal(SIGTERM, note_signal);
    td_scope_begin();
    td_manual_seed(0);
}

static void prepare(training *t)
{
    td_tensor *p[TENSORS];
    const int n = td_parameters(t->net, p, TENSORS);
    t->optimiser = t->momentum > 0 ? td_sgd(p, n, t->rate,
        (td_sgd_options){ .momentum = t->momentum, .nesterov = true,
                          .weight_decay = 5e-4 })
        : td_adamw(p, n, t->rate, (td_adapt_options){ .amsgrad = 0 });
    t->loader = td_data_loader(t->train, t->batch,
                               (td_loader_options){ .shuffle = true });
    t->steps = td_failed() ? 1 : td_loader_length(t->loader);
    t->history = calloc((size_t)(t->epochs > 0 ? t->epochs : 0) + 1,
                        sizeof *t->history);
    if (!t->history || t->epochs < 1)
        td_fail(TD_ERROR_VALUE, "training", "%lld epochs",
                (long long)t->epochs);
    if (!td_failed() && t->folder
        && access(file(t, "checkpoint.safetensors"), F_OK) == 0)
        resume_training(t);
}

static int run_training(training *t)
{
    prepare(t);
    while (!td_failed() && !caught && t->step < t->epochs * t->steps)
        train_epoch(t);
    if (!td_failed() && caught)
        printf("stopped at step %lld; the same command goes on\n",
               (long long)t->step);
    if (!td_failed() && !caught && t->tell) {
        td_train(t->net, false);
        t->tell(t);
    }
    if (!td_failed() && !caught && t->folder)
        td_save_module(t->net, file(t, "model.safetensors"));
    const int status = td_failed() ? 1 : caught ? 128 + caught : 0;
    if (td_failed())
        fprintf(stderr, "%s\n", td_error_message());
    free(t->history);
    td_scope_end();
    return status;
}

/* Of images: the loss, and how many in a hundred are named right. */
static inline void name_pictures(training *t, const td_batch *batch,
                                 td_tensor **found)
{
    td_tensor *scores = td_forward(t->net, batch->input);
    found[0] = td_cross_entropy(scores, batch->target,
                                (td_cross_entropy_options)TD_DEFAULTS);
    found[1] = td_mul_scalar(td_accuracy(scores, batch->target, 1),
                             td_float(100));
}
