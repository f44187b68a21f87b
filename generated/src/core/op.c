/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "operators": edit that, not this file. */
#include <pthread.h>
#include <stdarg.h>
#include "core/call.h"
#include "core/tensor.h"

/* operators: table of the operators */
const td_op td_ops[TD_OP_COUNT + 1] = {
#define OP(name, signature, kernel, sentence) \
    [TD_OP_##name] = { #name, #name signature, kernel, sentence },
#include "core/registry.inc"
    { NULL, NULL, NULL, NULL }
};

/* operators: functions that search the registry */
int td_op_count(void) { return TD_OP_COUNT; }

const td_op *td_op_at(int n)
{
    return n >= 0 && n < TD_OP_COUNT ? &td_ops[n] : NULL;
}

const td_op *td_op_find(const char *name)
{
    for (int n = 0; name != NULL && n < TD_OP_COUNT; n++)
        if (strcmp(td_ops[n].name, name) == 0)
            return &td_ops[n];
    return NULL;
}
const char *td_op_name(const td_op *op) { return op->name; }
const char *td_op_signature(const td_op *op) { return op->signature; }

const char *td_op_documentation(const td_op *op)
{
    return op->sentence != NULL ? op->sentence : "";
}

/* operators: functions that read signatures */
bool td_token(const char **at, const char *expected)
{
    const size_t n = strlen(expected);
    *at += strspn(*at, " ");
    if (strncmp(*at, expected, n) != 0)
        return false;
    *at += n;
    return true;
}
static bool take(const char **at, size_t n, char *out, size_t size)
{
    if (n == 0 || n >= size)
        return false;
    memcpy(out, *at, n);
    out[n] = '\0';
    *at += n;
    return true;
}
bool td_word(const char **at, char *out, size_t size)
{
    *at += strspn(*at, " ");
    const size_t n = strspn(*at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                            "abcdefghijklmnopqrstuvwxyz_"
                            "0123456789");
    return take(at, n, out, size);
}

/* operators: table of the parameter kinds */
static const struct { const char *word; unsigned takes; } kinds[] = {
    [TD_P_TENSOR] = { "tensor", 1u << TD_TENSOR },
    [TD_P_OPERAND] = { "operand", 1u << TD_TENSOR | 1u << TD_SCALAR },
    [TD_P_SCALAR] = { "scalar", 1u << TD_SCALAR },
    [TD_P_INT] = { "int", 1u << TD_SCALAR },
    [TD_P_FLOAT] = { "float", 1u << TD_SCALAR },
    [TD_P_BOOL] = { "bool", 1u << TD_SCALAR },
    [TD_P_STRING] = { "string", 1u << TD_STRING },
    [TD_P_DTYPE] = { "dtype", 1u << TD_DTYPE },
    [TD_P_DEVICE] = { "device", 1u << TD_DEVICE },
    [TD_P_GENERATOR] = { "generator", 1u << TD_GENERATOR },
};

/* operators: function parameter */
static bool parameter(const char **at, td_signature *s,
                      bool keyword_only)
{
    char kind[32];
    if (s->n_parameters == TD_MAX_PARAMETERS
        || !td_word(at, kind, sizeof kind))
        return false;
    td_parameter *p = &s->at[s->n_parameters++];
    /* operators: read the marks of the parameter */
    p->keyword_only = keyword_only;
    p->list = td_token(at, "[]");
    p->optional = td_token(at, "?");
    p->mutated = td_token(at, "!");
    /* operators: find the kind that the word names */
    int k = TD_P_GENERATOR;
    while (k >= 0 && strcmp(kinds[k].word, kind) != 0)
        k--;
    p->kind = (td_parameter_kind)k;
    p->is_input = k == TD_P_TENSOR || k == TD_P_OPERAND;
    if (k < 0 || !td_word(at, p->name, sizeof p->name))
        return false;
    p->has_default = td_token(at, "=");
    return !p->has_default || take(at, strcspn(*at, ",)"),
        p->default_text, sizeof p->default_text);
}

/* operators: function td_signature_parse */
bool td_signature_parse(const char *text, td_signature *out)
{
    const char *at = text;
    bool keyword_only = false;
    memset(out, 0, sizeof *out);
    bool ok = td_word(&at, out->name, sizeof out->name)
           && td_token(&at, "(");
    while (ok && !td_token(&at, ")")) {
        if (td_token(&at, "*"))
            keyword_only = true;
        else
            ok = parameter(&at, out, keyword_only);
        td_token(&at, ",");
    }
    /* operators: count the results after the arrow */
    ok = ok && td_token(&at, "->");
    while (ok && td_token(&at, "tensor")) {
        td_word(&at, out->result[out->n_results++], sizeof out->result[0]);
        ok = out->n_results < TD_MAX_RESULTS;
        td_token(&at, ",");
    }
    return ok && *at == '\0';
}

/* operators: function td_signature_input */
const char *td_signature_input(const td_signature *s, int i)
{
    TD_EACH(k, s, parameters)
        if (s->at[k].is_input && i-- == 0)
            return s->at[k].name;
    return "input";
}

/* operators: function kinds_of */
static unsigned kinds_of(const td_parameter *p)
{
    const bool absent = p->optional || p->has_default;
    const unsigned set = !p->list ? kinds[p->kind].takes
                       : 1u << (p->is_input ? TD_TENSORS : TD_INTS);
    return set | (absent ? 1u << TD_NONE : 0);
}

/* operators: function study */
static td_traits traits[TD_OP_COUNT + 1];

static void study(void)
{
    for (int n = 0; n <= TD_OP_COUNT; n++) {
        td_traits *t = &traits[n];
        td_signature s = { .n_parameters = 0 };
        if (n < TD_OP_COUNT)
            td_signature_parse(td_ops[n].signature, &s);
        for (int i = 0; i < s.n_parameters; i++) {
            const td_parameter *p = &s.at[i];
            if (p->is_input) {
                t->mutated |= (unsigned)p->mutated << t->n_in;
                t->in[t->n_in++] = kinds_of(p);
            } else {
                t->random |= p->kind == TD_P_GENERATOR;
                /* precision: study an attribute */
                t->typed |= p->kind == TD_P_DTYPE;
                t->attr[t->n_attr++] = kinds_of(p);
            }
        }
        /* graph: study how the operator is called */
        td_study_rule(&td_ops[n], t);
        /* in-place: study how the operator is called */
        t->plain = t->mutated ? td_plain_form(&td_ops[n]) : NULL;
        /* rules: study how the operator is called */
        td_study_formulas(&td_ops[n]);
        /* precision: study how the operator is called */
        t->cast = n < TD_OP_COUNT && td_casts[n] > TD_MIXED;
    }
    traits[TD_OP_COUNT].n_in = -1;
    memset(traits[TD_OP_COUNT].in, -1, sizeof traits->in);
}

/* operators: function td_traits_of */
const td_traits *td_traits_of(const td_op *op)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static atomic_bool studied;
    if (!atomic_load_explicit(&studied, memory_order_acquire)) {
        pthread_once(&once, study);
        studied = true;
    }
    const bool ours = op >= td_ops && op < td_ops + TD_OP_COUNT;
    return &traits[ours ? op - td_ops : TD_OP_COUNT];
}

