/* Gradients of a normalisation's three results, against the sums of the Jacobian. */
#include "check.h"
#include "core/registry.h"

enum { MOST = 600 };
static const char *const formula = "dx_j = sum of g_k r (d_kj - 1/n - y_k y_j / n) + dm_j / n + 2 dv_j y_j / (n r)";

typedef struct {
    const char *what;
    int o, c, i;
    double eps, at;                 /* numbers around `at` */
    int results;                    /* bits: which of the three have a gradient */
} example;

static const example examples[] = {
    { "one row, a gradient of the result alone", 1, 2, 5, 0, 0, 1 },
    { "a large epsilon", 1, 3, 7, 2.5, 0, 1 },
    { "two stretches a channel", 2, 3, 5, 0.01, 0, 1 },
    { "a gradient of the means alone", 2, 3, 5, 0.01, 0, 2 },
    { "a gradient of the variances alone", 2, 3, 5, 0.01, 0, 4 },
    { "all three at once", 3, 2, 7, 0.1, 1, 7 },
    { "the result and the means", 2, 2, 3, 0.1, 1, 3 },
    { "the means and the variances", 2, 2, 3, 0.1, 1, 6 },
    { "one number alone in its channel", 1, 4, 1, 0.5, 0, 7 },
    { "channels of a hundred numbers, far from zero", 5, 4, 20, 1e-5, 50, 7 },
    { "no numbers in a channel", 2, 3, 0, 0.1, 0, 7 },
    { "no channels", 2, 0, 4, 0.1, 0, 7 },
};

typedef struct { double x[MOST], g[MOST], m[MOST], v[MOST], dx[MOST]; } numbers;

/* What the formula says, from x alone. */
static void expect(const example *e, numbers *a)
{
    const double n = e->o * e->i;
    for (int c = 0; c < e->c; c++) {
        double mean = 0, var = 0;
        for (int k = 0; k < e->o * e->i; k++)
            mean += a->x[(k / e->i * e->c + c) * e->i + k % e->i] / n;
        for (int k = 0; k < e->o * e->i; k++)
            var += pow(a->x[(k / e->i * e->c + c) * e->i + k % e->i] - mean, 2) / n;
        const double r = 1 / sqrt(var + e->eps);
        for (int j = 0; j < e->o * e->i; j++) {
            const int at = (j / e->i * e->c + c) * e->i + j % e->i;
            const double yj = (a->x[at] - mean) * r;
            a->dx[at] = (e->results & 2 ? a->m[c] / n : 0) + (e->results & 4 ? 2 * a->v[c] * yj / r / n : 0);
            for (int k = 0; e->results & 1 && k < e->o * e->i; k++) {
                const int from = (k / e->i * e->c + c) * e->i + k % e->i;
                a->dx[at] += a->g[from] * r * ((k == j) - 1 / n - (a->x[from] - mean) * r * yj / n);
            }
        }
    }
}

static td_tensor *of(const double *x, td_dims shape, td_dtype type)
{
    return td_to(td_from_data(x, shape, (td_tensor_options){ .dtype = TD_FLOAT64 }), type);
}

/* The three results of x. */
static bool standardise(td_tensor *x, double eps, td_tensor *out[3])
{
    const td_value in = td_v_tensor(x), attr = td_v_float(eps);
    td_call call = { .op = td_op_find("standardise"), .n_in = 1, .in = &in, .n_attr = 1, .attr = &attr };
    const bool ok = td_run(&call);
    memcpy(out, call.out, 3 * sizeof *out);
    return ok;
}

