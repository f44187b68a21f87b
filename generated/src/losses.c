/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "losses": edit that, not this file. */
#include "autograd.h"
#include "composite.h"
#include "device.h"
#include "formula.h"
#include "parallel.h"
#include "reductions.h"
#include "space.h"
#include <treadle/treadle.h>
#include <inttypes.h>
#include <math.h>

/* losses: struct entropy */
typedef struct {
    const char *op;              /* whose errors these are */
    const td_tensor *x, *target;
    double *weight;              /* [classes] as doubles, or NULL */
    td_loss_reduction reduction;
    int64_t ignored;
    double smoothing;
    bool soft;                   /* the target holds probabilities */
    int dim;                     /* of the classes */
    int64_t classes, samples;
    td_lines rows;               /* of x, target, and out */
    double divisor;              /* of the mean; 1 otherwise */
    td_space gradient;           /* of the loss, in the backward pass */
    double *losses;              /* [samples], in the forward pass */
} entropy;
/* losses: struct row */
typedef struct {
    double *x, *q;               /* [classes]: scores and masses */
    int64_t best;                /* the class of the largest score */
    double mass, top, rest;      /* Q, m, exponentials of the others */
} row;
/* losses: struct loss_call */
typedef struct {
    td_tensor *x, *target, *weight;
    const td_value *attr;
    bool soft, mean, each;
    int dim;
    double smoothing;
} loss_call;
/* losses: functions that check a loss */
/* losses: function label_of */
static int64_t label_of(const entropy *e, int64_t s)
{
    int64_t label;
    td_lines_load(&e->rows, 1, s, TD_INT64, &label);
    return label;
}
/* losses: function check_scores */
static bool check_scores(entropy *e)
{
    const td_dtype type = e->x->dtype;
    if (type != TD_FLOAT32 && type != TD_FLOAT64)
        return td_fail(TD_ERROR_TYPE, e->op,
            "input must be float32 or float64, not %s",
            td_dtype_name(type));
    if (e->x->rank == 0)
        return td_fail(TD_ERROR_RUNTIME, e->op,
                       "input must have a dimension of classes");
    e->dim = e->x->rank == 1 ? 0 : 1;
    td_lines_add(&e->rows, e->x, e->dim);
    e->classes = e->rows.size[0];
    e->samples = e->rows.space.total;
    return true;
}
/* losses: function mismatch */
static bool mismatch(const entropy *e)
{
    char scores[TD_SHAPE_TEXT], target[TD_SHAPE_TEXT];
    return td_fail(TD_ERROR_RUNTIME, e->op, "input %s has its classes "
        "in dimension %d; target %s does not fit it",
        td_shape_text(e->x, scores), e->dim,
        td_shape_text(e->target, target));
}
/* losses: function check_target */
static bool check_target(entropy *e)
{
    const td_tensor *x = e->x, *t = e->target;
    e->soft = t->dtype == TD_FLOAT32 || t->dtype == TD_FLOAT64;
    if (!e->soft && t->dtype != TD_INT64 && t->dtype != TD_UINT8)
        return td_fail(TD_ERROR_TYPE, e->op, "target must be int64 "
            "labels or probabilities, not %s", td_dtype_name(t->dtype));
    bool same = t->rank == x->rank - !e->soft;
    for (int d = 0, k = 0; same && d < x->rank; d++)
        if (e->soft || d != e->dim)
            same = t->shape[k++] == x->shape[d];
    if (!same)
        return mismatch(e);
    td_lines_add(&e->rows, t, e->soft ? e->dim : -1);
    return true;
}
/* losses: function read_weight */
static bool read_weight(entropy *e, const td_tensor *w)
{
    if (!w)
        return true;
    if (w->rank != 1 || w->shape[0] != e->classes)
        return td_fail(TD_ERROR_RUNTIME, e->op, "weight must hold %"
            PRId64 " numbers, one a class", e->classes);
    if (!td_on_host(w))
        return true;
    e->weight = td_alloc_array((size_t)e->classes, sizeof *e->weight);
    if (e->weight)
        td_convert(TD_FLOAT64, e->weight, 1, w->dtype, td_at(w),
                   w->strides[0], e->classes);
    return e->weight;
}
/* losses: function read_reduction */
static const char *const reductions[] = { "mean", "sum", "none" };

