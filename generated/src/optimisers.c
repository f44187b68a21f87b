/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "optimisers": edit that, not this file. */
#include "autograd.h"
#include "device.h"
#include "registry.h"
#include "require.h"
#include <treadle/treadle.h>

/* optimisers: struct sgd */
typedef struct {
    void *theta, *m;             /* m is NULL without momentum */
    const void *g;
    double rate, mu, take, decay, sign;
    bool nesterov;
} sgd;
/* optimisers: kernels that take one step */
#define T float
#define NAME sgd_float32
#include "optimisers-sgd.inc"
#define T double
#define NAME sgd_float64
#include "optimisers-sgd.inc"
/* optimisers: function sgd_part */
typedef struct { sgd s; bool single; } sgd_job;

static bool sgd_part(void *context, int64_t begin, int64_t end,
                     int worker)
{
    (void)worker;
    const sgd_job *job = context;
    (job->single ? sgd_float32 : sgd_float64)(&job->s, begin, end);
    return true;
}
/* optimisers: function matches */
static bool matches(const td_tensor *theta, const td_tensor *x,
                    const char *role)
{
    char a[TD_SHAPE_TEXT], b[TD_SHAPE_TEXT];
    if (theta->dtype != TD_FLOAT32 && theta->dtype != TD_FLOAT64)
        return td_fail(TD_ERROR_TYPE, "sgd_step_", "param must be "
            "float32 or float64, not %s", td_dtype_name(theta->dtype));
    if (x->dtype != theta->dtype)
        return td_fail(TD_ERROR_TYPE, "sgd_step_", "%s is %s, param %s",
            role, td_dtype_name(x->dtype), td_dtype_name(theta->dtype));
    bool same = x->rank == theta->rank;
    for (int d = 0; same && d < x->rank; d++)
        same = x->shape[d] == theta->shape[d];
    return same || td_fail(TD_ERROR_RUNTIME, "sgd_step_",
        "%s %s, param %s", role, td_shape_text(x, a),
        td_shape_text(theta, b));
}
/* optimisers: function step_elsewhere */
static bool step_elsewhere(const td_call *call, td_tensor *p,
                           td_tensor *slope)
{
    const td_value in[] = { td_v_tensor(p), td_v_tensor(slope),
                            call->in[2] };
    return td_compute_elsewhere(
        &(td_call){ .n_in = 3, .in = in, .n_attr = call->n_attr,
                    .attr = call->attr, .out = { p } },
        "sgd_step_", p->dtype, false);
}
/* optimisers: function run_step */
static td_tensor *run_step(const td_call *call, sgd_job *job,
                           td_tensor *theta, td_tensor *g, td_tensor *m)
{
    const bool direct = td_is_contiguous(theta);
    td_no_grad_begin();
    td_scope_begin();
    td_tensor *p = direct ? theta : td_contiguous(theta);
    td_tensor *slope = td_is_contiguous(g) ? g : td_contiguous(g);
    if (p && slope) {
        job->s.theta = td_at(p), job->s.g = td_at(slope);
        job->s.m = m ? td_at(m) : NULL;
        if (td_on_host(p))
            td_parallel_for(td_numel(p), 8192, sgd_part, job);
        else
            step_elsewhere(call, p, slope);
        /* optimisers: let the step be seen in the versions */
        if (direct)
            td_bump_version(theta);
        else
            td_copy_(theta, p);
        if (m)
            td_bump_version(m);
    }
    td_scope_end();
    td_no_grad_end();
    return td_failed() ? NULL : td_share(theta);
}
/* optimisers: kernel sgd_step_kernel */
bool sgd_step_kernel(td_call *call)
{
    td_tensor *theta = call->in[0].as.tensor;
    td_tensor *g = call->in[1].as.tensor;
    td_tensor *m = call->in[2].kind == TD_TENSOR
                 ? call->in[2].as.tensor : NULL;
    const td_value *at = call->attr;
    const bool first = td_v_get_bool(&at[6]);
    sgd_job job = { .single = theta->dtype == TD_FLOAT32, .s = {
        .rate = td_v_double(&at[0]), .mu = td_v_double(&at[1]),
        .take = first ? 1 : 1 - td_v_double(&at[2]),
        .decay = td_v_double(&at[3]),
        .sign = td_v_get_bool(&at[5]) ? -1 : 1,
        .nesterov = td_v_get_bool(&at[4]) } };
    if (!matches(theta, g, "grad")
        || (m && !matches(theta, m, "buffer")))
        return false;
    if (m && !td_is_contiguous(m))
        return td_fail(TD_ERROR_RUNTIME, "sgd_step_",
                       "buffer must be contiguous");
    return td_return(call, run_step(call, &job, theta, g, m));
}
/* optimisers: struct td_optimiser */
struct td_optimiser {
    td_object object;
    int count;
    td_tensor **parameters;
    td_tensor **buffers;         /* NULL before the first step */
    double rate;
    td_sgd_options options;
};
/* optimisers: class of the optimiser */
static void sgd_destroy(void *object)
{
    td_optimiser *o = object;
    const size_t n = (size_t)o->count;
    for (int i = 0; i < o->count; i++) {
        td_release(o->parameters ? o->parameters[i] : NULL);
        td_release(o->buffers ? o->buffers[i] : NULL);
    }
    td_free(o->parameters, n * sizeof *o->parameters);
    td_free(o->buffers, n * sizeof *o->buffers);
}
static const td_class sgd_class = {
    .name = "sgd", .destroy = sgd_destroy };
