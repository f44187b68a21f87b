/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "programs": edit that, not this file. */
/* Inside a program: values in single assignment, and steps.

       td_program *p = td_program_new();
       const int v = td_ir_value_new(p, td_ir_describe(x, origin)); */
#pragma once
#include <treadle/compile.h>
#include "core/device.h"
#include "core/call.h"
#define TD_IR_VALUES 1000000

/* tracing: struct td_ir_value */
typedef enum {
    TD_IR_INPUT, TD_IR_CAPTURED, TD_IR_GRADIENT, TD_IR_RESULT
} td_ir_origin;

typedef struct {
    td_ir_origin origin;
    td_dtype dtype;
    td_device device;
    td_dims shape;
    td_tensor *tensor;      /* strong: what was captured, or NULL */
    const void *storage;    /* where that lay; not to be followed */
    uint32_t version;       /* what was captured, when first seen */
    bool requires_grad;     /* the same */
    bool read;              /* its elements were, by the function */
    int update;             /* the value it has at the end, or -1 */
} td_ir_value;

/* tracing: struct td_ir_gradient */
enum { TD_IR_KEPT = -1, TD_IR_ABSENT = -2 };

typedef struct {
    int of;         /* the value whose gradient this is */
    int from;       /* the value that is read first, or above */
    int to;         /* the value it has at the end, or above */
} td_ir_gradient;

/* tracing: struct td_ir_step */
typedef struct {
    td_kind kind;           /* as in td_value */
    td_scalar scalar;       /* TD_SCALAR */
    int count, *values;     /* TD_TENSOR: one; TD_TENSORS */
} td_ir_operand;

typedef struct {
    const td_op *op;
    int n_in, n_attr, n_out, n_values;
    td_ir_operand *in;
    td_value *attr;
    int *value;             /* of all operands, one after the other */
    int out[TD_MAX_RESULTS];
} td_ir_step;

/* tracing: struct td_program */
typedef struct td_ir_block {
    struct td_ir_block *next;
    size_t bytes;
} td_ir_block;

struct td_program {
    td_object object;
    int n_values, value_room, n_steps, step_room;
    int n_returned, n_outputs;  /* then the gradients left behind */
    atomic_bool eager;          /* its function does more than it can */
    int n_gradients, gradient_room;
    td_ir_value *value;
    td_ir_step *step;
    int *output;
    td_ir_gradient *gradient;
    td_ir_block *blocks;
};

/* programs: struct td_backend */
typedef bool td_run_program(void *code, td_program *p,
                            td_tensor **at, td_tensor **outputs);

typedef struct td_backend {
    const char *name;
    void *(*compile)(const struct td_backend *b, td_program *p);
    td_run_program *run;
    void (*release)(void *code);
    int64_t (*print)(const void *code, char *out, int64_t room);
} td_backend;       /* only `run`: it runs the program as it is */

struct td_executable {
    td_object object;
    const td_backend *backend;
    td_program *program;                    /* strong */
    void *code;
    char note[256];     /* why not a better back end, or empty */
    char name[48];      /* what a profile calls it */
};

td_program *td_program_new(void);
int td_ir_value_new(td_program *p, td_ir_value value);
td_ir_step *td_ir_step_new(td_program *p, const td_op *op, int n_in,
                           int n_attr, int n_values);
td_ir_gradient *td_ir_gradient_new(td_program *p, int of);
td_ir_value td_ir_describe(const td_tensor *x, td_ir_origin origin);
td_value td_ir_attribute(td_program *p, const td_value *value);

/* programs: memory and text of programs */
/* Zeroed memory that lives as long as the program. */
void *td_ir_keep(td_program *p, size_t bytes);
/* The address of one element more, zero; NULL: error pending. */
void *td_ir_more(void *array, int *count, int *room, size_t size);

/* Whether two handles lie in their storages in one way. */
bool td_ir_same_layout(const td_tensor *a, const td_tensor *b);
/* The operator of a step and all that it is given. */
void td_ir_print_call(FILE *f, const td_ir_step *s);
extern const char *const td_ir_words[];         /* by origin */

/* Runs it without values, checks it, and shows a tensor a value. */
typedef void td_ir_sight(void *context, td_tensor **at);
bool td_ir_imagine(const td_program *p, td_ir_sight *see,
                   void *context);

/* The open trace's program leaves `now` in the place of `old`. */
void td_trace_update(td_tensor *old, td_tensor *now);

/* A table with a tensor a value and an output, in a scope without
   gradients that lasts until it is closed; NULL: error pending. */
td_tensor **td_ir_open(const td_program *p);
void td_ir_close(const td_program *p, td_tensor **at);

/* Runs one step on the tensors of its values, at[value].  What the
   operator changes is copied before, but for the inputs `in_place`. */
bool td_ir_replay(const td_ir_step *s, td_tensor **at,
                  unsigned in_place);

/* Runs it in one of these ways, between checks and gradients. */
bool td_ir_run(td_run_program *run, void *code, td_program *p,
               td_tensor *const *inputs, int n, td_tensor **outputs);
td_run_program td_interpret;
