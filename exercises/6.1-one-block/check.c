/* Sums, maxima and minima of one block, against the order of section "One block". */
#include "check.h"
#include "reductions-kernels.h"

static const td_fold *fold(int kind)
{
    return &TD_ISA(td_reduction_level).f32[kind];
}

/* The row in a block of its own, so that reading beyond it is noticed. */
static float folded(int kind, const float *row, int n)
{
    float out = NAN, *x = malloc((size_t)n * sizeof *x);
    memcpy(x, row, (size_t)n * sizeof *x);
    fold(kind)->row(n, x, &out);
    free(x);
    return out;
}

static float in_lanes(const float *x, int n)
{
    float lane[64] = { 0 };
    for (int i = 0; i < n; i++)
        lane[i % 64] += x[i];
    for (int half = 32; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] += lane[l + half];
    return lane[0];
}

static void check_sums(void)
{
    static float x[4096];
    const char *order = "lane l takes x[l], x[l+64], ...; then lane[l] += lane[l + half]";
    for (int i = 0; i < 100; i++)
        x[i] = 1;
    check_case("a row of 100 ones", "sum = x[0] + ... + x[99]");
    check_floats(&(float){ folded(TD_FOLD_SUM, x, 100) }, &(float){ 100 }, 1, 0);
    for (int i = 0; i < 4096; i++)
        x[i] = (float)(i * 37 % 101) / 7 - 5;
    for (int n = 1; n <= 4096; n = n * 3 / 2 + 1) {
        char what[80];
        snprintf(what, sizeof what, "a row whose rounding tells the order, n = %d", n);
        check_case(what, order);
        check_floats(&(float){ folded(TD_FOLD_SUM, x, n) }, &(float){ in_lanes(x, n) }, 1, 0);
    }
}

static void check_extremes(void)
{
    float x[70];
    for (int i = 0; i < 70; i++)
        x[i] = -3 - (float)(i * 31 % 71);
    check_case("the largest of 70 negative numbers", "max: every lane begins as START(x[0]) = x[0]");
    check_floats(&(float){ folded(TD_FOLD_MAX, x, 70) }, &(float){ -3 }, 1, 0);
    x[66] = -1;
    check_case("the largest stands in the rest, at 66 of 70", "lane 2 takes x[2] and x[66]");
    check_floats(&(float){ folded(TD_FOLD_MAX, x, 70) }, &(float){ -1 }, 1, 0);
    for (int i = 0; i < 70; i++)
        x[i] = -x[i];
    check_case("the smallest of 70 positive numbers", "min: every lane begins as START(x[0]) = x[0]");
    check_floats(&(float){ folded(TD_FOLD_MIN, x, 70) }, &(float){ 1 }, 1, 0);
}

int main(void)
{
    check_sums();
    check_extremes();
    return check_end();
}
