/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "elementwise": edit that, not this file. */
#include "frame.h"
#include "memory.h"
#include <inttypes.h>
#include <string.h>
#include <treadle/parallel.h>

static int64_t minimum(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* elementwise: function td_frame_begin */
bool td_frame_begin(td_frame *f, const char *op, const td_dims *shape)
{
    f->op = op;
    f->rank = shape->count;
    f->count = 0;
    f->total = 1;
    for (int d = 0; d < f->rank; d++) {
        f->shape[d] = shape->at[d];
        if (!td_mul_size(f->total, f->shape[d], &f->total))
            return td_fail(TD_ERROR_VALUE, op,
                           "the result has too many elements");
    }
    return true;
}

/* elementwise: function td_frame_add */
bool td_frame_add(td_frame *f, const td_tensor *x)
{
    const int k = f->count++, missing = f->rank - x->rank;
    f->data[k] = td_at(x);
    f->dtype[k] = x->dtype;
    for (int d = 0; d < f->rank; d++) {
        const int64_t size = d < missing ? 1 : x->shape[d - missing];
        if (size != 1 && size != f->shape[d])
            return td_fail(TD_ERROR_RUNTIME, f->op,
                           "size %" PRId64 " does not fit %" PRId64
                           " in dimension %d", size, f->shape[d], d);
        f->stride[k][d] = size == 1 ? 0 : x->strides[d - missing];
    }
    return missing >= 0;
}

/* elementwise: function td_frame_scalar */
void td_frame_scalar(td_frame *f, td_scalar value, td_dtype as)
{
    const int k = f->count++;
    const bool is_float = value.kind == TD_SCALAR_FLOAT;
    const bool is_int = value.kind == TD_SCALAR_INT;
    f->data[k] = (char *)&f->constant[k];
    f->dtype[k] = as;
    memset(f->stride[k], 0, sizeof f->stride[k]);
    td_convert(as, f->data[k], 1,
               is_float ? TD_FLOAT64 : is_int ? TD_INT64 : TD_BOOL,
               &value.as, 1, 1);
}

/* elementwise: function move_dimension */
static void move_dimension(td_frame *f, int to, int from)
{
    f->shape[to] = f->shape[from];
    for (int k = 0; k < f->count; k++)
        f->stride[k][to] = f->stride[k][from];
}

/* elementwise: function joins */
/* Can dimensions d and d + 1 be walked as one, in all operands? */
static bool joins(const td_frame *f, int d)
{
    for (int k = 0; k < f->count; k++)
        if (f->stride[k][d] != f->stride[k][d + 1] * f->shape[d + 1])
            return false;
    return true;
}

/* elementwise: function td_frame_collapse */
void td_frame_collapse(td_frame *f)
{
    /* 5.1-collapse: exercise 5.1 */
    int kept = 0;
    for (int d = 0; d < f->rank; d++)
        if (f->shape[d] != 1)
            move_dimension(f, kept++, d);
    f->rank = kept;
    for (int d = f->rank - 2; d >= 0; d--)
        if (joins(f, d)) {
            f->shape[d + 1] *= f->shape[d];
            for (int e = d; e < f->rank - 1; e++)
                move_dimension(f, e, e + 1);
            f->rank--;
        }
    if (f->rank == 0) {
        f->rank = 1;
        f->shape[0] = 1;
        for (int k = 0; k < f->count; k++)
            f->stride[k][0] = 0;
    }
}

/* elementwise: functions that find an element */
static void seek(const td_frame *f, int64_t position, int64_t *index)
{
    for (int d = f->rank - 1; d > 0; d--) {
        index[d] = position % f->shape[d];
        position /= f->shape[d];
    }
    index[0] = position;
}

static char *element(const td_frame *f, int k, const int64_t *index)
{
    int64_t offset = 0;
    for (int d = 0; d < f->rank; d++)
        offset += index[d] * f->stride[k][d];
    return f->data[k] + offset * (int64_t)td_dtype_size(f->dtype[k]);
}

/* elementwise: function advance */
/* Move on by n elements, not past the end of the row. */
static void advance(const td_frame *f, int64_t *index, int64_t n)
{
    int d = f->rank - 1;
    index[d] += n;
    for (; d > 0 && index[d] == f->shape[d]; d--) {
        index[d] = 0;
        index[d - 1]++;
    }
}

/* elementwise: function td_frame_gather */
static void gather_row(const td_frame *f, int k, const char *from,
                       int64_t n, td_dtype as, char *to)
{
    const int64_t stride = f->stride[k][f->rank - 1];
    const int64_t size = (int64_t)td_dtype_size(as);
    td_convert(as, to, 1, f->dtype[k], from, stride, stride ? n : 1);
    for (int64_t have = 1; stride == 0 && have < n; have *= 2)
        memcpy(to + have * size, to,
               (size_t)(minimum(have, n - have) * size));
}

void td_frame_gather(const td_frame *f, int k, int64_t start, int64_t n,
                     td_dtype as, void *to)
{
    int64_t index[TD_MAX_RANK], run;
    seek(f, start, index);
    for (char *block = to; n > 0; n -= run) {
        run = minimum(n, f->shape[f->rank - 1] - index[f->rank - 1]);
        gather_row(f, k, element(f, k, index), run, as, block);
        block += run * (int64_t)td_dtype_size(as);
        advance(f, index, run);
    }
}

/* elementwise: function scatter */
static void scatter(const td_frame *f, int64_t start, int64_t n,
                    td_dtype from, const char *block)
{
    const int row = f->rank - 1;
    int64_t index[TD_MAX_RANK], run;
    seek(f, start, index);
    for (; n > 0; n -= run) {
        run = minimum(n, f->shape[row] - index[row]);
        td_convert(f->dtype[0], element(f, 0, index),
                   f->stride[0][row], from, block, 1, run);
        block += run * (int64_t)td_dtype_size(from);
        advance(f, index, run);
    }
}

/* elementwise: struct plan */
typedef struct {
    const td_frame *frame;
    td_loop *loop;
    td_dtype as[TD_FRAME_OPERANDS];     /* what the loop wants */
    bool direct[TD_FRAME_OPERANDS];     /* used where it lies */
    bool fixed[TD_FRAME_OPERANDS];      /* one value throughout */
    int64_t span;                       /* pieces do not cross these */
    int64_t limit;                      /* and are not longer */
} plan;

/* elementwise: struct block */
typedef struct {
    _Alignas(64) char bytes[TD_BLOCK * 8];
} block;

/* elementwise: function is_packed */
static bool is_packed(const td_frame *f, int k, int dimensions)
{
    int64_t expected = 1;
    for (int d = f->rank - 1; d >= f->rank - dimensions; d--) {
        if (f->shape[d] != 1 && f->stride[k][d] != expected)
            return false;
        expected *= f->shape[d];
    }
    return true;
}

/* elementwise: function plan_operand */
static void plan_operand(plan *p, int k, td_dtype as)
{
    const td_frame *f = p->frame;
    bool still = k > 0;
    for (int d = 0; d < f->rank; d++)
        still = still && f->stride[k][d] == 0;
    const int inner = p->span == f->total ? f->rank : 1;
    p->as[k] = as;
    p->direct[k] = as == f->dtype[k] && is_packed(f, k, inner);
    p->fixed[k] = still && !p->direct[k];
    if (!p->direct[k])
        p->limit = TD_BLOCK;
}

/* elementwise: function run_tail */
static void run_tail(td_loop *loop, int count, char *const *data,
                     const td_dtype *as, int64_t from, int64_t n)
{
    _Alignas(64) char room[TD_FRAME_OPERANDS][TD_LANES * 8];
    char *padded[TD_FRAME_OPERANDS];
    for (int k = 0; k < count; k++) {
        const int64_t size = (int64_t)td_dtype_size(as[k]);
        padded[k] = room[k];
        if (k == 0)
            continue;
        memset(room[k], 0, sizeof room[k]);
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
                      block *blocks)
{
    const td_frame *f = p->frame;
    char *data[TD_FRAME_OPERANDS];
    int64_t index[TD_MAX_RANK];
    seek(f, start, index);
    for (int k = 0; k < f->count; k++) {
        data[k] = p->direct[k] ? element(f, k, index) : blocks[k].bytes;
        if (k > 0 && !p->direct[k] && !p->fixed[k])
            td_frame_gather(f, k, start, n, p->as[k], data[k]);
    }
    td_frame_line(p->loop, f->count, data, p->as, n);
    if (!p->direct[0])
        scatter(f, start, n, p->as[0], data[0]);
}

/* elementwise: function run_blocks */
static bool run_blocks(void *context, int64_t begin, int64_t end,
                       int worker)
{
    const plan *p = context;
    const td_frame *f = p->frame;
    block blocks[TD_FRAME_OPERANDS];
    /* elementwise: fill the blocks of fixed operands */
    for (int k = 0; k < f->count; k++)
        if (p->fixed[k])
            td_frame_gather(f, k, 0, minimum(f->total, TD_BLOCK),
                            p->as[k], blocks[k].bytes);
    const int64_t last = minimum(end * TD_BLOCK, f->total);
    int64_t n;
    for (int64_t at = begin * TD_BLOCK; at < last; at += n) {
        n = minimum(last - at, p->limit);
        n = minimum(n, p->span - at % p->span);
        run_piece(p, at, n, blocks);
    }
    (void)worker;
    return true;
}

/* elementwise: function td_frame_run */
bool td_frame_run(td_frame *f, td_loop *loop, const td_dtype *as)
{
    if (f->total == 0)
        return true;
    td_frame_collapse(f);
    plan p = { .frame = f, .loop = loop, .limit = f->total };
    const int64_t row = f->shape[f->rank - 1];
    p.span = row >= TD_LONG_ROW ? row : f->total;
    for (int k = 0; k < f->count; k++)
        plan_operand(&p, k, as[k]);
    const int64_t blocks = (f->total + TD_BLOCK - 1) / TD_BLOCK;
    return td_parallel_for(blocks, 32, run_blocks, &p);
}
