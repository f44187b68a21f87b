/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "recurrence": edit that, not this file. */
/* Recurrent networks: cells, and their loops over time. */
#include "core/device.h"
#include "ops/composite.h"
#include "ops/gemm.h"
#include "ops/reductions.h"
#include "ops/kernels/recurrence-kernels.h"
#include <treadle/treadle.h>

/* recurrence: struct cell */
typedef enum { RNN_TANH, RNN_RELU, LSTM, GRU } cell_kind;

static const int blocks_of[] = { 1, 1, 4, 3 };

typedef struct {
    cell_kind kind;
    td_tensor *w_ih, *w_hh, *b_ih, *b_hh;   /* b: or NULL */
} cell;
/* recurrence: function from_input */
/* What the input adds to the gates: [..., in] to [..., blocks h]. */
static td_tensor *from_input(const cell *c, td_tensor *x)
{
    td_tensor *b = c->b_ih;
    if (c->b_hh != NULL && c->kind != GRU)
        b = b == NULL ? c->b_hh : td_add(b, c->b_hh);
    return td_linear(x, c->w_ih, b);
}
/* recurrence: function block */
/* Block k of n equal ones along the last dimension. */
static td_tensor *block(td_tensor *x, int k, int n)
{
    const int64_t m = td_size(x, -1) / n;
    return td_part(x, -1, k * m, (k + 1) * m);
}
/* recurrence: function step */
static void step(const cell *c, td_tensor *x, td_tensor *state[2])
{
    td_tensor *h = state[0], *f;
    td_tensor *u = td_linear(h, c->w_hh, c->kind == GRU ? c->b_hh
                                                        : NULL);
    td_tensor *a = c->kind == GRU ? NULL : td_add(x, u);
    switch (c->kind) {
    case RNN_TANH:
    case RNN_RELU:
        state[0] = (c->kind == RNN_TANH ? td_tanh : td_relu)(a);
        break;
    case LSTM: {
        /* one-step: exercise one-step */
        td_tensor *keep = td_sigmoid(block(a, 1, 4));
        state[1] = td_add(td_mul(keep, state[1]),
                          td_mul(td_sigmoid(block(a, 0, 4)),
                                 td_tanh(block(a, 2, 4))));
        state[0] = td_mul(td_sigmoid(block(a, 3, 4)),
                          td_tanh(state[1]));
        break;
    }
    case GRU:
        /* recurrence: take a step of a GRU */
        f = td_sigmoid(td_add(block(x, 0, 3), block(u, 0, 3)));
        a = td_sigmoid(td_add(block(x, 1, 3), block(u, 1, 3)));
        x = td_tanh(td_add(block(x, 2, 3), td_mul(f, block(u, 2, 3))));
        state[0] = td_add(x, td_mul(a, td_sub(h, x)));
        break;
    }
}
/* recurrence: function is_sound */
/* Do the weights fit each other and an input of so many numbers? */
static bool is_sound(const td_call *call, const cell *c, int64_t inputs)
{
    const int64_t m = c->w_hh->rank == 2 ? c->w_hh->shape[1] : -1;
    const int64_t rows = m < 0 ? m : m * blocks_of[c->kind];
    const td_dims bias = TD_DIMS(rows);
    return td_expect(call, "w_hh", c->w_hh, TD_DIMS(rows, m))
        && td_expect(call, "w_ih", c->w_ih, TD_DIMS(rows, inputs))
        && (!c->b_ih || td_expect(call, "b_ih", c->b_ih, bias))
        && (!c->b_hh || td_expect(call, "b_hh", c->b_hh, bias));
}
/* recurrence: function read_state */
static bool read_state(const td_call *call, cell_kind kind,
                       td_dims shape, td_tensor *state[2])
{
    const td_value *v = &call->in[1];
    const bool pair = kind == LSTM;
    if (pair && v->as.tensors.count != 2)
        return td_refuse(call, "hx must be two tensors, h and c, "
                         "not %d", v->as.tensors.count);
    state[0] = pair ? v->as.tensors.at[0] : v->as.tensor;
    state[1] = pair ? v->as.tensors.at[1] : NULL;
    return td_expect(call, "hx", state[0], shape)
        && (!pair || td_expect(call, "cx", state[1], shape));
}
/* recurrence: function one_step */
static td_tensor *one_step(td_call *call, td_tensor *x, cell_kind kind)
{
    td_tensor *state[2];
    const cell c = { kind, td_input(call, 2), td_input(call, 3),
                     td_input(call, 4), td_input(call, 5) };
    if (!td_check_computes(call, td_dtype_wide(x->dtype), true)
        || !td_expect(call, "input", x, TD_DIMS(-1, -1))
        || !is_sound(call, &c, x->shape[1])
        || !read_state(call, kind, TD_DIMS(x->shape[0],
                                           c.w_hh->shape[1]), state))
        return NULL;
    step(&c, from_input(&c, x), state);
    call->out[1] = state[1];
    return state[0];
}
/* recurrence: function step_by_step */
/* [T, N, n] to [T, N, h]; state becomes that after the last step. */
static td_tensor *step_by_step(const cell *c, td_tensor *x,
                               bool backward, td_tensor *state[2])
{
    td_tensor *added = from_input(c, x);
    const int64_t n = td_size(added, 0);
    td_tensor **h = TD_ARRAY(h, n);
    for (int64_t i = 0; h != NULL && i < n; i++) {
        const int64_t t = backward ? n - 1 - i : i;
        /* recurrence: read one step of the sequence */
        td_scope_begin();
        step(c, td_select(added, 0, t), state);
        h[t] = td_keep(state[0]);
        td_keep(state[1]);
        td_scope_end();
    }
    td_tensor *all = td_stack(h, (int)n, 0);
    TD_FREE_ARRAY(h, n);
    return all;
}
/* recurrence: function over_time */
/* As step_by_step, at once if that can be. */
static td_tensor *over_time(const cell *c, td_tensor *x, bool backward,
                            td_tensor *state[2])
{
    if (td_failed() || c->kind < LSTM
        || !td_at_home(x))
        return step_by_step(c, x, backward, state);
    const td_call call = TD_CALLED(gated,
        (td_v_tensor(x), td_v_tensor(c->w_ih), td_v_optional(c->b_ih),
         td_v_tensor(c->w_hh), td_v_optional(c->b_hh),
         td_v_tensor(state[0]), td_v_optional(state[1])),
        td_v_bool(backward));
    state[0] = td_select(call.out[0], 0, backward ? 0 : -1);
    state[1] = call.out[2];
    return call.out[0];
}
/* recurrence: struct stack */
typedef struct {
    cell_kind kind;
    int cells, sides, weights;      /* weights of a cell: 4 or 2 */
    double dropout;
    td_tensor *const *w;            /* [cells weights] */
    td_tensor *first[2];            /* h and c, [cells, N, h] */
} stack;

