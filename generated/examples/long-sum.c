/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "reductions": edit that, not this file. */
/* needs: random */
/* Twenty million numbers, added in one to four parts or threads. */
#include <stdio.h>
#include <string.h>
#include <treadle/treadle.h>

/* reductions: add the obvious way, in parts */
static float obvious(const float *x, int64_t n, int parts)
{
    float total = 0;
    for (int part = 0; part < parts; part++) {
        float sum = 0;
        const int64_t end = n * (part + 1) / parts;
        for (int64_t i = n * part / parts; i < end; i++)
            sum += x[i];
        total += sum;
    }
    return total;
}

int main(int count, char **argument)
{
    enum { N = 20000000 };
    const bool ours = count > 1 && strcmp(argument[1], "ours") == 0;
    td_scope_begin();
    td_manual_seed(0);
    td_tensor *ones = td_ones(TD_DIMS(N),
                              (td_tensor_options)TD_DEFAULTS);
    td_tensor *x = td_rand(TD_DIMS(N),
                           (td_tensor_options)TD_DEFAULTS);
    printf("ones         %.1f\n", ours
           ? td_item_double(td_sum(ones, TD_REDUCE_DEFAULTS))
           : (double)obvious(td_data(ones), N, 1));
    for (int k = 1; k <= 4; k++) {
        td_set_threads(k);
        printf("%-8s%d    %.1f\n", ours ? "threads" : "parts", k, ours
               ? td_item_double(td_sum(x, TD_REDUCE_DEFAULTS))
               : (double)obvious(td_data(x), N, k));
    }
    const td_reduce_options wide = { .dtype = TD_FLOAT64 };
    printf("in double    %.1f\n",
           td_item_double(td_sum(x, wide)));
    td_scope_end();
    return td_failed();
}
