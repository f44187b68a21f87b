/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "statistics": edit that, not this file. */
/* Operators that are formulas of operators. */
#include "ops/composite.h"
#include "core/device.h"
#include "ops/order.h"
#include "ops/reductions.h"
#include <treadle/treadle.h>

/* statistics: formulas of statistics */
/* The square root; its gradient at 0 is 0. */
static td_tensor *safe_root(td_tensor *x)
{
    td_tensor *positive = td_ne_scalar(x, td_float(0));
    td_tensor *safe = td_where_scalar(positive, x, td_float(1));
    return td_where_scalar(positive, td_sqrt(safe), td_float(0));
}

TD_COMPOSED(var, x)
{
    const td_value *unbiased = &call->attr[1], *given = &call->attr[3];
    const double correction = given->kind == TD_SCALAR
        ? td_v_double(given)
        : unbiased->kind == TD_NONE || td_v_get_bool(unbiased);
    td_reduce_options wanted = td_over(call, 0, 2), kept = wanted;
    kept.keepdim = true;
    if (given->kind == TD_SCALAR && unbiased->kind == TD_SCALAR)
        return td_refuse_as(call, TD_ERROR_TYPE, "takes 'unbiased' or "
                            "'correction', not both");
    const td_dtype type = x->dtype;
    x = td_to(x, td_dtype_wide(type));
    td_tensor *m = td_mean(x, kept);
    td_tensor *sum = td_sum(td_square(td_sub(x, m)), wanted);
    const int64_t lines = td_numel(m);
    const double n = lines > 0 ? (double)(td_numel(x) / lines) : 0;
    if (!td_failed()
        && (td_is(call, var_mean) || td_is(call, std_mean)))
        call->out[1] = td_to(td_reshape(m, td_shape_of(sum)), type);
    sum = td_div_scalar(sum, td_float(fmax(n - correction, 0)));
    if (td_is(call, std) || td_is(call, std_mean))
        sum = safe_root(sum);
    return td_to(sum, type);
}

static td_tensor *norm_of(td_tensor *x, double p, td_reduce_options o)
{
    if (p == 2)
        return safe_root(td_sum(td_square(x), o));
    if (p == 0)
        return td_sum(td_where_scalar(td_eq_scalar(x, td_int(0)),
            td_mul_scalar(x, td_float(0)), td_int(1)), o);
    td_tensor *size = td_abs(x);
    if ((p < 0 || isinf(p)) && !td_failed() && td_numel(x) == 0
        && td_numel(td_sum(x, o)) > 0)
        return td_fail(TD_ERROR_RUNTIME, "vector_norm", "the %g-norm "
                       "of nothing is not defined", p), NULL;
    if (isinf(p))
        return p > 0 ? td_amax(size, o) : td_amin(size, o);
    if (p == 1)
        return td_sum(size, o);
    return td_pow_scalar(td_sum(td_pow_scalar(size, td_float(p)), o),
                         td_float(1 / p));
}

TD_COMPOSED(vector_norm, x)
{
    x = td_to(x, td_v_get_dtype(&call->attr[3], x->dtype));
    td_check_computes(call, td_dtype_of(x), true);
    return norm_of(x, td_real(call, 0), td_over(call, 1, 2));
}

TD_COMPOSED(normalize, x)
{
    td_reduce_options o = td_over(call, 1, -1);
    o.keepdim = true;
    td_check_computes(call, x->dtype, true);
    td_tensor *length = norm_of(x, td_real(call, 0), o);
    return td_div(x, td_maximum_scalar(length,
                                       td_float(td_real(call, 2))));
}

TD_COMPOSED(cosine_similarity, a)
{
    td_tensor *b = td_input(call, 1);
    const td_dtype both = td_promote(a->dtype, b->dtype);
    const td_reduce_options o = td_over(call, 0, -1);
    const td_scalar eps = td_float(td_real(call, 1));
    td_dims shape = TD_RANK_0;
    td_broadcast_shapes("cosine_similarity", a, b, &shape);
    td_check_computes(call, both, true);
    a = td_expand(td_to(a, both), shape);
    b = td_expand(td_to(b, both), shape);
    return td_div(td_sum(td_mul(a, b), o),
                  td_mul(td_maximum_scalar(norm_of(a, 2, o), eps),
                         td_maximum_scalar(norm_of(b, 2, o), eps)));
}

TD_COMPOSED(count_nonzero, x)
{
    return td_sum(td_ne_scalar(x, td_int(0)),
                  td_over(call, 0, -1));
}

