/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rows": edit that, not this file. */
/* Which instruction set the kernels use: "v2", "v3", "v4" on x86-64,
   "base" elsewhere.  Results differ between levels in the last bits.

       td_set_isa("v2");
       printf("%s\n", td_isa()); */
#ifndef TREADLE_ISA_H
#define TREADLE_ISA_H
#include <treadle/base.h>

#ifdef __cplusplus
extern "C" {
#endif
TD_API const char *td_isa(void);
TD_API bool td_set_isa(const char *name);
#ifdef __cplusplus
}
#endif
#endif
