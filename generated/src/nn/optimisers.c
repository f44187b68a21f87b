/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "optimisers": edit that, not this file. */
#include "grad/autograd.h"
#include "core/device.h"
#include "ops/composite.h"
#include "ops/kernels/optimisers-kernels.h"
#include "core/require.h"
#include <treadle/treadle.h>

/* optimisers: function step_part */
typedef struct { const step *s; step_loop *loop; } step_job;

TD_BODY(step_part, const step_job, job)
{
    job->loop(job->s, begin, end);
    return true;
}
/* optimisers: function matches */
/* Whether input i is like the parameter, or absent. */
static bool matches(const td_call *call, int i)
{
    const td_tensor *theta = td_input(call, 0), *x = td_input(call, i);
    td_signature s;
    if (x == NULL)
        return true;
    if (theta->dtype != TD_FLOAT32 && theta->dtype != TD_FLOAT64)
        return td_fail(TD_ERROR_TYPE, "step", "param must be float32 "
            "or float64, not %s", td_dtype_name(theta->dtype));
    const td_dims have = td_shape_of(x), want = td_shape_of(theta);
    if (x->dtype == theta->dtype && td_dims_equal(&have, &want)
        && (i == 1 || td_is_contiguous(x)))
        return true;
    td_signature_parse(call->op->signature, &s);
    const char *role = td_signature_input(&s, i);
    if (x->dtype != theta->dtype)
        return td_fail(TD_ERROR_TYPE, "step", "%s is %s, param %s",
            role, td_dtype_name(x->dtype),
            td_dtype_name(theta->dtype));
    return td_expect(call, role, x, want)
        && td_refuse(call, "%s must be contiguous", role);
}
/* optimisers: functions of a step that adapts */
static step settings_of(const td_op *op, const td_value *at)
{
    const bool adam = op == &td_ops[TD_OP_adam_step_];
    const bool sums = op == &td_ops[TD_OP_adagrad_step_];
    const double second = td_v_double(&at[1]);
    step s = { .rate = td_v_double(&at[0]), .eps = td_v_double(&at[2]),
        .decay = td_v_double(&at[3]), .shrink = 1, .scale = 1,
        .sign = td_v_get_bool(&at[4]) ? -1 : 1,
        .keep = sums ? 1 : second, .take = sums ? 1 : 1 - second,
        .follow = second, .later = sums ? second : 0, .leads = adam };
    if (adam)
        s.follow = td_v_double(&at[5]);
    else if (!sums)
        s.mu = td_v_double(&at[5]);
    if (adam && td_v_get_bool(&at[6])) {
        s.shrink = 1 - s.rate * s.decay;
        s.decay = 0;
    }
    return s;
}
/* 1 - beta^t. */
static td_tensor *correction(td_tensor *t, double beta)
{
    return td_neg(td_expm1(td_mul_scalar(t, td_float(log(beta)))));
}
/* a * x + b * y */
static td_tensor *blend(double a, td_tensor *x, double b, td_tensor *y)
{
    return td_add(td_mul_scalar(x, td_float(a)),
                  b == 1 ? y : td_mul_scalar(y, td_float(b)));
}
/* optimisers: function step_elsewhere */
static bool step_elsewhere(const td_call *call, td_tensor *p,
                           td_tensor *d)
{
    td_tensor *in[6] = { p, d }, *out[6] = { NULL };
    for (int i = 2; i < call->n_in; i++)
        in[i] = td_input(call, i);
    if (td_is(call, sgd_step_))
        return td_compute_elsewhere(&(td_call){ .n_in = 3,
            .in = (td_value[]){ td_v_tensor(p), td_v_tensor(d),
                                call->in[2] },
            .n_attr = call->n_attr, .attr = call->attr,
            .out = { p, in[2] } }, "sgd_step_", p->dtype, false);
    /* optimisers: take a step that adapts in parts */
    const step s = settings_of(call->op, call->attr);
    td_tensor *t = td_to(td_add_scalar(in[2], td_float(1)), p->dtype);
    d = s.sign < 0 ? td_neg(d) : d;
    if (s.decay != 0)
        d = blend(s.decay, p, 1, d);
    td_tensor *below = out[3] = blend(s.keep, in[3], s.take, td_square(d));
    if (in[4]) {
        out[4] = blend(s.follow, in[4], 1 - s.follow, d);
        if (s.leads)
            d = out[4];
        else
            below = td_sub(below, td_square(out[4]));
    }
    if (in[5] && s.leads)
        below = out[5] = td_maximum(in[5], below);
    td_tensor *root = td_sqrt(below);
    if (s.leads)
        root = td_div(root, td_sqrt(correction(t, s.keep)));
    /* optimisers: shorten the step and take it */
    d = td_div(d, td_add_scalar(root, td_float(s.eps)));
    if (in[5] && !s.leads)
        d = out[5] = blend(s.mu, in[5], 1, d);
    if (s.leads)
        d = td_div(d, correction(t, s.follow));
    if (s.later != 0)
        d = td_div(d, td_add_scalar(td_mul_scalar(td_add_scalar(t,
            td_float(-1)), td_float(s.later)), td_float(1)));
    out[0] = blend(s.shrink, p, -s.rate, d);
    /* optimisers: copy the new values over the old */
    for (int i = 0; i < 6 && !td_failed(); i++)
        if (out[i])
            td_copy_(in[i], out[i]);
    return !td_failed();
}
/* optimisers: function run_step */
/* The states are the inputs from number `first` on. */
static td_tensor *run_step(const td_call *call, step *s,
                           step_loop *const *loops, int first)
{
    td_tensor *theta = call->in[0].as.tensor;
    td_tensor *g = call->in[1].as.tensor;
    const bool direct = td_is_contiguous(theta);
    td_no_grad_begin();
    td_scope_begin();
    td_tensor *p = direct ? theta : td_contiguous(theta);
    td_tensor *slope = td_is_contiguous(g) ? g : td_contiguous(g);
    if (p && slope) {
        step_job job = { s, loops[p->dtype == TD_FLOAT32] };
        /* optimisers: point the step at its arrays */
        s->theta = td_at(p), s->g = td_at(slope);
        for (int i = first; i < call->n_in; i++) {
            td_tensor *state = td_input(call, i);
            if (state) {
                s->state[i - first] = td_at(state);
                td_bump_version(state);
            }
        }
        if (td_on_host(p))
            td_parallel_for(td_numel(p), 8192, step_part, &job);
        else
            step_elsewhere(call, p, slope);
        /* optimisers: let the step be seen in the versions */
        if (direct)
            td_bump_version(theta);
        else
            td_copy_(theta, p);
    }
    td_scope_end();
    td_no_grad_end();
    return td_share(theta);
}
/* optimisers: kernel sgd_step_kernel */
bool sgd_step_kernel(td_call *call)
{
    const td_value *at = call->attr;
    const bool first = td_v_get_bool(&at[6]);
    step s = {
        .rate = td_v_double(&at[0]), .mu = td_v_double(&at[1]),
        .take = first ? 1 : 1 - td_v_double(&at[2]),
        .decay = td_v_double(&at[3]),
        .sign = td_v_get_bool(&at[5]) ? -1 : 1,
        .nesterov = td_v_get_bool(&at[4]) };
    return matches(call, 1) && matches(call, 2)
        && td_return(call, run_step(call, &s,
            TD_ISA_PICK(td_step_level)->sgd, 2));
}
/* optimisers: kernel adaptive_kernel */
bool adaptive_kernel(td_call *call)
{
    td_tensor *count = call->in[2].as.tensor;
    step s = settings_of(call->op, call->attr);
    double t = 1;
    /* optimisers: check the arguments of a step that adapts */
    if (td_numel(count) != 1 || !td_dtype_is_floating(count->dtype)
        || !td_at_home(count))
        return td_fail(TD_ERROR_TYPE, call->op->name,
                       "step must be one float on the CPU");
    for (int i = 1; i < call->n_in; i++)
        if (i != 2 && !matches(call, i))
            return false;
    if (td_on_host(count))
        t = td_item_double(count) + 1;
    /* optimisers: correct the averages for their beginning */
    if (s.leads) {
        s.rate /= 1 - pow(s.follow, t);
        s.scale = 1 / sqrt(1 - pow(s.keep, t));
    }
    s.rate /= 1 + (t - 1) * s.later;
    td_tensor *theta = run_step(call, &s,
        TD_ISA_PICK(td_step_level)->adaptive, 3);
    td_scope_begin();               /* for what td_fill_ returns */
    td_fill_(count, td_float(t));
    td_scope_end();
    return td_return(call, theta) && !td_failed();
}
/* optimisers: struct td_optimiser */
enum { STATES = 4, ATTRIBUTES = 7 };     /* at most */

