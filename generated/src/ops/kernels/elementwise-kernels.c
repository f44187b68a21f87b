/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rows": edit that, not this file. */
#include "ops/elementwise.h"
#include "ops/kernels/kernel-loops.h"

/* arithmetic: rows that wait for memory */
HALF_WIDE static td_loop add_loop_f32, sub_loop_f32, mul_loop_f32,
    div_loop_f32, maximum_loop_f32, minimum_loop_f32, where_loop_f32,
    clamp_loop_f32, addcmul_loop_f32;

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

/* arithmetic: loops of several operands */
#define WHERE_LOOP(name, dtype, type, R, formula)                     \
    TD_LOOP(name, type, R,                                            \
            const uint8_t *at_c = (const uint8_t *)data[1];           \
            TD_POINTER(a, 2) TD_POINTER(b, 3),                        \
            const bool c = at_c[i] != 0; TD_LOAD(a) TD_LOAD(b),       \
            formula)
ALL(WHERE_LOOP, where, select(c, a, b))
#define RAISED select(x < low, low, x)
#define CLAMP_LOOP(name, dtype, T, R, formula)                        \
    TD_LOOP_3(name, T, R, x, low, high, formula)
NUMBERS(CLAMP_LOOP, clamp, select(RAISED > high, high, RAISED))
#define ADDCMUL_LOOP(name, dtype, T, R, formula)                      \
    TD_LOOP_3(name, T, R, x, a, b, formula)
NUMBERS(ADDCMUL_LOOP, addcmul, x + a * b)

/* activations: loops that look at their numbers first */
static void run_either(int64_t n, char *const *data, td_loop *near,
                       td_loop *far)
{
    for (int64_t at = 0, end; at < n; at = end) {
        const float *a = (const float *)data[1];
        const float *b = (const float *)data[2];
        char *block[3];
        int away = 0;
        end = td_least(n, at + TD_BLOCK);
        for (int k = 0; k < 3; k++)
            block[k] = data[k] + at * (int64_t)sizeof(float);
        for (int64_t i = at; i < end; i++)
            away |= !is_near(a[i], b[i]);
        (away ? far : near)(end - at, block);
    }
}

#define NEAR(name)                                                    \
    TD_LOOP_2(name##_close, float, float, a, b, name##_near(a, b))    \
    static void name##_either(int64_t n, char *const *data)           \
    {                                                                 \
        run_either(n, data, name##_close, name##_loop_f32);           \
    }
NEAR(fmod)
NEAR(remainder)
NEAR(floor_divide)
#define fmod_loop_f32 fmod_either
#define remainder_loop_f32 remainder_either
#define floor_divide_loop_f32 floor_divide_either

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
    ENTRY(addcmul, NUMBERS)
} };
