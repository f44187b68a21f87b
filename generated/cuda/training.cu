/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "folds": edit that, not this file. */
/* Cross-entropy, the step of SGD, and points by index. */
#include "folds.cuh"

/* folds: functions of a warp */
template <typename T> static __device__ T sum_of_warp(T x)
{
    for (int half = 16; half > 0; half /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, half);
    return x;
}

/* folds: functions that read attributes */
static bool is_word(const td_value *v, const char *word)
{
    return v->kind == TD_STRING && strcmp(v->as.string, word) == 0;
}

static double number(const td_value *v)
{
    return v->kind != TD_SCALAR ? 0
         : v->as.scalar.kind == TD_SCALAR_FLOAT ? v->as.scalar.as.f
         : v->as.scalar.kind == TD_SCALAR_INT
         ? (double)v->as.scalar.as.i : v->as.scalar.as.b;
}

/* Makes an operand one line of the given type, if it is not. */
static bool contiguous(const td_task *task, td_array *a, td_dtype dtype,
                       scratch *room)
{
    const td_array from = *a;
    bool line = a->dtype == dtype;
    int64_t n = 1;
    for (int d = a->rank - 1; d >= 0; d--) {
        line = line && (a->shape[d] == 1 || a->strides[d] == n);
        n *= a->shape[d];
    }
    return a->kind != TD_TENSOR || line
        || (aside(task, a, dtype, room) && convert(task, a, &from));
}

/* folds: struct entropy on the device */
template <typename T> struct entropy {
    layout<4> sample;           /* offsets in x, target, g, result */
    int64_t step[4];            /* along the classes, of the same */
    const T *x, *g, *weight;    /* weight: NULL, or [classes] */
    const void *target;         /* int64_t, or T if soft */
    const T *divisor;
    T *out, smoothing;
    int64_t classes, ignored;
    bool soft, mean;
    int *fault;
};

/* folds: functions of a sample */
template <typename T>
static __device__ int64_t label_of(const entropy<T> &e, int64_t at)
{
    return e.soft ? 0 : ((const int64_t *)e.target)[at];
}

template <typename T>
static __device__ T mass(const entropy<T> &e, int64_t at, int64_t c)
{
    const int64_t label = label_of(e, at);
    const T t = e.soft ? ((const T *)e.target)[at + c * e.step[1]]
                       : (T)(c == label);
    const T q = t * (1 - e.smoothing) + e.smoothing / (T)e.classes;
    if (!e.soft && label == e.ignored)
        return 0;
    return e.weight != NULL ? e.weight[c] * q : q;
}
template <typename T> struct peak { T top, rest; };

template <typename T>
static __device__ peak<T> peak_of(const entropy<T> &e, const T *x)
{
    peak<T> p = { -INFINITY, 0 };
    int64_t best = 0;
    for (int64_t c = threadIdx.x; c < e.classes; c += 32)
        if (!(x[c * e.step[0]] <= p.top))
            p.top = x[(best = c) * e.step[0]];
    for (int half = 16; half > 0; half /= 2) {
        const T t = __shfl_xor_sync(0xffffffffu, p.top, half);
        const int64_t b = __shfl_xor_sync(0xffffffffu,
                                          (long long)best, half);
        if (t > p.top || t != t || (t == p.top && b < best)) {
            p.top = t;
            best = b;
        }
    }
    for (int64_t c = threadIdx.x; c < e.classes; c += 32)
        if (c != best)
            p.rest += p_exp(x[c * e.step[0]] - p.top);
    p.rest = sum_of_warp(p.rest);
    return p;
}

/* folds: kernel entropy_forward */
/* Thread: every 32nd class of a sample; row of 32: a sample; block: 4;
   grid: all.  Bytes: the scores once, from the cache twice more. */
template <typename T> __global__ void entropy_forward(entropy<T> e)
{
    const int64_t s = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    int64_t at[4];
    T loss = 0;
    if (s >= e.sample.total)
        return;                 /* the whole warp */
    locate_any(e.sample, s, at);
    /* folds: report a label that is no class */
    const int64_t label = label_of(e, at[1]);
    if (threadIdx.x == 0 && !e.soft && label != e.ignored
        && (label < 0 || label >= e.classes))
        atomicExch(e.fault, (int)FAULT_LABEL);
    const T *x = e.x + at[0];
    const peak<T> p = peak_of(e, x);
    for (int64_t c = threadIdx.x; c < e.classes; c += 32) {
        const T q = mass(e, at[1], c);
        if (q != 0)
            loss += q * (p.top - x[c * e.step[0]] + log1p(p.rest));
    }
    loss = sum_of_warp(loss);
    if (threadIdx.x == 0)
        e.out[s] = loss;
}