typedef struct { td_tensor *parameter, *state[STATES]; } moved;
struct td_optimiser {
    td_object object;
    int count;
    moved *each;                 /* a state that is NULL: not yet */
    const td_op *op;
    unsigned uses;               /* the states it has, as bits */
    td_value attr[ATTRIBUTES];   /* attr[0] is the learning rate */
};
/* optimisers: class of the optimiser */
TD_CLASS(optimiser, td_optimiser, o)
{
    for (int i = 0; o->each && i < o->count; i++) {
        td_release(o->each[i].parameter);
        for (int k = 0; k < STATES; k++)
            td_release(o->each[i].state[k]);
    }
    TD_FREE_ARRAY(o->each, o->count);
}
/* optimisers: function check_settings */
typedef struct {
    const char *name;
    double value;
    bool below_one;
} setting;

static bool check_settings(const char *op, const setting *s, int n)
{
    for (int i = 0; i < n; i++)
        if (!(s[i].value >= 0) || (s[i].below_one && s[i].value >= 1))
            return td_fail(TD_ERROR_VALUE, op, "%s %g must be a number "
                ">= 0%s", s[i].name, s[i].value,
                s[i].below_one ? " and < 1" : "");
    return true;
}
/* optimisers: function check_parameters */
static bool check_parameters(const char *op,
                             td_tensor *const *parameters, int count)
{
    if (count <= 0 || !parameters)
        return td_fail(TD_ERROR_VALUE, op, "there are no parameters");
    for (int i = 0; i < count; i++) {
        if (!parameters[i])
            return td_fail(TD_ERROR_VALUE, op,
                           "parameter %d is NULL", i);
        if (!td_is_leaf(parameters[i]))
            return td_fail(TD_ERROR_VALUE, op, "parameter %d is the "
                           "result of an operator, not a leaf", i);
        for (int j = 0; j < i; j++)
            if (parameters[i] == parameters[j])
                return td_fail(TD_ERROR_VALUE, op,
                    "parameter %d is parameter %d again", i, j);
    }
    return true;
}
/* optimisers: function new_optimiser */
static td_optimiser *new_optimiser(const td_optimiser *like,
                                   td_tensor *const *parameters,
                                   int count)
{
    td_optimiser *o = td_object_new(&optimiser_class, sizeof *o);
    if (!o)
        return NULL;
    const td_object head = o->object;
    *o = *like;
    o->object = head, o->count = count;
    o->each = TD_ARRAY(o->each, count);
    if (td_failed()) {
        td_release(o);
        return NULL;
    }
    for (int i = 0; i < count; i++)
        o->each[i].parameter = td_retain(parameters[i]);
    return o;
}
/* optimisers: functions that make optimisers */
td_optimiser *td_sgd(td_tensor *const *parameters, int count,
                     double rate, td_sgd_options s)
{
    const setting settings[] = { { "learning rate", rate, false },
        { "momentum", s.momentum, false },
        { "weight_decay", s.weight_decay, false } };
    if (!check_settings("sgd", settings, 3)
        || !check_parameters("sgd", parameters, count))
        return NULL;
    if (s.nesterov && !(s.momentum > 0 && s.dampening == 0))
        return td_fail(TD_ERROR_VALUE, "sgd", "nesterov needs a "
            "momentum above 0 and a dampening of 0"), NULL;
    return new_optimiser(&(td_optimiser){
        .op = &td_ops[TD_OP_sgd_step_],
        .uses = s.momentum > 0, .attr = { td_v_float(rate),
            td_v_float(s.momentum), td_v_float(s.dampening),
            td_v_float(s.weight_decay), td_v_bool(s.nesterov),
            td_v_bool(s.maximize) } }, parameters, count);
}

