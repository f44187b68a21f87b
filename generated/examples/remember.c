/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "memory": edit that, not this file. */
/* The program that forgot, with objects and a scope. */
#include <stdio.h>
#include <stdlib.h>
#include <treadle/treadle.h>
#include "../src/core/memory.h"
#include "../src/core/object.h"

enum { N = 1000 };

/* memory: a vector that is an object */
typedef struct { td_object object; float *data; } vector;

static void vector_destroy(void *object)
{
    td_storage_free(((vector *)object)->data, N * sizeof(float));
}

static const td_class vector_class = { "vector", vector_destroy,
                                       TD_COUNT_OTHERS };

/* memory: function combine that reports */
static vector *combine(vector *x, float factor, vector *y)
{
    vector *z = td_object_new(&vector_class, sizeof *z);
    if (z == NULL)
        return NULL;
    z->data = td_storage_alloc(N * sizeof(float));
    for (int i = 0; z->data != NULL && x != NULL && i < N; i++)
        z->data[i] = factor * x->data[i] + y->data[i];
    return z->data != NULL ? z : NULL;
}

/* memory: function step in a scope */
static vector *step(vector *x)
{
    td_scope_begin();
    return td_scope_end_with(
        combine(combine(x, 0.5f, x), 0.5f, combine(x, 1, x)));
}

int main(int argc, char **argv)
{
    td_memory_fail_after(argc > 1 ? atoi(argv[1]) : -1);
    vector *x = step(NULL);
    for (int i = 0; i < 100000 && x != NULL; i++) {
        vector *next = step(x);
        td_release(x);
        x = next;
    }
    /* memory: report how the steps went */
    td_release(x);
    const td_memory_info memory = td_memory_stats();
    printf("%s\n", td_failed() ? td_error_message() : "done");
    printf("peak %lld bytes, live objects %lld\n",
           (long long)memory.peak_bytes, (long long)memory.live_objects);
    return td_failed();
}
