/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "linalg": edit that, not this file. */
/* Dense linear algebra: LAPACK, and the rules of what it computes. */
#include <ctype.h>
#include <dlfcn.h>
#include "core/device.h"
#include "ops/composite.h"
#include "ops/gemm.h"
#include "ops/reductions.h"
#include <treadle/treadle.h>

/* linalg: struct of a problem */
typedef struct {
    td_call *call;
    td_dtype dtype;
    td_dims lead;               /* B, */
    int64_t batch;              /* and its product */
    int number[128];
    char *at[128];              /* NULL: a number */
    size_t step[128];           /* from matrix to matrix */
} problem;

/* linalg: function open_lapack */
static void *open_lapack(const char *operation, const char *symbol)
{
    _Atomic(void *) *opened = &td_process()->lapack;
    const char *path = getenv("TREADLE_LAPACK");
    void *library = atomic_load(opened), *found = NULL;
    if (library == NULL)
        library = dlopen(path ? path : "liblapack.so.3", RTLD_NOW);
    atomic_store(opened, library);
    if (library != NULL)
        found = dlsym(library, symbol);
    if (found == NULL)
        td_fail(TD_ERROR_UNSUPPORTED, operation, "needs LAPACK "
                "(Debian: liblapack3): %s", dlerror());
    return found;
}

/* linalg: function run of a problem */
typedef const void *any;
typedef void routine(any, any, any, any, any, any, any, any, any, any,
                     any, any, any, any, any);

/* One call for matrix i; returns where the next one stands. */
static const char *run(problem *p, const char *text, size_t i)
{
    char symbol[8];
    any a[15];
    routine *f;
    snprintf(symbol, sizeof symbol, "%c%.5s_",
             "sd"[p->dtype == TD_FLOAT64], text);
    *(void **)&f = open_lapack(p->call->op->name, symbol);
    text += 6;
    for (int k = 0; k < 15; k++) {
        const int c = *text;
        a[k] = isupper(c) ? (any)text : !islower(c) ? (any)1
             : p->at[c] ? (any)(p->at[c] + i * p->step[c])
             : (any)&p->number[c];
        text += isalpha(c) != 0;
    }
    if (f != NULL)
        f(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9],
          a[10], a[11], a[12], a[13], a[14]);
    return text + (*text == ' ');
}

/* linalg: function each */
static void each(problem *p, const char *text, const char *before,
                 const char *after)
{
    char where[48] = "";
    for (int64_t i = 0; i < p->batch; i++)
        for (const char *s = text; *s != '\0' && !td_failed();) {
            s = run(p, s, (size_t)i);
            if (p->lead.count > 0)
                snprintf(where, sizeof where, "(Batch element %" PRId64
                    "): ", i);
            if (p->number['i'] != 0)
                td_fail(TD_ERROR_SINGULAR, "", "%s%s%d%s", where,
                        before, p->number['i'], after);
        }
}

/* linalg: functions of problems */
static void need_finite(const problem *p, td_tensor *a)
{
    if (p->batch > 0
        && !td_item(td_all(td_isfinite(a), TD_REDUCE_DEFAULTS)).as.b)
        td_fail(TD_ERROR_SINGULAR, "", "The algorithm failed to "
                "converge because the input matrix contained "
                "non-finite values.");
}

/* [B, m, n] in columns, or [B, n] if m < 0, under a letter. */
static td_tensor *make(problem *p, int letter, td_dtype dtype,
                       int64_t m, int64_t n)
{
    td_dims shape = p->lead;
    shape.at[shape.count++] = n;
    if (m >= 0)
        shape.at[shape.count++] = m;
    td_tensor *x = td_tensor_new(shape, dtype, TD_CPU);
    if (x == NULL)
        return NULL;
    p->at[letter] = td_at(x);
    p->step[letter] = td_dtype_size(dtype)
                    * (size_t)(m < 0 ? n : m * n);
    if (m >= 0) {
        x->shape[x->rank - 2] = m;
        x->shape[x->rank - 1] = n;
        x->strides[x->rank - 2] = 1;
        x->strides[x->rank - 1] = m;
    }
    return x;
}

static td_tensor *fill(td_tensor *y, td_tensor *x)
{
    x = y != NULL ? td_expand(x, td_shape_of(y)) : NULL;
    if (x != NULL)
        td_copy_elements(y, x);
    return y;
}

