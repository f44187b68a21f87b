/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "parallel": edit that, not this file. */
/* Microseconds until a second thread is at work. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <treadle/treadle.h>

enum { ROUNDS = 1001 };

/* memory: function seconds */
static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* parallel: a loop that needs two */
static bool meet(void *arrived, int64_t begin, int64_t end, int worker)
{
    (void)begin, (void)end, (void)worker;
    atomic_fetch_add((atomic_int *)arrived, 1);
    while (atomic_load((atomic_int *)arrived) < 2)
        ;
    return true;
}

/* parallel: ways to get a second thread */
static void *meet_there(void *arrived)
{
    meet(arrived, 0, 1, 1);
    return NULL;
}

static void with_a_new_thread(int unused)
{
    atomic_int arrived = unused;
    pthread_t thread;
    pthread_create(&thread, NULL, meet_there, &arrived);
    meet(&arrived, 0, 1, 0);
    pthread_join(thread, NULL);
}

static void with_pool(int unused)
{
    atomic_int arrived = unused;
    td_parallel_for(2, 1, meet, &arrived);
}

static void with_nobody(int unused)
{
    atomic_int arrived = unused + 1;
    meet(&arrived, 0, 1, 0);
}

static int by_time(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *name, void (*way)(int), long pause)
{
    static double time[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        if (pause > 0)
            nanosleep(&(struct timespec){ 0, pause }, NULL);
        const double begin = seconds();
        way(0);
        time[i] = seconds() - begin;
    }
    qsort(time, ROUNDS, sizeof *time, by_time);
    printf("%s,%.3f\n", name, 1e6 * time[ROUNDS / 2]);
}

int main(void)
{
    td_set_threads(2);
    with_pool(0);
    puts("way,us");
    measure("make one and join it", with_a_new_thread, 0);
    measure("wake one that sleeps", with_pool, 2000000);
    measure("find one that looks", with_pool, 0);
    measure("call a function", with_nobody, 0);
    return td_failed();
}
