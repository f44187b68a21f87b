/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "convolution": edit that, not this file. */
/* needs: loom convolution */
#include <treadle/treadle.h>
#include "bench.h"

static const td_convolution_options around = {
    .padding = { 2, { 1, 1 } } };

static td_tensor *noise(td_dims shape, bool learns)
{
    td_tensor *x = td_randn(shape, (td_tensor_options){ 0 });
    td_set_requires_grad(x, learns);
    return x;
}

static void convolve(bench *b, bool backward)
{
    td_tensor *x = noise(TD_DIMS(64, 16, 14, 14), backward);
    td_tensor *w = noise(TD_DIMS(32, 16, 3, 3), backward);
    bench_cost(b, (backward ? 3 : 1) * 2.0 * 64 * 32 * 196 * 144,
               (backward ? 3 : 1) * 4.0 * 64 * 48 * 196);
    while (bench_running(b)) {
        td_scope_begin();
        td_tensor *y = td_convolution(x, w, NULL, around);
        if (backward)
            td_backward(td_sum(y, (td_reduce_options){ 0 }),
                        (td_backward_options){ 0 });
        td_scope_end();
    }
}

void bench_conv(bench *b) { convolve(b, false); }
void bench_grad_conv(bench *b) { convolve(b, true); }

void bench_conv_columns(bench *b)
{
    const td_dims three = TD_DIMS(3, 3), one = TD_DIMS(1, 1);
    td_tensor *w = noise(TD_DIMS(32, 144), false);
    const td_value in[] = { { .kind = TD_TENSOR,
        .as.tensor = noise(TD_DIMS(64, 16, 14, 14), false) } };
    td_value attr[4];
    for (int i = 0; i < 4; i++)
        attr[i] = (td_value){ .kind = TD_INTS,
            .as.ints = { 2, i == 0 ? three.at : one.at } };
    bench_cost(b, 2.0 * 64 * 32 * 196 * 144, 4.0 * 64 * 48 * 196);
    while (bench_running(b)) {
        td_call call = { .op = td_op_find("im2col"), .n_in = 1,
                         .in = in, .n_attr = 4, .attr = attr };
        td_scope_begin();
        if (td_run(&call))
            td_matmul(w, call.out[0]);
        td_scope_end();
    }
}