/* folds: kernel entropy_backward */
template <typename T> __global__ void entropy_backward(entropy<T> e)
{
    const int64_t s = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    int64_t at[4];
    T all = 0;
    if (s >= e.sample.total)
        return;
    locate_any(e.sample, s, at);
    const T *x = e.x + at[0];
    const peak<T> p = peak_of(e, x);
    for (int64_t c = threadIdx.x; c < e.classes; c += 32)
        all += mass(e, at[1], c);
    all = sum_of_warp(all);
    const T g = all == 0 ? 0 : e.g[at[2]] / *e.divisor;
    for (int64_t c = threadIdx.x; c < e.classes; c += 32)
        e.out[at[3] + c * e.step[3]] = g * (all / (1 + p.rest)
            * p_exp(x[c * e.step[0]] - p.top) - mass(e, at[1], c));
}

/* folds: kernel entropy_total */
/* Thread: every 256th sample; one block.  losses NULL: the divisor. */
template <typename T>
__global__ void entropy_total(entropy<T> e, const T *losses, T *out)
{
    TD_SHARED(T, lane, [THREADS]);
    T total = 0, divisor = 0;
    for (int64_t s = threadIdx.x; s < e.sample.total; s += blockDim.x) {
        int64_t at[4];
        locate_any(e.sample, s, at);
        const int64_t label = label_of(e, at[1]);
        const bool counts = e.soft || (label != e.ignored && label >= 0
                                       && label < e.classes);
        total += losses != NULL ? losses[s] : 0;
        divisor += !counts ? 0 : e.soft || e.weight == NULL
                 ? 1 : e.weight[label];
    }
    total = across<adding>(lane, total);
    divisor = across<adding>(lane, divisor);
    if (threadIdx.x == 0)
        *out = (losses != NULL ? total / (e.mean ? divisor : 1)
                : e.mean ? divisor : 1);
}

/* folds: functions that run a loss */
template <typename T>
static bool read_entropy(const td_task *task, int first,
                         td_array in[3], scratch room[3],
                         entropy<T> *e)
{
    const td_value *attr = task->attr;
    for (int i = 0; i < 3 && first + i < task->n_in; i++)
        in[i] = task->in[first + i];
    const td_array *x = &in[0], *t = &in[1], *w = &in[2];
    e->soft = is_floating(t->dtype);
    if (!as_type(task, &in[1], e->soft ? x->dtype : TD_INT64, &room[0])
        || !contiguous(task, &in[2], x->dtype, &room[1]))
        return false;
    const int dim = x->rank == 1 ? 0 : 1;
    const bool summed = is_word(&attr[1], "sum");
    e->x = (const T *)x->data;
    e->target = t->data;
    e->weight = w->kind == TD_TENSOR ? (const T *)w->data : NULL;
    e->classes = x->shape[dim];
    e->ignored = attr[0].kind == TD_SCALAR ? attr[0].as.scalar.as.i
                                           : -100;
    e->smoothing = (T)number(&attr[2]);
    e->mean = !summed && !is_word(&attr[1], "none");
    e->fault = fault_of(task->device);
    /* folds: lay out the samples of the loss */
    const td_array *g = first == 1 ? &task->in[0] : NULL;
    const td_array *out = &task->out[0];
    const bool each = is_word(&attr[1], "none");
    e->sample = empty_layout<4>();
    for (int d = 0, k = 0; d < x->rank; d++) {
        const int64_t stride[4] = { x->strides[d],
            t->strides[e->soft ? d : k],
            g != NULL && each ? g->strides[k] : 0,
            first == 1 ? out->strides[d] : 0 };
        if (d != dim) {
            add_dimension(&e->sample, x->shape[d], stride);
            k++;
        }
    }
    collapse(&e->sample);
    e->step[0] = x->strides[dim];
    e->step[1] = e->soft ? t->strides[dim] : 0;
    e->step[3] = first == 1 ? out->strides[dim] : 0;
    return true;
}
template <typename T> static bool entropy_loss(const td_task *task)
{
    entropy<T> e = {};
    td_array in[3] = {};
    scratch room[4];
    T *result = (T *)task->out[0].data, *losses = result;
    if (!read_entropy(task, 0, in, room, &e))
        return false;
    const bool each = is_word(&task->attr[1], "none");
    const int64_t n = e.sample.total;
    const cudaStream_t stream = stream_of(task->device);
    if (!each) {
        if (!room[3].take(task->device, (size_t)n * sizeof(T)))
            return false;
        losses = (T *)room[3].at;
    }
    e.out = losses;
    auto *forward = entropy_forward<T>;
    auto *total = entropy_total<T>;
    if (n > 0)
        TD_LAUNCH(forward, blocks_for(n, 4), dim3(32, 4), 0, stream,
                  e);
    if (!each)
        TD_LAUNCH(total, dim3(1), dim3(THREADS), 0, stream, e,
                  (const T *)losses, result);
    return true;
}
template <typename T> static bool entropy_slope(const td_task *task)
{
    entropy<T> e = {};
    td_array in[3] = {};
    scratch room[4];
    if (!read_entropy(task, 1, in, room, &e)
        || !room[3].take(task->device, sizeof(T)))
        return false;
    const cudaStream_t stream = stream_of(task->device);
    const int64_t n = e.sample.total;
    auto *total = entropy_total<T>;
    auto *backward = entropy_backward<T>;
    e.g = (const T *)task->in[0].data;
    e.out = (T *)task->out[0].data;
    e.divisor = (const T *)room[3].at;
    TD_LAUNCH(total, dim3(1), dim3(THREADS), 0, stream, e,
              (const T *)NULL, (T *)room[3].at);
    if (n > 0)
        TD_LAUNCH(backward, blocks_for(n, 4), dim3(32, 4), 0, stream,
                  e);
    return true;
}

