/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "parallel": edit that, not this file. */
/* A pool with a queue of tasks, and what a loop inside a loop does. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef struct { void (*run)(int); int number; } task;

enum { ROOM = 64 };
static task queue[ROOM];
static unsigned first, last;
static int unfinished;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;

/* parallel: a worker with a queue of tasks */
static void *work(void *unused)
{
    for (;;) {
        pthread_mutex_lock(&lock);
        while (first == last)
            pthread_cond_wait(&wake, &lock);
        const task mine = queue[first++ % ROOM];
        pthread_mutex_unlock(&lock);
        mine.run(mine.number);
        pthread_mutex_lock(&lock);
        if (--unfinished == 0)
            pthread_cond_broadcast(&done);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

/* parallel: a loop with a queue of tasks */
static void run_all(int tasks, void (*run)(int))
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < tasks; i++)
        queue[last++ % ROOM] = (task){ run, i };
    unfinished += tasks;
    pthread_cond_broadcast(&wake);
    while (unfinished > 0)
        pthread_cond_wait(&done, &lock);
    pthread_mutex_unlock(&lock);
}

static void leaf(int number) { (void)number; }

static void loop_inside(int number)
{
    (void)number;
    run_all(2, leaf);
}

int main(int argc, char **argv)
{
    const int nested = argc > 1 && strcmp(argv[1], "nested") == 0;
    pthread_t thread[2];
    for (int t = 0; t < 2; t++)
        pthread_create(&thread[t], NULL, work, NULL);
    run_all(2, nested ? loop_inside : leaf);
    puts("done");
    return 0;
}
