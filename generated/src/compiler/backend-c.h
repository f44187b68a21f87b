/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "codegen": edit that, not this file. */
/* The C back end, and what another has in common with it. */
#pragma once
#include "ops/gemm.h"
#include "compiler/lower.h"

/* codegen: struct td_code */
typedef bool td_stage_body(void *context, int64_t begin, int64_t end,
                           int worker);

/* Makes `folder`/code.so, a shared library, of a text; of an object
   as well, unless it is NULL. */
typedef bool td_build(const char *folder, const char *text,
                      const char *object);

typedef struct {
    td_backend head;
    char *(*emit)(const td_lowered *l, bool products);  /* free() it */
    bool (*find)(char *tools, size_t room);     /* what builds it */
    td_build *build;
    bool whole;         /* one function runs all up to the next call */
    bool products;      /* products among them */
} td_code_backend;

typedef struct {
    const td_code_backend *by;
    td_lowered *l;
    void *library;
    td_stage_body *const *stages;
} td_code;

extern const td_code_backend td_c_backend;

void *td_compile_code(const td_backend *b, td_program *p);
td_run_program td_run_code;
int64_t td_print_code(const void *compiled, char *out, int64_t room);
void td_release_code(void *compiled);

/* The stages as C; NULL: error pending. */
char *td_emit_c(const td_lowered *l, bool products);

/* Runs TD_SHELL(folder), a program, its arguments and NULL, and waits;
   temporary files lie in the folder, and its words are in the error. */
#define TD_SHELL(folder) \
    "/bin/sh", "-c", (char *)td_supervisor, "sh", (char *)folder
extern const char td_supervisor[];
bool td_run_command(char *const *arguments);

td_build td_build_c;
const char *td_instruction_set(void);
bool td_write_text(const char *path, const char *mode,
                   const char *text);
const char *td_setting(const char *name);   /* NULL: unset or empty */
