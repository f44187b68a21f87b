/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "order": edit that, not this file. */
/* Order and statistics: sorting, selection, running totals, moments.

   Dimensions may be negative, counted from the end.  NaN counts as
   largest; equal elements keep their order.  Indices come back through
   a pointer, which may be NULL.

       td_tensor *places;
       td_tensor *best = td_topk(scores, 5, -1, true, &places);
       td_tensor *spread = td_std(x, (td_var_options){
                                      .dims = TD_DIMS(0) });
*/
#ifndef TREADLE_ORDER_H
#define TREADLE_ORDER_H
#include <treadle/reductions.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef struct {
    td_dims dims;               /* empty: all */
    bool keepdim;
    td_opt_f64 correction;      /* subtracted from n; 1 */
} td_var_options;
/* order: prototypes of order */
TD_API td_tensor *td_sort(td_tensor *input, int dim, bool descending,
                          td_tensor **indices);
TD_API td_tensor *td_topk(td_tensor *input, int64_t k, int dim,
                          bool largest, td_tensor **indices);
TD_API td_tensor *td_median_dim(td_tensor *input, int dim, bool keepdim,
                                td_tensor **indices);
/* whole numbers are added and multiplied as int64 */
TD_API td_tensor *td_cumsum(td_tensor *input, int dim);
TD_API td_tensor *td_cumprod(td_tensor *input, int dim);
/* float32, float64 only */
TD_API td_tensor *td_var(td_tensor *input, td_var_options options);
TD_API td_tensor *td_std(td_tensor *input, td_var_options options);
TD_API td_tensor *td_norm(td_tensor *input, double p,
                          td_reduce_options options);
/* int64 places of each row, its elements the weights */
TD_API td_tensor *td_multinomial(td_tensor *input, int64_t num_samples,
                                 bool replacement);
#ifdef __cplusplus
}
#endif
#endif
