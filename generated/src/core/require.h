/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "modules": edit that, not this file. */
/* A required argument that is NULL is an error with its name. */
#pragma once
#include <treadle/base.h>

static inline bool td_require(const void *argument, const char *op,
                              const char *name)
{
    return argument || td_fail(TD_ERROR_VALUE, op, "%s is NULL", name);
}
