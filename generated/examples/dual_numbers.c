/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "derivatives": edit that, not this file. */
/* One derivative, three ways: by difference, forward, backward. */
#include <math.h>
#include <stdio.h>

/* derivatives: struct dual */
typedef struct {
    double v;       /* the value */
    double dot;     /* its derivative by the chosen input */
} dual;

/* derivatives: arithmetic of dual numbers */
static dual dual_add(dual a, dual b)
{
    return (dual){ a.v + b.v, a.dot + b.dot };
}

static dual dual_sub(dual a, dual b)
{
    return (dual){ a.v - b.v, a.dot - b.dot };
}

static dual dual_mul(dual a, dual b)
{
    return (dual){ a.v * b.v, a.dot * b.v + a.v * b.dot };
}

static dual dual_log(dual a)
{
    return (dual){ log(a.v), a.dot / a.v };
}

static dual dual_sin(dual a)
{
    return (dual){ sin(a.v), a.dot * cos(a.v) };
}

/* derivatives: function forward */
static dual forward(dual x1, dual x2)
{
    return dual_sub(dual_add(dual_log(x1), dual_mul(x1, x2)),
                    dual_sin(x2));
}

/* derivatives: function backward */
static void backward(double x1, double x2, double bar[2])
{
    const double bar7 = 1;
    const double bar6 = bar7, bar5 = -bar7;     /* v7 = v6 - v5 */
    const double bar4 = bar6, bar3 = bar6;      /* v6 = v3 + v4 */
    bar[1] = bar5 * cos(x2);                    /* v5 = sin v2  */
    bar[0] = bar4 * x2;                         /* v4 = v1 v2   */
    bar[1] += bar4 * x1;
    bar[0] += bar3 / x1;                        /* v3 = ln v1   */
}

/* derivatives: function difference */
static double difference(double h, double e1, double e2)
{
    const dual near = forward((dual){ 2 + h * e1, 0 },
                              (dual){ 5 + h * e2, 0 });
    return (near.v - forward((dual){ 2, 0 }, (dual){ 5, 0 }).v) / h;
}

int main(void)
{
    double bar[2];
    backward(2, 5, bar);
    const dual d1 = forward((dual){ 2, 1 }, (dual){ 5, 0 });
    const dual d2 = forward((dual){ 2, 0 }, (dual){ 5, 1 });
    printf("value     %.12f\n", d1.v);
    printf("forward   %.12f  %.12f   two runs\n", d1.dot, d2.dot);
    printf("backward  %.12f  %.12f   one run\n", bar[0], bar[1]);
    printf("quotient  %.12f  %.12f   three runs\n",
           difference(1e-8, 1, 0), difference(1e-8, 0, 1));
    /* derivatives: print the error for each step width */
    printf("h,error\n");
    for (int k = 1; k <= 15; k++) {
        const double h = pow(10, -k);
        printf("%.0e,%.3e\n", h, fabs(difference(h, 1, 0) - bar[0]));
    }
    return 0;
}
