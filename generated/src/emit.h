/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "codegen": edit that, not this file. */
/* Text that grows while it is written. */
#ifndef TREADLE_SRC_EMIT_H
#define TREADLE_SRC_EMIT_H
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "lower.h"

/* codegen: struct emitter */
typedef struct {
    char *text;
    int length, room;
    const td_lowered *l;
    const td_stage *s;
} emitter;

static void put_text(emitter *e, const char *text)
{
    const int n = (int)strlen(text);
    while (!td_failed() && e->length + n + 1 > e->room)
        td_ir_grow(&e->text, e->room, &e->room, 1);
    if (td_failed())
        return;
    memcpy(e->text + e->length, text, (size_t)n + 1);
    e->length += n;
}

__attribute__((format(printf, 2, 3)))
static void put(emitter *e, const char *format, ...)
{
    char piece[512];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    put_text(e, n > 0 ? piece : "");
}
#endif
