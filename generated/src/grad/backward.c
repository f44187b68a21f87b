/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "backward": edit that, not this file. */
/* The backward pass: claim, count, sweep. */
#include "grad/autograd.h"
#include "core/runtime.h"
#include <treadle/treadle.h>

/* backward: struct td_sink */
typedef struct td_sink {
    td_tensor *leaf;            /* strong */
    td_tensor *grad;            /* strong: the sum so far, or NULL */
    int pending;                /* gradients still to come */
    struct td_sink *next;
} td_sink;
/* backward: struct port */
typedef struct port {           /* where gradients enter, or leave */
    td_tensor *of;              /* borrowed: a root, or asked about */
    td_node *node;              /* strong: what made it; NULL: a leaf */
    int slot;
    td_sink *sink;              /* of a leaf: what it collects in */
    td_tensor *grad;            /* strong: captured here, or NULL */
} port;
/* backward: struct td_pass */
typedef struct td_pass {
    td_node *claimed;           /* all nodes of this pass */
    td_node *path;              /* the walk's stack */
    td_node *ready;             /* nodes with nothing pending */
    td_sink *sinks;             /* leaves of this pass */
    port *roots, *captures;     /* captures: of td_grad, or NULL */
    int n_roots, n_captures;
    bool retain, create;
    bool pour;                  /* captured gradients go to .grad */
    bool inputs_end;            /* nothing behind a captured node */
    bool beyond;                /* it met a leaf not asked for */
} td_pass;
/* backward: functions on ports */
static port *open_ports(const char *operation, int n,
                        td_tensor *const *tensors)
{
    port *ports = TD_ARRAY(ports, n + 1);
    bool ok = ports != NULL;
    for (int i = 0; ok && i < n; i++) {
        ok = td_is_tensor(operation, tensors[i]);
        ports[i].of = tensors[i];
        if (ok)
            ports[i].node = td_hold_node(tensors[i], &ports[i].slot);
    }
    return ports;
}

static void close_ports(port *ports, int n)
{
    for (int i = 0; ports != NULL && i < n; i++) {
        td_release(ports[i].node);
        td_release(ports[i].grad);
    }
    TD_FREE_ARRAY(ports, n + 1);
}
/* backward: function replace */
static void replace(td_tensor **old, td_tensor *new)
{
    td_release(*old);
    *old = new;
}
/* backward: function claim */
static bool claim(td_pass *pass, td_node *node)
{
    td_pass *owner = NULL;
    if (!atomic_compare_exchange_strong(&node->pass, &owner, pass))
        return owner == pass || td_fail(TD_ERROR_RUNTIME, "backward",
            "another backward pass is running over this graph (at %s)",
            td_node_name(node));
    td_retain(node);
    node->cursor = node->pending = 0;
    node->visited = node->captured = node->runs = false;
    node->previous = NULL;
    node->next = pass->claimed;
    if (node->next != NULL)
        node->next->previous = node;
    pass->claimed = node;
    return true;
}
/* backward: function unclaim */
static void clear_gradients(td_node *node)
{
    TD_EACH(i, node, in)
        replace(&node->grad_in[i], NULL);
    TD_EACH(k, node, out)
        replace(&node->grad[k], NULL);
}

static void unclaim(td_pass *pass, td_node *node)
{
    clear_gradients(node);
    if (node->previous != NULL)
        node->previous->next = node->next;
    else
        pass->claimed = node->next;
    if (node->next != NULL)
        node->next->previous = node->previous;
    node->pass = NULL;
    td_release(node);
}
/* backward: functions is_new and enter */
static bool is_new(td_pass *pass, td_node *node)
{
    return node != NULL
        && (node->pass != pass || !node->visited);
}

