/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "cuda": edit that, not this file. */
/* CUDA for the host's compiler: the parts this book uses.

   A launch waits in its stream until somebody waits for it; then its
   blocks run, a block's threads as fibers in turn.  Built with
   -fsanitize=thread and TD_CHECKED, every access of a kernel is watched
   (see the chapter "cuda"). */
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)

/* cuda: indices of emulated threads */
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1)
        : x(x), y(y), z(z) {}
};

struct emulated_place {
    dim3 thread, block, block_size, grid_size;
};
extern thread_local emulated_place *emulated;

#define threadIdx (emulated->thread)
#define blockIdx (emulated->block)
#define blockDim (emulated->block_size)
#define gridDim (emulated->grid_size)

/* cuda: launching on the emulator */
typedef struct emulated_stream *cudaStream_t;

void emulate(const char *kernel, dim3 grid, dim3 block,
             cudaStream_t stream, std::function<void()> call);

#define TD_LAUNCH(kernel, grid, block, shared, stream, ...)            \
    ((void)(shared), emulate(#kernel, grid, block, stream,             \
                             std::bind(kernel, __VA_ARGS__)))
void *emulated_shared(const char *name, size_t bytes);

#define TD_SHARED(type, name, dims)                                    \
    static const char name##_name[] = #name;                           \
    type (&name) dims = *(type (*) dims)emulated_shared(               \
        name##_name, sizeof(type dims))

/* cuda: waiting and talking within a block */
void emulated_wait(bool for_warp);
uint64_t emulated_exchange(uint64_t word, int lane);
int emulated_lane();

#define __syncthreads() emulated_wait(false)
inline void __syncwarp(unsigned = ~0u) { emulated_wait(true); }

template <class T> T emulated_take(T value, int lane)
{
    static_assert(sizeof(T) <= 8, "a lane passes at most eight bytes");
    uint64_t word = 0;
    memcpy(&word, &value, sizeof value);
    word = emulated_exchange(word, lane);
    memcpy(&value, &word, sizeof value);
    return value;
}

template <class T> T __shfl_sync(unsigned, T v, int lane)
{
    return emulated_take(v, lane % 32);
}
template <class T> T __shfl_xor_sync(unsigned, T v, int mask)
{
    return emulated_take(v, emulated_lane() ^ mask);
}
template <class T> T __shfl_down_sync(unsigned, T v, unsigned by)
{
    return emulated_take(v, emulated_lane() + (int)by);
}

/* cuda: atomic operations of the emulator */
#define EMULATED_INLINE inline __attribute__((always_inline))
template <class T> EMULATED_INLINE
T emulated_update(T *at, T (*f)(T, T), T with)
{
    T old, fresh;
    __atomic_load(at, &old, __ATOMIC_RELAXED);
    do
        fresh = f(old, with);
    while (!__atomic_compare_exchange(at, &old, &fresh, false,
                                      __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED));
    return old;
}

template <class T> EMULATED_INLINE
T atomicAdd(T *at, std::common_type_t<T> x)
{
    return emulated_update<T>(
        at, [](T a, T b) { return (T)(a + b); }, x);
}
template <class T> EMULATED_INLINE
T atomicExch(T *at, std::common_type_t<T> x)
{
    return emulated_update<T>(at, [](T, T b) { return b; }, x);
}

/* cuda: runtime functions of the emulator */
enum cudaError_t {
    cudaSuccess = 0, cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2, cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidDevice = 101, cudaErrorLaunchFailure = 719
};
enum cudaMemcpyKind {
    cudaMemcpyHostToHost, cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice
};

typedef struct emulated_event *cudaEvent_t;
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2 };

cudaError_t cudaMalloc(void **out, size_t bytes);
cudaError_t cudaFree(void *data);
cudaError_t cudaMemGetInfo(size_t *left, size_t *total);
cudaError_t cudaGetLastError();
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            cudaMemcpyKind kind,
                            cudaStream_t stream = 0);
cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes,
                            cudaStream_t stream = 0);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned);
cudaError_t cudaStreamSynchronize(cudaStream_t stream = 0);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = 0);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned = 0);

/* What the thread's last wait found, in words; "" if nothing. */
const char *emulator_first_report();

/* Sectors of device memory and rounds of banks, on average, in the
   requests of a kernel to device memory, and their number; accesses of
   the busiest thread over those of an average one.  Counted if
   TREADLE_CUDA_REPORT is set. */
struct emulated_counts { double sectors, rounds, requests, idleness; };
extern "C" emulated_counts emulator_counts(const char *kernel);

/* Who runs the blocks of a launch in parallel; NULL: nobody. */
typedef bool emulated_loop(int64_t n, int64_t grain,
                           bool (*body)(void *, int64_t, int64_t, int),
                           void *context);
void emulator_use(emulated_loop *loop);

cudaError_t cudaMallocHost(void **out, size_t bytes);
cudaError_t cudaFreeHost(void *data);

template <class T> cudaError_t cudaMalloc(T **out, size_t bytes)
{
    return cudaMalloc((void **)out, bytes);
}
