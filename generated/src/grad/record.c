/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "graph": edit that, not this file. */
/* Recording: nodes, edges, saved tensors. */
#include "grad/autograd.h"
#include "core/runtime.h"

/* graph: functions that take pointers from a handle */
pthread_mutex_t *td_lock(const void *object)
{
    const uintptr_t at = (uintptr_t)object / 64;
    pthread_mutex_t *lock = &td_process()->handle_locks
        [(at ^ at / TD_HANDLE_LOCKS) % TD_HANDLE_LOCKS];
    pthread_mutex_lock(lock);
    return lock;
}

td_node *td_hold_node(const td_tensor *x, int *slot)
{
    if (x->node == NULL)
        return NULL;
    pthread_mutex_t *lock = td_lock(x);
    td_node *node = td_retain(x->node);
    *slot = x->slot;
    pthread_mutex_unlock(lock);
    return node;
}

td_tensor *td_hold_grad(const td_tensor *x)
{
    /* tracing: look at the gradient of a trace */
    td_tensor **own = td_trace_slot(x, TD_TRACE_READ);
    if (own != NULL)
        return td_retain(*own);
    if (x->grad == NULL)
        return NULL;
    pthread_mutex_t *lock = td_lock(x);
    td_tensor *grad = td_retain(x->grad);
    pthread_mutex_unlock(lock);
    return grad;
}

/* Puts `new` in the place of `old`, if that is still there, and takes
   the reference over; otherwise false, and nothing has happened. */
bool td_swap_grad(td_tensor *x, td_tensor *old, td_tensor *new)
{
    /* tracing: swap the gradient of a trace */
    td_tensor **own = td_trace_slot(x, TD_TRACE_READ);
    if (own != NULL && *own == old) {
        *own = new;
        td_release(old);
        return true;
    }
    if (own != NULL || (td_self()->trace && td_failed()))
        return false;
    pthread_mutex_t *lock = td_lock(x);
    const bool still = x->grad == old;
    if (still)
        x->grad = new;
    pthread_mutex_unlock(lock);
    if (still)
        td_release(old);
    return still;
}
/* graph: function td_node_drop */
void td_node_drop(td_node *node)
{
    pthread_mutex_t *lock = td_lock(node);
    const int n_in = node->n_in;
    td_node *again = node->again;
    node->n_in = 0;
    node->again = NULL;
    node->released = true;
    pthread_mutex_unlock(lock);
    td_release(again);
    /* graph: give up what the edges and results hold */
    for (int i = 0; i < n_in; i++) {
        td_release(node->in[i].node);
        td_release(node->in[i].leaf);
        td_release(node->in[i].saved.tensor);
    }
    TD_EACH(k, node, out) {
        td_release(node->out[k].saved.tensor);
        node->out[k].saved.tensor = NULL;
    }
    td_custom_drop(node->custom);
    td_drop_hooks(&node->hooks);
}
/* graph: class of a node */
static void node_destroy(void *object)
{
    td_node *node = object;
    td_node_drop(node);
    td_release(node->custom);
}

static const td_class node_class = { "node", node_destroy,
                                     TD_COUNT_NODES };
