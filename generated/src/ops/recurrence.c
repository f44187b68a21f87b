/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "recurrence": edit that, not this file. */
/* Recurrent networks: cells, and their loops over time. */
#include <treadle/elementwise.h>
#include <treadle/matmul.h>
#include "ops/composite.h"
#include "ops/reductions.h"

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
    const int64_t m = td_failed() ? 0 : x->shape[x->rank - 1] / n;
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
        state[0] = td_tanh(a);
        break;
    case RNN_RELU:
        state[0] = td_relu(a);
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
static td_tensor *one_step(td_call *call, cell_kind kind)
{
    td_tensor *x = td_input(call, 0), *state[2];
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
/* recurrence: function over_time */
/* [T, N, n] to [T, N, h]; state becomes that after the last step. */
static td_tensor *over_time(const cell *c, td_tensor *x, bool backward,
                            td_tensor *state[2])
{
    const int64_t n = td_failed() ? 0 : x->shape[0];
    td_tensor *added = from_input(c, x), *all = NULL;
    td_tensor **h = td_failed() ? NULL
                  : td_alloc_array((size_t)n, sizeof *h);
    for (int64_t i = 0; h != NULL && i < n; i++) {
        const int64_t t = backward ? n - 1 - i : i;
        /* recurrence: read one step of the sequence */
        td_scope_begin();
        step(c, td_select(added, 0, t), state);
        h[t] = td_keep(state[0]);
        td_keep(state[1]);
        td_scope_end();
    }
    if (!td_failed())
        all = td_stack(h, (int)n, 0);
    td_free(h, (size_t)n * sizeof *h);
    return all;
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
        x = s->sides == 1 || td_failed() ? h[0] : td_cat(h, 2, 2);
        if (s->dropout > 0 && k + 1 < s->cells)
            x = TD_CALL(dropout, x, td_v_float(s->dropout),
                        td_v_bool(true));
    }
    return x;
}
/* recurrence: function sequence */
static td_tensor *sequence(td_call *call, cell_kind kind)
{
    td_tensor *x = td_input(call, 0), *y = NULL;
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
            "each of %lld layers and %d directions", given, s.weights,
            (long long)layers, s.sides);
    const cell c = cell_at(&s, 0);
    if (!td_check_computes(call, td_dtype_wide(x->dtype), true)
        || !td_expect(call, "input", x, TD_DIMS(-1, -1, -1))
        || !is_sound(call, &c, x->shape[2])
        || !read_state(call, kind, TD_DIMS(s.cells, x->shape[turn ? 0 : 1],
                                           c.w_hh->shape[1]), s.first))
        return NULL;
    if (x->shape[turn ? 1 : 0] == 0)
        return td_refuse(call, "expected a sequence of at least one step");
    const size_t n = (size_t)s.cells;
    td_tensor **room = td_alloc_array(2 * n, sizeof *room);
    td_tensor **last[] = { room, room + n };
    if (room != NULL)
        y = through_cells(call, &s, turn ? td_transpose(x, 0, 1) : x,
                          last);
    call->out[1] = td_failed() ? NULL : td_stack(last[0], s.cells, 0);
    if (kind == LSTM && !td_failed())
        call->out[2] = td_stack(last[1], s.cells, 0);
    td_free(room, 2 * n * sizeof *room);
    return turn ? td_transpose(y, 0, 1) : y;
}
/* recurrence: formulas of cells and sequences */
#define RECURRENT(name, kind)                       \
    td_tensor *name##_cell_formula(td_call *call)   \
    {                                               \
        return one_step(call, kind);                \
    }                                               \
    td_tensor *name##_formula(td_call *call)        \
    {                                               \
        return sequence(call, kind);                \
    }
RECURRENT(rnn_tanh, RNN_TANH)
RECURRENT(rnn_relu, RNN_RELU)
RECURRENT(lstm, LSTM)
RECURRENT(gru, GRU)
