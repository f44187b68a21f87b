/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "inspection": edit that, not this file. */
/* Saved tensors that are kept as something else. */
#include "grad/autograd.h"
#include "core/runtime.h"
#include <treadle/treadle.h>

/* inspection: struct td_packer */
typedef struct td_packer {
    td_object object;
    struct td_packer *outer;    /* strong */
    td_saved_hooks hooks;
} td_packer;

TD_CLASS(packer, td_packer, p)
{
    td_release(p->outer);
    td_free_context(p->hooks.free_context, p->hooks.context);
}
/* inspection: struct td_packed */
typedef struct {
    td_object object;
    td_packer *by;              /* strong */
    void *value;
    td_node *again;             /* strong: or what computes it */
    td_edge was;                /* the operand, but for saved */
} td_packed;

TD_CLASS(packed, td_packed, p)
{
    if (p->value != NULL)
        td_free_context(p->by->hooks.free_packed, p->value);
    td_release(p->by);
    td_release(p->again);
    td_release(p->was.node);
    td_release(p->was.leaf);
}
/* inspection: functions that compute again */
enum { WORTH = 1 << 14, STEPS = 3 };    /* elements, operators */

static bool add_part(td_node *r, td_edge *edge, const td_value *v)
{
    edge->scalar = v->as.scalar;
    if (v->kind != TD_TENSOR)
        return true;
    td_tensor *x = v->as.tensor;
    const bool hidden = x->storage->hidden;
    edge->scalar.kind = TD_SCALAR_NONE;
    edge->shape = td_shape_of(x);
    edge->node = td_again(x);
    if (edge->node != NULL && edge->node->cursor >= r->cursor)
        r->cursor = edge->node->cursor + 1;
    else if (!edge->node && (hidden || td_numel(x) < WORTH / 4)) {
        x = hidden || td_self()->symbolic ? td_tensor_alias(x)
                                           : td_copied(x, x->dtype);
        if (x != NULL)
            td_save(&edge->saved, x);
    }
    return r->cursor <= STEPS && (edge->node || edge->saved.tensor);
}
void td_note_recipe(td_node *node, const td_call *call)
{
    const td_tensor *y = call->out[0];
    bool may = td_numel(y) >= WORTH
        && (td_is(call, add) || td_is(call, mul) || td_is(call, relu)
            || td_is(call, silu) || td_is(call, gelu_erf)
            || td_is(call, to) || td_is(call, addcmul))
        && td_self()->packer == NULL && td_is_contiguous(y);
    td_node *r = may ? td_node_new(call->n_in, 1, call->n_attr, 0)
                     : NULL;
    td_scope_begin();
    for (int i = 0; r != NULL && may && i < call->n_in; i++)
        may = add_part(r, &r->in[i], &call->in[i]);
    td_scope_end();
    if (may && !td_failed()) {
        r->op = call->op;
        TD_EACH(i, call, attr)
            r->attr[i] = call->attr[i];     /* no lists, no text */
        node->again = r;
    } else
        td_release(r);
}
/* What makes operand 0 of `node`, or its result again, for `node`. */
static td_node *exchanged(td_node *node, bool again)
{
    pthread_mutex_t *lock = td_lock(node);
    td_node *other = td_retain(again ? node->again
                     : node->n_in > 0 ? node->in[0].node : NULL);
    pthread_mutex_unlock(lock);
    td_release(node);
    return other;
}

