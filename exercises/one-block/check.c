/* Folds of one block in every type, against the order of section "One block". */
#define _POSIX_C_SOURCE 200809L       /* barriers */
#include "check.h"
#include <pthread.h>
#include "ops/kernels/reductions-kernels.h"

enum { LONGEST = 9001 };
static const char *order = "lane l begins as START(x[0]) and takes x[l], x[l+64], ...; then lane[l] takes lane[l + half]";
static const char *const names[] = { "sum", "largest", "smallest", "product" };

/* b taken into a: what the chapter's ADD, LARGER, SMALLER and TIMES do. */
#define STEP_OF(a, b) \
    (kind == TD_FOLD_SUM ? a + b : kind == TD_FOLD_PRODUCT ? a * b \
     : kind == TD_FOLD_MAX ? (b > a || b != b ? b : a) : (b < a || b != b ? b : a))

/* `folded_T`: one row in lanes; `check_T`: the row in a block of its own, so
   that reading beyond it is noticed, and zeros with their signs. */
#define FOLD_OF(T, name, table, wide)                                                      \
    static T folded_##name(int kind, const T *x, int n)                                    \
    {                                                                                      \
        T lane[64];                                                                        \
        for (int l = 0; l < 64; l++)                                                       \
            lane[l] = kind == TD_FOLD_SUM ? 0 : kind == TD_FOLD_PRODUCT ? 1 : x[0];        \
        for (int i = 0; i < n; i++)                                                        \
            lane[i % 64] = STEP_OF(lane[i % 64], x[i]);                                    \
        for (int half = 32; half > 0; half /= 2)                                           \
            for (int l = 0; l < half; l++)                                                 \
                lane[l] = STEP_OF(lane[l], lane[l + half]);                                \
        return lane[0];                                                                    \
    }                                                                                      \
    static void check_##name(const char *what, int kind, const T *row, int n)              \
    {                                                                                      \
        char text[120];                                                                    \
        T *x = malloc((size_t)n * sizeof *x), out[3] = { 77, 77, 77 };                     \
        const T expected = folded_##name(kind, row, n);                                    \
        snprintf(text, sizeof text, "%s: the %s of %d numbers of type " #T, what, names[kind], n); \
        check_case(text, order);                                                           \
        memcpy(x, row, (size_t)n * sizeof *x);                                             \
        TD_ISA(td_reduction_level).table->fold[kind].row(n, x, out + 1);                    \
        if (!(out[1] == expected || (out[1] != out[1] && expected != expected))            \
            || signbit((double)out[1]) != signbit((double)expected))                       \
            check_wrong("  expected  " wide "\n  got       " wide, expected, out[1]);      \
        if (out[0] != 77 || out[2] != 77)                                                  \
            check_wrong("  expected  one number of type " #T " at out\n  got       more than that"); \
        if (memcmp(x, row, (size_t)n * sizeof *x) != 0)                                    \
            check_wrong("  expected  x as it was\n  got       other numbers in it");       \
        free(x);                                                                           \
    }
FOLD_OF(float, float, f32, "%.9g")
FOLD_OF(double, double, f64, "%.17g")
FOLD_OF(int64_t, whole, i64, "%" PRId64)

static float f32[LONGEST];
static double f64[LONGEST];
static int64_t i64[LONGEST];

static void check_lengths(void)
{
    static const int more[] = { 63, 64, 65, 128, 4095, 4096, 4097, LONGEST };
    for (int i = 0; i < LONGEST; i++) {
        f32[i] = (float)(i * 37 % 101) / 7 - 5;
        f64[i] = (double)(i * 37 % 101) / 7 - 5;
        i64[i] = (i * 37 % 101 - 50) * (INT64_C(1) << 40) + i;
    }
    for (int n = 1; n <= LONGEST; n = n * 3 / 2 + 1)
        check_float("a row whose rounding tells the order", TD_FOLD_SUM, f32, n);
    for (size_t k = 0; k < sizeof more / sizeof more[0]; k++)
        for (int kind = TD_FOLD_SUM; kind <= TD_FOLD_MIN; kind++) {
            check_float("a row whose rounding tells the order", kind, f32, more[k]);
            check_double("a row whose rounding tells the order", kind, f64, more[k]);
            check_whole("a row of large whole numbers", kind, i64, more[k]);
        }
}

static void check_extremes(void)
{
    float x[70];
    for (int i = 0; i < 70; i++)
        x[i] = -3 - (float)(i * 31 % 71);
    check_float("negative numbers", TD_FOLD_MAX, x, 70);
    check_float("a few negative numbers", TD_FOLD_MAX, x + 1, 5);
    x[66] = -1;
    check_float("it stands in the rest, at 66 of 70", TD_FOLD_MAX, x, 70);
    for (int i = 0; i < 70; i++)
        x[i] = -x[i];
    check_float("positive numbers", TD_FOLD_MIN, x, 70);
    x[69] = NAN;
    check_float("the last is NaN", TD_FOLD_MAX, x, 70);
    check_float("the last is NaN", TD_FOLD_SUM, x, 70);
    x[0] = NAN, x[69] = -INFINITY;
    check_float("the first is NaN", TD_FOLD_MIN, x, 70);
    check_float("-infinity and no NaN", TD_FOLD_MIN, x + 1, 69);
}

/* Zeros have signs that tell what the lanes began with. */
static void check_zeros(void)
{
    float x[70];
    for (int i = 0; i < 70; i++)
        x[i] = -0.0f;
    check_float("zeros with a minus, and lanes that begin as 0", TD_FOLD_SUM, x, 70);
    for (int after = 1; after < 70; after += 3) {
        for (int i = 0; i < 70; i++)
            x[i] = i < after ? 0.0f : -0.0f;
        check_float("zeros of both signs", TD_FOLD_MAX, x, 70);
        check_float("zeros of both signs", TD_FOLD_MIN, x, 70);
        for (int i = 0; i < 70; i++)
            x[i] = -x[i];
        check_float("zeros of both signs", TD_FOLD_MAX, x, 70);
        check_float("zeros of both signs", TD_FOLD_MIN, x, 70);
        x[0] = -5;                      /* or each lane keeps the first zero */
        check_float("zeros of both signs behind -5", TD_FOLD_MAX, x, 70);
        x[0] = 5;
        check_float("zeros of both signs behind 5", TD_FOLD_MIN, x, 70);
    }
}

/* Folds a row again and again beside another thread: the row, if its sum was ever not what it is alone. */
enum { ROUNDS = 4000 };
static pthread_barrier_t together;

static void *fold_often(void *row)
{
    double *x = row, again, alone = folded_double(TD_FOLD_SUM, x, 4097);
    bool differs = false;
    pthread_barrier_wait(&together);
    for (int i = 0; i < ROUNDS; i++) {
        TD_ISA(td_reduction_level).f64->fold[TD_FOLD_SUM].row(4097, x, &again);
        differs = differs || again != alone;
    }
    return differs ? x : NULL;
}

static void check_threads(void)
{
    pthread_t thread[2];
    check_case("two threads fold a row each, at the same time", "nothing is kept between calls or shared by them");
    pthread_barrier_init(&together, NULL, 2);
    for (int t = 0; t < 2; t++)
        pthread_create(&thread[t], NULL, fold_often, f64 + 2000 * t);
    for (int t = 0; t < 2; t++) {
        void *row;
        pthread_join(thread[t], &row);
        if (row)
            check_wrong("  expected  the sum that one thread alone finds\n  got       others, now and then");
    }
    pthread_barrier_destroy(&together);
}

static void check_products(void)
{
    double x[70];
    for (int i = 0; i < 70; i++)
        x[i] = 1 + (double)(i * 31 % 71 - 35) / 70;
    check_double("numbers about 1", TD_FOLD_PRODUCT, x, 70);
    check_double("a few numbers about 1", TD_FOLD_PRODUCT, x, 5);
}

int main(void)
{
    float ones[100];
    for (int i = 0; i < 100; i++)
        ones[i] = 1;
    check_float("a row of 100 ones", TD_FOLD_SUM, ones, 100);
    check_extremes();
    check_lengths();
    check_products();
    check_zeros();
    check_threads();
    return check_end();
}
