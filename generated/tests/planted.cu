/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "watching": edit that, not this file. */
/* Kernels with a bug each, and without: see the chapter "cuda". */
#include "device.cuh"

enum { BLOCK = 64 };

/* watching: kernel with a race */
template <bool CURED>
__global__ void smooth(float *out, const float *in)
{
    TD_SHARED(float, tile, [BLOCK]);
    const int t = (int)threadIdx.x;
    tile[t] = in[t];
    __syncthreads();
    const float next = tile[(t + 1) % BLOCK];
    if (CURED)
        __syncthreads();
    tile[t] = 0.5f * (tile[t] + next);
    out[t] = tile[t];
}

/* watching: kernel with a divergent barrier */
template <bool CURED>
__global__ void sum_part(float *out, const float *in, int n)
{
    TD_SHARED(float, tile, [BLOCK]);
    const int t = (int)threadIdx.x;
    if (CURED) {
        tile[t] = t < n ? in[t] : 0;
        __syncthreads();
    } else if (t < n) {
        tile[t] = in[t];
        __syncthreads();
    } else {
        return;
    }
    if (t == 0)
        for (int k = 0; k < n; k++)
            out[0] += tile[k];
}

/* watching: kernel with an overrun */
template <bool CURED>
__global__ void differences(float *out, const float *in)
{
    TD_SHARED(float, tile, [BLOCK]);
    const int t = (int)threadIdx.x;
    tile[t] = in[t];
    __syncthreads();
    if (CURED && t == BLOCK - 1)
        out[t] = 0;
    else
        out[t] = tile[t + 1] - tile[t];
}

/* watching: kernel with an uninitialised read */
template <bool CURED>
__global__ void differences_padded(float *out, const float *in)
{
    TD_SHARED(float, tile, [BLOCK + 1]);
    const int t = (int)threadIdx.x;
    tile[t] = in[t];
    if (CURED && t == 0)
        tile[BLOCK] = in[BLOCK - 1];
    __syncthreads();
    out[t] = tile[t + 1] - tile[t];
}

/* watching: kernel with a race between blocks */
template <bool CURED>
__global__ void sum_all(float *out, const float *in)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (CURED)
        atomicAdd(out, in[i]);
    else
        out[0] += in[i];
}

/* watching: kernel without bounds */
template <bool CURED>
__global__ void twice(float *out, const float *in, int n)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (!CURED || i < n)
        out[i] = 2 * in[i];
}

/* watching: kernel with an early count */
template <bool CURED>
__global__ void histogram(float *out, const float *in)
{
    TD_SHARED(int, counts, [BLOCK]);
    const int t = (int)threadIdx.x;
    counts[t] = 0;
    if (CURED)
        __syncthreads();
    atomicAdd(&counts[(int)in[t] / 8], 1);
    __syncthreads();
    out[t] = (float)counts[t];
}

/* watching: kernels that transpose */
__global__ void transpose(float *out, const float *in)
{
    const int t = (int)threadIdx.x;
    for (int row = 0; row < 32; row++)
        out[32 * t + row] = in[32 * row + t];
}
template <int PAD>
__global__ void transpose_by(float *out, const float *in, int rows,
                             int columns)
{
    TD_SHARED(float, tile, [32][32 + PAD]);
    const int tx = (int)threadIdx.x, ty = (int)threadIdx.y;
    const int top = 32 * (int)blockIdx.x;
    /* tile: exercise tile */
    for (int left = 0; left < columns; left += 32) {
        for (int k = ty; k < 32; k += 8)
            if (top + k < rows && left + tx < columns)
                tile[k][tx] = in[(top + k) * columns + left + tx];
        __syncthreads();
        for (int k = ty; k < 32; k += 8)
            if (left + k < columns && top + tx < rows)
                out[(left + k) * rows + top + tx] = tile[tx][k];
        __syncthreads();
    }
}

/* watching: function planted */
template <bool CURED>
static void launch(int which, float *out, float *in)
{
    const int n = BLOCK - 20, half = BLOCK / 2;
#define RUN(kernel, grid, block) \
    TD_LAUNCH(kernel<CURED>, grid, block, 0, 0, out, in)
    switch (which) {
    case 0: RUN(smooth, 1, BLOCK); break;
    case 1: TD_LAUNCH(sum_part<CURED>, 1, BLOCK, 0, 0, out, in, n);
        break;
    case 2: RUN(differences, 1, BLOCK); break;
    case 3: RUN(differences_padded, 1, BLOCK); break;
    case 4: RUN(sum_all, 2, half); break;
    case 5: TD_LAUNCH(twice<CURED>, 3, half, 0, 0, out, in, BLOCK);
        break;
    default: RUN(histogram, 1, BLOCK);
    }
#undef RUN
}

/* watching: functions for the test */
/* Runs one of them on 0, 1, ... 63; the result goes to `result`. */
extern "C" __attribute__((visibility("default")))
const char *planted(int which, int cured, float *result)
{
    float values[BLOCK], *in = NULL, *out = NULL;
    for (int i = 0; i < BLOCK; i++)
        values[i] = (float)i;
    cudaMalloc(&in, sizeof values);
    cudaMalloc(&out, sizeof values);
    cudaMemcpyAsync(in, values, sizeof values, cudaMemcpyHostToDevice);
    cudaMemsetAsync(out, 0, sizeof values);
    if (cured)
        launch<true>(which, out, in);
    else
        launch<false>(which, out, in);
    cudaMemcpyAsync(result, out, sizeof values, cudaMemcpyDeviceToHost);
    cudaFree(in);
    cudaFree(out);
    return emulator_first_report();
}

/* Transposes in three ways, for the counts of sectors and banks. */
extern "C" __attribute__((visibility("default")))
void transposed()
{
    const dim3 block(32, 8);
    float *in = NULL, *out = NULL;
    cudaMalloc(&in, 32 * 32 * sizeof *in);
    cudaMalloc(&out, 32 * 32 * sizeof *out);
    TD_LAUNCH(transpose, 1, 32, 0, 0, out, in);
    TD_LAUNCH(transpose_by<0>, 1, block, 0, 0, out, in, 32, 32);
    TD_LAUNCH(transpose_by<1>, 1, block, 0, 0, out, in, 32, 32);
    cudaFree(in);
    cudaFree(out);
}

/* Transposes any matrix through padded tiles; the first report. */
extern "C" __attribute__((visibility("default")))
const char *transposed_by_tiles(float *result, const float *matrix,
                                int rows, int columns)
{
    const size_t bytes = (size_t)rows * (size_t)columns * sizeof(float);
    float *in = NULL, *out = NULL;
    cudaMalloc(&in, bytes);
    cudaMalloc(&out, bytes);
    cudaMemcpyAsync(in, matrix, bytes, cudaMemcpyHostToDevice);
    cudaMemsetAsync(out, 0xff, bytes);
    TD_LAUNCH(transpose_by<1>, (rows + 31) / 32, dim3(32, 8), 0, 0, out,
              in, rows, columns);
    cudaMemcpyAsync(result, out, bytes, cudaMemcpyDeviceToHost);
    cudaFree(in);
    cudaFree(out);
    return emulator_first_report();
}
