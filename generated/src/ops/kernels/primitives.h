/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "elementwise": edit that, not this file. */
/* The functions that formulas may call: p_exp, p_log, p_tanh, p_sin,
   p_cos, p_sqrt, p_pow, p_abs, and select(c, a, b), K(literal), and
   those that later chapters add at the end.

   In float they are branch-free, so that loops around them vectorise,
   and within 2 ulp everywhere, denormal numbers included, as
   test_elementwise measures; NaN, infinities and signed zeros are those
   of C, Annex F.  In double they are the C library's. */
#pragma once
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifndef __cplusplus
#include <tgmath.h>
#endif

/* elementwise: macro select */
#define select(c, a, b) ((c) ? (a) : (b))
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#pragma GCC optimize("no-tree-pre", "no-thread-jumps")
#endif

/* elementwise: functions that see the bits of a float */
static inline uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float float_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* elementwise: functions that see the bits of a double */
static inline uint64_t double_bits(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline double double_of(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* elementwise: function power_of_two */
static inline float power_of_two(int32_t k)      /* -126 <= k <= 127 */
{
    return float_of((uint32_t)(k + 127) << 23);
}

/* elementwise: constants of single precision */
#define ROUNDING 12582912.0f         /* 1.5 * 2^23 */
#define LOG2_E   1.44269504088896341f
#define LN2_HIGH 0.693359375f        /* 355 / 512: nine bits */
#define LN2_LOW  -2.12194440054690583e-4f

/* elementwise: function exp_f32 */
static inline float exp_f32(float x)
{
    /* exponential: exercise exponential */
    const float both = ROUNDING + 254;
    const float shifted = x * LOG2_E + both;
    const float k = shifted - both;
    const float r = (x - k * LN2_HIGH) - k * LN2_LOW;
    float q = 0.0013814318f;
    q = q * r + 0.008368852f;
    q = q * r + 0.0416684f;
    q = q * r + 0.1666652f;
    q = q * r + 0.49999994f;
    const float power = q * (r * r) + r + 1;
    const uint32_t sum = bits_of(shifted), half = sum / 2;
    float y = power * float_of(half << 23) * float_of((sum - half) << 23);
    y = select(x < -104.0f, 0.0f, y);
    return select(x > 89.0f, INFINITY, y);
}

/* elementwise: function log_or_limit */
static inline float log_or_limit(float x, float y)
{
    y = select(x < INFINITY, y, x);
    y = select(x == 0, -INFINITY, y);
    return select(x < 0, NAN, y);
}

/* elementwise: function log_f32 */
static inline float log_f32(float x)
{
    /* elementwise: split x into a power and a rest */
    const bool tiny = x < 1.17549435e-38f;
    const float normal = select(tiny, x * 8388608.0f, x);
    const uint32_t u = bits_of(normal) - 0x3f3504f3u;
    const float k = (float)(((int32_t)u >> 23) - select(tiny, 23, 0));
    const float f = float_of((u & 0x7fffffu) + 0x3f3504f3u) - 1;
    /* elementwise: evaluate the polynomial for log */
    float poly = -0.0763443f;
    poly = poly * f + 0.1276155f;
    poly = poly * f - 0.13160194f;
    poly = poly * f + 0.14201762f;
    poly = poly * f - 0.16623357f;
    poly = poly * f + 0.20001227f;
    poly = poly * f - 0.25000823f;
    poly = poly * f + 0.3333333f;
    const float low = poly * f * f * f + k * LN2_LOW;
    return log_or_limit(x, (low - 0.5f * f * f) + f + k * LN2_HIGH);
}

/* elementwise: function tanh_f32 */
static inline float tanh_f32(float x)
{
    const float a = fabsf(x), z = a * a;
    float q = -0.0057049785f;
    q = q * z + 0.020639079f;
    q = q * z - 0.05373971f;
    q = q * z + 0.13331442f;
    q = q * z - 0.3333328f;
    const float near = q * z * a + a;
    const float far = 1 - 2 / (exp_f32(2 * a) + 1);
    return copysignf(select(a < 0.625f, near, far), x);
}

/* elementwise: table of the bits of two over pi */
static const double two_over_pi[4][3] = {
    { 0x1.45f306dp-1, 0x1.9391054p-30, 0x1.4fe13abe8fa9ap-59 },
    { 0x1.727220ap-27, 0x1.29fc275p-56, 0x1.f47d4d377036cp-86 },
    { 0x1.4a7f09cp-54, 0x1.5f47d4dp-82, 0x1.bb81b6c52b324p-113 },
    { 0x1.abe8fa9p-79, 0x1.4ddc0dbp-108, 0x1.8a5664f10e410p-138 }
};
#define WINDOW(a, part)                                               \
    select(a < 0x1p51f, two_over_pi[0][part],                         \
    select(a < 0x1p77f, two_over_pi[1][part],                         \
    select(a < 0x1p103f, two_over_pi[2][part], two_over_pi[3][part])))

/* elementwise: struct turn */
typedef struct {
    uint32_t quadrant;  /* quarter turns; only their last two bits */
    double angle;       /* the rest, within pi/4 */
} turn;

static inline turn turn_of(float a)                 /* a >= 0 */
{
    const double x = a, whole = 6755399441055744.0; /* 1.5 * 2^52 */
    const double y = x * WINDOW(a, 0), z = x * WINDOW(a, 1);
    const double up = y + whole, down = z + whole;
    const double sum = (y - (up - whole)) + (z - (down - whole));
    const double more = sum + whole;
    const double rest = (sum - (more - whole)) + x * WINDOW(a, 2);
    return (turn){ (uint32_t)(double_bits(up) + double_bits(down)
                              + double_bits(more)),
                   rest * 1.5707963267948966 };
}

/* elementwise: function wave */
static inline float wave(float x, uint32_t later)
{
    const turn t = turn_of(fabsf(x));
    const uint32_t quadrant = t.quadrant + later;
    const float r = (float)t.angle, z = r * r;
    const float s = ((-0.00019514957f * z + 0.008332158f) * z
                     - 0.16666655f) * z * r + r;
    const float c = ((2.4432784e-05f * z - 0.0013887313f) * z
                     + 0.041666646f) * (z * z) - 0.5f * z + 1;
    const float y = select((quadrant & 1) != 0, c, s);
    return float_of(bits_of(y) ^ ((quadrant & 2) << 30));
}

/* elementwise: functions sin_f32 and cos_f32 */
static inline float sin_f32(float x)
{
    return float_of(bits_of(wave(x, 0)) ^ (bits_of(x) & 0x80000000u));
}

static inline float cos_f32(float x)
{
    return wave(x, 1);
}

/* elementwise: function log2_f64 */
static inline double log2_f64(double x)      /* of a positive float */
{
    const uint64_t sqrt_half = 0x3fe6a09e667f3bcdu;
    const uint64_t u = double_bits(x) - sqrt_half;
    const int32_t k = (int32_t)(u >> 32) >> 20;
    const double m = double_of((u & 0xfffffffffffffu) + sqrt_half);
    const double s = (m - 1) / (m + 1), z = s * s;
    double p = 1.0 / 17;
    for (int n = 15; n > 0; n -= 2)
        p = p * z + 1.0 / n;
    return k + s * p * 2.88539008177792681;          /* 2 / ln 2 */
}

/* elementwise: function exp2_f64 */
static inline double exp2_f64(double x)
{
    const double rounding = 6755399441055744.0;      /* 1.5 * 2^52 */
    const double shifted = x + rounding;
    const double r = (x - (shifted - rounding)) * 0.6931471805599453;
    const uint64_t k = double_bits(shifted) - double_bits(rounding);
    double factorial = 362880, p = 1 / factorial;
    for (int n = 9; n > 0; n--) {
        factorial /= n;
        p = p * r + 1 / factorial;
    }
    double y = p * double_of((k + 1023) << 52);
    y = select(x < -200, 0.0, y);
    return select(x > 200, INFINITY, y);
}

/* elementwise: function pow_f32 */
static inline float pow_f32(float a, float b)
{
    const float size = fabsf(a), half = 0.5f * b;
    const bool whole = floorf(b) == b;
    const bool odd = whole & (floorf(half) != half);
    double l = log2_f64(size);
    l = select(size == 0, -INFINITY, l);
    l = select(size < INFINITY, l, (double)size);
    float y = (float)exp2_f64(l * b);
    y = select((a < 0) & (size < INFINITY) & !whole, NAN, y);
    y = select(odd, copysignf(y, a), y);
    const bool one = (b == 0) | (a == 1)
                   | ((a == -1) & (fabsf(b) == INFINITY));
    return select(one, 1.0f, y);
}

/* elementwise: function abs_i64 */
static inline int64_t abs_i64(int64_t x)
{
    return select(x < 0, -x, x);
}

/* elementwise: function pow_i64 */
static inline int64_t pow_i64(int64_t a, int64_t b)
{
    uint64_t base = (uint64_t)a, y = 1;
    if (b < 0)
        return a == 1 || (a == -1 && b % 2 == 0) ? 1
             : a == -1 ? -1 : 0;
    for (; b > 0; b /= 2, base *= base)
        y *= b % 2 != 0 ? base : 1;
    return (int64_t)y;
}

/* elementwise: names of the primitives */
#ifndef __cplusplus
#define BY_NUMBER(x, single, twice, whole) \
    _Generic((x), float: single, double: twice, default: whole)
#else
/* elementwise: choose a primitive in C++ */
#define BY_NUMBER(x, single, twice, whole)                            \
    [](auto first, auto... others) {                                  \
        typedef decltype(first + 0) type;                             \
        if constexpr ((type)1 / 2 == 0)                               \
            return whole(first, others...);                           \
        else if constexpr (sizeof(type) == sizeof(float))             \
            return single(first, others...);                          \
        else                                                          \
            return twice(first, others...);                           \
    }
#endif
#define BY_FLOAT(x, single, twice) BY_NUMBER(x, single, twice, twice)
#define BY_TYPE(x, single, twice) BY_FLOAT(x, single, twice)(x)
#define p_exp(x)    BY_TYPE(x, exp_f32, exp)
#define p_log(x)    BY_TYPE(x, log_f32, log)
#define p_tanh(x)   BY_TYPE(x, tanh_f32, tanh)
#define p_sin(x)    BY_TYPE(x, sin_f32, sin)
#define p_cos(x)    BY_TYPE(x, cos_f32, cos)
#define p_sqrt sqrt
#define p_abs(x)    BY_NUMBER(x, fabsf, fabs, abs_i64)(x)
#define p_pow(a, b) BY_NUMBER(a, pow_f32, pow, pow_i64)(a, b)
#define K(literal) ((T)(literal))

/* activations: further primitives */
static inline float expm1_f32(float x)
{
    const float shifted = x * LOG2_E + ROUNDING;
    const float k = shifted - ROUNDING;
    const float r = (x - k * LN2_HIGH) - k * LN2_LOW;
    float q = 0.0013814318f;
    q = q * r + 0.008368852f;
    q = q * r + 0.0416684f;
    q = q * r + 0.1666652f;
    q = q * r + 0.49999994f;
    const float half = float_of((bits_of(shifted) + 126) << 23);
    float y = 2 * ((half - 0.5f) + half * (q * (r * r) + r));
    y = select(x < -40.0f, -1.0f, y);
    y = select(x > 89.0f, INFINITY, y);
    return select(x == 0, x, y);
}

static inline float log1p_f32(float x)
{
    const float u = 1 + x, l = log_f32(u);
    const float y = l + (x - (u - 1)) / u;
    const bool inside = (u > 0) & (u < INFINITY);
    return select(inside, copysignf(y, x), l);
}

static inline float log2_f32(float x)
{
    return log_or_limit(x, (float)log2_f64(x));
}

static inline float log10_f32(float x)
{
    return log_or_limit(x, (float)(log2_f64(x)
                                   * 0.30102999566398119521));
}

static inline float exp2_f32(float x)
{
    return (float)exp2_f64(x);
}
#define p_expm1(x) BY_TYPE(x, expm1_f32, expm1)
#define p_log1p(x) BY_TYPE(x, log1p_f32, log1p)
#define p_log2(x)  BY_TYPE(x, log2_f32, log2)
#define p_log10(x) BY_TYPE(x, log10_f32, log10)
#define p_exp2(x)  BY_TYPE(x, exp2_f32, exp2)
#define p_sigmoid(x) (1 / (1 + p_exp(-(x))))
#define p_logsigmoid(x) \
    (select((x) < 0, (x), 0) - p_log1p(p_exp(-p_abs(x))))
static inline double angle_f64(double y, double x)  /* y, x >= 0 */
{
    const double far = 1e200, eighth = 0.78539816339744831;
    y = select(y > far, far, y);
    x = select(x > far, far, x);
    const bool steep = y > x;
    const double big = select(steep, y, x), low = select(steep, x, y);
    const bool between = low > 0.41421356 * big;
    const double up = low - select(between, big, 0);
    const double along = big + select(between, low, 0);
    const double t = up / select(along == 0, 1, along), z = t * t;
    double p = 0;
    for (int n = 23; n > 0; n -= 2)
        p = 1.0 / n - p * z;
    const double a = select(between, eighth, 0) + t * p;
    return select(steep, 2 * eighth - a, a);
}

static inline double across(double x)
{
    return sqrt((1 - x) * (1 + x));
}

static inline float left_or_right(float x, double angle)
{
    const double back = 3.14159265358979324 - angle;
    return (float)select(copysignf(1, x) < 0, back, angle);
}

static inline float atan_f32(float x)
{
    return copysignf((float)angle_f64(fabsf(x), 1), x);
}

static inline float asin_f32(float x)
{
    return copysignf((float)angle_f64(fabsf(x), across(x)), x);
}

static inline float acos_f32(float x)
{
    return left_or_right(x, angle_f64(across(x), fabsf(x)));
}

static inline float atan2_f32(float a, float b)
{
    const double angle = angle_f64(fabsf(a), fabsf(b));
    return copysignf(left_or_right(b, angle), a);
}

static inline float tan_f32(float x)
{
    const turn t = turn_of(fabsf(x));
    const double r = t.angle, z = r * r;
    const bool odd = (t.quadrant & 1) != 0;
    double s = 1, c = 1;
    for (int n = 10; n > 0; n -= 2) {
        s = 1 - s * z * (1.0 / (n * (n + 1)));
        c = 1 - c * z * (1.0 / (n * (n - 1)));
    }
    s *= r;
    const double y = select(odd, -c, s) / select(odd, s, c);
    return copysignf(1, x) * (float)y;
}

static inline double ln_f64(double x)
{
    const double y = log2_f64(x) * 0.69314718055994531;
    return select(x < 0, NAN, select(x < INFINITY, y, x));
}

static inline double power_of_e(double x)
{
    return exp2_f64(x * 1.44269504088896341);
}

static inline float odd_f32(float x, double cubic, double far)
{
    const double a = fabsf(x), near = a + cubic * a * a * a;
    return copysignf((float)select(a < 0x1p-10, near, far), x);
}

static inline float sinh_f32(float x)
{
    const double e = power_of_e(fabsf(x));
    return odd_f32(x, 1.0 / 6, (e - 1 / e) / 2);
}

static inline float cosh_f32(float x)
{
    const double e = power_of_e(fabsf(x));
    return (float)((e + 1 / e) / 2);
}

static inline float asinh_f32(float x)
{
    const double a = fabsf(x);
    return odd_f32(x, -1.0 / 6, ln_f64(a + sqrt(a * a + 1)));
}

static inline float acosh_f32(float x)
{
    const double a = x, y = ln_f64(a + sqrt((a - 1) * (a + 1)));
    return (float)select(a < 1, NAN, y);
}

static inline float atanh_f32(float x)
{
    const double a = fabsf(x);
    return odd_f32(x, 1.0 / 3, ln_f64((1 + a) / (1 - a)) / 2);
}

static inline float hypot_f32(float a, float b)
{
    const double y = sqrt((double)a * a + (double)b * b);
    const bool far = (fabsf(a) == INFINITY) | (fabsf(b) == INFINITY);
    return select(far, INFINITY, (float)y);
}
#define p_tan(x)      BY_TYPE(x, tan_f32, tan)
#define p_asin(x)     BY_TYPE(x, asin_f32, asin)
#define p_acos(x)     BY_TYPE(x, acos_f32, acos)
#define p_atan(x)     BY_TYPE(x, atan_f32, atan)
#define p_sinh(x)     BY_TYPE(x, sinh_f32, sinh)
#define p_cosh(x)     BY_TYPE(x, cosh_f32, cosh)
#define p_asinh(x)    BY_TYPE(x, asinh_f32, asinh)
#define p_acosh(x)    BY_TYPE(x, acosh_f32, acosh)
#define p_atanh(x)    BY_TYPE(x, atanh_f32, atanh)
#define p_atan2(a, b) BY_FLOAT(a, atan2_f32, atan2)(a, b)
#define p_hypot(a, b) BY_FLOAT(a, hypot_f32, hypot)(a, b)
/* activations: primitive fused */
static inline float fused(float a, float b, float c)
{
#ifdef FP_FAST_FMAF
    return fmaf(a, b, c);
#else
    return (float)((double)a * b + c);
#endif
}

/* Of a = |x|: Q, times a if so asked, less the density times a. */
static inline float normal_tail(float x, bool times, bool less)
{
    const uint32_t size = bits_of(x) & 0x7fffffff;
    const uint32_t far = bits_of(14.39f);
    const float a = float_of(select(size < far, size, far));
    /* activations: evaluate the bell curve at a */
    const float z = a * a, up = ROUNDING + 24;
    const float shifted = z * -0.72134752f + up;
    const float r = fused(shifted - up, 1.38629436f, z)
                  + fused(a, a, -z);
    float p = -0.00010345802f;
    p = p * r + 0.00104515487f;
    p = p * r - 0.0083115669f;
    p = p * r + 0.0498665795f;
    p = p * r - 0.199471116f;
    p = p * r + 0.398942292f;
    const float bell = float_of(bits_of(p) + (bits_of(shifted) << 23));
    /* activations: divide the tail by the bell curve */
    const float y = (a + 3.93312764f) * a + 13.5696878f, s = y + a;
    const float n = y * (s - 9.54644775f) + 32.1529312f;
    const float d = (y * 0x1p24f + 4.96750212f * 0x1p24f)
                  * (s - 13.5147886f) + 120.244217f * 0x1p24f;
    const float m = n / (d * a + 69.2141266f * 0x1p24f);
    return bell * select(times, a, 1)
         * (m - select(less, a, 0) * 0x1p-24f);
}
static inline float erf_f32(float x)
{
    const float a = fabsf(x), z = a * a;
    /* activations: evaluate the polynomial for erf */
    float p = 7.853817e-05f;
    p = p * z - 0.000801018f;
    p = p * z + 0.0051883264f;
    p = p * z - 0.026853811f;
    p = p * z + 0.11283585f;
    p = p * z - 0.37612626f;
    p = p * z + 0.12837917f;
    const float near = a + a * p;
    return copysignf(select(a >= 1, 1 - 2
        * normal_tail(a * 1.41421356f, false, false), near), x);
}
#define p_erf(x)  BY_TYPE(x, erf_f32, erf)
static const double erfc_terms[2][6] = {
    { 0, 0.0326403206174083, 0.228560929064805, 0.730314221255412,
      1.23727880369832, 1 },
    { 0.0578527615030319, 0.40514022420875, 1.32294142415908,
      2.39966606079049, 2.36565836900426, 1 }
};

static inline float erfc_f32(float x)
{
    const double a = select(fabsf(x) > 10.2f, 10.2f, fabsf(x));
    double n = 0, d = 0;
    for (int k = 0; k < 6; k++) {
        n = n * a + erfc_terms[0][k];
        d = d * a + erfc_terms[1][k];
    }
    const double y = exp2_f64(a * a * -1.44269504088896341) * n / d;
    return (float)select(x < 0, 2 - y, y);
}
#define p_erfc(x) BY_TYPE(x, erfc_f32, erfc)
static inline int64_t same_i64(int64_t x) { return x; }
#define p_floor(x) BY_NUMBER(x, floorf, floor, same_i64)(x)
#define p_ceil(x)  BY_NUMBER(x, ceilf, ceil, same_i64)(x)
#define p_round(x) BY_NUMBER(x, rintf, rint, same_i64)(x)
#define p_trunc(x) BY_NUMBER(x, truncf, trunc, same_i64)(x)
static inline int64_t divisor_i64(int64_t b)
{
    return select((b == 0) | (b == -1), 1, b);
}

static inline int64_t fmod_i64(int64_t a, int64_t b)
{
    return a % divisor_i64(b);
}

#define REMAINDER(T, suffix, fmod)                                    \
    static inline T remainder_##suffix(T a, T b)                      \
    {                                                                 \
        const T r = fmod(a, b);                                       \
        return r + select((r != 0) & ((r < 0) != (b < 0)), b, 0);     \
    }
REMAINDER(int64_t, i64, fmod_i64)

static inline int64_t floor_divide_i64(int64_t a, int64_t b)
{
    const int64_t q = a / divisor_i64(b), r = fmod_i64(a, b);
    const int64_t below = (r != 0) & ((r < 0) != (b < 0));
    return select(b == -1, -a, q - below);
}
#define DIVISION(T, suffix, fmod)                                     \
    REMAINDER(T, suffix, fmod)                                        \
    static inline T floor_divide_##suffix(T a, T b)                   \
    {                                                                 \
        const T r = fmod(a, b), q = (a - r) / b;                      \
        const bool below = (r != 0) & ((r < 0) != (b < 0));           \
        const T whole = q - select(below, 1, 0), low = floor(whole);  \
        const T near = low + select(whole - low > 0.5f, 1, 0);        \
        const T none = copysign((T)0, a / b);                         \
        return select(b == 0, a / b, select(whole != 0, near, none)); \
    }
DIVISION(float, f32, fmodf)
DIVISION(double, f64, fmod)
static inline bool is_near(float a, float b)
{
    const float size = fabsf(b);
    return (size < INFINITY) & (fabsf(a) < size * 0x1p22f);
}

static inline float fmod_near(float a, float b)
{
    const float r = fused(-truncf(a / b), b, a);
    const bool over = (r != 0) & ((r < 0) != (a < 0));
    return copysignf(r + select(over, copysignf(b, a), 0.0f), a);
}
DIVISION(float, near, fmod_near)
#define p_fmod(a, b) BY_NUMBER(a, fmodf, fmod, fmod_i64)(a, b)
#define p_remainder(a, b) \
    BY_NUMBER(a, remainder_f32, remainder_f64, remainder_i64)(a, b)
#define p_floor_divide(a, b) BY_NUMBER(a, floor_divide_f32, \
    floor_divide_f64, floor_divide_i64)(a, b)
#define p_bitwise_and(a, b) ((a) & (b))
#define p_bitwise_or(a, b)  ((a) | (b))
#define p_bitwise_xor(a, b) ((a) ^ (b))
#define p_bitwise_left_shift(a, b) \
    select(((b) < 0) | ((b) > 63), 0, \
           (int64_t)((uint64_t)(a) << ((b) & 63)))
#define p_bitwise_right_shift(a, b) \
    ((int64_t)(a) >> select(((b) < 0) | ((b) > 63), 63, (b) & 63))
static inline float gelu_f32(float x)
{
    return select(x < 0, x * 0, x) - normal_tail(x, true, false);
}

static inline float gelu_slope_f32(float x)
{
    const float low = normal_tail(x, false, true);
    return select(x < 0, low, select(x >= 0, 1 - low, x));
}

static inline double gelu_slope_f64(double x)
{
    return 0.5 * erfc(-0.70710678118654752 * x)
         + x * (0.39894228040143268 * exp(-0.5 * x * x));
}
#define p_gelu_slope(x) BY_TYPE(x, gelu_slope_f32, gelu_slope_f64)
#define GELU(formula) \
    select(sizeof(T) == sizeof(float), gelu_f32((float)x), formula)
#define GELU_SLOPE(formula) p_gelu_slope(x)
/* vocabulary: further primitives */
#define PI 3.14159265358979323846

static inline double digamma_f64(double x)
{
    const double r = x - floor(x);
    if (x <= 0 && r == 0)
        return x == 0 ? copysign(INFINITY, -x) : NAN;
    if (x < 0)
        return digamma_f64(1 - x) - PI / tan(PI * r);
    double y = 0;
    for (; x < 10; x++)
        y -= 1 / x;
    const double z = 1 / (x * x);
    const double series = z * (1.0 / 12 - z * (1.0 / 120
        - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132
        - z * (691.0 / 32760))))));
    return y + log(x) - 0.5 / x - series;
}

