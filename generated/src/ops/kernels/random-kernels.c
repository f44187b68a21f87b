/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "random": edit that, not this file. */
#include "ops/kernels/random-kernels.h"
#include "ops/kernels/primitives.h"

static inline double whole(uint64_t x)           /* below 2^53 */
{
    return double_of(x >> 32 | 0x4530000000000000u) - 0x1.00000001p84
         + double_of((x & 0xffffffff) | 0x4330000000000000u);
}

static inline double series(double z, int first)
{
    double sum = 1;
    _Pragma("GCC unroll 8")
    for (int n = first; n > 1; n -= 2)
        sum = 1 - sum * z * (1.0 / (n * (n - 1)));
    return sum;
}

static void normals(int64_t pairs, td_stream stream, uint64_t first,
                    double a, double b, double *restrict out)
{
    for (int64_t i = 0; i < pairs; i++) {
        const uint64_t x = td_draw(stream, first + 2 * (uint64_t)i);
        const uint64_t y = td_draw(stream, first + 2 * (uint64_t)i + 1);
        const double u = whole(x >> 11) * 0x1p-53 + 0x1p-53;
        const double r = sqrt(-1.38629436111989062 * log2_f64(u));
        const double angle = whole(y >> 14) * 0x1p-50
                           * 0.78539816339744830962;
        const double z = angle * angle;
        const double sine = r * angle * series(z, 15);
        const double cosine = r * series(z, 14);
        const double one = y & 4 ? cosine : sine;
        const double two = y & 4 ? sine : cosine;
        out[2 * i] = a + b * (y & 1 ? -one : one);
        out[2 * i + 1] = a + b * (y & 2 ? -two : two);
    }
}

const td_random_level TD_ISA(td_random) = { normals };
