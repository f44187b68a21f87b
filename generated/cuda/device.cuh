/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "cuda": edit that, not this file. */
/* The one header of kernel files: CUDA, or the emulator.

   TD_LAUNCH(kernel, grid, block, shared, stream, arguments...)
   TD_SHARED(float, tile, [16][17]);      in a kernel */
#pragma once
#ifdef __CUDACC__
#include <cuda_runtime.h>
#define TD_LAUNCH(kernel, grid, block, shared, stream, ...) \
    kernel<<<(grid), (block), (shared), \
             (stream)>>>(__VA_ARGS__)
#define TD_SHARED(type, name, dims) __shared__ type name dims
#else
#include "emulator.h"
#endif
