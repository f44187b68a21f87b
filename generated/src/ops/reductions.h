/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "softmax": edit that, not this file. */
/* Does the operator of a call compute in this type?  If not, an error
   that names it is pending. */
#pragma once
#include "core/registry.h"
bool td_check_computes(const td_call *call, td_dtype dtype,
                       bool floating);
bool td_axes_to_reduce(const td_call *call, const td_tensor *x,
                       const td_value *dim, unsigned *mask);

/* The first result of an operator of one tensor, and through `second`,
   unless it is NULL, the other. */
td_tensor *td_run_pair(int op, td_tensor *input, int n,
                       const td_value *attr, td_tensor **second);

/* As TD_TYPED, for values and their indices. */
#define TD_PICKING(op, attributes, ...) \
    td_tensor *td_##op(td_tensor *x, __VA_ARGS__, td_tensor **indices) \
    { \
        return td_run_pair(TD_OP_##op, x, TD_VALUES attributes, \
                           indices); \
    }