static double either(td_opt_f64 given, double otherwise)
{
    return given.given ? given.value : otherwise;
}
static const struct {
    const char *name, *second;
    int op;
} adapting[] = {
    [TD_ADAM] = { "adam", "beta2", TD_OP_adam_step_ },
    [TD_ADAMW] = { "adamw", "beta2", TD_OP_adam_step_ },
    [TD_RMSPROP] = { "rmsprop", "alpha", TD_OP_rmsprop_step_ },
    [TD_ADAGRAD] = { "adagrad", "lr_decay", TD_OP_adagrad_step_ },
};
td_optimiser *td_adapt(td_adapting rule, td_tensor *const *parameters,
                       int count, double rate, td_adapt_options o)
{
    const bool adam = rule == TD_ADAM || rule == TD_ADAMW;
    const setting s[] = { { "learning rate", rate, false },
        { adapting[rule].second, adam ? either(o.beta2, 0.999)
          : rule == TD_ADAGRAD ? o.lr_decay : either(o.alpha, 0.99),
          adam },
        { "eps", either(o.eps, rule == TD_ADAGRAD ? 1e-10 : 1e-8),
          false },
        { "weight_decay", either(o.weight_decay,
                                 rule == TD_ADAMW ? 0.01 : 0), false },
        { adam ? "beta1" : "momentum",
          adam ? either(o.beta1, 0.9) : o.momentum, adam } };
    if (!check_settings(adapting[rule].name, s, 5)
        || !check_parameters(adapting[rule].name, parameters, count))
        return NULL;
    const unsigned more = adam ? 4 | (unsigned)o.amsgrad << 3
        : rule != TD_RMSPROP ? 0
        : (unsigned)o.centered << 2 | (unsigned)(o.momentum > 0) << 3;
    return new_optimiser(&(td_optimiser){
        .op = &td_ops[adapting[rule].op],
        .uses = 3 | more,
        .attr = { td_v_float(rate), td_v_float(s[1].value),
            td_v_float(s[2].value), td_v_float(s[3].value),
            td_v_bool(o.maximize), td_v_float(s[4].value),
            td_v_bool(rule == TD_ADAMW) } }, parameters, count);
}
#define BY_NAME(name, rule) \
    td_optimiser *td_##name(td_tensor *const *parameters, int count, \
                            double rate, td_adapt_options o) \
    { \
        return td_adapt(rule, parameters, count, rate, o); \
    }
