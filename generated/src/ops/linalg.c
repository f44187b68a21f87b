/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "linalg": edit that, not this file. */
/* Dense linear algebra: LAPACK, and the rules of what it computes. */
#include <dlfcn.h>
#include <float.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <treadle/arranging.h>
#include <treadle/elementwise.h>
#include <treadle/linalg.h>
#include <treadle/matmul.h>
#include "core/call.h"
#include "core/device.h"
#include "core/runtime.h"
#include "ops/composite.h"
#include "ops/reductions.h"

/* linalg: struct of a problem */
typedef struct {
    td_call *call;
    td_dtype dtype;
    td_device home;
    td_dims lead;               /* B, and its product: */
    int64_t batch;
    int m, n, k, lda, info;     /* k: the smaller of m and n */
    td_tensor *a;
} problem;

/* linalg: function find */
static void *find(const problem *p, const char *name)
{
    _Atomic(void *) *opened = &td_process()->lapack;
    const char *path = getenv("TREADLE_LAPACK");
    path = path != NULL ? path : "liblapack.so.3";
    void *library = atomic_load(opened), *found;
    if (td_failed())
        return NULL;
    if (library == NULL)
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    atomic_store(opened, library);
    char symbol[16];
    snprintf(symbol, sizeof symbol, "%c%s_",
             p->dtype == TD_FLOAT32 ? 's' : 'd', name);
    found = library != NULL ? dlsym(library, symbol) : NULL;
    if (found == NULL)
        td_fail(TD_ERROR_UNSUPPORTED, p->call->op->name, "needs LAPACK "
                "(Debian's liblapack3, or what TREADLE_LAPACK names): "
                "%s", dlerror());
    return found;
}

/* linalg: call a routine of LAPACK */
typedef const void *at;
typedef void routine(at, at, at, at, at, at, at, at, at, at, at, at, at,
                     at, at);

static void run(const problem *p, const char *name, int n, const at *x)
{
    at a[15];
    routine *f;
    *(void **)&f = find(p, name);
    for (int i = 0; i < 15; i++)
        a[i] = i < n ? x[i] : (at)1;
    if (f != NULL)
        f(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9],
          a[10], a[11], a[12], a[13], a[14]);
}

#define LAPACK(p, name, ...) \
    run(p, name, (int)(sizeof (at[]){ __VA_ARGS__ } / sizeof(at)), \
        (at[]){ __VA_ARGS__ })

/* linalg: function fill */
static td_tensor *fill(td_tensor *y, td_tensor *x)
{
    if (y != NULL && x != NULL)
        td_copy_elements(y, td_expand(td_brought(x, td_device_of(y)),
                                      td_shape_of(y)));
    return y;
}

static td_tensor *eye(td_tensor *x)
{
    return td_eye(td_size(x, -1), (td_opt_i64){ 0 }, td_like(x));
}

static td_tensor *turned(td_tensor *x)
{
    return td_transpose(x, -2, -1);
}

static td_tensor *triu(td_tensor *x, int64_t k)
{
    return TD_CALL(triu, x, td_v_int(k));
}

/* linalg: functions of problems */
/* [B, m, n]; [B, n] if m < 0. */
static td_tensor *make(const problem *p, int64_t m, int64_t n)
{
    td_dims shape = p->lead;
    if (m >= 0)
        shape.at[shape.count++] = m;
    shape.at[shape.count++] = n;
    return td_tensor_new(shape, p->dtype, (td_device){ 0 });
}

static td_tensor *columns(const problem *p, int64_t m, int64_t n)
{
    td_tensor *y = make(p, n, m);
    if (y != NULL) {
        int64_t *shape = y->shape + y->rank - 2;
        int64_t *strides = y->strides + y->rank - 2;
        shape[0] = m, shape[1] = n;
        strides[1] = strides[0], strides[0] = 1;
    }
    return y;
}

static void *room(td_dtype dtype, int64_t n, int *count)
{
    *count = n < INT_MAX ? (int)n : INT_MAX;
    td_tensor *x = td_tensor_new(TD_DIMS(n), dtype, (td_device){ 0 });
    return x != NULL ? td_at(x) : NULL;
}

static td_dims all_but(const td_tensor *x, int last)
{
    td_dims d = td_shape_of(x);
    d.count = d.count > last ? d.count - last : 0;
    return d;
}