/* linalg: function begin */
static td_tensor *begin(problem *p, td_call *call, bool square,
                        int squares)
{
    td_tensor *x = td_input(call, 0);
    td_scope_begin();
    *p = (problem){ .call = call, .dtype = x->dtype };
    if (x->rank < 2)
        return td_refuse(call, "A must have at least 2 dimensions");
    const int64_t m = td_size(x, -2), n = td_size(x, -1);
    const int64_t k = m < n ? m : n, most = m < n ? n : m;
    if (square && m != n)
        return td_refuse(call, "A must be batches of square matrices");
    if (k > 20000 || most > 10000000)
        return td_refuse(call, "A is too large");
    if (!td_check_computes(call, x->dtype, true))
        return NULL;
    /* linalg: make room for LAPACK */
    p->number['m'] = (int)m;
    p->number['n'] = (int)n;
    p->number['k'] = (int)k;
    p->number['l'] = m > 1 ? (int)m : 1;
    p->number['x'] = (int)(squares * k * k + 80 * k + 4 * most + 9);
    p->number['y'] = (int)(8 * k + 9);
    make(p, 'w', p->dtype, -1, p->number['x']);
    make(p, 'z', TD_INT32, -1, p->number['y']);
    p->step['w'] = p->step['z'] = 0;
    /* linalg: spread the problem over both operands */
    p->lead = td_batch_of(x);
    if (call->n_in > 1) {
        const td_dims more = td_batch_of(td_input(call, 1));
        td_broadcast_dims(call->op->name, &p->lead, &more, &p->lead);
    }
    td_tensor *a = fill(make(p, 'a', p->dtype, m, n), x);
    if (a != NULL && td_on_host(a))
        td_dims_numel(call->op->name, &p->lead, &p->batch);
    /* linalg: refuse what would never converge */
    if (squares > 0)
        need_finite(p, a);
    return a;
}

/* linalg: functions of formulas */
static td_tensor *eye(td_tensor *x)
{
    return td_eye(td_size(x, -2),
                  (td_opt_i64)td_some(td_size(x, -1)), td_like(x));
}

static td_tensor *apply(int c, td_tensor *x)
{
    switch (c) {
    case 'h': return td_mul_scalar(x, td_float(0.5));
    case 'i': return TD_CALL(inverse, x, td_v_bool(false));
    case 'j': return eye(x);
    case 't': return td_unsqueeze(x, -1);
    case 'c': return td_add(td_tril(x, 0),
                            td_transpose(td_tril(x, -1), -2, -1));
    default:
        x = td_sub(td_unsqueeze(x, -2), td_unsqueeze(x, -1));
        return td_add(x, eye(x));
    }
}

/* a, or the identity where the number d is 0. */
static td_tensor *regular(td_tensor *d, td_tensor *a)
{
    d = td_unsqueeze(td_unsqueeze(d, -1), -1);
    return td_where(td_eq_scalar(d, td_int(0)), eye(a), a);
}


/* linalg: function factor of a formula */
typedef struct {
    const char *at;
    td_tensor *value[128];
} formula;

static td_tensor *sum(formula *f);

static td_tensor *factor(formula *f)
{
    const int c = *f->at++;
    td_tensor *x = c == '(' ? sum(f) : islower(c) ? factor(f)
                 : f->value[c];
    f->at += c == '(';
    x = x != NULL && islower(c) ? apply(c, x) : x;
    for (; *f->at == '\''; f->at++)
        x = x != NULL ? td_transpose(x, -2, -1) : x;
    return x;
}

/* linalg: functions product and sum */
static td_tensor *product(formula *f)
{
    td_tensor *x = factor(f);
    while (*f->at != '\0' && !strchr("+-);", *f->at)) {
        const int c = *f->at;
        f->at += strchr("*/\\?", c) != NULL;
        td_tensor *y = factor(f);
        x = x && y ? (c == '*' ? td_mul : c == '/' ? td_div
            : c == '\\' ? td_solve : c == '?' ? regular
            : td_matmul)(x, y) : NULL;
    }
    return x;
}

static td_tensor *sum(formula *f)
{
    td_tensor *x = *f->at == '-' ? NULL : product(f);
    while (*f->at == '+' || *f->at == '-') {
        const bool minus = *f->at++ == '-';
        td_tensor *y = product(f);
        x = x && y ? (minus ? td_sub : td_add)(x, y)
          : !y ? x : minus ? td_neg(y) : y;
    }
    return x;
}

