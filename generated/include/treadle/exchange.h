/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "exchange": edit that, not this file. */
#pragma once
/* Tensors lent to other libraries and borrowed from them.

   A managed tensor is DLPack's DLManagedTensorVersioned if `versioned`,
   else its DLManagedTensor; whoever has it calls td_free_dlpack once.

       void *lent = td_to_dlpack(x, true, false);
       td_tensor *y = td_from_dlpack(lent, true,
                                     (td_opt_bool){ 0 }); */
#include <treadle/tensor.h>
/* exchange: prototypes of exchange */
/* The memory of x; `copied` says that nobody else uses it. */
TD_API void *td_to_dlpack(td_tensor *x, bool versioned, bool copied);
/* Takes over `managed` unless it fails.  copy true: always copies;
   false: never, TD_ERROR_VALUE where it must; absent: if it must. */
TD_API td_tensor *td_from_dlpack(void *managed, bool versioned,
                                 td_opt_bool copy);
TD_API void td_free_dlpack(void *managed, bool versioned);

/* The same address for all tensors that share memory. */
TD_API const void *td_storage_of(const td_tensor *x);
/* All bytes of the storage, as a uint8 vector that shares them. */
TD_API td_tensor *td_storage_bytes(const td_tensor *x);
/* A tensor over such bytes; TD_ERROR_VALUE if it would leave them. */
TD_API td_tensor *td_over_storage(td_tensor *bytes, td_dtype dtype,
                                  td_dims shape, td_dims strides,
                                  int64_t offset);
