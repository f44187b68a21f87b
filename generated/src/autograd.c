/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "hooks": edit that, not this file. */
/* What tensors and threads know about gradients. */
#include "autograd.h"
#include "device.h"
#include "runtime.h"
#include <ctype.h>
#include <stdio.h>
/* tracing: includes of gradients */
#include "trace.h"

/* graph: function is_tensor */
static bool is_tensor(const char *operation, const td_tensor *x)
{
    if (td_failed())
        return false;
    if (x == NULL)
        return td_fail(TD_ERROR_TYPE, operation,
                       "expected a tensor, got NULL");
    td_follow((td_tensor *)x);
    return !td_failed();
}
/* hooks: struct td_hook_entry */
typedef struct td_hook_entry {
    td_object object;
    struct td_hook_entry *next; /* strong */
    int64_t id;
    int slot;
    td_hook *call;
    void *context;
    void (*free_context)(void *);
} td_hook_entry;
/* hooks: class of a hook */
static void hook_destroy(void *object)
{
    td_hook_entry *hook = object;
    td_release(hook->next);
    if (hook->free_context != NULL)
        hook->free_context(hook->context);
}

static const td_class hook_class = { "hook", hook_destroy,
                                     TD_COUNT_OTHERS };
/* graph: function td_forget_graph */
void td_forget_graph(td_tensor *x)
{
    if (x->node != NULL && x->node->out[x->slot].watcher == x)
        x->node->out[x->slot].watcher = NULL;
    td_release(x->node);
    td_release(x->grad);
    td_release(x->hooks);
}
/* graph: function td_kind_text */
const char *td_kind_text(char text[TD_TEXT], const td_tensor *x)
{
    char shape[TD_SHAPE_TEXT], device[TD_DEVICE_TEXT];
    const td_dims dims = td_shape_of(x);
    const td_device at = td_device_of(x);
    const bool host = at.kind == TD_DEVICE_CPU;
    snprintf(text, TD_TEXT, "%s %s%s%s", td_dtype_name(x->dtype),
             td_dims_text(&dims, shape), host ? "" : " on ",
             host ? "" : td_device_text(at, device));
    return text;
}
/* graph: function td_same_kind */
bool td_same_kind(const char *operation, const td_tensor *grad,
                  const td_tensor *x)
{
    char got[TD_TEXT], expected[TD_TEXT];
    const td_device here = td_device_of(grad), there = td_device_of(x);
    bool same = grad->dtype == x->dtype && grad->rank == x->rank
        && here.kind == there.kind && here.index == there.index;
    for (int d = 0; same && d < x->rank; d++)
        same = grad->shape[d] == x->shape[d];
    return same || td_fail(TD_ERROR_RUNTIME, operation,
        "the gradient is %s, but the tensor is %s",
        td_kind_text(got, grad), td_kind_text(expected, x));
}
/* graph: function td_set_requires_grad */
td_tensor *td_set_requires_grad(td_tensor *x, bool on)
{
    if (!is_tensor("requires_grad_", x))
        return NULL;
    if (on && !td_dtype_is_floating(x->dtype))
        td_fail(TD_ERROR_RUNTIME, "requires_grad_",
                "only floating-point tensors can require a gradient, "
                "this one is %s", td_dtype_name(x->dtype));
    else if (!on && x->node != NULL)
        td_fail(TD_ERROR_RUNTIME, "requires_grad_",
                "only a leaf can stop requiring a gradient; use "
                "detach for the result of a recorded operator");
    else
        x->requires_grad = on;
    return td_failed() ? NULL : x;
}
/* graph: functions that read gradient properties */
bool td_requires_grad(const td_tensor *x)
{
    return is_tensor("requires_grad", x) && x->requires_grad;
}

bool td_is_leaf(const td_tensor *x)
{
    return is_tensor("is_leaf", x) && x->node == NULL;
}

int td_output_nr(const td_tensor *x)
{
    return is_tensor("output_nr", x) ? x->slot : 0;
}

td_tensor *td_grad_of(const td_tensor *x)
{
    return is_tensor("grad", x) ? x->grad : NULL;
}
/* graph: function td_set_grad */
bool td_set_grad(td_tensor *x, td_tensor *grad)
{
    if (!is_tensor("set_grad", x))
        return false;
    if (grad != NULL && !td_same_kind("set_grad", grad, x))
        return false;
    if (grad == x)
        return td_fail(TD_ERROR_RUNTIME, "set_grad",
                       "a tensor cannot be its own gradient");
    /* tracing: before a gradient is set */
    if (!td_trace_gradient(x))
        return false;
    td_retain(grad);
    td_release(x->grad);
    x->grad = grad;
    return true;
}
/* hooks: function td_detach */
bool detach_kernel(td_call *call)
{
    return td_return(call, td_tensor_alias(call->in[0].as.tensor));
}

td_tensor *td_detach(td_tensor *x)
{
    const td_value in = td_v_tensor(x);
    return td_run1(&td_ops[TD_OP_detach], 1, &in, 0, NULL);
}
/* graph: functions that switch the grad mode */
bool td_grad_enabled(void)
{
    const td_thread *self = td_self();
    return !self->grad_off && self->muted == 0;
}

