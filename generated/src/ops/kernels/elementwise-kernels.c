/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rows": edit that, not this file. */
#include "ops/elementwise.h"
#include "ops/kernels/kernel-loops.h"

/* rows: loops of each row */
#define FLOATS(LOOP, name, ...)                                       \
    LOOP(name##_loop_f32, TD_FLOAT32, float, float, __VA_ARGS__)      \
    LOOP(name##_loop_f64, TD_FLOAT64, double, double, __VA_ARGS__)
#define INTEGERS(LOOP, name, ...)                                     \
    LOOP(name##_loop_i64, TD_INT64, int64_t, int64_t, __VA_ARGS__)    \
    LOOP(name##_loop_i32, TD_INT32, int32_t, int32_t, __VA_ARGS__)    \
    LOOP(name##_loop_u8, TD_UINT8, uint8_t, uint8_t, __VA_ARGS__)
#define BOOLS(LOOP, name, ...)                                        \
    LOOP(name##_loop_b8, TD_BOOL, uint8_t, bool, __VA_ARGS__)
#define TESTS(LOOP, name, ...)                                        \
    LOOP(name##_loop_f32, TD_FLOAT32, float, bool, __VA_ARGS__)       \
    LOOP(name##_loop_f64, TD_FLOAT64, double, bool, __VA_ARGS__)      \
    LOOP(name##_loop_i64, TD_INT64, int64_t, bool, __VA_ARGS__)       \
    LOOP(name##_loop_i32, TD_INT32, int32_t, bool, __VA_ARGS__)       \
    LOOP(name##_loop_u8, TD_UINT8, uint8_t, bool, __VA_ARGS__)        \
    BOOLS(LOOP, name, __VA_ARGS__)
#define NUMBERS(...) FLOATS(__VA_ARGS__) INTEGERS(__VA_ARGS__)
#define WHOLE(...) INTEGERS(__VA_ARGS__) BOOLS(__VA_ARGS__)
#define ALL(...) NUMBERS(__VA_ARGS__) BOOLS(__VA_ARGS__)
#define LOOP_1(name, dtype, T, R, formula)                            \
    TD_LOOP_1(name, T, R, x, formula)
#define LOOP_2(name, dtype, T, R, formula)                            \
    TD_LOOP_2(name, T, R, a, b, formula)
#define ROW(name, formula, sentence, operands, dtypes, flags)         \
    dtypes(LOOP_##operands, name, formula)
#include "ops/elementwise.inc"

/* arithmetic: loops of where and clamp */
#define WHERE_LOOP(name, dtype, type, R, formula)                     \
    TD_LOOP(name, type, R,                                            \
            const uint8_t *at_c = (const uint8_t *)data[1];           \
            TD_POINTER(a, 2) TD_POINTER(b, 3),                        \
            const bool c = at_c[i] != 0; TD_LOAD(a) TD_LOAD(b),       \
            formula)
ALL(WHERE_LOOP, where, select(c, a, b))
#define CLAMP_LOOP(name, dtype, type, R, formula)                     \
    TD_LOOP(name, type, R,                                            \
            TD_POINTER(x, 1) TD_POINTER(low, 2) TD_POINTER(high, 3),  \
            TD_LOAD(x) TD_LOAD(low) TD_LOAD(high)                     \
            const T y = select(x < low, low, x);, formula)
NUMBERS(CLAMP_LOOP, clamp, select(y > high, high, y))

/* rows: table of all loops */
#define POINTER(name, dtype, ...) [dtype] = name,
#define ENTRY(name, dtypes) \
    [TD_ROW_##name] = { dtypes(POINTER, name, ) },
#define ROW(name, formula, sentence, operands, dtypes, flags) \
    ENTRY(name, dtypes)

const td_elementwise_level TD_ISA(td_elementwise) = { {
#include "ops/elementwise.inc"
    ENTRY(where, ALL)
    ENTRY(clamp, NUMBERS)
} };
