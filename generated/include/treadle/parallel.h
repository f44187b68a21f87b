/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "parallel": edit that, not this file. */
/* Loops that several threads share.

   A body is called with a part [begin, end) of [0, n) and writes only
   what belongs to that part.  It creates no objects.  When bodies fail,
   the error of the lowest part is the loop's, whoever ran it.

       static bool fill(void *x, int64_t begin, int64_t end, int worker)
       {
           (void)worker;
           for (int64_t i = begin; i < end; i++)
               ((float *)x)[i] = 1;
           return true;
       }
       td_parallel_for(n, 4096, fill, x); */
#pragma once
#include <treadle/base.h>

/* parallel: prototypes of parallel loops */
typedef bool td_parallel_body(void *context, int64_t begin, int64_t end,
                              int worker);
TD_API bool td_parallel_for(int64_t n, int64_t grain,
                            td_parallel_body *body, void *context);
typedef bool td_reduce_map(void *context, int64_t begin, int64_t end,
                           void *accumulator);
typedef void td_reduce_combine(void *context, void *into,
                               const void *from);
TD_API bool td_parallel_reduce(int64_t n, int64_t grain, size_t bytes,
                               const void *identity, td_reduce_map *map,
                               td_reduce_combine *combine,
                               void *context, void *result);

/* parallel: prototypes of parallel settings */
typedef enum {
    TD_EXECUTOR_POOL,       /* the library's own threads, the default */
    TD_EXECUTOR_OPENMP,     /* the compiler's, if built with them */
    TD_EXECUTOR_SERIAL      /* the caller alone */
} td_executor;

TD_API bool td_set_executor(td_executor executor);
TD_API td_executor td_get_executor(void);
TD_API bool td_set_threads(int threads);
TD_API int td_threads(void);
TD_API td_acts td_serial_begin;
TD_API td_acts td_serial_end;

/* Whether operators whose results may differ from run to run are
   refused, by name.  No operator is like that: results depend on
   neither the number of threads, nor who runs a loop, nor the order in
   which a device runs its blocks.  So both settings are the same. */
TD_API bool td_set_deterministic(bool deterministic);
TD_API bool td_is_deterministic(void);
