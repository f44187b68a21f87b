/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "operators": edit that, not this file. */
/* The way of a call: a plan, the stages, the kernel between them. */
#include <string.h>
#include "call.h"
#include "device.h"

/* operators: table of the stages */
static const struct { td_enter *enter; td_leave *leave; }
    stages[TD_STAGE_COUNT + 1] = {
#define STAGE(name, enter, leave) { enter, leave },
#include "stages.inc"
    { NULL, NULL }
};

/* operators: function names_the_missing */
static bool names_the_missing(const td_call *call, int i)
{
    td_signature s;
    const char *name = "input";
    if (td_signature_parse(call->op->signature, &s))
        name = td_signature_input(&s, i);
    return td_fail(TD_ERROR_VALUE, call->op->name, "argument '%s' is "
                   "NULL, expected a tensor", name);
}

/* operators: function look_at */
enum { HOME = 1, ELSEWHERE = 2 };      /* where operands were seen */

typedef struct {
    const td_call *call;
    const td_traits *traits;
    const td_thread *self;
    unsigned places;
    /* graph: what operands may want */
    bool gradient;
} survey;

static bool look_at(survey *s, td_plan *plan, int i)
{
    const td_value *v = &s->call->in[i];
    const bool list = v->kind == TD_TENSORS;
    td_tensor *const *at = list ? v->as.tensors.at : &v->as.tensor;
    const int n = list ? v->as.tensors.count : v->kind == TD_TENSOR;
    for (int k = 0; k < n; k++) {
        td_tensor *x = at[k];
        if (x == NULL)
            return names_the_missing(s->call, i);
        const bool home = x->storage->device.kind == TD_DEVICE_CPU
                       && x->storage->data != NULL;
        s->places |= !home ? ELSEWHERE : x->rank > 0 ? HOME : 0;
        /* graph: ask an operand what it wants */
        if (plan->recording && x->base && x->seen != x->base->rebased)
            td_follow_base(x);
        s->gradient |= plan->recording && x->requires_grad;
        /* in-place: ask an operand what it wants */
        s->gradient |= plan->recording && x->untracked
                    && (s->traits->mutated >> i & 1) != 0;
    }
    return true;
}

/* operators: function make_plan */
static bool make_plan(const td_call *call, td_plan *plan)
{
    survey s = { .call = call, .traits = td_traits_of(call->op),
                 .self = td_self() };
    const td_traits *t = s.traits;
    const bool foreign = t->n_in < 0;
    /* graph: look whether gradients are recorded */
    plan->recording = !s.self->grad_off && s.self->muted == 0;
    bool fits = foreign || (call->n_in == t->n_in
                            && call->n_attr == t->n_attr);
    for (int i = 0; fits && i < call->n_in; i++) {
        fits = foreign || t->in[i] >> call->in[i].kind & 1;
        if (fits && !look_at(&s, plan, i))
            return false;
    }
    for (int i = 0; fits && !foreign && i < t->n_attr; i++)
        fits = t->attr[i] >> call->attr[i].kind & 1;
    if (!fits)
        return td_fail(TD_ERROR_TYPE, call->op->name, "the arguments "
                       "do not fit the signature %s",
                       call->op->signature);
    /* graph: decide which stages are in the way */
    plan->stages = t->always | (s.gradient ? t->recorded : 0);
    if (s.gradient && t->instead != NULL)
        plan->kernel = t->instead;
    /* tracing: decide which stages are in the way */
    if (s.self->trace && !(plan->stages >> TD_STAGE_compose & 1))
        plan->stages |= 1u << TD_STAGE_trace;
    return (s.places < ELSEWHERE || td_meet(call)) && !td_failed();
}

/* operators: function pass_stages */
static bool pass_stages(td_call *call, td_plan *plan)
{
    int at = plan->stages != 0 ? TD_STAGE_COUNT : 0;
    bool ok = true;
    while (ok && at > 0)
        if (plan->stages >> --at & 1)
            ok = stages[at].enter(call, plan);
    ok = ok && plan->kernel(call);
    while (call->n_out < TD_MAX_RESULTS && call->out[call->n_out])
        call->n_out++;
    /* in-place: look what the results turn out to be */
    if (ok && call->n_in > 0 && call->in[0].kind == TD_TENSOR
        && call->out[0] && call->out[0] != call->in[0].as.tensor
        && call->out[0]->storage == call->in[0].as.tensor->storage)
        td_note_view(call, plan->recording);
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
    td_plan plan = { .kernel = call->op->kernel };
    if (td_failed())
        return false;
    return (make_plan(call, &plan) && pass_stages(call, &plan))
        || give_up(call);
}
