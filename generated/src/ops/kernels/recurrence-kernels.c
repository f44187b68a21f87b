/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "recurrence": edit that, not this file. */
#include "ops/kernels/recurrence-kernels.h"
#include "ops/kernels/kernel-loops.h"

#define OF(x, k) x[k * m + j]
#define BODY "ops/kernels/recurrence-steps.inc"
#include "ops/kernels/twice.inc"
const td_gated_level TD_ISA(td_gated) = { {
    { { lstm_f32, lstm_f64 }, { gru_f32, gru_f64 } },
    { { lstm_back_f32, lstm_back_f64 }, { gru_back_f32, gru_back_f64 } }
} };
