/* SPDX-License-Identifier: MIT */
/* Largest error of the float32 primitives, in ulp, over one in 997 of all
   floats, at each level of this processor; for the elementwise chapter. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <treadle/treadle.h>

static double ulps(float got, double wanted)
{
    const float nearest = (float)wanted;
    if (got == nearest || (isnan(got) && isnan(wanted)))
        return 0;
    if (isnan(got) || isnan(nearest) || isinf(got) || isinf(nearest))
        return INFINITY;
    int e;
    frexp(wanted, &e);
    return fabs(got - wanted) / ldexp(1, e > -125 ? e - 24 : -149);
}

static double worst(td_tensor *x, td_tensor *f(td_tensor *),
                    double reference(double))
{
    td_tensor *y = f(x);
    const float *in = td_data(x), *out = td_data(y);
    double most = 0;
    for (int64_t i = 0; i < td_numel(x); i++) {
        const double u = ulps(out[i], reference(in[i]));
        most = u > most ? u : most;
    }
    td_release(y);
    return most;
}

int main(void)
{
    static const char *const levels[] = { "v2", "v3", "v4" };
    const int64_t n = (INT64_C(1) << 32) / 997;
    td_tensor *x = td_empty(TD_DIMS(n), (td_tensor_options){ 0 });
    for (int64_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)(i * 997);
        memcpy((float *)td_data(x) + i, &bits, sizeof bits);
    }
    printf("%8s %7s %7s %7s %7s %7s\n", "", "exp", "log", "tanh", "sin",
           "cos");
    for (int k = 0; k < 3; k++)
        if (td_set_isa(levels[k]))
            printf("%8s %7.2f %7.2f %7.2f %7.2f %7.2f\n", levels[k],
                   worst(x, td_exp, exp), worst(x, td_log, log),
                   worst(x, td_tanh, tanh), worst(x, td_sin, sin),
                   worst(x, td_cos, cos));
        else
            td_error_clear();
    td_release(x);
    return td_failed();
}
