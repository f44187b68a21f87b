/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "fusion": edit that, not this file. */
/* The C back end. */
#ifndef TREADLE_SRC_BACKEND_C_H
#define TREADLE_SRC_BACKEND_C_H
#include "lower.h"

extern const td_backend td_c_backend;

/* The stages as C, in a block of `room` bytes; NULL: error pending. */
char *td_emit_c(const td_lowered *l, int *room);

/* Runs a program and waits; its words go to the file `log`. */
bool td_run_command(char *const *arguments, const char *log);

/* Marks a new library as whole and made for this key; then it can be
   opened if it has the symbol.  NULL without an error: it has not. */
bool td_seal(const char *path, const char *key);
void *td_open_cached(const char *path, const char *key,
                     const char *symbol);
#endif
