/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "pooling": edit that, not this file. */
#include "ops/kernels/pooling-kernels.h"

enum { LANES = 8 };
#define LARGEST(name, T)                                              \
    static inline __attribute__((always_inline)) void                 \
    name##_of(int64_t n, int64_t step, int64_t rows, int64_t columns, \
              const T *restrict x, int64_t across, int64_t first,     \
              T *restrict one, int64_t *restrict at)                  \
    {                                                                 \
        for (int64_t b = 0; b < n; b++) {                             \
            T best = x[b * step];                                     \
            int64_t where = 0;                                        \
            for (int64_t i = 0; i < rows; i++)                        \
                for (int64_t j = 0; j < columns; j++) {               \
                    const T new = x[b * step + i * across + j];       \
                    const bool takes = (new > best) | (new != new);   \
                    best = takes ? new : best;                        \
                    where = takes ? i * across + j : where;           \
                }                                                     \
            one[b] = best;                                            \
            at[b] = first + b * step + where;                         \
        }                                                             \
    }                                                                 \
    static void name(int64_t n, int64_t step, int64_t rows,           \
                     int64_t columns, const T *x, int64_t across,     \
                     int64_t first, T *one, int64_t *at)              \
    {                                                                 \
        const int64_t b = n - LANES;                                  \
        if (b > 0 && n % LANES != 0) {                                \
            name(LANES, step, rows, columns, x + b * step, across,    \
                 first + b * step, one + b, at + b);                  \
            n &= -LANES;                                              \
        }                                                             \
        if (step == 2 && rows == 2 && columns == 2)                   \
            name##_of(n, 2, 2, 2, x, across, first, one, at);         \
        else if (step == 2 && rows == 3 && columns == 3)              \
            name##_of(n, 2, 3, 3, x, across, first, one, at);         \
        else                                                          \
            name##_of(n, step, rows, columns, x, across, first, one,  \
                      at);                                            \
    }
LARGEST(largest_f32, float)
LARGEST(largest_f64, double)

const td_pooling_level TD_ISA(td_pooling) = {
    largest_f32, largest_f64
};