static bool read_reduction(const char *op, const td_value *v,
                           td_loss_reduction *out)
{
    const char *word = v->kind == TD_STRING ? v->as.string : "mean";
    for (int i = 0; i < 3; i++)
        if (strcmp(word, reductions[i]) == 0) {
            *out = (td_loss_reduction)i;
            return true;
        }
    return td_fail(TD_ERROR_VALUE, op,
        "reduction '%s' is not mean, sum or none", word);
}
/* losses: function read_attributes */
static bool read_attributes(entropy *e, const td_value *attr)
{
    e->ignored = td_v_get_int(&attr[0], -100);
    e->smoothing = td_v_double(&attr[2]);
    if (!(e->smoothing >= 0 && e->smoothing <= 1))
        return td_fail(TD_ERROR_VALUE, e->op,
            "label_smoothing %g is not between 0 and 1", e->smoothing);
    if (e->soft && e->ignored >= 0)
        return td_fail(TD_ERROR_VALUE, e->op, "ignore_index has no "
                       "meaning for probabilities");
    return read_reduction(e->op, &attr[1], &e->reduction);
}
/* losses: function check_labels */
static bool check_labels(entropy *e)
{
    double total = 0;
    if (!td_on_host(e->x))
        return true;
    for (int64_t s = 0; s < e->samples && !e->soft; s++) {
        const int64_t y = label_of(e, s);
        if (y == e->ignored)
            continue;
        if (y < 0 || y >= e->classes)
            return td_fail(TD_ERROR_INDEX, e->op, "target %" PRId64
                " at position %" PRId64 " is not one of %" PRId64
                " classes", y, s, e->classes);
        total += e->weight ? e->weight[y] : 1;
    }
    if (e->reduction == TD_LOSS_MEAN)
        e->divisor = e->soft ? (double)e->samples : total;
    return true;
}
/* losses: function prepare */
static bool prepare(entropy *e, const char *op, const td_value *in,
                    const td_value *attr)
{
    *e = (entropy){ .op = op, .x = in[0].as.tensor,
                    .target = in[1].as.tensor, .divisor = 1 };
    return check_scores(e) && check_target(e)
        && read_attributes(e, attr)
        && read_weight(e, in[2].kind == TD_TENSOR ? in[2].as.tensor
                                                  : NULL)
        && check_labels(e);
}
/* losses: functions that compute rows */
/* losses: function read_masses */
static void read_masses(const entropy *e, int64_t s, row *r)
{
    const int64_t n = e->classes;
    const double spread = e->smoothing / (double)n;
    const int64_t y = e->soft ? -1 : label_of(e, s);
    r->mass = 0;
    if (e->soft)
        td_lines_load(&e->rows, 1, s, TD_FLOAT64, r->q);
    for (int64_t c = 0; c < n; c++) {
        const double t = e->soft ? r->q[c] : c == y;
        const double q = t * (1 - e->smoothing) + spread;
        const bool counts = e->soft || y != e->ignored;
        r->q[c] = !counts ? 0 : e->weight ? e->weight[c] * q : q;
        r->mass += r->q[c];
    }
}
/* losses: function read_row */
static void read_row(const entropy *e, int64_t s, row *r)
{
    td_lines_load(&e->rows, 0, s, TD_FLOAT64, r->x);
    read_masses(e, s, r);
    r->top = -INFINITY, r->best = 0, r->rest = 0;
    for (int64_t c = 0; c < e->classes; c++)
        if (!(r->x[c] <= r->top))
            r->top = r->x[r->best = c];
    for (int64_t c = 0; c < e->classes; c++)
        if (c != r->best)
            r->rest += exp(r->x[c] - r->top);
}
/* losses: function row_loss */
static double row_loss(const entropy *e, const row *r)
{
    /* 15.1-surprise: exercise 15.1 */
    double loss = 0;
    for (int64_t c = 0; c < e->classes; c++)
        if (r->q[c] != 0)
            loss += r->q[c] * (r->top - r->x[c] + log1p(r->rest));
    return loss;
}
/* losses: function for_each_row */
/* One thread's row buffers. */
static bool new_row(const entropy *e, row *r)
{
    r->x = td_scratch(2 * (size_t)e->classes * sizeof *r->x + 1);
    r->q = r->x + e->classes;
    return r->x;
}
static int64_t rows_at_a_time(const entropy *e)
{
    return 1 + 2048 / (e->classes + 1);
}
/* losses: function forward_rows */
static bool forward_rows(void *context, int64_t begin, int64_t end,
                         int worker)
{
    (void)worker;
    const entropy *e = context;
    row r;
    if (!new_row(e, &r))
        return false;
    for (int64_t s = begin; s < end; s++) {
        read_row(e, s, &r);
        e->losses[s] = row_loss(e, &r);
    }
    return true;
}
/* losses: function gradient_of */
static double gradient_of(const entropy *e, int64_t s)
{
    double g;
    td_convert(TD_FLOAT64, &g, 1, e->gradient.dtype[0],
               td_space_place(&e->gradient, 0,
                              e->reduction == TD_LOSS_NONE ? s : 0),
               1, 1);
    return g;
}
/* losses: function backward_rows */
static bool backward_rows(void *context, int64_t begin, int64_t end,
                          int worker)
{
    (void)worker;
    const entropy *e = context;
    row r;
    if (!new_row(e, &r))
        return false;
    for (int64_t s = begin; s < end; s++) {
        read_row(e, s, &r);
        const double g = r.mass == 0 ? 0
                       : gradient_of(e, s) / e->divisor;
        for (int64_t c = 0; c < e->classes; c++)
            r.x[c] = g * (r.mass * exp(r.x[c] - r.top) / (1 + r.rest)
                          - r.q[c]);
        td_lines_store(&e->rows, 2, s, TD_FLOAT64, r.x);
    }
    return true;
}
/* losses: kernels of losses */
/* losses: function new_loss */
static td_tensor *new_loss(const entropy *e)
{
    td_dims shape = { 0 };
    for (int d = 0; d < e->x->rank; d++)
        if (e->reduction == TD_LOSS_NONE && d != e->dim)
            shape.at[shape.count++] = e->x->shape[d];
    return td_tensor_new(shape, e->x->dtype, td_device_of(e->x));
}
static void free_weight(entropy *e)
{
    td_free(e->weight, (size_t)e->classes * sizeof *e->weight);
}
/* losses: kernel cross_entropy_kernel */
bool cross_entropy_kernel(td_call *call)
{
    entropy e;
    bool ok = prepare(&e, "cross_entropy", call->in, call->attr);
    const size_t n = ok ? (size_t)e.samples : 0;
    if (ok && !td_on_host(e.x))
        return td_return(call, new_loss(&e))
            && td_compute_elsewhere(call, NULL, e.x->dtype, false);
    if (ok) {
        e.losses = td_alloc_array(n + 1, sizeof *e.losses);
        ok = e.losses && td_return(call, new_loss(&e))
            && td_parallel_for(e.samples, rows_at_a_time(&e),
                               forward_rows, &e);
    }
    if (ok)
        /* losses: write the losses or their sum */
        {
            double total = 0;
            for (size_t s = 0; s < n; s++)
                total += e.losses[s];
            total /= e.divisor;
            const bool each = e.reduction == TD_LOSS_NONE;
            td_convert(e.x->dtype, td_at(call->out[0]), 1, TD_FLOAT64,
                       each ? e.losses : &total, 1, each ? e.samples : 1);
        }
    td_free(e.losses, (n + 1) * sizeof *e.losses);
    free_weight(&e);
    return ok;
}
/* losses: kernel cross_entropy_backward_kernel */
bool cross_entropy_backward_kernel(td_call *call)
{
    entropy e;
    const char *op = "cross_entropy_backward";
    bool ok = prepare(&e, op, call->in + 1, call->attr);
    const td_tensor *g = call->in[0].as.tensor;
    const int64_t losses = e.reduction == TD_LOSS_NONE ? e.samples : 1;
    td_space_begin(&e.gradient, g, TD_ALL_DIMS);
    if (ok && g->dtype != e.x->dtype)
        ok = td_fail(TD_ERROR_TYPE, op, "grad is %s, input %s",
                     td_dtype_name(g->dtype),
                     td_dtype_name(e.x->dtype));
    if (ok && e.gradient.total != losses)
        ok = td_fail(TD_ERROR_RUNTIME, op, "grad has %" PRId64
            " elements for %" PRId64 " losses", e.gradient.total,
            losses);
    /* losses: allocate and fill the gradient of the scores */
    td_tensor *out = !ok ? NULL
        : td_tensor_new(td_shape_of(e.x), e.x->dtype, td_device_of(e.x));
    if (out != NULL)
        td_lines_add(&e.rows, out, e.dim);
    ok = td_return(call, out) && (td_on_host(out)
      ? td_parallel_for(e.samples, rows_at_a_time(&e), backward_rows, &e)
      : td_compute_elsewhere(call, NULL, e.x->dtype, false));
    free_weight(&e);
    return ok;
}
/* losses: rules of losses */
/* losses: function loss_of */
static td_tensor *if_saved(const td_backward_pass *b, int i)
{
    return b->node->in[i].saved.tensor ? td_saved_input(b, i) : NULL;
}

