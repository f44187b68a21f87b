/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "hooks": edit that, not this file. */
/* Custom functions, and the names of nodes. */
#include "grad/autograd.h"
#include "core/runtime.h"
#include <ctype.h>

/* hooks: class of a custom function */
#define BYTES_SAVED (sizeof(td_saved) + sizeof(td_tensor *))

static void drop_saved(td_custom *custom)
{
    TD_EACH(i, custom, saved)
        td_release(custom->saved[i].tensor);
    td_free(custom->saved, (size_t)custom->n_saved * BYTES_SAVED);
    custom->saved = NULL;
    custom->n_saved = 0;
}

void td_custom_drop(void *object)
{
    td_custom *custom = object;
    void *context = custom ? custom->context : NULL;
    if (custom == NULL)
        return;
    drop_saved(custom);
    custom->context = NULL;
    td_free_context(custom->free_context, context);
    custom->free_context = NULL;
}

static const td_class custom_class = {
    "custom function", td_custom_drop, TD_COUNT_OTHERS
};
/* hooks: functions that check a custom function */

static bool check_results(const char *name,
                          int n_in, td_tensor *const *in,
                          int n_out, td_tensor *const *out)
{
    for (int k = 0; k < n_out; k++) {
        const td_tensor *y = out[k];
        bool good = y == NULL || !y->requires_grad;
        for (int i = 0; y && i < n_in; i++)
            if (y == in[i])
                good = (y->node != NULL || !y->requires_grad)
                    && y->storage->count == 1;
        for (int i = 0; y && i < k; i++)
            good = good && out[i] != y;
        if (!good)
            return td_fail(TD_ERROR_RUNTIME, name, "result %d was "
                "recorded already, or is a leaf or a view that cannot "
                "be changed in place; return a new tensor, computed "
                "with recording off", k);
    }
    return true;
}
/* hooks: function td_record_custom */
bool td_record_custom(const char *name, int n_in, td_tensor *const *in,
                      int n_out, td_tensor *const *out,
                      td_custom_backward *backward, void *context,
                      td_frees *free_context)
{
    td_custom *custom = td_object_new_unscoped(&custom_class,
                                               sizeof *custom);
    if (custom == NULL) {
        td_free_context(free_context, context);
        return false;
    }
    /* hooks: fill the fields of custom */
    custom->backward = backward;
    custom->context = context;
    custom->free_context = free_context;
    snprintf(custom->name, sizeof custom->name, "%s", name);
    /* hooks: look for an operand that asks for a gradient */
    bool asked = false;
    for (int i = 0; td_grad_enabled() && i < n_in; i++)
        asked |= in[i] != NULL && td_follow(in[i])->requires_grad;
    td_node *node
        = asked && check_results(name, n_in, in, n_out, out)
        ? td_node_new(n_in, n_out, 0, (size_t)n_in * sizeof(bool))
        : NULL;
    /* hooks: connect the node of custom */
    if (node != NULL)
        node->custom = td_retain(custom);
    for (int i = 0; node && i < n_in; i++)
        if (in[i] != NULL)
            td_edge_connect(&node->in[i], in[i]);
    for (int k = 0; node && k < n_out; k++)
        if (out[k] && td_dtype_is_floating(out[k]->dtype))
            td_node_attach(out[k], node, k);
    td_release(node);
    td_release(custom);
    return !td_failed();
}
/* hooks: function td_save_for_backward */
bool td_save_for_backward(td_tensor *output, int n,
                          td_tensor *const *tensors)
{
    if (!td_is_tensor("save_for_backward", output))
        return false;
    const td_node *node = output->node;     /* new, and ours alone */
    td_custom *custom = node ? node->custom : NULL;
    if (custom == NULL)
        return true;            /* was not recorded: nothing to save */
    drop_saved(custom);
    custom->saved = td_alloc_array((size_t)n, BYTES_SAVED);
    if (custom->saved == NULL)
        return false;
    custom->n_saved = n;
    custom->shown = (td_tensor **)(custom->saved + n);
    bool ok = true;
    for (int i = 0; ok && i < n; i++)
        if (tensors[i] != NULL && tensors[i]->node == node)
            ok = td_save_result(&custom->saved[i], tensors[i],
                                tensors[i]->slot);
        else if (tensors[i] != NULL)
            td_save(&custom->saved[i], tensors[i]);
    return ok && !td_failed();
}
/* hooks: function td_custom_apply */
void td_custom_apply(td_backward_pass *b)
{
    const td_custom *custom = b->node->custom;
    bool *needs = (bool *)(b->grad_in + b->n_in);   /* its room */
    TD_EACH(i, b, in)
        needs[i] = td_needs(b, i);
    TD_EACH(i, custom, saved)
        if (custom->saved[i].tensor != NULL)
            custom->shown[i] = td_unpack(b, &custom->saved[i],
                                         "saved tensor", i);
    td_custom_call call = { b->n_out, b->grad, b->n_in, needs,
                            b->grad_in, custom->n_saved,
                            custom->shown };
    if (td_failed())
        return;
    /* hooks: call the function behind a barrier */
    const int depth = td_self()->grad_depth;
    td_scope_barrier_begin();
    const bool ok = custom->backward(custom->context, &call);
    td_scope_barrier_end();
    td_grad_mode_restore(depth);
    TD_EACH(i, b, in)
        b->grad_in[i] = td_adopt(b->grad_in[i]);
    if (!ok)
        td_fail(TD_ERROR_CALLBACK, custom->name,
                "the backward function failed without saying why");
}
/* hooks: functions that name nodes */
const char *td_node_name(const td_node *node)
{
    if (node->custom != NULL)
        return node->custom->name;
    return node->op ? td_op_name(node->op) : "a custom function";
}

const char *td_node_text(const td_node *node)
{
    char *text = td_self()->grad_fn_name;
    int at = 0;
    bool upper = true;
    for (const char *c = td_node_name(node); *c && at < 60; c++) {
        const int letter = (unsigned char)*c;
        if (letter != '_')
            text[at++] = (char)(upper ? toupper(letter) : letter);
        upper = *c == '_';
    }
    snprintf(text + at, sizeof td_self()->grad_fn_name - (size_t)at,
             "Backward%s", node->op ? "0" : "");
    return text;
}


const char *td_grad_fn_name(const td_tensor *x)
{
    int slot;
    td_node *node = td_requires_grad(x) ? td_hold_node(x, &slot) : NULL;
    const char *name = node != NULL ? td_node_text(node) : NULL;
    td_release(node);
    return name;
}

td_node *td_grad_fn(const td_tensor *x)
{
    int slot;
    return td_requires_grad(x) ? td_adopt(td_hold_node(x, &slot))
                               : NULL;
}

int td_node_count(const td_node *node)
{
    pthread_mutex_t *lock = td_lock(node);
    const int n = node->n_in;
    pthread_mutex_unlock(lock);
    return n;
}

td_next td_node_next(const td_node *node, int i)
{
    td_next next = { NULL, NULL, 0 };
    pthread_mutex_t *lock = td_lock(node);
    if (i >= 0 && i < node->n_in)
        next = (td_next){ td_retain(node->in[i].node),
                          td_retain(node->in[i].leaf),
                          node->in[i].slot };
    pthread_mutex_unlock(lock);
    next.node = td_adopt(next.node);
    next.leaf = td_adopt(next.leaf);
    return next;
}