TD_COMPOSED(nansum, x)
{
    td_tensor *nan = td_isnan(x);
    td_reduce_options o = td_over(call, 0, 1);
    o.dtype = td_v_get_dtype(&call->attr[2], TD_DTYPE_NONE);
    return td_sum(td_where_scalar(td_logical_not(nan), x,
                                  td_boolean(false)), o);
}

TD_COMPOSED(nanmean, x)
{
    td_reduce_options o = td_over(call, 0, 1);
    td_check_computes(call, x->dtype, true);
    return td_div(nansum_formula(call, x),
                  td_sum(td_logical_not(td_isnan(x)), o));
}

TD_COMPOSED(aminmax, x)
{
    const td_reduce_options o = td_over(call, 0, 1);
    call->out[1] = td_amax(x, o);
    return td_amin(x, o);
}

/* Zeros of n, to which each weight is added at its place. */
static td_tensor *add_at(td_tensor *weights, td_tensor *places,
                         int64_t n)
{
    return TD_CALL3(index_add, td_zeros(TD_DIMS(n), td_like(weights)),
                    places, weights, td_v_int(0), td_v_int(1));
}

TD_COMPOSED(bincount, x)
{
    td_tensor *given = td_input(call, 1);
    td_tensor *weights = given ? given
        : td_ones_like(x, TD_OF(TD_FLOAT64));
    int64_t n = td_number(call, 0, 0);
    if (td_failed() || x->rank != 1 || !td_dtype_is_integer(x->dtype)
        || n < 0 || weights->rank != 1
        || weights->shape[0] != x->shape[0])
        return td_refuse(call, "needs a vector of whole numbers, as "
                         "many weights, minlength >= 0");
    if (x->shape[0] > 0) {
        const int64_t most = td_item_int(td_max(x));
        n = most < n ? n : most + 1;
        if (td_item_int(td_min(x)) < 0)
            td_refuse(call, "a number is negative");
    }
    if (weights->dtype != TD_FLOAT32)
        weights = td_to(weights, TD_FLOAT64);
    x = add_at(weights, td_to(x, TD_INT64), n);
    return given ? x : td_to(x, TD_INT64);
}

TD_COMPOSED(histc, x)
{
    const int64_t bins = td_number(call, 0, 100);
    double low = td_real(call, 1), high = td_real(call, 2);
    td_check_computes(call, x->dtype, true);
    /* statistics: find the edges of the histogram */
    if (low == high && td_numel(x) > 0) {
        low = td_item_double(td_min(x));
        high = td_item_double(td_max(x));
    }
    if (low == high)
        low -= 1, high += 1;
    if (!(low < high && isfinite(high - low)))
        return td_refuse(call, "the range from %g to %g is no range", low,
                         high);
    if (bins <= 0 || bins == INT64_MAX)
        return td_refuse(call, "bins must be > 0, got %" PRId64, bins);
    x = td_reshape(x, TD_DIMS(-1));
    td_tensor *inside = td_mul(td_ge_scalar(x, td_float(low)),
                               td_le_scalar(x, td_float(high)));
    td_tensor *box = td_mul_scalar(td_div_scalar(
        td_sub_scalar(x, td_float(low)), td_float(high - low)),
        td_float((double)bins));
    box = td_minimum_scalar(box, td_float((double)(bins - 1)));
    box = td_where_scalar(inside, box, td_float((double)bins));
    x = add_at(td_ones_like(x, (td_tensor_options)TD_DEFAULTS),
               td_to(box, TD_INT64), bins + 1);
    return td_clone(td_part(x, 0, 0, bins));
}

TD_COMPOSED(multinomial, x)
{
    td_tensor *places = NULL;
    const int64_t k = td_number(call, 0, 1);
    const bool again = td_flag(call, 1);
    td_check_computes(call, x->dtype, true);
    const int64_t n = x->rank > 0 ? x->shape[x->rank - 1] : 0;
    if (x->rank < 1 || x->rank > 2 || k <= 0 || (!again && k > n))
        return td_refuse(call, "cannot draw %" PRId64 " of %" PRId64
            " elements%s", k, n, again ? "" : " without replacement");
    td_tensor *p = td_to(x, TD_FLOAT64);
    td_tensor *sum = td_sum(p, (td_reduce_options){
        .dims = TD_DIMS(-1), .keepdim = true });
    /* statistics: refuse weights of which none can be drawn */
    if (td_failed() || (td_numel(sum) > 0
            && !(td_numel(p) > 0 && td_item_double(td_min(p)) >= 0
                 && isfinite(td_item_double(td_max(sum)))
                 && td_item_double(td_min(sum)) > 0)))
        return td_refuse(call, "the weights of a row must be finite, not "
                         "negative, and not all zero");
    /* statistics: draw places by uniform numbers */
    td_dims shape = td_shape_of(x);
    shape.at[shape.count - 1] = again ? k : n;
    td_tensor *u = TD_RUN(rand, (), td_v_ints(&shape), call->attr[2],
        td_v_dtype(TD_FLOAT64), td_v_device(td_device_of(x)));
    if (again)
        return TD_CALL2(searchsorted, td_cumsum(p, -1),
            td_mul(td_mul_scalar(u, td_float(1 - 0x1p-52)), sum),
            td_v_bool(false), td_v_bool(true), td_v_none());
    u = td_neg(td_log(td_rsub_scalar(u, td_float(1))));
    td_topk(td_div(u, p), k, -1, false, &places);
    return places;
}

