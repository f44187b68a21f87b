/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rows": edit that, not this file. */
/* Instruction set levels: which kernels this processor runs.

   A file NAME-kernels.c is compiled once a level and exports one
   constant, `const table TD_ISA(symbol) = {...}`.  The header of the
   table says TD_ISA_TABLE(table, symbol); and the rest of the library
   writes TD_ISA_PICK(symbol)->function(...). */
#pragma once
#include <treadle/isa.h>
#include "core/runtime.h"

/* rows: macros that name the levels */
#if defined TD_HAVE_ISA_v4
#define TD_ISA_LEVELS(X, a, b) \
    X(v1, a, b) X(v2, a, b) X(v3, a, b) X(v4, a, b)
#elif defined TD_HAVE_ISA_neon
#define TD_ISA_LEVELS(X, a, b) X(neon, a, b)
#else
#define TD_ISA_LEVELS(X, a, b) X(base, a, b)
#endif

#define TD_ISA_NUMBER(level, a, b) TD_ISA_##level,
enum { TD_ISA_LEVELS(TD_ISA_NUMBER, , ) TD_ISA_COUNT };

#define TD_ISA_PASTE(name, level) name##_##level
#define TD_ISA_EXPAND(name, level) TD_ISA_PASTE(name, level)
#define TD_ISA(name) TD_ISA_EXPAND(name, TD_ISA_NAME)

/* rows: macros that pick a level */
#define TD_ISA_DECLARE(level, type, name) \
    extern const type name##_##level;
#define TD_ISA_ADDRESS(level, type, name) &name##_##level,
#define TD_ISA_TABLE(type, name)                                      \
    TD_ISA_LEVELS(TD_ISA_DECLARE, type, name)                         \
    __attribute__((unused)) static const type *const                  \
        name##_of_level[TD_ISA_COUNT]                                 \
        = { TD_ISA_LEVELS(TD_ISA_ADDRESS, type, name) }
#define TD_ISA_PICK(name) (name##_of_level[td_process()->isa])
/* matmul: macros that pick a level */
/* A loop over 0 <= i < n, written out if n is known to be small. */
#define TD_UNROLLED(i, n)                                             \
    _Pragma("GCC unroll 36") for (int i = 0; i < (n); i++)

int td_isa_best(void);
