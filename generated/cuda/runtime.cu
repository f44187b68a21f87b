/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "kernels": edit that, not this file. */
/* The plug-in: streams, memory, errors, and its table. */
#include "plugin.cuh"
#include <pthread.h>
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

const td_host_api *host;
static bool forked;             /* in a child of who used the device */

/* kernels: streams and memory of a device */
enum { STREAMS = 32, DEVICES = 16 };

/* kernels: struct pool */
struct pool {
    std::once_flag once;
    std::mutex lock;
    bool ready;
    cudaStream_t stream[STREAMS];
    cudaEvent_t mark;
    volatile int *fault;        /* of each stream, from its kernels */
    /* kernels: memory of a pool */
    struct use {
        int writer;
        uint32_t users;             /* a bit for each stream */
    };
    typedef std::pair<int, size_t> place;           /* stream, bytes */
    std::multimap<place, void *> idle;
    std::map<const void *, use> taken;              /* blocks in use */
    int64_t in_use, peak, cached, granted, made, limit;
};
static pool *const pools = new pool[DEVICES]();    /* for ever */
static std::atomic<bool> seated[STREAMS];

struct seat {
    int number, stream[DEVICES];        /* -1: not yet entered */

    seat() : number(0)
    {
        for (bool no = false; number < STREAMS - 1
             && !seated[number].compare_exchange_strong(no, true);
             no = false)
            number++;
        std::fill(stream, stream + DEVICES, -1);
    }
    ~seat() { seated[number] = false; }
};
static thread_local seat current;

cudaStream_t stream_of(int device)
{
    return pools[device].stream[current.stream[device]];
}
static bool follow(pool *p, int later, int earlier)
{
    return later == earlier
        || (checked("stream", cudaEventRecord(p->mark,
                                              p->stream[earlier]))
            && checked("stream", cudaStreamWaitEvent(p->stream[later],
                                                     p->mark, 0)));
}

static bool follow_all(pool *p, int later, uint32_t earlier)
{
    bool ok = true;
    for (int s = 0; s < STREAMS; s++)
        ok = ok && (!(earlier >> s & 1) || follow(p, later, s));
    return ok;
}
/* kernels: function set_up */
static void set_up(pool *p)
{
    size_t available = 0, all = 0;
    void *word = NULL;
    p->ready = cudaMemGetInfo(&available, &all) == cudaSuccess
        && cudaMallocHost(&word, STREAMS * sizeof *p->fault)
           == cudaSuccess
        && cudaEventCreateWithFlags(&p->mark, cudaEventDisableTiming)
           == cudaSuccess;
    for (int i = 0; i < STREAMS && p->ready; i++)
        p->ready = cudaStreamCreateWithFlags(&p->stream[i],
                       cudaStreamNonBlocking) == cudaSuccess;
    p->limit = host->plain ? 0 : (int64_t)(all / 2);
    p->fault = (volatile int *)word;
    if (p->ready)               /* pinned memory is not zero */
        memset(word, 0, STREAMS * sizeof *p->fault);
}

