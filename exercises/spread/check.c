/* The widest of many weights shows the bound of the uniform distribution. */
#include "check.h"

static const char *formula = "bound = sqrt(3) * sigma, sigma = sqrt(2 / ((1 + s * s) * fan))";

static void check_bound(const char *what, td_dims shape, td_kaiming_options o, double expected)
{
    check_case(what, formula);
    td_scope_begin();
    td_manual_seed(7);
    td_tensor *w = td_kaiming_uniform_(td_empty(shape, (td_tensor_options){ .dtype = TD_FLOAT64 }), o);
    check_no_error();
    const double *x = td_data(w);
    double widest = 0;
    for (int64_t i = 0; i < td_numel(w); i++)
        widest = fmax(widest, fabs(x[i]));
    if (!(widest <= expected && widest >= 0.98 * expected))
        check_wrong("  largest of %" PRId64 " weights\n  expected  %.9g, or up to 2 %% less\n  got       %.9g",
                    td_numel(w), expected, widest);
    td_manual_seed(7);
    td_tensor *same = td_uniform_(td_empty(shape, (td_tensor_options){ .dtype = TD_FLOAT64 }), -expected, expected);
    check_numbers(x, td_data(same), td_numel(w), 1e-14);
    td_scope_end();
}

/* The deviation of many normal weights. */
static void check_deviation(const char *what, td_kaiming_options o, double expected)
{
    td_scope_begin();
    td_tensor *w = td_kaiming_normal_(td_empty(TD_DIMS(200, 800), (td_tensor_options){ .dtype = TD_FLOAT64 }), o);
    check_case(what, "sigma = sqrt(2 / ((1 + s * s) * fan))");
    check_no_error();
    const double *x = td_data(w);
    double square = 0;
    for (int64_t i = 0; i < td_numel(w); i++)
        square += x[i] * x[i];
    const double got = sqrt(square / (double)td_numel(w));
    if (!(fabs(got / expected - 1) < 0.01))
        check_wrong("  deviation of %" PRId64 " weights\n  expected  %.9g, within 1 %%\n  got       %.9g",
                    td_numel(w), expected, got);
    td_scope_end();
}

int main(void)
{
    const td_kaiming_options plain = { 0 }, out = { .fan_out = true }, leaky = { .negative_slope = 0.5 };
    check_bound("a layer from 1600 units to 200, behind a ReLU", TD_DIMS(200, 1600), plain, sqrt(6.0 / 1600));
    check_bound("a layer from 1600 units to 200, the fan out is asked for", TD_DIMS(200, 1600), out, sqrt(6.0 / 200));
    check_bound("a layer from 1600 units to 200, behind a leaky ReLU of slope 0.5", TD_DIMS(200, 1600), leaky,
                sqrt(6 / 1.25 / 1600));
    check_bound("a convolution of 16 channels and 5 x 5 numbers, to 8", TD_DIMS(8, 16, 5, 5), plain, sqrt(6.0 / 400));
    check_bound("a layer from 200 units to 1600, behind a ReLU", TD_DIMS(1600, 200), plain, sqrt(6.0 / 200));
    check_bound("a layer from 200 units to 1600, the fan out is asked for", TD_DIMS(1600, 200), out, sqrt(6.0 / 1600));
    check_bound("a layer from 200 units to 1600, a slope of -0.5 and the fan out", TD_DIMS(1600, 200),
                (td_kaiming_options){ .negative_slope = -0.5, .fan_out = true }, sqrt(6 / 1.25 / 1600));
    check_bound("a layer from 200 units to 1600, a slope of 0.3, which no float holds", TD_DIMS(1600, 200),
                (td_kaiming_options){ .negative_slope = 0.3 }, sqrt(6 / (1 + 0.3 * 0.3) / 200));
    check_bound("a layer from 200 units to 1600, a slope of 3", TD_DIMS(1600, 200),
                (td_kaiming_options){ .negative_slope = 3 }, sqrt(6 / 10.0 / 200));
    check_bound("a layer from 1 unit to 2000", TD_DIMS(2000, 1), plain, sqrt(6.0));
    check_deviation("normal weights from 800 units to 200", plain, sqrt(2.0 / 800));
    return check_end();
}
