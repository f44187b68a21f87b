/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rows": edit that, not this file. */
#include "ops/elementwise.h"
#include "ops/kernels/kernel-loops.h"

/* rows: loops of each row */
#define FLOATS(LOOP, name, ...)                                       \
    LOOP(name##_loop_f32, float, float, __VA_ARGS__)                  \
    LOOP(name##_loop_f64, double, double, __VA_ARGS__)
#define INTEGERS(LOOP, name, ...)                                     \
    LOOP(name##_loop_i64, int64_t, int64_t, __VA_ARGS__)              \
    LOOP(name##_loop_i32, int32_t, int32_t, __VA_ARGS__)              \
    LOOP(name##_loop_u8, uint8_t, uint8_t, __VA_ARGS__)
#define BOOLS(LOOP, name, ...)                                        \
    LOOP(name##_loop_b8, uint8_t, bool, __VA_ARGS__)
#define TESTS(LOOP, name, ...)                                        \
    LOOP(name##_loop_f32, float, bool, __VA_ARGS__)                   \
    LOOP(name##_loop_f64, double, bool, __VA_ARGS__)                  \
    LOOP(name##_loop_i64, int64_t, bool, __VA_ARGS__)                 \
    LOOP(name##_loop_i32, int32_t, bool, __VA_ARGS__)                 \
    LOOP(name##_loop_u8, uint8_t, bool, __VA_ARGS__)                  \
    LOOP(name##_loop_b8, uint8_t, bool, __VA_ARGS__)
#define UNARY(name, formula) FLOATS(TD_LOOP_1, name, x, formula)
#define UNARY_SAME(name, formula)                                     \
    FLOATS(TD_LOOP_1, name, x, formula)                               \
    INTEGERS(TD_LOOP_1, name, x, formula)
#define TEST(name, formula) TESTS(TD_LOOP_1, name, x, formula)
#define BINARY(name, formula)                                         \
    FLOATS(TD_LOOP_2, name, a, b, formula)                            \
    INTEGERS(TD_LOOP_2, name, a, b, formula)                          \
    BOOLS(TD_LOOP_2, name, a, b, formula)
#define BINARY_NUMBER(name, formula)                                  \
    FLOATS(TD_LOOP_2, name, a, b, formula)                            \
    INTEGERS(TD_LOOP_2, name, a, b, formula)
#define BINARY_FLOAT(name, formula)                                   \
    FLOATS(TD_LOOP_2, name, a, b, formula)
#define COMPARE(name, formula) TESTS(TD_LOOP_2, name, a, b, formula)
#define BITWISE(name, formula)                                        \
    INTEGERS(TD_LOOP_2, name, a, b, formula)                          \
    BOOLS(TD_LOOP_2, name, a, b, formula)
#include "ops/elementwise.inc"

/* arithmetic: loops of where and clamp */
#define WHERE_LOOP(name, type, R, formula)                            \
    TD_LOOP(name, type, R,                                            \
            const uint8_t *at_c = (const uint8_t *)data[1];           \
            TD_POINTER(a, 2) TD_POINTER(b, 3),                        \
            const bool c = at_c[i] != 0; TD_LOAD(a) TD_LOAD(b),       \
            formula)
FLOATS(WHERE_LOOP, where, select(c, a, b))
INTEGERS(WHERE_LOOP, where, select(c, a, b))
BOOLS(WHERE_LOOP, where, select(c, a, b))
#define CLAMP_LOOP(name, type, R, formula)                            \
    TD_LOOP(name, type, R,                                            \
            TD_POINTER(x, 1) TD_POINTER(low, 2) TD_POINTER(high, 3),  \
            TD_LOAD(x) TD_LOAD(low) TD_LOAD(high)                     \
            const T y = select(x < low, low, x);, formula)
FLOATS(CLAMP_LOOP, clamp, select(y > high, high, y))
INTEGERS(CLAMP_LOOP, clamp, select(y > high, high, y))

/* rows: table of all loops */
#define FLOAT_LOOPS(name)                                             \
    [TD_FLOAT32] = name##_loop_f32, [TD_FLOAT64] = name##_loop_f64,
#define INTEGER_LOOPS(name)                                           \
    [TD_INT64] = name##_loop_i64, [TD_INT32] = name##_loop_i32,       \
    [TD_UINT8] = name##_loop_u8,
#define BOOL_LOOPS(name) [TD_BOOL] = name##_loop_b8,
#define ALL_LOOPS(name)                                               \
    FLOAT_LOOPS(name) INTEGER_LOOPS(name) BOOL_LOOPS(name)
#define ENTRY(name, loops) [TD_ROW_##name] = { loops(name) },
#define NUMBER_LOOPS(name) FLOAT_LOOPS(name) INTEGER_LOOPS(name)
#define WHOLE_LOOPS(name) INTEGER_LOOPS(name) BOOL_LOOPS(name)

const td_elementwise_level TD_ISA(td_elementwise) = { {
#define UNARY(name, formula) ENTRY(name, FLOAT_LOOPS)
#define UNARY_SAME(name, formula) ENTRY(name, NUMBER_LOOPS)
#define TEST(name, formula) ENTRY(name, ALL_LOOPS)
#define BINARY(name, formula) ENTRY(name, ALL_LOOPS)
#define BINARY_NUMBER(name, formula) ENTRY(name, NUMBER_LOOPS)
#define BINARY_FLOAT(name, formula) ENTRY(name, FLOAT_LOOPS)
#define BITWISE(name, formula) ENTRY(name, WHOLE_LOOPS)
#include "ops/elementwise.inc"
    ENTRY(where, ALL_LOOPS)
    ENTRY(clamp, NUMBER_LOOPS)
} };