/* The call whose scores are input `first` of the node of b. */
static loss_call loss_of(td_backward_pass *b, int first)
{
    loss_call l = { .x = td_saved_input(b, first),
        .target = if_saved(b, first + 1),
        .weight = if_saved(b, first + 2),
        .attr = td_attribute(b, 0) };
    if (td_failed())
        return l;
    td_loss_reduction reduction = TD_LOSS_MEAN;
    read_reduction("cross_entropy", &l.attr[1], &reduction);
    l.soft = td_dtype_is_floating(td_input_dtype(b, first + 1));
    l.mean = reduction == TD_LOSS_MEAN;
    l.each = reduction == TD_LOSS_NONE;
    l.dim = l.x->rank == 1 ? 0 : 1;
    l.smoothing = td_v_double(&l.attr[2]);
    return l;
}
/* losses: function no_weight_gradient */
static bool no_weight_gradient(const char *op)
{
    return td_fail(TD_ERROR_UNSUPPORTED, op, "weight is a constant "
                   "and has no gradient; detach it");
}
/* losses: function run_backward */
static td_tensor *run_backward(td_tensor *g, const loss_call *l)
{
    const td_value in[] = { td_v_tensor(g), td_v_tensor(l->x),
        td_v_tensor(l->target), td_v_optional(l->weight) };
    return td_run1(&td_ops[TD_OP_cross_entropy_backward], 4, in, 3,
                   l->attr);
}
static td_tensor *class_weights(const loss_call *l);
/* losses: functions that shape factors */
/* slope (1 - smoothing) w, with w along the dimension of classes. */
static td_tensor *weighted(const loss_call *l, td_tensor *slope)
{
    td_tensor *y = td_mul_scalar(slope, td_float(1 - l->smoothing));
    return l->weight ? td_mul(y, class_weights(l)) : y;
}
static td_tensor *class_weights(const loss_call *l)
{
    td_dims shape = { .count = l->x->rank };
    for (int d = 0; d < shape.count; d++)
        shape.at[d] = d == l->dim ? l->x->shape[d] : 1;
    return td_reshape(td_to(l->weight, l->x->dtype), shape);
}
/* The gradient a sample, over the divisor of probabilities. */
static td_tensor *scaled(const loss_call *l, td_tensor *g)
{
    const double n = l->x->shape[l->dim] == 0 ? 1
        : (double)td_numel(l->x) / (double)l->x->shape[l->dim];
    td_tensor *y = l->each ? td_unsqueeze(g, l->dim) : g;
    return l->mean ? td_div_scalar(y, td_float(n)) : y;
}
static td_tensor *sum_classes(const loss_call *l, td_tensor *x);
/* losses: function masses_of_probabilities */
static td_tensor *masses_of_probabilities(const loss_call *l)
{
    const double n = (double)l->x->shape[l->dim];
    td_tensor *q = td_add_scalar(
        td_mul_scalar(l->target, td_float(1 - l->smoothing)),
        td_float(l->smoothing / n));
    if (l->weight)
        q = td_mul(q, class_weights(l));
    q = sum_classes(l, q);
    const double samples = (double)td_numel(q);
    return l->mean ? td_div_scalar(q, td_float(samples)) : q;
}
/* losses: function label_weights */
/* The labels, with 0 in place of one whose k is 0. */
static td_tensor *safe_labels(td_tensor *target, td_tensor *k)
{
    return td_mul(td_to(target, TD_INT64), td_to(k, TD_INT64));
}
static td_tensor *label_weights(td_tensor *weight, td_tensor *target,
                                td_tensor *k)
{
    if (!weight || td_failed())
        return k;
    td_tensor *found = td_index_select(td_to(weight, k->dtype), 0,
        td_reshape(safe_labels(target, k), TD_DIMS(-1)));
    return td_mul(k, td_reshape(found, td_shape_of(target)));
}
/* losses: function masses */
static td_tensor *masses(const loss_call *l)
{
    if (l->soft)
        return masses_of_probabilities(l);
    const int64_t ignored = td_v_get_int(&l->attr[0], -100);
    const td_reduce_options all = { 0 };
    td_tensor *counts = td_ne_scalar(l->target, td_int(ignored));
    td_tensor *k = td_to(counts, l->x->dtype);
    td_tensor *w = label_weights(l->weight, l->target, k);
    double spread = l->smoothing;
    if (l->weight)
        spread *= td_item_double(td_mean(td_to(l->weight, l->x->dtype),
                                         all));
    td_tensor *q = td_mul_scalar(w, td_float(1 - l->smoothing));
    q = td_add(q, td_mul_scalar(k, td_float(spread)));
    if (l->mean)
        q = td_div(q, td_sum(w, all));
    return td_unsqueeze(q, l->dim);
}
/* losses: function through_seed */
static td_tensor *through_seed(const loss_call *l, td_dims shape,
                               td_tensor *v)
{
    td_tensor *one = run_backward(td_ones(shape, (td_tensor_options){
        .dtype = v->dtype, .device = td_device_of(v) }), l);
    td_tensor *all = td_mul(v, one);
    return l->each
        ? td_squeeze(sum_classes(l, all), TD_DIMS(l->dim))
        : td_reshape(td_sum(all, (td_reduce_options){ 0 }), shape);
}
static td_tensor *sum_classes(const loss_call *l, td_tensor *x)
{
    return td_sum(x, (td_reduce_options){ .dims = TD_DIMS(l->dim),
                                          .keepdim = true });
}
/* losses: rule cross_entropy_rule */
bool cross_entropy_rule(td_backward_pass *b)
{
    if (td_needs(b, 2))
        return no_weight_gradient("cross_entropy");
    const loss_call l = loss_of(b, 0);
    td_tensor *g = b->grad[0];
    if (td_needs(b, 0))
        b->grad_in[0] = run_backward(g, &l);
    if (td_needs(b, 1)) {
        td_tensor *slope = td_neg(td_log_softmax(l.x, l.dim));
        b->grad_in[1] = td_mul(weighted(&l, slope), scaled(&l, g));
    }
    return !td_failed();
}
/* losses: rule cross_entropy_backward_rule */
bool cross_entropy_backward_rule(td_backward_pass *b)
{
    if (td_needs(b, 3))
        return no_weight_gradient("cross_entropy_backward");
    const loss_call l = loss_of(b, 1);
    td_tensor *g = if_saved(b, 0), *v = b->grad[0];
    if (td_failed())
        return false;
    td_tensor *p = td_softmax(l.x, l.dim);
    td_tensor *centred = td_sub(v, sum_classes(&l, td_mul(p, v)));
    if (td_needs(b, 0))
        b->grad_in[0] = through_seed(&l, td_input_dims(b, 0), v);
    if (td_needs(b, 1)) {
        td_tensor *s = td_mul(l.each ? td_unsqueeze(g, l.dim) : g,
                              masses(&l));
        b->grad_in[1] = td_mul(s, td_mul(p, centred));
    }
    if (td_needs(b, 2))
        b->grad_in[2] = td_mul(weighted(&l, td_neg(centred)),
                               scaled(&l, g));
    return !td_failed();
}
/* losses: typed functions of losses */
/* losses: function pointwise */
static td_tensor *pointwise(td_call *call, const char *text)
{
    td_value bound[8], y = td_v_none();
    td_loss_reduction how = TD_LOSS_MEAN;
    const td_reduce_options all = { 0 };
    td_formula f;
    int n = 0;
    if (!read_reduction(call->op->name, &call->attr[0], &how)
        || !td_check_computes(call, td_input(call, 0)->dtype, true))
        return NULL;
    for (int i = 0; i < call->n_in; i++)
        bound[n++] = call->in[i].kind == TD_TENSOR ? call->in[i]
                                                   : td_v_float(1);
    for (int k = 1; k < call->n_attr; k++)
        bound[n++] = call->attr[k];
    if (!td_formula_parse(text, &f)
        || !td_formula_run(&f, "xabgy", bound, &y))
        return NULL;
    return how == TD_LOSS_NONE ? y.as.tensor
         : (how == TD_LOSS_SUM ? td_sum : td_mean)(y.as.tensor, all);
}
/* losses: formulas of losses */
static bool alike(const td_call *call)
{
    const td_tensor *x = td_input(call, 0), *t = td_input(call, 1);
    bool same = x->rank == t->rank;
    for (int d = 0; same && d < x->rank; d++)
        same = x->shape[d] == t->shape[d];
    char a[TD_SHAPE_TEXT], b[TD_SHAPE_TEXT];
    return same || td_fail(TD_ERROR_VALUE, call->op->name,
        "input %s and target %s differ in shape", td_shape_text(x, a),
        td_shape_text(t, b));
}
static bool any(const td_call *call)
{
    (void)call;
    return true;
}
static bool bends(const td_call *call)
{
    const bool huber = call->op == &td_ops[TD_OP_huber_loss];
    const double at = td_v_double(&call->attr[1]);
    return alike(call) && (at > 0 || (at == 0 && !huber)
        || td_fail(TD_ERROR_RUNTIME, call->op->name,
                   "the bend must not be at %g", at));
}
static bool unit(const td_call *call)
{
    td_tensor *x = td_input(call, 0);
    if (!alike(call) || !td_on_host(x))
        return !td_failed();
    td_no_grad_begin();
    td_tensor *above = td_ge_scalar(x, td_float(0));
    td_tensor *below = td_le_scalar(x, td_float(1));
    const double good = td_item_double(td_all(
        td_mul(above, below), (td_reduce_options){ 0 }));
    td_no_grad_end();
    return good != 0 || td_fail(TD_ERROR_RUNTIME, call->op->name,
        "input must be probabilities between 0 and 1");
}
td_tensor *binary_cross_entropy_with_logits_formula(td_call *call)
{
    return !alike(call) ? NULL
        : pointwise(call, call->in[3].kind != TD_TENSOR
            ? "b * ((1 - a) * x - p_logsigmoid(x))"
            : "b * ((1 - a) * x"
              " - (1 + (g - 1) * a) * p_logsigmoid(x))");
}
td_tensor *kl_div_formula(td_call *call)
{
    return pointwise(call, td_v_get_bool(&call->attr[1])
        ? "p_exp(a) * (a - x)"
        : "a * (p_log(select(a == 0, 1, a)) - x)");
}
td_tensor *nll_loss_formula(td_call *call)
{
    entropy e;
    const td_reduce_options all = { 0 };
    td_tensor *x = td_input(call, 0), *t = td_input(call, 1);
    td_tensor *weight = call->in[2].kind == TD_TENSOR
                      ? td_input(call, 2) : NULL;
    const td_value attr[] = { call->attr[0], call->attr[1],
                              td_v_float(0) };
    const bool good = prepare(&e, call->op->name, call->in, attr);
    free_weight(&e);
    if (!good || e.soft)
        return good ? td_refuse(call, "target must be int64 labels")
                    : NULL;
    td_tensor *counts = td_ne_scalar(t, td_int(e.ignored));
    td_tensor *k = td_to(counts, x->dtype);
    td_tensor *w = label_weights(weight, t, k);
    td_tensor *at = td_unsqueeze(safe_labels(t, k), e.dim);
    td_tensor *picked = td_squeeze(td_gather(x, e.dim, at),
                                   TD_DIMS(e.dim));
    td_tensor *y = td_where_scalar(counts, td_neg(td_mul(picked, w)),
                                   td_float(0));
    return e.reduction == TD_LOSS_NONE ? y
         : e.reduction == TD_LOSS_SUM ? td_sum(y, all)
         : td_div(td_sum(y, all), td_sum(w, all));
}
#define LOSS(name, check, operands, options, text, sentence)    \
    td_tensor *name##_formula(td_call *call)                    \
    {                                                           \
        return check(call) ? pointwise(call, text) : NULL;      \
    }
