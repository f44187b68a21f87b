/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "statistics": edit that, not this file. */
/* Statistics: variance, norms, draws by weight.

       td_tensor *spread = td_std(x, (td_var_options){
                                      .dims = TD_DIMS(0) });
*/
#pragma once
#include <treadle/reductions.h>
typedef struct {
    td_dims dims;               /* empty: all */
    bool keepdim;
    td_opt_f64 correction;      /* subtracted from n; 1 */
} td_var_options;
/* float32, float64 only */
TD_API td_tensor *td_var(td_tensor *input, td_var_options options);
TD_API td_tensor *td_std(td_tensor *input, td_var_options options);
TD_API td_tensor *td_norm(td_tensor *input, double p,
                          td_reduce_options options);
/* int64 places of each row, its elements the weights */
TD_API td_tensor *td_multinomial(td_tensor *input, int64_t num_samples,
                                 bool replacement);
