/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "codegen": edit that, not this file. */
/* Text that grows while it is written. */
#ifndef TREADLE_SRC_EMIT_H
#define TREADLE_SRC_EMIT_H
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "compiler/lower.h"

/* codegen: struct emitter */
typedef struct {
    char *text;
    int length, room;
    const td_lowered *l;
    const td_stage *s;
} emitter;

static bool make_room(emitter *e, int n)
{
    while (!td_failed() && e->length + n + 1 > e->room)
        td_ir_grow(&e->text, e->room, &e->room, 1);
    return !td_failed();
}

static void put_text(emitter *e, const char *text)
{
    const int n = (int)strlen(text);
    if (!make_room(e, n))
        return;
    memcpy(e->text + e->length, text, (size_t)n + 1);
    e->length += n;
}

static void put_list(emitter *e, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, format, args);
    if (make_room(e, n))
        e->length += vsnprintf(e->text + e->length, (size_t)n + 1,
                               format, again);
    va_end(again);
}

__attribute__((format(printf, 2, 3)))
static void put(emitter *e, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put_list(e, format, args);
    va_end(args);
}
#endif
