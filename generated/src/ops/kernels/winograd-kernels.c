/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "convolution": edit that, not this file. */
#include "ops/kernels/winograd-kernels.h"

enum { LANES = 16 };
typedef float vec __attribute__((vector_size(4 * LANES), aligned(4),
                                 may_alias));
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 36")
#define ROOT 1.41421356f            /* the points are 0, -+R/2, -+R */
/* convolution: transform tiles of the input */
INLINE void before(vec *x, int s)
{
    const vec a = x[4 * s] - 2 * x[2 * s];
    const vec b = ROOT * (0.5f * x[3 * s] - x[s]);
    const vec c = x[4 * s] - 0.5f * x[2 * s];
    const vec d = ROOT * (x[3 * s] - 0.5f * x[s]);
    x[0] += x[4 * s] - 2.5f * x[2 * s];
    x[5 * s] += x[s] - 2.5f * x[3 * s];
    x[s] = a + b;
    x[2 * s] = a - b;
    x[3 * s] = c + d;
    x[4 * s] = c - d;
}

static void tiles_before(int64_t n, const float *x, const int64_t *tap,
                         float *v, int64_t step)
{
    for (int64_t q = 0; q < n; q += LANES) {
        vec d[36];
        UNROLL
        for (int i = 0; i < 36; i++)
            d[i] = *(const vec *)(x + tap[i] + q);
        UNROLL
        for (int i = 0; i < 6; i++)
            before(d + 6 * i, 1);
        UNROLL
        for (int i = 0; i < 6; i++)
            before(d + i, 6);
        UNROLL
        for (int i = 0; i < 36; i++)
            *(vec *)(v + i * step + q) = d[i];
    }
}

INLINE void after(const vec *m, int s, vec *y, int t)
{
    const vec a = m[s] + m[2 * s], b = m[s] - m[2 * s];
    const vec c = m[3 * s] + m[4 * s], d = m[3 * s] - m[4 * s];
    y[0] = m[0] + a + c;
    y[t] = ROOT * (0.5f * b + d);
    y[2 * t] = 0.5f * a + 2 * c;
    y[3 * t] = ROOT * (0.25f * b + 2 * d) + m[5 * s];
}

INLINE void weigh(const vec *w, int s, vec *u, int t)
{
    const vec a = (-2 * w[0] - w[2 * s]) * (1 / 3.0f);
    const vec b = ROOT / 3 * w[s];
    const vec c = (0.5f * w[0] + w[2 * s]) * (1 / 3.0f);
    const vec d = ROOT / 6 * w[s];
    u[0] = w[0];
    u[t] = a - b;
    u[2 * t] = a + b;
    u[3 * t] = c + d;
    u[4 * t] = c - d;
    u[5 * t] = w[2 * s];
}

static void tiles_after(int64_t n, const float *m, int64_t step,
                        float *y, int64_t phase)
{
    for (int64_t q = 0; q < n; q += LANES) {
        vec d[36], half[24], out[16];
        UNROLL
        for (int i = 0; i < 36; i++)
            d[i] = *(const vec *)(m + i * step + q);
        UNROLL
        for (int i = 0; i < 6; i++)
            after(d + i, 6, half + i, 6);
        UNROLL
        for (int i = 0; i < 4; i++)
            after(half + 6 * i, 1, out + 4 * i, 1);
        UNROLL
        for (int i = 0; i < 16; i++)
            *(vec *)(y + i * phase + q) = out[i];
    }
}

static void weights(int64_t n, const float *w, float *u, int64_t step)
{
    for (int64_t q = 0; q < n; q += LANES) {
        vec d[9], half[18], out[36];
        UNROLL
        for (int i = 0; i < 9; i++)
            d[i] = *(const vec *)(w + i * n + q);
        UNROLL
        for (int i = 0; i < 3; i++)
            weigh(d + i, 3, half + i, 3);
        UNROLL
        for (int i = 0; i < 6; i++)
            weigh(half + 3 * i, 1, out + 6 * i, 1);
        UNROLL
        for (int i = 0; i < 36; i++)
            *(vec *)(u + i * step + q) = out[i];
    }
}

const td_winograd_level TD_ISA(td_winograd) = {
    tiles_before, tiles_after, weights
};
