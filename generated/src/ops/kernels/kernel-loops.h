/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rows": edit that, not this file. */
/* Loops made of formulas.  TD_LOOP_2(name, T, R, a, b, formula) defines

       static void name(int64_t n, char *const *data)

   which sets each R at data[0] to the formula of the T at data[1] and
   data[2]; TD_LOOP_1, _3 and _4 likewise.  See td_loop for n. */
#pragma once
#include "core/frame.h"
#include "ops/kernels/primitives.h"

#if defined(__clang__)
#define TD_INDEPENDENT \
    _Pragma("clang loop vectorize(assume_safety) interleave(disable)")
#else
#define TD_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* rows: make vectors half as wide */
#if defined __AVX512F__ && !defined __clang__
#define HALF_WIDE __attribute__((optimize("unroll-loops"),            \
                                 target("prefer-vector-width=256")))
#else
#define HALF_WIDE
#endif

/* rows: silence warnings about general formulas */
#pragma GCC diagnostic ignored "-Wtype-limits"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wint-in-bool-context"
#endif

/* rows: macros that define loops */
#define TD_LOOP(name, type, R, POINTERS, LOADS, formula)              \
    static void name(int64_t n, char *const *data)                    \
    {                                                                 \
        typedef type T;                                               \
        R *out = (R *)data[0];                                        \
        POINTERS                                                      \
        n &= -TD_LANES;                                               \
        TD_INDEPENDENT                                                \
        for (int64_t i = 0; i < n; i++) {                             \
            LOADS                                                     \
            out[i] = (R)(formula);                                    \
        }                                                             \
    }
#define TD_POINTER(x, k) const T *at_##x = (const T *)data[k];
#define TD_LOAD(x)       const T x = at_##x[i]; (void)x;
#define TD_LOOP_1(name, T, R, x, formula)                             \
    TD_LOOP(name, T, R, TD_POINTER(x, 1), TD_LOAD(x), formula)
#define TD_LOOP_2(name, T, R, a, b, formula)                          \
    TD_LOOP(name, T, R, TD_POINTER(a, 1) TD_POINTER(b, 2),            \
            TD_LOAD(a) TD_LOAD(b), formula)
#define TD_LOOP_3(name, T, R, a, b, c, formula)                       \
    TD_LOOP(name, T, R,                                               \
            TD_POINTER(a, 1) TD_POINTER(b, 2) TD_POINTER(c, 3),       \
            TD_LOAD(a) TD_LOAD(b) TD_LOAD(c), formula)
#define TD_LOOP_4(name, T, R, a, b, c, d, formula)                    \
    TD_LOOP(name, T, R, TD_POINTER(a, 1) TD_POINTER(b, 2)             \
            TD_POINTER(c, 3) TD_POINTER(d, 4),                        \
            TD_LOAD(a) TD_LOAD(b) TD_LOAD(c) TD_LOAD(d), formula)
