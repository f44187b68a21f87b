/* Gradients of clamped numbers, one by one. */
#include "check.h"
#include "grad/autograd.h"

static const char *formula = "g where lower <= x <= upper, else 0";
#define NONE 1e300                  /* no bound */
#define INF INFINITY
enum { MOST = 8 };

typedef struct {
    const char *what;
    double lower, upper;
    int n;
    double x[MOST], g[MOST], expected[MOST];
    bool whole;                     /* bounds are given as whole numbers */
} example;

static const example examples[] = {
    { "held between -1 and 1", -1, 1, 4, { -2, 0.25, 0.5, 3 }, { 5, 6, 7, 8 }, { 0, 6, 7, 0 }, false },
    { "held between -1 and 1, on the edge", -1, 1, 4, { -1, 1, 0, 1 }, { 5, 6, 7, 8 }, { 5, 6, 7, 8 }, false },
    { "held between -0.5 and 0.75", -0.5, 0.75, 5, { -0.75, -0.5, 0, 0.75, 0.875 }, { 5, 6, 7, 8, 9 }, { 0, 6, 7, 8, 0 }, false },
    { "held between -1 and 1, infinite gradient", -1, 1, 4, { -2, -1, 0.5, 3 }, { -INF, 6, INF, INF }, { 0, 6, INF, 0 }, false },
    { "held between -1 and 1, a gradient that is NaN", -1, 1, 4, { -2, -1, 0.5, 3 }, { NAN, 6, NAN, NAN }, { 0, 6, NAN, 0 }, false },
    { "no upper bound", -1, NONE, 4, { -2, -1, 0.5, 3 }, { 5, 6, 7, 8 }, { 0, 6, 7, 8 }, false },
    { "no lower bound", NONE, 1, 4, { -2, -1, 1, 3 }, { 5, 6, 7, 8 }, { 5, 6, 7, 0 }, false },
    { "whole bounds", 0, 6, 5, { -1, 0, 3, 6, 7 }, { 5, 6, 7, 8, 9 }, { 0, 6, 7, 8, 0 }, true },
    { "infinite bounds and infinite numbers", -INF, INF, 4, { -INF, -1, INF, 3 }, { 5, 6, 7, 8 }, { 5, 6, 7, 8 }, false },
    { "infinite numbers", -1, 1, 4, { -INF, -1, INF, 0 }, { 5, 6, 7, 8 }, { 0, 6, 0, 8 }, false },
    { "a NaN among numbers", -1, 1, 4, { NAN, -1, NAN, 0 }, { 5, 6, INF, 8 }, { 0, 6, 0, 8 }, false },
    { "a NaN and a lower bound", -1, NONE, 2, { NAN, -1 }, { 5, 6 }, { 0, 6 }, false },
    { "a NaN and an upper bound", NONE, 1, 2, { NAN, -1 }, { 5, 6 }, { 0, 6 }, false },
    { "a lower bound above the upper", 2, 1, 5, { 0, 1, 1.5, 2, 3 }, { 5, 6, 7, 8, 9 }, { 0, 0, 0, 0, 0 }, false },
    { "equal bounds", 1, 1, 3, { 0, 1, 3 }, { 5, 6, 7 }, { 0, 6, 0 }, false },
};

static td_tensor *clamped(td_tensor *x, double lower, double upper, bool whole)
{
    const td_value in = td_v_tensor(x);
    const td_value at[] = { lower == NONE ? td_v_none() : whole ? td_v_int((int64_t)lower) : td_v_float(lower),
                            upper == NONE ? td_v_none() : whole ? td_v_int((int64_t)upper) : td_v_float(upper) };
    return td_run1(&td_ops[TD_OP_clamp], 1, &in, 2, at);
}

static void check(const example *e, td_dtype dtype)
{
    char what[160];
    const td_tensor_options wide = { .dtype = TD_FLOAT64 };
    snprintf(what, sizeof what, "%s, %s", e->what, td_dtype_name(dtype));
    check_case(what, formula);
    td_scope_begin();
    td_tensor *x = td_set_requires_grad(td_to(td_from_data(e->x, TD_DIMS(e->n), wide), dtype), true);
    td_tensor *g = td_to(td_from_data(e->g, TD_DIMS(e->n), wide), dtype), *got = NULL;
    td_tensor *y = clamped(x, e->lower, e->upper, e->whole);
    check_no_error();
    td_grad(&y, 1, &x, 1, &got, (td_grad_options){ .grad_outputs = &g });
    check_no_error();
    if (got && td_dtype_of(got) != dtype)
        check_wrong("  expected  type %s\n  got       %s", td_dtype_name(dtype), td_dtype_name(td_dtype_of(got)));
    check_tensor(got, TD_DIMS(e->n), e->expected, 0);
    check_case("g is what others still add up: it stays as it is", formula);
    check_tensor(g, TD_DIMS(e->n), e->g, 0);
    td_scope_end();
}

