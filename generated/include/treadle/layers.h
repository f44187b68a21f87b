/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "containers": edit that, not this file. */
/* Layers by their settings, and operators by the names of their
   arguments; both are PyTorch's.

       td_module *conv = td_conv2d_module((td_args){
           .in_channels = 3, .out_channels = 16,
           .kernel_size = TD_DIMS(3), .padding = TD_DIMS(1) });
       td_tensor *y = td_forward(conv, x);

   Zero and the empty list mean: not given.  What a layer does not take
   is an error, and so is what it lacks.  Texts are not copied: they
   must be there as long as the module. */
#pragma once
#include <treadle/module.h>
/* containers: struct td_args */
typedef struct { int count; td_tensor *const *at; } td_tensors;
typedef struct { td_tensor *at[4]; } td_more;

typedef struct {
#define TENSOR(name) td_tensor *name;
#define SIZE(name) int64_t name;
#define NUMBER(name) td_opt_i64 name;
#define REAL(name) td_opt_f64 name;
#define FLAG(name) bool name;
#define SIZES(name) td_dims name;
#define TEXT(name) const char *name;
#define TENSORS(name) td_tensors name;
#include <treadle/arguments.h>
    td_dtype dtype;              /* of the parameters */
    td_device device;
    td_more *more;               /* where further results go */
} td_args;
typedef td_module *td_new_layer(td_args settings);
typedef td_tensor *td_named_operator(td_tensor *input, td_args further);
/* containers: prototypes of layers */
typedef struct {
    const char *name;            /* NULL: its number */
    td_module *module;           /* one of these two */
    td_tensor *parameter;
} td_named_part;
/* A sequence with names; who needs another order calls them by name. */
TD_API td_module *td_parts(const td_named_part *parts, int count);
/* Borrowed; NULL with an error if there is none of that name. */
TD_API td_module *td_child(td_module *parts, const char *name);
TD_API td_tensor *td_trunc_normal_(td_tensor *w, double mean,
                                   double deviation, double low,
                                   double high);
TD_API td_with_real td_orthogonal_;     /* gain */
/* With further inputs, NULL for one that is absent; they are replaced
   by further results. */
TD_API td_tensor *td_forward_with(td_module *module, td_tensor *x,
                                  td_more *more);
#define LAYER(name, c_name, ...) \
    TD_API td_new_layer td_##c_name##_module;
#define BY_NAME(op) TD_API td_named_operator td_##op;
#include <treadle/layer_rows.h>
