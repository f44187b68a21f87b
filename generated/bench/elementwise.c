/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "elementwise": edit that, not this file. */
/* needs: loom */
#include <treadle/treadle.h>
#include "bench.h"

void bench_tanh(bench *b)
{
    td_tensor *x = td_linspace(-4, 4, 1000000, (td_tensor_options){ 0 });
    bench_cost(b, 22e6, 8e6);
    while (bench_running(b))
        td_release(td_tanh(x));
}
