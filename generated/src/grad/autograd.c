/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "hooks": edit that, not this file. */
/* What tensors and threads know about gradients. */
#include "grad/autograd.h"
#include "core/device.h"

/* graph: function td_is_tensor */
bool td_is_tensor(const char *operation, const td_tensor *x)
{
    if (x == NULL)
        td_fail(TD_ERROR_TYPE, operation,
                "expected a tensor, got NULL");
    if (x == NULL || td_failed())
        return false;
    td_follow((td_tensor *)x);
    return !td_failed();
}
/* hooks: struct td_hook_entry */
typedef struct td_hook_entry {
    td_object object;
    _Atomic(struct td_hook_entry *) next;   /* strong */
    int64_t id;
    int slot;
    td_hook *call;
    void *context;
    td_frees *free_context;
} td_hook_entry;
/* hooks: class of a hook */
TD_CLASS(hook, td_hook_entry, hook)
{
    td_release(hook->next);
    td_free_context(hook->free_context, hook->context);
}
/* graph: function td_forget_graph */
void td_forget_graph(td_tensor *x)
{
    if (x->watched && atomic_exchange(&x->watched, false))
        td_watch(x, x->node, x->slot);
    td_count_leaf_view(x, false);
    td_release(x->node);
    td_release(x->grad);
    td_release(x->hooks);
}
/* graph: function td_kind_text */
const char *td_kind_text(char text[TD_TEXT], const td_tensor *x)
{
    char shape[TD_SHAPE_TEXT], device[TD_DEVICE_TEXT];
    const td_device at = td_device_of(x);
    const bool host = at.kind == TD_DEVICE_CPU;
    snprintf(text, TD_TEXT, "%s %s%s%s", td_dtype_name(x->dtype),
             td_shape_text(x, shape), host ? "" : " on ",
             host ? "" : td_device_text(at, device));
    return text;
}
/* graph: function td_same_kind */
bool td_same_kind(const char *operation, const td_tensor *grad,
                  const td_tensor *x)
{
    char got[TD_TEXT], expected[TD_TEXT];
    const td_device here = td_device_of(grad), there = td_device_of(x);
    const td_dims a = td_shape_of(grad), b = td_shape_of(x);
    return (grad->dtype == x->dtype && td_dims_equal(&a, &b)
            && here.kind == there.kind && here.index == there.index)
        || td_fail(TD_ERROR_RUNTIME, operation, "the gradient is %s, "
                   "but the tensor is %s", td_kind_text(got, grad),
                   td_kind_text(expected, x));
}
/* graph: function td_set_requires_grad */
td_tensor *td_set_requires_grad(td_tensor *x, bool on)
{
    if (!td_is_tensor("requires_grad_", x))
        return NULL;
    if (on && !td_dtype_is_floating(x->dtype))
        td_fail(TD_ERROR_RUNTIME, "requires_grad_",
                "only floating-point tensors can require a gradient, "
                "this one is %s", td_dtype_name(x->dtype));
    else if (!on && x->node != NULL)
        td_fail(TD_ERROR_RUNTIME, "requires_grad_",
                "only a leaf can stop requiring a gradient; use "
                "detach for the result of a recorded operator");
    else {
        /* tracing: before requires-grad is read or set */
        td_trace_slot(x, TD_TRACE_KNOWN);
        td_count_leaf_view(x, on && x->node == NULL);
        x->requires_grad = on;
    }
    return td_failed() ? NULL : x;
}
/* graph: functions that read gradient properties */
static bool may_look(const char *operation, const td_tensor *x)
{
    const bool pending = td_failed();
    td_is_tensor(operation, x);
    if (x != NULL && !pending)
        td_error_clear();
    return x != NULL;
}

bool td_requires_grad(const td_tensor *x)
{
    if (!may_look("requires_grad", x))
        return false;
    /* tracing: before requires-grad is read or set */
    td_trace_slot(x, TD_TRACE_KNOWN);
    return x->requires_grad;
}

bool td_is_leaf(const td_tensor *x)
{
    return may_look("is_leaf", x) && x->node == NULL;
}

int td_output_nr(const td_tensor *x)
{
    return may_look("output_nr", x) ? x->slot : 0;
}

td_tensor *td_grad_of(const td_tensor *x)
{
    return may_look("grad", x) ? td_adopt(td_hold_grad(x)) : NULL;
}
/* graph: function td_set_grad */
bool td_set_grad(td_tensor *x, td_tensor *grad)
{
    if (!td_is_tensor("set_grad", x))
        return false;
    td_tensor kind = td_look(x);
    if (grad && grad->dtype == td_dtype_wide(x->dtype))
        kind.dtype = grad->dtype;
    if (grad != NULL && !td_same_kind("set_grad", grad, &kind))
        return false;
    if (grad == x)
        return td_fail(TD_ERROR_RUNTIME, "set_grad",
                       "a tensor cannot be its own gradient");
    /* tracing: before a gradient is set */
    td_trace_slot(x, TD_TRACE_SET);
    td_retain(grad);
    bool done = false;
    while (!done && !td_failed()) {
        td_tensor *old = td_hold_grad(x);
        done = td_swap_grad(x, old, grad);
        td_release(old);
    }
    if (!done)
        td_release(grad);
    return done;
}
/* hooks: function td_detach */
bool detach_kernel(td_call *call)
{
    return td_return(call, td_tensor_alias(td_input(call, 0)));
}

