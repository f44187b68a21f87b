/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "losses": edit that, not this file. */
#include "ops/composite.h"
#include "core/device.h"
#include "ops/formula.h"
#include "ops/reductions.h"
#include <treadle/treadle.h>

/* losses: struct entropy */
typedef struct {
    const td_call *call;         /* whose errors these are */
    td_tensor *x, *target;
    td_tensor *weight;           /* [classes], or NULL */
    td_loss_reduction reduction;
    int64_t ignored, classes;
    double smoothing;
    bool soft;                   /* the target holds probabilities */
    int dim;                     /* of the classes */
} entropy;
/* losses: functions that check a loss */
/* losses: function check_scores */
static bool check_scores(entropy *e)
{
    if (!td_check_computes(e->call, e->x->dtype, true))
        return false;
    if (e->x->rank == 0)
        return td_refuse(e->call,
                         "input must have a dimension of classes");
    e->dim = e->x->rank == 1 ? 0 : 1;
    e->classes = e->x->shape[e->dim];
    return true;
}
/* losses: function check_target */
static bool check_target(entropy *e)
{
    const td_tensor *x = e->x, *t = e->target;
    e->soft = t->dtype == TD_FLOAT32 || t->dtype == TD_FLOAT64;
    bool same = t->rank == x->rank - !e->soft;
    for (int d = 0, k = 0; same && d < x->rank; d++)
        if (e->soft || d != e->dim)
            same = t->shape[k++] == x->shape[d];
    return same || td_refuse(e->call, "input has its classes in "
        "dimension %d, target does not fit it", e->dim);
}
/* losses: function read_reduction */
static const char *const reductions[] = { "mean", "sum", "none" };

static bool read_reduction(const td_value *v, td_loss_reduction *out)
{
    const char *word = v->kind == TD_STRING ? v->as.string : "mean";
    for (int i = 0; i < 3; i++)
        if (strcmp(word, reductions[i]) == 0) {
            *out = (td_loss_reduction)i;
            return true;
        }
    return td_fail(TD_ERROR_VALUE, "cross_entropy",
        "reduction '%s' is not mean, sum or none", word);
}
/* losses: function read_attributes */
static bool read_attributes(entropy *e, const td_call *call)
{
    e->ignored = td_number(call, 0, -100);
    e->smoothing = call->n_attr > 2 ? td_real(call, 2) : 0;
    if (!(e->smoothing >= 0 && e->smoothing <= 1))
        return td_fail(TD_ERROR_VALUE, "cross_entropy",
            "label_smoothing %g is not between 0 and 1", e->smoothing);
    if (e->soft && e->ignored >= 0)
        return td_fail(TD_ERROR_VALUE, "cross_entropy",
            "ignore_index has no meaning for probabilities");
    return read_reduction(&call->attr[1], &e->reduction);
}
/* losses: function prepare */
static bool prepare(entropy *e, const td_call *call, td_tensor *x)
{
    *e = (entropy){ .call = call, .x = x,
        .target = td_input(call, 1), .weight = td_input(call, 2) };
    return check_scores(e) && check_target(e)
        && (!e->weight || td_expect(call, "weight", e->weight,
                                    TD_DIMS(e->classes)))
        && read_attributes(e, call);
}
/* losses: kernel check_labels_kernel */
TD_KERNEL(check_labels, t)
{
    const int64_t classes = td_number(call, 0, 0);
    const int64_t ignored = td_number(call, 1, -100);
    if (t->dtype != TD_INT64 && t->dtype != TD_UINT8)
        return td_fail(TD_ERROR_TYPE, "cross_entropy", "target must be "
            "int64 labels or probabilities, not %s",
            td_dtype_name(t->dtype));
    td_tensor *labels = td_copied(t, TD_INT64);
    bool good = td_return(call, labels);
    /* losses: compare each of the labels with the classes */
    for (int64_t i = 0; good && td_on_host(labels)
                        && i < td_numel(labels); i++) {
        const int64_t y = ((const int64_t *)td_at(labels))[i];
        good = y == ignored || (y >= 0 && y < classes)
            || td_fail(TD_ERROR_INDEX, "cross_entropy", "target %" PRId64
                       " at position %" PRId64 " is not one of %" PRId64
                       " classes", y, i, classes);
    }
    return good;
}
/* losses: function reduced */
static td_tensor *total(td_tensor *x)
{
    return td_sum(x, TD_REDUCE_DEFAULTS);
}