static bool enter(td_pass *pass, td_node *node)
{
    if (!claim(pass, node))
        return false;
    if (node->visited)
        return true;
    if (node->released && !node->captured)
        return td_fail(TD_ERROR_RUNTIME, "backward",
                   "trying to go backward through the graph a second time (at %s): "
                   "its saved tensors were freed by the first pass; give that one "
                   "retain_graph", td_node_name(node));
    node->visited = true;
    if (pass->inputs_end && node->captured)
        node->cursor = node->n_in;
    node->below = pass->path;
    pass->path = node;
    return true;
}
/* backward: function td_lock_leaves */
pthread_mutex_t *td_lock_leaves(void)
{
    pthread_mutex_t *lock = &td_process()->leaf_lock;
    pthread_mutex_lock(lock);
    return lock;
}
/* backward: functions that make sinks */
static td_sink *make_sink(td_pass *pass, td_tensor *leaf)
{
    td_sink *sink = leaf->sink ? leaf->sink : td_alloc(sizeof *sink);
    if (sink == NULL || leaf->sink != NULL)
        return sink;
    sink->leaf = td_retain(leaf);
    sink->next = pass->sinks;
    pass->sinks = sink;
    return leaf->sink = sink;
}

static bool find_sink(td_pass *pass, td_tensor *leaf, td_sink **sink)
{
    *sink = pass->captures ? leaf->sink : make_sink(pass, leaf);
    pass->beyond = pass->beyond || *sink == NULL;
    return *sink != NULL || pass->captures != NULL;
}
/* backward: function settle */
/* backward: function wanted of a node */
static bool wanted(const td_node *node)
{
    return node->runs || node->captured;
}

