/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "operators": edit that, not this file. */
#include <pthread.h>
#include <string.h>
#include "device.h"
#include "registry.h"
/* graph: includes of the door */
#include "autograd.h"
/* tracing: includes of the door */
#include "trace.h"

/* operators: table of the operators */
const td_op td_ops[TD_OP_COUNT + 1] = {
#define OP(name, signature, kernel) \
    [TD_OP_##name] = { #name, signature, kernel },
#include "registry.inc"
#undef OP
    { NULL, NULL, NULL }
};

/* operators: table of the documentation */
static const char *const documentation[TD_OP_COUNT + 1] = {
#define DOC(name, text) [TD_OP_##name] = text,
#include "documentation.inc"
#undef DOC
    [TD_OP_COUNT] = NULL
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
    const char *text = op >= td_ops && op < td_ops + TD_OP_COUNT
                     ? documentation[op - td_ops] : NULL;
    return text != NULL ? text : "";
}

/* operators: functions that read signatures */
static bool token(const char **at, const char *expected)
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
static bool word(const char **at, char *out, size_t size)
{
    *at += strspn(*at, " ");
    const size_t n = strspn(*at, "abcdefghijklmnopqrstuvwxyz_"
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

/* operators: function kind_of */
static bool kind_of(const char *word, td_parameter *p)
{
    for (int k = 0; k <= TD_P_GENERATOR; k++)
        if (strcmp(kinds[k].word, word) == 0) {
            p->kind = (td_parameter_kind)k;
            p->is_input = k == TD_P_TENSOR || k == TD_P_OPERAND;
            return true;
        }
    return false;
}

/* operators: function parameter */
static bool parameter(const char **at, td_signature *s,
                      bool keyword_only)
{
    char kind[32];
    if (s->n_parameters == TD_MAX_PARAMETERS
        || !word(at, kind, sizeof kind))
        return false;
    td_parameter *p = &s->at[s->n_parameters++];
    /* operators: read the marks of the parameter */
    p->keyword_only = keyword_only;
    p->list = token(at, "[]");
    p->optional = token(at, "?");
    p->mutated = token(at, "!");
    if (!kind_of(kind, p) || !word(at, p->name, sizeof p->name))
        return false;
    p->has_default = token(at, "=");
    return !p->has_default || take(at, strcspn(*at, ",)"),
        p->default_text, sizeof p->default_text);
}

/* operators: function td_signature_parse */
bool td_signature_parse(const char *text, td_signature *out)
{
    const char *at = text;
    bool keyword_only = false;
    memset(out, 0, sizeof *out);
    bool ok = word(&at, out->name, sizeof out->name) && token(&at, "(");
    while (ok && !token(&at, ")")) {
        if (token(&at, "*"))
            keyword_only = true;
        else
            ok = parameter(&at, out, keyword_only);
        token(&at, ",");
    }
    /* operators: count the results after the arrow */
    ok = ok && token(&at, "->");
    while (ok && token(&at, "tensor")) {
        word(&at, out->result[out->n_results++], sizeof out->result[0]);
        ok = out->n_results < TD_MAX_RESULTS;
        token(&at, ",");
    }
    return ok && *at == '\0';
}

/* operators: function td_signature_input */
const char *td_signature_input(const td_signature *s, int i)
{
    for (int k = 0; k < s->n_parameters; k++)
        if (s->at[k].is_input && i-- == 0)
            return s->at[k].name;
    return "input";
}

/* operators: struct op_kinds */
typedef struct {
    int n_in, n_attr;
    unsigned in[TD_MAX_PARAMETERS], attr[TD_MAX_PARAMETERS];
} op_kinds;

static op_kinds kinds_of_op[TD_OP_COUNT + 1];
static pthread_once_t signatures_read = PTHREAD_ONCE_INIT;

/* operators: function kinds_of */
static unsigned kinds_of(const td_parameter *p)
{
    const bool absent = p->optional || p->has_default;
    const unsigned set = !p->list ? kinds[p->kind].takes
                       : 1u << (p->is_input ? TD_TENSORS : TD_INTS);
    return set | (absent ? 1u << TD_NONE : 0);
}

/* operators: function read_signatures */
static void read_signatures(void)
{
    for (int n = 0; n < TD_OP_COUNT; n++) {
        op_kinds *k = &kinds_of_op[n];
        td_signature s;
        if (!td_signature_parse(td_ops[n].signature, &s))
            continue;
        for (int i = 0; i < s.n_parameters; i++)
            if (s.at[i].is_input)
                k->in[k->n_in++] = kinds_of(&s.at[i]);
            else
                k->attr[k->n_attr++] = kinds_of(&s.at[i]);
    }
}

/* operators: function fits_its_signature */
static bool fits_its_signature(const td_call *call)
{
    if (call->op < td_ops || call->op >= td_ops + TD_OP_COUNT)
        return true;
    pthread_once(&signatures_read, read_signatures);
    const op_kinds *k = &kinds_of_op[call->op - td_ops];
    bool fits = call->n_in == k->n_in && call->n_attr == k->n_attr;
    for (int i = 0; fits && i < k->n_in; i++)
        fits = k->in[i] >> call->in[i].kind & 1;
    for (int i = 0; fits && i < k->n_attr; i++)
        fits = k->attr[i] >> call->attr[i].kind & 1;
    return fits || td_fail(TD_ERROR_TYPE, call->op->name, "the "
                           "arguments do not fit the signature %s",
                           call->op->signature);
}

/* operators: function has_its_tensors */
static bool has_its_tensors(const td_call *call, int i)
{
    const td_value *v = &call->in[i];
    bool missing = v->kind == TD_TENSOR && v->as.tensor == NULL;
    const int n = v->kind == TD_TENSORS ? v->as.tensors.count : 0;
    for (int k = 0; k < n; k++)
        missing |= v->as.tensors.at[k] == NULL;
    if (!missing)
        return true;
    td_signature s;
    const char *name = "input";
    if (td_signature_parse(call->op->signature, &s))
        name = td_signature_input(&s, i);
    return td_fail(TD_ERROR_VALUE, call->op->name, "argument '%s' is "
                   "NULL, expected a tensor", name);
}

/* operators: function discard_results */
static void discard_results(td_call *call)
{
    for (int k = 0; k < TD_MAX_RESULTS; k++) {
        td_discard(call->out[k]);
        call->out[k] = NULL;
    }
    call->n_out = 0;
}

/* operators: function pass */
static bool pass(td_call *call)
{
    if (!fits_its_signature(call))
        return false;
    for (int i = 0; i < call->n_in; i++)
        if (!has_its_tensors(call, i))
            return false;
    if (!td_meet(call))
        return false;
    /* graph: prepare to record the call */
    td_recording recording;
    if (!td_record_begin(call, &recording))
        return false;
    const bool composite =
        td_rule_of(call->op)->kind == TD_RULE_COMPOSITE;
    if (composite)
        td_scope_begin();
    /* in-place: prepare to record the call */
    if (recording == TD_RECORD_CHANGE)
        return td_change_by_copy(call);
    if (recording == TD_RECORD_NOTHING && !composite && call->n_in > 0
        && call->in[0].kind == TD_TENSOR && call->in[0].as.tensor->untracked
        && td_changes_unseen(call))
        return td_may_change(call);
    /* tracing: prepare to record the call */
    const int trace_level = td_trace_enter(call);
    bool ok = !td_failed() && call->op->kernel(call);
    /* graph: record the call */
    ok = td_record_end(call, recording, ok);
    if (composite)
        ok = td_composite_end(call, ok);
    /* in-place: record the call */
    if (ok && call->out[0] != NULL && call->n_in > 0
        && call->in[0].kind == TD_TENSOR)
        td_note_view(call);
    /* tracing: record the call */
    if (trace_level > 0)
        ok = td_trace_leave(call, trace_level, ok);
    if (!ok)
        discard_results(call);
    return ok;
}
/* operators: function td_run */
static bool rename_error(const td_call *call)
{
    td_error_record e;
    td_error_take(&e);
    const char *words = strstr(e.message, ": ");
    if (e.code == TD_ERROR_CALLBACK || words == NULL
        || strncmp(e.message, "TREADLE_", 8) == 0)
        return td_error_restore(&e);
    return td_fail(e.code, call->op->name, "%s", words + 2);
}

bool td_run(td_call *call)
{
    return !td_failed() && (pass(call) || rename_error(call));
}

/* operators: function td_run1 */
td_tensor *td_run1(const td_op *op, int n_in, const td_value *in,
                   int n_attr, const td_value *attr)
{
    td_call call = { .op = op, .n_in = n_in, .n_attr = n_attr,
                     .in = in, .attr = attr };
    return td_run(&call) ? call.out[0] : NULL;
}

/* operators: function td_return */
bool td_return(td_call *call, td_tensor *result)
{
    call->out[0] = result;
    call->n_out = result != NULL;
    return result != NULL;
}

/* operators: function td_v_dims */
bool td_v_dims(const td_call *call, const td_value *v, td_dims *out)
{
    *out = TD_RANK_0;
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
