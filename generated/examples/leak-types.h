/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "leak": edit that, not this file. */
/* needs: data */
/* A variable and its closure: see leak.h. */
#include <treadle/treadle.h>
#include "core/object.h"

/* leak: struct closure */
typedef struct closure {        /* a function and what it captured */
    void (*run)(struct closure *);
    struct var *held[3];        /* strong: they stay while we do */
    struct var *seen;           /* weak: whose closure this is */
    td_tensor *kept[2];         /* strong: plain numbers */
    int64_t start, end;         /* of a slice */
} closure;

/* leak: struct var */
typedef struct var {            /* a value that knows its past */
    td_object object;           /* counted, like all objects */
    int op;                     /* what made it */
    td_tensor *value, *grad;    /* strong; the gradient begins at 0 */
    closure backward;           /* run is NULL: a leaf */
    bool sorted;                /* by the pass that is running */
} var;
