/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "python": edit that, not this file. */
#include <treadle/foreign.h>
#include "grad/autograd.h"
#include "core/runtime.h"
/* python: functions on companions */
void *td_companion(const td_tensor *x)
{
    return x->companion;
}

void td_set_companion(td_tensor *x, void *companion)
{
    x->companion = companion;
}
void td_lend_companion(td_tensor *x, td_frees *drop)
{
    x->drop_companion = drop;
}
/* python: functions that inspect a handle */
int64_t td_reference_count(const void *object)
{
    return td_object_count(object);
}

int64_t td_version(const td_tensor *x)
{
    return (int64_t)x->storage->version;
}
bool td_is_sole_owner(const td_tensor *x)
{
    pthread_mutex_t *lock = td_lock(x);
    const bool sole = td_object_count(x) == 1
        && (x->node == NULL || td_object_count(x->node) == 1);
    pthread_mutex_unlock(lock);
    return sole;
}
/* python: function td_set_data */
bool td_set_data(td_tensor *x, td_tensor *source)
{
    if (td_failed())
        return false;
    if (x->requires_grad && !td_dtype_is_floating(source->dtype))
        return td_fail(TD_ERROR_RUNTIME, "data",
            "%s cannot hold the data of a tensor that requires grad",
            td_dtype_name(source->dtype));
    if (td_self()->symbolic)
        return td_fail(TD_ERROR_UNSUPPORTED, "data",
                       "not in a trace; use x.data.copy_(y)");
    td_storage *old = x->storage;
    td_describe(x, source);
    td_storage_retain(x->storage)->shown = true;
    if (td_version_of(x) < old->version)
        x->storage->version = old->version;
    td_count_leaf_view(x, x->leaf_view);
    td_storage_release(old);
    return true;
}
/* python: function td_set_grad_enabled */
void td_set_grad_enabled(bool on)
{
    const int depth = td_self()->grad_depth;
    if (depth > 0)
        td_grad_mode_restore(depth - 1);
    td_grad_mode_push(!on);
}
/* python: function td_rescue */
td_tensor *td_rescue(td_tensor *dying)
{
    const size_t from = offsetof(td_tensor, storage);
    const size_t bytes = offsetof(td_tensor, companion) - from;
    td_tensor *x = td_tensor_alias(dying);
    if (x == NULL)
        return NULL;
    td_storage_release(x->storage);
    memcpy((char *)x + from, (char *)dying + from, bytes);
    memset((char *)dying + from, 0, bytes);
    td_watch(x, NULL, 0);
    return x;
}
/* python: function td_sole_context */
/* The context of the custom function that made `x`, if `x` alone holds
   it and its rule is `backward`; otherwise NULL. */
void *td_sole_context(const td_tensor *x, td_custom_backward *backward)
{
    const td_node *node = x->node;
    if (node == NULL || node->custom == NULL || !td_is_sole_owner(x)
        || node->custom->backward != backward
        || td_object_count(node->custom) != 1)
        return NULL;
    return node->custom->context;
}

/* The companion that the gradient of `x` owns, if `x` alone holds that
   gradient; otherwise NULL. */
void *td_sole_grad_companion(const td_tensor *x)
{
    pthread_mutex_t *lock = td_lock(x);
    const td_tensor *grad = x->grad;
    void *companion = grad && td_object_count(grad) == 1
                    && grad->drop_companion ? grad->companion : NULL;
    pthread_mutex_unlock(lock);
    return companion;
}

void td_forget_grad(td_tensor *x)
{
    td_tensor *grad = td_hold_grad(x);
    if (grad != NULL)
        td_swap_grad(x, grad, NULL);
    td_release(grad);
}
