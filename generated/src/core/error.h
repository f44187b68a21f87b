/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "memory": edit that, not this file. */
/* The record behind td_fail: what went wrong, where, in words.

   Fixed size, so that recording an error allocates nothing.  take and
   restore carry a record from one thread to another:

       td_error_record record;
       td_error_take(&record);              // in a worker
       return td_error_restore(&record);    // in its caller */
#pragma once
#include <treadle/base.h>

/* memory: struct td_error_record */
typedef struct {
    td_error_code code;
    char operation[48];
    char message[464];
} td_error_record;

void td_error_take(td_error_record *out);
bool td_error_restore(const td_error_record *record);
