/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "convolution": edit that, not this file. */
/* needs: loom convolution */
#include <treadle/treadle.h>
#include "bench.h"

static td_tensor *in_tiles(td_tensor *x, td_tensor *w)
{
    return td_convolution(x, w, NULL, (td_convolution_options){
                              .padding = TD_DIMS(1) });
}

static td_tensor *in_runs(td_tensor *x, td_tensor *w)
{
    return td_convolution(x, w, NULL, (td_convolution_options){
                  .padding = TD_DIMS(2), .dilation = TD_DIMS(2) });
}

static td_tensor *in_columns(td_tensor *x, td_tensor *w)
{
    const td_dims three = TD_DIMS(3, 3), one = TD_DIMS(1, 1);
    const td_value in = { .kind = TD_TENSOR, .as.tensor = x };
    td_value attr[4];
    for (int i = 0; i < 4; i++)
        attr[i] = (td_value){ .kind = TD_INTS,
            .as.ints = { 2, i == 0 ? three.at : one.at } };
    td_call call = { .op = td_op_find("im2col"), .n_in = 1, .in = &in,
                     .n_attr = 4, .attr = attr };
    return td_run(&call) ? td_matmul(td_reshape(w, TD_DIMS(32, 144)),
                                     call.out[0]) : NULL;
}

static void repeat(bench *b, bool backward,
                   td_tensor *layer(td_tensor *x, td_tensor *w))
{
    const td_tensor_options plain = TD_DEFAULTS;
    const double times = backward ? 3 : 1;
    td_tensor *x = td_randn(TD_DIMS(64, 16, 14, 14), plain);
    td_tensor *w = td_randn(TD_DIMS(32, 16, 3, 3), plain);
    td_set_requires_grad(x, backward);
    td_set_requires_grad(w, backward);
    bench_cost(b, times * 2 * 64 * 32 * 196 * 144,
               times * 4 * 64 * 48 * 196);
    while (bench_running(b)) {
        td_scope_begin();
        td_tensor *y = layer(x, w);
        if (backward)
            td_backward(td_sum(y, (td_reduce_options)TD_DEFAULTS),
                        (td_backward_options)TD_DEFAULTS);
        td_scope_end();
    }
}

void bench_conv(bench *b) { repeat(b, false, in_tiles); }
void bench_conv_runs(bench *b) { repeat(b, false, in_runs); }
void bench_conv_columns(bench *b) { repeat(b, false, in_columns); }
void bench_grad_conv(bench *b) { repeat(b, true, in_tiles); }
void bench_grad_conv_runs(bench *b) { repeat(b, true, in_runs); }
void bench_grad_columns(bench *b) { repeat(b, true, in_columns); }
