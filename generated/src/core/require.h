/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "modules": edit that, not this file. */
/* A required argument that is NULL is an error with its name; the
   answer is no as well while an error is pending. */
#pragma once
#include <treadle/base.h>

static inline bool td_require(const void *argument, const char *op,
                              const char *name)
{
    return !td_failed() && (argument
        || td_fail(TD_ERROR_VALUE, op, "%s is NULL", name));
}
