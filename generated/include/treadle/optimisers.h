/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "optimisers": edit that, not this file. */
/* Optimisers: how parameters move.

       td_optimiser *sgd = td_sgd(parameters, 6, 0.02,
           (td_sgd_options){ .momentum = 0.9 });
       td_zero_grad(sgd);
       td_backward(loss, (td_backward_options){ 0 });
       td_step(sgd);
*/
#ifndef TREADLE_OPTIMISERS_H
#define TREADLE_OPTIMISERS_H
#include <treadle/autograd.h>
#ifdef __cplusplus
extern "C" {
#endif
/* optimisers: prototypes of optimisers */
typedef struct td_optimiser td_optimiser;
typedef struct {
    double momentum, dampening, weight_decay;
    bool nesterov, maximize;
} td_sgd_options;

TD_API td_optimiser *td_sgd(td_tensor *const *parameters, int count,
                            double rate, td_sgd_options options);
/* optimisers: prototypes of optimisers that adapt */
typedef struct {
    td_opt_f64 beta1, beta2, eps;    /* 0.9, 0.999, 1e-8 */
    td_opt_f64 weight_decay;         /* 0; 0.01 for adamw */
    bool amsgrad, maximize;
} td_adam_options;
typedef struct {
    td_opt_f64 alpha, eps;           /* 0.99, 1e-8 */
    double weight_decay, momentum;
    bool centered, maximize;
} td_rmsprop_options;
typedef struct {
    td_opt_f64 eps;                  /* 1e-10 */
    double weight_decay, lr_decay;
    bool maximize;
} td_adagrad_options;

TD_API td_optimiser *td_adam(td_tensor *const *parameters, int count,
                             double rate, td_adam_options options);
TD_API td_optimiser *td_adamw(td_tensor *const *parameters, int count,
                              double rate, td_adam_options options);
TD_API td_optimiser *td_rmsprop(td_tensor *const *parameters,
                                int count, double rate,
                                td_rmsprop_options options);
TD_API td_optimiser *td_adagrad(td_tensor *const *parameters,
                                int count, double rate,
                                td_adagrad_options options);
/* Updates each parameter that has a gradient; the others stay. */
TD_API bool td_step(td_optimiser *optimiser);
/* Makes every gradient absent. */
TD_API bool td_zero_grad(td_optimiser *optimiser);
TD_API double td_learning_rate(const td_optimiser *optimiser);
TD_API bool td_set_learning_rate(td_optimiser *optimiser, double rate);
#ifdef __cplusplus
}
#endif
#endif
