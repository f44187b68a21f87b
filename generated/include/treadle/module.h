/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "modules": edit that, not this file. */
/* Modules: layers that own their parameters.

       td_module *net = td_sequential((td_module *[]){
           td_linear_module(784, 128, (td_linear_options){ 0 }),
           td_relu_module(),
           td_linear_module(128, 10, (td_linear_options){ 0 }) }, 3);
       td_tensor *scores = td_forward(net, images);

   Its parameters are called 0.weight, 0.bias, 2.weight, 2.bias. */
#pragma once
#include <treadle/tensor.h>
typedef struct td_module td_module;
/* modules: struct td_named_tensor */
enum { TD_NAME_SIZE = 96 };
typedef struct {
    char name[TD_NAME_SIZE];
    td_tensor *tensor;           /* borrowed from the module */
} td_named_tensor;
/* modules: prototypes of modules */
typedef struct {
    bool no_bias;
    td_dtype dtype;
    td_device device;
} td_linear_options;

TD_API td_module *td_linear_module(int64_t in, int64_t out,
                                   td_linear_options options);
TD_API td_module *td_relu_module(void);
TD_API td_module *td_sequential(td_module *const *children, int count);
TD_API td_tensor *td_forward(td_module *module, td_tensor *x);
TD_API bool td_train(td_module *module, bool training);
TD_API bool td_is_training(const td_module *module);
/* Each parameter once; the order is that of the parts. */
TD_API int td_parameters(td_module *module, td_tensor **out,
                         int capacity);
typedef int td_names(td_module *module, td_named_tensor *out,
                     int capacity);
TD_API td_names td_named_parameters;
/* Parameters and buffers; a shared one under each of its names. */
TD_API td_names td_named_state;
/* modules: prototypes of initialisers */
typedef struct {
    double negative_slope;       /* of a leaky ReLU; 0 for ReLU */
    bool fan_out;                /* keep the gradients steady */
} td_kaiming_options;

typedef td_tensor *td_kaiming(td_tensor *w, td_kaiming_options options);
TD_API td_with_real td_xavier_uniform_, td_xavier_normal_;  /* gain */
TD_API td_kaiming td_kaiming_uniform_, td_kaiming_normal_;
TD_API double td_gain(const char *function, double slope);
