/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "recurrence": edit that, not this file. */
#include "ops/kernels/recurrence-kernels.h"
#include "ops/kernels/kernel-loops.h"

#define OF(x, k) x[k * m + j]
#define T float
#define NAME(x) x##_f32
#include "ops/kernels/recurrence-steps.inc"
#define T double
#define NAME(x) x##_f64
#include "ops/kernels/recurrence-steps.inc"
const td_gated_level TD_ISA(td_gated) = { {
    { { lstm_f32, lstm_f64 }, { gru_f32, gru_f64 } },
    { { lstm_back_f32, lstm_back_f64 }, { gru_back_f32, gru_back_f64 } }
} };