static bool settle(td_pass *pass, td_node *node, td_edge *edge)
{
    edge->needed = edge->node != NULL && wanted(edge->node);
    if (edge->needed)
        edge->node->pending++;
    if (edge->leaf != NULL) {
        if (!find_sink(pass, edge->leaf, &edge->sink))
            return false;
        edge->needed = edge->sink != NULL;
        if (edge->needed)
            edge->sink->pending++;
    }
    node->runs = node->runs || edge->needed;
    return true;
}
/* backward: function walk */
static bool walk(td_pass *pass, td_node *root)
{
    if (!enter(pass, root))
        return false;
    while (pass->path != NULL) {
        td_node *node = pass->path;
        td_edge *edge = &node->in[node->cursor];
        if (node->cursor == node->n_in) {
            pass->path = node->below;
        } else if (is_new(pass, edge->node)) {
            if (!enter(pass, edge->node))
                return false;
        } else if (!settle(pass, node, edge)) {
            return false;
        } else {
            node->cursor++;
        }
    }
    return true;
}
/* backward: function discover */
static bool discover(td_pass *pass)
{
    pthread_mutex_t *lock = td_lock_leaves();
    bool ok = true;
    /* backward: claim what is asked about */
    for (int i = 0; ok && i < pass->n_captures; i++) {
        port *c = &pass->captures[i];
        if (c->node == NULL)
            ok = (c->sink = make_sink(pass, c->of)) != NULL;
        else if ((ok = claim(pass, c->node)))
            c->node->captured = true;
    }
    for (int i = 0; ok && i < pass->n_roots; i++) {
        port *root = &pass->roots[i];
        if (root->node == NULL)
            ok = !root->of->requires_grad
              || find_sink(pass, root->of, &root->sink);
        else if (is_new(pass, root->node))
            ok = walk(pass, root->node);
    }
    for (td_sink *sink = pass->sinks; sink; sink = sink->next)
        sink->leaf->sink = NULL;
    pthread_mutex_unlock(lock);
    return ok;
}
/* backward: function is_ours */
static bool is_ours(const td_tensor *x, int shares)
{
    return td_object_count(x) == shares
        && x->storage->count == 1 && x->storage->release == NULL
        && x->node == NULL && td_is_contiguous(x);
}
/* backward: function td_sum_so_far */
td_tensor *td_sum_so_far(const td_backward_pass *b, int i)
{
    const td_edge *edge = &b->node->in[i];
    if (b->create_graph || !edge->needed)
        return NULL;
    td_tensor *sum = edge->leaf ? edge->sink->grad
                                : edge->node->grad[edge->slot];
    return sum != NULL && is_ours(sum, 1) ? sum : NULL;
}
bool td_is_spare(const td_backward_pass *b, const td_tensor *x)
{
    return x != NULL && is_ours(x, 1) && !b->node->pass->retain
        && td_device_of(x).kind == TD_DEVICE_CPU;
}
/* backward: function add_to */
static bool add_to(const td_pass *pass, td_tensor **sum,
                   td_tensor *grad)
{
    if (grad == NULL)
        return true;
    if (*sum == NULL) {
        *sum = grad;
        return true;
    }
    td_scope_begin();
    td_tensor *both = !pass->create && is_ours(*sum, 1)
        ? td_add_(*sum, grad) : td_add(*sum, grad);
    if (both != NULL)
        replace(sum, td_retain(both));
    td_scope_end();
    td_release(grad);
    return !td_failed();
}
/* backward: function add_to_leaf */
static bool add_to_leaf(const td_pass *pass, td_tensor *x,
                        td_tensor *grad)
{
    bool done = false;
    while (!done && !td_failed()) {
        td_tensor *sum = NULL;
        /* backward: add in place if nobody else can see it */
        pthread_mutex_t *lock = td_lock_leaves();
        td_tensor *old = td_hold_grad(x);
        if (old != NULL && !pass->create && is_ours(old, 2)) {
            td_scope_begin();
            done = td_add_(old, grad) != NULL;
            td_scope_end();
        }
        pthread_mutex_unlock(lock);
        if (!done && !td_failed()) {
            /* backward: make a new sum for the leaf */
            if (old == NULL && is_ours(grad, 1)) {
                sum = td_retain(grad);
            } else {
                td_scope_begin();
                sum = td_retain(old ? td_add(old, grad) : td_clone(grad));
                td_scope_end();
            }
        }
        if (sum != NULL)
            done = td_swap_grad(x, old, sum);
        if (!done)
            td_release(sum);
        td_release(old);
    }
    td_release(grad);
    return done;
}
/* backward: function fill_leaf */
static bool fill_leaf(td_pass *pass, td_sink *sink)
{
    td_tensor *leaf = sink->leaf;
    sink->pending = -1;
    if (sink->grad == NULL)
        return true;
    if (!td_call_hooks(&leaf->hooks, 0, &sink->grad))
        return false;
    if ((pass->captures != NULL && !pass->pour) || !leaf->requires_grad)
        return true;
    td_tensor *grad = sink->grad;
    sink->grad = NULL;
    return add_to_leaf(pass, leaf, grad) && td_call_post_hooks(leaf);
}
/* backward: function fit */
static bool fit(td_node *node, int i)
{
    const td_edge *edge = &node->in[i];
    td_tensor *g = node->grad_in[i];
    const td_dims shape = td_shape_of(g);
    if (!td_dims_equal(&shape, &edge->shape))
        g = td_sum_to_size(g, edge->shape);
    if (g != NULL && g->dtype != edge->dtype)
        g = td_to(g, edge->dtype);
    node->grad_in[i] = td_retain(g);
    return g != NULL;
}
/* backward: function apply_rule */
static bool apply_rule(td_pass *pass, td_node *node)
{
    td_backward_pass b = { node, node->op, node->n_in, node->n_out,
                           node->n_attr, node->grad, node->grad_in,
                           pass->create };
    /* seeing: watch a rule begin */
    if (td_process_state.profiled)
        td_event_begin(td_node_text(node), TD_EVENT_RULE);
    td_scope_begin();
    (node->custom ? td_custom_apply : td_rule_of(node->op)->apply)(&b);
    bool ok = !td_failed();
    TD_EACH(i, node, in)
        if (!ok || !node->in[i].needed)
            node->grad_in[i] = NULL;
        else if (node->grad_in[i] != NULL)
            ok = fit(node, i);
    /* inspection: inspect what a rule returned */
    if (td_process()->anomaly)
        ok = td_inspect(node, ok);
    td_scope_end();
    /* seeing: watch a rule end */
    if (td_process_state.profiled)
        td_event_end();
    return ok;
}
/* backward: function show_gradient */
static bool show_gradient(td_pass *pass, td_node *node, int k)
{
    td_tensor **grad = &node->grad[k];
    if (*grad == NULL)
        return true;
    if (!td_call_hooks(&node->hooks, k, grad))
        return false;
    for (int i = 0; node->captured && i < pass->n_captures; i++) {
        port *c = &pass->captures[i];
        if (c->node == node && c->slot == k)
            replace(&c->grad, td_retain(*grad));
        if (pass->pour && c->grad == *grad
            && c->of != node->out[k].watcher
            && !add_to_leaf(pass, c->of, td_retain(*grad)))
            return false;
    }
    td_tensor *watcher = td_hold_watcher(node, k);
    const bool ok = watcher == NULL
        || add_to_leaf(pass, watcher, td_retain(*grad));
    td_release(watcher);
    return ok;
}
/* backward: further steps of the sweep */
static void make_ready(td_pass *pass, td_node *node);
static bool visit(td_pass *pass, td_node *node);

