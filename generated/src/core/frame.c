/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "elementwise": edit that, not this file. */
#include "core/frame.h"
#include "core/parallel.h"

/* elementwise: function td_frame_scalar */
void td_frame_scalar(td_frame *f, td_scalar value, td_dtype as)
{
    td_space *s = &f->space;
    const int k = s->operands++;
    s->data[k] = (char *)&f->constant[k];
    s->dtype[k] = as;
    s->size[k] = (int64_t)td_dtype_size(as);
    memset(s->stride[k], 0, sizeof s->stride[k]);
    td_store(as, s->data[k], value);
}

/* elementwise: struct plan */
typedef struct {
    const td_space *space;
    td_loop *loop;
    td_dtype as[TD_SPACE_OPERANDS];     /* what the loop wants */
    int64_t size[TD_SPACE_OPERANDS];    /* bytes of one of those */
    bool direct[TD_SPACE_OPERANDS];     /* used where it lies */
    bool fixed[TD_SPACE_OPERANDS];      /* the same in each row */
    int64_t period;                     /* elements of such a row */
    int64_t span;                       /* pieces do not cross these */
    int64_t limit;                      /* and are not longer */
    int64_t rows;                       /* at one distance, or 1 */
} plan;

/* elementwise: struct block */
typedef struct {
    _Alignas(64) char bytes[3 * TD_BLOCK * 8];
} block;

/* elementwise: function is_packed */
static bool is_packed(const td_space *s, int k, int dimensions)
{
    const int rank = s->shape.count;
    int64_t expected = 1;
    for (int d = rank - 1; d >= rank - dimensions; d--) {
        if (s->shape.at[d] != 1 && s->stride[k][d] != expected)
            return false;
        expected *= s->shape.at[d];
    }
    return true;
}

/* elementwise: function repeats */
static bool repeats(const td_space *s, int k)
{
    const int last = s->shape.count - 1;
    for (int d = 0; d < last; d++)
        if (s->stride[k][d] != 0)
            return false;
    return k > 0 && (s->stride[k][last] == 0
                     || s->shape.at[last] <= TD_BLOCK);
}

/* elementwise: function plan_operand */
static void plan_operand(plan *p, int k, td_dtype as)
{
    const td_space *s = p->space;
    const int inner = p->span == s->total ? s->shape.count : 1;
    p->as[k] = as;
    p->size[k] = td_dtype_size(as);
    p->direct[k] = as == s->dtype[k] && is_packed(s, k, inner);
    p->fixed[k] = !p->direct[k] && repeats(s, k);
    if (!p->direct[k])
        p->limit = p->fixed[k] && p->limit == s->total
                 ? 2 * TD_BLOCK : TD_BLOCK;
    if (!p->direct[k] && (k == 0 || s->stride[k][s->shape.count - 1]))
        p->rows = 1;
}

/* elementwise: function run_tail */
static void run_tail(td_loop *loop, int count, char *const *data,
                     const int64_t *size, int64_t from, int64_t n)
{
    _Alignas(64) char room[TD_SPACE_OPERANDS][TD_LANES * 8];
    char *padded[TD_SPACE_OPERANDS] = { room[0] };
    bool again = from > 0;
    for (int k = 1; k < count; k++)
        again = again && data[k] != data[0];
    if (again) {
        for (int k = 0; k < count; k++)
            padded[k] = data[k] + (from + n - TD_LANES) * size[k];
        loop(TD_LANES, padded);
        return;
    }
    for (int k = 1; k < count; k++) {
        padded[k] = memset(room[k], 0, sizeof room[k]);
        memcpy(room[k], data[k] + from * size[k], n * size[k]);
    }
    loop(TD_LANES, padded);
    memcpy(data[0] + from * size[0], room[0], n * size[0]);
}

/* elementwise: function td_frame_line */
void td_frame_line(td_loop *loop, int count, char *const *data,
                   const int64_t *size, int64_t n)
{
    const int64_t whole = n - n % TD_LANES;
    if (whole > 0)
        loop(whole, data);
    if (whole < n)
        run_tail(loop, count, data, size, whole, n - whole);
}