static bool enter(int device)
{
    pool *p = &pools[device];
    if (forked)
        return host->fail(TD_ERROR_RUNTIME, "cuda", "a process that "
                          "forked after using the device cannot use "
                          "it; start workers before, or with spawn");
    if (!checked("cuda", cudaSetDevice(device)))
        return false;
    std::call_once(p->once, set_up, p);
    if (!p->ready)
        return host->fail(TD_ERROR_RUNTIME, "cuda",
                          "device %d did not start", device);
    if (current.stream[device] < 0) {
        const int own = current.stream[device] = current.number;
        cudaStreamSynchronize(p->stream[own]);
        p->fault[own] = 0;
    }
    return true;
}
static bool use(int device, const void *data, bool writes)
{
    pool *p = &pools[device];
    const int me = current.stream[device];
    const std::lock_guard guard(p->lock);
    const auto next = p->taken.upper_bound(data);
    if (next == p->taken.begin())
        return true;                    /* memory that is not ours */
    pool::use *u = &std::prev(next)->second;
    if (!writes && u->users >> me & 1)
        return true;
    const bool ok = follow_all(p, me, writes ? u->users
                                             : 1u << u->writer);
    u->users = (writes ? 0 : u->users) | 1u << me;
    u->writer = writes ? me : u->writer;
    return ok;
}
static size_t rounded(size_t bytes)
{
    size_t step = 512;
    while (bytes > 8 * step)
        step *= 2;
    return bytes == 0 ? step : (bytes + step - 1) / step * step;
}
static void *take_idle(pool *p, int own, size_t size)
{
    for (int i = 0; i < STREAMS; i++) {
        const int from = (own + i) % STREAMS;
        const auto found = p->idle.find(pool::place(from, size));
        if (found == p->idle.end() || !follow(p, own, from))
            continue;
        void *data = found->second;
        p->idle.erase(found);
        p->cached -= (int64_t)size;
        return data;
    }
    return NULL;
}
static void empty(pool *p)
{
    for (const auto &block : p->idle)
        cudaFree(block.second);
    p->idle.clear();
    p->cached = 0;
}

static bool take_new(pool *p, size_t size, void **data)
{
    size_t available = 0, all = 0;
    cudaError_t error = cudaMalloc(data, size);
    if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError();                     /* forget it */
        empty(p);
        error = cudaMalloc(data, size);
    }
    p->made += error == cudaSuccess;
    if (error != cudaErrorMemoryAllocation)
        return checked("allocate", error);
    cudaGetLastError();
    cudaMemGetInfo(&available, &all);
    return host->fail(TD_ERROR_MEMORY, "allocate", "%zu bytes asked, "
                      "%zu of the device's %zu are free, tensors hold "
                      "%lld", size, available, all,
                      (long long)p->in_use);
}
bool allocate(int device, size_t bytes, void **data)
{
    if (!enter(device))
        return false;
    pool *p = &pools[device];
    const size_t size = rounded(bytes);
    const std::lock_guard guard(p->lock);
    const int own = current.stream[device];
    *data = take_idle(p, own, size);
    if (*data == NULL && !take_new(p, size, data))
        return false;
    p->taken[*data] = { own, 1u << own };
    p->granted++;
    p->in_use += (int64_t)size;
    p->peak = p->in_use > p->peak ? p->in_use : p->peak;
    return true;
}
void release(int device, void *data, size_t bytes)
{
    pool *p = &pools[device];
    const int64_t size = (int64_t)rounded(bytes);
    if (data == NULL || forked || cudaSetDevice(device) != cudaSuccess)
        return;
    const std::lock_guard guard(p->lock);
    const pool::use last = p->taken[data];
    p->taken.erase(data);
    p->in_use -= size;
    if (p->cached + size > p->limit
        || !follow_all(p, last.writer, last.users)) {
        cudaFree(data);
        return;
    }
    p->idle.emplace(pool::place(last.writer, (size_t)size), data);
    p->cached += size;
}

/* kernels: errors of CUDA */
bool checked(const char *what, cudaError_t error)
{
    return error == cudaSuccess
        || host->fail(error == cudaErrorMemoryAllocation
                      ? TD_ERROR_MEMORY : TD_ERROR_RUNTIME, what,
                      "cuda says: %s", cudaGetErrorString(error));
}
int *fault_of(int device)               /* for kernels to write */
{
    return (int *)&pools[device].fault[current.stream[device]];
}

