/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "leak": edit that, not this file. */
/* needs: gradcheck */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "grad/autograd.h"
#include "samples.h"
#include "leaks.h"

/* leak: struct trial */
typedef struct trial {
    const sample *sample;
    const char *text;           /* of the sample's call */
    int passes;                 /* 0: the record is dropped unwalked */
    bool record;                /* those passes, too */
    bool plant;                 /* a cycle, in what is recorded */
    td_node *planted[WARM_UP + ROUNDS];     /* nodes with a cycle */
    int n_planted;
    int ran;                    /* calls that did not fail */
} trial;

static int tried, planted;      /* calls of all samples */

/* The tensors among n that can be differentiated further. */
static int real_ones(td_tensor *const *all, int n, td_tensor **real)
{
    int found = 0;
    for (int k = 0; k < n; k++)
        if (all[k] != NULL && td_requires_grad(all[k]))
            real[found++] = all[k];
    return found;
}
/* leak: function plant_cycle */
/* What td_save would do with a result, in place of td_save_result. */
static void plant_cycle(trial *t, td_tensor *y)
{
    td_node *node = y->node;
    if (node == NULL || node->n_out == 0)
        return;
    td_release(node->out[0].saved.tensor);
    node->out[0].saved.tensor = td_retain(y);
    t->planted[t->n_planted++] = node;
}
/* leak: function call_and_differentiate */
static void call_and_differentiate(void *context)
{
    trial *t = context;
    sample_call s;
    if (!sample_read(&s, t->sample, t->text) || !td_run(&s.call))
        return;
    t->ran++;
    td_tensor *y[SAMPLE_MOST], *g[SAMPLE_MOST];
    int n = real_ones(s.call.out, s.call.n_out, y);
    if (t->plant)
        plant_cycle(t, s.call.out[0]);
    for (int i = 0; i < t->passes && n > 0; i++) {
        td_tensor *seeds[SAMPLE_MOST];
        for (int k = 0; k < n; k++)
            seeds[k] = td_ones_like(y[k],
                           (td_tensor_options)TD_DEFAULTS);
        if (!td_grad(y, n, s.checked, s.n_checked, g,
                (td_grad_options){ .grad_outputs = seeds,
                    .create_graph = t->record, .allow_unused = true }))
            return;
        n = real_ones(g, t->record ? s.n_checked : 0, y);
    }
}
/* leak: function try_all_calls */
static int try_all_calls(bool (*fails)(trial *))
{
    int failed = 0;
    tried = 0;
    for (const sample *s = samples; s->name != NULL; s++) {
        const char *const one[] = { s->call, NULL };
        const char *const unary[] = { "[2,3]", "[]", NULL };
        const char *const binary[] = {
            "[2,3] [2,3]", "[2,1,3] [4,1]", "[2,3] 1.5", NULL };
        const char *const *text = s->kind == SAMPLE_UNARY ? unary
            : s->kind == SAMPLE_BINARY ? binary : one;
        for (; *text != NULL; text++, tried++) {
            trial t = { .sample = s, .text = *text };
            failed += fails(&t) || t.ran == 0;
        }
    }
    return failed;
}
/* leak: test that no operator leaks */
static bool leaks_somehow(trial *t)
{
    for (int way = 0; way < 3; way++) {
        t->passes = way;
        t->record = way == 2;
        if (leaks(call_and_differentiate, t)) {
            print_error("%s(%s) leaks with %d passes\n",
                        t->sample->name, t->text, way);
            return true;
        }
    }
    return false;
}

static void no_operator_leaks(void **state)
{
    (void)state;
    assert_int_equal(try_all_calls(leaks_somehow), 0);
}
/* leak: test that a planted cycle is found */
static bool hides_a_cycle(trial *t)
{
    t->plant = true;
    const bool found = leaks(call_and_differentiate, t);
    if (t->n_planted > 0 && !found)
        print_error("the cycle in %s is not found\n", t->sample->name);
    for (int i = 0; i < t->n_planted; i++) {
        td_node *node = td_retain(t->planted[i]);
        td_node_drop(node);     /* the cycle was its only owner */
        td_release(node);
    }
    planted += t->n_planted > 0;
    return t->n_planted > 0 && !found;
}

static void a_cycle_planted_in_any_operator_is_found(void **state)
{
    (void)state;
    assert_int_equal(try_all_calls(hides_a_cycle), 0);
    print_message("%d calls, a cycle planted in %d, all found\n",
                  tried, planted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_operator_leaks),
        cmocka_unit_test(a_cycle_planted_in_any_operator_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
