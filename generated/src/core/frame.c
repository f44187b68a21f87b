/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "elementwise": edit that, not this file. */
#include "core/frame.h"
#include <treadle/parallel.h>

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
    bool direct[TD_SPACE_OPERANDS];     /* used where it lies */
    bool fixed[TD_SPACE_OPERANDS];      /* one value throughout */
    int64_t span;                       /* pieces do not cross these */
    int64_t limit;                      /* and are not longer */
    int64_t rows;                       /* at one distance, or 1 */
} plan;

/* elementwise: struct block */
typedef struct {
    _Alignas(64) char bytes[TD_BLOCK * 8];
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

/* elementwise: function plan_operand */
static void plan_operand(plan *p, int k, td_dtype as)
{
    const td_space *s = p->space;
    bool still = k > 0;
    for (int d = 0; d < s->shape.count; d++)
        still = still && s->stride[k][d] == 0;
    const int inner = p->span == s->total ? s->shape.count : 1;
    p->as[k] = as;
    p->direct[k] = as == s->dtype[k] && is_packed(s, k, inner);
    p->fixed[k] = still && !p->direct[k];
    if (!p->direct[k])
        p->limit = TD_BLOCK;
}

/* elementwise: function run_tail */
static void run_tail(td_loop *loop, int count, char *const *data,
                     const td_dtype *as, int64_t from, int64_t n)
{
    _Alignas(64) char room[TD_SPACE_OPERANDS][TD_LANES * 8];
    char *padded[TD_SPACE_OPERANDS] = { room[0] };
    bool again = from > 0;
    for (int k = 1; k < count; k++)
        again = again && data[k] != data[0];
    for (int k = 0; again && k < count; k++)
        padded[k] = data[k] + (from + n - TD_LANES)
                                  * (int64_t)td_dtype_size(as[k]);
    if (again) {
        loop(TD_LANES, padded);
        return;
    }
    for (int k = 1; k < count; k++) {
        const int64_t size = (int64_t)td_dtype_size(as[k]);
        padded[k] = memset(room[k], 0, sizeof room[k]);
        memcpy(room[k], data[k] + from * size, (size_t)(n * size));
    }
    loop(TD_LANES, padded);
    const int64_t size = (int64_t)td_dtype_size(as[0]);
    memcpy(data[0] + from * size, room[0], (size_t)(n * size));
}

/* elementwise: function td_frame_line */
void td_frame_line(td_loop *loop, int count, char *const *data,
                   const td_dtype *as, int64_t n)
{
    const int64_t whole = n - n % TD_LANES;
    if (whole > 0)
        loop(whole, data);
    if (whole < n)
        run_tail(loop, count, data, as, whole, n - whole);
}

/* elementwise: function run_piece */
static void run_piece(const plan *p, int64_t start, int64_t n,
                      int64_t rows, block *blocks)
{
    const td_space *s = p->space;
    char *data[TD_SPACE_OPERANDS];
    for (int k = 0; k < s->operands; k++) {
        data[k] = p->direct[k] ? td_space_place(s, k, start)
                               : blocks[k].bytes;
        if (k > 0 && !p->direct[k] && !p->fixed[k])
            td_space_gather(s, k, s->data[k], start, n, p->as[k],
                            data[k]);
    }
    td_frame_line(p->loop, s->operands, data, p->as, n);
    /* elementwise: take the rows below the same way */
    for (int64_t r = 1; r < rows; r++) {
        for (int k = 0; k < s->operands; k++)
            data[k] += s->stride[k][s->shape.count - 2] * s->size[k];
        td_frame_line(p->loop, s->operands, data, p->as, n);
    }
    if (!p->direct[0])
        td_space_scatter(s, 0, start, n, p->as[0], data[0]);
}

/* elementwise: function run_blocks */
static bool run_blocks(void *context, int64_t begin, int64_t end,
                       int worker)
{
    const plan *p = context;
    const td_space *s = p->space;
    block blocks[TD_SPACE_OPERANDS];
    /* elementwise: fill the blocks of fixed operands */
    for (int k = 0; k < s->operands; k++)
        if (p->fixed[k])
            td_space_gather(s, k, s->data[k], 0,
                            td_least(s->total, TD_BLOCK), p->as[k],
                            blocks[k].bytes);
    const int64_t last = td_least(end * TD_BLOCK, s->total);
    int64_t n, rows;
    for (int64_t at = begin * TD_BLOCK; at < last; at += n * rows) {
        n = td_least(last - at, p->limit);
        n = td_least(n, p->span - at % p->span);
        rows = n < p->span ? 1 : td_least((last - at) / n,
                                     p->rows - at / n % p->rows);
        run_piece(p, at, n, rows, blocks);
    }
    (void)worker;
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
    p.span = row >= TD_LONG_ROW ? row : s->total;
    for (int k = 0; k < s->operands; k++)
        plan_operand(&p, k, as[k]);
    p.rows = p.limit == s->total && p.span < s->total
           ? s->shape.at[s->shape.count - 2] : 1;
    const int64_t blocks = (s->total + TD_BLOCK - 1) / TD_BLOCK;
    return td_parallel_for(blocks, 32, run_blocks, &p);
}
