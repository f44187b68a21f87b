/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "optimisers": edit that, not this file. */
/* The step of an optimiser as operators, for the compiler. */
#pragma once
#include <treadle/op.h>

/* out[i]: the new value of input i, NULL where it has none. */
bool td_step_parts(const td_op *op, const td_value *in, int n_in,
                   const td_value *attr, td_tensor *out[6]);
