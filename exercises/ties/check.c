/* Gradients of extremes, against a loop over each group. */
#include "check.h"

static const char *formula = "each group shares its g evenly among those that equal its extreme";

typedef struct {
    const char *what;
    td_dims shape, axes;            /* no axes: all */
    const double *x;
    double g;                       /* the first of the gradient; others follow */
    bool least, keep;
    td_dtype dtype;
} example;

#define NAN_ 1e99                   /* stands for NaN in the tables */
static const double four[] = { 1, 3, 3, 2 }, three[] = { 7, -1, 7, 7, 0 };
static const double rows[] = { 1, 5, 5, 5, 2, 5,  4, 4, 0, -3, 4, 1 };
static const double close[] = { 1, 1 + 0x1p-52, 1, 1 + 0x1p-52, 1 - 0x1p-53 };
static const double far[] = { INFINITY, 1, INFINITY, -INFINITY, -INFINITY, -INFINITY };
static const double doubt[] = { 1, NAN_, 3, 2, 2, 1 }, zeros[] = { 0.0, -0.0, -1, -0.0 };
static const example examples[] = {
    { "largest of (1, 3, 3, 2)", { 1, { 4 } }, { 0 }, four, 2, false, false, TD_FLOAT64 },
    { "three ties among five", { 1, { 5 } }, { 0 }, three, 1, false, false, TD_FLOAT64 },
    { "a matrix, along dimension 1", { 2, { 2, 6 } }, { 1, { 1 } }, rows, 3, false, false, TD_FLOAT64 },
    { "a matrix, along dimension 0", { 2, { 2, 6 } }, { 1, { 0 } }, rows, 3, false, false, TD_FLOAT64 },
    { "the axis counted from the end", { 2, { 2, 6 } }, { 1, { -1 } }, rows, 3, false, false, TD_FLOAT64 },
    { "two of three axes", { 3, { 2, 3, 2 } }, { 2, { 0, 2 } }, rows, 3, false, false, TD_FLOAT64 },
    { "two of three axes, which are kept", { 3, { 2, 3, 2 } }, { 2, { 2, 1 } }, rows, 3, false, true, TD_FLOAT64 },
    { "a matrix, all of it", { 2, { 2, 6 } }, { 0 }, rows, 3, false, false, TD_FLOAT64 },
    { "the smallest, along dimension 1", { 2, { 2, 6 } }, { 1, { 1 } }, rows, 3, true, false, TD_FLOAT64 },
    { "the smallest, ties", { 1, { 5 } }, { 0 }, three + 0, 3, true, false, TD_FLOAT64 },
    { "a share of 0.1 in float64", { 1, { 4 } }, { 0 }, four, 0.1, false, false, TD_FLOAT64 },
    { "float32", { 2, { 2, 6 } }, { 1, { 1 } }, rows, 0.1, false, false, TD_FLOAT32 },
    { "a single number", { 0, { 0 } }, { 0 }, four, 3, false, false, TD_FLOAT64 },
    { "groups of one", { 2, { 4, 1 } }, { 1, { 1 } }, four, 3, false, false, TD_FLOAT64 },
    { "no groups", { 2, { 0, 3 } }, { 1, { 1 } }, four, 3, false, false, TD_FLOAT64 },
    { "neighbours in the last bit", { 1, { 5 } }, { 0 }, close, 1, false, false, TD_FLOAT64 },
    { "zeros of both signs", { 1, { 4 } }, { 0 }, zeros, 3, false, false, TD_FLOAT64 },
    { "a NaN in one group of two", { 2, { 2, 3 } }, { 1, { 1 } }, doubt, 3, false, false, TD_FLOAT64 },
    { "infinities that tie", { 2, { 2, 3 } }, { 1, { 1 } }, far, 1, false, false, TD_FLOAT64 },
    { "infinities that tie, the smallest", { 2, { 2, 3 } }, { 1, { 1 } }, far, 1, true, false, TD_FLOAT64 },
};

/* The group of element i: its coordinates along the axes that stay. */
static int group_of(const example *e, int i)
{
    int group = 0, stride = 1;
    for (int d = e->shape.count - 1; d >= 0; d--) {
        const int size = (int)e->shape.at[d], at = i % size;
        bool lost = e->axes.count == 0;
        for (int k = 0; k < e->axes.count; k++)
            lost = lost || (e->axes.at[k] + e->shape.count) % e->shape.count == d;
        group += lost ? 0 : at * stride;
        stride *= lost ? 1 : size;
        i /= size;
    }
    return group;
}

