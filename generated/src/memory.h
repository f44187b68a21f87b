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
#ifndef TREADLE_MEMORY_H
#define TREADLE_MEMORY_H
#include <treadle/base.h>

#define TD_ALIGNMENT 64

/* memory: prototypes of the allocator */
void *td_alloc(size_t bytes);
void *td_alloc_array(size_t n, size_t size);
void *td_alloc_aligned(size_t bytes);
void td_free(void *block, size_t bytes);
void *td_storage_alloc(size_t bytes);
void td_storage_free(void *data, size_t bytes);
bool td_mul_size(int64_t a, int64_t b, int64_t *out);
bool td_add_size(int64_t a, int64_t b, int64_t *out);
#endif