#include "losses.inc"
/* losses: function reduction_value */
static td_value reduction_value(td_loss_reduction r)
{
    td_value v = { .kind = TD_STRING };
    v.as.string = (unsigned)r < 3 ? reductions[r] : "unknown";
    return v;
}
/* losses: function td_cross_entropy */
td_tensor *td_cross_entropy(td_tensor *input, td_tensor *target,
                            td_cross_entropy_options options)
{
    const td_opt_i64 ignore = options.ignore_index;
    const td_value in[] = { td_v_tensor(input), td_v_tensor(target),
        td_v_optional(options.weight) };
    const td_value attr[] = {
        td_v_int(ignore.given ? ignore.value : -100),
        reduction_value(options.reduction),
        td_v_float(options.label_smoothing) };
    return td_run1(&td_ops[TD_OP_cross_entropy], 3, in, 3, attr);
}
/* losses: functions of two tensors */
static td_tensor *run_loss(const td_op *op, int n, td_tensor *const x[],
                           td_value first, td_value second, int n_attr)
{
    td_value in[4];
    for (int i = 0; i < n; i++)
        in[i] = td_v_optional(x[i]);
    return td_run1(op, n, in, n_attr, (td_value[]){ first, second });
}
#define LOSS_OF(n, n_attr, name, first, second, ...)                 \
    run_loss(&td_ops[TD_OP_##name], n,                               \
             (td_tensor *[]){ input, target, __VA_ARGS__ },          \
             first, second, n_attr)
#define PLAIN(name, n_attr)                                          \
    td_tensor *td_##name(td_tensor *input, td_tensor *target,        \
                         td_loss_reduction reduction)                \
    {                                                                \
        return LOSS_OF(2, n_attr, name, reduction_value(reduction),  \
                       td_v_bool(false), NULL);                      \
    }
