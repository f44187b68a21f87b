/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "containers": edit that, not this file. */
/* Layers made from rows; see the chapter "containers". */
#pragma once
#include "core/registry.h"
#include "nn/module.h"
#include <treadle/treadle.h>

#define refuse(l, ...) \
    td_fail(TD_ERROR_VALUE, l->module.class->name, __VA_ARGS__)
typedef struct {
    td_module module;
    td_args a;
    int dims;                    /* the row's */
} layer;
typedef struct {
    td_module_class class;
    const td_op *op;             /* NULL: none in particular */
    void (*make)(layer *l);      /* its parts; NULL: has none */
    td_tensor *(*run)(layer *l, td_tensor *x);   /* NULL: op */
    int dims;
    const char *takes;           /* " must! may=1", with the op's */
} layer_row;

/* containers: prototypes of rows */
td_opt_f64 td_or(td_opt_f64 given, double otherwise);
void td_add_tensor(layer *l, td_part_kind kind, td_tensor *x,
                   const char *name);
td_tensor *td_add_weight(layer *l, td_dims shape, double low,
                         double high, const char *name);
td_tensor *td_through(layer *l, const char *words, td_tensor *x);
void td_add_layer(layer *l, const char *name, td_new_layer *make,
                  td_args a);
void td_add_linear(layer *l, const char *name, int64_t in, int64_t out,
                   bool no_bias);
layer *td_add_stack(layer *l, const char *name);
void td_add_bend(layer *l, const char *name, const char *usual);
td_tensor *td_run_named(const td_op *op, td_tensor *x,
                        const td_args *a);
