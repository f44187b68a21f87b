/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "backward": edit that, not this file. */
/* needs: graph */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <treadle/treadle.h>

int double_count_main(void);
#pragma push_macro("main")
#undef main
#define main double_count_main
#include "../examples/double_count.c"
#pragma pop_macro("main")

/* backward: test helpers for leaves and passes */
static bool backward(td_tensor *root)
{
    return td_backward(root, (td_backward_options)TD_DEFAULTS);
}

static td_tensor *leaf(double x)
{
    return td_full(TD_DIMS(1), td_float(x),
        (td_tensor_options){ .dtype = TD_FLOAT64,
                             .requires_grad = true });
}
/* backward: test that counts once */
static void a_node_sends_its_gradient_on_once(void **state)
{
    (void)state;
    value a = { .data = 1 };
    value b = { 2, 0, &a, &a }, c = { 4, 0, &b, &b };
    c.grad = 1;
    send_back(&c);
    assert_true(a.grad == 8);       /* what recursion says */
    td_scope_begin();
    td_tensor *x = leaf(1);
    td_tensor *y = td_add(x, x);
    assert_true(backward(td_add(y, y)));
    assert_true(td_item_double(td_grad_of(x)) == 4);
    td_set_grad(x, NULL);
    y = td_add(x, x);
    assert_true(backward(td_add(y, td_add(y, y))));
    assert_true(td_item_double(td_grad_of(x)) == 6);
    td_scope_end();
}
/* backward: test of a deep diamond */
static void sixty_doublings_take_sixty_steps(void **state)
{
    (void)state;
    td_scope_begin();
    td_tensor *x = leaf(1), *y = x;
    for (int i = 0; i < 60; i++)
        y = td_add(y, y);
    assert_true(backward(y));
    assert_true(td_item_double(td_grad_of(x)) == 0x1p60);
    td_scope_end();
}
/* backward: test of a long chain */
static void a_million_operators_fit_the_stack(void **state)
{
    (void)state;
    const int64_t nodes = td_live_node_count();
    td_tensor *x = leaf(1), *y = td_retain(x);
    for (int i = 0; i < 1000000; i++) {
        td_tensor *next = td_add(y, x);
        td_release(y);
        y = next;
    }
    assert_int_equal(td_live_node_count(), nodes + 1000000);
    assert_true(backward(y));
    td_scope_begin();
    assert_true(td_item_double(td_grad_of(x)) == 1000001);
    td_scope_end();
    td_release(y);
    td_release(x);
    assert_int_equal(td_live_node_count(), nodes);
}
/* backward: test of second derivatives */
static void recorded_passes_can_be_differentiated(void **state)
{
    (void)state;
    td_scope_begin();
    td_tensor *x = leaf(2), *y = td_mul(td_mul(x, x), x), *g, *h;
    assert_true(td_grad(&y, 1, &x, 1, &g,
                        (td_grad_options){ .create_graph = true }));
    assert_true(td_item_double(g) == 12);
    assert_true(td_grad(&g, 1, &x, 1, &h,
                        (td_grad_options)TD_DEFAULTS));
    assert_true(td_item_double(h) == 12);
    td_scope_end();
}
/* backward: test of clear errors */
static void mistakes_are_named(void **state)
{
    (void)state;
    td_scope_begin();
    td_tensor *x = leaf(2), *y = td_mul(x, x);
    assert_true(backward(y));
    assert_false(backward(y));
    assert_non_null(strstr(td_error_message(), "a second time"));
    td_error_clear();

    td_tensor *z = td_mul(x, x);
    td_no_grad_begin();
    td_fill_(x, td_float(5));
    td_no_grad_end();
    assert_false(backward(z));
    assert_non_null(strstr(td_error_message(), "gradient of mul"));
    assert_non_null(strstr(td_error_message(), "float64 [1]"));
    td_error_clear();
    td_scope_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_sends_its_gradient_on_once),
        cmocka_unit_test(sixty_doublings_take_sixty_steps),
        cmocka_unit_test(a_million_operators_fit_the_stack),
        cmocka_unit_test(recorded_passes_can_be_differentiated),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