/* graph: function td_node_new */
td_node *td_node_new(int n_in, int n_out, int n_attr, size_t room)
{
    const size_t bytes = sizeof(td_node)
        + (size_t)n_in * (sizeof(td_edge) + sizeof(td_tensor *))
        + (size_t)n_out * (sizeof(td_result) + sizeof(td_tensor *))
        + (size_t)n_attr * sizeof(td_value) + room;
    td_node *node = td_object_new_unscoped(&node_class, bytes);
    if (node == NULL)
        return NULL;
    node->n_in = n_in;
    node->n_out = n_out;
    node->n_attr = n_attr;
    /* graph: lay the arrays behind the node */
    node->in = (td_edge *)(node + 1);
    node->out = (td_result *)(node->in + n_in);
    node->attr = (td_value *)(node->out + n_out);
    node->grad = (td_tensor **)(node->attr + n_attr);
    node->grad_in = node->grad + n_out;
    /* inspection: note where a node was made */
    if (td_process()->anomaly)
        td_note_node(node);
    return node;
}
/* graph: function td_node_attach */
void td_node_attach(td_tensor *x, td_node *node, int slot)
{
    pthread_mutex_t *lock = td_lock(x);
    td_node *old = x->node;
    const int old_slot = x->slot;
    x->slot = slot;
    x->requires_grad = node != NULL;
    x->node = td_retain(node);
    pthread_mutex_unlock(lock);
    if (x->watched)
        td_watch(x, old, old_slot);
    td_release(old);
}
/* graph: function td_edge_connect */
void td_edge_connect(td_edge *edge, const td_tensor *x)
{
    edge->dtype = x->dtype;
    edge->device = td_device_of(x);
    edge->shape = td_shape_of(x);
    if (!x->requires_grad)
        return;
    edge->node = td_hold_node(x, &edge->slot);
    if (edge->node == NULL)
        edge->leaf = td_retain((td_tensor *)x);
}
/* graph: function td_save */
void td_save(td_saved *saved, td_tensor *x)
{
    saved->version = td_version_of(x);
    /* in-place: pack what is saved */
    if (x->quiet)
        x->quiet = false;
    /* inspection: pack what is saved */
    if (td_self()->packer != NULL) {
        saved->tensor = td_pack(x, NULL);
        return;
    }
    saved->tensor = td_retain(x);
}
/* graph: function td_save_result */
bool td_save_result(td_saved *saved, td_tensor *result, int slot)
{
    /* save-without-owning: exercise save-without-owning */
    td_scope_begin();
    td_tensor *alias = td_tensor_alias(result);
    if (alias != NULL)
        td_save(saved, alias);
    saved->result = 1 + slot;
    td_scope_end();
    return !td_failed();
}
/* graph: function td_unpack */
td_tensor *td_unpack(const td_backward_pass *b, const td_saved *saved,
                     const char *role, int index)
{
    char kind[TD_TEXT];
    td_tensor *x = saved->tensor;
    /* inspection: unpack what was packed */
    if (saved->tensor != NULL && td_is_packed(saved->tensor))
        return td_failed() ? NULL : td_unpack_by_hook(b, saved);
    if (td_failed())
        return NULL;
    /* graph: compare the versions */
    if (x == NULL)
        return td_fail(TD_ERROR_RUNTIME, td_node_name(b->node),
            "the rule asks for %s %d, which was not saved", role,
            index), NULL;
    if (td_version_of(x) != saved->version
        /* tracing: and no trace leaves it to the function */
        && td_trace_slot(x, TD_TRACE_STALE) == NULL
        )
        return td_fail(TD_ERROR_RUNTIME, "backward",
            "a tensor needed for the gradient of %s was modified in "
            "place: %s %d, %s, is at version %u, expected version %u",
            td_node_name(b->node), role, index, td_kind_text(kind, x),
            td_version_of(x), saved->version), NULL;
    if (saved->result == 0 || !b->create_graph
        || !td_dtype_is_floating(x->dtype))
        return x;
    td_tensor *again = td_tensor_alias(x);
    if (again != NULL)
        td_node_attach(again, b->node, saved->result - 1);
    return again;
}
/* graph: functions that unpack saved tensors */
td_tensor *td_saved_input(const td_backward_pass *b, int i)
{
    return td_unpack(b, &b->node->in[i].saved, "input", i);
}

td_tensor *td_saved_output(const td_backward_pass *b, int k)
{
    return td_unpack(b, &b->node->out[k].saved, "output", k);
}
/* graph: functions that a rule calls */
bool td_needs(const td_backward_pass *b, int i)
{
    return b->node->in[i].needed;
}

td_dims td_input_dims(const td_backward_pass *b, int i)
{
    return b->node->in[i].shape;
}

td_dtype td_input_dtype(const td_backward_pass *b, int i)
{
    return b->node->in[i].dtype;
}

td_device td_input_device(const td_backward_pass *b, int i)
{
    return b->node->in[i].device;
}

