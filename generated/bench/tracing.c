/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "tracing": edit that, not this file. */
/* needs: loom tracing */
#include <treadle/treadle.h>
#include "bench.h"

void bench_record_op(bench *b)
{
    td_tensor *x = td_ones(TD_DIMS(4), (td_tensor_options){ 0 });
    int steps = 0;
    td_trace_begin(true);
    while (bench_running(b)) {
        td_release(td_add(x, x));
        if (++steps % 1000 == 0) {
            td_release(td_trace_end(NULL, 0));
            td_trace_begin(true);
        }
    }
    td_release(td_trace_end(NULL, 0));
}
