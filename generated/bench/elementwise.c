/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "arithmetic": edit that, not this file. */
/* needs: loom */
#include <treadle/treadle.h>
#include "bench.h"

void bench_tanh(bench *b)
{
    const td_tensor_options f32 = { .dtype = TD_FLOAT32 };
    td_tensor *x = td_linspace(-4, 4, 1000000, f32);
    for (int i = 0; i < 50; i++)        /* the system gives memory */
        td_release(td_tanh(x));
    bench_cost(b, 22e6, 8e6);
    while (bench_running(b))
        td_release(td_tanh(x));
}