static td_tensor *extreme(const example *e, td_tensor *x, bool whole)
{
    const td_reduce_options o = { .dims = e->axes, .keepdim = e->keep };
    if (whole)
        return e->least ? td_min(x) : td_max(x);
    return e->least ? td_amin(x, o) : td_amax(x, o);
}

static void check(const example *e, bool whole)
{
    char what[160];
    double x[16], g[16], expected[16];
    int n = 1, groups = 0;
    for (int d = 0; d < e->shape.count; d++)
        n *= (int)e->shape.at[d];
    for (int i = 0; i < n; i++)
        x[i] = e->x[i] == NAN_ ? NAN : e->x[i];
    snprintf(what, sizeof what, "%s%s", e->what, whole ? ", by max or min" : "");
    check_case(what, formula);
    td_scope_begin();
    td_tensor *tx = td_to(td_from_data(x, e->shape, (td_tensor_options){ .dtype = TD_FLOAT64 }), e->dtype);
    td_tensor *y = extreme(e, td_set_requires_grad(tx, true), whole);
    check_no_error();
    groups = (int)td_numel(y);
    for (int k = 0; k < groups; k++)
        g[k] = e->g + k * 7;
    for (int k = 0; k < groups; k++) {
        double best = NAN, ties = 0;
        bool nan = false, first = true;
        for (int i = 0; i < n; i++)
            if (group_of(e, i) == k) {
                best = first || (e->least ? x[i] < best : x[i] > best) ? x[i] : best;
                nan = nan || isnan(x[i]);
                first = false;
            }
        for (int i = 0; i < n; i++)
            ties += group_of(e, i) == k && x[i] == best;
        for (int i = 0; i < n; i++)
            if (group_of(e, i) == k)
                expected[i] = nan ? NAN : x[i] == best ? g[k] / ties : 0;
    }
    td_tensor *tg = td_to(td_from_data(g, td_shape_of(y), (td_tensor_options){ .dtype = TD_FLOAT64 }), e->dtype);
    td_tensor *before = td_to(tg, TD_FLOAT64), *kept = td_clone(before), *got = NULL;
    td_grad(&y, 1, &tx, 1, &got, (td_grad_options){ .grad_outputs = &tg });
    check_no_error();
    if (got && td_dtype_of(got) != e->dtype)
        check_wrong("  expected  a gradient of type %s\n  got       %s", td_dtype_name(e->dtype), td_dtype_name(td_dtype_of(got)));
    check_tensor(got, e->shape, expected, e->dtype == TD_FLOAT32 ? 1e-6 : 1e-15);
    check_case("g is what others still add up: it stays as it is", formula);
    check_tensor(tg, td_shape_of(y), td_data(kept), 0);
    td_scope_end();
}

/* <r, x-bar> by g: what the places of one group have in r, by the shares. */
static void check_second(void)
{
    const double expected[] = { (2 * 0.5 + 3 * 0.5) };
    const double r[] = { 1, 2, 3, 4 }, one[] = { 5 };
    const td_tensor_options wide = { .dtype = TD_FLOAT64 };
    check_case("the derivative by g of the gradient of (1, 3, 3, 2)", "g-bar = (r[1] + r[2]) / 2");
    td_scope_begin();
    td_tensor *x = td_set_requires_grad(td_from_data(four, TD_DIMS(4), wide), true), *y = td_max(x), *first = NULL, *second = NULL;
    td_tensor *g = td_set_requires_grad(td_from_data(one, TD_RANK_0, wide), true), *tr = td_from_data(r, TD_DIMS(4), wide);
    td_grad(&y, 1, &x, 1, &first, (td_grad_options){ .grad_outputs = &g, .create_graph = true });
    check_no_error();
    if (!td_requires_grad(first))
        check_wrong("  expected  a gradient that was recorded\n  got       one that does not know of what it was made");
    td_grad(&first, 1, &g, 1, &second, (td_grad_options){ .grad_outputs = &tr });
    check_no_error();
    check_tensor(second, TD_RANK_0, expected, 1e-15);
    td_scope_end();
}

int main(void)
{
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        check(&examples[i], false);
        if (examples[i].axes.count == 0)
            check(&examples[i], true);
    }
    check_second();
    return check_end();
}
