/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "memory": edit that, not this file. */
/* What every object of the library begins with, and how one is made.

   An object is a structure whose first field is a td_object.  Its class
   says what it is called and how to release what it holds; the memory
   of the object itself is freed for it.  td_object_new follows the rule
   of ownership; _unscoped makes an object that is always the caller's.

       typedef struct { td_object object; char *text; } note;
       TD_CLASS(note, note, x)
       {
           free(x->text);
       }
       note *n = td_object_new(&note_class, sizeof *n); */
#pragma once
#include "core/memory.h"

/* memory: struct td_class */
typedef struct td_class {
    const char *name;
    td_frees *destroy;  /* releases what it holds */
    td_counter counted_as;
} td_class;
/* memory: macro TD_CLASS */
#define TD_CLASS(name, type, x)                                       \
    static void name##_give_up(type *x);                              \
    static void name##_destroy(void *object)                          \
    {                                                                 \
        name##_give_up(object);                                       \
    }                                                                 \
    static const td_class name##_class = {                            \
        #name, name##_destroy, TD_COUNT_OTHERS };                     \
    static void name##_give_up(type *x)

/* memory: struct td_scope */
#define TD_SCOPE_DEPTH 1024

typedef struct td_scope {
    struct td_object *first;        /* newest first */
} td_scope;

/* memory: struct td_object */
typedef struct td_object td_object;
struct td_object {
    const td_class *class;
    size_t bytes;                   /* of the whole object */
    atomic_int count;               /* references */
    td_object *next, **link;        /* neighbours in a scope's list */
    _Atomic(td_scope *) scope;      /* whose list that is */
};

void *td_object_new(const td_class *class, size_t bytes);
void *td_object_new_unscoped(const td_class *class, size_t bytes);
int64_t td_object_count(const void *object);
td_frees td_discard;    /* a result that nobody will get */
void td_free_context(td_frees *release, void *context);
