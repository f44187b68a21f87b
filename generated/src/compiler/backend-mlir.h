/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "mlir": edit that, not this file. */
/* The MLIR back end. */
#pragma once
#include "compiler/backend-c.h"

extern const td_code_backend td_mlir_backend, td_mlir_loops_backend;

/* The stages as MLIR, a function for each run of stages without a call,
   and behind its zero a table of the functions in C; NULL: error
   pending. */
char *td_emit_mlir(const td_lowered *l, bool products);
