/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "tracing": edit that, not this file. */
/* Traces: the outermost stage of a call. */
#include "grad/autograd.h"
#include "compiler/ir.h"

typedef struct td_trace td_trace;

/* tracing: struct td_seen */
typedef struct {
    td_tensor view;         /* storage strong: address stays taken */
    uint32_t version;
    int value;
    int next;               /* older one in the same bucket, or -1 */
} td_seen;

/* tracing: struct td_trace */
enum { TD_SEEN_BUCKETS = 4096 };

typedef struct {
    td_tensor *tensor;      /* strong: a weight with a gradient */
    td_tensor *before;      /* strong: that, when first seen */
    td_tensor *now;         /* strong: its gradient in this trace */
    int uses;               /* of its gradient, up to the first set */
    bool requires_grad;     /* the weight, when first seen */
} td_trace_leaf;

struct td_trace {
    td_program *program;    /* strong */
    td_suspended outer;     /* the trace that this one interrupts */
    bool symbolic;
    int depth;              /* recorded operators that are running */
    bool open;              /* the newest step waits for its results */
    int n_seen, seen_room, n_leaves, leaf_room;
    td_seen *seen;
    td_trace_leaf *leaf;
    int bucket[TD_SEEN_BUCKETS];
};

/* tracing: functions that remember tensors */
static int bucket_of(const td_storage *storage)
{
    return (int)((uintptr_t)storage / 64 % TD_SEEN_BUCKETS);
}

bool td_ir_same_layout(const td_tensor *a, const td_tensor *b)
{
    const size_t bytes = (size_t)a->rank * sizeof *a->shape;
    return a->rank == b->rank && a->offset == b->offset
        && memcmp(a->shape, b->shape, bytes) == 0
        && memcmp(a->strides, b->strides, bytes) == 0;
}

static bool same_view(const td_tensor *a, const td_tensor *b)
{
    return a->storage == b->storage && a->dtype == b->dtype
        && td_ir_same_layout(a, b);
}
static bool remember(td_trace *t, const td_tensor *x, int value)
{
    td_seen *s = value < 0 ? NULL
        : td_ir_more(&t->seen, &t->n_seen, &t->seen_room, sizeof *s);
    if (s == NULL)
        return false;
    const int b = bucket_of(x->storage);
    *s = (td_seen){ td_look(x), td_version_of(x), value,
                    t->bucket[b] - 1 };
    td_storage_retain(x->storage);
    t->bucket[b] = t->n_seen;
    return true;
}
/* The newest look at the view of x, or at any view of its memory; of
   the looks that came from outside, the oldest. */
static const td_seen *find_look(const td_trace *t, const td_tensor *x,
                                bool any, bool outside)
{
    const td_seen *found = NULL;
    int i = t->bucket[bucket_of(x->storage)] - 1;
    for (; i >= 0 && (outside || !found); i = t->seen[i].next) {
        const td_seen *s = &t->seen[i];
        if ((any ? s->view.storage == x->storage
                 : same_view(&s->view, x)) && !(outside
            && t->program->value[s->value].origin == TD_IR_RESULT))
            found = s;
    }
    return found;
}

static const td_seen *find_seen(const td_trace *t, const td_tensor *x)
{
    return find_look(t, x, false, false);
}
static int capture(td_trace *t, const td_op *op, td_tensor *x)
{
    if (x->storage->data == NULL) {
        td_fail(TD_ERROR_RUNTIME, op ? op->name : "return",
                "a tensor of another trace has no value here");
        return -1;
    }
    td_ir_value value = td_ir_describe(x, TD_IR_CAPTURED);
    const int v = td_ir_value_new(t->program, value);
    if (!remember(t, x, v))
        return -1;
    t->program->value[v].tensor = td_retain(x);
    return v;
}
static td_trace_leaf *leaf_of(td_trace *t, td_tensor *x)
{
    TD_EACH(i, t, leaves)
        if (t->leaf[i].tensor == x)
            return &t->leaf[i];
    td_trace_leaf *leaf = td_ir_more(&t->leaf, &t->n_leaves,
                                     &t->leaf_room, sizeof *leaf);
    if (leaf == NULL)
        return NULL;
    pthread_mutex_t *lock = td_lock(x);
    *leaf = (td_trace_leaf){ .tensor = td_retain(x),
                             .before = td_retain(x->grad),
                             .now = td_retain(x->grad),
                             .requires_grad = x->requires_grad };
    pthread_mutex_unlock(lock);
    return leaf;
}
static int value_of(td_trace *t, const td_op *op, td_tensor *x)
{
    if (x->quiet)
        x->quiet = false;
    if (t->symbolic && x->requires_grad && x->node == NULL
        && x->storage->data != NULL && leaf_of(t, x) == NULL)
        return -1;
    const td_seen *s = find_seen(t, x);
    if (s != NULL && s->version == td_version_of(x))
        return s->value;
    const td_seen *any = find_look(t, x, true, false);
    if (s != NULL || (any && (any->version != td_version_of(x)
                              || x->storage->data == NULL))) {
        td_fail(TD_ERROR_UNSUPPORTED, op ? op->name : "return",
                "a tensor was changed in place through another view of "
                "it; that cannot be traced");
        return -1;
    }
    return capture(t, op, x);
}