/* operators: function td_run1 */
td_call td_called(const td_op *op, int n_in, const td_value *in,
                  int n_attr, const td_value *attr)
{
    td_call call = { .op = op, .n_in = n_in, .n_attr = n_attr,
                     .in = in, .attr = attr };
    td_run(&call);
    return call;
}

td_tensor *td_run1(const td_op *op, int n_in, const td_value *in,
                   int n_attr, const td_value *attr)
{
    return td_called(op, n_in, in, n_attr, attr).out[0];
}

/* operators: function td_return */
bool td_return(td_call *call, td_tensor *result)
{
    call->out[0] = result;
    return result != NULL;
}

/* operators: function td_v_dims */
bool td_v_dims(const td_call *call, const td_value *v, td_dims *out)
{
    *out = (td_dims){ v->kind == TD_SCALAR, { td_v_get_int(v, 0) } };
    if (v->kind != TD_INTS)
        return true;
    if (v->as.ints.count > TD_MAX_RANK)
        return td_fail(TD_ERROR_VALUE, call->op->name, "expected at "
                       "most %d dimensions, got %d", TD_MAX_RANK,
                       v->as.ints.count);
    out->count = v->as.ints.count;
    for (int d = 0; d < out->count; d++)
        out->at[d] = v->as.ints.at[d];
    return true;
}

/* operators: function td_dimension */
int td_dimension(const td_call *call, int64_t dim, int rank)
{
    int d = 0;
    td_wrap_dim(call->op->name, dim, rank, &d);
    return d;
}

int td_dimension_once(const td_call *call, int64_t dim, int rank,
                      unsigned *seen)
{
    const int d = td_dimension(call, dim, rank);
    if (*seen >> d & 1)
        td_refuse(call, "dimension %d is named twice", d);
    *seen |= 1u << d;
    return d;
}

/* operators: function td_refuse_as */
td_tensor *td_refuse_as(const td_call *call, td_error_code code,
                        const char *why, ...)
{
    char got[4 * TD_SHAPE_TEXT] = "", text[256];
    for (int i = 0; i < call->n_in && i < 4; i++)
        if (call->in[i].kind == TD_TENSOR)
            td_shape_text(call->in[i].as.tensor, got + strlen(
                strcat(got, *got != '\0' ? " and " : "; got ")));
    va_list numbers;
    va_start(numbers, why);
    vsnprintf(text, sizeof text, why, numbers);
    va_end(numbers);
    td_fail(code, call->op->name, "%s%s", text, got);
    return NULL;
}

bool td_expect(const td_call *call, const char *name,
               const td_tensor *x, td_dims want)
{
    char got[TD_SHAPE_TEXT], expected[TD_SHAPE_TEXT];
    bool ok = x->rank == want.count;
    for (int d = 0; ok && d < want.count; d++)
        ok = want.at[d] < 0 || x->shape[d] == want.at[d];
    if (ok)
        return true;
    td_dims_text(&want, expected);
    return td_fail(TD_ERROR_RUNTIME, call->op->name,
        "%s has shape %s, expected %s%s", name, td_shape_text(x, got),
        expected, strchr(expected, '-') ? " (-1: any)" : "");
}
