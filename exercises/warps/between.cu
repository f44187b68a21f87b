/* Kernels whose lanes wait for each other, for the check.  SPDX-License-Identifier: MIT */
#include "device.cuh"
#include <string.h>

#define LANE ((int)threadIdx.x % 32)
#define WARP ((int)threadIdx.x / 32)

__global__ void sum_of_warp(int *out, const int *in)
{
    const int m = (int)threadIdx.x;
    int v = in[m];
    for (int mask = 16; mask > 0; mask /= 2)
        v += __shfl_xor_sync(~0u, v, mask);
    out[m] = v;
}

/* Each takes its neighbour's number, many times over. */
__global__ void in_steps(int *out, const int *in)
{
    const int m = (int)threadIdx.x;
    int v = in[m];
    for (int step = 0; step < 9; step++)
        v = 3 * v + __shfl_sync(~0u, v, (LANE + 1 + step) % 32);
    out[m] = v;
}

/* In warp w those lanes return whose bit is set in gone[w]; the others take turns at 13. */
__global__ void some_return(int *out, const int *in)
{
    static const unsigned gone[] = { 1u, 0x80000000u, ~0u, ~(1u << 13), 0x55550001u, 0, ~0u };
    const int m = (int)threadIdx.x;
    if (gone[WARP] >> LANE & 1)
        return;
    int v = in[m];
    for (int step = 0; step < 5; step++)
        v = 2 * v + __shfl_sync(~0u, v, 13);
    out[m] = v;
}

/* Words go from lane to lane through shared memory, and back. */
__global__ void through_memory(int *out, const int *in)
{
    TD_SHARED(int, word, [1024]);
    const int m = (int)threadIdx.x, n = (int)blockDim.x;
    const int end = WARP * 32 + 32 < n ? WARP * 32 + 32 : n;
    int v = in[m];
    for (int step = 0; step < 6; step++) {
        word[m] = v;
        __syncwarp();
        __syncwarp();
        v += word[WARP * 32 + (m + 1 - WARP * 32) % (end - WARP * 32)];
        __syncwarp();
    }
    out[m] = v;
}

/* The sum of a block: each warp has its own number of meetings before the barrier. */
__global__ void sum_of_block(int *out, const int *in)
{
    TD_SHARED(int, part, [32]);
    const int m = (int)threadIdx.x, n = (int)blockDim.x;
    int v = in[m];
    for (int round = 0; round < WARP % 3; round++)
        __syncwarp();
    for (int mask = 16; mask > 0; mask /= 2)
        v += __shfl_down_sync(~0u, v, mask);
    if (LANE == 0)
        part[WARP] = v;
    __syncthreads();
    if (m >= 32) {
        out[m] = 0;
        return;
    }
    v = m < n / 32 ? part[m] : 0;
    for (int mask = 16; mask > 0; mask /= 2)
        v += __shfl_xor_sync(~0u, v, mask);
    out[m] = v;
}

/* Which warp is let go when. */
__global__ void turns(int *out, const int *)
{
    TD_SHARED(int, next, [1]);
    if (threadIdx.x == 0)
        next[0] = 0;
    __syncthreads();
    for (int turn = 0; turn < 4; turn++) {
        __syncwarp();
        if (LANE == 0)
            out[atomicAdd(&next[0], 1)] = WARP;
    }
}

/* Lane `threadIdx.x == in[0]` goes to the barrier, its warp to a meeting. */
__global__ void torn(int *out, const int *in)
{
    const int m = (int)threadIdx.x;
    out[m] = m;
    if (m == in[0])
        __syncthreads();
    else if (WARP == in[0] / 32)
        __syncwarp();
    else
        for (int round = 0; round < 3; round++)
            __syncwarp();
    out[m] = -1;
    __syncthreads();
}

/* The last warp returns, or goes to the barrier, while others talk. */
__global__ void last_is_done(int *out, const int *in)
{
    const int m = (int)threadIdx.x, last = ((int)blockDim.x - 1) / 32;
    int v = in[m];
    for (int round = 0; WARP < last && round < 3; round++)
        v += 5 * __shfl_sync(~0u, v, (LANE + 3) % 32);
    out[m] = v;
}

/* Neighbours of one warp that nothing orders after the third meeting. */
__global__ void races(int *out, const int *in)
{
    TD_SHARED(int, word, [64]);
    const int m = (int)threadIdx.x;
    word[m] = in[m];
    for (int round = 0; round < 3; round++)
        __syncwarp();
    out[m] = word[m ^ 1];
    word[m] = 1;
}

typedef void kernel(int *, const int *);

/* Runs kernel `which` on one block of n threads; the first report. */
extern "C" __attribute__((visibility("default")))
const char *talked(int which, int n, int *result, const int *numbers)
{
    static kernel *const kernels[] = { sum_of_warp, in_steps, some_return, through_memory, sum_of_block, turns, torn,
                                       last_is_done, races };
    const size_t bytes = (size_t)n * sizeof(int);
    int *in = NULL, *out = NULL;
    cudaMalloc(&in, bytes);
    cudaMalloc(&out, bytes);
    cudaMemcpyAsync(in, numbers, bytes, cudaMemcpyHostToDevice);
    cudaMemsetAsync(out, 0xff, bytes);
    kernel *const chosen = kernels[which];
    TD_LAUNCH(chosen, 1, n, 0, 0, out, (const int *)in);
    cudaMemcpyAsync(result, out, bytes, cudaMemcpyDeviceToHost);
    cudaFree(in);
    cudaFree(out);
    return emulator_first_report();
}
