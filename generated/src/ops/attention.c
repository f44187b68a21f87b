/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "attention": edit that, not this file. */
/* Attention, and positions by rotation. */
#include <math.h>
#include <treadle/arranging.h>
#include <treadle/elementwise.h>
#include <treadle/matmul.h>
#include "ops/composite.h"
#include "ops/reductions.h"

/* attention: function masked */
/* Scores with a mask; *alive: which rows have a key left. */
static td_tensor *masked(td_tensor *scores, td_tensor *mask,
                         td_tensor **alive)
{
    const td_reduce_options keys = { .dims = TD_DIMS(-1),
                                     .keepdim = true };
    /* nobody: exercise nobody */
    const td_scalar never = td_float(-INFINITY);
    if (mask->dtype == TD_BOOL) {
        *alive = td_any(mask, keys);
        return td_where_scalar(td_logical_or(mask,
            td_logical_not(*alive)), scores, never);
    }
    *alive = td_any(td_ne_scalar(mask, never), keys);
    return td_add(scores, td_where_scalar(*alive, mask, td_float(0)));
}
/* attention: function weights */
/* The weights [..., L, S] of the keys k for the questions q. */
static td_tensor *weights(td_call *call, td_tensor *q, td_tensor *k,
                          td_tensor *mask)
{
    td_tensor *alive = NULL;
    /* attention: score each key for each question */
    const int64_t d = q->shape[q->rank - 1];
    const double usual = 1 / sqrt((double)d);
    const double factor = call->attr[2].kind == TD_SCALAR
                        ? td_real(call, 2) : usual;
    td_tensor *x = td_matmul(td_mul_scalar(q, td_float(factor)),
                             td_transpose(k, -2, -1));
    /* attention: let a text look back only */
    if (td_flag(call, 1))
        x = td_where_scalar(td_tril(td_ones(
                TD_DIMS(q->shape[q->rank - 2], td_size(k, -2)),
                td_beside(q, TD_BOOL)), 0), x, td_float(-INFINITY));
    if (mask != NULL)
        x = masked(x, mask, &alive);
    x = td_softmax(x, -1);
    if (alive != NULL)
        x = td_where_scalar(alive, x, td_float(0));
    return TD_CALL(dropout, x, call->attr[0], td_v_bool(true));
}
/* attention: function is_attentive */
static bool is_attentive(const td_call *call, const td_tensor *q,
                         const td_tensor *k, const td_tensor *mask)
{
    if (q->rank < 2 || k->rank < 2
        || q->shape[q->rank - 1] != k->shape[k->rank - 1])
        return td_refuse(call, "expected a query [..., L, d] and a key "
                         "[..., S, d]");
    if (mask != NULL && td_flag(call, 1))
        return td_refuse(call, "attn_mask and is_causal exclude each "
                         "other: give one of them");
    if (mask != NULL && (mask->rank == 0 || (mask->dtype != TD_BOOL
                                         && mask->dtype != q->dtype)))
        return td_refuse(call, "attn_mask must be bool or %s as the "
                         "query, not %s, and have dimensions",
                         td_dtype_name(q->dtype),
                         td_dtype_name(mask->dtype));
    return td_check_computes(call, td_dtype_wide(q->dtype), true);
}
/* attention: function per_head */
/* k with as many heads (dimension -3) as q. */
static td_tensor *per_head(td_call *call, td_tensor *q, td_tensor *k)
{
    const int64_t heads = q->rank < 3 ? 0 : q->shape[q->rank - 3];
    const int64_t few = k->rank < 3 ? 0 : k->shape[k->rank - 3];
    if (few == 0 || heads % few != 0)
        return td_refuse(call, "with enable_gqa the query must have a "
                         "multiple of the heads of key and value");
    return TD_RUN(repeat_interleave,
                  (td_v_tensor(k), td_v_int(heads / few)),
                  td_v_int(-3), td_v_none());
}
/* attention: formulas of attention */
td_tensor *attention_weights_formula(td_call *call)
{
    td_tensor *q = td_input(call, 0), *k = td_input(call, 1);
    td_tensor *mask = td_input(call, 2);
    return is_attentive(call, q, k, mask) ? weights(call, q, k, mask)
                                          : NULL;
}

td_tensor *scaled_dot_product_attention_formula(td_call *call)
{
    td_tensor *q = td_input(call, 0), *k = td_input(call, 1);
    td_tensor *v = td_input(call, 2), *mask = td_input(call, 3);
    if (!is_attentive(call, q, k, mask))
        return NULL;
    if (td_flag(call, 3)) {
        k = per_head(call, q, k);
        v = per_head(call, q, v);
    }
    return td_failed() ? NULL
         : td_matmul(weights(call, q, k, mask), v);
}

td_tensor *rotary_embedding_formula(td_call *call)
{
    td_tensor *x = td_input(call, 0), *at = td_input(call, 1);
    const bool neighbours = td_flag(call, 1);
    const td_tensor_options o = td_beside(x, TD_FLOAT64);
    if (!td_check_computes(call, x->dtype, true))
        return NULL;
    if (x->rank < 2 || x->rank == TD_MAX_RANK
        || x->shape[x->rank - 1] % 2 != 0)
        return td_refuse(call, "expected an input [..., T, d] of 2 to "
                         "7 dimensions with an even d");
    const int64_t n = x->shape[x->rank - 1] / 2;
    /* attention: turn positions into sines and cosines */
    const td_scalar step = td_float(n > 0 ? -1.0 / (double)n : 0);
    td_tensor *rate = td_rpow_scalar(td_mul_scalar(
        td_arange(td_int(0), td_int(n), td_int(1), o), step),
        td_float(td_real(call, 0)));
    if (at == NULL)
        at = td_arange(td_int(0), td_int(x->shape[x->rank - 2]), td_int(1),
                       o);
    td_tensor *angle = td_mul(td_unsqueeze(td_to(at, TD_FLOAT64), -1),
                              rate);
    td_tensor *c = td_to(td_cos(angle), x->dtype);
    td_tensor *s = td_to(td_sin(angle), x->dtype);
    /* attention: turn each pair by its angle */
    td_dims pairs = td_shape_of(x);
    const int two = neighbours ? x->rank : x->rank - 1;
    pairs.at[x->rank - 1] = pairs.at[x->rank] = n;
    pairs.at[two] = 2;
    pairs.count++;
    td_tensor *p = td_reshape(x, pairs);
    td_tensor *a = td_select(p, two, 0), *b = td_select(p, two, 1);
    td_tensor *turned[] = { td_sub(td_mul(a, c), td_mul(b, s)),
                            td_add(td_mul(a, s), td_mul(b, c)) };
    return td_failed() ? NULL
         : td_reshape(td_stack(turned, 2, two), td_shape_of(x));
}