static td_tensor *reduced(td_loss_reduction how, td_tensor *x)
{
    return how == TD_LOSS_NONE ? x : how == TD_LOSS_SUM ? total(x)
         : td_mean(x, TD_REDUCE_DEFAULTS);
}
/* losses: functions about labels */
/* The weight of each label. */
static td_tensor *label_weights(const entropy *e, td_tensor *labels)
{
    td_tensor *line = td_reshape(labels, TD_DIMS(-1));
    td_tensor *w = td_to(e->weight, e->x->dtype);
    return td_reshape(td_index_select(w, 0, line),
                      td_shape_of(e->target));
}
/* The weights, with their dimension where the classes are. */
static td_tensor *class_weights(const entropy *e)
{
    td_dims shape = { .count = e->x->rank };
    for (int d = 0; d < shape.count; d++)
        shape.at[d] = d == e->dim ? e->classes : 1;
    return td_reshape(td_to(e->weight, e->x->dtype), shape);
}
static td_tensor *smoothed(const entropy *e, td_tensor *logs,
                           td_tensor *share)
{
    const double spread = e->smoothing / (double)e->classes;
    if (e->weight)
        logs = td_mul(logs, class_weights(e));
    td_tensor *all = td_sum(logs, TD_OVER(e->dim));
    return td_add(td_mul_scalar(share, td_float(1 - e->smoothing)),
                  td_mul_scalar(all, td_float(spread)));
}
/* losses: function of_labels */
/* The loss of labels t, given the logarithms of probabilities. */
static td_tensor *of_labels(const entropy *e, td_tensor *logs)
{
    td_tensor *t = TD_CALL(check_labels, e->target,
                           td_v_int(e->classes), td_v_int(e->ignored));
    td_tensor *counts = td_ne_scalar(t, td_int(e->ignored));
    td_tensor *safe = td_where_scalar(counts, t, td_int(0));
    td_tensor *w = e->weight ? label_weights(e, safe) : NULL;
    /* losses: pick what each label costs */
    td_tensor *share = td_squeeze(td_gather(logs, e->dim,
        td_unsqueeze(safe, e->dim)), TD_DIMS(e->dim));
    if (w)
        share = td_mul(share, w);
    if (e->smoothing != 0)
        share = smoothed(e, logs, share);
    td_tensor *each = td_where_scalar(counts, td_neg(share),
                                      td_float(0));
    if (e->reduction != TD_LOSS_MEAN)
        return reduced(e->reduction, each);
    return td_div(total(each), total(
        w ? td_where_scalar(counts, w, td_float(0)) : counts));
}
/* losses: function surprise */
static td_tensor *surprise(td_tensor *logs, td_tensor *q, int dim)
{
    /* surprise: exercise surprise */
    td_tensor *counts = td_logical_or(td_ne_scalar(q, td_int(0)),
                            td_ne_scalar(logs, td_float(-INFINITY)));
    td_tensor *charged = td_where_scalar(counts, logs, td_float(0));
    return td_neg(td_sum(td_mul(q, charged), (td_reduce_options){
        .dims = TD_DIMS(dim) }));
}
/* losses: function of_masses */
/* The loss of probabilities. */
static td_tensor *of_masses(const entropy *e, td_tensor *logs)
{
    const double spread = e->smoothing / (double)e->classes;
    td_tensor *q = td_to(e->target, e->x->dtype);
    if (e->smoothing != 0)
        q = td_add_scalar(
            td_mul_scalar(q, td_float(1 - e->smoothing)),
            td_float(spread));
    if (e->weight)
        q = td_mul(q, class_weights(e));
    return reduced(e->reduction, surprise(logs, q, e->dim));
}
/* losses: function pointwise */
static td_tensor *pointwise(td_call *call, const td_tensor *x,
                            const char *text)
{
    td_value bound[8], y = td_v_none();
    td_loss_reduction how = TD_LOSS_MEAN;
    td_formula f;
    int n = 0;
    if (!read_reduction(&call->attr[0], &how)
        || !td_check_computes(call, x->dtype, true))
        return NULL;
    /* losses: bind the operands and the options */
    TD_EACH(i, call, in)
        bound[n++] = call->in[i].kind == TD_TENSOR ? call->in[i]
                                                   : td_v_float(1);
    for (int k = 1; k < call->n_attr; k++)
        bound[n++] = call->attr[k];
    if (!td_formula_parse(text, &f)
        || !td_formula_run(&f, "xabgy", bound, &y))
        return NULL;
    return reduced(how, y.as.tensor);
}
/* losses: formulas of losses */
TD_COMPOSED(cross_entropy, x)
{
    const bool given = td_is(call, nll_loss);
    entropy e;
    if (!prepare(&e, call, x))
        return NULL;
    if (given && e.soft)
        return td_refuse(call, "target must be int64 labels");
    td_tensor *logs = given ? e.x : td_log_softmax(e.x, e.dim);
    return e.soft ? of_masses(&e, logs) : of_labels(&e, logs);
}
static bool alike(const td_call *call, const td_tensor *x)
{
    const td_dims s = td_shape_of(x);
    const td_dims t = td_shape_of(td_input(call, 1));
    return td_dims_equal(&s, &t) || td_refuse_as(call, TD_ERROR_VALUE,
        "input and target differ in shape");
}
static bool any(const td_call *call, const td_tensor *x)
{
    return call && x;
}
static bool bends(const td_call *call, const td_tensor *x)
{
    const bool huber = td_is(call, huber_loss);
    const double at = td_real(call, 1);
    return alike(call, x) && (at > 0 || (at == 0 && !huber)
        || td_refuse(call, "the bend must not be at %g", at));
}
static bool unit(const td_call *call, td_tensor *x)
{
    if (!alike(call, x) || !td_on_host(x))
        return !td_failed();
    td_no_grad_begin();
    td_tensor *above = td_ge_scalar(x, td_float(0));
    td_tensor *below = td_le_scalar(x, td_float(1));
    const double good = td_item_double(td_all(
        td_mul(above, below), TD_REDUCE_DEFAULTS));
    td_no_grad_end();
    return good != 0 || td_refuse(call,
        "input must be probabilities between 0 and 1");
}
TD_COMPOSED(binary_cross_entropy_with_logits, x)
{
    return !alike(call, x) ? NULL
        : pointwise(call, x, call->in[3].kind != TD_TENSOR
            ? "b * ((1 - a) * x - p_logsigmoid(x))"
            : "b * ((1 - a) * x"
              " - (1 + (g - 1) * a) * p_logsigmoid(x))");
}
TD_COMPOSED(kl_div, x)
{
    return pointwise(call, x, td_flag(call, 1)
        ? "p_exp(a) * (a - x)"
        : "a * (p_log(select(a == 0, 1, a)) - x)");
}
#define LOSS(name, check, operands, options, text, sentence)    \
    TD_COMPOSED(name, x)                                        \
    {                                                           \
        return check(call, x) ? pointwise(call, x, text) : NULL; \
    }