bool synchronise(int device)
{
    if (!enter(device)
        || !checked("synchronise (a kernel that ran before it)",
                    cudaStreamSynchronize(stream_of(device))))
        return false;
    volatile int *fault = fault_of(device);
    const bool good = *fault == 0;
    *fault = 0;
    return good
        || host->fail(TD_ERROR_INDEX, "index", "an index is out of "
                      "range (found on the device, after the fact)");
}
static bool copy(int device, void *to, const void *from, size_t bytes,
                 int kind)
{
    static const cudaMemcpyKind kinds[] = { cudaMemcpyHostToDevice,
        cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
    return enter(device) && (kind == 0 || use(device, from, false))
        && (kind == 1 || use(device, to, true))
        && checked("copy", cudaMemcpyAsync(to, from, bytes, kinds[kind],
                                           stream_of(device)))
        && (kind != 1 || synchronise(device));
}

static bool pin(size_t bytes, void **data)
{
    return enter(0)
        && checked("pin_memory", cudaMallocHost(data, bytes));
}

static void unpin(void *data)
{
    if (!forked)
        cudaFreeHost(data);
}

/* kernels: functions that look after memory */
static void trim(int device)
{
    pool *p = &pools[device];
    const std::lock_guard guard(p->lock);
    if (!forked && !p->idle.empty()
        && cudaSetDevice(device) == cudaSuccess)
        empty(p);
}

static void memory(int device, td_memory_info *info)
{
    pool *p = &pools[device];
    const std::lock_guard guard(p->lock);
    info->bytes = p->in_use;
    info->peak_bytes = p->peak;
    info->cached_bytes = p->cached;
    info->allocations = p->granted;
    info->system_allocations = p->made;
}

/* kernels: functions beside the table */
TD_API bool treadle_cuda_use_stream(int device, int stream)
{
    if (!enter(device))
        return false;
    if (stream < 0 || stream >= STREAMS)
        return host->fail(TD_ERROR_VALUE, "stream", "there is no "
                          "stream %d, only 0 to %d", stream,
                          STREAMS - 1);
    current.stream[device] = stream;
    return true;
}

/* kernels: tasks by name */
static const named_task *const lists[] = {
    /* kernels: tasks of the plug-in */
    copies,
    /* folds: tasks of the plug-in */
    folds, steps,
    /* cuda-gemm: tasks of the plug-in */
    products,
};

bool unsupported(const td_task *task)
{
    return host->fail(TD_ERROR_UNSUPPORTED, task->what, "not "
                      "implemented on device cuda; move the tensors to "
                      "the cpu");
}
static bool compute(const td_task *task)
{
    bool (*run)(const td_task *) = run_elementwise;
    bool ok = enter(task->device);
    for (const named_task *list : lists)
        for (; list->name != NULL; list++)
            if (strcmp(list->name, task->what) == 0)
                run = list->run;
    for (int i = 0; i < task->n_in && ok; i++)
        ok = task->in[i].kind != TD_TENSOR
            || use(task->device, task->in[i].data, false);
    for (int i = 0; i < task->n_out && ok; i++)
        ok = use(task->device, task->out[i].data, true);
    for (int d = 0; d < task->out[0].rank; d++)
        if (task->out[0].shape[d] == 0)
            return ok;
    return ok && run(task) && checked(task->what, cudaGetLastError());
}

/* kernels: function treadle_cuda_init */
static int devices;

static int count(void)
{
    return devices;
}

static void note_fork(void)
{
    forked = devices > 0;
}

TD_API bool treadle_cuda_init(const td_host_api *api,
                                         td_device_table *table)
{
    host = api;
    if (api->version != TD_PLUGIN_VERSION)
        return api->fail(TD_ERROR_RUNTIME, "cuda", "the plug-in speaks "
                         "version %d, the library %d",
                         TD_PLUGIN_VERSION, api->version);
    if (!checked("cuda", cudaGetDeviceCount(&devices)))
        return false;
    devices = devices < DEVICES ? devices : DEVICES;
#ifndef __CUDACC__
    emulator_use(api->parallel_for);
#endif
    pthread_atfork(NULL, NULL, note_fork);
    *table = { TD_PLUGIN_VERSION, "cuda", count, allocate, release,
               copy, synchronise, compute, trim, memory, pin, unpin };
    return devices > 0
        || api->fail(TD_ERROR_UNSUPPORTED, "cuda", "no device found");
}
