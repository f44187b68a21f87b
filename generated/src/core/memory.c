/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "memory": edit that, not this file. */
#include "core/runtime.h"
#include <sys/mman.h>

/* memory: function td_count */
static void add(td_thread *own, td_counter what, int64_t change)
{
    const int64_t now = atomic_load_explicit(&own->count[what],
                                             memory_order_relaxed);
    atomic_store_explicit(&own->count[what], now + change,
                          memory_order_relaxed);
}

void td_count(td_counter what, int64_t change)
{
    add(td_self(), what, change);
}

/* memory: function td_count_bytes */
static void settle(td_thread *own)
{
    td_runtime *process = td_process();
    const int64_t most = own->most + atomic_fetch_add(
        &process->count[TD_COUNT_BYTES],
        atomic_exchange(&own->count[TD_COUNT_BYTES], 0));
    own->most = 0;
    /* memory: raise the peak to most */
    int64_t peak = process->peak_bytes;
    while (most > peak
           && !atomic_compare_exchange_weak(&process->peak_bytes,
                                            &peak, most))
        ;
}

void td_count_bytes(int64_t change)
{
    td_thread *own = td_self();
    add(own, TD_COUNT_BYTES, change);
    const int64_t gathered = own->count[TD_COUNT_BYTES];
    own->most = gathered > own->most ? gathered : own->most;
    if (llabs(gathered) > 1 << 16)
        settle(own);
}

/* memory: function class_of */
static int class_of(size_t bytes)
{
    const size_t last = bytes > 0 ? (bytes - 1) / TD_ALIGNMENT : 0;
    const int shift = last < 16 ? 0 : 60 - __builtin_clzll(last);
    return 8 * shift + (int)(last >> shift);
}

static size_t size_of(int class)
{
    const int shift = class < 16 ? 0 : class / 8 - 1;
    return (size_t)(class - 8 * shift + 1) * TD_ALIGNMENT << shift;
}

/* memory: function empty_shared */
static void empty_shared(td_runtime *process)
{
    td_block *spare[TD_CLASSES];
    pthread_mutex_lock(&process->memory_lock);
    memcpy(spare, process->spare, sizeof spare);
    memset(process->spare, 0, sizeof spare);
    process->count[TD_COUNT_KEPT] = 0;
    pthread_mutex_unlock(&process->memory_lock);
    for (int class = 0; class < TD_CLASSES; class++)
        while (spare[class] != NULL) {
            td_block *block = spare[class];
            spare[class] = block->next;
            free(block);
        }
}

/* memory: function give_shared */
static void give_shared(td_block *block, int class)
{
    td_runtime *process = td_process();
    _Atomic(int64_t) *kept = &process->count[TD_COUNT_KEPT];
    const int64_t size = (int64_t)size_of(class);
    if (size > process->limit) {
        free(block);
        return;
    }
    if (*kept + size > process->limit)
        empty_shared(process);
    pthread_mutex_lock(&process->memory_lock);
    block->next = process->spare[class];
    process->spare[class] = block;
    atomic_fetch_add(kept, size);
    pthread_mutex_unlock(&process->memory_lock);
}

/* memory: function td_free */
void td_free(void *data, size_t bytes)
{
    td_block *block = data;
    td_thread *own = td_self();
    const int class = class_of(bytes);
    const int64_t size = (int64_t)size_of(class);
    if (block == NULL)
        return;
    if (class >= TD_SMALL || td_process()->plain
        || own->count[TD_COUNT_KEPT] + size > TD_POCKET) {
        give_shared(block, class);
        return;
    }
    block->next = own->spare[class];
    own->spare[class] = block;
    add(own, TD_COUNT_KEPT, size);
}

/* memory: function td_memory_trim */
void td_pocket_empty(td_thread *own)
{
    for (int class = 0; class < TD_SMALL; class++)
        while (own->spare[class] != NULL) {
            td_block *block = own->spare[class];
            own->spare[class] = block->next;
            add(own, TD_COUNT_KEPT, -(int64_t)size_of(class));
            give_shared(block, class);
        }
}

static void empty_all(td_runtime *process)
{
    td_pocket_empty(td_self());
    empty_shared(process);
}

void td_memory_trim(void)
{
    td_runtime *process = td_process();
    empty_all(process);
    /* plugins: trim the memory of devices */
    const td_device_table *cuda = process->cuda;
    for (int d = 0; cuda != NULL && d < cuda->count(); d++)
        cuda->trim(d);
}

/* memory: function ask_system */
enum { HUGE = 1 << 21 };

