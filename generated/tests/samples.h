/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "gradcheck": edit that, not this file. */
/* needs: gradcheck */
/* Reads the samples of operators and makes calls of them. */
#pragma once
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <treadle/treadle.h>
#include "core/registry.h"
#include "core/tensor.h"

/* gradcheck: struct sample */
typedef enum { SAMPLE_UNARY, SAMPLE_BINARY, SAMPLE_CALL } sample_kind;

typedef struct sample {
    const char *name;
    sample_kind kind;
    const char *call;           /* of CALL */
    double gradient[2];         /* range of the operands; 0, 0: -2, 2 */
    double forward[2];          /* range in which values are checked */
} sample;
/* gradcheck: table of the samples */
#define SAMPLE(op, type, ...) \
    { .name = #op, .kind = SAMPLE_##type, __VA_ARGS__ },
static const sample samples[] = {
#include "samples.inc"
    { NULL, SAMPLE_CALL, NULL, { 0, 0 }, { 0, 0 } }
};
#undef SAMPLE
/* gradcheck: struct sample_call */
enum { SAMPLE_MOST = 16 };

typedef struct sample_call {
    td_call call;
    td_value in[SAMPLE_MOST], attr[SAMPLE_MOST];
    td_dims dims[SAMPLE_MOST];          /* lists of integers */
    td_tensor *listed[SAMPLE_MOST];     /* tensors of a list */
    td_tensor *checked[SAMPLE_MOST];    /* those requiring gradients */
    int n_checked, n_listed;
    double low, high;
    uint64_t random;
    td_signature signature;
    const char *at;                     /* what is still to be read */
    bool bad;
} sample_call;
/* gradcheck: functions that read a sample's tensors */
static double sample_random(sample_call *s)
{
    s->random = s->random * 6364136223846793005u + 1442695040888963407u;
    return (double)(s->random >> 11) * 0x1p-53;
}

static bool sample_takes(sample_call *s, const char *text)
{
    while (*s->at == ' ')
        s->at++;
    if (strncmp(s->at, text, strlen(text)) != 0)
        return false;
    s->at += strlen(text);
    return true;
}

static td_dims sample_dims(sample_call *s)
{
    td_dims dims = { 0, { 0 } };
    s->bad = s->bad || !sample_takes(s, "[");
    while (!s->bad && !sample_takes(s, "]")) {
        char *end;
        dims.at[dims.count++] = strtoll(s->at, &end, 10);
        s->bad = end == s->at || dims.count == TD_MAX_RANK;
        s->at = end;
        sample_takes(s, ",");
    }
    return dims;
}
static td_tensor *sample_integers(sample_call *s, td_dims dims)
{
    const int64_t below = strtoll(s->at, (char **)&s->at, 10);
    td_tensor *x = td_zeros(dims, TD_OF(TD_INT64));
    for (int64_t i = 0; x && i < td_numel(x); i++)
        ((int64_t *)td_data(x))[i]
            = (int64_t)(sample_random(s) * (double)below);
    return x;
}

static td_tensor *sample_bools(sample_call *s, td_dims dims)
{
    td_tensor *x = td_zeros(dims, TD_OF(TD_BOOL));
    for (int64_t i = 0; x && i < td_numel(x); i++)
        ((uint8_t *)td_data(x))[i] = sample_random(s) < 0.5;
    return x;
}

static td_tensor *sample_reals(sample_call *s, td_dims dims,
                               bool turned)
{
    if (turned) {
        const int64_t first = dims.at[0];
        dims.at[0] = dims.at[1];
        dims.at[1] = first;
    }
    td_tensor *x = td_zeros(dims, TD_OF(TD_FLOAT64));
    for (int64_t i = 0; x && i < td_numel(x); i++)
        ((double *)td_data(x))[i]
            = s->low + (s->high - s->low) * sample_random(s);
    x = td_set_requires_grad(turned ? td_transpose(x, 0, 1) : x, true);
    if (x != NULL && s->n_checked < SAMPLE_MOST)
        s->checked[s->n_checked++] = x;
    return x;
}

static td_tensor *sample_tensor(sample_call *s)
{
    const td_dims dims = sample_dims(s);
    const char letter = *s->at;
    s->at += letter == 'i' || letter == 'b' || letter == 't';
    td_tensor *x = letter == 'i' ? sample_integers(s, dims)
                 : letter == 'b' ? sample_bools(s, dims)
                 : sample_reals(s, dims, letter == 't');
    s->bad = s->bad || x == NULL;
    return x;
}
static td_value sample_operand(sample_call *s)
{
    td_value v = td_v_none();
    if (sample_takes(s, "_"))
        return v;
    if (sample_takes(s, "{")) {
        v.kind = TD_TENSORS;
        v.as.tensors.at = s->listed + s->n_listed;
        while (!s->bad && !sample_takes(s, "}")) {
            s->listed[s->n_listed++] = sample_tensor(s);
            v.as.tensors.count++;
        }
        return v;
    }
    if (*s->at == '[')
        return td_v_tensor(sample_tensor(s));
    v = td_v_float(strtod(s->at, (char **)&s->at));
    return v;
}
/* gradcheck: functions that read a sample's attributes */
static td_value sample_value(sample_call *s, const td_parameter *p,
                             td_dims *room)
{
    if (sample_takes(s, "None"))
        return td_v_none();
    if (p->list) {
        *room = sample_dims(s);
        return td_v_ints(room);
    }
    if (sample_takes(s, "true") || sample_takes(s, "True"))
        return td_v_bool(true);
    if (sample_takes(s, "false") || sample_takes(s, "False"))
        return td_v_bool(false);
    if (p->kind == TD_P_DTYPE)
        return td_v_dtype(sample_takes(s, "float64") ? TD_FLOAT64
                                                     : TD_FLOAT32);
    if (p->kind == TD_P_DEVICE && sample_takes(s, "cpu"))
        return td_v_device((td_device){ TD_DEVICE_CPU, 0 });
    const char *start = s->at;
    char *end;
    const double number = strtod(start, &end);
    s->bad = s->bad || end == start;
    s->at = end;
    if (p->kind == TD_P_INT || (p->kind == TD_P_SCALAR
        && isfinite(number)
        && !memchr(start, '.', (size_t)(end - start))))
        return td_v_int((int64_t)number);
    return td_v_float(number);
}
static td_value sample_word(sample_call *s, char room[32])
{
    size_t n = 0;
    const bool quoted = sample_takes(s, "'") || sample_takes(s, "\"");
    while (*s->at && *s->at != ' ' && *s->at != '\'' && *s->at != '"'
           && n < 31)
        room[n++] = *s->at++;
    room[n] = '\0';
    s->at += quoted && *s->at != '\0';
    return (td_value){ .kind = TD_STRING, .as.string = room };
}
/* gradcheck: function sample_read */
static void sample_attribute(sample_call *s, const char *text,
                             const td_parameter *p, int index)
{
    static char words[SAMPLE_MOST][32];
    const char *rest = s->at;
    s->at = text ? text : s->at;
    s->attr[index] = p->kind != TD_P_STRING
        ? sample_value(s, p, &s->dims[index])
        : sample_takes(s, "None") ? td_v_none()
        : sample_word(s, words[index]);
    s->at = text ? rest : s->at;
}

static void sample_named(sample_call *s)
{
    const size_t n = strcspn(s->at, "=");
    int index = 0;
    for (int i = 0; i < s->signature.n_parameters; i++) {
        const td_parameter *p = &s->signature.at[i];
        if (p->is_input)
            continue;
        if (strlen(p->name) == n && !strncmp(p->name, s->at, n)) {
            s->at += n + 1;
            sample_attribute(s, NULL, p, index);
            return;
        }
        index++;
    }
    s->bad = true;
}

/* Fill `s` with a call of the operator on the operands of `text`. */
static bool sample_read(sample_call *s, const sample *from,
                        const char *text)
{
    memset(s, 0, sizeof *s);
    const td_op *op = td_op_find(from->name);
    if (op == NULL || !td_signature_parse(op->signature, &s->signature))
        return false;
    const bool given = from->gradient[0] != from->gradient[1];
    s->low = given ? from->gradient[0] : -2;
    s->high = given ? from->gradient[1] : 2;
    s->random = 20;
    s->call = (td_call){ .op = op, .in = s->in, .attr = s->attr };
    s->at = text;
    /* gradcheck: give every attribute its default */
    for (int i = 0; i < s->signature.n_parameters; i++) {
        const td_parameter *p = &s->signature.at[i];
        if (!p->is_input && p->has_default)
            sample_attribute(s, p->default_text, p, s->call.n_attr);
        s->call.n_attr += !p->is_input;
    }
    sample_takes(s, "");
    while (!s->bad && *s->at != '\0') {
        if (strchr("[{_0123456789.-", *s->at))
            s->in[s->call.n_in++] = sample_operand(s);
        else
            sample_named(s);
        sample_takes(s, "");
    }
    /* gradcheck: complete the operands with absent ones */
    int inputs = 0;
    for (int i = 0; i < s->signature.n_parameters; i++)
        inputs += s->signature.at[i].is_input;
    s->bad = s->bad || s->call.n_in > inputs;
    while (s->call.n_in < inputs)
        s->in[s->call.n_in++] = td_v_none();
    return !s->bad;
}
