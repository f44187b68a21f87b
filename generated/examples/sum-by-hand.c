/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "elementwise": edit that, not this file. */
#include <stdio.h>
#include <treadle/treadle.h>

/* elementwise: function print of the sums */
static void print(const char *what, td_tensor *x)
{
    char text[400];
    td_repr(x, text, sizeof text);
    printf("%s =\n%s\n", what, text);
}

/* elementwise: add as one always does */
static void add(const float *a, const float *b, float *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = a[i] + b[i];
}

int main(void)
{
    /* elementwise: make a matrix and a transposed one */
    td_scope_begin();
    td_tensor_options f32 = { .dtype = TD_FLOAT32 };
    td_tensor *nine = td_arange(td_int(0), td_int(9), td_int(1), f32);
    td_tensor *a = td_reshape(nine, TD_DIMS(3, 3));
    td_tensor *b = td_transpose(a, 0, 1);
    td_tensor *sum = td_zeros_like(a, (td_tensor_options){ 0 });
    add(td_data(a), td_data(b), td_data(sum), td_numel(sum));
    print("a", a);
    print("b", b);
    print("a + b, by hand", sum);
    td_scope_end();
    return td_failed();
}
