/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "programs": edit that, not this file. */
/* Programs, read from text. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include "compiler/ir.h"

/* programs: struct text_reader */
typedef struct {
    const char *at;
    int line;
    td_program *p;
} text_reader;

static bool complain(const text_reader *r, const char *what)
{
    return td_fail(TD_ERROR_VALUE, "parse", "line %d: %s, at '%.20s'",
                   r->line, what, r->at);
}

/* programs: functions that read a program */
static bool accept(text_reader *r, const char *expected)
{
    return td_token(&r->at, expected);
}

static bool expect(text_reader *r, const char *expected)
{
    char text[48];
    snprintf(text, sizeof text, "expected '%s'", expected);
    return (!td_failed() && accept(r, expected)) || complain(r, text);
}
static int64_t read_integer(text_reader *r, int64_t most,
                            const char *what)
{
    char *end;
    accept(r, "");
    errno = 0;
    const long long n = strtoll(r->at, &end, 10);
    if (*r->at == '\n' || end == r->at || errno == ERANGE || n > most)
        complain(r, what);
    r->at = end;
    return td_failed() ? -1 : n;
}
static int read_value(text_reader *r)
{
    const char *what = "expected the number of a value";
    const int64_t n = !expect(r, "%") ? -1
                    : read_integer(r, TD_IR_VALUES, what);
    if (n < 0 && !complain(r, what))
        return -1;
    while (r->p->n_values <= n)
        if (td_ir_value_new(r->p, (td_ir_value){
                                .origin = TD_IR_RESULT }) < 0)
            return -1;
    return (int)n;
}
static int room_for(const text_reader *r, char sign, const char *end)
{
    int n = 1;
    for (const char *at = r->at; strchr(end, *at) == NULL; at++)
        n += *at == sign;
    return n;
}

static int read_values(text_reader *r, int *to, int most)
{
    int n = 0;
    do
        to[n++] = read_value(r);
    while (n < most && !td_failed() && accept(r, ","));
    return n;
}
static td_value read_list(text_reader *r)
{
    int n = 0;
    const int room = room_for(r, ',', "]\n");
    int64_t *list = td_ir_keep(r->p, (size_t)room * sizeof *list);
    bool more = list != NULL && !accept(r, "]");
    while (more && !td_failed()) {
        list[n++] = read_integer(r, INT64_MAX, "expected an integer");
        more = accept(r, ",") || !expect(r, "]");
    }
    return (td_value){ .kind = TD_INTS, .as.ints = { n, list } };
}
static td_dtype read_dtype(text_reader *r)
{
    char word[32] = "";
    td_word(&r->at, word, sizeof word);
    for (int d = TD_FLOAT32; d < TD_DTYPE_COUNT; d++)
        if (strcmp(td_dtype_name((td_dtype)d), word) == 0)
            return (td_dtype)d;
    complain(r, "expected a dtype");
    return TD_DTYPE_NONE;
}

