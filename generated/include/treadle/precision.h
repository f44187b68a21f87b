/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "precision": edit that, not this file. */
#pragma once
/* Computing in sixteen bits where it pays.

       td_set_autocast(TD_BFLOAT16);
       td_tensor *y = td_linear(x, w, NULL);    // bfloat16
       td_set_autocast(TD_DTYPE_NONE);

   The setting is the thread's own. */
#include <treadle/tensor.h>
/* float16, bfloat16, or TD_DTYPE_NONE: everything as it comes. */
TD_API bool td_set_autocast(td_dtype dtype);
TD_API td_dtype td_autocast_dtype(void);
