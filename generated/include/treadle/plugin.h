/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "devices": edit that, not this file. */
/* What a device plug-in and the library know of each other.

   A plug-in is a shared library that exports one function and imports
   none:

       extern "C" bool treadle_cuda_init(const td_host_api *host,
                                         td_device_table *table);

   It fills the table, or returns false after host->fail(...).  Results
   of a task are allocated and shapes are checked; strides are any, 0
   where an operand is spread, sizes may be 0. */
#pragma once
#include <treadle/op.h>
#include <treadle/parallel.h>

/* devices: struct td_task */
typedef struct {
    td_kind kind;           /* TD_TENSOR, TD_SCALAR or TD_NONE */
    td_dtype dtype;
    int rank;
    void *data;             /* element 0, in the device's memory */
    int64_t shape[TD_MAX_RANK], strides[TD_MAX_RANK];   /* elements */
    td_scalar scalar;
} td_array;

typedef struct {
    const char *what;       /* an operator's name, or "gemm" */
    td_dtype dtype;         /* in which to compute */
    int device;
    int n_in, n_attr, n_out;
    const td_array *in, *out;
    const td_value *attr;
} td_task;

/* devices: struct td_device_table */
typedef struct {
    int version;            /* TD_PLUGIN_VERSION of its build */
    const char *name;       /* for messages: "cuda" */
    int (*count)(void);     /* how many devices there are */
    bool (*allocate)(int device, size_t bytes, void **data);
    void (*release)(int device, void *data, size_t bytes);
    bool (*copy)(int device, void *to, const void *from, size_t bytes,
                 int kind);
    bool (*synchronise)(int device);
    bool (*compute)(const td_task *task);
    void (*trim)(int device);           /* frees what is kept */
    void (*memory)(int device, td_memory_info *info);
    bool (*pin)(size_t bytes, void **data);     /* host memory that */
    td_frees *unpin;                  /* no page leaves */
} td_device_table;

/* devices: struct td_host_api */
#define TD_PLUGIN_VERSION 3

typedef struct {
    int version;
    bool (*fail)(td_error_code code, const char *operation,
                 const char *format, ...);
    bool (*parallel_for)(int64_t n, int64_t grain,
                         td_parallel_body *body, void *context);
    bool plain;             /* TREADLE_ALLOC=plain: keep no memory */
    size_t (*size_of)(td_dtype dtype);
    bool (*is_floating)(td_dtype dtype);
    void (*collapse)(td_dims *shape, int operands,
                     int64_t (*stride)[TD_MAX_RANK]);
} td_host_api;

/* What a plug-in exports, under the name of its device. */
typedef bool td_plugin_init(const td_host_api *host,
                            td_device_table *table);
