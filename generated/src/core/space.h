/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "views": edit that, not this file. */
/* A space: the same places of several tensors that lie differently.

   Operands are aligned at the right of the first, with stride 0 where
   they repeat.  Elements are numbered row by row.

       td_space s;
       td_space_begin(&s, out, TD_ALL_DIMS);
       td_space_add(&s, x, TD_ALL_DIMS);
       td_collapse(&s.shape, s.operands, s.stride);
       td_space_carry(&s, 1, s.data[1], 0, s.total, TD_FLOAT32, to,
                      false); */
#pragma once
#include "core/tensor.h"

/* views: struct td_space */
#define TD_SPACE_OPERANDS 5
#define TD_ALL_DIMS (~0u)
typedef int64_t td_steps[TD_MAX_RANK];

typedef struct {
    td_dims shape;
    int64_t total;                          /* product of the sizes */
    int operands;
    td_steps stride[TD_SPACE_OPERANDS];     /* in elements */
    char *data[TD_SPACE_OPERANDS];          /* of element 0 */
    td_dtype dtype[TD_SPACE_OPERANDS];
    int64_t size[TD_SPACE_OPERANDS];        /* bytes of an element */
} td_space;

/* views: struct td_lines */
typedef struct {
    td_space space;                     /* where lines begin */
    int64_t step[TD_SPACE_OPERANDS];    /* along an operand's line */
    int64_t size[TD_SPACE_OPERANDS];
} td_lines;

static inline int64_t td_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Only the dimensions of x whose bits are set in `dims` take part. */
void td_space_begin(td_space *s, const td_tensor *x, unsigned dims);
void td_space_add(td_space *s, const td_tensor *x, unsigned dims);

/* As few dimensions as possible, but one. */
void td_collapse(td_dims *shape, int operands, td_steps *stride);

/* The address of element i of operand k. */
void *td_space_place(const td_space *s, int k, int64_t i);

/* Elements [start, start + n) of operand k of a collapsed space, whose
   first is at `from`, as a contiguous array; and such an array back. */
void td_space_carry(const td_space *s, int k, void *data, int64_t start,
                    int64_t n, td_dtype as, void *block, bool back);

/* Lines along `dim`, from { 0 } on; the number of the operand.  Line i
   of operand k as an array, and such an array back. */
int td_lines_add(td_lines *l, const td_tensor *x, int dim);
void td_lines_carry(const td_lines *l, int k, int64_t i, td_dtype as,
                    void *block, bool back);

/* A contiguous tensor, seen in another shape. */
td_tensor td_look_as(const td_tensor *fresh, const td_dims *shape);
