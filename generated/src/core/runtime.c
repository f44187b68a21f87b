/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "runtime": edit that, not this file. */
#include "core/runtime.h"
#include <unistd.h>

_Thread_local td_thread *td_thread_place;
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
int td_choose(td_error_code code, const char *name, const char *text,
              const char *words, int otherwise)
{
    const char *word = words;
    for (int i = 0; text != NULL && *word != '\0'; i++) {
        const size_t n = strcspn(word, "|");
        if (n == strlen(text) && memcmp(text, word, n) == 0)
            return i;
        word += n + (word[n] == '|');
    }
    if (text != NULL)
        td_fail(code, name, "expected %s, got '%s'",
                words + (*words == '|'), text);
    return otherwise;
}

int td_environment_choice(const char *name, const char *words,
                          int otherwise)
{
    const char *text = getenv(name);
    return td_choose(TD_ERROR_VALUE, name, text && *text ? text : NULL,
                     words, otherwise);
}

/* runtime: function leave_thread */
static void leave_thread(void *state)
{
    td_thread *self = state;
    const size_t kept = offsetof(td_thread, error);
    /* runtime: release the fields of td_thread */
    td_scope_unwind(self);
    /* parallel: release the fields of td_thread */
    td_scratch_leave();
    /* inspection: release the fields of td_thread */
    td_release(self->first);
    td_release(self->blamed);
    td_release(self->stopped);
    self->stopped = self->first = self->blamed = NULL;
    struct td_packer *packer = self->packer;
    self->packer = NULL;
    td_release(packer);
    td_pocket_empty(self);
    memset((char *)self + kept, 0, sizeof *self - kept);
    td_thread_place = NULL;
    self->taken = false;
}

static void make_key(void)
{
    pthread_key_create(&td_process_state.key, leave_thread);
}

/* runtime: function new_state */
static td_thread *new_state(void)
{
    td_runtime *const process = &td_process_state;
    void *room = NULL;
    if (posix_memalign(&room, TD_ALIGNMENT, sizeof(td_thread)) != 0) {
        fputs("treadle: no memory for the state of a thread\n", stderr);
        abort();
    }
    td_thread *self = memset(room, 0, sizeof *self);
    self->taken = true;
    self->next = process->all_threads;
    while (!atomic_compare_exchange_weak(&process->all_threads,
                                         &self->next, self))
        ;
    return self;
}

/* runtime: function td_thread_begin */
td_thread *td_thread_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    td_thread *self = td_process_state.all_threads;
    pthread_once(&once, make_key);
    while (self != NULL && atomic_exchange(&self->taken, true))
        self = self->next;
    td_thread_place = self != NULL ? self : new_state();
    pthread_setspecific(td_process_state.key, td_thread_place);
    return td_thread_place;
}

/* runtime: functions called around a fork */
static void for_each_lock(int each(pthread_mutex_t *lock))
{
    td_runtime *const process = &td_process_state;
    const bool back = each == pthread_mutex_unlock;
    if (!back) {
        /* backward: outer locks of the process */
        each(&process->leaf_lock);
    }
    /* parallel: locks of the process */
    if (each == pthread_mutex_lock)
        process->pool.forking = td_self()->looping == 0;
    if (process->pool.forking) {
        each(&process->pool.owner);
        each(&process->pool.lock);
    }
    /* graph: locks of the process */
    for (int i = 0; i < TD_HANDLE_LOCKS; i++)
        each(&process->handle_locks[i]);
    /* plugins: locks of the process */
    each(&process->cuda_lock);
    /* seeing: locks of the process */
    each(&process->profile_lock);
    each(&process->memory_lock);
    if (back) {
        /* backward: outer locks of the process */
        each(&process->leaf_lock);
    }
}

static int make_lock(pthread_mutex_t *lock)
{
    return pthread_mutex_init(lock, NULL);
}

static void before_fork(void) { for_each_lock(pthread_mutex_lock); }

static void after_fork(void) { for_each_lock(pthread_mutex_unlock); }

static void in_child(void)
{
    td_runtime *const process = &td_process_state;
    after_fork();
    (void)process;
    /* parallel: start afresh in a forked child */
    td_pool_begin(&process->pool);
    process->forked = true;
    if (process->executor == TD_EXECUTOR_OPENMP)
        process->executor = TD_EXECUTOR_POOL;
    /* seeing: start afresh in a forked child */
    process->profiled = process->profile_memory = false;
    process->print_profile = false;
    process->events = 0;
}

/* runtime: function start */
static void start(void)
{
    td_runtime *const process = &td_process_state;
    pthread_atfork(before_fork, after_fork, in_child);
    for_each_lock(make_lock);
    /* runtime: read the environment */
    #if defined __SANITIZE_ADDRESS__
    const bool watched = true;
    #elif defined __has_feature
    const bool watched = __has_feature(address_sanitizer);
    #else
    const bool watched = false;
    #endif
    process->plain = td_environment_choice("TREADLE_ALLOC", "cache|plain",
                                           watched);
    const int64_t pages = sysconf(_SC_PHYS_PAGES);
    const int64_t half = pages > 0 ? pages / 2 * sysconf(_SC_PAGESIZE)
                                   : 1 << 30;
    process->limit = process->plain ? 0 : half;
    /* parallel: read the environment */
    process->threads = td_environment_int(
        getenv("TREADLE_THREADS") ? "TREADLE_THREADS"
                                  : "TREADLE_NUM_THREADS",
        1, TD_MAX_THREADS, td_processors());
    process->deterministic
        = td_environment_choice("TREADLE_DETERMINISTIC", "0|1", 0);
    process->executor = td_environment_choice("TREADLE_EXECUTOR",
        "pool|openmp|serial", TD_EXECUTOR_POOL);
    if (process->executor == TD_EXECUTOR_OPENMP && !td_openmp_is_built()) {
        process->executor = TD_EXECUTOR_POOL;
        td_fail(TD_ERROR_UNSUPPORTED, "TREADLE_EXECUTOR",
                "this library was built without OpenMP");
    }
    /* seeing: read the environment */
    process->print_profile
        = td_environment_choice("TREADLE_PROFILE", "0|1", 0);
    if (process->print_profile) {
        process->profiles = 1;
        process->profiled = true;
    }
    /* parallel: start the runtime */
    td_pool_begin(&process->pool);
    /* rows: start the runtime */
    process->isa = td_isa_start();
    process->running = true;
}

/* runtime: function td_process_start */
void td_process_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start);
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
    /* seeing: stop the runtime */
    if (process->print_profile)
        td_profile_print(stderr);
    leave_thread(td_self());
    pthread_key_delete(process->key);
}
