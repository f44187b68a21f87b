/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "losses": edit that, not this file. */
/* Losses: one number that says how wrong, and its derivative.

       td_tensor *loss = td_cross_entropy(scores, labels,
           (td_cross_entropy_options){ .label_smoothing = 0.1 });
       td_backward(loss, (td_backward_options){ 0 });
*/
#pragma once
#include <treadle/tensor.h>
/* losses: prototypes of losses */
typedef enum { TD_LOSS_MEAN, TD_LOSS_SUM, TD_LOSS_NONE }
    td_loss_reduction;

typedef struct {
    td_tensor *weight;           /* [classes] */
    td_loss_reduction reduction;
    td_opt_i64 ignore_index;     /* otherwise -100 */
    double label_smoothing;
} td_cross_entropy_options;

typedef td_tensor *td_loss_of_labels(td_tensor *input,
    td_tensor *target, td_cross_entropy_options options);
TD_API td_loss_of_labels td_cross_entropy;
typedef td_tensor *td_loss_of_two(td_tensor *input, td_tensor *target,
                                  td_loss_reduction reduction);
TD_API td_loss_of_two td_mse_loss, td_l1_loss, td_kl_div;
typedef td_tensor *td_loss_that_bends(td_tensor *input,
    td_tensor *target, double bend, td_loss_reduction reduction);
TD_API td_loss_that_bends td_smooth_l1_loss, td_huber_loss;

typedef struct {
    td_tensor *weight, *pos_weight;
    td_loss_reduction reduction;
} td_bit_options;
typedef td_tensor *td_loss_of_bits(td_tensor *input, td_tensor *target,
                                   td_bit_options options);
/* Probabilities have no pos_weight. */
TD_API td_loss_of_bits td_binary_cross_entropy,
                       td_binary_cross_entropy_with_logits;
TD_API td_loss_of_labels td_nll_loss;
