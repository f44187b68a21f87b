/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "memory": edit that, not this file. */
/* Nanoseconds for one use of each mechanism of the memory chapter. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <treadle/treadle.h>
#include "../src/core/object.h"

typedef struct link { td_object object; struct link *held; } link_of;

static void destroy(void *x) { td_release(((link_of *)x)->held); }

static const td_class kind = { "link", destroy, TD_COUNT_OTHERS };

/* memory: the stopwatch for memory costs */
/* memory: function seconds */
static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#define MEASURE(name, count, ...)                                    \
    do {                                                             \
        double best = 1e9;                                           \
        for (int run = 0; run < 7; run++) {                          \
            const double begin = seconds();                          \
            for (int i = 0; i < (count); i++) { __VA_ARGS__; }       \
            const double time = seconds() - begin;                   \
            best = time < best ? time : best;                        \
        }                                                            \
        printf("%s,%.2f\n", (name), 1e9 * best / (count));           \
    } while (0)

int main(void)
{
    enum { MANY = 1000000 };
    link_of *x = td_object_new(&kind, sizeof *x), *y;
    void *volatile block;       /* volatile: malloc must happen */
    puts("mechanism,ns");
    MEASURE("error pending?", MANY, if (td_failed()) return 1);
    MEASURE("retain and release", MANY, td_retain(x), td_release(x));
    MEASURE("scope opened and ended", MANY, td_scope_begin(),
            td_scope_end());
    MEASURE("malloc and free", MANY, block = malloc(64), free(block));
    MEASURE("object made and freed", MANY,
            td_release(td_object_new(&kind, sizeof *x)));
    td_scope_begin();
    MEASURE("the same within a scope", MANY,
            td_release(td_object_new(&kind, sizeof *x)));
    td_scope_end();
    MEASURE("object of a long chain", MANY,
            y = td_object_new(&kind, sizeof *y); y->held = x; x = y);
    td_release(x);
    return 0;
}