#include "nn/losses.inc"
/* losses: function reduction_value */
static td_value reduction_value(td_loss_reduction r)
{
    td_value v = { .kind = TD_STRING };
    v.as.string = (unsigned)r < 3 ? reductions[r] : "unknown";
    return v;
}
/* losses: typed functions of losses */
#define PACK(name, operands, attributes, ...)                         \
    TD_TYPED_AS(name, name, operands, attributes, td_tensor *input,   \
                td_tensor *target, __VA_ARGS__)
#define BOTH td_v_tensor(input), td_v_tensor(target)
PACK(cross_entropy, (BOTH, td_v_optional(o.weight)),
     (td_v_opt_int(o.ignore_index), reduction_value(o.reduction),
      td_v_float(o.label_smoothing)), td_cross_entropy_options o)
PACK(mse_loss, (BOTH), (reduction_value(r)), td_loss_reduction r)
PACK(l1_loss, (BOTH), (reduction_value(r)), td_loss_reduction r)
PACK(kl_div, (BOTH), (reduction_value(r), td_v_none()),
     td_loss_reduction r)
PACK(smooth_l1_loss, (BOTH), (reduction_value(r), td_v_float(bend)),
     double bend, td_loss_reduction r)
PACK(huber_loss, (BOTH), (reduction_value(r), td_v_float(bend)),
     double bend, td_loss_reduction r)
PACK(binary_cross_entropy, (BOTH, td_v_optional(o.weight)),
     (reduction_value(o.reduction)), td_bit_options o)
PACK(binary_cross_entropy_with_logits,
     (BOTH, td_v_optional(o.weight), td_v_optional(o.pos_weight)),
     (reduction_value(o.reduction)), td_bit_options o)
PACK(nll_loss, (BOTH, td_v_optional(o.weight)),
     (td_v_opt_int(o.ignore_index), reduction_value(o.reduction)),
     td_cross_entropy_options o)
