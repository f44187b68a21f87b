/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "arranging": edit that, not this file. */
/* Operators that arrange elements, and products by subscripts.  Those
   without a function here are reached by td_run.

       td_tensor *x = td_ones(TD_DIMS(2, 3),
                              (td_tensor_options)TD_DEFAULTS);
       td_tensor *y = td_flip(x, TD_DIMS(1));
       td_tensor *both[] = { x, y };
       td_tensor *z = td_einsum("ij,ik->jk", both, 2);         // [3, 3]
*/
#pragma once
#include <treadle/tensor.h>
/* Views */
TD_API td_tensor *td_movedim(td_tensor *x, td_dims source,
                             td_dims destination);
TD_API td_tensor *td_diagonal(td_tensor *x, int64_t offset, int dim1,
                              int dim2);
/* Copies */
TD_API td_with_dims td_repeat, td_flip;
TD_API td_tensor *td_tril(td_tensor *x, int64_t diagonal);
/* mode: "constant", "reflect", "replicate", "circular" */
TD_API td_tensor *td_pad(td_tensor *x, td_dims margins,
                         const char *mode, double value);
/* Products */
TD_API td_tensor *td_einsum(const char *equation,
                            td_tensor *const *operands, int n);
