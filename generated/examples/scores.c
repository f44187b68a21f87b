/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "softmax": edit that, not this file. */
/* needs: softmax */
/* Softmax of three rows that differ by a constant. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <treadle/treadle.h>

/* softmax: softmax as the textbook has it */
static td_tensor *textbook(td_tensor *x)
{
    td_tensor *e = td_exp(x);
    return td_div(e, td_sum(e, TD_REDUCE_DEFAULTS));
}

int main(int count, char **argument)
{
    const bool ours = count > 1 && strcmp(argument[1], "ours") == 0;
    const float first[] = { 1, 1001, -999 };
    for (int r = 0; r < 3; r++) {
        const float row[] = { first[r], first[r] + 1, first[r] + 2 };
        td_scope_begin();
        td_tensor *x = td_from_data(row, TD_DIMS(3),
            (td_tensor_options){ .dtype = TD_FLOAT32 });
        const float *p = td_data(ours ? td_softmax(x, 0)
                                      : textbook(x));
        printf("%6g %6g %6g:  %.6f %.6f %.6f", (double)row[0],
               (double)row[1], (double)row[2], (double)fabsf(p[0]),
               (double)fabsf(p[1]), (double)fabsf(p[2]));
        const td_arg_options any = TD_DEFAULTS;
        if (ours)
            printf("  largest at %d", (int)*(const int64_t *)
                   td_data(td_argmax(x, any)));
        printf("\n");
        td_scope_end();
    }
    return td_failed();
}
