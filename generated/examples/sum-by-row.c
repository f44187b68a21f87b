/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "arithmetic": edit that, not this file. */
#include <stdio.h>
#include <treadle/treadle.h>

/* elementwise: function print of the sums */
static void print(const char *what, td_tensor *x)
{
    char text[400];
    td_repr(x, text, sizeof text);
    printf("%s =\n%s\n", what, text);
}

int main(void)
{
    /* elementwise: make a matrix and a transposed one */
    td_scope_begin();
    td_tensor_options f32 = { .dtype = TD_FLOAT32 };
    td_tensor *nine = td_arange(td_int(0), td_int(9), td_int(1), f32);
    td_tensor *a = td_reshape(nine, TD_DIMS(3, 3));
    td_tensor *b = td_transpose(a, 0, 1);
    print("a + b", td_add(a, b));
    td_tensor *row = td_select(a, 0, 2);
    print("a - its last row", td_sub(a, row));
    print("1 / (1 + a)",
          td_rdiv_scalar(td_add_scalar(a, td_int(1)), td_int(1)));
    td_add(a, td_arange(td_int(0), td_int(5), td_int(1), f32));
    printf("%s\n", td_error_message());
    td_error_clear();
    td_scope_end();
    return 0;
}
