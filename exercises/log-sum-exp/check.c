/* log-sum-exp and log-softmax of rows, against sums in long double. */
#include "check.h"

static const char *how = "m + log(sum of exp(x - m)); of the logarithm of softmax (x - m) - log(sum of exp(x - m))";
enum { LOGSUMEXP, LOG_SOFTMAX };
static const char *const names[] = { "logsumexp", "log_softmax" };

static double number(td_dtype dtype, const void *x, int64_t i)
{
    return dtype == TD_FLOAT32 ? (double)((const float *)x)[i] : ((const double *)x)[i];
}

/* The logarithm of the sum of exp(x - m), the largest left out and put back. */
static long double rest_of(const double *x, int64_t n, double m)
{
    long double sum = 0;
    bool seen = false;
    for (int64_t i = 0; i < n; i++)
        if (!seen && x[i] == m)
            seen = true;
        else
            sum += expl((long double)x[i] - m);
    return seen ? log1pl(sum) : logl(sum);
}

static double largest(const double *x, int64_t n)
{
    double m = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        m = x[i] > m || isnan(x[i]) ? x[i] : m;
    return m;
}

static void expect(const double *x, int64_t n, int what, double *y)
{
    const double m = largest(x, n);
    const bool infinite = !isfinite(m);
    const long double rest = infinite ? 0 : rest_of(x, n, m);
    if (what == LOGSUMEXP)
        y[0] = infinite ? m : (double)(m + rest);
    for (int64_t i = 0; what == LOG_SOFTMAX && i < n; i++)
        y[i] = infinite ? NAN : (double)(x[i] - m - rest);
}

/* `rows` rows of n, each the numbers of x; in memory as columns if that is
   asked for, so that the row is fetched and the result carried away. */
static void check_rows(const char *text, const double *x, int64_t n, int64_t rows, bool columns, td_dtype dtype)
{
    static const char *const how_stored[] = { "", ", as columns" };
    for (int what = LOGSUMEXP; what <= LOG_SOFTMAX; what++) {
        char both[180];
        td_scope_begin();
        td_tensor *all = td_empty(columns ? TD_DIMS(n, rows) : TD_DIMS(rows, n), (td_tensor_options){ .dtype = dtype });
        double *expected = calloc((size_t)n + 1, sizeof *expected), *given = calloc((size_t)n + 1, sizeof *given);
        snprintf(both, sizeof both, "%s %s, %s%s", names[what], text, td_dtype_name(dtype), how_stored[columns]);
        check_case(both, how);
        for (int64_t i = 0; i < n; i++) {
            given[i] = dtype == TD_FLOAT32 ? (double)(float)x[i] : x[i];
            for (int64_t r = 0; r < rows; r++) {
                const int64_t at = columns ? i * rows + r : r * n + i;
                if (dtype == TD_FLOAT32)
                    ((float *)td_data(all))[at] = (float)x[i];
                else
                    ((double *)td_data(all))[at] = x[i];
            }
        }
        expect(given, n, what, expected);
        const int dim = columns ? 0 : 1;
        td_tensor *y = what == LOG_SOFTMAX ? td_log_softmax(all, dim)
                     : td_logsumexp(all, (td_reduce_options){ .dims = TD_DIMS(dim) });
        check_no_error();
        const int64_t count = what == LOG_SOFTMAX ? n : 1;
        const double m = largest(given, n);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < count; i++) {
                const double got = number(dtype, td_data(y), columns ? i * rows + r : r * count + i);
                const double unit = dtype == TD_FLOAT32 ? 0x1p-24 : 0x1p-53, e = expected[i];
                /* a few roundings each; only where the largest is negative can the logarithm take digits from it */
                const double room = 8 * unit * (what == LOGSUMEXP && m < 0 ? fmax(fabs(e), e - m) : fabs(e));
                if (!(got == e || (isnan(got) && isnan(e)) || fabs(got - e) <= room))
                    check_wrong("  row %" PRId64 ", index %" PRId64 " of %" PRId64 "\n  expected  %.17g\n  got       %.17g",
                                r, i, count, e, got);
            }
        for (int64_t i = 0; i < n; i++)
            for (int64_t r = 0; r < rows; r++) {
                const double is = number(dtype, td_data(all), columns ? i * rows + r : r * n + i);
                if (!(is == given[i] || (isnan(is) && isnan(given[i]))))
                    check_wrong("  expected  the scores as they were, %.9g\n  got       %.9g", given[i], is);
            }
        free(expected), free(given);
        td_scope_end();
    }
}