/* backward: function deliver */
static bool deliver(td_pass *pass, td_node *node, int i)
{
    /* count-down: exercise count-down */
    const td_edge *edge = &node->in[i];
    td_tensor *grad = node->grad_in[i];
    node->grad_in[i] = NULL;
    if (edge->leaf != NULL)
        return add_to(pass, &edge->sink->grad, grad)
            && (--edge->sink->pending > 0
                || fill_leaf(pass, edge->sink));
    if (!add_to(pass, &edge->node->grad[edge->slot], grad))
        return false;
    if (--edge->node->pending == 0)
        make_ready(pass, edge->node);
    return true;
}
/* backward: function visit */
static bool visit(td_pass *pass, td_node *node)
{
    bool arrived = false;
    TD_EACH(k, node, out) {
        if (!show_gradient(pass, node, k))
            return false;
        arrived = arrived || node->grad[k] != NULL;
    }
    if (node->runs && arrived && !apply_rule(pass, node))
        return false;
    TD_EACH(k, node, out)
        replace(&node->grad[k], NULL);
    for (int i = 0; node->runs && i < node->n_in; i++)
        if (node->in[i].needed && !deliver(pass, node, i))
            return false;
    if (node->runs && !pass->retain)
        td_node_drop(node);
    unclaim(pass, node);
    return true;
}
/* backward: function sweep */
static bool sweep(td_pass *pass)
{
    while (pass->ready != NULL) {
        td_node *node = pass->ready;
        pass->ready = node->below;
        if (!visit(pass, node))
            return false;
    }
    return true;
}