static void *ask_system(size_t bytes)
{
    void *block = NULL;
    for (int attempt = 0; attempt < 2; attempt++) {
        if (attempt > 0)
            empty_all(td_process());
        if (posix_memalign(&block, bytes < TD_LARGE ? TD_ALIGNMENT
                           : bytes < HUGE ? 4096 : HUGE,
                           bytes + !bytes) == 0) {
            /* memory: ask for huge pages */
            #ifdef MADV_HUGEPAGE
            if (bytes >= HUGE)
                madvise(block, bytes, MADV_HUGEPAGE);
            #endif
            td_count(TD_COUNT_ASKED, 1);
            return block;
        }
    }
    return NULL;
}

/* memory: function take_shared */
static void *take_shared(int class)
{
    td_runtime *process = td_process();
    const int64_t size = (int64_t)size_of(class);
    pthread_mutex_lock(&process->memory_lock);
    td_block *block = process->spare[class];
    if (block != NULL) {
        process->spare[class] = block->next;
        atomic_fetch_sub(&process->count[TD_COUNT_KEPT], size);
    }
    pthread_mutex_unlock(&process->memory_lock);
    return block != NULL ? block : ask_system((size_t)size);
}

/* memory: function take */
static void *take(size_t bytes)
{
    td_thread *own = td_self();
    const int class = class_of(bytes);
    td_block *block = class < TD_SMALL ? own->spare[class] : NULL;
    if (block == NULL)
        return td_process()->plain ? ask_system(bytes)
                                   : take_shared(class);
    own->spare[class] = block->next;
    add(own, TD_COUNT_KEPT, -(int64_t)size_of(class));
    return block;
}

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
    td_process()->fail_in = never ? 0 : n + 1;
}

/* memory: functions for the library's records */
void *td_alloc_aligned(size_t bytes)
{
    void *block = refused(bytes) ? NULL : take(bytes);
    /* memory: count the block, or say that there is none */
    if (block == NULL)
        td_fail(TD_ERROR_MEMORY, "memory", "cannot allocate %zu bytes",
                bytes);
    else
        td_count(TD_COUNT_GRANTED, 1);
    return block;
}
void *td_alloc(size_t bytes)
{
    void *block = td_alloc_aligned(bytes);
    return block != NULL ? memset(block, 0, bytes) : NULL;
}
void *td_alloc_array(size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes))
        bytes = SIZE_MAX;
    return td_alloc(bytes);
}

/* memory: functions for storage */
void *td_storage_alloc(size_t bytes)
{
    void *data = td_alloc_aligned(bytes);
    if (data != NULL)
        td_count_bytes((int64_t)bytes);
    return data;
}

void td_storage_free(void *data, size_t bytes)
{
    if (data != NULL)
        td_count_bytes(-(int64_t)bytes);
    td_free(data, bytes);
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
static int64_t total(td_counter what)
{
    td_runtime *process = td_process();
    int64_t sum = process->count[what];
    td_thread *t = process->all_threads;
    for (; t != NULL; t = t->next)
        sum += t->count[what];
    return sum;
}

td_memory_info td_memory_stats(void)
{
    settle(td_self());
    td_memory_info info = {
        .live_tensors = total(TD_COUNT_TENSORS),
        .live_nodes = total(TD_COUNT_NODES),
        .live_objects = total(TD_COUNT_OTHERS),
        .bytes = total(TD_COUNT_BYTES),
        .peak_bytes = td_process()->peak_bytes,
        .allocations = total(TD_COUNT_GRANTED),
        .system_allocations = total(TD_COUNT_ASKED),
        .cached_bytes = total(TD_COUNT_KEPT),
    };
    info.live_objects += info.live_tensors + info.live_nodes;
    return info;
}

void td_memory_reset_peak(void)
{
    td_process()->peak_bytes = td_memory_stats().bytes;
}

int64_t td_live_node_count(void)
{
    return total(TD_COUNT_NODES);
}

/* memory: functions that set the limit */
int64_t td_memory_cache(void)
{
    return td_process()->limit;
}

bool td_memory_set_cache(int64_t bytes)
{
    td_runtime *process = td_process();
    if (td_failed() || bytes < 0)
        return td_fail(TD_ERROR_VALUE, "set_cache", "expected a number "
            "of bytes, got %" PRId64, bytes);
    if (process->plain && bytes > 0)
        return td_fail(TD_ERROR_UNSUPPORTED, "set_cache",
                       "TREADLE_ALLOC=plain keeps no blocks");
    process->limit = bytes;
    if (process->count[TD_COUNT_KEPT] > bytes)
        empty_shared(process);
    return true;
}
