/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "convolution": edit that, not this file. */
#include <string.h>
#include "ops/kernels/winograd-kernels.h"

#ifdef __AVX512F__
enum { LANES = 16, SIDE = 8 };
#else
enum { LANES = 8, SIDE = 8 };
#endif
typedef float vec __attribute__((vector_size(4 * LANES), aligned(4),
                                 may_alias));
typedef float row __attribute__((vector_size(4 * SIDE), aligned(4),
                                 may_alias));
#define INLINE static inline __attribute__((always_inline))
#define ROOT 1.41421356f            /* the points are 0, -+R/2, -+R */
/* convolution: transform tiles of the input */
INLINE void from_input(const vec *x, int s, vec *v, int t, int n)
{
    (void)n;
    const vec a = x[4 * s] - 2 * x[2 * s];
    const vec b = ROOT * (0.5f * x[3 * s] - x[s]);
    const vec c = x[4 * s] - 0.5f * x[2 * s];
    const vec d = ROOT * (x[3 * s] - 0.5f * x[s]);
    v[0] = x[0] + x[4 * s] - 2.5f * x[2 * s];
    v[t] = a + b;
    v[2 * t] = a - b;
    v[3 * t] = c + d;
    v[4 * t] = c - d;
    v[5 * t] = x[s] + x[5 * s] - 2.5f * x[3 * s];
}
#define NEAR(n) (n > 3 ? 1 : -2 / 3.0f)
#define FAR(n)  (n > 3 ? 1 : 1 / 6.0f)

INLINE void sum_up(const vec *m, int s, vec *y, int t, int n)
{
    const vec a = NEAR(n) * (m[s] + m[2 * s]);
    const vec b = NEAR(n) * (m[s] - m[2 * s]);
    const vec c = FAR(n) * (m[3 * s] + m[4 * s]);
    const vec d = FAR(n) * (m[3 * s] - m[4 * s]);
    y[0] = m[0] + a + c;
    y[t] = ROOT * (0.5f * b + d);
    y[2 * t] = 0.5f * a + 2 * c;
    if (n > 3)
        y[3 * t] = ROOT * (0.25f * b + 2 * d);
    y[(n - 1) * t] += m[5 * s];
}

INLINE void evaluate(const vec *y, int s, vec *m, int t, int n)
{
    const vec cubic = n > 3 ? y[3 * s] : (vec){ 0 };
    const vec a = NEAR(n) * (y[0] + 0.5f * y[2 * s]);
    const vec b = NEAR(n) * ROOT * (0.5f * y[s] + 0.25f * cubic);
    const vec c = FAR(n) * (y[0] + 2 * y[2 * s]);
    const vec d = FAR(n) * ROOT * (y[s] + 2 * cubic);
    m[0] = y[0];
    m[t] = a + b;
    m[2 * t] = a - b;
    m[3 * t] = c + d;
    m[4 * t] = c - d;
    m[5 * t] = y[(n - 1) * s];
}

/* convolution: transform in the plane */
#define TRANSFORM(name, line, FROM, TO)                             \
    static void name(int64_t n, const float *x,                     \
                     const int64_t *x_at, float *y,                 \
                     const int64_t *y_at)                           \
    {                                                               \
        for (int64_t q = 0; q < n; q += LANES) {                    \
            vec d[FROM * FROM], half[FROM * TO], out[TO * TO];      \
            enum { SHORT = FROM + TO - 6 };                         \
            TD_UNROLLED(i, FROM * FROM)                             \
                d[i] = *(const vec *)(x + x_at[i] + q);             \
            TD_UNROLLED(i, FROM)                                    \
                line(d + i, FROM, half + i, FROM, SHORT);           \
            TD_UNROLLED(i, TO)                                      \
                line(half + FROM * i, 1, out + TO * i, 1, SHORT);   \
            TD_UNROLLED(i, TO * TO)                                 \
                *(vec *)(y + y_at[i] + q) = out[i];                 \
        }                                                           \
    }
TRANSFORM(before, from_input, 6, 6)
TRANSFORM(after, sum_up, 6, 4)
TRANSFORM(weigh, evaluate, 3, 6)
TRANSFORM(spread, evaluate, 4, 6)
TRANSFORM(gather, sum_up, 6, 3)

#define MIX __builtin_shufflevector
INLINE void shuffle(row *r)
{
    row t[SIDE];
    TD_UNROLLED(i, 4) {
        t[2 * i] = MIX(r[i], r[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
        t[2 * i + 1] = MIX(r[i], r[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    memcpy(r, t, sizeof t);
}

INLINE void turn_block(int64_t lanes, int64_t n, int64_t wide,
                       int64_t high, const float *from, int64_t across,
                       float *to, int64_t along, const row *add)
{
    row r[SIDE];
    TD_UNROLLED(l, SIDE) {
        r[l] = (row){ 0 };
        if (l < lanes && wide == SIDE)
            r[l] = *(const row *)(from + l * across);
        else if (l < lanes)
            memcpy(&r[l], from + l * across,
                   (size_t)wide * sizeof(float));
        r[l] += *add;
    }
    TD_UNROLLED(round, 3)
        shuffle(r);
    TD_UNROLLED(p, SIDE)
        if (p < n && high == SIDE)
            *(row *)(to + p * along) = r[p];
        else if (p < n)
            memcpy(to + p * along, &r[p], (size_t)high * sizeof(float));
}


static void turn(int64_t lanes, int64_t n, const float *from,
                 int64_t across, float *to, int64_t along,
                 const float *add, int64_t room)
{
    for (int64_t p = 0; p < n; p += SIDE)
        for (int64_t l = 0; l < lanes; l += SIDE) {
            const int64_t a = lanes - l, b = n - p;
            const float *in = from + l * across + p;
            float *out = to + p * along + l;
            row more = { 0 };
            if (add != NULL)
                more = *(const row *)(add + p);
            if ((a >= SIDE || room - l >= SIDE)
                && (b >= SIDE || room - p >= SIDE))
                turn_block(a, b, SIDE, SIDE, in, across, out,
                           along, &more);
            else
                turn_block(a, b, b < SIDE ? b : SIDE,
                           a < SIDE ? a : SIDE, in, across, out,
                           along, &more);
        }
}

const td_winograd_level TD_ISA(td_winograd) = {
    before, after, weigh, spread, gather, turn
};
