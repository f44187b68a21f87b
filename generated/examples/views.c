/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "views": edit that, not this file. */
#include <stdio.h>
#include <treadle/treadle.h>

static void show(const char *what, const td_tensor *x)
{
    char text[1000];
    td_repr(x, text, sizeof text);
    printf("%s\n%s\n", what, text);
}

int main(void)
{
    td_scope_begin();
    td_tensor *x = td_reshape(
        td_arange(td_int(0), td_int(6), td_int(1),
                  (td_tensor_options)TD_DEFAULTS), TD_DIMS(2, 3));
    show("x", x);
    show("its transpose", td_t(x));
    show("every second column", td_slice(x, 1, (td_opt_i64)TD_DEFAULTS,
                                  (td_opt_i64)TD_DEFAULTS, 2));
    td_fill_(td_select(x, 1, 1), td_int(9));
    show("x, after a write through a view", x);
    show("four columns?", td_expand(x, TD_DIMS(2, 4)));
    printf("%s\n", td_error_message());
    td_scope_end();
    return 0;
}
