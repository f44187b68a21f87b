/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "tensors": edit that, not this file. */
/* Numbers from one type to another where C does not do it. */
#include <stdint.h>
#include <string.h>

/* tensors: function to_integer */
static int64_t to_integer(double x, int64_t low, int64_t high)
{
    if (!(x == x))
        return 0;
    if (x <= (double)low)
        return low;
    if (x >= (double)high)
        return high;
    return (int64_t)x;
}

/* tensors: functions from and to bits */
static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static uint32_t to_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* tensors: function from_half */
static float from_half(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    const uint32_t exponent = h >> 10 & 31, fraction = h & 1023;
    if (exponent == 0) {
        const float value = (float)fraction * 0x1p-24f;
        return sign ? -value : value;
    }
    const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
    return from_bits(sign | wide << 23 | fraction << 13);
}

/* tensors: function to_half */
static uint16_t to_half(float x)
{
    const uint32_t bits = to_bits(x), sign = bits >> 16 & 0x8000;
    const uint32_t size = bits & 0x7fffffff;
    if (size > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    if (size >= 0x477ff000)
        return (uint16_t)(sign | 0x7c00);
    if (size < 0x38800000) {
        const float shifted = from_bits(size) + 0.5f;
        return (uint16_t)(sign | (to_bits(shifted) - 0x3f000000));
    }
    const uint32_t odd = size >> 13 & 1;
    return (uint16_t)(sign | ((size + 0xfff + odd - 0x38000000) >> 13));
}

/* tensors: functions of bfloat16 */
static float from_bfloat(uint16_t b)
{
    return from_bits((uint32_t)b << 16);
}
static uint16_t to_bfloat(float x)
{
    const uint32_t bits = to_bits(x);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