/* linalg: function matrix_rule */
static const char *const texts[][2] = {
    /* linalg: formulas of gradients */
    [TD_OP_inverse] = { "-X'PX'" },
    [TD_OP_linalg_solve] = { "-(A'\\P)X'", "A'\\P" },
    [TD_OP_det] = { "tt(P*X)*(i(X?A))'" },
    [TD_OP_slogdet] = { "ttQ*(iA)'" },
    [TD_OP_linalg_cholesky] = { "h((iX)'c(X'P)iX)" },
    [TD_OP_linalg_qr] = { "J=jY;D=P+X(YQ'-YJ'JQ');"
        "(D+Xc(YJ'JQ'-D'X))(i(YJ'))'J+X(Q-QJ'J)" },
    [TD_OP_linalg_eigh] = { "(Y*(tP)'+Y(h(Y'Q-Q'Y)/eX))Y'" },
    [TD_OP_linalg_svd] = { "(X*(tQ)'+X((X'P-P'X)/e(Y*Y)*(tY)'"
        "+tY*((ZR'-RZ')/e(Y*Y)))+(P-XX'P)/(tY)')Z+X((R-RZ'Z)/tY)" },
    [TD_OP_linalg_pinv] = { "-X'PX'+(P'-AXP')XX'+X'X(P'-P'XA)" },
};

void matrix_rule(td_backward_pass *b)
{
    TD_EACH(i, b, in) {
        formula f = { texts[b->op - td_ops][i], { NULL } };
        if (!td_needs(b, i))
            continue;
        if (strchr(f.at, 'A') != NULL)
            f.value['A'] = td_saved_input(b, 0);
        TD_EACH(k, b, out) {
            f.value['P' + k] = b->grad[k];
            if (strchr(f.at, 'X' + k) != NULL)
                f.value['X' + k] = td_saved_output(b, k);
        }
        /* linalg: refuse a complete factor */
        if (td_is(b, linalg_qr)
            && td_size(f.value['X'], -1) > td_size(f.value['Y'], -1))
            td_fail(TD_ERROR_RUNTIME, "", "a complete Q of more rows than "
                    "columns has no derivative");
        for (; f.at[1] == '='; f.at++) {
            td_tensor **value = &f.value[(int)*f.at];
            f.at += 2;
            *value = sum(&f);
        }
        b->grad_in[i] = sum(&f);
    }
}

/* linalg: kernels of linear algebra */
bool solve_kernel(td_call *call)
{
    problem p;
    const bool inverse = call->n_in < 2;
    td_tensor *a = begin(&p, call, true, 0), *x = NULL;
    td_tensor *b = inverse ? eye(a) : td_input(call, 1);
    if (!td_failed() && (b->rank < 2 || td_size(b, -2) != td_size(a, -1)
                         || b->dtype != a->dtype))
        td_refuse(call, "Incompatible shapes or dtypes of A and B");
    if (!td_failed()) {
        const int64_t k = td_size(b, -1);
        p.number['r'] = (int)k;
        x = fill(make(&p, 'b', p.dtype, p.number['n'], k), b);
    }
    const bool quiet = inverse && !td_flag(call, 0);
    each(&p, quiet ? "getrf:nnalzj getrs:Nnralzbli"
         : "getrf:nnalzi getrs:Nnralzbli", inverse
         ? "The diagonal element " : "The solver failed; element ",
         inverse ? " is zero, the inversion could not be completed "
         "because the input matrix is singular."
         : " of the diagonal is zero: the input matrix is singular.");
    return td_send_results(call, x);
}

bool det_kernel(td_call *call)
{
    problem p;
    td_tensor *a = begin(&p, call, true, 0);
    const int64_t n = p.number['n'];
    /* linalg: factor the matrices and read off their diagonals */
    td_tensor *pivots = make(&p, 'z', TD_INT32, -1, n);
    each(&p, "getrf:nnalzj", "", "");
    a = td_diagonal(a, 0, -2, -1);
    a = td_where(td_ne(pivots, td_count_up(1, n + 1, TD_OF(TD_INT64))),
                 td_neg(a), a);
    if (td_is(call, slogdet)) {
        call->out[1] = td_sum(td_log(td_abs(a)), TD_OVER(-1));
        a = td_sign(a);
    }
    return td_send_results(call, td_prod(a, (td_arg_options){
        .dim = td_some(-1) }));
}

