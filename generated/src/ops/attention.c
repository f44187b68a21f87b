/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "attention": edit that, not this file. */
/* Attention, and positions by rotation. */
#include "core/device.h"
#include "ops/composite.h"
#include "ops/gemm.h"
#include "ops/reductions.h"
#include "ops/kernels/attention-kernels.h"
#include <treadle/treadle.h>

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
    return call->attr[2].kind == TD_SCALAR
         ? td_real(call, 2) : 1 / sqrt((double)td_size(q, -1));
}

/* The weights [..., L, S] of the keys k for questions q. */
static td_tensor *weights(td_call *call, td_tensor *q, td_tensor *k,
                          td_tensor *mask)
{
    td_tensor *alive = NULL;
    /* attention: score each key for each question */
    q = td_mul_scalar(q, td_float(scale_of(call, q)));
    td_tensor *x = td_matmul(q, td_transpose(k, -2, -1));
    /* attention: let a text look back only */
    if (td_flag(call, 1))
        x = td_where_scalar(td_tril(td_ones(
                TD_DIMS(td_size(q, -2), td_size(k, -2)),
                td_beside(k, TD_BOOL)), 0), x, td_float(-INFINITY));
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
/* attention: struct attention */
enum { Q, K, V, G, DQ, DK, DV, ALL, O = G };
enum { BLOCK = TD_ATTEND_LANES, HEAD_GRAIN = 1 << 20 };

typedef struct {
    td_tensor *x[ALL];
    bool back, causal;
    double scale;
    int64_t l, s, d, size;          /* of a number */
    td_dtype dtype;
} attention;

/* Numbers that lie row by row, or otherwise. */
typedef struct { char *at; int64_t row, next; } matrix;

static matrix turned(matrix x)
{
    return (matrix){ x.at, x.next, x.row };
}

/* c (m,n) = by a (m,k) b (k,n), added to c if more */
static void times(const attention *w, double by, bool more, int64_t m,
                  int64_t n, int64_t k, matrix a, matrix b, matrix c)
{
    td_gemm(w->dtype, &(td_product){ m, n, k, by, more,
            a.at, a.row, a.next, b.at, b.row, b.next,
            c.at, c.row, NULL });
}
/* attention: function use_block */
static matrix head_of(const attention *w, int k, int64_t h, int64_t i)
{
    const td_tensor *x = w->x[k];
    const int64_t *step = x->strides + x->rank - 2;
    i *= step[0];
    for (int d = x->rank - 3; d >= 0; h /= x->shape[d--])
        i += h % x->shape[d] * x->strides[d];
    return (matrix){ (char *)td_at(x) + i * w->size, step[0], step[1] };
}

static td_tensor *laid_like(const td_tensor *x)
{
    const int head = x->rank - 3, row = x->rank - 2;
    td_tensor *y = td_tensor_like(x, x->dtype);
    if (y && head >= 0 && x->strides[head] < x->strides[row]) {
        y->strides[head] = y->strides[row];
        y->strides[row] *= y->shape[head];
    }
    return y;
}
static void use_block(const attention *w, int64_t h, int64_t i,
                      char *room)
{
    const int64_t d = w->d, m = td_least(BLOCK, w->l - i);
    const int64_t n = w->causal ? td_least(w->s, i + m) : w->s;
    char *other = room + w->s * BLOCK * w->size;
    const matrix p = { room, BLOCK, 1 }, g = { other, BLOCK, 1 };
    matrix x[ALL];
    for (int k = 0; k < ALL; k++)
        if (w->x[k] != NULL)
            x[k] = head_of(w, k, h,
                           k == Q || k == O || k == DQ ? i : 0);
    times(w, w->scale, false, n, m, d, x[K], turned(x[Q]), p);
    if (w->back)
        times(w, 1, false, n, m, d, x[V], turned(x[G]), g);
    TD_ISA_PICK(td_attend)->columns[w->dtype == TD_FLOAT64](
        n, w->causal ? i + 1 : n, room, w->back ? other : NULL);
    if (!w->back) {
        times(w, 1, false, m, d, n, turned(p), x[V], x[O]);
        return;
    }
    times(w, 1, true, n, d, m, p, x[G], x[DV]);
    times(w, w->scale, true, n, d, m, g, x[Q], x[DK]);
    times(w, w->scale, false, m, d, n, turned(g), x[K], x[DQ]);
}
TD_BODY(some_heads, const attention, w)
{
    const size_t bytes = (size_t)((1 + w->back) * BLOCK
                                  * w->s * w->size);
    char *p = td_storage_alloc(bytes);
    if (p != NULL)
        memset(p, 0, bytes);
    for (; p != NULL && begin < end; begin++)
        for (int64_t i = 0; i < w->l; i += BLOCK)
            use_block(w, begin, i, p);
    td_storage_free(p, bytes);
    return !td_failed();
}
/* attention: kernel of blocks */
/* Questions, keys and values of one type, batch and width? */
static bool fits(const td_call *call, const td_tensor *q,
                 const td_tensor *k, const td_tensor *v)
{
    const int n = q->rank;
    const size_t one = sizeof *q->shape, size = (size_t)n * one;
    return n > 1 && k->rank == n && v->rank == n && td_numel(q) > 0
        && td_real(call, 0) == 0
        && (q->dtype == TD_FLOAT32 || q->dtype == TD_FLOAT64)
        && k->dtype == q->dtype && v->dtype == q->dtype
        && memcmp(k->shape, v->shape, size) == 0
        && memcmp(k->shape, q->shape, size - 2 * one) == 0
        && k->shape[n - 1] == q->shape[n - 1];
}

bool attend_kernel(td_call *call)
{
    td_tensor *q = td_input(call, Q), *k = td_input(call, K);
    if (!fits(call, q, k, td_input(call, V)))
        return td_refuse(call, "expected floats of one type, batch and "
                         "width, and no dropout");
    const int n_in = call->n_in, all = n_in > G ? ALL : DQ;
    attention w = { .back = n_in > G, .causal = td_flag(call, 1),
        .scale = scale_of(call, q),
        .l = td_size(q, -2), .d = td_size(q, -1), .s = td_size(k, -2),
        .size = (int64_t)td_dtype_size(q->dtype), .dtype = q->dtype };
    for (int i = 0; i < all; i++)
        w.x[i] = i < n_in ? td_input(call, i) : (call->out[i - n_in]
            = laid_like(i == DK ? k : i == DV ? td_input(call, V) : q));
    if (td_failed()
        || !td_expect(call, "grad", w.x[G], td_shape_of(q)))
        return false;
    if (!td_on_host(q))
        return td_compute_elsewhere(call, NULL, w.dtype, false);
    /* attention: go over the heads */
    td_self()->muted++;
    td_scope_begin();
    for (int i = 0; i < all; i++)
        if (i < n_in)
            w.x[i] = td_to(w.x[i], w.dtype);
        else if (i > DQ)
            memset(td_at(w.x[i]), 0, (size_t)(td_numel(k) * w.size));
    const int64_t work = 2 * w.l * w.s * w.d + 1;
    const bool ok = !td_failed() && td_parallel_for(
        td_numel(q) / (w.l * w.d), HEAD_GRAIN / work + 1, some_heads,
        &w);
    td_scope_end();
    td_self()->muted--;
    return ok;
}
/* attention: rule of blocks */
static bool attend_again(td_call *call)
{
    call->out[0] = td_matmul(weights(call, td_input(call, Q),
        td_input(call, K), NULL), td_input(call, V));
    return !td_failed();
}

void attend_rule(td_backward_pass *b)
{
    if (b->create_graph) {
        td_differentiate(b, attend_again);
        return;
    }
    const td_value *attr = td_attribute(b, 0);
    const td_call call = TD_CALLED(attend_backward,
        (td_operand(b, Q), td_operand(b, K), td_operand(b, V),
         td_v_tensor(b->grad[0])), attr[0], attr[1], attr[2]);
    memcpy(b->grad_in, call.out, 3 * sizeof *call.out);
}
/* attention: formulas of attention */
TD_COMPOSED(attention_weights, q)
{
    td_tensor *k = td_input(call, 1);
    td_tensor *mask = td_input(call, 2);
    return is_attentive(call, q, k, mask)
         ? weights(call, q, k, mask) : NULL;
}

TD_COMPOSED(scaled_dot_product_attention, q)
{
    td_tensor *k = td_input(call, 1);
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
    if (mask == NULL && fits(call, q, k, v) && td_size(q, -2) > BLOCK / 2
        && td_at_home(q))
        return TD_CALL3(attend, q, k, v, call->attr[0], call->attr[1],
                        call->attr[2]);
    return td_matmul(weights(call, q, k, mask), v);
}

TD_COMPOSED(rotary_embedding, x)
{
    td_tensor *at = td_input(call, 1);
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
        td_count_up(0, n, o), step), td_float(td_real(call, 0)));
    if (at == NULL)
        at = td_count_up(0, x->shape[x->rank - 2], o);
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