PLAIN(mse_loss, 1)
PLAIN(l1_loss, 1)
PLAIN(kl_div, 2)
td_tensor *td_smooth_l1_loss(td_tensor *input, td_tensor *target,
                             double bend, td_loss_reduction reduction)
{
    return LOSS_OF(2, 2, smooth_l1_loss, reduction_value(reduction),
                   td_v_float(bend), NULL);
}
td_tensor *td_huber_loss(td_tensor *input, td_tensor *target,
                         double bend, td_loss_reduction reduction)
{
    return LOSS_OF(2, 2, huber_loss, reduction_value(reduction),
                   td_v_float(bend), NULL);
}
td_tensor *td_binary_cross_entropy(td_tensor *input, td_tensor *target,
                                   td_bit_options o)
{
    return LOSS_OF(3, 1, binary_cross_entropy,
        reduction_value(o.reduction), td_v_none(), o.weight);
}
td_tensor *td_binary_cross_entropy_with_logits(td_tensor *input,
    td_tensor *target, td_bit_options o)
{
    return LOSS_OF(4, 1, binary_cross_entropy_with_logits,
        reduction_value(o.reduction), td_v_none(), o.weight,
        o.pos_weight);
}
td_tensor *td_nll_loss(td_tensor *input, td_tensor *target,
                       td_cross_entropy_options o)
{
    return LOSS_OF(3, 2, nll_loss, td_v_int(o.ignore_index.given
        ? o.ignore_index.value : -100), reduction_value(o.reduction),
        o.weight);
}