bool linalg_cholesky_kernel(td_call *call)
{
    problem p;
    td_tensor *a = begin(&p, call, true, 0);
    each(&p, "potrf:Lnali", "The factorization could not be "
         "completed because the input is not positive-definite (the "
         "leading minor of order ", " is not positive-definite).");
    a = td_tril(a, 0);
    need_finite(&p, a);
    return td_send_results(call, a);
}

bool linalg_qr_kernel(td_call *call)
{
    problem p;
    td_tensor *a = begin(&p, call, false, 0);
    const int rows = p.number[td_flag(call, 0) ? 'm' : 'k'];
    p.number['f'] = rows;
    make(&p, 't', p.dtype, -1, p.number['k']);
    td_tensor *q = make(&p, 'q', p.dtype, p.number['m'], rows);
    each(&p, "geqrf:mnaltwxi lacpy:Amkalql orgqr:mfkqltwxi", "", "");
    call->out[1] = TD_CALL(triu, td_part(a, -2, 0, rows), td_v_int(0));
    return td_send_results(call, q);
}

static const char failed[] = "The algorithm failed to converge (error "
                             "code: ";

bool linalg_eigh_kernel(td_call *call)
{
    problem p;
    td_tensor *a = begin(&p, call, true, 2);
    td_tensor *w = make(&p, 'v', p.dtype, -1, p.number['n']);
    each(&p, "syevd:VLnalvwxzyi", failed, ").");
    call->out[1] = a;
    return td_send_results(call, w);
}

bool linalg_svd_kernel(td_call *call)
{
    problem p;
    begin(&p, call, false, 4);
    const int k = p.number['k'];
    td_tensor *u = make(&p, 'u', p.dtype, p.number['m'], k);
    td_tensor *s = make(&p, 's', p.dtype, -1, k);
    td_tensor *v = make(&p, 'v', p.dtype, k, p.number['n']);
    p.number['h'] = k > 1 ? k : 1;
    each(&p, "gesdd:Smnalsulvhwxzi", failed, ").");
    call->out[1] = s, call->out[2] = v;
    return td_send_results(call, u);
}

bool linalg_pinv_kernel(td_call *call)
{
    td_tensor *s, *v;
    td_scope_begin();
    td_tensor *u = td_svd(td_input(call, 0), &s, &v);
    td_tensor *least = td_maximum_scalar(td_mul_scalar(
        td_part(s, -1, 0, 1), td_float(td_real(call, 1))),
        td_float(td_real(call, 0)));
    s = td_where_scalar(td_gt(s, least), td_reciprocal(s), td_int(0));
    return td_return(call, td_scope_end_with(td_matmul(
        td_mul(td_transpose(v, -2, -1), td_unsqueeze(s, -2)),
        td_transpose(u, -2, -1))));
}

/* linalg: functions of linear algebra */
td_tensor *td_inv(td_tensor *a)
{
    return TD_CALL(inverse, a, td_v_bool(true));
}

TD_OF_ONE(det)

td_tensor *td_cholesky(td_tensor *a)
{
    return TD_CALL(linalg_cholesky, a);
}

td_tensor *td_pinv(td_tensor *a, double rtol)
{
    return TD_CALL(linalg_pinv, a, td_v_float(0), td_v_float(rtol));
}

td_tensor *td_solve(td_tensor *a, td_tensor *b)
{
    return TD_CALL2(linalg_solve, a, b);
}

td_tensor *td_lstsq(td_tensor *a, td_tensor *b, double rtol)
{
    return td_matmul(td_pinv(a, rtol), b);
}

td_tensor *td_slogdet(td_tensor *a, td_tensor **logabsdet)
{
    return td_run_pair(TD_OP_slogdet, a, 0, NULL, logabsdet);
}

td_tensor *td_qr(td_tensor *a, td_tensor **r)
{
    return td_run_pair(TD_OP_linalg_qr, a, TD_VALUES(td_v_bool(false)),
                       r);
}

td_tensor *td_eigh(td_tensor *a, td_tensor **vectors)
{
    return td_run_pair(TD_OP_linalg_eigh, a, 0, NULL, vectors);
}

td_tensor *td_svd(td_tensor *a, td_tensor **s, td_tensor **vh)
{
    const td_call call = TD_CALLED(linalg_svd, (td_v_tensor(a)));
    *s = call.out[1], *vh = call.out[2];
    return call.out[0];
}