static void make_ready(td_pass *pass, td_node *node)
{
    node->pending = -1;
    node->below = pass->ready;
    pass->ready = node;
}
/* backward: function plant */
static bool plant(td_pass *pass, const char *operation,
                  const port *root, td_tensor *seed)
{
    /* backward: make the seed, or convert it */
    td_tensor *of = root->of;
    if (!td_requires_grad(of))
        td_fail(TD_ERROR_RUNTIME, operation, "the tensor does not "
                "require a gradient and was not recorded");
    else if (seed == NULL && td_numel(of) != 1)
        td_fail(TD_ERROR_RUNTIME, operation, "a gradient can be "
            "created implicitly only for a tensor of one element; this "
            "one has %" PRId64 ", give the gradient to start from",
            td_numel(of));
    else if (seed == NULL)
        seed = td_ones_like(of, (td_tensor_options)TD_DEFAULTS);
    else if (seed->dtype != of->dtype)
        seed = td_to(seed, of->dtype);
    td_tensor **sum = root->node ? &root->node->grad[root->slot]
                    : root->sink ? &root->sink->grad : NULL;
    return !td_failed() && td_same_kind(operation, seed, of)
        && (sum == NULL || add_to(pass, sum, td_retain(seed)));
}
/* backward: function start of a pass */
static bool start(td_pass *pass)
{
    TD_EACH(i, pass, roots) {
        td_node *node = pass->roots[i].node;
        if (node != NULL && wanted(node) && node->pending == 0)
            make_ready(pass, node);
    }
    for (td_sink *sink = pass->sinks; sink; sink = sink->next)
        if (sink->pending == 0 && !fill_leaf(pass, sink))
            return false;
    return true;
}
/* backward: function run_pass */
static bool run_pass(td_pass *pass, const char *operation, int n,
                     td_tensor *const *roots, td_tensor *const *seeds)
{
    const int depth = td_self()->grad_depth;
    /* inspection: begin to inspect a pass */
    td_forget_stop();
    td_grad_mode_push(!pass->create);
    td_scope_begin();
    pass->n_roots = n;
    pass->roots = open_ports(operation, n, roots);
    bool ok = !td_failed() && discover(pass);
    for (int i = 0; ok && i < n; i++)
        ok = plant(pass, operation, &pass->roots[i],
                   seeds ? seeds[i] : NULL);
    if (ok) {
        ok = start(pass) && sweep(pass);
        if (!ok && !pass->retain)
            /* backward: empty every node still claimed */
            for (td_node *node = pass->claimed; node; node = node->next) {
                clear_gradients(node);
                td_node_drop(node);
            }
    }
    td_scope_end();
    td_grad_mode_restore(depth);
    return ok;
}
/* backward: function end_pass */
static void end_pass(td_pass *pass)
{
    while (pass->claimed != NULL)
        unclaim(pass, pass->claimed);
    while (pass->sinks != NULL) {
        td_sink *sink = pass->sinks;
        pass->sinks = sink->next;
        td_release(sink->leaf);
        td_release(sink->grad);
        td_free(sink, sizeof *sink);
    }
    close_ports(pass->roots, pass->n_roots);
    close_ports(pass->captures, pass->n_captures);
}
/* backward: function ask */
static bool ask(td_pass *pass, const char *operation,
                td_tensor *const *inputs, int n)
{
    pass->n_captures = n;
    pass->captures = open_ports(operation, n, inputs);
    for (int i = 0; i < n && !td_failed(); i++)
        if (!inputs[i]->requires_grad)
            td_fail(TD_ERROR_RUNTIME, operation,
                    "input %d does not require a gradient", i);
    return !td_failed();
}
/* backward: function td_backward */
bool td_backward_all(td_tensor *const *roots, int n,
                     td_tensor *const *gradients,
                     td_backward_options options)
{
    td_pass pass = {
        .retain = options.retain_graph || options.create_graph,
        .create = options.create_graph, .pour = true,
    };
    const bool ok = (options.inputs == NULL
            || ask(&pass, "backward", options.inputs, options.n_inputs))
        && run_pass(&pass, "backward", n, roots, gradients);
    end_pass(&pass);
    return ok;
}

bool td_backward(td_tensor *root, td_backward_options options)
{
    return td_backward_all(&root, 1, &options.gradient, options);
}
/* backward: function td_grad */
bool td_grad(td_tensor *const *outputs, int n_outputs,
             td_tensor *const *inputs, int n_inputs,
             td_tensor **results, td_grad_options options)
{
    td_pass pass = {
        .retain = options.retain_graph || options.create_graph,
        .create = options.create_graph,
        .inputs_end = options.inputs_end,
    };
    bool ok = ask(&pass, "grad", inputs, n_inputs)
        && run_pass(&pass, "grad", n_outputs, outputs,
                    options.grad_outputs);
    /* backward: fetch the captured leaf gradients */
    for (port *c = pass.captures; ok && c < pass.captures + n_inputs; c++)
        if (c->sink != NULL)
            replace(&c->grad, td_retain(c->sink->grad));
    /* backward: hand the captured gradients out */
    for (int i = 0; i < n_inputs; i++) {
        if (ok && !options.allow_unused && !pass.captures[i].grad)
            ok = td_fail(TD_ERROR_RUNTIME, "grad",
                "input %d was not used to compute the outputs; set "
                "allow_unused if that is meant", i);
        results[i] = NULL;
    }
    for (int i = 0; ok && i < n_inputs; i++)
        results[i] = td_share(pass.captures[i].grad);
    end_pass(&pass);
    return ok && !td_failed();
}
/* backward: function td_leads_beyond */
bool td_leads_beyond(td_tensor *const *outputs, int n_outputs,
                     td_tensor *const *inputs, int n_inputs)
{
    td_pass pass = { .n_roots = n_outputs };
    pass.roots = open_ports("leads_beyond", n_outputs, outputs);
    const bool ok = ask(&pass, "leads_beyond", inputs, n_inputs)
        && discover(&pass);
    end_pass(&pass);
    return ok && pass.beyond;
}
