/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "order": edit that, not this file. */
/* Order: sorting, selection, running totals.

   Dimensions may be negative, counted from the end.  NaN counts as
   largest; equal elements keep their order.  Indices come back through
   a pointer, which may be NULL.

       td_tensor *places;
       td_tensor *best = td_topk(scores, 5, -1, true, &places);
*/
#pragma once
#include <treadle/reductions.h>
/* order: prototypes of order */
TD_API td_tensor *td_sort(td_tensor *input, int dim, bool descending,
                          td_tensor **indices);
TD_API td_tensor *td_topk(td_tensor *input, int64_t k, int dim,
                          bool largest, td_tensor **indices);
TD_API td_finds td_median_dim;
/* whole numbers are added and multiplied as int64 */
TD_API td_along td_cumsum, td_cumprod;
