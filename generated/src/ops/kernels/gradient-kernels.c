/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rules": edit that, not this file. */
#include "ops/gradients.h"
#include "ops/kernels/kernel-loops.h"

#define LOOPS_1(f, gradient)                                          \
    TD_LOOP_3(f##_f32, float, float, g, y, x, gradient)               \
    TD_LOOP_3(f##_f64, double, double, g, y, x, gradient)
#define LOOPS_2(f, gradient)                                          \
    TD_LOOP_4(f##_f32, float, float, g, y, a, b, gradient)            \
    TD_LOOP_4(f##_f64, double, double, g, y, a, b, gradient)
#define UNARY_RULE(name, gradient)                                    \
    LOOPS_1(name##_gradient, gradient)
#define BINARY_RULE(name, gradient_a, gradient_b)                     \
    LOOPS_2(name##_gradient_a, gradient_a)                            \
    LOOPS_2(name##_gradient_b, gradient_b)
#include "ops/elementwise.inc"

/* rules: table of the gradient loops */
#define LOOPS(name) { [TD_FLOAT32] = name##_f32, \
                      [TD_FLOAT64] = name##_f64 }

const td_gradient_level TD_ISA(td_gradients) = { {
#define UNARY_RULE(name, ...) \
    [TD_GRADIENT_##name] = { LOOPS(name##_gradient) },
#define BINARY_RULE(name, ...) \
    [TD_GRADIENT_##name] = { LOOPS(name##_gradient_a), \
                             LOOPS(name##_gradient_b) },
#include "ops/elementwise.inc"
} };
