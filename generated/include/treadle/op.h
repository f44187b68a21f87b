/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "operators": edit that, not this file. */
/* Operators as data: every operator has a row, every call one door.

   A program that does not know an operator when it is compiled can find
   and run it by name:

       const td_op *op = td_op_find("transpose");
       td_call call = { .op = op, .n_in = 1, .in = values, ... };
       if (td_run(&call))
           use(call.out[0]); */
#pragma once
#include <treadle/tensor.h>

/* operators: struct td_value */
typedef enum {
    TD_NONE, TD_TENSOR, TD_TENSORS, TD_SCALAR, TD_INTS, TD_STRING,
    TD_DTYPE, TD_DEVICE, TD_GENERATOR
} td_kind;

typedef struct {
    td_kind kind;
    union {
        td_tensor *tensor;
        struct { int count; td_tensor *const *at; } tensors;
        td_scalar scalar;
        struct { int count; const int64_t *at; } ints;
        const char *string;
        td_dtype dtype;
        td_device device;
        void *generator;
    } as;
} td_value;

/* operators: struct td_call */
#define TD_MAX_RESULTS 8

typedef struct td_op td_op;

typedef struct td_call {
    const td_op *op;
    int n_in, n_attr, n_out;
    const td_value *in, *attr;
    td_tensor *out[TD_MAX_RESULTS];
    td_tensor *into;        /* takes the result if it fits, or NULL */
} td_call;

typedef bool td_kernel(td_call *call);

/* operators: macro TD_EACH */
/* i from 0 to below the n_many of *whole. */
#define TD_EACH(i, whole, many) \
    for (int i = 0; i < (whole)->n_##many; i++)

/* operators: struct td_signature */
typedef enum {
    TD_P_TENSOR, TD_P_OPERAND, TD_P_SCALAR, TD_P_INT, TD_P_FLOAT,
    TD_P_BOOL, TD_P_STRING, TD_P_DTYPE, TD_P_DEVICE, TD_P_GENERATOR
} td_parameter_kind;

typedef struct {
    char name[32], default_text[32];
    td_parameter_kind kind;
    bool optional, list, mutated, keyword_only, has_default;
    bool is_input;          /* goes to call.in, else to call.attr */
} td_parameter;

#define TD_MAX_PARAMETERS 16
typedef struct {
    char name[40];
    int n_parameters, n_results;
    td_parameter at[TD_MAX_PARAMETERS];
    char result[TD_MAX_RESULTS][16];    /* names; "": just a tensor */
} td_signature;

/* operators: prototypes of operators as data */
/* Checks, runs and records one call.  Fills call->out and n_out.  False
   with an error pending if it fails; then there are no results. */
TD_API bool td_run(td_call *call);

/* The operators by number 0 .. td_op_count() - 1, or by name; NULL if
   there is none.  They live as long as the library. */
TD_API int td_op_count(void);
TD_API const td_op *td_op_at(int n);
TD_API const td_op *td_op_find(const char *name);
TD_API const char *td_op_name(const td_op *op);
TD_API const char *td_op_signature(const td_op *op);
TD_API const char *td_op_documentation(const td_op *op);

/* Breaks a signature into its parts; false if it is not well formed. */
TD_API bool td_signature_parse(const char *text, td_signature *out);
TD_API const char *td_signature_input(const td_signature *s, int i);
/* containers: prototypes of operators as data */
/* What the default means; a text lives in the parameter. */
TD_API td_value td_usual(td_parameter *p);