static td_device read_device(text_reader *r)
{
    td_device device = { TD_DEVICE_CPU, 0 };
    if (accept(r, "cuda:")) {
        device.kind = TD_DEVICE_CUDA;
        device.index = (int)read_integer(r, INT_MAX,
                                         "expected a device");
    } else {
        expect(r, "cpu");
    }
    return device;
}
static bool read_type(text_reader *r, int v, td_ir_origin origin)
{
    if (r->p->value[v].dtype != TD_DTYPE_NONE)
        return complain(r, "this value is defined twice");
    td_ir_value value = { .origin = origin, .update = -1 };
    value.dtype = read_dtype(r);
    if (!expect(r, "["))
        return false;
    const td_value shape = read_list(r);
    if (td_failed() || shape.as.ints.count > TD_MAX_RANK)
        return complain(r, "the list is too long");
    td_v_dims(NULL, &shape, &value.shape);
    if (accept(r, "on "))
        value.device = read_device(r);
    r->p->value[v] = value;
    return !td_failed();
}
static td_scalar read_scalar(text_reader *r)
{
    char *end, *digits;
    if (accept(r, "True"))
        return td_boolean(true);
    if (accept(r, "False"))
        return td_boolean(false);
    const double f = strtod(r->at, &end);
    strtoll(r->at, &digits, 10);
    if (end == r->at || end == digits || *r->at == '\n')
        return td_int(read_integer(r, INT64_MAX, "expected a number"));
    r->at = end;
    return td_float(f);
}
static const char *read_string(text_reader *r)
{
    char *word = td_ir_keep(r->p, strcspn(r->at, "'\n") + 1);
    for (size_t n = 0; word && !strchr("'\n", *r->at); n++) {
        unsigned byte = (unsigned char)*r->at++;
        if (byte == '\\' && *r->at == 'x'
            && isxdigit((unsigned char)r->at[1])
            && isxdigit((unsigned char)r->at[2])) {
            sscanf(r->at + 1, "%2x", &byte);
            r->at += 3;
        }
        word[n] = (char)byte;
    }
    expect(r, "'");
    return word;
}
static td_ir_operand read_operand(text_reader *r, td_ir_step *step)
{
    td_ir_operand o = { .values = step->value + step->n_values };
    if (accept(r, "None"))
        return o;
    if (accept(r, "[")) {
        o.kind = TD_TENSORS;
        if (!accept(r, "]")) {
            o.count = read_values(r, o.values, INT_MAX);
            expect(r, "]");
        }
    } else if (*r->at == '%') {
        o.kind = TD_TENSOR;
        o.count = read_values(r, o.values, 1);
    } else {
        o.kind = TD_SCALAR;
        o.scalar = read_scalar(r);
    }
    step->n_values += o.count;
    return o;
}
static td_value read_attribute(text_reader *r, const td_parameter *p)
{
    if (p->list && expect(r, "["))
        return read_list(r);
    if (p->kind == TD_P_STRING && expect(r, "'"))
        return td_v_string(read_string(r));
    if (p->kind == TD_P_DTYPE)
        return td_v_dtype(read_dtype(r));
    if (p->kind == TD_P_DEVICE)
        return td_v_device(read_device(r));
    return td_v_scalar(read_scalar(r));
}

/* programs: function read_arguments */
static bool read_arguments(text_reader *r, td_ir_step *step,
                           const td_signature *s)
{
    bool first = true;
    for (int i = 0; i < step->n_in && !td_failed(); i++) {
        if (!first && !expect(r, ","))
            return false;
        step->in[i] = read_operand(r, step);
        first = false;
    }
    /* programs: read the attributes that are given */
    int n = 0;
    for (int i = 0; i < s->n_parameters && !td_failed(); i++) {
        char name[40];
        const char *before = r->at;
        if (s->at[i].is_input)
            continue;
        td_value *attr = &step->attr[n++];
        snprintf(name, sizeof name, "%s=", s->at[i].name);
        if ((first || accept(r, ",")) && accept(r, name)) {
            *attr = read_attribute(r, &s->at[i]);
            first = false;
        } else {
            r->at = before;
        }
    }
    return !td_failed();
}

/* programs: function read_step */
static bool read_step(text_reader *r)
{
    char name[32] = "";
    int out[TD_MAX_RESULTS], n_in = 0;
    td_signature s;
    const int n_out = read_values(r, out, TD_MAX_RESULTS);
    if (!expect(r, "="))
        return false;
    td_word(&r->at, name, sizeof name);
    const td_op *op = td_op_find(name);
    if (op == NULL)
        return complain(r, "there is no such operator");
    td_signature_parse(op->signature, &s);
    for (int i = 0; i < s.n_parameters; i++)
        n_in += s.at[i].is_input;
    td_ir_step *step = td_ir_step_new(r->p, op, n_in,
        s.n_parameters - n_in, room_for(r, '%', "\n"));
    if (!expect(r, "(") || !read_arguments(r, step, &s)
        || !expect(r, ")") || !expect(r, ":"))
        return false;
    step->n_out = n_out;
    for (int k = 0; k < n_out; k++)
        if ((k > 0 && !expect(r, ","))
            || !read_type(r, step->out[k] = out[k], TD_IR_RESULT))
            return false;
    return true;
}