/* tracing: function begin_step */
static void begin_step(td_trace *t, const td_call *call)
{
    td_program *p = t->program;
    td_tensor *const *at;
    int tensors = 0;
    TD_EACH(i, call, in)
        tensors += td_tensors_of(&call->in[i], &at);
    td_ir_step *step = td_ir_step_new(p, call->op, call->n_in,
                                      call->n_attr, tensors);
    t->open = step != NULL;
    for (int i = 0; i < call->n_in && !td_failed(); i++) {
        /* tracing: write down one operand of the call */
        const int n = td_tensors_of(&call->in[i], &at);
        step->in[i] = (td_ir_operand){ .kind = call->in[i].kind,
                                       .values = step->value + step->n_values,
                                       .count = n };
        if (call->in[i].kind == TD_SCALAR)
            step->in[i].scalar = call->in[i].as.scalar;
        for (int k = 0; k < n; k++)
            step->value[step->n_values++] = value_of(t, call->op, at[k]);
    }
    for (int i = 0; i < call->n_attr && !td_failed(); i++)
        step->attr[i] = td_ir_attribute(p, &call->attr[i]);
    if (td_traits_of(call->op)->random)
        td_fail(TD_ERROR_UNSUPPORTED, td_op_name(call->op), "random "
                "numbers cannot be traced; draw them before and pass "
                "them in");
}

/* tracing: function td_trace_enter */
bool td_trace_enter(td_call *call, td_plan *plan)
{
    td_trace *t = td_self()->trace;
    if (t->depth++ == 0)
        begin_step(t, call);
    (void)plan;
    return !td_failed();
}

/* tracing: function new_result */
static bool new_result(td_trace *t, td_ir_step *step, td_tensor *x)
{
    const td_seen *known = find_seen(t, x);
    const int v = td_ir_value_new(t->program,
                                  td_ir_describe(x, TD_IR_RESULT));
    step->out[step->n_out++] = v;
    return known != NULL && known->version == td_version_of(x)
        ? v >= 0 : remember(t, x, v);
}

/* tracing: function td_trace_leave */
bool td_trace_leave(td_call *call, bool ok)
{
    td_trace *t = td_self()->trace;
    if (--t->depth > 0 || !t->open)
        return ok;
    t->open = false;
    td_ir_step *step = &t->program->step[t->program->n_steps - 1];
    const unsigned mutated = td_traits_of(call->op)->mutated;
    step->op = call->op, step->n_in = call->n_in;
    if (!ok)
        t->program->n_steps--;
    /* tracing: write down what an update changes */
    for (int i = 0; ok && i < call->n_in; i++)
        if (mutated >> i & 1 && call->in[i].kind == TD_TENSOR) {
            td_tensor *x = call->in[i].as.tensor;
            t->program->eager |= find_look(t, x, true, true)
                              && !find_look(t, x, false, true);
            ok = new_result(t, step, x);
        }
    for (int k = 0; ok && !mutated && k < TD_MAX_RESULTS
                    && call->out[k]; k++)
        ok = new_result(t, step, call->out[k]);
    return ok;
}

/* tracing: function trace_reads */
static int captured(td_trace *t, td_tensor *x, bool any)
{
    const td_seen *old = find_look(t, x, any, true);
    return old ? old->value : value_of(t, NULL, x);
}

static bool trace_reads(const td_tensor *x)
{
    td_trace *t = td_self()->trace;
    const int v = captured(t, (td_tensor *)x, true);
    td_ir_value *value = &t->program->value[v];
    return v >= 0 && (value->read = true)
        && value->version == td_version_of(x);
}


/* tracing: functions that suspend a trace */
td_suspended td_trace_suspend(void)
{
    td_thread *self = td_self();
    const td_suspended s = { self->trace, self->symbolic,
                             self->watched };
    td_trace_resume((td_suspended){ NULL, false, false });
    return s;
}

void td_trace_resume(td_suspended s)
{
    td_thread *self = td_self();
    self->trace = s.trace;
    self->reads = s.trace && s.symbolic ? trace_reads : NULL;
    self->symbolic = s.symbolic;
    self->watched = s.watched;
}

/* tracing: function td_trace_begin */
bool td_trace_begin(bool symbolic)
{
    td_trace *t = td_failed() ? NULL : td_alloc(sizeof *t);
    if (t == NULL)
        return false;
    td_scope_barrier_begin();
    t->program = td_program_new();
    td_scope_barrier_end();
    if (t->program == NULL) {
        td_free(t, sizeof *t);
        return false;
    }
    t->outer = td_trace_suspend();
    t->symbolic = symbolic;
    td_trace_resume((td_suspended){ t, symbolic, true });
    return true;
}

