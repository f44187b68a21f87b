/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "tensors": edit that, not this file. */
/* Numbers from one type to another where C does not do it. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* tensors: function to_integer */
static inline int64_t to_integer(double x, int64_t low, int64_t high)
{
    const double least = (double)low, most = (double)high;
    const bool inside = (x > least) & (x < most);
    int64_t n = (int64_t)(inside ? x : 0);
    n = x <= least ? low : n;
    return x >= most ? high : n;
}

static inline int32_t to_short(double x, int32_t low, int32_t high)
{
    double v = x > low ? x : low;
    v = v < high ? v : high;
    v = x == x ? v : 0;
    return (int32_t)v;
}

/* tensors: functions from and to bits */
static inline float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline uint32_t to_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* tensors: function from_half */
static inline float from_half(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    const int32_t size = (h & 0x7fff) << 13, bias = 112 << 23;
    const float small = from_bits((uint32_t)(size + bias + (1 << 23)))
                      - 0x1p-14f;
    int32_t bits = size + bias;
    bits = size >= 31 << 23 ? bits + bias : bits;
    bits = size < 1 << 23 ? (int32_t)to_bits(small) : bits;
    return from_bits(sign | (uint32_t)bits);
}

/* tensors: function to_half */
static inline uint16_t to_half(float x)
{
    const uint32_t bits = to_bits(x), sign = bits >> 16 & 0x8000;
    const int32_t size = (int32_t)(bits & 0x7fffffff);
    const int32_t odd = size >> 13 & 1;
    const float shifted = from_bits((uint32_t)size) + 0.5f;
    const int32_t small = (int32_t)to_bits(shifted) - 0x3f000000;
    int32_t half = (size - 0x38000000 + 0xfff + odd) >> 13;
    half = size < 0x38800000 ? small : half;
    half = size >= 0x477ff000 ? 0x7c00 : half;
    half = size > 0x7f800000 ? 0x7e00 : half;
    return (uint16_t)(sign | (uint32_t)half);
}

/* tensors: functions of bfloat16 */
static inline float from_bfloat(uint16_t b)
{
    return from_bits((uint32_t)b << 16);
}
static inline uint16_t to_bfloat(float x)
{
    const uint32_t bits = to_bits(x);
    const int32_t size = (int32_t)(bits & 0x7fffffff);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)(size > 0x7f800000 ? bits >> 16 | 0x40 : rounded);
}
