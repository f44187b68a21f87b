/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "arena": edit that, not this file. */
/* Stages, as a reader wants to see them. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include "compiler/lower.h"

/* arena: functions that print stages */
static void print_formula(FILE *f, const td_lowered *l,
                          const td_stage *s, int v)
{
    const td_placed *x = &l->value[v];
    if (x->step < 0 || (v != s->out && td_is_load(l, v))) {
        fprintf(f, "%%%d", v);
        return;
    }
    const td_ir_step *step = &l->program->step[x->step];
    fprintf(f, "%s(", step->op->name);
    for (int i = 0; i < step->n_in; i++) {
        fputs(i ? ", " : "", f);
        if (step->in[i].kind == TD_TENSOR)
            print_formula(f, l, s, step->in[i].value);
        else if (step->in[i].kind == TD_SCALAR)
            fprintf(f, "%g", td_scalar_double(step->in[i].scalar));
    }
    fputc(')', f);
}
static void print_stage(FILE *f, const td_lowered *l, int n)
{
    static const char *const kinds[] = { [TD_FORMULA] = "loop",
        [TD_FOLD] = "fold", [TD_PRODUCT] = "product",
        [TD_CALL] = "call" };
    const td_stage *s = &l->stage[n];
    const td_placed *out = &l->value[s->out];
    fprintf(f, "%3d %-7s [", n, kinds[s->kind]);
    for (int d = 0; d < s->rank; d++)
        fprintf(f, "%s%lld", d == 0 ? "" : d == s->kept ? " | " : ", ",
                (long long)s->size[d]);
    for (int d = 0; s->rank == 0 && d < out->like->rank; d++)
        fprintf(f, "%s%lld", d ? ", " : "",
                (long long)out->like->shape[d]);
    fprintf(f, "] %%%d = ", s->out);
    print_formula(f, l, s, s->out);
    if (out->buffer >= 0 && out->buffer != s->out)
        fprintf(f, " over %%%d", out->buffer);
    fputc('\n', f);
}

/* arena: function td_lowered_print */
int64_t td_lowered_print(const td_lowered *l, char *out, int64_t room)
{
    char *text = NULL;
    size_t length = 0;
    FILE *f = open_memstream(&text, &length);
    if (f == NULL)
        return 0;
    void *locale = td_locale_begin();
    for (int n = 0; n < l->n_stages; n++)
        print_stage(f, l, n);
    td_locale_end(locale);
    fprintf(f, "memory: %lld bytes planned, %lld without sharing\n",
            (long long)l->bytes, (long long)l->bytes_unplanned);
    fclose(f);
    if (out != NULL && room > 0)
        snprintf(out, (size_t)room, "%s", text);
    free(text);
    return (int64_t)length;
}
