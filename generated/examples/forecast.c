/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "trainings": edit that, not this file. */
/* An LSTM that learns what comes next in a series, and tells it.

   usage: forecast airline|temperatures [EPOCHS [FOLDER [STOP]]] */
#include "training.h"

typedef struct {
    const char *name, *file;
    int64_t epochs, batch, window;
} series;
static const series known[] = {
    { "airline", "timeseries/airline-passengers.csv", 100, 16, 24 },
    { "temperatures", "timeseries/daily-min-temperatures.csv", 20, 64,
      32 } };

/* trainings: functions that forecast in C */
static td_tensor *last_of(td_tensor *x)
{
    return td_unsqueeze(td_select(x, 1, -1), 1);
}
static td_tensor *spread_of(td_tensor *x)
{
    return td_add_scalar(td_std(x, (td_var_options){
        .dims = TD_DIMS(1), .keepdim = true }), td_float(1e-3));
}
static td_tensor *guess(training *t, td_tensor *x)
{
    td_tensor *scale = spread_of(x), *last = last_of(x);
    td_tensor *y = td_forward(t->net, td_unsqueeze(
        td_div(td_sub(x, last), scale), 2));
    return td_add(last, td_mul(scale, y));
}
static void compare(training *t, const td_batch *b, td_tensor **found)
{
    td_tensor *miss = td_sub(guess(t, b->input), b->target);
    const td_reduce_options all = { 0 };
    found[0] = td_mean(td_square(td_div(miss, spread_of(b->input))),
                       all);
    found[1] = td_mean(td_abs(miss), all);
    found[2] = td_mean(td_abs(td_sub(last_of(b->input), b->target)),
                       all);
}
static td_dataset *part_of(td_tensor *rows, int64_t from, int64_t to,
                           int64_t window)
{
    const td_opt_i64 none = { 0 }, cut = td_some(window);
    rows = td_slice(rows, 0, (td_opt_i64)td_some(from),
                    (td_opt_i64)td_some(to), 1);
    return td_tensor_dataset(td_slice(rows, 1, none, cut, 1),
                             td_slice(rows, 1, cut, none, 1));
}
static void open_series(training *t, td_tensor *values, int64_t window)
{
    const int64_t n = values ? td_numel(values) - window : 0;
    td_tensor *rows = td_empty(TD_DIMS(n > 0 ? n : 0, window + 1),
                               (td_tensor_options){ 0 });
    for (int64_t i = 0; rows && i < n; i++)
        memcpy((float *)td_data(rows) + i * (window + 1),
               (float *)td_data(values) + i,
               (size_t)(window + 1) * sizeof(float));
    const int64_t cut = n - (n + window) / 5;
    t->train = part_of(rows, 0, cut, window);
    t->test = part_of(rows, cut, n, window);
    t->own = td_unsqueeze(td_slice(values, 0,
        (td_opt_i64)td_some(-window), (td_opt_i64){ 0 }, 1), 0);
}
static void go_on(training *t)
{
    td_tensor *x = t->own;
    td_no_grad_begin();
    for (int i = 0; i < 12; i++) {
        td_tensor *y = guess(t, x);
        x = td_cat((td_tensor *[]){ td_slice(x, 1,
            (td_opt_i64)td_some(1), (td_opt_i64){ 0 }, 1), y }, 2, 1);
        printf("%s%.1f", i ? " " : "next: ", td_item_double(y));
    }
    printf("\n");
    td_no_grad_end();
}
/* trainings: function main of the forecast */
int main(int argc, char **argv)
{
    const series *s = known;
    if (argc > 1 && strcmp(argv[1], known[1].name) == 0)
        s++;
    else if (argc < 2 || strcmp(argv[1], s->name) != 0)
        return fprintf(stderr, "usage: forecast airline|temperatures "
                       "[EPOCHS [FOLDER [STOP]]]\n"), 2;
    training t = { .names = { "train", "loss", "error", "persistence" },
        .epochs = s->epochs, .batch = s->batch, .rate = 2e-3,
        .measure = compare, .tell = go_on };
    begin_training(&t, argc - 1, argv + 1);
    t.net = td_forecaster_module((td_args){ .hidden_size = 32 });
    td_csv *table = td_csv_read(find_data(s->file, s->file), 0);
    open_series(&t, td_csv_column(table, 1, 1, TD_FLOAT32,
                                  NAN), s->window);
    return run_training(&t);
}
