/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "arena": edit that, not this file. */
/* A program as stages of loops, products and calls, with its memory.

   Loads of a stage are in the order of its loop's dimensions; `full`
   and `stride` describe the space before collapsing, `size` and `flat`
   after, kept dimensions first. */
#pragma once
#include "compiler/ir.h"

/* fusion: struct td_lowered */
typedef enum {
    TD_LEAF,        /* no step: an input, a captured tensor */
    TD_VIEW,        /* the memory of another value, seen differently */
    TD_NUMBER,      /* one number everywhere */
    TD_PART,        /* put into zeros, to be added to another */
    TD_FORMULA,     /* elementwise: rows, where, conversions, copies */
    TD_FOLD,        /* sum, amax, amin of a formula */
    TD_PRODUCT,     /* a matrix product */
    TD_CALL         /* anything else: the operator itself is called */
} td_step_kind;
typedef struct {
    td_step_kind kind;
    const td_ir_step *step; /* that makes it, or NULL */
    int root;               /* who owns its memory */
    int uses;               /* readers, counting what leaves */
    int size;               /* of its formula: loads and operators */
    bool stored;
    td_tensor *like;        /* strong: shape, strides, without values */
    int buffer;             /* of a root: whose memory it is, or -1 */
    int64_t place;          /* in the arena, or -1 */
    int first, last;        /* stages that write and read it */
    int next_dying;         /* of the same stage, or -1 */
} td_placed;

/* fusion: struct td_stage */
#define TD_FORMULA_SIZE 48      /* loads and operators of a formula */
#define TD_LOADS 32             /* so at most, with three a step */
#define TD_FAR 32               /* steps from a value to a late look */

typedef struct {
    int value;
    int64_t offset, stride[TD_MAX_RANK];    /* by the loop's dims */
    int64_t flat[TD_MAX_RANK + 1];          /* the same, collapsed */
    td_dtype type;
    int piece;              /* that stands for it */
} td_load;
typedef struct {
    td_step_kind kind;      /* _LEAF, _NUMBER or _FORMULA */
    td_dtype type, of;      /* of the value; in which a row computes */
    const td_op *op;        /* of a formula: a row, where, to, a copy */
    td_scalar number;
    int value;              /* of a load, as it was asked for */
    int load, n, arg[3];    /* of the stage; earlier pieces */
} td_piece;
typedef struct {
    td_step_kind kind;      /* _FORMULA, _FOLD, _PRODUCT or _CALL */
    const td_ir_step *step;
    int out;                /* value that it stores */
    td_dtype type;
    const td_op *fold;      /* add, maximum or minimum */
    td_scalar nothing;      /* what it begins with */
    int first, last;        /* its pieces; the last is the result */
    int full_rank;          /* of its space, before collapsing */
    int64_t full[TD_MAX_RANK];
    unsigned folded;        /* its folded dimensions, as bits */
    int rank, kept;         /* after: all, and those of the result */
    int64_t size[TD_MAX_RANK + 1];
    int n_loads;
    td_load load[TD_LOADS + 1];             /* the last: the result */
    int dying;              /* first of the values, or -1 */
} td_stage;

typedef struct {
    td_program *program;            /* strong: expanded, simplified */
    td_placed *value;               /* [n_values] */
    td_stage *stage;
    td_piece *piece;
    int n_stages, n_pieces, piece_room;
    int writes;                     /* the first stage over a weight */
    int64_t bytes, bytes_unplanned; /* of the arena; unshared */
} td_lowered;

typedef struct {
    bool tests;             /* the result is bool */
    const char *text;
} td_row;

td_program *td_program_expand(const td_program *p);
td_lowered *td_lower(td_program *p);
void td_lowered_free(td_lowered *l);

/* Stages and memory, for a reader; its length, like snprintf. */
int64_t td_lowered_print(const td_lowered *l, char *out, int64_t room);

const td_row *td_row_of(const td_op *op);       /* NULL: not a row */

uint64_t td_hash_text(uint64_t h, const char *text);