/* programs: function read_return */
static bool read_return(text_reader *r)
{
    td_program *p = r->p;
    if (p->output != NULL)
        return complain(r, "a program returns once");
    const int room = room_for(r, '%', "#\n");
    p->output = td_ir_keep(p, (size_t)(room + p->n_gradients)
                              * sizeof *p->output);
    if (p->output != NULL && room > 1)
        p->n_returned = read_values(r, p->output, room);
    p->n_outputs = p->n_returned;
    for (int k = 0; k < p->n_gradients && !td_failed(); k++)
        if (p->gradient[k].to >= 0)
            p->output[p->n_outputs++] = p->gradient[k].to;
    return !td_failed();
}

/* programs: function read_gradient */
static td_ir_gradient *gradient_of(text_reader *r, int of)
{
    TD_EACH(k, r->p, gradients)
        if (r->p->gradient[k].of == of)
            return &r->p->gradient[k];
    return td_ir_gradient_new(r->p, of);
}

static bool read_gradient(text_reader *r)
{
    const int v = read_value(r);
    const bool comes = accept(r, "of ");
    if (r->p->output != NULL)
        return complain(r, "gradients stand before the return");
    const int of = comes ? read_value(r) : v;
    td_ir_gradient *g = td_failed() ? NULL : gradient_of(r, of);
    if (g != NULL && (comes ? g->from >= 0 : g->to != TD_IR_KEPT))
        return complain(r, "this gradient is given twice");
    if (g != NULL && comes)
        return expect(r, ":") && read_type(r, g->from = v,
                                           TD_IR_GRADIENT);
    if (!expect(r, "="))
        return false;
    g->to = accept(r, "None") ? TD_IR_ABSENT : read_value(r);
    return !td_failed();
}

/* programs: function read_line */
static bool read_line(text_reader *r)
{
    for (int k = TD_IR_INPUT; k <= TD_IR_CAPTURED; k++)
        if (accept(r, td_ir_words[k])) {
            const int v = read_value(r);
            return expect(r, ":") && read_type(r, v, k);
        }
    if (accept(r, td_ir_words[TD_IR_GRADIENT]))
        return read_gradient(r);
    if (accept(r, "update ")) {
        const int v = read_value(r);
        if (!expect(r, "="))
            return false;
        const int from = read_value(r);
        if (from >= 0 && r->p->value[v].dtype == TD_DTYPE_NONE)
            complain(r, "what is updated is not declared");
        r->p->value[v].update = from;
        return !td_failed();
    }
    return accept(r, "return") ? read_return(r) : read_step(r);
}

/* programs: function td_program_parse */
td_program *td_program_parse(const char *text)
{
    text_reader r = { text, 1, NULL };
    if (text == NULL)
        td_fail(TD_ERROR_VALUE, "parse", "the text is NULL");
    if (td_failed() || (r.p = td_program_new()) == NULL)
        return NULL;
    void *locale = td_locale_begin();
    for (; *r.at != '\0' && !td_failed(); r.line++) {
        accept(&r, "");
        if (*r.at != '\n' && *r.at != '\0' && *r.at != '#'
            && !read_line(&r))
            break;
        accept(&r, "");
        if (*r.at == '#')
            r.at += strcspn(r.at, "\n");
        if (*r.at != '\n' && *r.at != '\0')
            complain(&r, "the line should end here");
        r.at += *r.at == '\n';
    }
    td_locale_end(locale);
    if (r.p->output == NULL && r.p->n_gradients > 0)
        complain(&r, "a program with gradients returns");
    if (!td_failed() && td_program_verify(r.p))
        return r.p;
    td_discard(r.p);
    return NULL;
}