static void check_all(const char *text, const double *x, int64_t n)
{
    for (int k = 0; k < 4; k++)
        check_rows(text, x, n, 3, k & 1, k & 2 ? TD_FLOAT64 : TD_FLOAT32);
}

/* n equal numbers c: every exponential is 1, and c + log(n) is rounded once. */
static void check_rounding(void)
{
    for (int n = 2; n < 40; n++)
        for (int k = 0; k < 8; k++) {
            float x[40], c = (float)(1 + 2 * k) * (k & 1 ? 1.1f : -0.7f) * (float)n / 7;
            const float expected = (float)((double)c + log(n));
            for (int i = 0; i < n; i++)
                x[i] = c;
            td_scope_begin();
            check_case("logsumexp of equal numbers, float32: rounded once, at the end", "m + log(n), added as doubles");
            td_tensor *all = td_from_data(x, TD_DIMS(n), (td_tensor_options){ .dtype = TD_FLOAT32 });
            const td_tensor *y = td_logsumexp(all, TD_REDUCE_DEFAULTS);
            check_no_error();
            const float got = *(const float *)td_data((td_tensor *)(uintptr_t)y);
            if (got != expected)
                check_wrong("  %d numbers %.9g\n  expected  %.9g\n  got       %.9g", n, (double)c, (double)expected, (double)got);
            td_scope_end();
        }
}

/* Many rows, all different, on two threads; again and again, since a busy
   machine may give all rows of one call to one of them. */
static void check_threads(void)
{
    enum { ROWS = 2000, N = 300 };
    td_scope_begin();
    double *x = malloc(ROWS * N * sizeof *x), *expected = malloc(ROWS * sizeof *expected);
    for (int i = 0; i < ROWS * N; i++)
        x[i] = (double)(i * 37 % 1009) / 100 + i / N % 17;
    for (int r = 0; r < ROWS; r++)
        expect(x + r * N, N, LOGSUMEXP, expected + r);
    check_case("logsumexp of 2000 rows on two threads", how);
    td_tensor *all = td_from_data(x, TD_DIMS(ROWS, N), (td_tensor_options){ .dtype = TD_FLOAT64 });
    for (int again = 0; again < 30; again++) {
        td_scope_begin();
        check_tensor(td_logsumexp(all, (td_reduce_options){ .dims = TD_DIMS(1) }), TD_DIMS(ROWS), expected, 1e-14);
        td_scope_end();
    }
    free(x), free(expected);
    td_scope_end();
}

int main(void)
{
    double *x = malloc(300000 * sizeof *x);
    check_all("of (1, 2, 3)", (double[]){ 1, 2, 3 }, 3);
    check_all("of (0, log 3, log 6)", (double[]){ 0, 1.0986122886681098, 1.791759469228055 }, 3);
    check_all("of one score", (double[]){ -3.25 }, 1);
    check_all("of equal scores", (double[]){ 2.5, 2.5, 2.5, 2.5, 2.5 }, 5);
    check_all("of (0, 0)", (double[]){ 0, 0 }, 2);
    check_all("of two equal scores and a third far behind", (double[]){ -30, 0, 0 }, 3);
    check_all("of one score 40 ahead of the other, a sum hardly more than one", (double[]){ 0, -40 }, 2);
    check_all("of a sum hardly more than one whose largest stands last", (double[]){ -41, -40, 0 }, 3);
    check_all("of one score 12 ahead of the others", (double[]){ -12, -12.5, 0, -13 }, 4);
    check_all("of (1000, 1001, 1002)", (double[]){ 1000, 1001, 1002 }, 3);
    check_all("where the scores are about 10^6", (double[]){ 1000000, 1000001, 1000002.5, 999999 }, 4);
    check_all("of (-2000, -2001)", (double[]){ -2000, -2001 }, 2);
    check_all("with one infinite score", (double[]){ 1, INFINITY, 2 }, 3);
    check_all("with one score of -infinity", (double[]){ 1, -INFINITY, 2 }, 3);
    check_all("of nothing but -infinity", (double[]){ -INFINITY, -INFINITY }, 2);
    check_all("with a NaN", (double[]){ 1, NAN, 2 }, 3);
    check_all("of nothing", x, 0);
    for (int i = 0; i < 300000; i++)
        x[i] = (double)(i * 37 % 1009) / 300 - 2;
    check_all("of a row of 5000 scores", x, 5000);
    for (int i = 0; i < 300000; i++)
        x[i] = i == 1234 ? 0 : -1.0986;
    check_rows("of a long row, 300000 scores", x, 300000, 1, false, TD_FLOAT32);
    free(x);
    check_rounding();
    check_threads();
    return check_end();
}
