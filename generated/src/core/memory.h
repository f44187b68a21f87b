/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "memory": edit that, not this file. */
/* All memory of the library passes through here.

   Two kinds: td_alloc gives zeroed memory for the library's own
   records, td_storage_alloc aligned memory for elements, uninitialised
   and counted in td_memory_stats().bytes.  Each returns NULL and leaves
   TD_ERROR_MEMORY pending when there is none.  Who frees says how much
   it was given; freeing NULL does nothing.

       float *x = td_storage_alloc(bytes);
       if (!x)
           return false;
       td_storage_free(x, bytes); */
#pragma once
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <treadle/base.h>

#define TD_ALIGNMENT 64
#define TD_LARGE 65536      /* bytes, and more, begin with a page */

/* memory: enumeration td_counter */
typedef enum {
    TD_COUNT_OTHERS,        /* live objects of no special kind */
    TD_COUNT_TENSORS,
    TD_COUNT_NODES,
    TD_COUNT_BYTES,         /* of elements in use */
    TD_COUNT_GRANTED,       /* allocations since the start */
    TD_COUNT_ASKED,         /* of them from the system */
    TD_COUNT_KEPT,          /* bytes of blocks for the next */
    TD_COUNTS
} td_counter;

/* memory: struct td_block */
typedef struct td_block { struct td_block *next; } td_block;

enum {
    TD_CLASSES = 440,           /* of any size_t that is granted */
    TD_SMALL = 48,              /* classes up to 16 kilobytes */
    TD_POCKET = 1 << 20         /* bytes a thread may keep */
};

/* memory: prototypes of the allocator */
void *td_alloc(size_t bytes);
void *td_alloc_array(size_t n, size_t size);
void *td_alloc_aligned(size_t bytes);
void td_free(void *block, size_t bytes);
void *td_storage_alloc(size_t bytes);
void td_storage_free(void *data, size_t bytes);
#define TD_ARRAY(at, n) td_alloc_array((size_t)(n), sizeof *(at))
#define TD_FREE_ARRAY(at, n) td_free(at, (size_t)(n) * sizeof *(at))
bool td_mul_size(int64_t a, int64_t b, int64_t *out);
bool td_add_size(int64_t a, int64_t b, int64_t *out);
void td_count(td_counter what, int64_t change);
void td_count_bytes(int64_t change);
