/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "products": edit that, not this file. */
/* Products of matrices.

   Operands have one type (float32, float64, int64, int32 or uint8) and
   any strides; the result is new and contiguous.  Results have the same
   bits for any number of threads.  Errors: TD_ERROR_RUNTIME for shapes
   and unequal types, TD_ERROR_UNSUPPORTED for the other types.

       const td_tensor_options plain = TD_DEFAULTS;
       td_tensor *x = td_ones(TD_DIMS(64, 784), plain);
       td_tensor *w = td_ones(TD_DIMS(10, 784), plain);
       td_tensor *y = td_linear(x, w, NULL);            // [64, 10]
       td_tensor *g = td_matmul(td_t(y), x);            // [10, 784]
*/
#pragma once
#include <treadle/tensor.h>
/* products: prototypes of the matmul operators */
/* [..., m, k] times [..., k, n]; batch dimensions broadcast; [k] is a
   row on the left, a column on the right, and drops from the result. */
TD_API td_of_two td_matmul;
/* [n] and [n] to [] */
TD_API td_of_two td_dot;
/* [b, m, k] times [b, k, n] to [b, m, n] */
TD_API td_of_two td_bmm;
/* [..., in], [out, in] and [out] (or NULL) to [..., out] */
TD_API td_tensor *td_linear(td_tensor *input, td_tensor *weight,
                            td_tensor *bias);
/* beta input + alpha mat1 mat2; input broadcasts to [m, n] */
TD_API td_tensor *td_addmm(td_tensor *input, td_tensor *mat1,
                           td_tensor *mat2, td_scalar beta,
                           td_scalar alpha);
