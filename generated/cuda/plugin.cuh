/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "kernels": edit that, not this file. */
/* What the kernel files of the plug-in share: errors, temporary memory,
   and layouts that travel to a kernel by value. */
#pragma once
#include "device.cuh"
#include <treadle/plugin.h>
#include <math.h>
#include <string.h>
#include <type_traits>

enum { THREADS = 256, EACH = 4, TILE = THREADS * EACH };

/* kernels: prototypes of the plug-in's runtime */
extern const td_host_api *host;         /* the library, from init */

bool allocate(int device, size_t bytes, void **data);
void release(int device, void *data, size_t bytes);
cudaStream_t stream_of(int device);     /* the thread's current one */
int *fault_of(int device);
bool checked(const char *what, cudaError_t error);
bool unsupported(const td_task *task);
/* Pieces of which each takes `each` of n things; as many blocks. */
inline int64_t cut(int64_t n, int64_t each)
{
    return (n + each - 1) / each;
}
inline dim3 blocks_for(int64_t n, int64_t each)
{
    return dim3((unsigned)cut(n, each));
}

/* The number of this thread among those of a line of blocks. */
inline __device__ int64_t my_place()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

inline double number(const td_value *v)
{
    return v->as.scalar.kind == TD_SCALAR_FLOAT ? v->as.scalar.as.f
         : v->as.scalar.kind == TD_SCALAR_INT
         ? (double)v->as.scalar.as.i : v->as.scalar.as.b;
}

template <typename K, typename... A>
bool start(const td_task *task, K *kernel, dim3 grid, dim3 block,
           A... operands)
{
    if (kernel == NULL)
        return unsupported(task);
    TD_LAUNCH(kernel, grid, block, 0, stream_of(task->device),
              operands...);
    return true;
}

/* kernels: struct scratch */
struct scratch {
    int device;
    size_t bytes;
    void *at;

    scratch() : device(0), bytes(0), at(NULL) {}
    scratch(const scratch &) = delete;
    ~scratch() { release(device, at, bytes); }
    bool take(int on, size_t size)
    {
        device = on;
        bytes = size;
        return allocate(on, size, &at);
    }
};

/* kernels: functions that choose a type */
template <typename F>
bool with_float(const td_task *task, td_dtype dtype, F f)
{
    return dtype == TD_FLOAT32 ? f(0.0f) : dtype == TD_FLOAT64 ? f(0.0)
         : unsupported(task);
}

template <typename F>
bool with_type(const td_task *task, td_dtype dtype, F f)
{
    switch (dtype) {
    case TD_INT64: return f((int64_t)0);
    case TD_INT32: return f((int32_t)0);
    case TD_UINT8:
    case TD_BOOL:  return f((uint8_t)0);
    default:       return with_float(task, dtype, f);
    }
}
template <typename F> bool with_size(td_dtype dtype, F f)
{
    switch (host->size_of(dtype)) {
    case 1:  return f((uint8_t)0);
    case 2:  return f((uint16_t)0);
    case 4:  return f((uint32_t)0);
    default: return f((uint64_t)0);
    }
}

/* kernels: struct layout */
template <int N> struct layout {
    td_dims shape = {};
    int64_t total = 1;                  /* product of the sizes */
    bool in_line = true;                /* element i is at place i */
    int64_t stride[N][TD_MAX_RANK];
};

/* kernels: functions that lay out dimensions */
template <int N>
layout<N> lay_out(const td_array *a, unsigned dims,
                  const int64_t *const (&strides)[N])
{
    layout<N> l;
    for (int d = 0; d < a->rank; d++) {
        const int at = l.shape.count;
        if (!(dims >> d & 1))
            continue;
        for (int k = 0; k < N; k++)
            l.stride[k][at] = strides[k] != NULL ? strides[k][d] : 0;
        l.shape.at[l.shape.count++] = a->shape[d];
        l.total *= a->shape[d];
    }
    host->collapse(&l.shape, N, l.stride);
    for (int k = 0; k < N; k++)
        l.in_line = l.in_line && l.shape.count == 1
                 && (strides[k] == NULL || l.stride[k][0] == 1);
    return l;
}

/* kernels: function locate on the device */
template <int N, typename I>
static __device__ void locate(const layout<N> &l, I i, int64_t *offset)
{
    for (int k = 0; k < N; k++)
        offset[k] = 0;
    for (int d = l.shape.count - 1; d >= 0; d--) {
        const I size = (I)l.shape.at[d], rest = d > 0 ? i / size : 0;
        const int64_t at = (int64_t)(i - rest * size);
        for (int k = 0; k < N; k++)
            offset[k] += at * l.stride[k][d];
        i = rest;
    }
}

template <int N>
static __device__ void locate_any(const layout<N> &l, int64_t i,
                                  int64_t *offset)
{
    if (l.in_line)
        for (int k = 0; k < N; k++)
            offset[k] = i;
    else if (l.total <= UINT32_MAX)
        locate<N, uint32_t>(l, (uint32_t)i, offset);
    else
        locate<N, uint64_t>(l, (uint64_t)i, offset);
}

/* kernels: prototypes of the plug-in's tasks */
struct named_task {
    const char *name;                   /* NULL: the end of a list */
    bool (*run)(const td_task *task);
};
extern const named_task copies[];
bool run_elementwise(const td_task *task);

/* Elements of `in`, of the shape of `out`, in the type of `out`. */
bool convert(const td_task *task, const td_array *out,
             const td_array *in);
/* Makes *a an array of `dtype`: fresh and in line, or converted. */
bool aside(const td_task *task, td_array *a, td_dtype dtype,
           scratch *room);
bool as_type(const td_task *task, td_array *a, td_dtype dtype,
             scratch *room);
/* folds: prototypes of the plug-in's tasks */
extern const named_task folds[], steps[];
/* cuda-gemm: prototypes of the plug-in's tasks */
extern const named_task products[];