static bool begin(problem *p, td_call *call, bool square, td_dims lead)
{
    td_tensor *x = td_input(call, 0);
    const int64_t *size = x->shape + (x->rank < 2 ? 0 : x->rank - 2);
    *p = (problem){ call, x->dtype, td_device_of(x), lead, 0,
                    (int)size[0], (int)size[1], .k = 0 };
    td_scope_begin();
    if (x->rank < 2)
        td_refuse(call, "The input tensor A must have at least 2 "
                  "dimensions");
    else if (square && size[0] != size[1])
        td_refuse(call, "A must be batches of square matrices, but "
                  "they are %lld by %lld matrices",
                  (long long)size[0], (long long)size[1]);
    else if (size[0] > INT_MAX || size[1] > INT_MAX)
        td_refuse(call, "the matrix is too large for LAPACK");
    if (td_failed() || !td_check_computes(call, x->dtype, true))
        return false;
    p->k = p->m < p->n ? p->m : p->n;
    p->lda = p->m > 1 ? p->m : 1;
    p->a = fill(columns(p, p->m, p->n), x);
    p->batch = p->a != NULL && td_on_host(p->a);
    for (int d = 0; d < lead.count; d++)
        p->batch *= lead.at[d];
    return !td_failed();
}

static void *nth(const problem *p, td_tensor *x, int64_t i)
{
    return td_failed() ? NULL : (char *)td_at(x) + td_numel(x)
        / p->batch * i * (int64_t)td_dtype_size(p->dtype);
}

static void judge(const problem *p, int64_t i, const char *before,
                  const char *after)
{
    char where[48] = "";
    if (p->lead.count > 0)
        snprintf(where, sizeof where, "(Batch element %lld): ",
                 (long long)i);
    if (p->info != 0 && !td_failed())
        td_fail(TD_ERROR_SINGULAR, p->call->op->name, "%s%s%d%s",
                where, before, p->info, after);
}

static bool finish(problem *p, td_tensor *first)
{
    td_call *call = p->call;
    call->out[0] = first;
    for (int k = 0; k < TD_MAX_RESULTS && call->out[k]; k++)
        call->out[k] = td_sent(call->out[k], p->home);
    return td_close_parts(call, true);
}

#define EACH(p, i) for (int64_t i = 0; i < (p)->batch; i++)

/* linalg: kernels of linear algebra */
/* The batch of the solution, and k, the number of right sides, or -1
   if they are vectors. */
static td_dims right_side(td_call *call, bool left, int64_t *k)
{
    const td_tensor *a = td_input(call, 0), *b = td_input(call, 1);
    td_dims lead = all_but(a, 2);
    const td_dims rows = all_but(a, 1), whole = td_shape_of(b);
    const bool vector = b->rank == 1 || td_dims_equal(&whole, &rows);
    const td_dims own = all_but(b, vector ? 1 : 2);
    const int64_t *last = b->shape + b->rank - (vector ? 1 : 2);
    if (a->dtype != b->dtype)
        td_refuse(call, "Expected A and B to have the same dtype, but "
                  "found %s and %s", td_dtype_name(a->dtype),
                  td_dtype_name(b->dtype));
    if (a->rank < 2 || b->rank < 1 || (vector && !left)
        || last[!left] != a->shape[a->rank - 1])
        td_refuse(call, "Incompatible shapes of A and B for the "
                  "equation %s = B", left ? "AX" : "XA");
    else
        *k = vector ? -1 : last[left];
    td_broadcast_dims(call->op->name, &lead, &own, &lead);
    return lead;
}

