/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "parallel": edit that, not this file. */
#include "core/parallel.h"

#ifdef _OPENMP
#include <omp.h>

/* parallel: functions that ask OpenMP for threads */
bool td_openmp_is_built(void)
{
    return true;
}

/* parallel: function td_openmp_run */
void td_openmp_run(td_job *job)
{
    #pragma omp parallel num_threads(job->chunks)
    td_job_work(job, omp_get_thread_num());
}

#else

bool td_openmp_is_built(void)
{
    return false;
}

void td_openmp_run(td_job *job)
{
    td_job_work(job, 0);
}

#endif
