/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "arena": edit that, not this file. */
/* Stages, as a reader wants to see them. */
#include "compiler/lower.h"

/* arena: functions that print stages */
static void print_piece(FILE *f, const td_lowered *l, int k)
{
    const td_piece *x = &l->piece[k];
    if (x->kind == TD_NUMBER)
        fprintf(f, "%g", td_scalar_double(x->number));
    else if (x->kind != TD_FORMULA)
        fprintf(f, "%%%d", x->value);
    else {
        fprintf(f, "%s(", x->op->name);
        for (int i = 0; i < x->n; i++) {
            fputs(i ? ", " : "", f);
            print_piece(f, l, x->arg[i]);
        }
        fputc(')', f);
    }
}
static void print_stage(FILE *f, const td_lowered *l, int n)
{
    static const char *const kinds[] = { [TD_FORMULA] = "loop",
        [TD_FOLD] = "fold", [TD_PRODUCT] = "product",
        [TD_CALL] = "call" };
    const td_stage *s = &l->stage[n];
    const td_placed *out = &l->value[s->out];
    char shape[TD_SHAPE_TEXT];
    fprintf(f, "%3d %-7s ", n, kinds[s->kind]);
    for (int d = 0; d < s->rank; d++)
        fprintf(f, "%s%" PRId64, d == 0 ? "[" : d == s->kept ? " | " :
            ", ", s->size[d]);
    fprintf(f, "%s %%%d = ", s->rank ? "]"
            : td_shape_text(out->like, shape), s->out);
    if (s->kind == TD_FOLD)
        fprintf(f, "%s of ", s->step->op->name);
    if (s->kind > TD_FOLD)
        td_ir_print_call(f, s->step);
    else
        print_piece(f, l, s->last);
    if (out->buffer >= 0 && out->buffer != s->out)
        fprintf(f, " over %%%d", out->buffer);
    fputc('\n', f);
}

/* arena: function td_lowered_print */
int64_t td_lowered_print(const td_lowered *l, char *out, int64_t room)
{
    td_text t;
    if (!td_text_begin(&t))
        return 0;
    TD_EACH(n, l, stages)
        print_stage(t.file, l, n);
    fprintf(t.file, "memory: %" PRId64 " bytes planned, %" PRId64
        " without sharing\n", l->bytes, l->bytes_unplanned);
    return td_text_copy(&t, out, room);
}