/* The float next to 0.1 is above 0.1, and that next to 0.3 too; both stand on the edge. */
static void check_rounded(void)
{
    const double expected[] = { 5, 0, 5, 0 }, edge[] = { (double)0.1f, (double)nextafterf(0.1f, 1), (double)0.3f, (double)nextafterf(0.3f, 0) };
    check_case("bounds of 0.1 and 0.3 in float32, and the numbers next to them", "the bound is the float next to it");
    td_scope_begin();
    for (int i = 0; i < 4; i++) {
        td_tensor *x = td_full(TD_DIMS(1), td_float(edge[i]), (td_tensor_options){ .requires_grad = true }), *got = NULL;
        td_tensor *y = i < 2 ? clamped(x, NONE, 0.1, false) : clamped(x, 0.3, NONE, false);
        td_tensor *g = td_full(TD_DIMS(1), td_float(5), (td_tensor_options){ 0 });
        td_grad(&y, 1, &x, 1, &got, (td_grad_options){ .grad_outputs = &g });
        check_tensor(got, TD_DIMS(1), &expected[i], 0);
    }
    td_scope_end();
}

/* A spread gradient of a turned matrix; and the gradient as a function of g. */
static void check_shapes(void)
{
    const double x[] = { -2, 0, 0.5, 3, 1, -7 }, sum[] = { 0, 1, 1, 0, 1, 0 }, turned[] = { 0, 0, 1, 1, 1, 0 };
    const td_tensor_options wide = { .dtype = TD_FLOAT64 };
    td_scope_begin();
    td_tensor *m = td_set_requires_grad(td_from_data(x, TD_DIMS(2, 3), wide), true), *got = NULL, *second = NULL;
    check_case("a matrix of which the sum is asked about", formula);
    td_tensor *s = td_sum(clamped(m, -1, 1, false), (td_reduce_options){ 0 });
    td_grad(&s, 1, &m, 1, &got, (td_grad_options){ 0 });
    check_tensor(got, TD_DIMS(2, 3), sum, 0);
    check_case("a turned matrix", formula);
    td_tensor *t = td_set_requires_grad(td_transpose(td_detach(m), 0, 1), true);
    s = td_sum(clamped(t, -1, 1, false), (td_reduce_options){ 0 });
    td_grad(&s, 1, &t, 1, &got, (td_grad_options){ 0 });
    check_tensor(got, TD_DIMS(3, 2), turned, 0);
    check_case("a tensor without elements", formula);
    td_tensor *none = td_set_requires_grad(td_zeros(TD_DIMS(0, 3), wide), true);
    s = td_sum(clamped(none, -1, 1, false), (td_reduce_options){ 0 });
    td_grad(&s, 1, &none, 1, &got, (td_grad_options){ 0 });
    check_tensor(got, TD_DIMS(0, 3), sum, 0);
    check_case("the gradient, differentiated again by g", "g-bar = r where lower <= x <= upper, else 0");
    td_tensor *g = td_set_requires_grad(td_from_data(x, TD_DIMS(2, 3), wide), true), *y = clamped(m, -1, 1, false);
    td_tensor *ones = td_full(TD_DIMS(2, 3), td_float(1), wide);
    td_grad(&y, 1, &m, 1, &got, (td_grad_options){ .grad_outputs = &g, .create_graph = true });
    check_no_error();
    if (!td_requires_grad(got))
        check_wrong("  expected  a gradient that was recorded\n  got       one that does not know of what it was made");
    td_grad(&got, 1, &g, 1, &second, (td_grad_options){ .grad_outputs = &ones });
    check_tensor(second, TD_DIMS(2, 3), sum, 0);
    td_scope_end();
}

int main(void)
{
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        check(&examples[i], TD_FLOAT64);
        check(&examples[i], TD_FLOAT32);
    }
    check_rounded();
    check_shapes();
    return check_end();
}
