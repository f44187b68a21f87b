/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "attention": edit that, not this file. */
/* Attention, and positions by rotation. */
#include <math.h>
#include <treadle/arranging.h>
#include <treadle/elementwise.h>
#include <treadle/matmul.h>
#include "core/runtime.h"
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
static double scale_of(const td_call *call, const td_tensor *q)
{
    return call->attr[2].kind == TD_SCALAR ? td_real(call, 2)
         : 1 / sqrt((double)q->shape[q->rank - 1]);
}

/* The weights [..., L, S] of the keys k for the questions q, of which
   the first is number `first`. */
static td_tensor *weights(td_call *call, td_tensor *q, td_tensor *k,
                          td_tensor *mask, int64_t first)
{
    td_tensor *alive = NULL;
    /* attention: score each key for each question */
    td_tensor *x = td_matmul(
        td_mul_scalar(q, td_float(scale_of(call, q))),
        td_transpose(k, -2, -1));
    /* attention: let a text look back only */
    if (td_flag(call, 1))
        x = td_where_scalar(td_tril(td_ones(
                TD_DIMS(q->shape[q->rank - 2], td_size(k, -2)),
                td_beside(q, TD_BOOL)), first), x, td_float(-INFINITY));
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
/* attention: function use_block */
enum { BLOCK = 32 };

static td_tensor *rows(td_call *call, int k, int64_t begin, int64_t end)
{
    return td_part(td_input(call, k), -2, begin, end);
}

/* May x, one of the other operands, come with q in blocks? */
static bool fits(const td_call *call, const td_tensor *q,
                 const td_tensor *x)
{
    const int rank = x != NULL ? x->rank : 0;
    bool fit = td_real(call, 0) == 0 && rank <= q->rank
        && (x == NULL || x->dtype == q->dtype || x->dtype == TD_BOOL);
    for (int i = 3; i <= rank; i++) {
        const int64_t n = x->shape[rank - i];
        fit = fit && (n == 1 || n == q->shape[q->rank - i]);
    }
    return fit;
}

/* Adds a b to rows of the result k. */
static void add_rows(td_call *call, int k, int64_t begin, int64_t end,
                     td_tensor *a, td_tensor *b)
{
    td_add_(td_part(call->out[k], -2, begin, end), td_matmul(a, b));
}

static void use_block(td_call *call, int64_t i)
{
    const int64_t end = i + BLOCK;
    const int64_t keys = td_flag(call, 1) ? end : INT64_MAX;
    td_tensor *q = rows(call, 0, i, end), *k = rows(call, 1, 0, keys);
    td_tensor *v = rows(call, 2, 0, keys), *mask = td_input(call, 3);
    if (mask != NULL && mask->rank > 1 && td_size(mask, -2) > 1)
        mask = rows(call, 3, i, end);
    if (td_failed())
        return;
    td_tensor *p = weights(call, q, k, mask, i);
    if (call->n_in == 4)
        add_rows(call, 0, i, end, p, v);
    else
        /* attention: add what a block gives to the gradients */
        {
            const td_scalar scale = td_float(scale_of(call, q));
            td_tensor *o = rows(call, 4, i, end);
            td_tensor *g = td_matmul(o, td_transpose(v, -2, -1));
            td_mul_(td_sub_(g, td_sum(td_mul(p, g), (td_reduce_options){
                        .dims = TD_DIMS(-1), .keepdim = true })), p);
            add_rows(call, 0, i, end, g, td_mul_scalar(k, scale));
            add_rows(call, 1, 0, keys, td_transpose(g, -2, -1),
                     td_mul_scalar(q, scale));
            add_rows(call, 2, 0, keys, td_transpose(p, -2, -1), o);
        }
}
/* attention: kernel of blocks */
bool attend_kernel(td_call *call)
{
    td_tensor *q = td_input(call, 0);
    const bool back = call->n_in > 4, symbolic = td_self()->symbolic;
    if (!is_attentive(call, q, td_input(call, 1), td_input(call, 3)))
        return false;
    for (int i = 1; i < 4; i++)
        if (!fits(call, q, td_input(call, i)))
            return td_refuse(call, "expected one type, batches like "
                             "the query's, no dropout");
    for (int k = 0; k < (back ? 3 : 1); k++) {
        td_dims shape = td_shape_of(q);
        shape.at[q->rank - 2] = td_size(td_input(call, k), -2);
        shape.at[q->rank - 1] = td_size(td_input(call, back ? k : 2),
                                        -1);
        call->out[k] = td_tensor_new(shape, q->dtype, td_device_of(q));
        if (td_failed() || !(symbolic
                             || td_fill_all(call->out[k], td_int(0))))
            return false;
    }
    td_self()->muted++;
    for (int64_t i = 0; !symbolic && i < td_size(q, -2); i += BLOCK) {
        td_scope_begin();
        use_block(call, i);
        td_scope_end();
    }
    td_self()->muted--;
    return !td_failed();
}
/* attention: rule of blocks */
static bool attend_again(td_call *call)
{
    call->out[0] = td_matmul(weights(call, td_input(call, 0),
        td_input(call, 1), td_input(call, 3), 0), td_input(call, 2));
    return !td_failed();
}

void attend_rule(td_backward_pass *b)
{
    td_value in[5] = { [3] = td_v_none(), td_v_tensor(b->grad[0]) };
    for (int i = 0; i < 4; i++)
        if (td_input_dims(b, i).count > 0)
            in[i] = td_operand(b, i);
    td_call call = { .op = &td_ops[TD_OP_attend_backward], .n_in = 5,
        .in = in, .n_attr = 3, .attr = td_attribute(b, 0) };
    if (b->create_graph)
        td_differentiate(b, attend_again);
    else if (!td_failed() && td_run(&call))
        memcpy(b->grad_in, call.out, 3 * sizeof *call.out);
}
/* attention: formulas of attention */
td_tensor *attention_weights_formula(td_call *call)
{
    td_tensor *q = td_input(call, 0), *k = td_input(call, 1);
    td_tensor *mask = td_input(call, 2);
    return is_attentive(call, q, k, mask) ? weights(call, q, k, mask, 0)
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
    if (td_failed())
        return NULL;
    /* attention: leave out the matrix */
    if (q->shape[q->rank - 2] > BLOCK && fits(call, q, k)
        && fits(call, q, v) && fits(call, q, mask)
        && !(mask != NULL && mask->requires_grad))
        return TD_RUN(attend, (td_v_tensor(q), td_v_tensor(k),
            td_v_tensor(v), call->in[3]), call->attr[0], call->attr[1],
            call->attr[2]);
    return td_matmul(weights(call, q, k, mask, 0), v);
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
