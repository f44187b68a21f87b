/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "modules": edit that, not this file. */
/* The inside of modules: classes and chains of parts. */
#pragma once
#include "core/object.h"
#include <treadle/module.h>
/* modules: struct td_part */
typedef enum {
    TD_PART_PARAMETER,           /* td_tensor * */
    TD_PART_BUFFER,              /* td_tensor * */
    TD_PART_MODULE,              /* td_module * */
    TD_PART_KEPT                 /* any object, of nobody's state */
} td_part_kind;

typedef struct td_part td_part;
struct td_part {
    td_part *next;
    td_part_kind kind;
    void *object;
    char name[32];
};
/* modules: struct td_module */
typedef struct td_module_class td_module_class;
struct td_module {
    td_object object;
    const td_module_class *class;
    td_part *parts;
    bool training;
};
/* modules: struct td_module_class */
struct td_module_class {
    const char *name;
    td_tensor *(*forward)(td_module *self, td_tensor *x);
};
extern const td_module_class td_sequential_class;
void *td_module_new(const td_module_class *class, size_t bytes);
bool td_add_part(td_module *m, td_part_kind kind, void *object,
                 const char *name);
td_tensor *td_new_parameter(td_dims shape, td_tensor_options o,
                            double low, double high);
/* What the caller frees; without `at` after a failure. */
typedef struct {
    td_named_tensor *at;
    int count, room;
} td_named_list;
td_named_list td_list_tensors(td_module *m, bool buffers, bool once);