/* elementwise: function run_piece */
static void run_piece(const plan *p, int64_t start, int64_t n,
                      int64_t rows, block *blocks)
{
    const td_space *s = p->space;
    char *data[TD_SPACE_OPERANDS];
    const char *one[TD_SPACE_OPERANDS];
    for (int k = 0; k < s->operands; k++) {
        data[k] = !p->direct[k] ? blocks[k].bytes
            : p->span < s->total ? td_space_place(s, k, start)
            : s->data[k] + start * p->size[k];
        if (p->fixed[k])
            data[k] += start % p->period * p->size[k];
        else if (k > 0 && !p->direct[k]) {
            one[k] = td_space_place(s, k, start);
            td_space_carry(s, k, s->data[k], start, n, p->as[k],
                           data[k], false);
        }
    }
    td_frame_line(p->loop, s->operands, data, p->size, n);
    /* elementwise: take the rows below the same way */
    for (int64_t r = 1; r < rows; r++) {
        for (int k = 0; k < s->operands; k++) {
            const int64_t down = s->stride[k][s->shape.count - 2]
                               * s->size[k];
            if (p->direct[k])
                data[k] += down;
            else if (!p->fixed[k])
                td_convert_each(p->as[k], data[k], n, s->dtype[k],
                                one[k] += down, 1, 1);
        }
        td_frame_line(p->loop, s->operands, data, p->size, n);
    }
    if (!p->direct[0])
        td_space_carry(s, 0, s->data[0], start, n, p->as[0], data[0],
                       true);
}

/* elementwise: function run_blocks */
TD_BODY(run_blocks, const plan, p)
{
    const td_space *s = p->space;
    block blocks[TD_SPACE_OPERANDS];
    /* elementwise: fill the blocks of fixed operands */
    for (int k = 0; k < s->operands; k++)
        if (p->fixed[k]) {
            const int64_t all = p->size[k]
                * td_least(s->total, 2 * TD_BLOCK + p->period);
            td_space_carry(s, k, s->data[k], 0, p->period, p->as[k],
                           blocks[k].bytes, false);
            for (int64_t n = p->period * p->size[k]; n < all; n *= 2)
                memcpy(blocks[k].bytes + n, blocks[k].bytes,
                       td_least(n, all - n));
        }
    const int64_t last = td_least(end * TD_BLOCK, s->total);
    int64_t n, rows;
    for (int64_t at = begin * TD_BLOCK; at < last; at += n * rows) {
        n = td_least(last - at, p->limit);
        n = td_least(n, p->span - at % p->span);
        rows = n < p->span ? 1 : td_least((last - at) / n,
                                     p->rows - at / n % p->rows);
        run_piece(p, at, n, rows, blocks);
    }
    return true;
}

/* elementwise: function td_frame_run */
bool td_frame_run(td_frame *f, td_loop *loop, const td_dtype *as)
{
    td_space *s = &f->space;
    if (s->total == 0)
        return true;
    td_collapse(&s->shape, s->operands, s->stride);
    plan p = { .space = s, .loop = loop, .limit = s->total };
    const int64_t row = s->shape.at[s->shape.count - 1];
    int across = 0;
    for (int k = 0; k < s->operands; k++)
        across += repeats(s, k) || is_packed(s, k, s->shape.count);
    p.period = td_least(row, TD_BLOCK);
    p.span = row >= TD_LONG_ROW && across < s->operands ? row
                                                         : s->total;
    p.rows = p.span < s->total ? s->shape.at[s->shape.count - 2] : 1;
    for (int k = 0; k < s->operands; k++)
        plan_operand(&p, k, as[k]);
    const int64_t blocks = (s->total + TD_BLOCK - 1) / TD_BLOCK;
    return td_parallel_for(blocks, 32, run_blocks, &p);
}