void td_grad_mode_push(bool off)
{
    td_thread *self = td_self();
    const int at = self->grad_depth++;
    self->grad_off = off;
    if (at >= TD_GRAD_DEPTH) {
        td_fail(TD_ERROR_RUNTIME, off ? "no_grad" : "enable_grad",
                "grad modes nest at most %d deep", TD_GRAD_DEPTH);
        return;
    }
    const uint64_t bit = UINT64_C(1) << at % 64;
    self->grad_modes[at / 64] &= ~bit;
    self->grad_modes[at / 64] |= off ? bit : 0;
}
/* graph: function td_grad_mode_restore */
void td_grad_mode_restore(int depth)
{
    td_thread *self = td_self();
    const int at = depth - 1;
    self->grad_depth = depth;
    if (at < 0)
        self->grad_off = false;
    else if (at < TD_GRAD_DEPTH)
        self->grad_off = self->grad_modes[at / 64] >> at % 64 & 1;
}
/* graph: functions that open and close grad modes */
static void mode_end(const char *operation)
{
    const int depth = td_self()->grad_depth;
    if (depth > 0)
        td_grad_mode_restore(depth - 1);
    else
        td_fail(TD_ERROR_RUNTIME, operation, "no grad mode is open");
}

void td_no_grad_begin(void) { td_grad_mode_push(true); }
void td_no_grad_end(void) { mode_end("no_grad_end"); }
void td_enable_grad_begin(void) { td_grad_mode_push(false); }
void td_enable_grad_end(void) { mode_end("enable_grad_end"); }
/* hooks: function td_hang */
int64_t td_hang(td_hook_entry **end, int slot, td_hook *call,
                void *context, void (*free_context)(void *))
{
    td_hook_entry *hook = td_failed() ? NULL
        : td_object_new_unscoped(&hook_class, sizeof *hook);
    if (hook == NULL) {
        if (free_context != NULL)
            free_context(context);
        return 0;
    }
    hook->id = 1 + atomic_fetch_add(&td_process()->last_hook, 1);
    hook->slot = slot;
    hook->call = call;
    hook->context = context;
    hook->free_context = free_context;
    while (*end != NULL)
        end = &(*end)->next;
    *end = hook;
    return hook->id;
}
/* hooks: functions td_register_hook and td_remove_hook */
static td_hook_entry **hooks_of(td_tensor *x)
{
    return x->node != NULL ? &x->node->hooks : &x->hooks;
}

int64_t td_register_hook(td_tensor *x, td_hook *call, void *context,
                         void (*free_context)(void *))
{
    if (is_tensor("register_hook", x) && !x->requires_grad)
        td_fail(TD_ERROR_RUNTIME, "register_hook", "a tensor that does "
                "not require a gradient cannot have a hook");
    return td_hang(x ? hooks_of(x) : NULL, x ? x->slot : 0, call,
                   context, free_context);
}

int64_t td_register_post_hook(td_tensor *x, td_hook *call,
                              void *context,
                              void (*free_context)(void *))
{
    const char *who = "register_post_accumulate_grad_hook";
    if (is_tensor(who, x) && !x->requires_grad)
        td_fail(TD_ERROR_RUNTIME, who, "cannot register a hook on a "
                "tensor that doesn't require gradient");
    else if (x != NULL && x->node != NULL)
        td_fail(TD_ERROR_RUNTIME, who, "post accumulate grad hooks "
                "cannot be registered on non-leaf tensors");
    return td_hang(x ? &x->hooks : NULL, TD_SLOT_POST, call, context,
                   free_context);
}

bool td_remove_hook(td_tensor *x, int64_t id)
{
    if (x == NULL)
        return false;
    for (td_hook_entry **at = hooks_of(x); *at; at = &(*at)->next)
        if ((*at)->id == id) {
            td_hook_entry *gone = *at;
            *at = td_retain(gone->next);
            td_release(gone);
            return true;
        }
    return false;
}

bool td_has_hook(const td_tensor *x, int64_t id)
{
    const td_hook_entry *hook = x->node != NULL ? x->node->hooks
                                                : x->hooks;
    while (hook != NULL && hook->id != id)
        hook = hook->next;
    return hook != NULL;
}
/* hooks: function call_hook */
static bool call_hook(const td_hook_entry *hook, td_tensor **grad)
{
    const int depth = td_self()->grad_depth;
    td_scope_barrier_begin();
    td_tensor *changed = hook->call(hook->context, *grad);
    td_scope_barrier_end();
    td_grad_mode_restore(depth);
    if (td_failed() || (changed != NULL
                        && !td_same_kind("hook", changed, *grad))) {
        td_release(changed);
        return false;
    }
    if (changed != NULL) {
        td_release(*grad);
        *grad = changed;
    }
    return true;
}
/* hooks: functions that call hooks */
bool td_call_hooks(td_hook_entry *first, int slot, td_tensor **grad)
{
    bool ok = true;
    for (td_hook_entry *hook = td_retain(first); hook != NULL; ) {
        if (hook->slot == slot)
            ok = call_hook(hook, grad);
        td_hook_entry *next = ok ? td_retain(hook->next) : NULL;
        td_release(hook);
        hook = next;
    }
    return ok;
}

void *td_note_of(const td_hook_entry *hook)
{
    while (hook != NULL && hook->slot != TD_SLOT_NOTE)
        hook = hook->next;
    return hook ? hook->context : NULL;
}

bool td_call_post_hooks(td_tensor *leaf)
{
    td_tensor *same = td_retain(leaf);
    const bool ok = td_call_hooks(leaf->hooks, TD_SLOT_POST, &same);
    td_release(same);
    return ok;
}
/* hooks: function td_retain_grad */
bool td_retain_grad(td_tensor *x)
{
    if (!is_tensor("retain_grad", x))
        return false;
    if (!x->requires_grad)
        return td_fail(TD_ERROR_RUNTIME, "retain_grad", "the tensor "
                       "does not require a gradient");
    if (x->node != NULL)
        x->node->out[x->slot].watcher = x;
    return true;
}

bool td_retains_grad(const td_tensor *x)
{
    return is_tensor("retains_grad", x) && x->node != NULL
        && x->node->out[x->slot].watcher == x;
}
