/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "modules": edit that, not this file. */
/* The inside of modules: classes and their field tables. */
#pragma once
#include "core/object.h"
#include <treadle/module.h>
/* modules: struct td_module */
typedef struct td_module_class td_module_class;
struct td_module {
    td_object object;
    const td_module_class *class;
    struct td_part *parts;       /* beside the fields of the class */
    bool training;
};
/* modules: struct td_field */
typedef enum {
    TD_FIELD_PARAMETER,          /* td_tensor * */
    TD_FIELD_BUFFER,             /* td_tensor * */
    TD_FIELD_MODULE,             /* td_module * */
    TD_FIELD_KEPT                /* any object, of nobody's state */
} td_field_kind;

typedef struct {
    const char *name;            /* NULL ends the table */
    td_field_kind kind;
    size_t offset;
} td_field;
/* modules: struct td_part */
typedef struct td_part td_part;
struct td_part {
    td_part *next;
    td_field_kind kind;
    void *object;
    char name[32];
};
/* modules: macros for the rows of a field table */
#define TD_PARAMETER(type, field) \
    { #field, TD_FIELD_PARAMETER, offsetof(type, field) }
#define TD_BUFFER(type, field) \
    { #field, TD_FIELD_BUFFER, offsetof(type, field) }
#define TD_MODULE(type, field) \
    { #field, TD_FIELD_MODULE, offsetof(type, field) }
/* modules: struct td_module_class */
struct td_module_class {
    td_class object;
    const td_field *fields;
    td_tensor *(*forward)(td_module *self, td_tensor *x);
};
extern const td_module_class td_sequential_class;
void *td_module_new(const td_module_class *class, size_t bytes);
void td_module_destroy(void *object);
bool td_add_part(td_module *m, td_field_kind kind, void *object,
                 const char *name);
