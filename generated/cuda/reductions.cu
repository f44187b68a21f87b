/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "folds": edit that, not this file. */
/* Folds, searches and exponentials over any dimensions. */
#include "folds.cuh"

/* folds: kernel fold */
/* Thread: every Y-th element of one result; block: X results; grid:
   all, times the parts of a long fold.  Bytes: each element once.
   Limit: memory, if the reduced elements or the results lie in line. */
template <typename Fold, typename T>
__global__ void fold(const T *x, T *out, layout<1> kept,
                     layout<1> reduced, int64_t part)
{
    TD_SHARED(T, lane, [THREADS]);
    const int me = threadIdx.y * blockDim.x + threadIdx.x;
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    /* folds: fold every Y-th element of a part */
    const int64_t begin = blockIdx.y * part;
    const int64_t end = begin + part < reduced.total ? begin + part
                                                     : reduced.total;
    T sum = 0;
    if (i < kept.total) {
        int64_t row, at;
        locate_any(kept, i, &row);
        locate_any(reduced, begin, &at);
        sum = Fold::start(x[row + at]);
        for (int64_t r = begin + threadIdx.y; r < end; r += blockDim.y) {
            locate_any(reduced, r, &at);
            sum = Fold::step(sum, x[row + at]);
        }
    }
    lane[me] = sum;
    for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half)
            lane[me] = Fold::step(lane[me],
                                  lane[me + half * blockDim.x]);
    }
    if (threadIdx.y == 0 && i < kept.total)
        out[blockIdx.y * kept.total + i] = lane[me];
}

/* folds: kernel find */
template <bool LARGEST, typename T>
static __device__ bool beats(T b, int64_t j, T a, int64_t i)
{
    if (b != b || a != a)
        return b != b && (a == a || j < i);
    return b == a ? j < i : LARGEST ? b > a : b < a;
}
/* As fold(), of values and places, in one part: a search over all of a
   large tensor keeps one block busy and no more. */
template <bool LARGEST, typename T>
__global__ void find(const T *x, T *value, int64_t *index,
                     layout<1> kept, layout<1> reduced)
{
    TD_SHARED(T, best, [THREADS]);
    TD_SHARED(int64_t, place, [THREADS]);
    const int me = threadIdx.y * blockDim.x + threadIdx.x;
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    /* folds: find the best of every Y-th element */
    int64_t row = 0, at, where = 0;
    if (i < kept.total)
        locate_any(kept, i, &row);
    locate_any(reduced, 0, &at);
    T top = x[row + at];
    for (int64_t r = threadIdx.y; r < reduced.total; r += blockDim.y) {
        locate_any(reduced, r, &at);
        if (beats<LARGEST>(x[row + at], r, top, where)) {
            top = x[row + at];
            where = r;
        }
    }
    best[me] = top;
    place[me] = where;
    for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
        const int other = me + (int)(half * blockDim.x);
        __syncthreads();
        if (threadIdx.y < half && beats<LARGEST>(best[other],
                place[other], best[me], place[me])) {
            best[me] = best[other];
            place[me] = place[other];
        }
    }
    if (threadIdx.y == 0 && i < kept.total) {
        index[i] = place[me];
        if (value != NULL)
            value[i] = best[me];
    }
}

/* folds: function line_of */
static layout<1> line_of(int64_t n, int64_t stride)
{
    layout<1> l = { { 1, { n } }, n, { { stride } } };
    return l;
}

/* folds: functions that plan a fold */
template <int N> struct split { layout<N> kept, reduced; };

/* Dimensions of `a`, by the list of those reduced; with N = 2 also the
   strides of `out`, of the same shape. */
template <int N>
static split<N> split_axes(const td_array *a, const td_value *dims,
                           const td_array *out)
{
    const int64_t *const both[] = { a->strides, out->strides };
    const int64_t *strides[N];
    unsigned mask = 0;
    for (int k = 0; k < N; k++)
        strides[k] = both[k];
    for (int i = 0; i < dims->as.ints.count; i++)
        mask |= 1u << dims->as.ints.at[i];
    return { lay_out(a, ~mask, strides), lay_out(a, mask, strides) };
}
static dim3 block_for(const layout<1> *kept, const layout<1> *reduced)
{
    const int64_t step = reduced->stride[0][reduced->shape.count - 1];
    const int64_t next = kept->stride[0][kept->shape.count - 1];
    unsigned y = 1;
    if (kept->total > 1 && next == 1 && step != 1)
        return dim3(32, THREADS / 32);
    while (y < THREADS && y < reduced->total)
        y *= 2;
    return dim3(THREADS / y, y);
}
enum { BLOCKS = 512, LEAST = 16 };      /* enough; elements a thread */

static int64_t parts_for(int64_t blocks, int64_t n, int64_t lanes)
{
    const int64_t wanted = (BLOCKS + blocks - 1) / blocks;
    const int64_t most = n / (lanes * LEAST);
    return most < 2 || blocks >= BLOCKS ? 1 : wanted < most ? wanted
                                                            : most;
}
template <typename Fold, typename T>
static bool fold_all(const td_task *task, const T *x, T *out,
                     const layout<1> &kept, const layout<1> &reduced)
{
    const dim3 block = block_for(&kept, &reduced);
    const int64_t blocks = (kept.total + block.x - 1) / block.x;
    const int64_t wanted = parts_for(blocks, reduced.total, block.y);
    const int64_t part = (reduced.total + wanted - 1) / wanted;
    const int64_t parts = (reduced.total + part - 1) / part;
    auto *kernel = fold<Fold, T>;
    scratch room;
    T *to = out;
    if (parts > 1) {
        if (!room.take(task->device,
                       (size_t)(parts * kept.total) * sizeof(T)))
            return false;
        to = (T *)room.at;
    }
    TD_LAUNCH(kernel, dim3((unsigned)blocks, (unsigned)parts), block, 0,
              stream_of(task->device), x, to, kept, reduced, part);
    return parts == 1
        || fold_all<Fold, T>(task, to, out, line_of(kept.total, 1),
                             line_of(parts, kept.total));
}