BY_NAME(adam, TD_ADAM)
BY_NAME(adamw, TD_ADAMW)
BY_NAME(rmsprop, TD_RMSPROP)
BY_NAME(adagrad, TD_ADAGRAD)
/* optimisers: function step_parameter */
static void step_parameter(td_optimiser *o, int i, td_tensor *grad)
{
    td_tensor *theta = o->each[i].parameter, *state[STATES];
    td_tensor **kept = o->each[i].state;
    td_value in[2 + STATES] = { td_v_tensor(theta), td_v_tensor(grad) };
    td_value attr[ATTRIBUTES];
    memcpy(attr, o->attr, sizeof attr);
    /* optimisers: read the states that are there */
    pthread_mutex_t *lock = td_lock(o);
    memcpy(state, kept, sizeof state);
    pthread_mutex_unlock(lock);
    const bool sgd = td_is(o, sgd_step_);
    const bool first = o->uses & 1 && !state[0];
    /* optimisers: give the step its states, at first zeros */
    for (int k = 0; k < STATES; k++) {
        td_tensor *x = state[k];
        if (first && o->uses >> k & 1)
            x = k == 0 && !sgd
              ? td_zeros(TD_RANK_0, (td_tensor_options){ 0 })
              : td_zeros(td_shape_of(theta), td_like(theta));
        in[2 + k] = td_v_optional(x);
    }
    if (sgd)
        attr[6] = td_v_bool(first);
    const td_traits *t = td_traits_of(o->op);
    if (!td_run1(o->op, t->n_in, in, t->n_attr, attr) || !first)
        return;
    /* optimisers: keep the states that were made */
    td_lock(o);
    for (int k = 0; k < STATES; k++)
        if (o->uses >> k & 1 && kept[k] == NULL)
            kept[k] = td_retain(in[2 + k].as.tensor);
    pthread_mutex_unlock(lock);
}
/* optimisers: function td_step */
bool td_step(td_optimiser *o)
{
    if (!td_require(o, "step", "optimiser"))
        return false;
    td_no_grad_begin();
    td_scope_begin();
    for (int i = 0; i < o->count && !td_failed(); i++) {
        td_tensor *grad = td_grad_of(o->each[i].parameter);
        if (grad != NULL)
            step_parameter(o, i, grad);
    }
    td_scope_end();
    td_no_grad_end();
    return !td_failed();
}
/* optimisers: functions that set an optimiser */
bool td_zero_grad(td_optimiser *o)
{
    if (!td_require(o, "zero_grad", "optimiser"))
        return false;
    for (int i = 0; i < o->count; i++)
        td_set_grad(o->each[i].parameter, NULL);
    return !td_failed();
}
static td_tensor **state_of(const td_optimiser *o, int i, int k)
{
    return o && i >= 0 && i < o->count && k >= 0 && k < STATES
         ? &o->each[i].state[k] : NULL;
}
td_tensor *td_optimiser_state(const td_optimiser *o, int i, int k)
{
    td_tensor **at = state_of(o, i, k);
    return at ? *at : NULL;
}
bool td_set_optimiser_state(td_optimiser *o, int i, int k, td_tensor *x)
{
    td_tensor **at = state_of(o, i, k);
    if (!at || !x)
        return td_fail(TD_ERROR_VALUE, "set_optimiser_state",
                       "there is no state %d of parameter %d, or no "
                       "tensor", k, i);
    td_retain(x);
    td_release(*at);
    *at = x;
    return true;
}
double td_learning_rate(const td_optimiser *o)
{
    return o ? td_v_double(&o->attr[0]) : 0;
}
bool td_set_learning_rate(td_optimiser *o, double rate)
{
    if (!td_require(o, "set_learning_rate", "optimiser"))
        return false;
    const setting wanted = { "learning rate", rate, false };
    if (!check_settings("set_learning_rate", &wanted, 1))
        return false;
    o->attr[0] = td_v_float(rate);
    return true;
}
