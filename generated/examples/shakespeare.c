/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "trainings": edit that, not this file. */
/* A GPT that learns to write from a text, with a memory for what it
   has read. */
#include "training.h"

enum { PLACES = 64, LETTERS = 256, DRAWS = 4000 };
static const td_tensor_options numbers = { .dtype = TD_INT64 };
typedef struct {
    char letter[LETTERS];
    int64_t number[LETTERS], letters, n;
    td_tensor *all;              /* [n] */
} text;

/* trainings: functions that read a text in C */
static void read_text(text *t, const char *name)
{
    const td_tensor *bytes = td_bytes_read(name);
    t->n = bytes ? td_numel(bytes) : 0;
    const uint8_t *b = bytes ? td_data(bytes) : NULL;
    for (int64_t i = 0; i < t->n; i++)
        t->number[b[i]] = 1;
    for (int c = 0; c < LETTERS; c++)
        if (t->number[c]) {
            t->letter[t->letters] = (char)c;
            t->number[c] = t->letters++;
        }
    t->all = td_empty(TD_DIMS(t->n), numbers);
    for (int64_t i = 0; t->all && i < t->n; i++)
        ((int64_t *)td_data(t->all))[i] = t->number[b[i]];
}
static bool draw_windows(void *context, const int64_t *index, int64_t n,
                         td_tensor **input, td_tensor **target)
{
    const text *t = context;
    (void)index;
    td_tensor *at = td_randint(0, (t->n - PLACES) * 9 / 10, TD_DIMS(n),
                               numbers);
    *input = td_empty(TD_DIMS(n, PLACES), numbers);
    *target = td_empty(TD_DIMS(n, PLACES), numbers);
    for (int64_t i = 0; !td_failed() && i < n; i++) {
        const int64_t *from = (int64_t *)td_data(t->all)
                            + ((int64_t *)td_data(at))[i];
        int64_t *x = (int64_t *)td_data(*input) + i * PLACES;
        int64_t *y = (int64_t *)td_data(*target) + i * PLACES;
        memcpy(x, from, PLACES * sizeof *x);
        memcpy(y, from + 1, PLACES * sizeof *y);
    }
    td_release(at);
    return !td_failed();
}
static td_tensor *side_by_side(const text *t, int64_t shift)
{
    const int64_t from = (t->n - PLACES) * 9 / 10 + PLACES;
    const int64_t rows = (t->n - from - 1) / PLACES;
    return td_reshape(td_slice(t->all, 0,
        (td_opt_i64)td_some(from + shift),
        (td_opt_i64)td_some(from + shift + rows * PLACES), 1),
        TD_DIMS(rows, PLACES));
}
static void guess_letters(training *t, const td_batch *b,
                          td_tensor **found)
{
    found[0] = td_cross_entropy(
        td_flatten(td_forward(t->net, b->input), 0, 1),
        td_flatten(b->target, 0, 1),
        (td_cross_entropy_options)TD_DEFAULTS);
}
/* trainings: functions that write a text in C */
static void write_half(training *t, int64_t *half, int *known)
{
    const text *own = t->own;
    td_more memory = { { td_zeros(TD_DIMS(0), reals) } };
    td_tensor *new = td_from_data(half, TD_DIMS(1, *known), numbers);
    for (*known = 0; *known < PLACES / 2; ++*known) {
        td_tensor *s = td_select(td_forward_with(t->net, new, &memory),
                                 1, -1);
        new = td_multinomial(td_softmax(td_div_scalar(s,
            td_float(0.8)), 1), 1, false);
        half[*known] = td_item_int(new);
        putchar(td_failed() ? '?' : own->letter[half[*known]]);
    }
}
static void write_text(training *t)
{
    const text *own = t->own;
    int64_t half[PLACES / 2] = { own->number['\n'] };
    int known = 1;
    td_no_grad_begin();
    for (int i = 0; i < 12 && !td_failed(); i++) {
        td_scope_begin();
        write_half(t, half, &known);
        td_scope_end();
    }
    putchar('\n');
    td_no_grad_end();
}
/* trainings: function main of the text */
int main(int argc, char **argv)
{
    static text own;
    training t = { .names = { "train", "loss" }, .epochs = 10,
        .batch = 16, .rate = 3e-3, .measure = guess_letters,
        .tell = write_text, .own = &own };
    const char *name = "text/tinyshakespeare.txt";
    begin_training(&t, argc, argv);
    read_text(&own, find_data(name, name));
    t.net = td_gpt_module((td_args){ .vocab_size = own.letters,
        .n_positions = PLACES, .n_embd = 96, .n_layer = 3, .n_head = 4,
        .rotary = true, .rms = true, .no_bias = true });
    t.train = td_dataset_new(own.n / 16 < DRAWS ? own.n / 16 : DRAWS,
                             draw_windows, &own, NULL);
    t.test = td_tensor_dataset(side_by_side(&own, 0),
                               side_by_side(&own, 1));
    return run_training(&t);
}
