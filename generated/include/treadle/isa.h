/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rows": edit that, not this file. */
/* Which instruction set the kernels use: "v2", "v3", "v4" on x86-64,
   "base" elsewhere.  Results differ between levels in the last bits.

       td_set_isa("v2");
       printf("%s\n", td_isa()); */
#pragma once
#include <treadle/base.h>
TD_API const char *td_isa(void);
TD_API bool td_set_isa(const char *name);
