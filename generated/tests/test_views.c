/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "views": edit that, not this file. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <treadle/treadle.h>

static void a_view_of_a_view_reads_the_right_element(void **state)
{
    (void)state;
    td_scope_begin();
    td_tensor *x = td_arange(td_int(0), td_int(24), td_int(1),
                             (td_tensor_options)TD_DEFAULTS);
    td_tensor *m = td_reshape(x, TD_DIMS(4, 6));
    td_tensor *rows = td_slice(m, 0, (td_opt_i64)td_some(1),
                               (td_opt_i64)td_some(4), 2);
    td_tensor *column = td_select(td_t(rows), 0, -1);
    assert_int_equal(td_size(column, 0), 2);
    assert_int_equal(td_item_int(td_select(column, 0, 0)), 11);
    assert_int_equal(td_item_int(td_select(column, 0, 1)), 23);
    td_scope_end();
}

/* views: test the edges of turned blocks */
static void turned_copies_have_right_edges(void **state)
{
    const td_dtype types[] = { TD_UINT8, TD_INT16, TD_FLOAT32,
                               TD_FLOAT64 };
    (void)state;
    td_scope_begin();
    for (int k = 0; k < 4; k++) {
        td_tensor *x = td_arange(td_int(0), td_int(143), td_int(1),
                           TD_OF(types[k]));
        td_tensor *y = td_contiguous(td_t(td_view(x, TD_DIMS(13, 11))));
        for (int i = 0; i < 143; i++)
            assert_int_equal(td_item_int(td_select(td_view(y,
                TD_DIMS(143)), 0, i)), i % 13 * 11 + i / 13);
    }
    td_scope_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_view_of_a_view_reads_the_right_element),
        cmocka_unit_test(turned_copies_have_right_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