bool run_entropy(const td_task *task)
{
    return with_float(task, task->in[0].dtype, [&](auto zero) {
        return entropy_loss<decltype(zero)>(task);
    });
}

bool run_entropy_backward(const td_task *task)
{
    return with_float(task, task->in[0].dtype, [&](auto zero) {
        return entropy_slope<decltype(zero)>(task);
    });
}

/* folds: kernel sgd_each */
template <typename T> struct sgd {
    T *theta, *m;
    const T *g;
    int64_t n;
    T rate, mu, take, decay, sign;
    bool nesterov;
};

/* Thread: one parameter; block: 256 in line; grid: all. */
template <typename T> __global__ void sgd_each(sgd<T> s)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= s.n)
        return;
    T d = s.sign * s.g[i];
    if (s.decay != 0)
        d += s.decay * s.theta[i];
    if (s.m != NULL) {
        s.m[i] = s.mu * s.m[i] + s.take * d;
        d = s.nesterov ? d + s.mu * s.m[i] : s.m[i];
    }
    s.theta[i] -= s.rate * d;
}

/* folds: functions that run a step */
template <typename T> static bool sgd_step(const td_task *task)
{
    const td_value *at = task->attr;
    td_array g = task->in[1];
    const td_array *m = &task->in[2];
    scratch room;
    sgd<T> s = {};
    if (!contiguous(task, &g, task->in[0].dtype, &room))
        return false;
    s.theta = (T *)task->in[0].data;
    s.g = (const T *)g.data;
    s.m = m->kind == TD_TENSOR ? (T *)m->data : NULL;
    s.rate = (T)number(&at[0]);
    s.mu = (T)number(&at[1]);
    s.take = (T)(number(&at[6]) != 0 ? 1 : 1 - number(&at[2]));
    s.decay = (T)number(&at[3]);
    s.nesterov = number(&at[4]) != 0;
    s.sign = number(&at[5]) != 0 ? -1 : 1;
    s.n = 1;
    for (int d = 0; d < g.rank; d++)
        s.n *= g.shape[d];
    auto *kernel = sgd_each<T>;
    if (s.n > 0)
        TD_LAUNCH(kernel, blocks_for(s.n, THREADS), dim3(THREADS), 0,
                  stream_of(task->device), s);
    return true;
}

bool run_sgd(const td_task *task)
{
    return with_float(task, task->in[0].dtype, [&](auto zero) {
        return sgd_step<decltype(zero)>(task);
    });
}

/* folds: struct spots on the device */
struct spots {
    const int64_t *index;
    int64_t next, size[TD_MAX_RANK], step[TD_MAX_RANK];
    int covers;
    bool wrap;
    int *fault;
};

static __device__ bool find(const spots &s, int64_t at, int64_t *x)
{
    for (int k = 0; k < s.covers; k++) {
        int64_t c = s.index[at + k * s.next];
        c += s.wrap && c < 0 ? s.size[k] : 0;
        if (c < 0 || c >= s.size[k]) {
            atomicExch(s.fault, (int)FAULT_INDEX);
            return false;
        }
        *x += c * s.step[k];
    }
    return true;
}

