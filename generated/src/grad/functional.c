/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "functional": edit that, not this file. */
/* Derivatives as functions: products, Jacobians, Hessians. */
#include "grad/autograd.h"
#include "ops/composite.h"
#include <treadle/treadle.h>

/* functional: struct point */
enum { MOST = 16 };

typedef struct {
    int n;
    td_tensor *x[MOST], *y;     /* our inputs, and the result */
} point;
/* functional: function arrive */
static bool arrive(point *p, td_check_function *f, void *context,
                   int n, td_tensor *const *in)
{
    p->n = n;
    if (n > MOST)
        return td_fail(TD_ERROR_VALUE, "functional",
                       "at most %d inputs, got %d", MOST, n);
    td_enable_grad_begin();
    for (int i = 0; i < n && !td_failed(); i++)
        p->x[i] = td_set_requires_grad(td_detach(in[i]), true);
    p->y = td_failed() ? NULL : f(context, p->x);
    td_enable_grad_end();
    return p->y != NULL && !td_failed();
}
/* functional: function leave */
static bool leave(bool ok, int n, td_tensor **results)
{
    ok = ok && !td_failed();
    for (int i = 0; i < n; i++)
        results[i] = ok ? td_retain(results[i]) : NULL;
    td_scope_end();
    for (int i = 0; i < n; i++)
        td_adopt(results[i]);
    return ok;
}
/* functional: functions td_vjp and td_jvp */
td_tensor *td_vjp(td_check_function *f, void *context, int n_in,
                  td_tensor *const *in, td_tensor *v,
                  td_tensor **pulled)
{
    point p;
    td_tensor *y = NULL;
    td_scope_begin();
    if (arrive(&p, f, context, n_in, in)
        && td_pull_back(p.y, v, p.n, p.x, pulled, false))
        y = td_retain(td_detach(p.y));
    leave(y != NULL, n_in, pulled);
    return td_adopt(y);
}

td_tensor *td_jvp(td_check_function *f, void *context, int n_in,
                  td_tensor *const *in, td_tensor *const *t,
                  td_tensor **pushed)
{
    point p;
    td_tensor *pulled[MOST], *seeds[MOST], *y = NULL, *u = NULL;
    const td_tensor_options leaf = { .requires_grad = true };
    *pushed = NULL;
    td_scope_begin();
    if (arrive(&p, f, context, n_in, in))
        u = td_zeros_like(p.y, leaf);
    int n = 0;
    if (u && td_pull_back(p.y, u, p.n, p.x, pulled, true))
        for (int i = 0; i < n_in; i++)
            if (td_requires_grad(pulled[i])) {
                pulled[n] = pulled[i];
                seeds[n++] = t[i];
            }
    /* functional: pull the directions through the record */
    const td_grad_options along = { .grad_outputs = seeds,
                                    .allow_unused = true };
    if (!td_failed()
        && (n == 0 || td_grad(pulled, n, &u, 1, pushed, along)))
        y = td_detach(p.y);
    if (y != NULL && *pushed == NULL)
        *pushed = td_zeros_like(y, (td_tensor_options)TD_DEFAULTS);
    y = td_failed() ? NULL : td_retain(y);
    leave(y != NULL, 1, pushed);
    return td_adopt(y);
}
/* functional: functions td_jacobian and td_hessian */
static bool stack_rows(point *p, td_tensor *y, td_tensor **blocks)
{
    const int64_t n = td_numel(y);
    td_tensor **rows = TD_ARRAY(rows, n * p->n + 1);
    td_tensor *units = td_eye(n, (td_opt_i64)TD_DEFAULTS, td_like(y));
    for (int64_t k = 0; rows && k < n && !td_failed(); k++) {
        td_tensor *v = td_reshape(td_select(units, 0, k),
                                  td_shape_of(y)), *row[MOST];
        if (td_pull_back(y, v, p->n, p->x, row, false))
            for (int i = 0; i < p->n; i++)
                rows[i * n + k] = row[i];
    }
    for (int i = 0; i < p->n && !td_failed(); i++)
        /* functional: stack the rows of one input */
        {
            td_dims shape = td_shape_of(y);
            const td_dims of_x = td_shape_of(p->x[i]);
            for (int d = 0; d < of_x.count && shape.count < TD_MAX_RANK; d++)
                shape.at[shape.count++] = of_x.at[d];
            blocks[i] = n == 0 ? td_zeros(shape, td_like(y))
                : td_reshape(td_stack(rows + i * n, (int)n, 0), shape);
        }
    TD_FREE_ARRAY(rows, n * p->n + 1);
    return !td_failed();
}

bool td_jacobian(td_check_function *f, void *context, int n_in,
                 td_tensor *const *in, td_tensor **blocks)
{
    point p;
    td_scope_begin();
    const bool ok = arrive(&p, f, context, n_in, in)
                 && stack_rows(&p, p.y, blocks);
    return leave(ok, n_in, blocks);
}

bool td_hessian(td_check_function *f, void *context, int n_in,
                td_tensor *const *in, td_tensor **blocks)
{
    point p;
    td_tensor *slope[MOST];
    td_scope_begin();
    bool ok = arrive(&p, f, context, n_in, in);
    if (ok && td_numel(p.y) != 1)
        ok = td_fail(TD_ERROR_VALUE, "hessian", "the result must have "
            "one element, not %" PRId64, td_numel(p.y));
    ok = ok && td_pull_back(p.y, td_ones_like(p.y,
        (td_tensor_options)TD_DEFAULTS), p.n, p.x, slope, true);
    for (int i = 0; ok && i < n_in; i++)
        ok = stack_rows(&p, slope[i], blocks + i * n_in);
    return leave(ok, n_in * n_in, blocks);
}
