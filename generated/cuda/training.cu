/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "folds": edit that, not this file. */
/* The step of SGD, and rows by index. */
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

/* folds: kernel pick_each */
/* Thread: one element of the result; block: 256; grid: all. */
template <typename T>
__global__ void pick_each(const T *x, T *out, const int64_t *index,
                          layout<3> at, int64_t size, int64_t step,
                          int *fault)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int64_t o[3];
    if (i >= at.total)
        return;
    locate_any(at, i, o);
    const int64_t from = index[o[2]];
    if (from >= 0 && from < size)
        out[o[0]] = x[o[1] + from * step];
    else
        atomicExch(fault, (int)FAULT_INDEX);
}

/* folds: kernel gather_each */
/* Thread: one element of the result, over all `taken` indices. */
template <typename T>
__global__ void gather_each(const T *g, T *out, const int64_t *index,
                            layout<3> at, int64_t taken, int64_t step)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int64_t o[3];
    if (i >= at.total)
        return;
    locate_any(at, i, o);
    T sum = out[o[0]];
    for (int64_t j = 0; j < taken; j++)
        if (index[j] == o[2])
            sum += g[o[1] + j * step];
    out[o[0]] = sum;
}

/* folds: functions that run an index */
struct choice {
    td_array index;
    layout<3> at;
    int64_t size, step;         /* of the operand, along it */
    dim3 blocks;
};

static bool plan_choice(const td_task *task, scratch *room, choice *c)
{
    const td_array *in = &task->in[0], *out = &task->out[0];
    int dim = (int)number(&task->attr[0]);
    dim += dim < 0 ? in->rank : 0;
    c->index = task->in[1];
    int64_t others[TD_MAX_RANK], along[TD_MAX_RANK];
    for (int d = 0; d < out->rank; d++) {
        others[d] = d == dim ? 0 : in->strides[d];
        along[d] = d == dim;
    }
    c->at = lay_out<3>(out, ~0u, { out->strides, others, along });
    c->size = in->rank > 0 ? in->shape[dim] : 1;
    c->step = in->rank > 0 ? in->strides[dim] : 0;
    c->blocks = blocks_for(c->at.total, THREADS);
    return contiguous(task, &c->index, TD_INT64, room);
}
template <typename T> static bool pick(const td_task *task)
{
    scratch room;
    choice c;
    auto *kernel = pick_each<T>;
    if (!plan_choice(task, &room, &c))
        return false;
    if (c.at.total > 0)
        TD_LAUNCH(kernel, c.blocks, dim3(THREADS), 0,
                  stream_of(task->device), (const T *)task->in[0].data,
                  (T *)task->out[0].data, (const int64_t *)c.index.data,
                  c.at, c.size, c.step, fault_of(task->device));
    return true;
}

bool run_pick(const td_task *task)
{
    switch (host->size_of(task->out[0].dtype)) {
    case 1:  return pick<uint8_t>(task);
    case 2:  return pick<uint16_t>(task);
    case 4:  return pick<uint32_t>(task);
    default: return pick<uint64_t>(task);
    }
}
template <typename T> static bool gather(const td_task *task)
{
    scratch room;
    choice c;
    auto *kernel = gather_each<T>;
    if (!plan_choice(task, &room, &c))
        return false;
    if (c.at.total > 0)
        TD_LAUNCH(kernel, c.blocks, dim3(THREADS), 0,
                  stream_of(task->device), (const T *)task->in[0].data,
                  (T *)task->out[0].data, (const int64_t *)c.index.data,
                  c.at, c.size, c.step);
    return true;
}

bool run_gather(const td_task *task)
{
    return with_float(task, task->out[0].dtype, [&](auto zero) {
        return gather<decltype(zero)>(task);
    });
}
