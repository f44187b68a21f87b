/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "parallel": edit that, not this file. */
/* Inside a parallel loop: the job, the executors, scratch memory.

   A job is a loop cut into chunks.  Any number of threads may work on
   it; each claims the lowest chunk nobody has, until none is left.  An
   executor only brings threads to td_job_work.

       float *buffer = td_scratch(1000 * sizeof *buffer);
       if (!buffer)
           return false;
       ... valid until this thread asks again, never freed ... */
#pragma once
#include <pthread.h>
#include <treadle/parallel.h>
#include "core/error.h"
#include "core/memory.h"

#define TD_MAX_THREADS 256

/* parallel: struct td_job */
typedef struct td_job {
    td_parallel_body *body;
    void *context;
    int64_t n;
    int chunks;
    atomic_int next;            /* the lowest chunk not claimed */
    atomic_int failed;          /* the lowest that failed, or chunks */
    pthread_mutex_t lock;       /* guards the next line */
    td_error_record error;
} td_job;

/* parallel: struct td_pool */
typedef struct td_pool {
    pthread_mutex_t owner;      /* held by the thread whose loop runs */
    pthread_mutex_t lock;       /* guards what follows */
    pthread_cond_t wake, done;
    pthread_t thread[TD_MAX_THREADS];
    int started;                /* workers 1 to started exist */
    atomic_int spins;           /* looks before going to sleep */
    td_job *job;                /* open to join, or NULL */
    atomic_int active;          /* workers inside the job */
    atomic_uint calls;          /* jobs so far: a change is a call */
    bool stopping, stopped, forking;
} td_pool;

/* parallel: prototypes of the parallel module */
void td_job_work(td_job *job, int worker);
void td_pool_begin(td_pool *pool);
void td_pool_stop(td_pool *pool);
typedef void td_executes(td_job *job);
td_executes td_pool_run, td_openmp_run;
bool td_openmp_is_built(void);
int td_processors(void);
int td_worker_count(void);
void *td_scratch(size_t bytes);
td_acts td_scratch_leave;
/* parallel: macro that opens a body */
/* Opens `name`, a body whose context is a `type *of`. */
#define TD_BODY(name, type, of)                                       \
    static bool name##_of(type *of, int64_t begin, int64_t end);      \
    static bool name(void *context, int64_t begin, int64_t end,       \
                     int worker)                                      \
    {                                                                 \
        (void)worker;                                                 \
        return name##_of(context, begin, end);                        \
    }                                                                 \
    static bool name##_of(type *of, int64_t begin, int64_t end)
