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
#include <unistd.h>
#include <treadle/treadle.h>
#include "tensor.h"

static const char *check_what = "", *check_formula = "";

static inline void check_case(const char *what, const char *formula)
{
    check_what = what, check_formula = formula;
}

/* Ends the program without a look for leaks, which would be beside the point. */
__attribute__((noreturn, format(printf, 1, 2)))
static inline void check_wrong(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    printf("%s\n", check_what);
    vprintf(format, list);
    printf("\n  formula   %s\n", check_formula);
    va_end(list);
    fflush(stdout);
    _exit(1);
}

/* An error pending in the library: its message. */
static inline void check_no_error(void)
{
    if (td_failed())
        check_wrong("  error     %s", td_error_message());
}

static inline bool check_is_close(double got, double expected, double tolerance)
{
    return got == expected || fabs(got - expected) <= tolerance * fmax(1, fabs(expected))
        || (isnan(got) && isnan(expected));
}

/* Each within tolerance * max(1, |expected|). */
static inline void check_numbers(const double *got, const double *expected, int64_t n, double tolerance)
{
    double worst = 0;
    for (int64_t i = 0; i < n; i++)
        worst = fmax(worst, fabs(got[i] - expected[i]) / fmax(1, fabs(expected[i])));
    for (int64_t i = 0; i < n; i++)
        if (!check_is_close(got[i], expected[i], tolerance))
            check_wrong("  first bad index %" PRId64 " of %" PRId64 "\n  expected  %.9g\n  got       %.9g\n"
                        "  worst relative error %.2g, allowed %.2g", i, n, expected[i], got[i], worst, tolerance);
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
