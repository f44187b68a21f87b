/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "parallel": edit that, not this file. */
#include "core/runtime.h"
#include <sched.h>
#include <unistd.h>

/* parallel: functions for parallel loops */
/* parallel: function unexplained */
static bool unexplained(void)
{
    return td_fail(TD_ERROR_RUNTIME, "parallel_for",
                   "a loop body failed without saying why");
}

/* parallel: function report_failure */
static void report_failure(td_job *job, int chunk)
{
    td_error_record record;
    unexplained();
    td_error_take(&record);
    pthread_mutex_lock(&job->lock);
    if (chunk < job->failed) {
        job->failed = chunk;
        job->error = record;
    }
    pthread_mutex_unlock(&job->lock);
}

/* parallel: function run_chunk */
static void run_chunk(td_job *job, int chunk, int worker)
{
    const int64_t size = job->n / job->chunks;
    const int64_t extra = job->n % job->chunks;
    const int64_t before = chunk < extra ? chunk : extra;
    const int64_t begin = chunk * size + before;
    const int64_t end = begin + size + (chunk < extra);
    if (!job->body(job->context, begin, end, worker) || td_failed())
        report_failure(job, chunk);
}

/* parallel: function td_job_work */
void td_job_work(td_job *job, int worker)
{
    td_thread *self = td_self();
    self->looping++;
    for (;;) {
        const int chunk = atomic_fetch_add(&job->next, 1);
        if (chunk >= job->chunks)
            break;
        if (chunk < job->failed)
            run_chunk(job, chunk, worker);
    }
    self->looping--;
}

/* parallel: functions for serial scopes */
int td_worker_count(void)
{
    const td_thread *self = td_self();
    td_runtime *process = td_process();
    const bool alone = self->looping > 0 || self->serial > 0
        || process->executor == TD_EXECUTOR_SERIAL;
    return alone ? 1 : process->threads;
}
void td_serial_begin(void)
{
    td_self()->serial++;
}

void td_serial_end(void)
{
    td_thread *self = td_self();
    if (self->serial > 0)
        self->serial--;
    else
        td_fail(TD_ERROR_RUNTIME, "serial_end",
                "no serial scope is open");
}

/* parallel: function chunks_for */
static int chunks_for(int64_t n, int64_t grain)
{
    const int64_t least = grain > 1 ? grain : 1;
    const int64_t most = n / least + (n % least != 0);
    const int threads = td_worker_count();
    return most < threads ? (int)most : threads;
}

/* parallel: function td_parallel_for */
bool td_parallel_for(int64_t n, int64_t grain, td_parallel_body *body,
                     void *context)
{
    if (td_failed() || n <= 0)
        return !td_failed();
    const int chunks = chunks_for(n, grain);
    if (chunks == 1)
        return (body(context, 0, n, 0) && !td_failed())
            || unexplained();
    td_job job = { .body = body, .context = context, .n = n,
                   .chunks = chunks, .failed = chunks,
                   .lock = PTHREAD_MUTEX_INITIALIZER };
    (td_process()->executor == TD_EXECUTOR_OPENMP ? td_openmp_run
                                                  : td_pool_run)(&job);
    pthread_mutex_destroy(&job.lock);
    return job.failed == chunks || td_error_restore(&job.error);
}

/* parallel: struct blocks */
typedef struct {
    int64_t n, grain;
    size_t stride;              /* from one accumulator to the next */
    td_reduce_map *map;
    void *context;
    char *accumulators;
} blocks;

/* parallel: the blocks and their tree */
/* same-bits: exercise same-bits */
static bool map_blocks(void *context, int64_t begin, int64_t end,
                       int worker)
{
    const blocks *b = context;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = i * b->grain;
        const int64_t left = b->n - first;
        if (!b->map(b->context, first,
                    first + (left < b->grain ? left : b->grain),
                    b->accumulators + (size_t)i * b->stride))
            return false;
    }
    return true;
}

static void combine_blocks(const blocks *b, int64_t count,
                           td_reduce_combine *combine)
{
    for (int64_t step = 1; step < count; step *= 2)
        for (int64_t i = 0; i + step < count; i += 2 * step)
            combine(b->context,
                    b->accumulators + (size_t)i * b->stride,
                    b->accumulators + (size_t)(i + step) * b->stride);
}