static inline double zeta_tail(double s, double x)
{
    const double b[] = { 1.0 / 12, -1.0 / 720, 1.0 / 30240,
        -1.0 / 1209600, 1.0 / 47900160, -691.0 / 1307674368000,
        1.0 / 74724249600, -3617.0 / 10670622842880000 };
    double y = 0, t = pow(x, -s);
    for (; x < 10 + s && t > y * 1e-17; t = pow(++x, -s))
        y += t;
    y += t * x / (s - 1) + t / 2;
    t *= s / x;
    for (int j = 0; j < 8; j++) {
        y += b[j] * t;
        t *= (s + 2 * j + 1) * (s + 2 * j + 2) / (x * x);
    }
    return y;
}

static inline double zeta_f64(double s, double x)
{
    const double r = x - floor(x);
    if (s == 1 || (x <= 0 && r == 0))
        return INFINITY;
    if (!(s > 1) || (x <= 0 && s != floor(s)))
        return NAN;
    if (x > 0)
        return zeta_tail(s, x);
    const double below = zeta_tail(s, 1 - r) - zeta_tail(s, 1 - x);
    return zeta_tail(s, r) + (fmod(s, 2.0) == 0 ? below : -below);
}
static inline double erfinv_f64(double x)
{
    const double a = fabs(x), l = log((1 - a) * (1 + a));
    const double t = 2 / (PI * 0.147) + l / 2;
    double y = sqrt(sqrt(t * t - l / 0.147) - t);
    for (int step = 0; step < 2; step++) {
        double d = a > 0.5 ? (1 - a) - erfc(y) : erf(y) - a;
        d *= 0.88622692545275801 * exp(y * y);
        y -= d / (1 + y * d);
    }
    return copysign(a == 1 ? INFINITY : y, x);
}