/* folds: functions that run a fold */
template <typename Fold>
static bool fold_as(const td_task *task, const td_array *in,
                    td_array *out)
{
    const split<1> s = split_axes<1>(in, &task->attr[0], in);
    return with_type(task, in->dtype, [&](auto zero) {
        typedef decltype(zero) T;
        return fold_all<Fold, T>(task, (const T *)in->data,
                                 (T *)out->data, s.kept, s.reduced);
    });
}
bool run_fold(const td_task *task)
{
    const char *what = task->what;
    const bool sum = strcmp(what, "sum") == 0;
    const bool any = strcmp(what, "any") == 0;
    const bool all = strcmp(what, "all") == 0;
    scratch room[2];
    td_array in = task->in[0], out = task->out[0];
    const td_dtype type = sum ? task->dtype
                        : any || all ? TD_BOOL : in.dtype;
    if (is_empty(&in))
        return true;
    if (!as_type(task, &in, type, &room[0])
        || (out.dtype != type && !aside(task, &out, type, &room[1])))
        return false;
    const bool ok = sum ? fold_as<adding>(task, &in, &out)
        : any || strcmp(what, "amax") == 0
        ? fold_as<largest>(task, &in, &out)
        : fold_as<smallest>(task, &in, &out);
    return ok && (out.data == task->out[0].data
                  || convert(task, &task->out[0], &out));
}
template <bool LARGEST, typename T>
static bool find_in(const td_task *task)
{
    const td_array *in = &task->in[0], *out = task->out;
    const split<1> s = split_axes<1>(in, &task->attr[0], in);
    const dim3 block = block_for(&s.kept, &s.reduced);
    const bool both = task->n_out == 2;
    auto *kernel = find<LARGEST, T>;
    TD_LAUNCH(kernel, blocks_for(s.kept.total, block.x), block, 0,
              stream_of(task->device), (const T *)in->data,
              (T *)(both ? out[0].data : NULL),
              (int64_t *)out[both].data, s.kept, s.reduced);
    return true;
}

bool run_find(const td_task *task)
{
    const bool most = strstr(task->what, "max") != NULL;
    if (is_empty(&task->in[0]))
        return true;
    return with_type(task, task->in[0].dtype, [&](auto zero) {
        typedef decltype(zero) T;
        return most ? find_in<true, T>(task) : find_in<false, T>(task);
    });
}

/* folds: kernel exponentials */
enum { SOFTMAX, LOG_SOFTMAX, LOGSUMEXP };

/* Thread: every blockDim-th element of a row; block: a row; grid: all.
   Bytes: each element read once from memory, twice from the cache, and
   written once.  Limit: memory, for rows of a few hundred and more. */
template <typename T, int WHAT>
__global__ void exponentials(const T *x, T *out, layout<2> kept,
                             layout<2> reduced)
{
    TD_SHARED(T, lane, [THREADS]);
    const int64_t n = reduced.total;
    int64_t row[2], at[2];
    T top = -INFINITY, sum = 0;
    locate_any(kept, blockIdx.x, row);
    for (int64_t j = threadIdx.x; j < n; j += blockDim.x) {
        locate_any(reduced, j, at);
        top = largest::step(top, x[row[0] + at[0]]);
    }
    top = across<largest>(lane, top);
    for (int64_t j = threadIdx.x; j < n; j += blockDim.x) {
        locate_any(reduced, j, at);
        sum += p_exp(x[row[0] + at[0]] - top);
    }
    sum = across<adding>(lane, sum);
    /* folds: write the row of exponentials */
    const T rest = p_log(sum);
    if (WHAT == LOGSUMEXP && threadIdx.x == 0)
        out[blockIdx.x] = top - top == 0 ? top + rest : top;
    for (int64_t j = threadIdx.x; WHAT != LOGSUMEXP && j < n;
         j += blockDim.x) {
        locate_any(reduced, j, at);
        const T v = x[row[0] + at[0]] - top;
        out[row[1] + at[1]] = WHAT == SOFTMAX ? p_exp(v) / sum : v - rest;
    }
}

/* folds: functions that run exponentials */
template <typename T, int WHAT>
static bool launch_rows(const td_task *task, const td_array *in)
{
    const td_array *out = &task->out[0];
    const split<2> s = split_axes<2>(in, &task->attr[0], out);
    const dim3 rows = blocks_for(s.kept.total, 1);
    unsigned threads = 32;
    while (threads < THREADS && threads < s.reduced.total)
        threads *= 2;
    auto *kernel = exponentials<T, WHAT>;
    if (s.kept.total > 0)
        TD_LAUNCH(kernel, rows, dim3(threads), 0,
                  stream_of(task->device), (const T *)in->data,
                  (T *)out->data, s.kept, s.reduced);
    return true;
}

bool run_exponentials(const td_task *task)
{
    scratch room;
    td_array in = task->in[0];
    const char *what = task->what;
    return with_float(task, task->dtype, [&](auto zero) {
        typedef decltype(zero) T;
        return as_type(task, &in, task->dtype, &room)
            && (strcmp(what, "softmax") == 0
                ? launch_rows<T, SOFTMAX>(task, &in)
                : strcmp(what, "log_softmax") == 0
                ? launch_rows<T, LOG_SOFTMAX>(task, &in)
                : launch_rows<T, LOGSUMEXP>(task, &in));
    });
}