/* parallel: function td_parallel_reduce */
bool td_parallel_reduce(int64_t n, int64_t grain, size_t bytes,
                        const void *identity, td_reduce_map *map,
                        td_reduce_combine *combine, void *context,
                        void *result)
{
    blocks b = { .n = n > 0 ? n : 0, .grain = grain > 1 ? grain : 1,
                 .stride = (bytes + 15) / 16 * 16, .map = map,
                 .context = context };
    const int64_t count = b.n / b.grain + (b.n % b.grain != 0);
    /* parallel: make room for the accumulators */
    const size_t room = (size_t)(count > 0 ? count : 1);
    b.accumulators = td_alloc_array(room, b.stride);
    if (b.accumulators == NULL)
        return false;
    for (size_t i = 0; i < room; i++)
        memcpy(b.accumulators + i * b.stride, identity, bytes);
    const bool ok = td_parallel_for(count, 1, map_blocks, &b);
    if (ok) {
        combine_blocks(&b, count, combine);
        memcpy(result, b.accumulators, bytes);
    }
    td_free(b.accumulators, room * b.stride);
    return ok;
}

/* parallel: functions for parallel settings */
/* parallel: function is_outside */
static bool is_outside(const char *operation)
{
    return td_self()->looping == 0
        || td_fail(TD_ERROR_RUNTIME, operation,
                   "not possible inside a parallel loop");
}

/* parallel: functions for the executor setting */
bool td_set_executor(td_executor chosen)
{
    const char *name = "set_executor";
    const bool openmp = chosen == TD_EXECUTOR_OPENMP;
    if (td_failed() || !is_outside(name))
        return false;
    if ((int)chosen < TD_EXECUTOR_POOL || chosen > TD_EXECUTOR_SERIAL)
        return td_fail(TD_ERROR_VALUE, name,
                       "%d is not an executor", (int)chosen);
    /* parallel: refuse OpenMP where it cannot run */
    if (openmp && !td_openmp_is_built())
        return td_fail(TD_ERROR_UNSUPPORTED, name,
                       "this library was built without OpenMP");
    if (openmp && td_process()->forked)
        return td_fail(TD_ERROR_UNSUPPORTED, name,
                       "OpenMP does not survive a fork");
    td_process()->executor = (int)chosen;
    return true;
}

td_executor td_get_executor(void)
{
    return (td_executor)td_process()->executor;
}

/* parallel: functions for the thread setting */
bool td_set_threads(int threads)
{
    td_runtime *process = td_process();
    if (td_failed() || !is_outside("set_threads"))
        return false;
    if (threads < 1 || threads > TD_MAX_THREADS)
        return td_fail(TD_ERROR_VALUE, "set_threads",
                       "expected 1 to %d threads, got %d",
                       TD_MAX_THREADS, threads);
    td_pool_stop(&process->pool);
    process->threads = threads;
    return true;
}

int td_threads(void)
{
    return td_process()->threads;
}

/* parallel: functions for the deterministic setting */
bool td_set_deterministic(bool deterministic)
{
    td_process()->deterministic = deterministic;
    return true;
}

bool td_is_deterministic(void)
{
    return td_process()->deterministic;
}

/* parallel: function td_processors */
int td_processors(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
#ifdef CPU_COUNT
    cpu_set_t mine;
    if (sched_getaffinity(0, sizeof mine, &mine) == 0)
        count = CPU_COUNT(&mine);
#endif
    return count < 1 ? 1
        : count > TD_MAX_THREADS ? TD_MAX_THREADS : (int)count;
}

/* parallel: function scratch_free */
static void scratch_free(td_thread *own)
{
    void *block = own->scratch;
    own->scratch = NULL;
    td_free(block, own->scratch_bytes);
}

/* parallel: function td_scratch */
void *td_scratch(size_t wanted)
{
    td_thread *own = td_self();
    size_t bytes = 4096;
    if (own->scratch != NULL && own->scratch_bytes >= wanted)
        return own->scratch;
    while (bytes < wanted && bytes <= SIZE_MAX / 2)
        bytes *= 2;
    scratch_free(own);
    void *block = td_alloc_aligned(bytes < wanted ? SIZE_MAX : bytes);
    own->scratch_bytes = bytes;
    own->scratch = block;
    return block;
}

void td_scratch_leave(void)
{
    scratch_free(td_self());
}
