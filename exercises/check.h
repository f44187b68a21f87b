/* What the checks of all exercises share: say what is computed and by which
   formula, compare, stop at the first thing that is wrong.  SPDX-License-Identifier: MIT

       check_case("a row of 100 ones", "sum = x[0] + ... + x[99]");
       check_numbers(got, expected, n, 0);     // within 0 of the expected
       return check_end();                     // no error, nothing leaked
*/
#ifndef TREADLE_CHECK_H
#define TREADLE_CHECK_H
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <treadle/treadle.h>
#include "core/tensor.h"
#include "verdict.h"

static char check_what[200];
static const char *check_formula = "";

/* Comes before the code under test is called: should that end the program,
   the report says in which case. */
static inline void check_case(const char *what, const char *formula)
{
    snprintf(check_what, sizeof check_what, "%s", what);
    check_formula = formula;
    check_says_case(check_what);
}

/* Ends the program without a look for leaks, which would be beside the point. */
__attribute__((noreturn, format(printf, 1, 2)))
static inline void check_wrong(const char *format, ...)
{
    char report[4000];
    int at = snprintf(report, sizeof report, "%s\n", check_what);
    va_list list;
    va_start(list, format);
    at += vsnprintf(report + at, 3000, format, list);
    va_end(list);
    snprintf(report + (at < 3200 ? at : 3200), 600, "\n  formula   %s\n", check_formula);
    check_says_wrong(report);
}

/* An error pending in the library: its message. */
static inline void check_no_error(void)
{
    if (td_failed())
        check_wrong("  error     %s", td_error_message());
}

/* Infinities and NaN are equal or not; there is no distance to them. */
static inline bool check_is_close(double got, double expected, double tolerance)
{
    if (!isfinite(got) || !isfinite(expected))
        return got == expected || (isnan(got) && isnan(expected));
    return fabs(got - expected) <= tolerance * fmax(1, fabs(expected));
}

/* Enough to tell a float, or a double, from its neighbour. */
static inline int check_digits(double x)
{
    return isfinite(x) && (double)(float)x != x ? 17 : 9;
}

/* Each within tolerance * max(1, |expected|). */
static inline void check_numbers(const double *got, const double *expected, int64_t n, double tolerance)
{
    double worst = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(got[i]) && isfinite(expected[i]))
            worst = fmax(worst, fabs(got[i] - expected[i]) / fmax(1, fabs(expected[i])));
    for (int64_t i = 0; i < n; i++)
        if (!check_is_close(got[i], expected[i], tolerance))
            check_wrong("  first bad index %" PRId64 " of %" PRId64 "\n  expected  %.*g\n  got       %.*g\n"
                        "  worst relative error %.2g, allowed %.2g", i, n, check_digits(expected[i]), expected[i],
                        check_digits(got[i]), got[i], worst, tolerance);
}

static inline void check_floats(const float *got, const float *expected, int64_t n, double tolerance)
{
    double *wide = malloc((size_t)(2 * n + 1) * sizeof *wide);
    for (int64_t i = 0; i < n; i++)
        wide[i] = (double)got[i], wide[n + i] = (double)expected[i];
    check_numbers(wide, wide + n, n, tolerance);
    free(wide);
}

static inline void check_sizes(const int64_t *got, const int64_t *expected, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (got[i] != expected[i])
            check_wrong("  first bad index %" PRId64 " of %" PRId64 "\n  expected  %" PRId64
                        "\n  got       %" PRId64, i, n, expected[i], got[i]);
}

/* A tensor of this shape with these numbers. */
static inline void check_tensor(td_tensor *got, td_dims shape, const double *expected, double tolerance)
{
    char is[TD_SHAPE_TEXT], should[TD_SHAPE_TEXT];
    check_no_error();
    if (!got)
        check_wrong("  expected  a tensor of shape %s\n  got       NULL", td_dims_text(&shape, should));
    const td_dims has = td_shape_of(got);
    if (!td_dims_equal(&has, &shape))
        check_wrong("  expected  shape %s\n  got       shape %s", td_dims_text(&shape, should), td_dims_text(&has, is));
    td_scope_begin();
    td_tensor *wide = td_contiguous(td_to(got, TD_FLOAT64));
    check_no_error();
    check_numbers(td_data(wide), expected, td_numel(wide), tolerance);
    td_scope_end();
}

/* The last line of main: no error is pending and no tensor is left. */
static inline int check_end(void)
{
    check_no_error();
    check_case("everything computed, all scopes closed", "every object is owned by a scope or released");
    const td_memory_info m = td_memory_stats();
    if (m.live_tensors != 0)
        check_wrong("  leak: %" PRId64 " tensors are still alive", (int64_t)m.live_tensors);
    return 0;
}
#endif