td_node *td_again(const td_tensor *x)
{
    int slot;
    bool may = td_numel(x) >= WORTH && td_self()->packer == NULL
            && !x->storage->shown && td_version_of(x) == 0
            && td_is_contiguous(x);
    td_node *node = may ? td_hold_node(x, &slot) : NULL;
    while (node && (td_is(node, view) || td_is(node, reshape)))
        node = exchanged(node, false);
    return node ? exchanged(node, true) : NULL;
}
static td_tensor *compute_again(td_node *r)
{
    td_value in[3];             /* none of the cheap has more */
    TD_EACH(i, r, in) {
        const td_edge *edge = &r->in[i];
        in[i] = edge->scalar.kind != TD_SCALAR_NONE
              ? td_v_scalar(edge->scalar)
              : td_v_tensor(edge->saved.tensor
                  ? td_saved_input(&(td_backward_pass){ .node = r }, i)
                  : td_reshape(compute_again(edge->node), edge->shape));
    }
    td_call call = { .op = r->op, .n_in = r->n_in, .in = in,
                     .n_attr = r->n_attr, .attr = r->attr };
    return !td_failed() && td_run(&call) ? call.out[0] : NULL;
}
static td_tensor *computed(td_node *r)
{
    td_saved *kept = &r->out[0].saved;
    pthread_mutex_t *lock = td_lock(r);
    td_tensor *y = td_retain(kept->tensor);
    pthread_mutex_unlock(lock);
    y = td_adopt(y);
    if (y && td_version_of(y) == 0 && !y->storage->shown)
        return y;
    td_no_grad_begin();
    td_tensor *fresh = compute_again(r);
    td_no_grad_end();
    if (y || !fresh || td_self()->symbolic || td_object_count(r) == 1)
        return fresh;
    lock = td_lock(r);
    if (kept->tensor == NULL)
        kept->tensor = td_retain(fresh);
    pthread_mutex_unlock(lock);
    return fresh;
}
/* inspection: function td_pack */
void *td_pack(td_tensor *x, td_node *again)
{
    td_packer *by = again ? NULL : td_self()->packer;
    td_packed *p = td_object_new_unscoped(&packed_class, sizeof *p);
    if (p == NULL) {
        td_release(again);
        return NULL;
    }
    p->by = td_retain(by);
    td_edge_connect(&p->was, x);
    p->again = again;
    if (again != NULL)
        return p;
    const int depth = td_self()->grad_depth;
    const unsigned version = x->storage->version;
    td_scope_begin();
    td_no_grad_begin();
    td_tensor *plain = x->storage->hidden && !td_self()->symbolic
        ? td_copied(x, x->dtype) : td_tensor_alias(x);
    td_scope_barrier_begin();
    p->value = plain ? by->hooks.pack(by->hooks.context, plain) : NULL;
    td_scope_barrier_end();
    if (p->value == NULL)
        td_fail(TD_ERROR_CALLBACK, "pack", "the hook kept nothing");
    if (version != x->storage->version)
        td_fail(TD_ERROR_RUNTIME, "pack", "A saved tensor pack hook "
                "is modifying its input in place.");
    td_scope_end();
    td_grad_mode_restore(depth);
    return p;
}

bool td_is_packed(const void *saved)
{
    return ((const td_object *)saved)->class == &packed_class;
}
/* inspection: function td_unpack_by_hook */
static td_tensor *call_unpack(const td_packed *p)
{
    if (p->again != NULL)
        return td_reshape(computed(p->again), p->was.shape);
    const td_saved_hooks *hooks = &p->by->hooks;
    const int depth = td_self()->grad_depth;
    td_scope_barrier_begin();
    td_tensor *x = hooks->unpack(hooks->context, p->value);
    td_scope_barrier_end();
    td_grad_mode_restore(depth);
    x = td_adopt(x);
    /* inspection: compare what came out with what went in */
    char got[TD_SHAPE_TEXT], expected[TD_SHAPE_TEXT];
    const td_dims shape = td_shape_of(x);
    const td_edge *was = &p->was;
    if (x == NULL)
        td_fail(TD_ERROR_CALLBACK, "unpack", "the hook returned no tensor");
    else if (x->dtype != was->dtype || !td_dims_equal(&shape, &was->shape))
        td_fail(TD_ERROR_RUNTIME, "unpack hook", "it returned %s %s, but "
                "what was packed is %s %s",
                td_dtype_name(x->dtype), td_dims_text(&shape, got),
                td_dtype_name(was->dtype),
                td_dims_text(&was->shape, expected));
    return x;
}

td_tensor *td_unpack_by_hook(const td_backward_pass *b,
                             const td_saved *saved)
{
    const td_packed *p = (const td_packed *)(const void *)saved->tensor;
    td_node *node = saved->result ? b->node : p->was.node;
    td_tensor *x = call_unpack(p);
    if (td_failed() || !b->create_graph
        || !td_dtype_is_floating(x->dtype))
        return td_failed() ? NULL : x;
    if (node == NULL)
        return p->was.leaf ? p->was.leaf : x;
    x = td_tensor_alias(x);
    if (x != NULL)
        td_node_attach(x, node, saved->result ? saved->result - 1
                                              : p->was.slot);
    return x;
}
/* inspection: functions that open and close saving hooks */
bool td_saved_hooks_begin(td_saved_hooks hooks)
{
    td_packer *p = td_object_new_unscoped(&packer_class, sizeof *p);
    if (p == NULL) {
        td_free_context(hooks.free_context, hooks.context);
        return false;
    }
    p->hooks = hooks;
    p->outer = td_self()->packer;
    td_self()->packer = p;
    return true;
}

void td_saved_hooks_end(void)
{
    td_packer *p = td_self()->packer;
    if (p == NULL) {
        td_fail(TD_ERROR_RUNTIME, "saved_hooks_end", "no pair is open");
        return;
    }
    td_self()->packer = td_retain(p->outer);
    td_release(p);
}
