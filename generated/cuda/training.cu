/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "folds": edit that, not this file. */
/* The step of SGD, and points by index. */
#include "folds.cuh"

/* folds: functions that read attributes */
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
    unsigned dims = 0;
    for (int d = 0; d < x->rank; d++)
        dims |= (unsigned)(x->strides[d] != 0 ? columns : points) << d;
    return lay_out<3>(x, dims, { x->strides, y->strides,
                                 index->strides });
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
    switch (host->size_of(dtype)) {
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