bool solve_kernel(td_call *call)
{
    problem p;
    const bool triangular = call->n_attr == 3, inverse = call->n_in < 2;
    const bool left = inverse || td_flag(call, triangular);
    td_tensor *x = NULL;
    int64_t k = 0;
    td_dims lead = all_but(td_input(call, 0), 2);
    if (!inverse)
        lead = right_side(call, left, &k);
    if (begin(&p, call, true, lead)) {
        /* linalg: solve for each matrix */
        const int n = p.n, sides = k < 0 ? 1 : (int)(inverse ? n : k);
        int count, *pivots = room(TD_INT32, n, &count);
        const double wide = 1;
        const float narrow = 1;
        x = fill(k < 0 ? make(&p, -1, n) : left ? columns(&p, n, sides)
                 : make(&p, k, n), inverse
                 ? eye(p.a) : td_input(call, 1));
        EACH(&p, i) {
            void *a = nth(&p, p.a, i), *b = nth(&p, x, i);
            if (triangular) {
                LAPACK(&p, "trsm", "L", td_flag(call, 0) ? "U" : "L",
                       left ? "N" : "T", td_flag(call, 2) ? "U" : "N", &n,
                       &sides, p.dtype == TD_FLOAT64 ? (at)&wide : (at)&narrow,
                       a, &p.lda, b, &p.lda);
                continue;
            }
            LAPACK(&p, "getrf", &n, &n, a, &p.lda, pivots, &p.info);
            judge(&p, i, inverse ? "The diagonal element "
                  : "The solver failed because the input matrix is singular: "
                    "the diagonal element ", inverse ? " is zero, the "
                  "inversion could not be completed because the input matrix "
                  "is singular." : " is zero.");
            LAPACK(&p, "getrs", left ? "N" : "T", &n, &sides, a, &p.lda, pivots,
                   b, &p.lda, &p.info);
        }
    }
    return finish(&p, x);
}

bool det_kernel(td_call *call)
{
    problem p;
    td_tensor *sign = NULL, *u = NULL;
    const bool plain = call->op == &td_ops[TD_OP_det];
    if (begin(&p, call, true, all_but(td_input(call, 0), 2))) {
        int count, *pivots = room(TD_INT32, p.n, &count);
        sign = make(&p, -1, 1);
        EACH(&p, i) {
            int odd = 0;
            LAPACK(&p, "getrf", &p.n, &p.n, nth(&p, p.a, i), &p.lda,
                   pivots, &p.info);
            for (int j = 0; j < p.n && !td_failed(); j++)
                odd ^= pivots[j] != j + 1;
            td_store(p.dtype, nth(&p, sign, i), td_int(1 - 2 * odd));
        }
        sign = td_squeeze(sign, TD_DIMS(-1));
        u = td_diagonal(p.a, 0, -2, -1);
    }
    if (!plain)
        call->out[1] = td_sum(td_log(td_abs(u)), (td_reduce_options){
            .dims = TD_DIMS(-1) });
    return finish(&p, td_mul(sign, td_prod(plain ? u : td_sign(u),
        (td_arg_options){ .dim = td_some(-1) })));
}

bool linalg_cholesky_kernel(td_call *call)
{
    problem p;
    const bool upper = td_flag(call, 0);
    begin(&p, call, true, all_but(td_input(call, 0), 2));
    EACH(&p, i) {
        LAPACK(&p, "potrf", upper ? "U" : "L", &p.n, nth(&p, p.a, i),
               &p.lda, &p.info);
        judge(&p, i, "The factorization could not be completed because "
              "the input is not positive-definite (the leading minor "
              "of order ", " is not positive-definite).");
    }
    return finish(&p, upper ? triu(p.a, 0) : td_tril(p.a, 0));
}

enum { REDUCED, COMPLETE, R_ONLY };
static const char *const modes[] = { "reduced", "complete", "r" };

bool linalg_qr_kernel(td_call *call)
{
    problem p;
    td_tensor *q = NULL;
    const int mode = td_choice(call, 0, 3, modes);
    begin(&p, call, false, all_but(td_input(call, 0), 2));
    int size, count, rows = mode == COMPLETE ? p.m : p.k;
    void *tau = room(p.dtype, p.k, &count);
    void *work = room(p.dtype, 64 * ((int64_t)p.m + p.n) + 1, &size);
    q = mode == R_ONLY ? td_zeros(TD_DIMS(0), td_like(p.a))
      : columns(&p, p.m, rows);
    EACH(&p, i) {
        void *a = nth(&p, p.a, i), *to = nth(&p, q, i);
        LAPACK(&p, "geqrf", &p.m, &p.n, a, &p.lda, tau, work, &size,
               &p.info);
        if (mode == R_ONLY || td_failed())
            continue;
        memcpy(to, a, (size_t)p.m * (size_t)p.k
                      * td_dtype_size(p.dtype));
        LAPACK(&p, "orgqr", &p.m, &rows, &p.k, to, &p.lda, tau, work,
               &size, &p.info);
    }
    call->out[1] = triu(td_part(p.a, -2, 0, rows), 0);
    return finish(&p, q);
}

static void expect_finite(const problem *p)
{
    if (p->batch > 0 && !td_item(td_all(td_isfinite(p->a),
                                        TD_REDUCE_DEFAULTS)).as.b)
        td_fail(TD_ERROR_SINGULAR, p->call->op->name, "The algorithm "
                "failed to converge because the input matrix contained "
                "non-finite values.");
}

