/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "recurrence": edit that, not this file. */
/* A row of one step of a GRU [1] or an LSTM [0], in double [1];
   at: operands and results of the operator, or of gated_backward_
   with a gap at 4. */
#pragma once
#include "core/isa.h"

typedef void td_gated_row(int64_t m, void *const *at);
typedef struct {
    td_gated_row *row[2][2][2];         /* [back] */
} td_gated_level;
TD_ISA_TABLE(td_gated_level, td_gated);