/* optimisers: function check_options */
static bool check_options(double rate, const td_sgd_options *o)
{
    const struct { const char *name; double value; } least_zero[] = {
        { "learning rate", rate }, { "momentum", o->momentum },
        { "weight_decay", o->weight_decay } };
    for (int i = 0; i < 3; i++)
        if (!(least_zero[i].value >= 0))
            return td_fail(TD_ERROR_VALUE, "sgd",
                "%s %g must be a number >= 0", least_zero[i].name,
                least_zero[i].value);
    if (o->nesterov && !(o->momentum > 0 && o->dampening == 0))
        return td_fail(TD_ERROR_VALUE, "sgd", "nesterov needs a "
                       "momentum above 0 and a dampening of 0");
    return true;
}
/* optimisers: function check_parameters */
static bool check_parameters(td_tensor *const *parameters, int count)
{
    if (count <= 0 || !parameters)
        return td_fail(TD_ERROR_VALUE, "sgd",
                       "there are no parameters");
    for (int i = 0; i < count; i++) {
        if (!parameters[i])
            return td_fail(TD_ERROR_VALUE, "sgd",
                           "parameter %d is NULL", i);
        if (!td_is_leaf(parameters[i]))
            return td_fail(TD_ERROR_VALUE, "sgd", "parameter %d is the "
                           "result of an operator, not a leaf", i);
        for (int j = 0; j < i; j++)
            if (parameters[i] == parameters[j])
                return td_fail(TD_ERROR_VALUE, "sgd",
                    "parameter %d is parameter %d again", i, j);
    }
    return true;
}
/* optimisers: function td_sgd */
td_optimiser *td_sgd(td_tensor *const *parameters, int count,
                     double rate, td_sgd_options options)
{
    if (td_failed() || !check_options(rate, &options)
        || !check_parameters(parameters, count))
        return NULL;
    td_optimiser *o = td_object_new(&sgd_class, sizeof *o);
    if (!o)
        return NULL;
    o->rate = rate, o->options = options, o->count = count;
    const size_t n = (size_t)count;
    o->parameters = td_alloc_array(n, sizeof *o->parameters);
    o->buffers = td_alloc_array(n, sizeof *o->buffers);
    if (td_failed()) {
        td_release(o);
        return NULL;
    }
    for (int i = 0; i < count; i++)
        o->parameters[i] = td_retain(parameters[i]);
    return o;
}
/* optimisers: function step_parameter */
static void step_parameter(td_optimiser *o, int i)
{
    td_tensor *theta = o->parameters[i], *m = o->buffers[i];
    const bool first = m == NULL && o->options.momentum > 0;
    if (first)
        m = td_zeros(td_shape_of(theta), (td_tensor_options){
            .dtype = theta->dtype, .device = td_device_of(theta) });
    const td_value in[] = { td_v_tensor(theta),
        td_v_tensor(td_grad_of(theta)),
        td_v_optional(m) };
    const td_sgd_options *s = &o->options;
    const td_value attr[] = { td_v_float(o->rate),
        td_v_float(s->momentum), td_v_float(s->dampening),
        td_v_float(s->weight_decay), td_v_bool(s->nesterov),
        td_v_bool(s->maximize), td_v_bool(first) };
    if (td_run1(&td_ops[TD_OP_sgd_step_], 3, in, 7, attr) && first)
        o->buffers[i] = td_retain(m);
}
/* optimisers: function td_step */
bool td_step(td_optimiser *o)
{
    if (td_failed() || !td_require(o, "step", "optimiser"))
        return false;
    td_no_grad_begin();
    td_scope_begin();
    for (int i = 0; i < o->count && !td_failed(); i++)
        if (td_grad_of(o->parameters[i]))
            step_parameter(o, i);
    td_scope_end();
    td_no_grad_end();
    return !td_failed();
}
/* optimisers: functions that set an optimiser */
bool td_zero_grad(td_optimiser *o)
{
    if (td_failed() || !td_require(o, "zero_grad", "optimiser"))
        return false;
    for (int i = 0; i < o->count; i++)
        td_set_grad(o->parameters[i], NULL);
    return !td_failed();
}
double td_learning_rate(const td_optimiser *o)
{
    return o ? o->rate : 0;
}
bool td_set_learning_rate(td_optimiser *o, double rate)
{
    if (td_failed() || !td_require(o, "set_learning_rate", "optimiser"))
        return false;
    if (!check_options(rate, &o->options))
        return false;
    o->rate = rate;
    return true;
}