TD_OF_ONE(detach)
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
    self->grad_modes[at] = off;
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
        self->grad_off = self->grad_modes[at];
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
int64_t td_hang(td_hook_list *end, int slot, td_hook *call,
                void *context, td_frees *free_context)
{
    td_hook_entry *hook = td_failed() ? NULL
        : td_object_new_unscoped(&hook_class, sizeof *hook);
    if (hook == NULL) {
        td_free_context(free_context, context);
        return 0;
    }
    hook->id = 1 + atomic_fetch_add(&td_process()->last_hook, 1);
    hook->slot = slot;
    hook->call = call;
    hook->context = context;
    hook->free_context = free_context;
    pthread_mutex_t *lock = td_lock_leaves();
    while (*end != NULL)
        end = &(*end)->next;
    *end = hook;
    pthread_mutex_unlock(lock);
    return hook->id;
}
/* hooks: functions td_register_hook and td_remove_hook */
int64_t td_register_hook(td_tensor *x, td_hook *call, void *context,
                         td_frees *free_context)
{
    int slot = 0;
    if (td_is_tensor("register_hook", x) && !x->requires_grad)
        td_fail(TD_ERROR_RUNTIME, "register_hook", "a tensor that does "
                "not require a gradient cannot have a hook");
    td_node *node = x ? td_hold_node(x, &slot) : NULL;
    const int64_t id = td_hang(node ? &node->hooks : x ? &x->hooks
                               : NULL, slot, call, context,
                               free_context);
    td_release(node);
    return id;
}

int64_t td_register_post_hook(td_tensor *x, td_hook *call,
                              void *context,
                              td_frees *free_context)
{
    const char *who = "register_post_accumulate_grad_hook";
    if (td_is_tensor(who, x) && !x->requires_grad)
        td_fail(TD_ERROR_RUNTIME, who, "cannot register a hook on a "
                "tensor that doesn't require gradient");
    else if (x != NULL && x->node != NULL)
        td_fail(TD_ERROR_RUNTIME, who, "post accumulate grad hooks "
                "cannot be registered on non-leaf tensors");
    return td_hang(x ? &x->hooks : NULL, TD_SLOT_POST, call, context,
                   free_context);
}

static bool find_hook(td_tensor *x, int64_t id, bool remove)
{
    int slot;
    td_node *node = td_hold_node(x, &slot);
    td_hook_list *at = node ? &node->hooks : &x->hooks;
    pthread_mutex_t *lock = td_lock_leaves();
    while (*at != NULL && (*at)->id != id)
        at = &(*at)->next;
    td_hook_entry *found = *at;
    const bool there = found != NULL;
    if (there && remove)
        *at = td_retain(found->next);
    pthread_mutex_unlock(lock);
    td_release(node);
    if (remove)
        td_release(found);
    return there;
}

bool td_remove_hook(td_tensor *x, int64_t id)
{
    return x != NULL && find_hook(x, id, true);
}

bool td_has_hook(const td_tensor *x, int64_t id)
{
    return find_hook((td_tensor *)x, id, false);
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
                        && !td_same_kind("result of a hook", changed,
                                         *grad))) {
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
static td_hook_entry *follow(td_hook_list *link)
{
    if (*link == NULL)
        return NULL;
    pthread_mutex_t *lock = td_lock_leaves();
    td_hook_entry *hook = td_retain(*link);
    pthread_mutex_unlock(lock);
    return hook;
}

bool td_call_hooks(td_hook_list *list, int slot, td_tensor **grad)
{
    bool ok = true;
    for (td_hook_entry *hook = follow(list); hook != NULL; ) {
        if (hook->slot == slot)
            ok = call_hook(hook, grad);
        td_hook_entry *next = ok ? follow(&hook->next) : NULL;
        td_release(hook);
        hook = next;
    }
    return ok;
}

bool td_call_post_hooks(td_tensor *leaf)
{
    td_tensor *same = td_retain(leaf);
    const bool ok = td_call_hooks(&leaf->hooks, TD_SLOT_POST, &same);
    td_release(same);
    return ok;
}

void td_drop_hooks(td_hook_list *list)
{
    if (*list == NULL)
        return;
    pthread_mutex_t *lock = td_lock_leaves();
    td_hook_entry *first = *list;
    *list = NULL;
    pthread_mutex_unlock(lock);
    td_release(first);
}

void *td_note_of(td_hook_list *list)
{
    pthread_mutex_t *lock = td_lock_leaves();
    const td_hook_entry *hook = *list;
    while (hook != NULL && hook->slot != TD_SLOT_NOTE)
        hook = hook->next;
    void *note = hook ? td_retain(hook->context) : NULL;
    pthread_mutex_unlock(lock);
    return note;
}
/* hooks: function td_watch */
void td_watch(td_tensor *x, td_node *old, int slot)
{
    pthread_mutex_t *outer = td_lock_leaves();
    if (old != NULL && old->out[slot].watcher == x)
        old->out[slot].watcher = NULL;
    pthread_mutex_t *lock = td_lock(x);
    if (x->watched && x->node != NULL)
        x->node->out[x->slot].watcher = x;
    pthread_mutex_unlock(lock);
    pthread_mutex_unlock(outer);
}
/* hooks: function td_hold_watcher */
td_tensor *td_hold_watcher(td_node *node, int slot)
{
    if (node->out[slot].watcher == NULL)
        return NULL;
    pthread_mutex_t *lock = td_lock_leaves();
    td_tensor *x = td_retain_alive(node->out[slot].watcher);
    pthread_mutex_unlock(lock);
    return x;
}
/* hooks: function td_retain_grad */
bool td_retain_grad(td_tensor *x)
{
    if (!td_is_tensor("retain_grad", x))
        return false;
    if (!x->requires_grad)
        return td_fail(TD_ERROR_RUNTIME, "retain_grad", "the tensor "
                       "does not require a gradient");
    x->watched = x->node != NULL;
    if (x->watched)
        td_watch(x, NULL, 0);
    return true;
}

bool td_retains_grad(const td_tensor *x)
{
    return may_look("retains_grad", x) && x->watched;
}
