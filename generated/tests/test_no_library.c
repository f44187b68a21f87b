/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "first-cloth": edit that, not this file. */
#define main the_program
#include "../examples/no_library.c"
#undef main
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

/* first-cloth: make a small network and a batch */
static layer small[LAYERS];
static float small_x[BATCH * 7];
static unsigned char small_labels[BATCH];

static void make_small_network(void)
{
    const int size[LAYERS + 1] = { 7, 11, 5, KINDS };
    srand(1);
    for (int k = 0; k < LAYERS; k++)
        small[k] = new_layer(size[k], size[k + 1]);
    for (int i = 0; i < BATCH * 7; i++)
        small_x[i] = (float)(rand() % 100) / 50 - 1;
    for (int p = 0; p < BATCH; p++)
        small_labels[p] = (unsigned char)(rand() % KINDS);
}

static float loss_of_network(void)
{
    run_network(small, small_x);
    return measure_loss(&small[LAYERS - 1], small_labels);
}

static void derive_small_network(void)
{
    for (int k = LAYERS - 1; k >= 0; k--)
        layer_backward(&small[k], k > 0 ? small[k - 1].result : small_x,
                 k > 0 ? small[k - 1].d_result : NULL, k < LAYERS - 1);
}

/* first-cloth: test derivatives against differences */
static void derivatives_agree_with_differences(void **state)
{
    (void)state;
    const float step = 1e-2f;
    make_small_network();
    loss_of_network();
    derive_small_network();
    for (int k = 0; k < LAYERS; k++)
        for (int i = 0; i < small[k].in * small[k].out; i += 7) {
            /* first-cloth: move one weight up and down */
            float *w = &small[k].weight[i], keep = *w;
            const float expected = small[k].d_weight[i];
            *w = keep + step;
            const float above = loss_of_network();
            *w = keep - step;
            const float below = loss_of_network();
            *w = keep;
            assert_float_equal((above - below) / (2 * step), expected,
                               2e-3);
        }
}

/* first-cloth: test the loss of large scores */
static void losses_of_large_scores_are_finite(void **state)
{
    unsigned char labels[BATCH] = { 0 };
    static layer last;
    (void)state;
    last = new_layer(1, KINDS);
    for (int p = 0; p < BATCH; p++)
        last.result[p * KINDS + 1] = 100;
    assert_true(fabsf(measure_loss(&last, labels) - 100) < 1e-3f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(derivatives_agree_with_differences),
        cmocka_unit_test(losses_of_large_scores_are_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
