/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "plugins": edit that, not this file. */
/* Other devices: find them, send tensors there, wait for them.

       const td_device card = { TD_DEVICE_CUDA, 0 };
       if (td_device_count(TD_DEVICE_CUDA) > 0)
           x = td_to_device(x, card);
       y = td_relu(x);              // on the card
       td_item_double(td_sum(y, (td_reduce_options)TD_DEFAULTS)); */
#pragma once
#include <treadle/tensor.h>

/* How many there are; 0, and no error, where there is none. */
TD_API int td_device_count(td_device_kind kind);

/* x itself if it is there, else a copy; gradients come back.  Errors:
   TD_ERROR_UNSUPPORTED without such a device, TD_ERROR_MEMORY. */
TD_API td_tensor *td_to_device(td_tensor *x, td_device device);

/* The same for the CPU; an error for a tensor that has no value. */
TD_API td_of_one td_to_host;

/* x itself if its memory is page-locked, else a copy that is: what a
   device fetches from there comes faster.  Errors as above. */
TD_API td_of_one td_pin_memory;
TD_API td_asks td_is_pinned;

/* Waits for what this thread asked of it; its faults are raised. */
TD_API bool td_synchronise(td_device device);

/* Its bytes and allocations; objects are counted on the CPU only. */
TD_API td_memory_info td_device_memory_stats(td_device device);