static void check_gradient(const example *e, numbers *a, td_dtype type, const char *as)
{
    char what[160];
    const td_dims shape = TD_DIMS(e->o, e->c, e->i), few = TD_DIMS(1, e->c, 1);
    snprintf(what, sizeof what, "%s, in %s", e->what, as);
    check_case(what, formula);
    expect(e, a);
    td_scope_begin();
    td_tensor *x = td_set_requires_grad(of(a->x, shape, type), true), *out[3], *asked[3], *grad[3], *got = NULL;
    standardise(x, e->eps, out);
    check_no_error();
    td_tensor *given[3] = { of(a->g, shape, type), of(a->m, few, type), of(a->v, few, type) };
    int n = 0;
    for (int k = 0; k < 3; k++)
        if (e->results >> k & 1) {
            asked[n] = out[k];
            grad[n++] = td_set_requires_grad(td_contiguous(td_add_scalar(given[k], td_int(0))), true);
        }
    td_grad(asked, n, &x, 1, &got, (td_grad_options){ .grad_outputs = grad, .create_graph = true });
    check_no_error();
    check_tensor(got, shape, a->dx, type == TD_FLOAT64 ? 1e-11 : 2e-5);
    if (!td_requires_grad(got))
        check_wrong("  expected  a gradient that was recorded, and has derivatives again\n  got       one that does not know of what it was made");
    check_case(what, "the gradient that was given belongs to others, and stays as it is");
    n = 0;
    for (int k = 0; k < 3; k++)
        if (e->results >> k & 1) {
            td_tensor *now = td_to(td_detach(grad[n++]), TD_FLOAT64), *before = td_to(given[k], TD_FLOAT64);
            if (memcmp(td_data(now), td_data(before), (size_t)td_numel(now) * sizeof(double)) != 0)
                check_wrong("  the gradient that was given for result %d was changed", k);
        }
    td_scope_end();
}

/* y, m and v brought together in a way of which each matters. */
static td_tensor *mixture(void *context, td_tensor *const *in)
{
    const int *results = context;
    td_tensor *out[3];
    if (!standardise(in[0], 0.3, out))
        return NULL;
    td_tensor *sum = td_mul_scalar(in[0], td_float(0.5));
    if (*results & 1)
        sum = td_add(sum, td_mul(out[0], in[1]));
    if (*results & 2)
        sum = td_add(sum, td_mul(in[1], td_mul(out[1], out[1])));
    return *results & 4 ? td_add(sum, td_mul(out[2], td_mul(in[1], out[2]))) : sum;
}

static void check_second(int results)
{
    static const char *const names[] = { "", "the result", "the means", "the result and the means", "the variances",
                                         "the result and the variances", "the means and the variances", "all three" };
    char what[160];
    const td_tensor_options o = { .dtype = TD_FLOAT64, .requires_grad = true };
    td_scope_begin();
    td_tensor *in[] = { td_randn(TD_DIMS(2, 2, 3), o), td_randn(TD_DIMS(2, 2, 3), o) };
    snprintf(what, sizeof what, "a second derivative, of %s", names[results]);
    check_case(what, "every factor of the gradient moves when x does");
    td_gradcheck(mixture, &results, 2, in, (td_gradcheck_options){ 0 });
    check_no_error();
    td_gradgradcheck(mixture, &results, 2, in, (td_gradcheck_options){ 0 });
    check_no_error();
    td_scope_end();
}

int main(void)
{
    static numbers a;
    const double x[] = { 1, 2, 6 };
    memcpy(a.x, x, sizeof x);
    a.g[0] = 1;
    check_gradient(&(example){ "(1, 2, 6) and a gradient of (1, 0, 0)", 1, 1, 3, 0, 0, 1 }, &a, TD_FLOAT64, "double");
    td_manual_seed(3);
    for (size_t k = 0; k < sizeof examples / sizeof examples[0]; k++) {
        const example *e = &examples[k];
        for (int i = 0; i < MOST; i++) {
            a.x[i] = (i * 37 % 101) / 29.0 + 1e-4 * (i % 7) + e->at;
            a.g[i] = (i * 29 % 53) / 17.0 - 1.25;
            a.m[i] = 0.75 - i, a.v[i] = 1.5 + i;
        }
        check_gradient(e, &a, TD_FLOAT64, "double");
        for (int i = 0; i < MOST; i++)
            a.x[i] = (double)(float)a.x[i], a.g[i] = (double)(float)a.g[i];
        if (e->at == 0)
            check_gradient(e, &a, TD_FLOAT32, "float");
    }
    for (int results = 1; results < 8; results++)
        check_second(results);
    return check_end();
}
