/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "folds": edit that, not this file. */
/* Folds across a block, and the primitives, for the device. */
#ifndef TREADLE_CUDA_FOLDS_CUH
#define TREADLE_CUDA_FOLDS_CUH
#include "plugin.cuh"
#include <stdlib.h>
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

/* folds: function across */
template <typename Fold, typename T>
static __device__ T across(T *lane, T value)
{
    __syncthreads();
    lane[threadIdx.x] = value;
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            lane[threadIdx.x] = Fold::step(lane[threadIdx.x],
                                           lane[threadIdx.x + half]);
    }
    __syncthreads();
    return lane[0];
}
#endif
