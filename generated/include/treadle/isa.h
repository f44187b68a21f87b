/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rows": edit that, not this file. */
/* Which instruction set the kernels use: "v1" to "v4" on x86-64, "neon"
   on 64-bit ARM, "base" elsewhere.  Results differ between levels in
   the last bits.

       td_set_isa("v2");
       printf("%s\n", td_isa()); */
#pragma once
#include <treadle/base.h>
TD_API const char *td_isa(void);
TD_API bool td_set_isa(const char *name);

/* Bytes of the caches of data, 0 where the system does not say. */
typedef struct { int64_t l1, l2, l3; } td_cache_sizes;
TD_API td_cache_sizes td_cache_info(void);
