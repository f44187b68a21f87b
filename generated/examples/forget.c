/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "memory": edit that, not this file. */
/* What happens when nobody frees: run it under a memory limit. */
#include <stdio.h>
#include <stdlib.h>

enum { N = 1000 };

/* memory: function combine that forgets */
typedef float *vector;

static vector combine(vector x, float factor, vector y)
{
    vector result = malloc(N * sizeof *result);
    for (int i = 0; i < N; i++)
        result[i] = factor * x[i] + y[i];
    return result;
}

int main(void)
{
    vector x = calloc(N, sizeof *x);
    for (int step = 0; step < 100000; step++) {
        x = combine(combine(x, 0.5f, x), 0.5f, combine(x, 1, x));
        if (step % 4000 == 0)
            fprintf(stderr, "step %5d, x[0] = %g\n", step, x[0]);
    }
    fprintf(stderr, "done\n");
    return 0;
}
