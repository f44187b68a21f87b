/* Searches on the card, of all types and layouts, against a walk from left to right.  SPDX-License-Identifier: MIT */
#include "check.h"

static const td_device card = { TD_DEVICE_CUDA, 0 };

/* Does element k of a row beat element `best`, which stands before it? */
static bool beats(td_dtype type, const void *x, int64_t best, int64_t k, bool largest)
{
    double a = 0, b = 0;
    if (type == TD_FLOAT32)
        a = (double)((const float *)x)[best], b = (double)((const float *)x)[k];
    else if (type == TD_FLOAT64)
        a = ((const double *)x)[best], b = ((const double *)x)[k];
    else {
        const int64_t p = type == TD_INT64 ? ((const int64_t *)x)[best] : type == TD_INT32 ? ((const int32_t *)x)[best]
                                                                                       : ((const uint8_t *)x)[best];
        const int64_t q = type == TD_INT64 ? ((const int64_t *)x)[k] : type == TD_INT32 ? ((const int32_t *)x)[k]
                                                                                       : ((const uint8_t *)x)[k];
        a = 0, b = q > p ? 1 : q < p ? -1 : 0;
    }
    return isnan(a) ? false : isnan(b) || (largest ? b > a : b < a);
}

static void check_one(const char *what, td_dtype type, const void *x, int64_t n, bool largest, int64_t step)
{
    char text[160];
    snprintf(text, sizeof text, "%s, the %s, in a row of %" PRId64 "%s", what, largest ? "largest" : "smallest", n,
             step > 1 ? ", beside others" : "");
    check_case(text, "a NaN beats all numbers, of equals the first wins, else the larger, or the smaller");
    const size_t size = td_dtype_size(type);
    int64_t best = 0;
    for (int64_t k = 1; k < n; k++)
        best = beats(type, x, best, k, largest) ? k : best;
    td_scope_begin();
    td_tensor *rows = td_tensor_new(TD_DIMS(n, step), type, (td_device){ TD_DEVICE_CPU, 0 }), *places = NULL;
    for (int64_t k = 0; k < n * step; k++)
        memcpy((char *)td_data(rows) + (size_t)k * size, (const char *)x + (size_t)(k / step) * size, size);
    td_tensor *there = td_to_device(rows, card);
    td_tensor *value = largest ? td_max_dim(there, 0, false, &places) : td_min_dim(there, 0, false, &places);
    td_synchronise(card);
    check_no_error();
    value = td_to_host(value), places = td_to_host(places);
    check_no_error();
    const int64_t *got = td_data(places);
    for (int64_t r = 0; r < step; r++) {
        if (got[r] != best)
            check_wrong("  result %" PRId64 " of %" PRId64 ": its place\n  expected  %" PRId64 "\n  got       %" PRId64, r, step, best, got[r]);
        if (memcmp((char *)td_data(value) + (size_t)r * size, (const char *)x + (size_t)best * size, size) != 0)
            check_wrong("  result %" PRId64 " of %" PRId64 ": its value\n  expected  the %zu bytes of element %" PRId64
                        "\n  got       others", r, step, size, best);
    }
    td_scope_end();
}

static void check_row(const char *what, td_dtype type, const void *x, int64_t n)
{
    check_one(what, type, x, n, true, 1);
    check_one(what, type, x, n, false, 1);
    if (n <= 300)
        check_one(what, type, x, n, true, 3), check_one(what, type, x, n, false, 3);
}

#define ROW(what, type, T, ...) check_row(what, type, (const T[]){ __VA_ARGS__ }, (int64_t)(sizeof((const T[]){ __VA_ARGS__ }) / sizeof(T)))

static void check_long_rows(void)
{
    enum { MOST = 33500 };
    static float x[300];
    static double d[300];
    static int64_t i[300];
    static uint8_t u[MOST];
    for (int k = 0; k < 300; k++) {
        x[k] = (float)(k * 37 % 101) / 7 - 5;
        i[k] = (k * 37 % 101 - 50) * (INT64_C(1) << 40);
        d[k] = 2 + (k * 41 % 97 - 48) * 0x1p-40;
    }
    check_row("equal numbers", TD_FLOAT32, x, 300);
    check_row("equal numbers", TD_INT64, i, 300);
    check_row("equal numbers", TD_FLOAT32, x + 3, 150);
    check_row("numbers closer than a float can tell", TD_FLOAT64, d, 300);
    for (int k = 0; k < 300; k++)
        x[k] = -3 - (float)(k * 31 % 71) / 8;
    check_row("negative numbers", TD_FLOAT32, x, 300);
    x[290] = NAN;
    check_row("a NaN near the end", TD_FLOAT32, x, 300);
    x[17] = x[273] = -NAN;
    check_row("two NaN and more", TD_FLOAT32, x, 300);
    for (int zero = 0; zero < 2; zero++) {
        for (int k = 0; k < 300; k++)
            x[k] = zero ? 1 : -1;
        x[101] = zero ? 0.0f : -0.0f, x[260] = -x[101];
        check_row("zeros of both signs, the later one in an earlier thread", TD_FLOAT32, x, 300);
    }
    memset(u, 7, sizeof u);
    u[400] = u[33000] = 9, u[300] = u[33100] = 3;
    check_row("a place beyond sixteen bits", TD_UINT8, u, MOST);
}

int main(void)
{
    ROW("one number", TD_FLOAT32, float, 3);
    ROW("three numbers", TD_FLOAT32, float, 1, 9, 4);
    ROW("three numbers", TD_INT32, int32_t, 5, -9, 4);
    ROW("equal numbers", TD_FLOAT32, float, 2, 5, 1, 5, 1, 5, 1);
    ROW("equal numbers", TD_INT32, int32_t, 2, 2, 2, 2, 2);
    ROW("a NaN among numbers", TD_FLOAT32, float, 2, 5, NAN, 1);
    ROW("a NaN in front", TD_FLOAT64, double, NAN, 5, 2, 1);
    ROW("two NaN", TD_FLOAT32, float, 4, NAN, 7, NAN);
    ROW("a NaN among infinities", TD_FLOAT32, float, INFINITY, -INFINITY, NAN, INFINITY, -INFINITY);
    ROW("infinities", TD_FLOAT32, float, 1, INFINITY, -INFINITY, 0, INFINITY, -INFINITY, 3);
    ROW("infinities", TD_FLOAT64, double, -INFINITY, -INFINITY, -INFINITY);
    ROW("negative numbers", TD_FLOAT32, float, -4, -2, -8, -2, -8);
    ROW("numbers between two whole ones", TD_FLOAT32, float, 1.25f, 1.5f, 1, 1.75f, 1.125f);
    ROW("zeros of both signs", TD_FLOAT32, float, -0.0f, 0, -0.0f, 0);
    ROW("zeros of both signs", TD_FLOAT64, double, 0, -0.0, 0, -0.0);
    ROW("numbers far apart", TD_INT64, int64_t, 5, INT64_MAX, INT64_MIN, 0, INT64_MAX, INT64_MIN);
    ROW("numbers far apart", TD_INT32, int32_t, 0, INT32_MIN, 1, INT32_MAX, -1);
    ROW("numbers far apart", TD_UINT8, uint8_t, 3, 255, 0, 200, 255, 0);
    ROW("whole numbers that a double cannot tell apart", TD_INT64, int64_t, (INT64_C(1) << 60) + 1, (INT64_C(1) << 60) + 3,
        INT64_C(1) << 60, (INT64_C(1) << 60) + 2);
    check_long_rows();
    return check_end();
}
