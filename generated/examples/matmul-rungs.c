/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "matmul": edit that, not this file. */
/* needs: random */
/* How far each rung is from the product in double precision. */
#include <math.h>
#include <stdio.h>
#include <treadle/treadle.h>
#include "matmul-ladder.h"
enum { N = 500 };
typedef void rung(int64_t m, int64_t n, int64_t k, const float *a,
                  const float *b, float *c);

static double distance(const float *c, const double *exact)
{
    double most = 0;
    for (int i = 0; i < N * N; i++)
        most = fmax(most, fabs((double)c[i] - exact[i]));
    return most;
}

int main(void)
{
    static rung *const rungs[] = { rung_0, rung_1, rung_2, rung_3 };
    const td_tensor_options plain = TD_DEFAULTS;
    td_scope_begin();
    td_manual_seed(0);
    td_tensor *x = td_rand(TD_DIMS(N, N), plain);
    td_tensor *y = td_rand(TD_DIMS(N, N), plain);
    td_tensor *z = td_empty_like(x, plain);
    const double *exact = td_data(td_matmul(td_to(x, TD_FLOAT64),
                                            td_to(y, TD_FLOAT64)));
    const double bound = N * 0x1p-24 * N;
    for (int i = 0; i < 4; i++) {
        rungs[i](N, N, N, td_data(x), td_data(y), td_data(z));
        printf("rung %d   %s\n", i, distance(td_data(z), exact) < bound
               ? "within the bound" : "WRONG");
    }
    /* matmul: ask the library with one to four threads */
    td_set_threads(1);
    td_tensor *one = td_matmul(x, y);
    printf("library  %s\n", distance(td_data(one), exact) < bound
           ? "within the bound" : "WRONG");
    for (int k = 2; k <= 4; k++) {
        td_set_threads(k);
        const void *more = td_data(td_matmul(x, y));
        printf("%d threads: %s\n", k,
               memcmp(more, td_data(one), N * N * sizeof(float)) == 0
               ? "the same bits" : "OTHER BITS");
    }
    td_scope_end();
    return td_failed();
}