bool linalg_eigh_kernel(td_call *call)
{
    static const char *const words[] = { "L", "U" };
    problem p;
    const char *uplo = words[td_choice(call, 0, 2, words) == 1];
    begin(&p, call, true, all_but(td_input(call, 0), 2));
    int size, whole;
    const int64_t n = p.n;
    void *work = room(p.dtype, 2 * n * n + 70 * n + 1, &size);
    void *more = room(TD_INT32, 5 * n + 3, &whole);
    td_tensor *w = make(&p, -1, n);
    expect_finite(&p);
    EACH(&p, i) {
        LAPACK(&p, "syevd", "V", uplo, &p.n, nth(&p, p.a, i), &p.lda,
               nth(&p, w, i), work, &size, more, &whole, &p.info);
        judge(&p, i, "The algorithm failed to converge because the "
              "input matrix is ill-conditioned or has too many repeated "
              "eigenvalues (error code: ", ").");
    }
    call->out[1] = p.a;
    return finish(&p, w);
}

bool linalg_svd_kernel(td_call *call)
{
    problem p;
    const bool full = td_flag(call, 0);
    begin(&p, call, false, all_but(td_input(call, 0), 2));
    int size, whole, high = full && p.n > 1 ? p.n : p.k > 1 ? p.k : 1;
    const int64_t k = p.k;
    void *work = room(p.dtype, 4 * k * k + 64 * ((int64_t)p.m + p.n) + 9,
                      &size);
    void *more = room(TD_INT32, 8 * k + 1, &whole);
    td_tensor *u = columns(&p, p.m, full ? p.m : k);
    td_tensor *s = make(&p, -1, k);
    td_tensor *v = columns(&p, full ? p.n : k, p.n);
    expect_finite(&p);
    EACH(&p, i) {
        LAPACK(&p, "gesdd", full ? "A" : "S", &p.m, &p.n,
               nth(&p, p.a, i), &p.lda, nth(&p, s, i), nth(&p, u, i),
               &p.lda, nth(&p, v, i), &high, work, &size, more, &p.info);
        judge(&p, i, "The algorithm failed to converge because the "
              "input matrix is ill-conditioned or has too many repeated "
              "singular values (error code: ", ").");
    }
    if (k == 0 && full)
        fill(u, eye(u)), fill(v, eye(v));
    call->out[1] = s, call->out[2] = v;
    return finish(&p, u);
}

bool linalg_pinv_kernel(td_call *call)
{
    td_tensor *a = td_input(call, 0), *s, *v;
    const bool given = call->attr[0].kind != TD_NONE;
    td_scope_begin();
    td_tensor *u = td_svd(a, false, &s, &v);
    double rtol = td_real(call, 1);
    if (!td_failed() && call->attr[1].kind == TD_NONE && !given)
        rtol = (double)(td_size(u, -2) > td_size(v, -1) ? td_size(u, -2)
                        : td_size(v, -1))
             * (a->dtype == TD_FLOAT32 ? FLT_EPSILON : DBL_EPSILON);
    td_tensor *least = td_clamp(td_mul_scalar(td_part(s, -1, 0, 1),
        td_float(rtol)), (td_clamp_options){ .min = td_some(
            td_real(call, 0)) });
    s = td_where_scalar(td_gt(s, least), td_reciprocal(s), td_int(0));
    return td_return(call, td_scope_end_with(td_matmul(
        td_mul(turned(v), td_unsqueeze(s, -2)), turned(u))));
}

/* linalg: rules of linear algebra */
void solve_rule(td_backward_pass *b)
{
    const bool triangular = b->n_attr == 3;
    td_tensor *g = b->grad[0], *x = td_saved_output(b, 0);
    if (b->n_in < 2) {
        b->grad_in[0] = td_neg(td_matmul(td_matmul(turned(x), g),
                                         turned(x)));
        return;
    }
    td_tensor *a = td_saved_input(b, 0);
    td_value attr[3];
    memcpy(attr, td_attribute(b, 0), (size_t)b->n_attr * sizeof *attr);
    const bool left = td_v_get_bool(&attr[triangular]);
    const bool upper = td_v_get_bool(&attr[0]);
    if (triangular)
        attr[0] = td_v_bool(!upper);
    td_tensor *h = b->grad_in[1] = td_run1(b->op, TD_VALUES(
        td_v_tensor(turned(a)), td_v_tensor(g)), b->n_attr, attr);
    if (td_rank(x) < td_rank(a))
        h = td_unsqueeze(h, -1), x = td_unsqueeze(x, -1);
    g = td_neg(left ? td_matmul(h, turned(x)) : td_matmul(turned(x), h));
    const int64_t off = triangular && td_v_get_bool(&attr[2]);
    b->grad_in[0] = !triangular ? g : upper ? triu(g, off)
                  : td_tril(g, -off);
}

