/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "operators": edit that, not this file. */
/* What is known of an operator, and what may stand in a call's way.

   A stage is a row of stages.inc,

       STAGE(trace, td_trace_enter, td_trace_leave)

   and two functions.  td_run decides from the operands which stages a
   call passes, enters them from the last row to the first, runs the
   kernel, and leaves those it has entered in the opposite order. */
#pragma once
#include "core/registry.h"

/* operators: types of stages */
typedef unsigned td_stages;     /* a set: bit k is the k-th stage */
typedef struct td_plan td_plan;
typedef bool td_enter(td_call *call, td_plan *plan);
typedef bool td_leave(td_call *call, bool ok);
struct td_plan {
    td_stages stages;
    td_kernel *kernel;
    bool afield;                /* an operand is not at home */
    /* graph: td_plan fields */
    bool recording;                 /* gradients may be wanted of it, */
    bool gradient;                  /* and are */
};

/* operators: number the stages */
enum {
#define STAGE(name, enter, leave) TD_STAGE_##name,
#include "core/stages.inc"
    TD_STAGE_COUNT
};

#define STAGE(name, enter, leave) td_enter enter; td_leave leave;
#include "core/stages.inc"

/* operators: struct td_traits */
typedef struct {
    int n_in, n_attr;
    unsigned in[TD_MAX_PARAMETERS], attr[TD_MAX_PARAMETERS];
    unsigned mutated;           /* inputs changed in place: a set */
    bool random;                /* takes a generator */
    /* graph: td_traits fields */
    td_stages always, recorded;     /* in the way: ever; of a gradient */
    td_kernel *instead;             /* runs then, if not NULL */
    /* in-place: td_traits fields */
    const td_op *plain;             /* without underscore, or NULL */
    /* precision: td_traits fields */
    bool typed;                     /* has an attribute that is a dtype */
    bool cast;                      /* given other types by autocast */
} td_traits;

const td_traits *td_traits_of(const td_op *op);
/* graph: prototypes of what stands above */
void td_forget_graph(td_tensor *x);
TD_API td_tensor *td_set_requires_grad(td_tensor *x, bool on);
void td_study_rule(const td_op *op, td_traits *traits);
bool td_wants_gradient(td_tensor *x, bool changed);
/* in-place: prototypes of what stands above */
void td_note_view(const td_call *call, bool recording);
const td_op *td_plain_form(const td_op *op);
/* rules: prototypes of what stands above */
void td_study_formulas(const td_op *op);
/* precision: prototypes of what stands above */
td_kernel td_widened;
td_kernel td_run_cast;
enum { TD_AS_IT_COMES, TD_MIXED, TD_PLAIN, TD_LOW, TD_WIDE };
extern const uint8_t td_casts[];
