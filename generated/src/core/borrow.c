/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "printing": edit that, not this file. */
#include "core/tensor.h"

/* printing: function pick */
static char *pick(char *to, const char *from, const td_foreign *m,
                    int d)
{
    const size_t size = td_dtype_size(m->dtype);
    if (d == m->shape.count) {
        memcpy(to, from, size);
        *to = m->dtype == TD_BOOL ? *to != 0 : *to;
        return to + size;
    }
    for (int64_t i = 0; i < m->shape.at[d]; i++)
        to = pick(to, from + i * m->strides.at[d] * m->unit, m,
                    d + 1);
    return to;
}

td_tensor *td_borrow(const char *op, td_foreign m, td_opt_bool copy,
                     td_frees *release, void *context)
{
    const int64_t size = (int64_t)td_dtype_size(m.dtype);
    int64_t numel;
    if (td_failed() || !td_dims_numel(op, &m.shape, &numel))
        return NULL;
    /* printing: see if the memory can be shared */
    if (m.strides.count < m.shape.count) {
        td_dims_strides(&m.shape, m.strides.at);
        m.unit = size;
    }
    td_dims steps = m.shape;
    const char *odd = (uintptr_t)m.data % (size_t)size
                    ? "misaligned elements (not aligned to their size)"
                    : NULL;
    for (int d = 0; d < m.shape.count; d++) {
        const int64_t step = m.strides.at[d], per = size / m.unit;
        steps.at[d] = step / per;
        if (step < 0 || step % per)
            odd = "negative strides, and strides that are no multiple of "
                  "the element size,";
    }
    if (!odd && m.dtype == TD_BOOL && !td_holds_truths(m.data,
                                 m.shape.count, m.shape.at, steps.at))
        odd = "bools of other bytes than 0 and 1";
    if (numel == 0)
        odd = NULL;
    if (odd && copy.given && !copy.value)
        return td_fail(TD_ERROR_VALUE, op, "%s cannot be shared and "
                       "can only be copied; pass a copy", odd), NULL;
    const bool own = odd || (copy.given && copy.value);
    td_scope_begin();
    td_tensor *x = odd ? NULL : td_from_memory(m.data, m.shape, steps,
        TD_OF(m.dtype), own ? NULL : release,
        context);
    if (own) {
        /* printing: copy what others hold */
        td_tensor *y = td_tensor_new(m.shape, m.dtype, TD_CPU);
        if (x && y)
            td_copy_elements(y, x);
        else if (y)
            pick(td_at(y), m.data, &m, 0);
        x = y;
    }
    x = td_scope_end_with(x);
    if (x && own && release)
        release(context);
    return x;
}
