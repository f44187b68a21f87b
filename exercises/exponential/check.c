/* e^x of floats of every kind, against the long double of the C library, in ulp. */
#include "check.h"

float exponential_between(float x);

/* The C library's functions stand here in this program: whoever calls one is named. */
static volatile bool inside;
static const char *volatile called;
#define NOTED(T, name, parameters, value) \
    T name parameters; \
    T name parameters { called = inside ? #name : called; return value; }
static long double power_of(long double a, long double b) { return powl(a, b); }
NOTED(float, expf, (float x), (float)expl((long double)x))
NOTED(double, exp, (double x), (double)expl((long double)x))
NOTED(float, exp2f, (float x), (float)exp2l((long double)x))
NOTED(double, exp2, (double x), (double)exp2l((long double)x))
NOTED(float, expm1f, (float x), (float)expm1l((long double)x))
NOTED(double, expm1, (double x), (double)expm1l((long double)x))
NOTED(float, powf, (float a, float b), (float)power_of((long double)a, (long double)b))
NOTED(double, pow, (double a, double b), (double)power_of((long double)a, (long double)b))
NOTED(float, ldexpf, (float x, int n), (float)scalblnl((long double)x, n))
NOTED(double, ldexp, (double x, int n), (double)scalblnl((long double)x, n))
NOTED(float, scalbnf, (float x, int n), (float)scalblnl((long double)x, n))
NOTED(double, scalbn, (double x, int n), (double)scalblnl((long double)x, n))

static const char *const formula = "e^x = 2^k (1 + r + r^2 q(r)),  x = k ln 2 + r";

static float of_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* The distance of got from expected, in steps of a float's last place there. */
static double steps(float got, long double expected)
{
    const float nearest = (float)expected;
    if (!isfinite(nearest) || !isfinite(got))
        return got == nearest ? 0 : INFINITY;
    int e;
    frexpl(expected, &e);
    const long double ulp = scalblnl(1, e - 24 < -149 ? -149 : e - 24);
    return (double)(fabsl((long double)got - expected) / ulp);
}

static float worst_at;
static double worst;

static void check_one(float x)
{
    inside = true;
    const float got = exponential_between(x);
    inside = false;
    if (called != NULL)
        check_wrong("  expected  no call of the C library\n  got       a call of %s", called);
    if (isnan(x)) {
        if (!isnan(got))
            check_wrong("  expected  a NaN for a NaN\n  got       %.9g", (double)got);
        return;
    }
    const long double expected = expl((long double)x);
    const double off = steps(got, expected);
    if (off > worst)
        worst = off, worst_at = x;
    if (!(off <= 2))
        check_wrong("  at x      %.9g\n  expected  %.9Lg\n  got       %.9g\n  %.3g ulp off, 2 are allowed; "
                    "worst so far %.3g at %.9g", (double)x, expected, (double)got, off, worst, (double)worst_at);
}

static void check_range(const char *what, float from, float to, int n)
{
    check_case(what, formula);
    for (int i = 0; i <= n; i++)
        check_one((float)((double)from + ((double)to - (double)from) * i / n));
}

int main(void)
{
    check_case("e^0", formula);
    check_one(0);
    check_one(-0.0f);
    check_case("e^10, worked by hand", formula);
    check_one(10);
    check_range("small arguments, -0.3 to 0.3", -0.3f, 0.3f, 20011);
    check_range("arguments from -1 to 1", -1, 1, 20011);
    check_range("arguments from -10 to 10", -10, 10, 40009);
    check_range("arguments from -87 to 88", -87, 88, 100003);
    check_range("results that are nearly too large, from 88 on", 88, 88.7228f, 20011);
    check_range("results that are too large, from 88.73 on", 88.7229f, 100, 5003);
    check_range("denormal results, down to -103.9", -103.9f, -87.3f, 100003);
    check_range("results too small for any float, down to -200", -200, -103.98f, 5003);
    check_case("infinity", formula);
    check_one(INFINITY);
    check_case("minus infinity", formula);
    check_one(-INFINITY);
    check_case("the largest floats", formula);
    for (float x = 1e3f; x < 3e38f; x *= 7)
        check_one(x), check_one(-x);
    check_one(of_bits(0x7f7fffff));
    check_one(of_bits(0xff7fffff));
    check_case("NaN", formula);
    check_one(NAN);
    check_one(-NAN);
    check_one(of_bits(0x7fffffff));
    check_one(of_bits(0xff800001));
    check_case("denormal arguments", formula);
    for (uint32_t u = 1; u < 0x800000; u = u * 3 + 1)
        check_one(of_bits(u)), check_one(of_bits(u | 0x80000000));
    check_case("one float in 8009 of all there are", formula);
    for (uint64_t u = 0; u < UINT64_C(1) << 32; u += 8009)
        check_one(of_bits((uint32_t)u));
    return check_end();
}
