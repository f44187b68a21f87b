/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "memory": edit that, not this file. */
/* needs: memory */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <treadle/treadle.h>
#include "core/object.h"

/* memory: a toy object for tests */
typedef struct yarn {
    td_object object;
    struct yarn *around;
} yarn;

static int unwound;

static void yarn_destroy(void *object)
{
    unwound++;
    td_release(((yarn *)object)->around);
}

static const td_class yarn_class = { "yarn", yarn_destroy,
                                     TD_COUNT_OTHERS };
static yarn *wind(yarn *around)
{
    yarn *y = td_object_new(&yarn_class, sizeof *y);
    if (y != NULL)
        y->around = td_retain(around);
    return y;
}

/* memory: tests of the memory chapter */
static void nested_results_go_with_their_scope(void **state)
{
    (void)state;
    unwound = 0;
    td_scope_begin();
    yarn *y = td_scope_end_with(wind(wind(wind(NULL))));
    assert_int_equal(unwound, 0);       /* each holds the next */
    td_release(y);
    assert_int_equal(unwound, 3);
}
static void every_failure_leaves_nothing_behind(void **state)
{
    (void)state;
    const int64_t before = td_memory_stats().live_objects;
    for (int n = 0; n < 4; n++) {
        td_memory_fail_after(n);
        td_scope_begin();
        yarn *y = td_scope_end_with(wind(wind(wind(NULL))));
        td_memory_fail_after(-1);
        assert_int_equal(y == NULL, n < 3);
        assert_int_equal(td_error(), n < 3 ? TD_ERROR_MEMORY : TD_OK);
        td_error_clear();
        td_release(y);
        assert_int_equal(td_memory_stats().live_objects, before);
    }
}
static void a_long_chain_dies_without_recursion(void **state)
{
    (void)state;
    yarn *y = NULL;
    unwound = 0;
    for (int i = 0; i < 1000000; i++) {
        yarn *next = wind(y);
        td_release(y);
        y = next;
    }
    td_release(y);
    assert_int_equal(unwound, 1000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested_results_go_with_their_scope),
        cmocka_unit_test(every_failure_leaves_nothing_behind),
        cmocka_unit_test(a_long_chain_dies_without_recursion),
    };
    return cmocka_run_group_tests_name("scopes", tests, NULL, NULL);
}
