/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rules": edit that, not this file. */
#include "ops/formula.h"
#include <ctype.h>
#include "core/tensor.h"

/* rules: struct reader */
typedef struct {
    const char *at;
    td_formula *f;
    bool bad;
} reader;

static int read_formula(reader *r);
/* rules: function add_term */
static bool same_term(const td_term *s, const td_term *t)
{
    return s->kind == t->kind && s->constant == t->constant
        && s->name == t->name && s->op == t->op && s->n == t->n
        && s->arg[0] == t->arg[0] && s->arg[1] == t->arg[1]
        && s->arg[2] == t->arg[2];
}

static int add_term(reader *r, td_term term)
{
    td_formula *f = r->f;
    for (int i = 0; i < f->count; i++)
        if (same_term(&f->term[i], &term))
            return i;
    if (f->count == TD_TERMS || r->bad) {
        r->bad = true;
        return 0;
    }
    f->term[f->count] = term;
    return f->count++;
}
/* rules: function add_call */
static int add_call(reader *r, int op, int n, const int *arg)
{
    td_term call = { .kind = TD_TERM_CALL, .op = op, .n = n };
    for (int i = 0; i < n; i++)
        call.arg[i] = arg[i];
    const td_term *first = &r->f->term[call.arg[0]];
    if (op == TD_OP_neg && first->kind == TD_TERM_CONSTANT)
        return add_term(r, (td_term){ .kind = TD_TERM_CONSTANT,
                                      .constant = -first->constant });
    return add_term(r, call);
}
/* rules: function read_primary */
static int read_primary(reader *r)
{
    if (td_token(&r->at, "(")) {
        const int inner = read_formula(r);
        r->bad = r->bad || !td_token(&r->at, ")");
        return inner;
    }
    if (isdigit((unsigned char)*r->at)) {
        char *end;
        const double value = strtod(r->at, &end);
        r->at = end;
        return add_term(r, (td_term){ .kind = TD_TERM_CONSTANT,
                                      .constant = value });
    }
    /* rules: read a name or a call */
    char name[24] = "";
    r->bad = !td_word(&r->at, name, sizeof name) || r->bad;
    if (!td_token(&r->at, "(")) {
        r->bad = r->bad || name[1] || !strchr("gxaby", name[0]);
        return add_term(r, (td_term){ .kind = TD_TERM_NAME,
                                      .name = name[0] });
    }
    int arg[3] = { 0 }, count = 0;
    do
        arg[count++] = read_formula(r);
    while (count < 3 && td_token(&r->at, ","));
    r->bad = r->bad || !td_token(&r->at, ")");
    if (isupper((unsigned char)*name))
        return arg[0];
    const td_op *op = strcmp(name, "select") == 0 ? &td_ops[TD_OP_where]
        : td_op_find(strncmp(name, "p_", 2) == 0 ? name + 2 : name);
    r->bad = r->bad || op == NULL;
    return r->bad ? 0 : add_call(r, (int)(op - td_ops), count, arg);
}
/* rules: function read_factor */
static int read_factor(reader *r)
{
    if (!td_token(&r->at, "-"))
        return read_primary(r);
    const int inner = read_factor(r);
    return add_call(r, TD_OP_neg, 1, &inner);
}
/* rules: function read_formula */
enum { TIGHTEST = 4, SIGNS = 12 };

static const struct {
    const char *sign;
    int binds, op;
} signs[SIGNS] = {
    { "|", 0, TD_OP_add }, { "&", 1, TD_OP_mul }, { "<=", 2, TD_OP_le },
    { ">=", 2, TD_OP_ge }, { "==", 2, TD_OP_eq }, { "!=", 2, TD_OP_ne },
    { "<", 2, TD_OP_lt }, { ">", 2, TD_OP_gt }, { "+", 3, TD_OP_add },
    { "-", 3, TD_OP_sub }, { "*", 4, TD_OP_mul }, { "/", 4, TD_OP_div },
};

static int read_chain(reader *r, int binds)
{
    if (binds > TIGHTEST)
        return read_factor(r);
    int arg[2] = { read_chain(r, binds + 1) };
    for (int i = 0; i < SIGNS && !r->bad; i++)
        if (signs[i].binds == binds
            && td_token(&r->at, signs[i].sign)) {
            arg[1] = read_chain(r, binds + 1);
            arg[0] = add_call(r, signs[i].op, 2, arg);
            i = -1;
        }
    return arg[0];
}

static int read_formula(reader *r)
{
    return read_chain(r, 0);
}
/* rules: function td_formula_parse */
bool td_formula_parse(const char *text, td_formula *out)
{
    memset(out, 0, sizeof *out);
    reader r = { text, out, false };
    void *locale = td_locale_begin();
    const int result = read_formula(&r);
    td_locale_end(locale);
    td_token(&r.at, "");
    if (r.bad || *r.at != '\0' || result != out->count - 1)
        out->count = 0;
    return out->count > 0;
}
/* rules: function run_term */
static td_value run_term(const td_term *t, const td_value *value,
                         td_dtype dtype)
{
    td_value in[3];
    bool tensors = false;
    for (int i = 0; i < t->n; i++) {
        in[i] = value[t->arg[i]];
        tensors = tensors || in[i].kind == TD_TENSOR;
    }
    if (!tensors && t->op == TD_OP_sub)
        return td_v_float(td_scalar_double(in[0].as.scalar)
                          - td_scalar_double(in[1].as.scalar));
    if (!tensors)
        in[0] = td_v_tensor(td_full(TD_RANK_0, in[0].as.scalar,
                                    TD_OF(dtype)));
    return td_v_tensor(td_failed() ? NULL
        : td_run1(&td_ops[t->op], t->n, in, 0, NULL));
}
/* rules: function td_formula_run */
bool td_formula_run(const td_formula *f, const char *names,
                    const td_value *bound, td_value *result)
{
    td_value value[TD_TERMS];
    td_dtype dtype = TD_FLOAT64;
    for (int i = f->count - 1; i >= 0; i--) {
        if (f->term[i].kind != TD_TERM_NAME)
            continue;
        value[i] = bound[strchr(names, f->term[i].name) - names];
        if (value[i].kind == TD_TENSOR
            && td_dtype_is_floating(td_dtype_of(value[i].as.tensor)))
            dtype = td_dtype_of(value[i].as.tensor);
    }
    for (int i = 0; i < f->count; i++) {
        const td_term *t = &f->term[i];
        if (t->kind == TD_TERM_CONSTANT)
            value[i] = td_v_float(t->constant);
        else if (t->kind == TD_TERM_CALL)
            value[i] = run_term(t, value, dtype);
        if (td_failed())
            return false;
    }
    *result = value[f->count - 1];
    return true;
}
