/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "tensors": edit that, not this file. */
/* Six numbers, looked at in four ways. */
#include <stdio.h>
#include <treadle/treadle.h>

/* tensors: function cell that asks */
static float cell(const td_tensor *x, int64_t r, int64_t c)
{
    const int64_t *s = td_strides(x);
    return ((const float *)td_data(x))[r * s[0] + c * s[1]];
}

/* tensors: show memory under a description */
static void show(const char *what, float *memory, td_dims shape,
                 td_dims strides)
{
    const td_tensor *x = td_from_memory(memory, shape, strides,
        (td_tensor_options)TD_DEFAULTS, NULL, NULL);
    puts(x != NULL ? what : td_error_message());
    for (int64_t r = 0; x != NULL && r < td_size(x, 0); r++)
        for (int64_t c = 0; c < td_size(x, 1); c++)
            printf("%4g%s", cell(x, r, c),
                   c + 1 < td_size(x, 1) ? "" : "\n");
}

int main(void)
{
    float x[] = { 1, 2, 3, 4, 5, 6 };
    td_scope_begin();
    show("two rows of three", x, TD_DIMS(2, 3), TD_DIMS(3, 1));
    show("on its side", x, TD_DIMS(3, 2), TD_DIMS(1, 3));
    show("outer columns", x, TD_DIMS(2, 2), TD_DIMS(3, 2));
    show("first row, thrice", x, TD_DIMS(3, 3), TD_DIMS(0, 1));
    show("too few sizes", x, TD_DIMS(2), TD_DIMS(3, 1));
    td_scope_end();
    return 0;
}