/* tracing: function td_trace_input */
td_tensor *td_trace_input(td_dims shape, td_dtype dtype,
                          td_device device)
{
    td_trace *t = td_self()->trace;
    if (t == NULL)
        td_fail(TD_ERROR_RUNTIME, "trace_input", "no trace is open");
    if (td_failed())
        return NULL;
    td_tensor *x = td_tensor_new(shape, dtype, device);
    if (x == NULL)
        return NULL;
    const int v = td_ir_value_new(t->program,
                                  td_ir_describe(x, TD_IR_INPUT));
    if (remember(t, x, v))
        return x;
    td_discard(x);
    return NULL;
}

/* tracing: function td_trace_slot */
td_tensor **td_trace_slot(const td_tensor *x, td_trace_use use)
{
    td_trace *t = td_self()->trace;
    td_trace_leaf *leaf = t && t->symbolic && x->storage->data
                        ? leaf_of(t, (td_tensor *)x) : NULL;
    if (leaf && use == TD_TRACE_STALE)
        t->program->eager = true;
    else if (leaf && !(leaf->uses & TD_TRACE_SET))
        leaf->uses |= use;
    return leaf ? &leaf->now : NULL;
}

/* tracing: function find_updates */
static void find_updates(td_trace *t)
{
    /* finding-updates: exercise finding-updates */
    for (int i = 0; i < t->n_seen; i++) {
        const td_seen *s = &t->seen[i], *newest = find_seen(t, &s->view);
        if (newest->version != s->version
            && t->program->value[s->value].origin != TD_IR_RESULT)
            t->program->value[s->value].update = newest->value;
    }
}

/* tracing: function td_trace_update */
void td_trace_update(td_tensor *old, td_tensor *now)
{
    td_trace *t = td_self()->trace;
    const int v = value_of(t, NULL, old), u = value_of(t, NULL, now);
    if (v >= 0 && u >= 0)
        t->program->value[v].update = u;
}

/* tracing: function find_gradient */
static int own_value(td_trace *t, td_tensor *x)
{
    const int v = captured(t, x, false);
    const bool own = v >= 0 && t->program->value[v].tensor == x;
    t->program->eager |= !own || t->program->value[v].read;
    return own ? v : -1;
}

static void find_gradient(td_trace *t, td_trace_leaf leaf)
{
    td_program *p = t->program;
    td_tensor *x = leaf.tensor, *before = leaf.before;
    if (td_object_count(x) == 1)
        return;
    if (leaf.requires_grad != x->requires_grad)
        p->eager = td_set_requires_grad(x, leaf.requires_grad);
    td_ir_gradient *g = td_ir_gradient_new(p, own_value(t, x));
    if (g == NULL)
        return;
    p->value[g->of].requires_grad = leaf.requires_grad;
    if (leaf.uses & TD_TRACE_READ)
        g->from = before ? own_value(t, before) : TD_IR_ABSENT;
    if (g->from >= 0) {
        p->value[g->from].origin = TD_IR_GRADIENT;
        p->value[g->from].tensor = NULL;
        td_release(before);
    }
    if (!(leaf.uses & TD_TRACE_SET) && leaf.now == before)
        return;
    g->to = leaf.now ? value_of(t, NULL, leaf.now) : TD_IR_ABSENT;
    if (g->to < 0)
        return;
    p->eager |= find_look(t, leaf.now, true, true) != NULL;
    remember(t, leaf.now, g->of);
    p->output[p->n_outputs++] = g->to;
}

/* tracing: function td_trace_end */
td_program *td_trace_end(td_tensor *const *outputs, int n)
{
    td_trace *t = td_self()->trace;
    if (t == NULL) {
        td_fail(TD_ERROR_RUNTIME, "trace_end", "no trace is open");
        return NULL;
    }
    td_program *p = t->program;
    p->output = td_failed() ? NULL
              : td_ir_keep(p, (size_t)(n + t->n_leaves)
                              * sizeof *p->output);
    for (int k = 0; k < n && !td_failed(); k++)
        p->output[p->n_outputs++] = value_of(t, NULL, outputs[k]);
    p->n_returned = p->n_outputs;
    const int leaves = t->n_leaves;
    for (int i = 0; i < leaves && !td_failed(); i++)
        find_gradient(t, t->leaf[i]);
    if (!td_failed())
        find_updates(t);
    /* tracing: close the trace */
    td_trace_resume(t->outer);
    TD_EACH(i, t, seen)
        td_storage_release(t->seen[i].view.storage);
    TD_EACH(i, t, leaves) {
        td_release(t->leaf[i].tensor);
        td_release(t->leaf[i].before);
        td_release(t->leaf[i].now);
    }
    TD_FREE_ARRAY(t->leaf, t->leaf_room);
    TD_FREE_ARRAY(t->seen, t->seen_room);
    td_free(t, sizeof *t);
    if (!td_failed())
        return td_adopt(p);
    td_release(p);
    return NULL;
}