static const float erfinv_terms[2][10] = {
    { -8.791016e-09f, 2.2103049e-07f, -1.976461e-06f, 3.9832357e-06f,
      4.4565222e-05f, -0.00012748166f, -0.0023342962f, 0.011548654f,
      0.23201382f, 0.8862269f },
    { 0.00013160492f, -0.00032253232f, -7.852533e-05f, 0.0014999342f,
      -0.0035868674f, 0.005681825f, -0.0076393136f, 0.009445825f,
      1.0016751f, 2.8329768f }
};

static inline float erfinv_f32(float x)
{
    const float a = fabsf(x), l = -log_f32((1 - a) * (1 + a));
    const bool near = l < 5;
    const float v = select(near, l, sqrtf(l) - 3);
    float p = 0;
    for (int n = 0; n < 10; n++)
        p = p * v + select(near, erfinv_terms[0][n],
                           erfinv_terms[1][n]);
    return select(a == 1, INFINITY, p) * x;
}
#define IN_DOUBLE(name)                                               \
    static inline float name##_f32(float x)                           \
    { return (float)name##_f64(x); }
IN_DOUBLE(digamma)
#define p_digamma(x) BY_TYPE(x, digamma_f32, digamma_f64)
#define p_erfinv(x)  BY_TYPE(x, erfinv_f32, erfinv_f64)
#define p_lgamma     lgamma

static inline float zeta_f32(float s, float x)
{
    return (float)zeta_f64(s, x);
}

static inline int64_t p_gcd(int64_t a, int64_t b)
{
    for (int64_t r; b != 0; a = b, b = r)
        r = fmod_i64(a, b);
    return a < 0 ? -a : a;
}
#define p_copysign copysign
#define p_nextafter nextafter
#define p_zeta(a, b) BY_FLOAT(a, zeta_f32, zeta_f64)(a, b)
