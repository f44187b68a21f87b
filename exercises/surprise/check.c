/* Losses of single rows, in float64, against values worked out by hand. */
#include "check.h"

enum { CLASSES = 3 };
static const char *formula = "sum over q[c] != 0 of q[c] * (m - x[c] + ln(1 + r))";

/* The loss of one row over `unit`, so that tiny ones are compared in full. */
static void check_row(const char *what, const double *scores, int64_t label, const double *weight, double smoothing,
                      double expected)
{
    const td_tensor_options wide = { .dtype = TD_FLOAT64 }, whole = { .dtype = TD_INT64 };
    check_case(what, formula);
    td_scope_begin();
    td_tensor *loss = td_cross_entropy(td_from_data(scores, TD_DIMS(1, CLASSES), wide),
        td_from_data(&label, TD_DIMS(1), whole), (td_cross_entropy_options){
            .weight = weight ? td_from_data(weight, TD_DIMS(CLASSES), wide) : NULL,
            .reduction = TD_LOSS_SUM, .label_smoothing = smoothing });
    check_no_error();
    const double got = *(double *)td_data(loss);
    if (isfinite(expected) ? !(fabs(got - expected) <= 1e-14 * fabs(expected)) : !check_is_close(got, expected, 0))
        check_wrong("  expected  %.15g\n  got       %.15g", expected, got);
    td_scope_end();
}

int main(void)
{
    const double plain[] = { 2, 1, 0 }, sure[] = { 40, 0, -1 }, large[] = { 1e15, 1e15, 0 };
    const double masked[] = { 1, -INFINITY, 0 }, weight[] = { 1, 3, 0.5 };
    check_row("scores (2, 1, 0), the first is true", plain, 0, NULL, 0, log(1 + exp(-1) + exp(-2)));
    check_row("scores (2, 1, 0), the last is true", plain, 2, NULL, 0, 2 + log(1 + exp(-1) + exp(-2)));
    check_row("large scores: (1e15, 1e15, 0), the second is true", large, 1, NULL, 0, log(2));
    check_row("nearly sure: scores (40, 0, -1), the first is true", sure, 0, NULL, 0, exp(-40) + exp(-41));
    check_row("a class that is ruled out: scores (1, -inf, 0), the first is true", masked, 0, NULL, 0, log(1 + exp(-1)));
    check_row("weights (1, 3, 0.5), the second is true", plain, 1, weight, 0, 3 * (1 + log(1 + exp(-1) + exp(-2))));
    check_row("smoothed labels: 0.1 is shared by all three classes", plain, 0, NULL, 0.1,
              0.1 / 3 * (0 + 1 + 2) + log(1 + exp(-1) + exp(-2)));
    const double unseen[] = { 1, -INFINITY, NAN }, negative[] = { 1, -3, 0.5 };
    check_row("the true class is ruled out: scores (1, -inf, 0), the second is true", masked, 1, NULL, 0, INFINITY);
    check_row("a score that is not a number, of a class without mass", unseen, 0, NULL, 0, NAN);
    check_row("a negative weight: (1, -3, 0.5), the second is true", plain, 1, negative, 0,
              -3 * (1 + log(1 + exp(-1) + exp(-2))));
    return check_end();
}