const td_value *td_attribute(const td_backward_pass *b, int i)
{
    return &b->node->attr[i];
}
/* graph: function td_operand */
td_value td_operand(const td_backward_pass *b, int i)
{
    const td_edge *edge = &b->node->in[i];
    if (edge->scalar.kind != TD_SCALAR_NONE)
        return td_v_scalar(edge->scalar);
    return td_v_tensor(td_saved_input(b, i));
}
/* hooks: function td_rule_of */
const td_rule_entry *td_rule_of(const td_op *op)
{
    const bool ours = op >= td_ops && op < td_ops + TD_OP_COUNT;
    return &td_rules[ours ? op - td_ops : TD_OP_COUNT];
}

bool td_op_differentiable(const td_op *op)
{
    return op != NULL && td_rule_of(op)->kind == TD_RULE_FUNCTION
        && !(td_rule_of(op)->saves[0] & MUTATES);
}
/* graph: functions that copy attributes */
size_t td_bytes_behind(const td_value *value)
{
    size_t bytes = 0;
    if (value->kind == TD_INTS)
        bytes = (size_t)value->as.ints.count * sizeof(int64_t);
    else if (value->kind == TD_STRING)
        bytes = strlen(value->as.string) + 1;
    return (bytes + 7) / 8 * 8;
}

td_value td_value_copy(const td_value *value, void *room)
{
    td_value copy = *value;
    if (copy.kind == TD_STRING)
        copy.as.string = strcpy(room, copy.as.string);
    else if (copy.kind == TD_INTS && copy.as.ints.count > 0)
        copy.as.ints.at = memcpy(room, copy.as.ints.at,
                                 td_bytes_behind(value));
    return copy;
}
/* graph: function td_saves */
bool td_any_requires_grad(const td_value *v)
{
    td_tensor *const *at;
    bool any = false;
    for (int k = 0, n = td_tensors_of(v, &at); k < n; k++)
        any |= at[k]->requires_grad;
    return any;
}

uint32_t td_saves(const td_op *op, const td_call *call)
{
    uint32_t saves = 0;
    for (int i = 0; i < call->n_in && i < TD_MASKS; i++)
        if (td_any_requires_grad(&call->in[i]))
            saves |= td_rule_of(op)->saves[i];
    return saves;
}
/* graph: function save_for_rule */
static bool save_for_rule(td_node *node, const td_call *call)
{
    const uint32_t saves = td_saves(call->op, call);
    for (int i = 0; i < call->n_in && i < 16; i++)
        if (saves & SAVES_INPUT(i) && call->in[i].kind == TD_TENSOR) {
            /* inspection: forget an operand */
            td_node *again = td_again(call->in[i].as.tensor);
            if (again != NULL) {
                node->in[i].saved.tensor = td_pack(call->in[i].as.tensor, again);
                continue;
            }
            td_save(&node->in[i].saved, call->in[i].as.tensor);
        }
    TD_EACH(k, call, out)
        if (saves & SAVES_OUTPUT(k) && call->out[k]) {
            /* inspection: forget a result */
            if (node->again != NULL) {
                node->out[k].saved.result = 1 + k;
                node->out[k].saved.tensor = td_pack(call->out[k],
                                                    td_retain(node->again));
                continue;
            }
            if (!td_save_result(&node->out[k].saved, call->out[k], k))
                return false;
        }
    return !td_failed();
}
/* graph: function td_record_call */
/* graph: function td_node_for a call */
td_node *td_node_for(const td_call *call)
{
    /* graph: count the operands and those in lists */
    int n_in = 0;
    size_t room = 0;
    TD_EACH(i, call, attr)
        room += td_bytes_behind(&call->attr[i]);
    TD_EACH(i, call, in)
        n_in += call->in[i].kind == TD_TENSORS
            ? call->in[i].as.tensors.count : 1;
    td_node *node = td_node_new(n_in, call->n_out, call->n_attr, room);
    if (node == NULL)
        return NULL;
    node->op = call->op;
    /* graph: copy the attributes */
    char *behind = (char *)(node->grad_in + n_in);
    TD_EACH(i, call, attr) {
        node->attr[i] = td_value_copy(&call->attr[i], behind);
        if (node->attr[i].kind == TD_GENERATOR)
            node->attr[i].kind = TD_NONE;
        behind += td_bytes_behind(&call->attr[i]);
    }
    /* graph: connect the operands */
    td_edge *edge = node->in;
    TD_EACH(i, call, in) {
        const td_value *in = &call->in[i];
        td_tensor *const *at;
        for (int j = 0, n = td_tensors_of(in, &at); j < n; j++)
            td_edge_connect(edge++, at[j]);
        if (in->kind != TD_TENSOR && in->kind != TD_TENSORS)
            edge++->scalar = in->kind == TD_SCALAR
                ? in->as.scalar : (td_scalar){ TD_SCALAR_NONE, { 0 } };
    }
    /* inspection: note how a large result is computed */
    td_note_recipe(node, call);
    if (save_for_rule(node, call))
        return node;
    td_release(node);
    return NULL;
}