void det_rule(td_backward_pass *b)
{
    td_tensor *a = td_saved_input(b, 0), *d = td_saved_output(b, 0);
    td_tensor *g = b->grad[b->n_out - 1], *wide[2] = { NULL, d };
    if (g == NULL)
        return;
    wide[0] = b->n_out == 1 ? td_mul(g, d) : td_div(g, td_abs(d));
    for (int i = 0; i < 2; i++)
        wide[i] = td_unsqueeze(td_unsqueeze(wide[i], -1), -1);
    a = td_where(td_eq_scalar(wide[1], td_int(0)), eye(a), a);
    b->grad_in[0] = td_mul(wide[0], turned(td_inv(a)));
}

static td_tensor *solved(td_tensor *a, td_tensor *b, bool upper,
                         bool left)
{
    return TD_CALL2(linalg_solve_triangular, a, b, td_v_bool(upper),
                    td_v_bool(left), td_v_bool(false));
}

static td_tensor *lower_to_upper(td_tensor *m)
{
    return td_add(td_tril(m, 0), turned(td_tril(m, -1)));
}

void linalg_cholesky_rule(td_backward_pass *b)
{
    td_tensor *l = td_saved_output(b, 0), *g = b->grad[0];
    if (td_v_get_bool(td_attribute(b, 0)))
        l = turned(l), g = turned(g);
    g = lower_to_upper(td_matmul(turned(l), g));
    g = solved(l, solved(turned(l), g, true, true), false, false);
    b->grad_in[0] = td_mul_scalar(g, td_float(0.5));
}

void linalg_qr_rule(td_backward_pass *b)
{
    const char *mode = td_attribute(b, 0)->as.string;
    td_tensor *q = td_saved_output(b, 0), *r = td_saved_output(b, 1);
    td_tensor *gq = b->grad[0], *gr = b->grad[1], *y[2] = { NULL };
    const int64_t k = td_size(r, -2), n = td_size(r, -1);
    if (*mode == 'r' && mode[1] == '\0')
        td_fail(TD_ERROR_RUNTIME, "linalg_qr", "The derivative depends "
                "on Q, which is not computed when mode='r'");
    else if (td_size(q, -1) > n)
        td_fail(TD_ERROR_RUNTIME, "linalg_qr", "not differentiable when "
                "mode='complete' and nrows > ncols");
    gq = gq != NULL ? gq : td_zeros_like(q, td_like(q));
    gr = gr != NULL ? gr : td_zeros_like(r, td_like(r));
    if (k < n) {
        td_tensor *v = td_part(r, -1, k, n);
        td_tensor *gv = td_part(gr, -1, k, n);
        gq = td_add(gq, td_matmul(q, td_matmul(v, turned(gv))));
        y[1] = td_matmul(q, gv);
        r = td_part(r, -1, 0, k), gr = td_part(gr, -1, 0, k);
    }
    gr = lower_to_upper(td_sub(td_matmul(r, turned(gr)),
                               td_matmul(turned(gq), q)));
    y[0] = solved(turned(r), td_add(gq, td_matmul(q, gr)), false, false);
    b->grad_in[0] = k < n ? td_cat(y, 2, -1) : y[0];
}

static td_tensor *skew_over(td_tensor *x, td_tensor *w)
{
    td_tensor *e = td_sub(td_unsqueeze(w, -2), td_unsqueeze(w, -1));
    return td_div(td_sub(x, turned(x)), td_add(e, eye(x)));
}

static td_tensor *plus(td_tensor *sum, td_tensor *x)
{
    return sum == NULL ? x : td_add(sum, x);
}

static td_tensor *on_diagonal(td_tensor *g)
{
    return g == NULL ? g : TD_CALL(diag_embed, g, td_v_int(0),
                                   td_v_int(-2), td_v_int(-1));
}

