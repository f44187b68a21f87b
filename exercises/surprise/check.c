/* Losses of probabilities and their derivatives, in float64, against loops. */
#include "check.h"

enum { MOST = 24 };
static const char *formula = "loss = -(sum over classes of q[c] * log p[c]), where 0 * -inf = 0";

/* Losses of n examples, c classes and k places each, and what the derivatives of their sum should be. */
static void expect(int n, int c, int k, const double *x, const double *q, double *loss, double *by_x, double *by_q)
{
    for (int s = 0; s < n * k; s++) {
        const int at = s / k * c * k + s % k;
        double top = -INFINITY, sum = 0, mass = 0;
        for (int i = 0; i < c; i++)
            top = x[at + i * k] <= top ? top : x[at + i * k];
        for (int i = 0; i < c; i++)
            sum += exp(x[at + i * k] - top), mass += q[at + i * k];
        loss[s] = 0;
        for (int i = 0; i < c; i++) {
            const double log_p = x[at + i * k] - top - log(sum), mine = q[at + i * k];
            const bool counts = mine != 0 || log_p != -INFINITY;
            loss[s] -= counts ? mine * log_p : 0;
            by_x[at + i * k] = mass * exp(log_p) - mine;
            by_q[at + i * k] = counts ? -log_p : 0;
        }
    }
}

static void compare(const char *what, const td_tensor *got, const double *expected, int n)
{
    if (!got)
        check_wrong("  %s: there is none", what);
    for (int i = 0; i < n; i++) {
        const double y = ((const double *)td_data(got))[i];
        if (!check_is_close(y, expected[i], 1e-13))
            check_wrong("  %s %d\n  expected  %.15g\n  got       %.15g", what, i, expected[i], y);
    }
}

static void check(const char *what, td_dims shape, const double *x, const double *q)
{
    const td_tensor_options wide = { .dtype = TD_FLOAT64 };
    const bool batch = shape.count > 1;
    const int n = batch ? (int)shape.at[0] : 1, c = (int)shape.at[batch], k = shape.count > 2 ? (int)shape.at[2] : 1;
    double loss[MOST], by_x[MOST], by_q[MOST];
    expect(n, c, k, x, q, loss, by_x, by_q);
    check_case(what, formula);
    td_scope_begin();
    td_tensor *scores = td_set_requires_grad(td_from_data(x, shape, wide), true);
    td_tensor *masses = td_set_requires_grad(td_from_data(q, shape, wide), true);
    td_tensor *got = td_cross_entropy(scores, masses, (td_cross_entropy_options){ .reduction = TD_LOSS_NONE });
    check_no_error();
    if (td_rank(got) != (batch ? shape.count - 1 : 0) || td_numel(got) != n * k)
        check_wrong("  the result has %d dimensions and %d elements\n  expected  %d dimensions and %d elements", td_rank(got),
                    (int)td_numel(got), batch ? shape.count - 1 : 0, n * k);
    compare("loss", got, loss, n * k);
    td_backward(td_sum(got, (td_reduce_options){ 0 }), (td_backward_options){ 0 });
    check_no_error();
    bool finite = true;
    for (int i = 0; i < n * k; i++)
        finite = finite && isfinite(loss[i]);
    if (finite) {
        compare("derivative by score", td_grad_of(scores), by_x, n * c * k);
        compare("derivative by mass", td_grad_of(masses), by_q, n * c * k);
    }
    check_case(what, "masses are read, not written");
    td_tensor *constant = td_from_data(q, shape, wide);
    td_no_grad_begin();
    td_cross_entropy(scores, constant, (td_cross_entropy_options){ .reduction = TD_LOSS_NONE });
    td_no_grad_end();
    check_no_error();
    compare("the masses as they were:", constant, q, n * c * k);
    td_scope_end();
}

int main(void)
{
    const double two[] = { 2, 1, 0.5, 3 }, sure[] = { 1, 0, 0.25, 0.75 };
    check("two classes", TD_DIMS(2, 2), two, sure);
    const double masked[] = { 1, -INFINITY, 0 }, first[] = { 1, 0, 0 }, second[] = { 0.5, 0.5, 0 };
    check("a class that is ruled out: scores (1, -inf, 0), the first is true", TD_DIMS(1, 3), masked, first);
    check("the true class is ruled out: scores (1, -inf, 0), half of the mass on the second", TD_DIMS(1, 3), masked, second);
    const double unseen[] = { 1, 2, NAN };
    check("a score that is not a number, of a class without mass", TD_DIMS(1, 3), unseen, first);
    const double plain[] = { 2, 1, 0 }, negative[] = { 1, -3, 0.5 };
    check("a negative mass: (1, -3, 0.5)", TD_DIMS(1, 3), plain, negative);
    check("one example without a batch", TD_DIMS(3), plain, negative);
    const double none[] = { 0, 0, 0 }, little[] = { 1, 1e-300, 0 }, far[] = { 0, -200, 1 };
    check("a score that is not a number, of which no class has a mass", TD_DIMS(1, 3), unseen, none);
    check("the second is ruled out and has next to no mass, 1e-300", TD_DIMS(1, 3), masked, little);
    check("an improbable class without mass: scores (0, -200, 1)", TD_DIMS(1, 3), far, first);
    double pixels[MOST], shares[MOST];
    for (int i = 0; i < MOST; i++)
        pixels[i] = (i * 7 % 11) / 4.0, shares[i] = (i * 5 % 13) / 8.0;
    check("images of four pixels with masses at each", TD_DIMS(2, 3, 4), pixels, shares);
    return check_end();
}
