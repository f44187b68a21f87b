/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "losses": edit that, not this file. */
/* Losses: one number that says how wrong, and its derivative.

       td_tensor *loss = td_cross_entropy(scores, labels,
           (td_cross_entropy_options){ .label_smoothing = 0.1 });
       td_backward(loss, (td_backward_options){ 0 });
*/
#ifndef TREADLE_LOSSES_H
#define TREADLE_LOSSES_H
#include <treadle/tensor.h>
#ifdef __cplusplus
extern "C" {
#endif
/* losses: prototypes of losses */
typedef enum { TD_LOSS_MEAN, TD_LOSS_SUM, TD_LOSS_NONE }
    td_loss_reduction;

typedef struct {
    td_tensor *weight;           /* [classes] */
    td_loss_reduction reduction;
    td_opt_i64 ignore_index;     /* otherwise -100 */
    double label_smoothing;
} td_cross_entropy_options;

TD_API td_tensor *td_cross_entropy(td_tensor *input, td_tensor *target,
                                   td_cross_entropy_options options);
TD_API td_tensor *td_mse_loss(td_tensor *input, td_tensor *target,
                              td_loss_reduction reduction);
#ifdef __cplusplus
}
#endif
#endif