void linalg_eigh_rule(td_backward_pass *b)
{
    td_tensor *w = td_saved_output(b, 0), *v = td_saved_output(b, 1);
    td_tensor *middle = on_diagonal(b->grad[0]);
    if (b->grad[1] != NULL)
        middle = plus(middle, td_mul_scalar(skew_over(
            td_matmul(turned(v), b->grad[1]), w), td_float(0.5)));
    b->grad_in[0] = td_matmul(td_matmul(v, middle), turned(v));
}

void linalg_svd_rule(td_backward_pass *b)
{
    td_tensor *s = td_saved_output(b, 1), *square = td_square(s), *x;
    const int64_t k = td_size(s, -1);
    td_tensor *u = td_part(td_saved_output(b, 0), -1, 0, k);
    td_tensor *v = td_part(td_saved_output(b, 2), -2, 0, k);
    td_tensor *middle = on_diagonal(b->grad[1]), *left = NULL;
    td_tensor *gu = b->grad[0], *gv = b->grad[2], *right = NULL;
    td_tensor *across = td_unsqueeze(s, -2), *down = td_unsqueeze(s, -1);
    if (gu != NULL) {
        gu = td_part(gu, -1, 0, k), x = td_matmul(turned(u), gu);
        middle = plus(middle, td_mul(skew_over(x, square), across));
        left = td_div(td_sub(gu, td_matmul(u, x)), across);
    }
    if (gv != NULL) {
        gv = td_part(gv, -2, 0, k), x = td_matmul(gv, turned(v));
        middle = plus(middle, td_mul(skew_over(turned(x), square), down));
        right = td_div(td_sub(gv, td_matmul(x, v)), down);
    }
    left = plus(left, td_matmul(u, middle));
    left = td_matmul(left, v);
    b->grad_in[0] = right ? plus(left, td_matmul(u, right)) : left;
}

void linalg_pinv_rule(td_backward_pass *b)
{
    td_tensor *a = td_saved_input(b, 0), *p = td_saved_output(b, 0);
    td_tensor *t = turned(p), *h = turned(b->grad[0]);
    td_tensor *left = td_matmul(td_sub(h, td_matmul(a, td_matmul(p, h))),
                                td_matmul(p, t));
    td_tensor *right = td_matmul(td_matmul(t, p), td_sub(h,
        td_matmul(td_matmul(h, p), a)));
    b->grad_in[0] = td_sub(td_add(left, right), td_matmul(td_matmul(t,
        b->grad[0]), t));
}

/* linalg: functions of linear algebra */
td_tensor *td_inv(td_tensor *a) { return TD_CALL(inverse, a); }
td_tensor *td_det(td_tensor *a) { return TD_CALL(det, a); }

td_tensor *td_cholesky(td_tensor *a)
{
    return TD_CALL(linalg_cholesky, a, td_v_bool(false));
}

td_tensor *td_pinv(td_tensor *a)
{
    return TD_CALL(linalg_pinv, a, td_v_none(), td_v_none(),
                   td_v_bool(false));
}

td_tensor *td_solve(td_tensor *a, td_tensor *b)
{
    return TD_CALL2(linalg_solve, a, b, td_v_bool(true));
}

td_tensor *td_solve_triangular(td_tensor *a, td_tensor *b, bool upper)
{
    return solved(a, b, upper, true);
}

td_tensor *td_lstsq(td_tensor *a, td_tensor *b)
{
    return td_matmul(td_pinv(a), b);
}

td_tensor *td_slogdet(td_tensor *a, td_tensor **logabsdet)
{
    return td_run_pair(TD_OP_slogdet, a, 0, NULL, logabsdet);
}

td_tensor *td_qr(td_tensor *a, td_tensor **r)
{
    return td_run_pair(TD_OP_linalg_qr, a, TD_VALUES(
        td_v_string("reduced")), r);
}

td_tensor *td_eigh(td_tensor *a, td_tensor **vectors)
{
    return td_run_pair(TD_OP_linalg_eigh, a, TD_VALUES(
        td_v_string("L")), vectors);
}

td_tensor *td_svd(td_tensor *a, bool full, td_tensor **s, td_tensor **vh)
{
    const td_value in = td_v_tensor(a), attr = td_v_bool(full);
    td_call call = { &td_ops[TD_OP_linalg_svd], 1, 1, 0, &in, &attr,
                     { NULL } };
    td_run(&call);
    *s = call.out[1], *vh = call.out[2];
    return call.out[0];
}
