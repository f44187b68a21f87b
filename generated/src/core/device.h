/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "devices": edit that, not this file. */
/* Who computes: the host, a device behind a table, or nobody.

       if (!td_return(call, out))
           return false;
       if (!td_on_host(out))
           return td_compute_elsewhere(call, NULL, dtype, true);
       loop over the elements of out */
#pragma once
#include <treadle/plugin.h>
#include "core/runtime.h"
#include "core/tensor.h"

#define TD_DEVICE_TEXT 24

/* devices: function td_on_host */
static inline bool td_at_home(const td_tensor *x)
{
    return x->storage->device.kind == TD_DEVICE_CPU;
}

static inline bool td_on_host(const td_tensor *x)
{
    return td_at_home(x) && !td_self()->symbolic;
}

/* devices: function td_same_device */
static inline bool td_same_device(td_device a, td_device b)
{
    return a.kind == b.kind
        && (a.index == b.index || a.kind == TD_DEVICE_CPU);
}

/* devices: prototype of td_compute_elsewhere */
/* Computes call->op, or `what` if it is not NULL, on the device of
   call->out[0]; does nothing, and well, while the thread traces.
   `dtype` is the type to compute in.  `spread`: every operand is shown
   in the shape of out[0], with strides of 0 where it repeats. */
bool td_compute_elsewhere(const td_call *call, const char *what,
                          td_dtype dtype, bool spread);

/* What td_copy_elements does where one of the two is not at home. */
bool td_copy_elsewhere(td_tensor *out, const td_tensor *in);

/* x where the device is: itself, or a copy. */
td_tensor *td_brought(td_tensor *x, td_device device);

/* Takes a tensor made on the host to the device that was asked for. */
td_tensor *td_sent(td_tensor *made, td_device device);

/* Ends the scope in which the call's results, of which the first is not
   in the call yet, were made on the host, and sends them where the
   first operand is. */
bool td_send_results(td_call *call, td_tensor *first);

/* The table of a device; NULL with an error pending if it has none. */
const td_device_table *td_table_of(const char *operation,
                                   td_device device);

/* `bytes` bytes of x from byte `at` on, in place or copied to `here`;
   NULL with an error pending. */
const void *td_fetch(const td_tensor *x, int64_t at, size_t bytes,
                     void *here);

/* Do the tensors of a call have values, and live in one place? */
bool td_meet(const td_call *call);
const char *td_device_text(td_device device, char text[TD_DEVICE_TEXT]);