/* The places of n rows in the order of their elements. */
static td_tensor *order_rows(td_tensor *rows)
{
    td_tensor *order = td_count_up(0, td_size(rows, 0),
                                   TD_OF(TD_INT64));
    for (int64_t c = td_size(rows, 1) - 1; c >= 0 && !td_failed();
         c--) {
        td_tensor *places = NULL;
        td_scope_begin();
        td_sort(td_index_select(td_select(rows, 1, c), 0, order), 0,
                false, &places);
        order = td_scope_end_with(td_index_select(order, 0, places));
    }
    return order;
}

TD_COMPOSED(unique, x)
{
    td_tensor **more = call->out + 1;
    const bool sorted = td_is(call, unique);
    const td_value *attr = call->attr + sorted;
    const bool flat = attr[2].kind == TD_NONE || x->rank == 0;
    const td_dims shape = td_shape_of(x);
    const int dim = td_dimension(call, td_v_get_int(&attr[2], 0),
                                 flat ? 1 : x->rank);
    const td_device home = td_device_of(x);
    x = flat ? td_reshape(x, TD_DIMS(-1)) : x;
    const int64_t n = td_size(x, dim), all = td_numel(x);
    if (all == 0 && n > 0)
        return td_refuse(call, "the slices along dimension %d are "
                         "empty", dim);
    td_tensor *rows = td_reshape(td_movedim(
        td_brought(x, TD_CPU), TD_DIMS(dim), TD_DIMS(0)),
        TD_DIMS(n, n > 0 ? all / n : 1));
    td_tensor *order = sorted ? order_rows(rows)
                     : td_count_up(0, n, TD_OF(TD_INT64));
    /* statistics: find groups of equal neighbours */
    rows = td_index_select(rows, 0, order);
    td_tensor *fresh = td_ne(td_tail(rows, 0), td_head(rows, 0));
    fresh = td_size(rows, 1) == 1 ? td_select(fresh, 1, 0)
          : td_any(fresh, TD_OVER(1));
    td_tensor *group = td_cumsum(td_pad(fresh, TD_DIMS(n > 0, 0),
                                        "constant", 0), 0);
    td_tensor *counts = TD_RUN(bincount,
        (td_v_tensor(group), td_v_none()), td_v_int(0));
    td_tensor *inverse = td_index_select(group, 0, TD_CALL(argsort, order,
        td_v_int(0), td_v_bool(false), td_v_bool(true)));
    td_tensor *first = td_index_select(order, 0,
        td_sub(td_cumsum(counts, 0), counts));
    if (td_v_get_bool(&attr[0]))
        *more++ = td_sent(flat ? td_reshape(inverse, shape) : inverse,
                          home);
    if (td_v_get_bool(&attr[1]))
        *more++ = td_sent(counts, home);
    return td_index_select(x, dim, td_sent(first, home));
}
/* statistics: functions of statistics */
#define SPREAD(op) \
    TD_TYPED(op, (td_v_ints(&o.dims), td_v_none(), \
                  td_v_bool(o.keepdim), o.correction.given \
                  ? td_v_float(o.correction.value) : td_v_none()), \
             td_var_options o)
SPREAD(var)
SPREAD(std)

td_tensor *td_norm(td_tensor *input, double p, td_reduce_options o)
{
    return TD_CALL(vector_norm, input, td_v_float(p),
        td_v_ints(&o.dims), td_v_bool(o.keepdim), td_v_dtype(o.dtype));
}

TD_TYPED(multinomial, (td_v_int(num_samples), td_v_bool(replacement),
                       td_v_none()),
         int64_t num_samples, bool replacement)