/* folds: kernel read_points */
/* Thread: one element of the result; block: 256; grid: all. */
template <typename T>
__global__ void read_points(const T *x, T *y, layout<3> at, spots s)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int64_t o[3];
    if (i >= at.total)
        return;
    locate_any(at, i, o);
    if (find(s, o[2], &o[0]))
        y[o[1]] = x[o[0]];
}

/* folds: kernel write_points */
/* Thread: the points of one column that fall to one of 2^bits parts, in
   their order; block: 256; grid: parts of all columns. */
template <typename T>
__global__ void write_points(T *x, const T *y, layout<3> columns,
                             layout<3> points, spots s, int bits,
                             int how, bool logic)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int64_t part = i / columns.total;
    int64_t c[3], o[3];
    if (part >> bits != 0)
        return;
    locate_any(columns, i % columns.total, c);
    for (int64_t j = 0; j < points.total; j++) {
        locate_any(points, j, o);
        o[0] += c[0];
        if (!find(s, c[2] + o[2], &o[0]))
            return;
        const uint64_t mixed = (uint64_t)o[0] * 0x9E3779B97F4A7C15u;
        if ((int64_t)(mixed >> 1 >> (63 - bits)) != part)
            continue;
        T *to = x + o[0];
        const T from = y[c[1] + o[1]];
        *to = how == 1 ? from : how == 2 ? (T)(*to + from)
                              : (T)(*to * from);
        if (logic)
            *to = *to != 0;
    }
}

/* folds: functions that run an index */
enum { WRITERS = 1 << 17, MOST_BITS = 12 };

static spots read_spots(const td_task *task)
{
    const td_value *at = task->attr;
    spots s = { (const int64_t *)task->in[1].data,
                at[2].as.scalar.as.i, {}, {}, at[3].as.ints.count,
                at[1].as.scalar.as.b, fault_of(task->device) };
    for (int k = 0; k < s.covers; k++) {
        s.size[k] = at[3].as.ints.at[k];
        s.step[k] = at[4].as.ints.at[k];
    }
    return s;
}

static layout<3> sides(const td_array *x, const td_array *y,
                       const td_array *index, bool columns, bool points)
{
    layout<3> l = empty_layout<3>();
    for (int d = 0; d < x->rank; d++) {
        const int64_t stride[3] = { x->strides[d], y->strides[d],
                                    index->strides[d] };
        if (x->strides[d] != 0 ? columns : points)
            add_dimension(&l, x->shape[d], stride);
    }
    collapse(&l);
    return l;
}

template <typename T> static bool read(const td_task *task)
{
    const td_array *x = &task->in[0], *y = &task->out[0];
    const layout<3> at = sides(x, y, &task->in[1], true, true);
    auto *kernel = read_points<T>;
    if (at.total > 0)
        TD_LAUNCH(kernel, blocks_for(at.total, THREADS), dim3(THREADS),
                  0, stream_of(task->device), (const T *)x->data,
                  (T *)y->data, at, read_spots(task));
    return true;
}

template <typename T> static bool write(const td_task *task)
{
    const td_array *x = &task->out[0], *y = &task->in[0];
    const layout<3> columns = sides(x, y, &task->in[1], true, false);
    const layout<3> points = sides(x, y, &task->in[1], false, true);
    const int64_t n = columns.total;
    int bits = 0;
    while (bits < MOST_BITS && n << (bits + 1) <= WRITERS
           && points.total >> bits > 1)
        bits++;
    auto *kernel = write_points<T>;
    if (n * points.total > 0)
        TD_LAUNCH(kernel, blocks_for(n << bits, THREADS),
                  dim3(THREADS), 0, stream_of(task->device),
                  (T *)x->data, (const T *)y->data, columns, points,
                  read_spots(task), bits,
                  (int)task->attr[0].as.scalar.as.i,
                  x->dtype == TD_BOOL);
    return true;
}


template <typename F> static bool with_size(td_dtype dtype, F f)
{
    switch (size_of(dtype)) {
    case 1:  return f((uint8_t)0);
    case 2:  return f((uint16_t)0);
    case 4:  return f((uint32_t)0);
    default: return f((uint64_t)0);
    }
}

bool run_read(const td_task *task)
{
    return with_size(task->out[0].dtype, [&](auto zero) {
        return read<decltype(zero)>(task);
    });
}

bool run_write(const td_task *task)
{
    const td_dtype dtype = task->out[0].dtype;
    const auto run = [&](auto zero) {
        return write<decltype(zero)>(task);
    };
    return task->attr[0].as.scalar.as.i == 1 ? with_size(dtype, run)
                                        : with_type(task, dtype, run);
}