bool td_record_call(td_call *call)
{
    td_node *node = td_node_for(call);
    /* graph: give the results their node */
    for (int k = 0; node != NULL && k < call->n_out; k++)
        if (call->out[k] && td_dtype_is_floating(call->out[k]->dtype)) {
            td_node_attach(call->out[k], node, k);
            /* inspection: look at a recorded result */
            if (td_process()->anomaly)
                td_look_at_result(call->out[k], node);
        }
    td_release(node);
    return node != NULL;
}
/* graph: function derives */
static bool derives(const td_call *call)
{
    bool real = false;
    TD_EACH(k, call, out) {
        const td_tensor *y = call->out[k];
        real |= y != NULL && td_dtype_is_floating(y->dtype);
        TD_EACH(i, call, in)
            if (call->in[i].kind == TD_TENSOR
                && call->in[i].as.tensor == y)
                return false;
    }
    return real;
}
/* graph: functions that mute */
bool td_mute(td_call *call, td_plan *plan)
{
    (void)call, (void)plan;
    td_self()->muted++;
    return true;
}

bool td_unmute(td_call *call, bool ok)
{
    (void)call;
    td_self()->muted--;
    return ok;
}
/* graph: functions that leave a record */
bool td_record_results(td_call *call, bool ok)
{
    td_unmute(call, ok);
    if (!ok || !derives(call))
        return ok;
    if (td_rule_of(call->op)->kind == TD_RULE_FUNCTION)
        return td_record_call(call);
    return td_fail(TD_ERROR_UNSUPPORTED, td_op_name(call->op),
                   "has no rule for its derivative; use detach or "
                   "no_grad if none is needed");
}
/* graph: function td_study_rule */
void td_study_rule(const td_op *op, td_traits *t)
{
    const td_rule_entry *rule = td_rule_of(op);
    const bool by_copy = rule->kind == TD_RULE_UNKNOWN && t->mutated;
    const int stage = by_copy ? TD_STAGE_compose
        : rule->kind == TD_RULE_NONE ? TD_STAGE_mute
        : rule->kind == TD_RULE_COMPOSITE ? TD_STAGE_compose
        : rule->saves[0] & MUTATES ? TD_STAGE_change : TD_STAGE_record;
    t->recorded = 1u << stage;
    t->always = rule->kind == TD_RULE_COMPOSITE ? t->recorded : 0;
    t->instead = by_copy ? td_change_by_copy : NULL;
}
/* graph: function td_wants_gradient */
bool td_wants_gradient(td_tensor *x, bool changed)
{
    return td_follow(x)->requires_grad || (changed && x->untracked);
}
/* graph: functions around the parts */
bool td_open_parts(td_call *call, td_plan *plan)
{
    (void)call, (void)plan;
    td_scope_begin();
    return !td_failed();
}

bool td_close_parts(td_call *call, bool ok)
{
    ok = ok && !td_failed();
    for (int k = 0; k < TD_MAX_RESULTS; k++)
        if (ok)
            td_keep(call->out[k]);
        else
            call->out[k] = NULL;
    td_scope_end();
    return ok;
}
