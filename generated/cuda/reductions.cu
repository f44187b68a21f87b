/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "folds": edit that, not this file. */
/* Folds, searches and exponentials over any dimensions. */
#include "plugin.cuh"
#define static static __device__
#include "../src/ops/kernels/primitives.h"
#undef static

/* folds: types of folds */
struct adding {
    template <typename T> static __device__ T start(T) { return 0; }
    template <typename T> static __device__ T step(T a, T b)
    {
        return a + b;
    }
};

struct largest {
    template <typename T> static __device__ T start(T x) { return x; }
    template <typename T> static __device__ T step(T a, T b)
    {
        return b > a || b != b ? b : a;
    }
};

struct smallest : largest {
    template <typename T> static __device__ T step(T a, T b)
    {
        return b < a || b != b ? b : a;
    }
};

/* folds: struct split */
struct split { layout<2> kept, reduced; };

/* Dimensions of `a`, by the list of those reduced. */
static split split_axes(const td_array *a, const td_value *dims,
                        const int64_t *out)
{
    unsigned mask = 0;
    for (int i = 0; i < dims->as.ints.count; i++)
        mask |= 1u << dims->as.ints.at[i];
    return { lay_out<2>(a, ~mask, { a->strides, out }),
             lay_out<2>(a, mask, { a->strides, out }) };
}

/* folds: function gather */
/* The fold of f(r, offsets) for r = begin, ... end - 1 by the threads
   of one x, each of which starts from `sum`. */
template <typename Fold, typename T, typename F>
static __device__ T gather(T *lane, const layout<2> &over,
                           int64_t begin, int64_t end, T sum, F f)
{
    const int me = threadIdx.y * blockDim.x + threadIdx.x;
    for (int64_t r = begin + threadIdx.y; r < end; r += blockDim.y) {
        int64_t at[2];
        locate_any(over, r, at);
        sum = Fold::step(sum, f(r, at));
    }
    __syncthreads();
    lane[me] = sum;
    for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half)
            lane[me] = Fold::step(lane[me],
                                  lane[me + half * blockDim.x]);
    }
    __syncthreads();
    return lane[threadIdx.x];
}

/* folds: kernel fold */
/* Thread: every Y-th element of one result; block: X results; grid:
   all, times the parts of a long fold.  Bytes: each element once.
   Limit: memory, if the reduced elements or the results lie in line. */
template <typename Fold, typename T>
__global__ void fold(const T *x, T *out, split s, int64_t part)
{
    TD_SHARED(T, lane, [THREADS]);
    const int64_t me = my_place(), begin = blockIdx.y * part;
    const int64_t i = me < s.kept.total ? me : s.kept.total - 1;
    const int64_t end = begin + part < s.reduced.total
                      ? begin + part : s.reduced.total;
    int64_t row[2], at[2];
    locate_any(s.kept, i, row);
    locate_any(s.reduced, begin, at);
    const T sum = gather<Fold>(
        lane, s.reduced, begin, end, Fold::start(x[row[0] + at[0]]),
        [&](int64_t, const int64_t *to) { return x[row[0] + to[0]]; });
    if (threadIdx.y == 0 && me == i)
        out[blockIdx.y * s.kept.total + i] = sum;
}

/* folds: kernel find */
template <typename T> struct found {
    int64_t place;
    union { T value; int64_t bits; };

    found() = default;
    __device__ found(T x, int64_t r) : place(r), bits(0) { value = x; }
};

template <bool LARGEST> struct best {
    template <typename T>
    static __device__ found<T> step(found<T> a, found<T> b)
    {
        /* beats: exercise beats */
        const bool wins = b.value != b.value || a.value != a.value
            ? b.value != b.value
              && (a.value == a.value || b.place < a.place)
            : b.value == a.value ? b.place < a.place
            : LARGEST ? b.value > a.value : b.value < a.value;
        return wins ? b : a;
    }
};
/* As fold(), of values and places, in one part: a search over all of a
   large tensor keeps one block busy and no more. */
template <bool LARGEST, typename T>
__global__ void find(const T *x, T *value, int64_t *index, split s)
{
    TD_SHARED(found<T>, lane, [THREADS]);
    const int64_t me = my_place();
    const int64_t i = me < s.kept.total ? me : s.kept.total - 1;
    int64_t row[2];
    locate_any(s.kept, i, row);
    const found<T> it = gather<best<LARGEST>>(
        lane, s.reduced, 0, s.reduced.total, found<T>{ x[row[0]], 0 },
        [&](int64_t r, const int64_t *at) {
            return found<T>{ x[row[0] + at[0]], r };
        });
    if (threadIdx.y != 0 || me != i)
        return;
    index[i] = it.place;
    if (value != NULL)
        value[i] = it.value;
}

/* folds: function line_of */
static layout<2> line_of(int64_t n, int64_t stride)
{
    return { { 1, { n } }, n, stride == 1, { { stride } } };
}

/* folds: functions that plan a fold */
static dim3 block_for(const split &s)
{
    const int64_t step = s.reduced.stride[0][s.reduced.shape.count - 1];
    const int64_t next = s.kept.stride[0][s.kept.shape.count - 1];
    unsigned y = 1;
    if (s.kept.total > 1 && next == 1 && step != 1)
        return dim3(32, THREADS / 32);
    while (y < THREADS && y < s.reduced.total)
        y *= 2;
    return dim3(THREADS / y, y);
}
enum { BLOCKS = 512, LEAST = 16 };      /* enough; elements a thread */

