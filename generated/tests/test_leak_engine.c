/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "leak": edit that, not this file. */
/* needs: data */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "leaks.h"

int leak_main(int argc, char **argv);
#define main leak_main
#include "../examples/leak.c"
#undef main

/* leak: tests of the leaking engine */
enum { MADE = WARM_UP + ROUNDS };
static struct { int op; var *a, *b, *y[MADE]; int n; } one;

static void call_alone(void *context)
{
    (void)context;
    one.y[one.n++] = call(one.op, one.a, one.b);
}

/* A circle can be cut by who knows where it is. */
static void cut_circle(var *y)
{
    var *self = y->backward.held[2];
    y->backward.held[2] = NULL;
    td_release(self);
}

static void three_operators_leak_alone(void **state)
{
    (void)state;
    td_scope_begin();
    one.a = parameter(3, 2), one.b = parameter(3, 2);
    for (one.op = MATMUL; one.op < OPS; one.op++) {
        const bool leaky = one.op <= SLICE;
        assert_true(leaks(call_alone, NULL) == leaky);
        for (int i = 0; leaky && i < one.n; i++)
            cut_circle(one.y[i]);
        one.n = 0;
    }
    td_scope_end();
}
/* leak: test that the gradients are right */
static double distance(td_tensor *x, td_tensor *y)
{
    td_tensor *d = td_sub(x, y);
    return td_item_double(td_sum(td_mul(d, d),
                                 (td_reduce_options)TD_DEFAULTS));
}

/* layer and rectifier, by the engine and by the library */
static void the_gradients_agree_with_ours(void **state)
{
    (void)state;
    td_scope_begin();
    td_manual_seed(0);
    var *x = parameter(5, 3), *p = parameter(2, 4);
    td_tensor *x2 = td_set_requires_grad(td_clone(x->value), true);
    td_tensor *p2 = td_set_requires_grad(td_clone(p->value), true);
    var *y = relu(layer(x, p));
    td_tensor *w = td_t(p2);
    td_tensor *y2 = td_relu(td_add(td_matmul(x2, rows(w, 0, 4)),
                                   rows(w, 4, 5)));
    assert_true(distance(y->value, td_detach(y2)) < 1e-12);
    send_all_back(y);
    td_tensor *ones = td_ones_like(y2, (td_tensor_options)TD_DEFAULTS);
    assert_true(td_backward(y2,
                    (td_backward_options){ .gradient = ones }));
    assert_true(distance(x->grad, td_grad_of(x2)) < 1e-12);
    assert_true(distance(p->grad, td_grad_of(p2)) < 1e-12);
    /* leak: forget the leaking past of y */
    var *order[64];
    int n = 0;
    sort_past(y, order, &n);
    while (n-- > 0)
        cut_circle(order[n]);
    td_scope_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gradients_agree_with_ours),
        cmocka_unit_test(three_operators_leak_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
