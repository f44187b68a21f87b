/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "parallel": edit that, not this file. */
#include "core/runtime.h"
#include <signal.h>

/* parallel: function relax */
enum { SPINS = 20000 };

static inline void relax(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

/* parallel: function td_pool_begin */
void td_pool_begin(td_pool *pool)
{
    pthread_mutex_init(&pool->owner, NULL);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->done, NULL);
    pool->started = 0;
    pool->job = NULL;
    pool->active = 0;
}

/* parallel: function worker_main */
static void *worker_main(void *number)
{
    td_pool *pool = &td_process()->pool;
    const int worker = (int)(intptr_t)number;
    unsigned seen = 0;
    for (;;) {
        /* parallel: wait for the next job */
        for (int i = 0; i < pool->spins && pool->calls == seen; i++)
            relax();
        pthread_mutex_lock(&pool->lock);
        while (pool->calls == seen && !pool->stopping)
            pthread_cond_wait(&pool->wake, &pool->lock);
        const bool stopping = pool->stopping;
        seen = pool->calls;
        /* parallel: join the job if it is open */
        td_job *job = pool->job;
        if (job != NULL && worker < job->chunks)
            pool->active++;
        else
            job = NULL;
        pthread_mutex_unlock(&pool->lock);
        if (stopping)
            return NULL;
        if (job == NULL)
            continue;
        td_job_work(job, worker);
        /* parallel: leave the job, tell who waits */
        pthread_mutex_lock(&pool->lock);
        if (--pool->active == 0)
            pthread_cond_signal(&pool->done);
        pthread_mutex_unlock(&pool->lock);
    }
}

/* parallel: function start_workers */
static void start_workers(td_pool *pool, int wanted)
{
    if (pool->started >= wanted || pool->stopped)
        return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int i = pool->started + 1; i <= wanted && pthread_create(
             &pool->thread[i], NULL, worker_main,
             (void *)(intptr_t)i) == 0; i++)
        pool->started = i;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pool->spins = pool->started < td_processors() ? SPINS : 0;
}

/* parallel: function call_workers */
static void call_workers(td_pool *pool, td_job *job)
{
    pthread_mutex_lock(&pool->lock);
    pool->job = job;
    pool->calls++;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

/* parallel: function await_workers */
static void await_workers(td_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->job = NULL;
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->spins && pool->active > 0; i++)
        relax();
    pthread_mutex_lock(&pool->lock);
    while (pool->active > 0)
        pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

/* parallel: function td_pool_run */
void td_pool_run(td_job *job)
{
    td_pool *pool = &td_process()->pool;
    if (pthread_mutex_trylock(&pool->owner) != 0) {
        td_job_work(job, 0);
        return;
    }
    start_workers(pool, job->chunks - 1);
    call_workers(pool, job);
    td_job_work(job, 0);
    await_workers(pool);
    pthread_mutex_unlock(&pool->owner);
}

/* parallel: function td_pool_stop */
void td_pool_stop(td_pool *pool)
{
    if (td_self()->looping > 0)
        return;
    pthread_mutex_lock(&pool->owner);
    pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 1; i <= pool->started; i++)
        pthread_join(pool->thread[i], NULL);
    pool->started = 0;
    pool->stopping = false;
    pthread_mutex_unlock(&pool->owner);
}
