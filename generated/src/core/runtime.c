/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "runtime": edit that, not this file. */
#include "core/runtime.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Thread_local td_thread td_thread_state;
td_runtime td_process_state;

/* runtime: function td_environment_int */
int td_environment_int(const char *name, int low, int high,
                       int otherwise)
{
    const char *text = getenv(name);
    if (text == NULL || *text == '\0')
        return otherwise;
    char *end;
    const long value = strtol(text, &end, 10);
    if (*end == '\0' && value >= low && value <= high)
        return (int)value;
    td_fail(TD_ERROR_VALUE, name,
            "expected a number from %d to %d, got '%s'",
            low, high, text);
    return otherwise;
}

/* runtime: function td_environment_choice */
int td_environment_choice(const char *name, const char *const *words,
                          int otherwise)
{
    const char *text = getenv(name);
    if (text == NULL || *text == '\0')
        return otherwise;
    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(text, words[i]) == 0)
            return i;
    /* runtime: refuse a word nobody knows */
    char known[64] = "";
    size_t used = 0;
    for (int i = 0; words[i] != NULL && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used,
                                 "%s%s", i > 0 ? "|" : "", words[i]);
    td_fail(TD_ERROR_VALUE, name, "expected %s, got '%s'", known, text);
    return otherwise;
}

/* runtime: function leave_thread */
static void leave_thread(void *state)
{
    td_thread *self = state;
    self->enlisted = false;
    /* runtime: release the fields of td_thread */
    td_scope_unwind(self);
    /* parallel: release the fields of td_thread */
    td_scratch_free(&self->scratch);
    /* inspection: release the fields of td_thread */
    td_release(self->stopped);
    self->stopped = NULL;
    struct td_packer *packer = self->packer;
    self->packer = NULL;
    td_release(packer);
    td_account_close(self);
}

/* runtime: functions called around a fork */
static void before_fork(void)
{
    td_runtime *const process = &td_process_state;
    /* backward: take the outer locks for a fork */
    pthread_mutex_lock(&process->leaf_lock);
    /* parallel: take the locks for a fork */
    process->pool.forking = td_self()->looping == 0;
    if (process->pool.forking) {
        pthread_mutex_lock(&process->pool.owner);
        pthread_mutex_lock(&process->pool.lock);
    }
    pthread_mutex_lock(&process->scratch_lock);
    /* graph: take the locks for a fork */
    for (int i = 0; i < TD_HANDLE_LOCKS; i++)
        pthread_mutex_lock(&process->handle_locks[i]);
    /* plugins: take the locks for a fork */
    pthread_mutex_lock(&process->cuda_lock);
    pthread_mutex_lock(&process->memory_lock);
}

static void after_fork(void)
{
    td_runtime *const process = &td_process_state;
    pthread_mutex_unlock(&process->memory_lock);
    /* parallel: give the locks back after a fork */
    if (process->pool.forking) {
        pthread_mutex_unlock(&process->pool.lock);
        pthread_mutex_unlock(&process->pool.owner);
    }
    pthread_mutex_unlock(&process->scratch_lock);
    /* graph: give the locks back after a fork */
    for (int i = 0; i < TD_HANDLE_LOCKS; i++)
        pthread_mutex_unlock(&process->handle_locks[i]);
    /* backward: give the locks back after a fork */
    pthread_mutex_unlock(&process->leaf_lock);
    /* plugins: give the locks back after a fork */
    pthread_mutex_unlock(&process->cuda_lock);
}
static void in_child(void)
{
    td_runtime *const process = &td_process_state;
    after_fork();
    (void)process;
    td_account_forked();
    /* parallel: start afresh in a forked child */
    td_pool_begin(&process->pool);
    process->forked = true;
    if (process->executor == TD_EXECUTOR_OPENMP)
        process->executor = TD_EXECUTOR_POOL;
    for (td_scratch_block *block = process->scratch, *next; block;
         block = next) {
        next = block->next;
        if (block != td_self()->scratch)
            td_scratch_free(&block);
    }
}

/* runtime: function start */
static void start(void)
{
    td_runtime *const process = &td_process_state;
    pthread_key_create(&process->key, leave_thread);
    pthread_atfork(before_fork, after_fork, in_child);
    /* runtime: read the environment */
    #if defined __SANITIZE_ADDRESS__
    const bool watched = true;
    #elif defined __has_feature
    const bool watched = __has_feature(address_sanitizer);
    #else
    const bool watched = false;
    #endif
    static const char *const allocators[] = { "cache", "plain", NULL };
    process->plain = td_environment_choice("TREADLE_ALLOC", allocators,
                                           watched);
    const int64_t pages = sysconf(_SC_PHYS_PAGES);
    const int64_t half = pages > 0 ? pages / 2 * sysconf(_SC_PAGESIZE)
                                   : 1 << 30;
    atomic_store(&process->limit, process->plain ? 0 : half);
    /* parallel: read the environment */
    process->threads = td_environment_int(
        getenv("TREADLE_THREADS") ? "TREADLE_THREADS"
                                  : "TREADLE_NUM_THREADS",
        1, TD_MAX_THREADS, td_processors());
    static const char *const switches[] = { "0", "1", NULL };
    process->deterministic = td_environment_choice("TREADLE_DETERMINISTIC",
                                                   switches, 0) == 1;
    static const char *const executors[]
        = { "pool", "openmp", "serial", NULL };
    process->executor = td_environment_choice("TREADLE_EXECUTOR",
                                              executors, TD_EXECUTOR_POOL);
    if (process->executor == TD_EXECUTOR_OPENMP && !td_openmp_is_built()) {
        process->executor = TD_EXECUTOR_POOL;
        td_fail(TD_ERROR_UNSUPPORTED, "TREADLE_EXECUTOR",
                "this library was built without OpenMP");
    }
    /* memory: start the runtime */
    pthread_mutex_init(&process->memory_lock, NULL);
    /* parallel: start the runtime */
    td_pool_begin(&process->pool);
    pthread_mutex_init(&process->scratch_lock, NULL);
    /* rows: start the runtime */
    process->isa = td_isa_start();
    /* graph: start the runtime */
    for (int i = 0; i < TD_HANDLE_LOCKS; i++)
        pthread_mutex_init(&process->handle_locks[i], NULL);
    /* backward: start the runtime */
    pthread_mutex_init(&process->leaf_lock, NULL);
    /* plugins: start the runtime */
    pthread_mutex_init(&process->cuda_lock, NULL);
    process->running = true;
}

/* runtime: function td_process_start */
void td_process_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start);
}

/* runtime: function td_thread_enlist */
bool td_thread_enlist(void)
{
    td_thread *self = td_self();
    if (!self->enlisted)
        self->enlisted
            = pthread_setspecific(td_process()->key, self) == 0;
    if (self->enlisted && self->account == NULL)
        self->account = td_account_open();
    return self->enlisted;
}

/* runtime: function td_runtime_stop */
__attribute__((destructor)) void td_runtime_stop(void)
{
    td_runtime *const process = &td_process_state;
    if (!atomic_exchange(&process->running, false))
        return;
    /* parallel: stop the runtime */
    td_pool_stop(&process->pool);
    process->pool.stopped = true;
    /* backward: stop the runtime */
    pthread_mutex_destroy(&process->leaf_lock);
    leave_thread(td_self());
    pthread_key_delete(process->key);
}
