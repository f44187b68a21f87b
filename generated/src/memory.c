/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "memory": edit that, not this file. */
#include "memory.h"
#include "runtime.h"
#include <stdlib.h>

/* memory: function refused */
static bool refused(size_t bytes)
{
    _Atomic(int64_t) *left = &td_process()->fail_in;
    if (bytes > PTRDIFF_MAX)
        return true;
    return atomic_load_explicit(left, memory_order_relaxed) > 0
        && atomic_fetch_sub(left, 1) == 1;
}

/* memory: function td_memory_fail_after */
void td_memory_fail_after(int64_t n)
{
    const bool never = n < 0 || n == INT64_MAX;
    atomic_store(&td_process()->fail_in, never ? 0 : n + 1);
}

/* memory: function granted */
static void *granted(void *block, size_t bytes)
{
    if (block == NULL)
        td_fail(TD_ERROR_MEMORY, "memory",
                "cannot allocate %zu bytes", bytes);
    else
        atomic_fetch_add_explicit(&td_process()->allocations, 1,
                                  memory_order_relaxed);
    return block;
}

/* memory: functions for the library's records */
void *td_alloc(size_t bytes)
{
    void *block = refused(bytes) ? NULL : calloc(1, bytes + !bytes);
    return granted(block, bytes);
}
void *td_alloc_array(size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes))
        bytes = SIZE_MAX;
    return td_alloc(bytes);
}

void td_free(void *block, size_t bytes)
{
    (void)bytes;
    free(block);
}

/* memory: function td_alloc_aligned */
void *td_alloc_aligned(size_t bytes)
{
    const size_t lines = (bytes + TD_ALIGNMENT - 1) / TD_ALIGNMENT;
    void *data = NULL;
    if (!refused(bytes))
        data = aligned_alloc(TD_ALIGNMENT,
                             (lines + !lines) * TD_ALIGNMENT);
    return granted(data, bytes);
}

/* memory: function count_bytes */
static void count_bytes(int64_t change)
{
    td_runtime *process = td_process();
    const int64_t now = change + atomic_fetch_add_explicit(
        &process->bytes, change, memory_order_relaxed);
    /* memory: raise the peak to now */
    int64_t peak = atomic_load_explicit(&process->peak_bytes,
                                        memory_order_relaxed);
    while (now > peak
           && !atomic_compare_exchange_weak(&process->peak_bytes,
                                            &peak, now))
        ;
}

/* memory: functions for storage */
void *td_storage_alloc(size_t bytes)
{
    void *data = td_alloc_aligned(bytes);
    if (data != NULL)
        count_bytes((int64_t)bytes);
    return data;
}

void td_storage_free(void *data, size_t bytes)
{
    if (data == NULL)
        return;
    count_bytes(-(int64_t)bytes);
    free(data);
}

/* memory: functions for checked sizes */
bool td_mul_size(int64_t a, int64_t b, int64_t *out)
{
    return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, out);
}

bool td_add_size(int64_t a, int64_t b, int64_t *out)
{
    return a >= 0 && b >= 0 && !__builtin_add_overflow(a, b, out);
}

/* memory: functions that report on memory */
td_memory_info td_memory_stats(void)
{
    td_runtime *process = td_process();
    td_memory_info info = {
        .live_tensors = atomic_load(&process->live[TD_COUNT_TENSORS]),
        .live_nodes = atomic_load(&process->live[TD_COUNT_NODES]),
        .live_objects = atomic_load(&process->live[TD_COUNT_OTHERS]),
        .bytes = atomic_load(&process->bytes),
        .peak_bytes = atomic_load(&process->peak_bytes),
        .allocations = atomic_load(&process->allocations),
    };
    info.live_objects += info.live_tensors + info.live_nodes;
    return info;
}
void td_memory_reset_peak(void)
{
    td_runtime *process = td_process();
    atomic_store(&process->peak_bytes, atomic_load(&process->bytes));
}

int64_t td_live_node_count(void)
{
    return atomic_load(&td_process()->live[TD_COUNT_NODES]);
}
