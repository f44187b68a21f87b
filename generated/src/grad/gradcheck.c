/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "gradcheck": edit that, not this file. */
/* Gradients against difference quotients. */
#include <treadle/gradcheck.h>
#include "core/space.h"
#include "grad/autograd.h"

enum { MAX_INPUTS = 16 };

/* gradcheck: struct check */
typedef struct {
    td_check_function *f;
    void *context;
    int n_in;
    td_tensor *const *in;
    double eps, atol, rtol;
    int64_t rows, columns;
    double *by_rule, *by_quotient;  /* [rows][columns] */
} check;
/* gradcheck: function element_at */
static double *element_at(const td_tensor *x, int64_t number)
{
    td_space s;
    td_space_begin(&s, x, TD_ALL_DIMS);
    return td_space_place(&s, 0, number);
}
/* gradcheck: function nudge */
static bool nudge(check *c, double *x, int64_t column)
{
    const double before = *x;
    /* column: exercise column */
    for (int side = 1; side >= -1 && !td_failed(); side -= 2) {
        *x = before + side * c->eps;
        td_scope_begin();
        td_tensor *y = c->f(c->context, c->in);
        for (int64_t k = 0; y && !td_failed() && k < c->rows; k++)
            c->by_quotient[k * c->columns + column]
                += side * *element_at(y, k) / (2 * c->eps);
        td_scope_end();
        *x = before;
    }
    return !td_failed();
}
/* gradcheck: function fill_by_quotient */
static bool fill_by_quotient(check *c)
{
    int64_t column = 0;
    TD_EACH(i, c, in)
        for (int64_t j = 0; td_requires_grad(c->in[i])
                            && j < td_numel(c->in[i]); j++)
            if (!nudge(c, element_at(c->in[i], j), column++))
                return false;
    return !td_failed();
}
/* gradcheck: function td_pull_back */
bool td_pull_back(td_tensor *y, td_tensor *v, int n,
                  td_tensor *const *x, td_tensor **pulled, bool record)
{
    const td_grad_options options = {
        .grad_outputs = &v, .retain_graph = true,
        .create_graph = record, .allow_unused = true,
    };
    for (int i = 0; i < n; i++)
        pulled[i] = NULL;
    if (td_requires_grad(y)
        && !td_grad(&y, 1, x, n, pulled, options))
        return false;
    for (int i = 0; i < n; i++)
        if (pulled[i] == NULL)
            pulled[i] = td_zeros_like(x[i],
                                      (td_tensor_options)TD_DEFAULTS);
    return !td_failed();
}
/* gradcheck: function fill_by_rule */
static bool fill_by_rule(check *c, td_tensor *y)
{
    td_tensor *asked[MAX_INPUTS], *grads[MAX_INPUTS];
    double *row = c->by_rule;
    int n = 0;
    TD_EACH(i, c, in)
        if (td_requires_grad(c->in[i]))
            asked[n++] = c->in[i];
    for (int64_t k = 0; k < c->rows && !td_failed(); k++) {
        td_scope_begin();
        /* gradcheck: fill row k */
        td_tensor *seed = td_zeros_like(y, (td_tensor_options)TD_DEFAULTS);
        if (seed != NULL)
            *element_at(seed, k) = 1;
        if (td_pull_back(y, seed, n, asked, grads, false))
            for (int i = 0; i < n; i++)
                for (int64_t j = 0; j < td_numel(asked[i]); j++)
                    *row++ = *element_at(grads[i], j);
        td_scope_end();
    }
    return !td_failed();
}
/* gradcheck: function compare */
static bool compare(const check *c)
{
    for (int64_t at = 0; at < c->rows * c->columns; at++) {
        const double a = c->by_rule[at], q = c->by_quotient[at];
        if (fabs(a - q) <= c->atol + c->rtol * fabs(q))
            continue;
        return td_fail(TD_ERROR_RUNTIME, "gradcheck", "derivative of "
            "result element %" PRId64 " by input element %" PRId64
            ": the rule says %.9g, the difference quotient %.9g",
            at / c->columns, at % c->columns, a, q);
    }
    return true;
}
/* gradcheck: function accept_inputs */
static bool accept_inputs(check *c)
{
    for (int i = 0; i < c->n_in && !td_failed(); i++) {
        const td_tensor *x = c->in[i];
        if (!td_requires_grad(x))
            continue;
        c->columns += td_numel(x);
        if (x->dtype != TD_FLOAT64)
            td_fail(TD_ERROR_TYPE, "gradcheck", "input %d is %s; "
                    "only float64 is accurate enough", i,
                    td_dtype_name(x->dtype));
        for (int d = 0; d < x->rank; d++)
            if (x->strides[d] == 0 && x->shape[d] > 1)
                td_fail(TD_ERROR_VALUE, "gradcheck", "elements of "
                        "input %d share memory; clone it first", i);
    }
    if (c->n_in > MAX_INPUTS)
        td_fail(TD_ERROR_VALUE, "gradcheck",
                "at most %d inputs, got %d", MAX_INPUTS, c->n_in);
    return !td_failed();
}
/* gradcheck: function td_gradcheck */
bool td_gradcheck(td_check_function *f, void *context, int n_in,
                  td_tensor *const *in, td_gradcheck_options options)
{
    check c = {
        .f = f, .context = context, .n_in = n_in, .in = in,
        .eps = options.eps.given ? options.eps.value : 1e-6,
        .atol = options.atol.given ? options.atol.value : 1e-5,
        .rtol = options.rtol.given ? options.rtol.value : 1e-3,
    };
    if (td_failed() || !accept_inputs(&c))
        return false;
    td_scope_begin();
    td_tensor *y = f(context, in);
    /* gradcheck: fill both matrices and compare them */
    if (y != NULL && y->dtype != TD_FLOAT64)
        td_fail(TD_ERROR_TYPE, "gradcheck", "the result is %s; only "
                "float64 is accurate enough", td_dtype_name(y->dtype));
    c.rows = td_numel(y);
    const int64_t n = c.rows * c.columns;
    c.by_rule = TD_ARRAY(c.by_rule, n);
    c.by_quotient = TD_ARRAY(c.by_quotient, n);
    const bool ok = y != NULL && !td_failed() && fill_by_rule(&c, y)
                 && fill_by_quotient(&c) && compare(&c);
    TD_FREE_ARRAY(c.by_rule, n);
    TD_FREE_ARRAY(c.by_quotient, n);
    td_scope_end();
    return ok && !td_failed();
}
/* gradcheck: struct gradient_of */
typedef struct {
    td_check_function *f;
    void *context;
    int n_in;
    int by;                     /* the input asked about */
} gradient_of;
/* gradcheck: function recorded_gradient */
/* in: the inputs of f, then the seed. */
static td_tensor *recorded_gradient(void *context, td_tensor *const *in)
{
    const gradient_of *g = context;
    td_tensor *x = in[g->by], *result;
    td_tensor *y = g->f(g->context, in);
    return y && td_pull_back(y, in[g->n_in], 1, &x, &result, true)
         ? result : NULL;
}
/* gradcheck: function make_seed */
static td_tensor *make_seed(td_tensor *y)
{
    td_tensor *v = td_zeros(td_shape_of(y),
        TD_OF(TD_FLOAT64));
    for (int64_t k = 0; v && k < td_numel(v); k++)
        *element_at(v, k) = cos(1.0 + 3.0 * (double)k);
    return td_set_requires_grad(v, true);
}
/* gradcheck: function td_gradgradcheck */
bool td_gradgradcheck(td_check_function *f, void *context, int n_in,
                      td_tensor *const *in,
                      td_gradcheck_options options)
{
    td_tensor *all[MAX_INPUTS];
    if (td_failed() || n_in >= MAX_INPUTS)
        return td_fail(TD_ERROR_VALUE, "gradgradcheck",
                       "at most %d inputs", MAX_INPUTS - 1);
    td_scope_begin();
    td_tensor *y = f(context, in);
    for (int i = 0; i < n_in; i++)
        all[i] = in[i];
    all[n_in] = y ? make_seed(y) : NULL;
    bool ok = all[n_in] != NULL;
    for (int i = 0; ok && td_requires_grad(y) && i < n_in; i++) {
        gradient_of g = { f, context, n_in, i };
        if (td_requires_grad(in[i]))
            ok = td_gradcheck(recorded_gradient, &g, n_in + 1, all,
                              options);
    }
    td_scope_end();
    return ok && !td_failed();
}
