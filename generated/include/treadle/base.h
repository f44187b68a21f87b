/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "memory": edit that, not this file. */
/* The base of every Treadle program: errors, objects, scopes, memory.

       td_scope_begin();
       ... make and use objects ...
       td_scope_end();
       if (td_failed())
           fprintf(stderr, "%s\n", td_error_message()); */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <inttypes.h>

#ifdef __cplusplus
#define TD_C extern "C"
#else
#define TD_C
#endif
#define TD_API TD_C __attribute__((visibility("default")))
#define TD_PRINTF(text, first) \
    __attribute__((format(printf, text, first)))

/* memory: enumeration td_error_code */
typedef enum {
    TD_OK,                  /* no error is pending */
    TD_ERROR_MEMORY,        /* the system has no memory to give */
    TD_ERROR_VALUE,         /* an argument's value makes no sense */
    TD_ERROR_TYPE,          /* an argument has the wrong type */
    TD_ERROR_INDEX,         /* an index or axis is out of range */
    TD_ERROR_RUNTIME,       /* shapes that do not fit, wrong state */
    TD_ERROR_IO,            /* a file is missing, cut or corrupt */
    TD_ERROR_UNSUPPORTED,   /* right in principle, absent here */
    TD_ERROR_SINGULAR,      /* the mathematics has no answer */
    TD_ERROR_CALLBACK       /* the user's own code failed */
} td_error_code;

/* memory: struct td_memory_info */
typedef struct {
    int64_t live_tensors;   /* tensor handles not yet freed */
    int64_t live_nodes;     /* graph nodes not yet freed */
    int64_t live_objects;   /* all objects: these and the others */
    int64_t bytes;          /* bytes of elements in use now */
    int64_t peak_bytes;     /* most of them at one time */
    int64_t allocations;    /* granted since the start, of all kinds */
    int64_t system_allocations; /* of them not from what is kept */
    int64_t cached_bytes;   /* free, and kept for the next */
} td_memory_info;

/* memory: prototypes of errors */
typedef void td_acts(void);
TD_API bool td_fail(td_error_code code, const char *operation,
                    const char *format, ...) TD_PRINTF(3, 4);
TD_API bool td_failed(void);
TD_API td_error_code td_error(void);
TD_API const char *td_error_message(void);
TD_API const char *td_error_operation(void);
TD_API td_acts td_error_clear;

/* memory: contracts of objects and scopes */
/* Objects (tensors, modules, optimisers, loaders) are counted.  A new
   object belongs to the innermost open scope, or, with none open, to
   the caller, who releases it.  NULL is no object, always allowed. */
/* memory: prototypes of objects */
typedef void *td_takes(void *object);
typedef void td_frees(void *object);
TD_API td_takes td_retain;
TD_API td_frees td_release;

/* Retains an object that may be dying: NULL if its count was zero.
   The caller knows that its memory is still there. */
TD_API td_takes td_retain_alive;

/* end_with hands its result to the next owner and ends the scope; keep
   saves one object of the innermost scope from its end; adopt gives it
   a reference the caller holds; share gives out an existing object as
   if it were new.  Above a barrier the caller owns again. */
/* memory: prototypes of scopes */
TD_API td_acts td_scope_begin;
TD_API td_acts td_scope_end;
TD_API td_takes td_scope_end_with;
TD_API td_takes td_keep;
TD_API td_takes td_adopt;
TD_API td_takes td_share;
TD_API td_acts td_scope_barrier_begin;
TD_API td_acts td_scope_barrier_end;

/* memory: prototypes of memory */
TD_API td_memory_info td_memory_stats(void);
TD_API td_acts td_memory_reset_peak;
TD_API int64_t td_live_node_count(void);
TD_API void td_memory_fail_after(int64_t n);
TD_API td_acts td_memory_trim;      /* gives back all that is kept */
TD_API bool td_memory_set_cache(int64_t bytes);     /* keep so much */
TD_API int64_t td_memory_cache(void);