static cell cell_at(const stack *s, int64_t k)
{
    td_tensor *const *w = s->w + k * s->weights;
    return (cell){ s->kind, w[0], w[1], s->weights == 4 ? w[2] : NULL,
                   s->weights == 4 ? w[3] : NULL };
}
/* recurrence: function through_cells */
/* The last layer's states; each cell's last h and c in last[0], [1]. */
static td_tensor *through_cells(const td_call *call, const stack *s,
                                td_tensor *x, td_tensor **last[2])
{
    td_tensor *h[2];
    for (int k = 0; k < s->cells && !td_failed(); k++) {
        const int side = k % s->sides;
        const cell c = cell_at(s, k);
        if (!is_sound(call, &c, x->shape[2]))
            return NULL;
        td_tensor *state[2] = { td_select(s->first[0], 0, k),
            s->kind == LSTM ? td_select(s->first[1], 0, k) : NULL };
        h[side] = over_time(&c, x, side == 1, state);
        last[0][k] = state[0];
        last[1][k] = state[1];
        if (side + 1 < s->sides)
            continue;
        /* recurrence: hand the results to the next layer */
        x = s->sides == 1 ? h[0] : td_cat(h, 2, 2);
        if (s->dropout > 0 && k + 1 < s->cells)
            x = TD_CALL(dropout, x, td_v_float(s->dropout),
                        td_v_bool(true));
    }
    return x;
}
/* recurrence: function sequence */
static td_tensor *sequence(td_call *call, td_tensor *x, cell_kind kind)
{
    td_tensor *y = NULL;
    const bool turn = td_flag(call, 5);
    stack s = { .kind = kind, .w = call->in[2].as.tensors.at,
                .sides = td_flag(call, 4) ? 2 : 1,
                .weights = td_flag(call, 0) ? 4 : 2,
                .dropout = td_flag(call, 3)
                         ? td_real(call, 2) : 0 };
    /* recurrence: refuse sequences that do not fit */
    const int given = call->in[2].as.tensors.count;
    const int64_t layers = td_number(call, 1, 1);
    s.cells = given / s.weights;
    if (layers < 1 || layers > given || s.weights * s.cells != given
        || layers * s.sides != s.cells)
        return td_refuse(call, "params has %d tensors, expected %d for "
            "each of %" PRId64 " layers and %d directions", given,
            s.weights, layers, s.sides);
    const cell c = cell_at(&s, 0);
    if (!td_check_computes(call, td_dtype_wide(x->dtype), true)
        || !td_expect(call, "input", x, TD_DIMS(-1, -1, -1))
        || !is_sound(call, &c, x->shape[2])
        || !read_state(call, kind, TD_DIMS(s.cells, x->shape[turn ? 0 : 1],
                                           c.w_hh->shape[1]), s.first))
        return NULL;
    if (x->shape[turn ? 1 : 0] == 0)
        return td_refuse(call, "expected a sequence of at least one step");
    td_tensor **room = TD_ARRAY(room, 2 * s.cells);
    td_tensor **last[] = { room, room + s.cells };
    if (room != NULL)
        y = through_cells(call, &s, turn ? td_transpose(x, 0, 1) : x,
                          last);
    call->out[1] = td_stack(last[0], s.cells, 0);
    if (kind == LSTM)
        call->out[2] = td_stack(last[1], s.cells, 0);
    TD_FREE_ARRAY(room, 2 * s.cells);
    return turn ? td_transpose(y, 0, 1) : y;
}
/* recurrence: formulas of cells and sequences */
#define RECURRENT(name, kind)                                   \
    TD_COMPOSED(name##_cell, x)                                 \
    {                                                           \
        return one_step(call, x, kind);                         \
    }                                                           \
    TD_COMPOSED(name, x)                                        \
    {                                                           \
        return sequence(call, x, kind);                         \
    }
RECURRENT(rnn_tanh, RNN_TANH)
RECURRENT(rnn_relu, RNN_RELU)
RECURRENT(lstm, LSTM)
RECURRENT(gru, GRU)
/* recurrence: struct recurrence */
enum { UNIT = 8, WORK_GRAIN = 1 << 20 };    /* sequences of a share */

typedef struct {
    bool gru, reverse, back;
    int64_t t, n, m, rows;      /* steps, sequences, h, blocks h */
    td_tensor *at;              /* rows of w */
    td_tensor *x[10];           /* operands, then results */
} recurrence;

static char *row_of(const recurrence *l, int k, int64_t i, int64_t r)
{
    const td_tensor *x = l->x[k];
    const int64_t t = l->reverse ? l->t - 1 - i : i;
    return x == NULL ? NULL : (char *)td_at(x)
        + x->shape[x->rank - 1] * (int64_t)td_dtype_size(x->dtype)
        * (x->rank == 3 ? t * l->n + r : x->rank == 2 ? r : 0);
}

static void place(const recurrence *l, int64_t i, int64_t r, void **at)
{
    for (int k = 0; k < 10; k++)
        at[k] = row_of(l, k, i, r);
    if (i > 0) {                /* the state before is a result */
        at[5] = row_of(l, 7, i - 1, r);
        at[6] = row_of(l, l->back ? 0 : 8, i - 1, r)
              + l->rows * (int64_t)td_dtype_size(l->x[3]->dtype);
    }
}
/* recurrence: function over_rows */
TD_BODY(over_rows, const recurrence, l)
{
    const td_dtype dtype = l->x[3]->dtype;
    td_gated_row *row = TD_ISA_PICK(td_gated)
        ->row[l->back][l->gru][dtype == TD_FLOAT64];
    const int64_t m = l->m, rows = l->rows, r0 = begin * UNIT;
    const int64_t r1 = end * UNIT < l->n ? end * UNIT : l->n;
    bool ok = true;
    void *at[10];
    td_product u = { .m = r1 - r0, .n = rows, .k = m, .rsa = m,
        .csa = 1, .b = td_at(l->x[3]), .csb = 1, .rows = td_at(l->at),
        .alpha = 1, .ldc = rows + m };
    if (l->back)
        u.n = u.ldc = m, u.k = rows, u.rsa = rows + m, u.beta = l->gru;
    for (int64_t k = 0; ok && k < l->t; k++) {
        const int64_t i = l->back ? l->t - 1 - k : k;
        /* recurrence: take the rows of one step */
        place(l, i, r0, at);
        u.a = at[l->back ? 0 : 5], u.c = at[l->back ? 1 : 8];
        ok = l->back || td_gemm(dtype, &u);
        for (int64_t r = r1; ok && r-- > r0;) {
            place(l, i, r, at);
            row(m, at);
        }
        ok = ok && (!l->back || td_gemm(dtype, &u));
    }
    return ok;
}
/* recurrence: function rolled */
/* The last rows put before the others. */
static td_tensor *rolled(td_tensor *x, int64_t rows)
{
    const td_dims by = TD_DIMS(rows), dim = TD_DIMS(0);
    return TD_CALL(roll, x, td_v_ints(&by), td_v_ints(&dim));
}
/* recurrence: function walk over the batch */
static bool walk(recurrence *l)
{
    td_tensor **x = l->x;
    td_scope_begin();
    /* recurrence: copy the matrix with gaps */
    td_tensor *u = rolled(x[3], l->gru * l->m);
    u = l->back ? u : td_t(u);
    const int64_t k = l->back ? l->rows : l->m, j = l->m + l->rows - k;
    x[3] = td_empty(TD_DIMS(k, j + TD_SLIVER), td_like(x[3]));
    l->at = td_arange(td_int(0), td_int(k * (j + TD_SLIVER)),
                      td_int(j + TD_SLIVER),
                      (td_tensor_options){ .dtype = TD_INT64 });
    td_tensor *part = td_part(x[3], 1, 0, j);
    if (!l->back) {
        x[0] = from_input(&(cell){ l->gru ? GRU : LSTM, x[1], NULL,
                                   x[2], x[4] }, x[0]);
        x[1] = x[2] = NULL;
    }
    for (int i = 0; i < 9; i++)
        x[i] = x[i] ? td_contiguous(x[i]) : NULL;
    if (l->gru && !l->back && !x[4])
        x[4] = td_zeros(TD_DIMS(l->rows), td_like(u));
    const int64_t work = UNIT * l->t * l->m * l->rows;
    const int64_t shares = (l->n + UNIT - 1) / UNIT;
    const bool ok = !td_failed() && td_copy_elements(part, u)
        && td_parallel_for(shares, WORK_GRAIN / (work + 1) + 1,
                           over_rows, l);
    td_scope_end();
    return ok;
}
/* recurrence: kernel of all steps */
bool gated_kernel(td_call *call)
{
    const bool back = call->n_in > 7;
    recurrence l = { .back = back, .reverse = td_flag(call, 0) };
    TD_EACH(i, call, in)
        l.x[i + (back && i > 3)] = td_input(call, i);
    const td_tensor *x = l.x[0], *w = l.x[3];
    if (!td_check_computes(call, w->dtype, true))
        return false;
    l.gru = l.x[6] == NULL;
    if (x->rank != 3 || w->rank != 2 || x->shape[0] == 0
        || (back && l.gru != (l.x[2] == NULL)))
        return td_refuse(call, "operands do not fit each other");
    l.t = x->shape[0], l.n = x->shape[1], l.m = w->shape[1];
    l.rows = l.m * (l.gru ? 3 : 4);
    const td_dtype bits = w->dtype == TD_FLOAT64 ? TD_INT64 : TD_INT32;
    /* recurrence: compare with the shapes of all steps */
    const td_dims each = TD_DIMS(l.n, l.m), all = TD_DIMS(l.t, l.n, l.m);
    const td_dims kept = TD_DIMS(l.t, l.n, l.rows + l.m);
    const td_dims c = l.gru ? TD_DIMS(0) : each;
    const td_dims shapes[] = { back ? kept : td_shape_of(x),
        back ? each : TD_DIMS(l.rows, x->shape[2]),
        back ? c : TD_DIMS(l.rows), TD_DIMS(l.rows, l.m), TD_DIMS(l.rows),
        each, each, all, back ? all : kept, c };
    for (int i = 0; i < 10; i++) {
        const td_dtype dtype = i == (back ? 0 : 8) ? bits : w->dtype;
        if (i > 6 && !back)
            call->out[i - 7] = l.x[i]
                = td_tensor_new(shapes[i], dtype, td_device_of(w));
        else if (l.x[i] && (l.x[i]->dtype != dtype || (back && i < 3
                            && !td_is_contiguous(l.x[i]))))
            return td_refuse(call, "operand %d must be %s without gaps", i,
                             td_dtype_name(dtype));
        else if (l.x[i]) {
            td_expect(call, "operand", l.x[i], shapes[i]);
            if (back && i < 3)
                td_bump_version(l.x[i]);
        }
        if (td_failed())
            return false;
    }
    if (back)
        call->out[0] = td_share(l.x[0]);
    return td_on_host(w) ? walk(&l)
         : td_compute_elsewhere(call, NULL, w->dtype, false);
}
/* recurrence: function steps_again */
static bool steps_again(td_call *call)
{
    td_tensor *state[2] = { td_input(call, 5), td_input(call, 6) };
    const cell c = { state[1] ? LSTM : GRU, td_input(call, 1),
                     td_input(call, 3), td_input(call, 2),
                     td_input(call, 4) };
    call->out[0] = step_by_step(&c, td_input(call, 0),
                                td_flag(call, 0), state);
    call->out[2] = state[1];
    return !td_failed();
}
/* recurrence: rule of all steps */
void gated_rule(td_backward_pass *b)
{
    if (b->create_graph) {
        td_differentiate(b, steps_again);
        return;
    }
    td_tensor *h = td_saved_output(b, 0), *h0 = td_saved_input(b, 5);
    td_tensor *gates = td_saved_output(b, 1), *w = td_saved_input(b, 3);
    const td_tensor_options same = TD_DEFAULTS;
    td_tensor *c0 = td_input_dims(b, 6).count ? td_saved_input(b, 6)
                                              : NULL;
    td_tensor *dh = td_zeros_like(h0, same);
    td_tensor *dc = !c0 ? c0 : td_clone(b->grad[2] ? b->grad[2] : dh);
    td_tensor *g = b->grad[0] ? b->grad[0] : td_zeros_like(h, same);
    gates = td_is_spare(b, gates) ? gates : td_clone(gates);
    TD_RUN(gated_backward_, (td_v_tensor(gates), td_v_tensor(dh),
            td_v_optional(dc), td_v_tensor(w), td_v_tensor(h0),
            td_v_optional(c0), td_v_tensor(h), td_v_tensor(g)),
        *td_attribute(b, 0));
    if (td_failed())
        return;
    b->grad_in[5] = dh;
    b->grad_in[6] = dc;
    /* recurrence: give the weights their gradients */
    const bool reverse = td_v_get_bool(td_attribute(b, 0));
    const int64_t k = c0 ? 0 : h->shape[2];
    const int64_t rows = w->shape[0];
    td_tensor *before[2], *d = td_to(TD_CALL(view_dtype, gates,
        td_v_dtype(td_dtype_wide(h->dtype))), h->dtype);
    before[reverse] = td_unsqueeze(h0, 0);
    before[!reverse] = td_part(h, 0, reverse, h->shape[0] - !reverse);
    td_tensor *dx = td_part(d, 2, k, k + rows);
    td_tensor *du = td_flatten(td_part(d, 2, 0, rows), 0, 1);
    td_backward_pass input = *b;
    input.grad = &dx;
    linear_rule(&input);
    if (td_needs(b, 3))
        b->grad_in[3] = rolled(td_matmul(td_t(du),
            td_flatten(td_cat(before, 2, 0), 0, 1)), -k);
    b->grad_in[4] = rolled(td_sum(du, TD_OVER(0)), -k);
}
