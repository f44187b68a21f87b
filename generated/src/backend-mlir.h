/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "mlir": edit that, not this file. */
/* The MLIR back end. */
#ifndef TREADLE_SRC_BACKEND_MLIR_H
#define TREADLE_SRC_BACKEND_MLIR_H
#include "backend-c.h"

extern const td_backend td_mlir_backend;

/* The stages as MLIR, a function for each run of stages without a call,
   in a block of `room` bytes; NULL: error pending. */
char *td_emit_mlir(const td_lowered *l, int *room);

/* The same, and behind its zero a table of the functions in C. */
char *td_emit_mlir_and_table(const td_lowered *l, int *room);
#endif
