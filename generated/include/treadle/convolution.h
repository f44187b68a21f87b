/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "convolution": edit that, not this file. */
/* Convolutions of pictures, and their adjoints.

       td_tensor *y = td_convolution(x, w, b,     // [64, 1, 28, 28],
           (td_convolution_options){              // [8, 1, 3, 3], [8]
               .stride = TD_DIMS(2), .padding = TD_DIMS(1, 1) });
*/
#pragma once
#include <treadle/tensor.h>
/* Lists hold two numbers or one for both; empty lists mean stride 1,
   padding 0, dilation 1, output_padding 0. */
typedef struct {
    td_dims stride, padding, dilation;
    bool transposed;
    td_dims output_padding;     /* if transposed */
    int64_t groups;             /* 0 is 1 */
} td_convolution_options;

/* input [N, C, H, W]; weight [O, C / groups, h, w], or transposed
   [C, O / groups, h, w]; bias [O] or NULL. */
TD_API td_tensor *td_convolution(td_tensor *input, td_tensor *weight,
                                 td_tensor *bias,
                                 td_convolution_options options);
