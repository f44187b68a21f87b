/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "inspection": edit that, not this file. */
/* Saved tensors that are kept as something else. */
#include "grad/autograd.h"
#include "core/runtime.h"
#include <treadle/functional.h>

/* inspection: struct td_packer */
typedef struct td_packer {
    td_object object;
    struct td_packer *outer;    /* strong */
    td_saved_hooks hooks;
} td_packer;

static void packer_destroy(void *object)
{
    td_packer *p = object;
    td_release(p->outer);
    td_free_context(p->hooks.free_context, p->hooks.context);
}

static const td_class packer_class = { "saving hooks", packer_destroy,
                                       TD_COUNT_OTHERS };
/* inspection: struct td_packed */
typedef struct {
    td_object object;
    td_packer *by;              /* strong */
    void *value;
    td_edge was;                /* the operand, but for saved */
} td_packed;

static void packed_destroy(void *object)
{
    td_packed *p = object;
    if (p->value != NULL)
        td_free_context(p->by->hooks.free_packed, p->value);
    td_release(p->by);
    td_release(p->was.node);
    td_release(p->was.leaf);
}

static const td_class packed_class = { "packed tensor", packed_destroy,
                                       TD_COUNT_OTHERS };
/* inspection: function td_pack */
void *td_pack(td_tensor *x)
{
    td_packer *by = td_self()->packer;
    td_packed *p = td_object_new_unscoped(&packed_class, sizeof *p);
    if (p == NULL)
        return NULL;
    p->by = td_retain(by);
    td_edge_connect(&p->was, x);
    const int depth = td_self()->grad_depth;
    const unsigned version = x->storage->version;
    td_scope_begin();
    td_no_grad_begin();
    td_tensor *plain = td_tensor_alias(x);
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
static bool looks_as_packed(const td_packed *p, const td_tensor *x)
{
    char got[TD_SHAPE_TEXT], expected[TD_SHAPE_TEXT];
    const td_dims shape = td_shape_of(x);
    if (x == NULL)
        return td_fail(TD_ERROR_CALLBACK, "unpack",
                       "the hook returned no tensor");
    const td_edge *was = &p->was;
    return (x->dtype == was->dtype
            && td_dims_equal(&shape, &was->shape))
        || td_fail(TD_ERROR_RUNTIME, "unpack hook", "it returned %s "
                   "%s, but what was packed is %s %s",
                   td_dtype_name(x->dtype), td_dims_text(&shape, got),
                   td_dtype_name(was->dtype),
                   td_dims_text(&was->shape, expected));
}
static td_tensor *call_unpack(const td_packed *p)
{
    const td_saved_hooks *hooks = &p->by->hooks;
    const int depth = td_self()->grad_depth;
    td_scope_barrier_begin();
    td_tensor *x = hooks->unpack(hooks->context, p->value);
    td_scope_barrier_end();
    td_grad_mode_restore(depth);
    x = td_adopt(x);
    return looks_as_packed(p, x) ? x : NULL;
}

td_tensor *td_unpack_by_hook(const td_backward_pass *b,
                             const td_saved *saved)
{
    const td_packed *p = (const td_packed *)(const void *)saved->tensor;
    td_node *node = saved->result ? b->node : p->was.node;
    td_tensor *x = call_unpack(p);
    if (td_failed() || !b->create_graph)
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
