/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "python": edit that, not this file. */
#pragma once
/* What a binding to another language needs to know of a tensor.

   A companion is the other language's object for a handle.  The handle
   only knows it, unless td_lend_companion made it the owner.

       td_set_companion(x, wrapper);
       td_lend_companion(x, drop);    // x owns the wrapper now
       td_lend_companion(x, NULL);    // and gives it back */
#include <treadle/autograd.h>
/* python: start of the C linkage for foreign languages */
/* python: prototypes for foreign languages */
TD_API void *td_companion(const td_tensor *x);
TD_API void td_set_companion(td_tensor *x, void *companion);
TD_API void td_lend_companion(td_tensor *x, td_frees *drop);
TD_API int64_t td_reference_count(const void *object);
TD_API td_counts td_version;
TD_API bool td_set_data(td_tensor *x, td_tensor *source);
TD_API td_tensor *td_rescue(td_tensor *dying);
TD_API void td_set_grad_enabled(bool on);
TD_API td_asks td_is_sole_owner;
TD_API void *td_sole_context(const td_tensor *x,
                             td_custom_backward *backward);
TD_API void *td_sole_grad_companion(const td_tensor *x);
TD_API void td_forget_grad(td_tensor *x);   /* error pending or not */
/* python: end of the C linkage for foreign languages */
