/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "vocabulary": edit that, not this file. */
/* Changes of shape in place. */
#include "grad/autograd.h"
#include "core/error.h"

/* vocabulary: functions that change a shape */

TD_KERNEL(change_shape, x)
{
    td_call plain = *call;
    plain.op = td_traits_of(call->op)->plain;
    if (td_wants_record(call) && !td_may_change(call))
        return false;
    if (x->node != NULL && !td_grad_enabled())
        return td_fail(TD_ERROR_RUNTIME, call->op->name, "the tensor "
            "has a history, and gradients are not recorded here");
    if (!td_run(&plain))
        return false;
    /* vocabulary: become that view */
    const td_tensor *y = plain.out[0];
    td_describe(x, y);
    if (y->node != NULL)
        td_node_attach(x, y->node, y->slot);
    td_bump_version(x);
    return td_return(call, td_share(x));
}

TD_KERNEL(detach_, x)
{
    if (td_base(x) != NULL && td_base(x)->requires_grad)
        return td_fail(TD_ERROR_RUNTIME, "detach_", "a view cannot be "
                       "detached in place; use detach()");
    td_node_attach(x, NULL, 0);
    td_count_leaf_view(x, false);
    x->watched = false;
    return td_return(call, td_share(x));
}

TD_LOOK(view_dtype)
{
    y->dtype = td_v_get_dtype(&call->attr[0], x->dtype);
    const int64_t old = (int64_t)td_dtype_size(x->dtype);
    const int64_t new = (int64_t)td_dtype_size(y->dtype);
    const int last = x->rank - 1;
    if (y->dtype == TD_BOOL && x->dtype != TD_BOOL)
        return td_refuse(call, "bytes of %s cannot be viewed as bool",
                         td_dtype_name(x->dtype));
    bool fits = x->offset * old % new == 0 && (old == new || (last >= 0
            && (x->strides[last] == 1 || x->shape[last] < 2)));
    y->offset = x->offset * old / new;
    for (int d = 0; fits && d <= last; d++) {
        int64_t *n = d == last ? &y->shape[d] : &y->strides[d];
        fits = *n * old % new == 0 || (d < last && x->shape[d] < 2);
        *n = *n * old / new;
    }
    if (!fits)
        return td_refuse(call, "%s of strides that do not suit cannot "
                         "be viewed as %s", td_dtype_name(x->dtype),
                         td_dtype_name(y->dtype));
    if (old != new)
        y->strides[last] = 1;
    return true;
}
