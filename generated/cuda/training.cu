/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "folds": edit that, not this file. */
/* The step of SGD, and points by index. */
#include "plugin.cuh"

/* folds: kernel sgd_each */
template <typename T> struct sgd {
    T *theta, *m;               /* m: NULL without momentum */
    const T *g;
    layout<3> at;
    T rate, mu, take, decay, sign;
    bool nesterov;
};

/* Thread: one parameter; block: 256; grid: all. */
template <typename T> __global__ void sgd_each(sgd<T> s)
{
    int64_t at[3];
    if (my_place() >= s.at.total)
        return;
    locate_any(s.at, my_place(), at);
    T *theta = s.theta + at[0], *m = s.m + at[1];
    T d = s.sign * s.g[at[2]];
    if (s.decay != 0)
        d += s.decay * *theta;
    if (s.m != NULL) {
        *m = s.mu * *m + s.take * d;
        d = s.nesterov ? d + s.mu * *m : *m;
    }
    *theta -= s.rate * d;
}

/* folds: function run_sgd */
static bool run_sgd(const td_task *task)
{
    const td_value *at = task->attr;
    const td_array *theta = &task->in[0], *g = &task->in[1];
    const td_array *m = &task->in[2];
    return with_float(task, theta->dtype, [&](auto zero) {
        typedef decltype(zero) T;
        const sgd<T> s = {
            (T *)theta->data, (T *)m->data, (const T *)g->data,
            lay_out<3>(theta, ~0u, {
                theta->strides, m->data ? m->strides : NULL,
                g->strides }),
            (T)number(&at[0]), (T)number(&at[1]),
            (T)(number(&at[6]) != 0 ? 1 : 1 - number(&at[2])),
            (T)number(&at[3]), (T)(number(&at[5]) != 0 ? -1 : 1),
            number(&at[4]) != 0 };
        return start(task, sgd_each<T>,
                     blocks_for(s.at.total, THREADS), THREADS, s);
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
            atomicExch(s.fault, 1);
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
    int64_t o[3];
    if (my_place() >= at.total)
        return;
    locate_any(at, my_place(), o);
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
    const int64_t i = my_place(), part = i / columns.total;
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

static bool run_read(const td_task *task)
{
    const td_array *x = &task->in[0], *y = &task->out[0];
    const layout<3> at = sides(x, y, &task->in[1], true, true);
    return with_size(y->dtype, [&](auto zero) {
        typedef decltype(zero) T;
        return start(task, read_points<T>,
                     blocks_for(at.total, THREADS), THREADS,
                     (const T *)x->data, (T *)y->data, at,
                     read_spots(task));
    });
}

static bool run_write(const td_task *task)
{
    const td_array *x = &task->out[0], *y = &task->in[0];
    const layout<3> columns = sides(x, y, &task->in[1], true, false);
    const layout<3> points = sides(x, y, &task->in[1], false, true);
    const int64_t n = columns.total;
    const int how = (int)number(&task->attr[0]);
    int bits = 0;
    while (bits < MOST_BITS && n << (bits + 1) <= WRITERS
           && points.total >> bits > 1)
        bits++;
    const auto run = [&](auto zero) {
        typedef decltype(zero) T;
        return start(task, write_points<T>,
                     blocks_for(n << bits, THREADS), THREADS,
                     (T *)x->data, (const T *)y->data, columns, points,
                     read_spots(task), bits, how, x->dtype == TD_BOOL);
    };
    return how == 1 ? with_size(x->dtype, run)
                    : with_type(task, x->dtype, run);
}

const named_task steps[] = {
    { "sgd_step_", run_sgd }, { "index_points", run_read },
    { "put_points", run_write }, {}
};
