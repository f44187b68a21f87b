/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "checkpoints": edit that, not this file. */
/* A GPT that learns to write from a text, and goes on when killed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <treadle/treadle.h>

enum { PLACES = 64, WIDTH = 96, HEADS = 4, LAYERS = 3, BATCH = 16,
       PARAMETERS = 64, STATES = 4 };
static const td_tensor_options numbers = { .dtype = TD_INT64 };

/* checkpoints: functions that build a GPT */
static td_module *dense(int64_t in, int64_t out)
{
    return td_linear_module(in, out, (td_linear_options)TD_DEFAULTS);
}
static td_module *norm(void)
{
    return td_layer_norm_module((td_args){
        .normalized_shape = TD_DIMS(WIDTH) });
}
static td_module *block(void)
{
    td_module *look = td_parts((td_named_part[]){
        { .name = "c_attn", .module = dense(WIDTH, 3 * WIDTH) },
        { .name = "c_proj", .module = dense(WIDTH, WIDTH) } }, 2);
    td_module *think = td_parts((td_named_part[]){
        { .name = "c_fc", .module = dense(WIDTH, 4 * WIDTH) },
        { .name = "c_proj", .module = dense(4 * WIDTH, WIDTH) } }, 2);
    return td_parts((td_named_part[]){
        { .name = "ln_1", .module = norm() },
        { .name = "ln_2", .module = norm() },
        { .name = "attn", .module = look },
        { .name = "mlp", .module = think } }, 4);
}
static td_module *table(int64_t rows)
{
    return td_embedding_module((td_args){ .num_embeddings = rows,
                                          .embedding_dim = WIDTH });
}
static td_module *gpt(int64_t letters)
{
    td_named_part blocks[LAYERS] = { { NULL, NULL, NULL } };
    td_named_tensor w[PARAMETERS];
    td_scope_begin();
    for (int i = 0; i < LAYERS; i++)
        blocks[i].module = block();
    td_module *net = td_parts((td_named_part[]){
        { .name = "wte", .module = table(letters) },
        { .name = "wpe", .module = table(PLACES) },
        { .name = "h", .module = td_parts(blocks, LAYERS) },
        { .name = "ln_f", .module = norm() } }, 4);
    const int n = td_named_parameters(net, w, PARAMETERS);
    for (int i = 0; i < n; i++)
        if (td_rank(w[i].tensor) > 1)
            td_normal_(td_detach(w[i].tensor), 0, 0.02
                / (strstr(w[i].name, "c_proj")
                   ? sqrt(2.0 * LAYERS) : 1));
        else if (strstr(w[i].name, "bias"))
            td_fill_(td_detach(w[i].tensor), td_float(0));
    return td_scope_end_with(net);
}
/* checkpoints: functions that compute a GPT */
static td_tensor *part(td_module *m, const char *name, td_tensor *x)
{
    return td_forward(td_child(m, name), x);
}
/* Third i of [N, T, 3 * WIDTH], as [N, HEADS, T, WIDTH / HEADS]. */
static td_tensor *heads(td_tensor *x, int i)
{
    x = td_slice(x, 2, (td_opt_i64)td_some(i * WIDTH),
                 (td_opt_i64)td_some((i + 1) * WIDTH), 1);
    return td_transpose(td_unflatten(x, (td_args){ .dim = td_some(2),
        .sizes = TD_DIMS(HEADS, -1) }), 1, 2);
}
static td_tensor *look(td_module *m, td_tensor *x)
{
    td_tensor *three = part(m, "c_attn", x);
    x = td_scaled_dot_product_attention(heads(three, 0), (td_args){
        .key = heads(three, 1), .values = heads(three, 2),
        .is_causal = true });
    return part(m, "c_proj", td_flatten(td_transpose(x, 1, 2), 2, -1));
}
static td_tensor *think(td_module *m, td_tensor *x)
{
    return part(m, "c_proj", td_gelu(part(m, "c_fc", x),
                                     (td_args){
                                         .approximate = "tanh" }));
}
static td_tensor *scores(td_module *net, td_tensor *letters)
{
    char number[] = "0";
    td_tensor *words, *places;
    td_scope_begin();
    td_parameters(td_child(net, "wte"), &words, 1);
    td_parameters(td_child(net, "wpe"), &places, 1);
    td_tensor *x = td_add(part(net, "wte", letters), td_slice(places, 0,
        (td_opt_i64)td_some(0),
        (td_opt_i64)td_some(td_size(letters, 1)), 1));
    for (; number[0] < '0' + LAYERS; number[0]++) {
        td_module *b = td_child(td_child(net, "h"), number);
        x = td_add(x, look(td_child(b, "attn"), part(b, "ln_1", x)));
        x = td_add(x, think(td_child(b, "mlp"), part(b, "ln_2", x)));
    }
    return td_scope_end_with(td_linear(part(net, "ln_f", x), words,
                                       NULL));
}
/* checkpoints: functions that keep a run */
typedef struct {
    td_module *net;
    td_optimiser *adam;
    int64_t place[3];            /* step, seed, stream */
} run;

