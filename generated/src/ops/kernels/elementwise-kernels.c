/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rows": edit that, not this file. */
#include "ops/elementwise.h"
#include "ops/kernels/kernel-loops.h"

/* rows: loops of each row */
#define FLOATS(EACH, R, name, ...)                                    \
    EACH(TD_FLOAT32, name##_loop_f32, float, R, __VA_ARGS__)          \
    EACH(TD_FLOAT64, name##_loop_f64, double, R, __VA_ARGS__)
#define INTEGERS(EACH, R, name, ...)                                  \
    EACH(TD_INT64, name##_loop_i64, int64_t, R, __VA_ARGS__)          \
    EACH(TD_INT32, name##_loop_i32, int32_t, R, __VA_ARGS__)          \
    EACH(TD_UINT8, name##_loop_u8, uint8_t, R, __VA_ARGS__)
#define BOOLS(EACH, R, name, ...)                                     \
    EACH(TD_BOOL, name##_loop_b8, uint8_t, bool, __VA_ARGS__)
#define NUMBERS(...) FLOATS(__VA_ARGS__) INTEGERS(__VA_ARGS__)
#define WHOLE(...) INTEGERS(__VA_ARGS__) BOOLS(__VA_ARGS__)
#define EVERY(...) FLOATS(__VA_ARGS__) WHOLE(__VA_ARGS__)
#define DEFINE(dtype, name, type, R, LOOP, ...)                       \
    LOOP(name, type, R, __VA_ARGS__)
#define OPERANDS_1 x
#define OPERANDS_2 a, b
#define ROW(name, n, family, R, formula)                              \
    family(DEFINE, R, name, TD_LOOP_##n, OPERANDS_##n, formula)
#include "ops/each-row.inc"

/* arithmetic: loops of where and clamp */
#define WHERE_LOOP(name, type, R, formula)                            \
    TD_LOOP(name, type, R,                                            \
            const uint8_t *at_c = (const uint8_t *)data[1];           \
            TD_POINTER(a, 2) TD_POINTER(b, 3),                        \
            const bool c = at_c[i] != 0; TD_LOAD(a) TD_LOAD(b),       \
            formula)
EVERY(DEFINE, T, where, WHERE_LOOP, select(c, a, b))
#define CLAMP_LOOP(name, type, R, formula)                            \
    TD_LOOP(name, type, R,                                            \
            TD_POINTER(x, 1) TD_POINTER(low, 2) TD_POINTER(high, 3),  \
            TD_LOAD(x) TD_LOAD(low) TD_LOAD(high)                     \
            const T y = select(x < low, low, x);, formula)
NUMBERS(DEFINE, T, clamp, CLAMP_LOOP, select(y > high, high, y))

/* rows: table of all loops */
#define PUT(dtype, name, ...) [dtype] = name,
#define ENTRY(name, family)                                           \
    [TD_ROW_##name] = { family(PUT, T, name, ) },

const td_elementwise_level TD_ISA(td_elementwise) = { {
#define ROW(name, n, family, R, formula) ENTRY(name, family)
#include "ops/each-row.inc"
    ENTRY(where, EVERY)
    ENTRY(clamp, NUMBERS)
} };
