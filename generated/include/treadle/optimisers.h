/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "optimisers": edit that, not this file. */
/* Optimisers: how parameters move.

       td_optimiser *sgd = td_sgd(parameters, 6, 0.02,
           (td_sgd_options){ .momentum = 0.9 });
       td_zero_grad(sgd);
       td_backward(loss, (td_backward_options){ 0 });
       td_step(sgd);
*/
#pragma once
#include <treadle/autograd.h>
/* optimisers: prototypes of optimisers */
typedef struct td_optimiser td_optimiser;
typedef struct {
    double momentum, dampening, weight_decay;
    bool nesterov, maximize;
} td_sgd_options;

TD_API td_optimiser *td_sgd(td_tensor *const *parameters, int count,
                            double rate, td_sgd_options options);
/* optimisers: prototypes of optimisers that adapt */
typedef enum { TD_ADAM, TD_ADAMW, TD_RMSPROP, TD_ADAGRAD } td_adapting;
typedef struct {
    td_opt_f64 beta1, beta2;     /* 0.9, 0.999; of Adam and AdamW */
    td_opt_f64 alpha;            /* 0.99; of RMSprop, as are ... */
    double momentum;
    bool centered;               /* ... these two */
    double lr_decay;             /* of Adagrad */
    td_opt_f64 eps;              /* 1e-8; 1e-10 for Adagrad */
    td_opt_f64 weight_decay;     /* 0; 0.01 for AdamW */
    bool amsgrad, maximize;
} td_adapt_options;

TD_API td_optimiser *td_adapt(td_adapting rule,
                              td_tensor *const *parameters, int count,
                              double rate, td_adapt_options options);
typedef td_optimiser *td_adapting_by_name(td_tensor *const *parameters,
    int count, double rate, td_adapt_options options);
TD_API td_adapting_by_name td_adam, td_adamw, td_rmsprop, td_adagrad;
/* State k = 0 .. 3 of parameter i, borrowed; NULL: there is none (yet).
   What is set is retained; set all that there were. */
TD_API td_tensor *td_optimiser_state(const td_optimiser *optimiser,
                                     int i, int k);
TD_API bool td_set_optimiser_state(td_optimiser *optimiser, int i,
                                   int k, td_tensor *state);
/* Updates each parameter that has a gradient; the others stay. */
TD_API bool td_step(td_optimiser *optimiser);
/* Makes every gradient absent. */
TD_API bool td_zero_grad(td_optimiser *optimiser);
TD_API double td_learning_rate(const td_optimiser *optimiser);
TD_API bool td_set_learning_rate(td_optimiser *optimiser, double rate);