static int list_run(run *r, td_to_save *out, td_named_tensor *w,
                    char names[][32])
{
    int n = td_named_parameters(r->net, w, PARAMETERS), all = n;
    for (int i = 0; i < n; i++)
        out[i] = (td_to_save){ w[i].name, w[i].tensor };
    for (int i = 0; i < n * STATES; i++) {
        td_tensor *x = td_optimiser_state(r->adam, i / STATES,
                                          i % STATES);
        snprintf(names[i], sizeof names[i], "adam.%d.%d", i / STATES,
                 i % STATES);
        if (x)
            out[all++] = (td_to_save){ names[i], x };
    }
    return all;
}
static bool save_run(run *r, const char *path)
{
    static td_named_tensor w[PARAMETERS];
    static td_to_save list[PARAMETERS * (1 + STATES) + 1];
    static char names[PARAMETERS * STATES][32];
    const td_random_state now = td_random_swap(
        (td_random_state){ 0, 0 });
    td_random_swap(now);
    r->place[1] = (int64_t)now.seed;
    r->place[2] = (int64_t)now.stream;
    td_scope_begin();
    const int n = list_run(r, list, w, names);
    list[n] = (td_to_save){ "place", td_from_data(r->place, TD_DIMS(3),
                                                  numbers) };
    td_safetensors_save(path, list, n + 1, NULL);
    td_scope_end();
    return !td_failed();
}
static bool load_run(run *r, const char *path)
{
    char name[32];
    td_named_tensor w[PARAMETERS];
    if (access(path, R_OK) != 0)
        return true;
    td_scope_begin();
    td_no_grad_begin();
    td_safetensors *f = td_safetensors_open(path, false);
    const int n = td_named_parameters(r->net, w, PARAMETERS);
    for (int i = 0; i < n; i++)
        td_copy_(w[i].tensor, td_safetensors_get(f, w[i].name));
    for (int i = 0; i < n * STATES && !td_failed(); i++) {
        snprintf(name, sizeof name, "adam.%d.%d", i / STATES,
                 i % STATES);
        if (td_safetensors_find(f, name))
            td_set_optimiser_state(r->adam, i / STATES, i % STATES,
                                   td_safetensors_get(f, name));
        td_error_clear();        /* not every state is there */
    }
    td_tensor *place = td_safetensors_get(f, "place");
    if (place)
        memcpy(r->place, td_data(place), sizeof r->place);
    td_no_grad_end();
    td_scope_end();
    td_random_swap((td_random_state){ (uint64_t)r->place[1],
                                      (uint64_t)r->place[2] });
    return !td_failed();
}
/* checkpoints: functions that learn a text */
static td_tensor *number_letters(const td_tensor *text, char *letters,
                                 int64_t *count)
{
    const uint8_t *byte = td_data(text);
    int64_t number[256] = { 0 };
    const int64_t n = td_numel(text);
    for (int64_t i = 0; i < n; i++)
        number[byte[i]] = 1;
    for (int b = 0, k = 0; b < 256; b++)
        if (number[b]) {
            letters[k] = (char)b;
            number[b] = k++;
            *count = k;
        }
    td_tensor *all = td_empty(TD_DIMS(n), numbers);
    for (int64_t i = 0; all && i < n; i++)
        ((int64_t *)td_data(all))[i] = number[byte[i]];
    return all;
}
/* The mean loss of guessing the next letter at BATCH places. */
static td_tensor *guess(td_module *net, td_tensor *text)
{
    td_tensor *rows[BATCH], *at = td_randint(0,
        td_numel(text) - PLACES - 1, TD_DIMS(BATCH), numbers);
    for (int i = 0; i < BATCH; i++) {
        const int64_t from = at ? ((int64_t *)td_data(at))[i] : 0;
        rows[i] = td_slice(text, 0, (td_opt_i64)td_some(from),
            (td_opt_i64)td_some(from + PLACES + 1), 1);
    }
    td_tensor *both = td_stack(rows, BATCH, 0);
    td_tensor *s = scores(net, td_slice(both, 1, (td_opt_i64)td_some(0),
        (td_opt_i64)td_some(PLACES), 1));
    td_tensor *next = td_slice(both, 1, (td_opt_i64)td_some(1),
        (td_opt_i64)td_some(PLACES + 1), 1);
    return td_cross_entropy(td_flatten(s, 0, 1), td_flatten(next, 0, 1),
                            (td_cross_entropy_options)TD_DEFAULTS);
}
static void show(int64_t step, int64_t steps, double loss, double rate,
                 time_t begun, int64_t first)
{
    const double each = difftime(time(NULL), begun)
                      / (double)(step - first + 1);
    const bool terminal = isatty(1);
    if (terminal || step % 100 == 99 || step + 1 == steps)
        printf("%sstep %lld of %lld  loss %.3f  rate %.1e  %.0f s "
            "left%s", terminal ? "\r" : "", (long long)step + 1,
            (long long)steps, loss, rate,
            each * (double)(steps - step - 1),
            terminal && step + 1 < steps ? "" : "\n");
    fflush(stdout);
}
static bool learn(run *r, td_tensor *text, int64_t steps, int64_t stop,
                  const char *path)
{
    const time_t begun = time(NULL);
    const int64_t first = r->place[0];
    for (int64_t t = first; t < stop && !td_failed(); t++) {
        const double rate = td_linear_warmup(3e-3, (double)t, 100,
                                             (double)steps);
        td_scope_begin();
        td_tensor *loss = guess(r->net, text);
        td_set_learning_rate(r->adam, rate);
        td_zero_grad(r->adam);
        td_backward(loss, (td_backward_options)TD_DEFAULTS);
        td_step(r->adam);
        show(t, steps, td_failed() ? NAN : td_item_double(loss), rate,
             begun, first);
        td_scope_end();
        r->place[0] = t + 1;
        if (t % 100 == 99 || t + 1 == stop)
            save_run(r, path);
    }
    return !td_failed();
}
static void ask(td_module *net, td_tensor *text, const char *letters)
{
    double loss = 0;
    td_no_grad_begin();
    for (int i = 0; i < 20; i++) {
        td_scope_begin();
        loss += td_item_double(guess(net, text)) / 20;
        td_scope_end();
    }
    printf("%.3f nats a letter of what it has not read\n", loss);
    td_scope_begin();
    td_tensor *x = td_zeros(TD_DIMS(1, 1), numbers);
    for (int i = 0; i < 300; i++) {
        const int64_t n = td_size(x, 1);
        td_tensor *s = td_select(td_select(scores(net, td_slice(x, 1,
            (td_opt_i64)td_some(n > PLACES ? n - PLACES : 0),
            (td_opt_i64)td_some(n), 1)), 0, 0), 0, -1);
        td_tensor *next = td_multinomial(td_softmax(s, 0), 1, false);
        putchar(td_failed() ? '?' : letters[td_item_int(next)]);
        x = td_cat((td_tensor *[]){ x,
            td_reshape(next, TD_DIMS(1, 1)) }, 2, 1);
    }
    putchar('\n');
    td_scope_end();
    td_no_grad_end();
}
/* checkpoints: function main of the text */
static void answer(const char *weights, const char *in, const char *out)
{
    td_safetensors *f = td_safetensors_open(weights, false);
    const td_saved_tensor *wte = td_safetensors_find(f, "wte.weight");
    td_module *net = gpt(wte ? wte->shape.at[0] : 1);
    td_load_module(net, weights);
    td_safetensors *letters = td_safetensors_open(in, false);
    td_tensor *s = scores(net, td_safetensors_get(letters, "letters"));
    td_safetensors_save(out, &(td_to_save){ "scores", s }, 1, NULL);
}
static void train(const char *path, const char *kept, int64_t steps,
                  int64_t stop)
{
    char letters[256];
    int64_t count = 0;
    td_tensor *w[PARAMETERS], *bytes = td_bytes_read(path);
    td_tensor *text = bytes ? number_letters(bytes, letters, &count)
                            : NULL;
    td_manual_seed(1);
    run r = { .net = gpt(count) };
    const int n = td_parameters(r.net, w, PARAMETERS);
    r.adam = td_adamw(w, n, 3e-3, (td_adapt_options){ .beta2 =
                                                      td_some(0.99) });
    const int64_t last = text ? td_numel(text) : 0;
    const int64_t from = last * 9 / 10;
    td_tensor *read = td_slice(text, 0, (td_opt_i64)td_some(0),
                               (td_opt_i64)td_some(from), 1);
    if (load_run(&r, kept) && learn(&r, read, steps, stop, kept)
        && stop == steps)
        ask(r.net, td_slice(text, 0, (td_opt_i64)td_some(from),
                            (td_opt_i64)td_some(last), 1), letters);
}
int main(int argc, char **argv)
{
    if (argc < 4)
        return puts("shakespeare TEXT NET STEPS, or "
                    "--scores NET IN OUT"), 2;
    td_scope_begin();
    if (strcmp(argv[1], "--scores") == 0 && argc > 4)
        answer(argv[2], argv[3], argv[4]);
    else
        train(argv[1], argv[2], atoll(argv[3]),
              atoll(argv[argc > 4 ? 4 : 3]));
    const bool failed = td_failed();
    if (failed)
        fprintf(stderr, "shakespeare: %s\n", td_error_message());
    td_scope_end();
    return failed;
}