static int64_t parts_for(int64_t blocks, int64_t n, int64_t lanes)
{
    const int64_t wanted = cut(BLOCKS, blocks);
    const int64_t most = n / (lanes * LEAST);
    return most < 2 || blocks >= BLOCKS ? 1 : wanted < most ? wanted
                                                            : most;
}
template <typename Fold, typename T>
static bool fold_all(const td_task *task, const T *x, T *out,
                     const split &s)
{
    const dim3 block = block_for(s);
    const int64_t results = s.kept.total, n = s.reduced.total;
    const int64_t blocks = cut(results, block.x);
    const int64_t wanted = parts_for(blocks, n, block.y);
    const int64_t part = cut(n, wanted);
    const int64_t parts = cut(n, part);
    const dim3 grid((unsigned)blocks, (unsigned)parts);
    scratch room;
    if (parts > 1 && !room.take(task->device,
                                (size_t)(parts * results) * sizeof(T)))
        return false;
    T *to = parts > 1 ? (T *)room.at : out;
    return start(task, fold<Fold, T>, grid, block, x, to, s, part)
        && (parts == 1
            || fold_all<Fold>(task, to, out, {
                   line_of(results, 1), line_of(parts, results) }));
}

/* folds: functions that run a fold */
template <typename Fold> static bool run_fold(const td_task *task)
{
    scratch room[2];
    td_array in = task->in[0], out = task->out[0];
    const td_dtype type = std::is_same<Fold, adding>::value
                        ? task->dtype : out.dtype;
    if (!as_type(task, &in, type, &room[0])
        || (out.dtype != type && !aside(task, &out, type, &room[1])))
        return false;
    const split s = split_axes(&in, &task->attr[0], NULL);
    return with_type(task, type, [&](auto zero) {
        typedef decltype(zero) T;
        return fold_all<Fold>(task, (const T *)in.data, (T *)out.data,
                              s);
    }) && (out.data == task->out[0].data
           || convert(task, &task->out[0], &out));
}
template <bool LARGEST> static bool run_find(const td_task *task)
{
    const td_array *in = &task->in[0], *out = task->out;
    const split s = split_axes(in, &task->attr[0], NULL);
    const dim3 block = block_for(s);
    const bool both = task->n_out == 2;
    return with_type(task, in->dtype, [&](auto zero) {
        typedef decltype(zero) T;
        return start(task, find<LARGEST, T>,
                     blocks_for(s.kept.total, block.x), block,
                     (const T *)in->data,
                     (T *)(both ? out[0].data : NULL),
                     (int64_t *)out[both].data, s);
    });
}

/* folds: kernel exponentials */
enum { SOFTMAX, LOG_SOFTMAX, LOGSUMEXP };

/* Thread: every Y-th element of a row; block: X rows; grid: all.
   Bytes: each element read once from memory, twice from the cache, and
   written once.  Limit: memory, for rows of a few hundred and more. */
template <typename T, int WHAT>
__global__ void exponentials(const T *x, T *out, split s)
{
    TD_SHARED(T, lane, [THREADS]);
    const int64_t me = my_place(), n = s.reduced.total;
    const int64_t i = me < s.kept.total ? me : s.kept.total - 1;
    int64_t row[2], at[2];
    locate_any(s.kept, i, row);
    const T top = gather<largest>(lane, s.reduced, 0, n, (T)-INFINITY,
        [&](int64_t, const int64_t *to) { return x[row[0] + to[0]]; });
    const T sum = gather<adding>(lane, s.reduced, 0, n, (T)0,
        [&](int64_t, const int64_t *to) {
            return p_exp(x[row[0] + to[0]] - top);
        });
    /* folds: write the row of exponentials */
    const T rest = p_log(sum);
    if (WHAT == LOGSUMEXP && threadIdx.y == 0 && me == i)
        out[i] = top - top == 0 ? top + rest : top;
    for (int64_t j = threadIdx.y; WHAT != LOGSUMEXP && me == i && j < n;
         j += blockDim.y) {
        locate_any(s.reduced, j, at);
        const T v = x[row[0] + at[0]] - top;
        out[row[1] + at[1]] = WHAT == SOFTMAX ? p_exp(v) / sum : v - rest;
    }
}

/* folds: functions that run exponentials */
template <int WHAT> static bool run_exponentials(const td_task *task)
{
    scratch room;
    td_array in = task->in[0];
    const td_array *out = &task->out[0];
    if (!as_type(task, &in, task->dtype, &room))
        return false;
    const split s = split_axes(&in, &task->attr[0], out->strides);
    const dim3 block = block_for(s);
    return with_float(task, task->dtype, [&](auto zero) {
        typedef decltype(zero) T;
        return start(task, exponentials<T, WHAT>,
                     blocks_for(s.kept.total, block.x), block,
                     (const T *)in.data, (T *)out->data, s);
    });
}

const named_task folds[] = {
    { "sum", run_fold<adding> }, { "amax", run_fold<largest> },
    { "amin", run_fold<smallest> }, { "any", run_fold<largest> },
    { "all", run_fold<smallest> }, { "argmax", run_find<true> },
    { "argmin", run_find<false> }, { "max_dim", run_find<true> },
    { "min_dim", run_find<false> },
    { "softmax", run_exponentials<SOFTMAX> },
    { "log_softmax", run_exponentials<LOG_SOFTMAX> },
    { "logsumexp", run_exponentials<LOGSUMEXP> }, {}
};
