/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "codegen": edit that, not this file. */
/* The C back end. */
#ifndef TREADLE_SRC_BACKEND_C_H
#define TREADLE_SRC_BACKEND_C_H
#include "ops/gemm.h"
#include "compiler/lower.h"

extern const td_backend td_c_backend;

/* The stages as C, in a block of `room` bytes; NULL: error pending. */
char *td_emit_c(const td_lowered *l, int *room);

/* Runs a program and waits; its temporary files lie in `folder`, and
   its words are in the error. */
bool td_run_command(char *const *command, const char *folder);

const char *td_setting(const char *name);   /* NULL: unset or empty */

/* Marks a new library as whole and made for this key; then it can be
   opened if it has the symbol.  NULL without an error: it has not. */
bool td_seal(const char *path, const char *key);
void *td_open_cached(const char *path, const char *key,
                     const char *symbol);

/* codegen: struct td_code */
typedef bool td_stage_body(void *context, int64_t begin, int64_t end,
                           int worker);

typedef struct {
    td_lowered *l;
    void *library;
    td_stage_body *const *stages;
    bool whole;         /* one function runs all up to the next call */
    bool products;      /* products among them */
} td_code;

/* Makes `folder`/code.so, a shared library, of a text. */
typedef bool td_build(const char *folder, const char *march,
                      const char *text);
typedef char *td_emit(const td_lowered *l, int *room);

/* A back end of its parts: who writes, with what tools, who builds. */
void *td_compile_code(td_program *p, td_emit *emit, const char *tools,
                      td_build *build);
void *td_load_code(const char *text, const char *tools,
                   td_build *build);
bool td_run_code(void *compiled, td_program *program,
                 td_tensor *const *inputs, int n, td_tensor **outputs);
int64_t td_print_code(const void *compiled, char *out, int64_t room);
void td_release_code(void *compiled);

/* Without addresses. */
td_product td_product_of(const td_lowered *l, const td_ir_step *step);

bool td_write_source(const char *path, const char *text);
const char *td_compiler(void);
#endif
