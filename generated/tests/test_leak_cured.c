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
#include "../examples/leak_saved.c"
#undef main

/* leak: tests of the cured engine */
static int op;
static var *a, *b;

static void call_alone(void *context)
{
    (void)context;
    call(op, a, b);
}

static void nothing_leaks_alone(void **state)
{
    (void)state;
    td_scope_begin();
    a = parameter(3, 2), b = parameter(3, 2);
    for (op = MATMUL; op < OPS; op++)
        assert_false(leaks(call_alone, NULL));
    td_scope_end();
}

/* leak: test that a closure may outlive its result */
static void a_closure_may_outlive_its_result(void **state)
{
    (void)state;
    td_scope_begin();
    a = parameter(3, 2), b = parameter(3, 2);
    td_scope_begin();
    var *y = matmul(a, b);
    td_fill_(y->grad, td_float(1));
    closure later = y->backward;
    for (int i = 0; i < 2; i++) {
        td_retain(later.held[i]);
        td_retain(later.kept[i]);
    }
    td_scope_end();
    later.run(&later);
    td_tensor *sums = td_sum(b->value,
        (td_reduce_options){ .dims = TD_DIMS(1) });
    td_tensor *row = td_select(a->grad, 0, 1);
    assert_true(td_item_double(td_select(row, 0, 2))
                == td_item_double(td_select(sums, 0, 2)));
    for (int i = 0; i < 2; i++) {
        td_release(later.held[i]);
        td_release(later.kept[i]);
    }
    td_scope_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_leaks_alone),
        cmocka_unit_test(a_closure_may_outlive_its_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
