/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "softmax": edit that, not this file. */
/* Reductions: many numbers into one, over any dimensions.

   Dimensions may be negative, counted from the end.  Results are new
   and contiguous, and have the same bits for any number of threads.  A
   sum of n floats errs by at most (140 + log2 n) 2^-24 times the sum of
   their magnitudes.  Errors: TD_ERROR_INDEX for dimensions out of
   range, TD_ERROR_RUNTIME for empty maxima and means of whole numbers.

       td_tensor *x = td_ones(TD_DIMS(64, 10),
                              (td_tensor_options)TD_DEFAULTS);
       td_tensor *s = td_sum(x, TD_REDUCE_DEFAULTS);         // []
       td_tensor *r = td_sum(x, (td_reduce_options){
                                 .dims = TD_DIMS(-1) });     // [64]
       td_tensor *p = td_softmax(x, 1);                      // [64, 10]
*/
#pragma once
#include <treadle/tensor.h>
/* reductions: struct td_reduce_options */
typedef struct {
    td_dims dims;       /* empty: all */
    bool keepdim;       /* reduced dimensions stay, with size 1 */
    td_dtype dtype;     /* sum, mean, ...: convert to it first */
} td_reduce_options;
#define TD_REDUCE_DEFAULTS ((td_reduce_options){ 0 })
#define TD_OVER(...) \
    ((td_reduce_options){ .dims = TD_DIMS(__VA_ARGS__) })
/* softmax: struct td_arg_options */
typedef struct {
    td_opt_i64 dim;     /* none: of the flattened tensor */
    bool keepdim;
} td_arg_options;
/* softmax: prototypes of the reductions */
typedef td_tensor *td_reduces(td_tensor *x, td_reduce_options options);
typedef td_tensor *td_reduces_one(td_tensor *x, td_arg_options options);
typedef td_tensor *td_finds(td_tensor *x, int dim, bool keepdim,
                            td_tensor **indices);

TD_API td_reduces td_sum, td_mean;
TD_API td_reduces_one td_prod;
/* Undo a broadcast from `dims` to the shape of x. */
TD_API td_with_dims td_sum_to_size;
/* Maxima and minima keep the type; a NaN wins. */
TD_API td_reduces td_amax, td_amin;
TD_API td_of_one td_max, td_min;
/* The first extreme along dim; its index, int64, if wanted. */
TD_API td_finds td_max_dim, td_min_dim;
TD_API td_reduces_one td_argmax, td_argmin;
/* bool */
TD_API td_reduces td_any, td_all;
/* float32, float64 only */
TD_API td_reduces td_logsumexp;
TD_API td_along td_softmax, td_log_softmax;
