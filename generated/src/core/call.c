/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "operators": edit that, not this file. */
/* The way of a call: a plan, the stages, the kernel between them. */
#include "core/call.h"
#include "core/device.h"

/* operators: table of the stages */
static const struct { td_enter *enter; td_leave *leave; }
    stages[TD_STAGE_COUNT + 1] = {
#define STAGE(name, enter, leave) { enter, leave },
#include "core/stages.inc"
    { NULL, NULL }
};

/* operators: function name_the_missing */
static bool name_the_missing(const td_call *call, int i)
{
    td_signature s;
    const char *name = "input";
    if (td_signature_parse(call->op->signature, &s))
        name = td_signature_input(&s, i);
    return td_fail(TD_ERROR_VALUE, call->op->name, "argument '%s' is "
                   "NULL, expected a tensor", name);
}

/* operators: function look_at */
static inline bool look_at(const td_call *call, int i, td_tensor *x,
                           bool changed, td_plan *plan)
{
    if (x == NULL)
        return name_the_missing(call, i);
    const td_storage *s = x->storage;
    plan->afield |= s->device.kind != TD_DEVICE_CPU || s->data == NULL
                 || x->dtype > TD_BOOL;
    (void)changed;
    /* graph: ask an operand what it wants */
    if (plan->recording && (x->requires_grad || x->base || x->untracked))
        plan->gradient |= td_wants_gradient(x, changed);
    return true;
}

/* operators: function make_plan */
static bool make_plan(const td_call *call, const td_thread *self,
                      td_plan *plan)
{
    const td_traits *t = td_traits_of(call->op);
    /* graph: look whether gradients are recorded */
    plan->recording = !self->grad_off && self->muted == 0;
    bool ok = true, fits = t->n_in < 0
        || (call->n_in == t->n_in && call->n_attr == t->n_attr);
    for (int i = 0; fits && ok && i < call->n_in; i++) {
        /* operators: look at one input of the call */
        const td_value *v = &call->in[i];
        const bool changed = t->mutated >> i & 1;
        td_tensor *const *at;
        fits = t->in[i] >> v->kind & 1;
        for (int k = 0, n = td_tensors_of(v, &at); fits && ok && k < n; k++)
            ok = look_at(call, i, at[k], changed, plan);
    }
    for (int i = 0; fits && i < t->n_attr; i++)
        fits = t->attr[i] >> call->attr[i].kind & 1;
    if (!fits)
        /* operators: refuse arguments that do not fit */
        return td_fail(TD_ERROR_TYPE, call->op->name, "the arguments "
                       "do not fit the signature %s",
                       call->op->signature);
    /* graph: decide which stages are in the way */
    plan->stages = t->always | (plan->gradient ? t->recorded : 0);
    if (plan->gradient && t->instead != NULL)
        plan->kernel = t->instead;
    /* tracing: decide which stages are in the way */
    if (self->trace && !(plan->stages >> TD_STAGE_compose & 1))
        plan->stages |= 1u << TD_STAGE_trace;
    /* precision: decide which stages are in the way */
    if ((plan->afield || t->typed) && plan->kernel == call->op->kernel
        && t->n_in >= 0)
        plan->kernel = td_widened;
    if (self->autocast && t->cast) {
        plan->stages = 0;
        plan->kernel = td_run_cast;
    }
    /* seeing: decide which stages are in the way */
    const unsigned profiled = atomic_load_explicit(
        &td_process_state.profiled, memory_order_relaxed);
    plan->stages |= profiled << TD_STAGE_profile;
    return ok && self->error.code == TD_OK
        && (!plan->afield || td_meet(call));
}

/* operators: function count_results */
static void count_results(td_call *call, const td_plan *plan, bool ok)
{
    call->n_out = 0;
    while (call->n_out < TD_MAX_RESULTS && call->out[call->n_out])
        call->n_out++;
    (void)plan, (void)ok;
    /* in-place: look what the results turn out to be */
    if (ok && call->n_in > 0 && call->in[0].kind == TD_TENSOR
        && call->out[0] && call->out[0] != call->in[0].as.tensor
        && call->out[0]->storage == call->in[0].as.tensor->storage)
        td_note_view(call, plan->recording);
}

/* operators: function pass_stages */
static bool pass_stages(td_call *call, td_plan *plan)
{
    /* stages: exercise stages */
    int at = TD_STAGE_COUNT;
    bool ok = true;
    while (ok && at > 0 && plan->stages != 0)
        if (plan->stages >> --at & 1)
            ok = stages[at].enter(call, plan);
    ok = ok && plan->kernel(call);
    count_results(call, plan, ok);
    for (; plan->stages >> at != 0; at++)
        if (plan->stages >> at & 1)
            ok = stages[at].leave(call, ok);
    return ok;
}

/* operators: function give_up */
static bool give_up(td_call *call)
{
    td_error_record e;
    for (int k = 0; k < TD_MAX_RESULTS; k++) {
        td_discard(call->out[k]);
        call->out[k] = NULL;
    }
    call->n_out = 0;
    td_error_take(&e);
    const char *words = strstr(e.message, ": ");
    if (e.code == TD_ERROR_CALLBACK || words == NULL
        || strncmp(e.message, "TREADLE_", 8) == 0)
        return td_error_restore(&e);
    return td_fail(e.code, call->op->name, "%s", words + 2);
}

/* operators: function td_run */
bool td_run(td_call *call)
{
    const td_thread *self = td_self();
    td_plan plan = { .kernel = call->op->kernel };
    if (self->error.code != TD_OK)
        return false;
    return (make_plan(call, self, &plan) && pass_stages(call, &plan))
        || give_up(call);
}
