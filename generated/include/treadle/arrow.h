/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "arrow": edit that, not this file. */
#pragma once
/* Columns of Arrow's tables as tensors, and tensors as such columns,
   through the Arrow C data and stream interfaces.

       td_tensor *x = td_from_arrow(&array, &schema, -1,
                                    (td_scalar){ 0 }, let_go, &array);

   Such memory is meant to be constant: write into a clone.  Errors:
   TD_ERROR_VALUE for gaps and malformed structures,
   TD_ERROR_UNSUPPORTED for other types. */
#include <treadle/tensor.h>
/* arrow: structures of Arrow */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};
struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};
#endif
#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};
#endif

/* The name of column k >= 0, borrowed; NULL if there is none. */
TD_API const char *td_arrow_name(const struct ArrowSchema *schema,
                                 int64_t k);
/* Column k, or the array itself if k < 0: [rows], or [rows,m,...] of
   lists of fixed size.  Shares the memory; bools, misaligned numbers
   and what may have gaps are copied.  fill: for what is missing, or
   { 0 }: that is an error.  array NULL: no rows.  `release(context)`
   is called once when the array is no longer needed, at once after a
   copy, and not at all if this fails. */
TD_API td_tensor *td_from_arrow(const struct ArrowArray *array,
    const struct ArrowSchema *schema, int64_t k, td_scalar fill,
    td_frees *release, void *context);

/* A table of n columns of equal length or, without names, *columns as
   an array; the caller releases both.  Bools and what is not
   contiguous are copied. */
TD_API bool td_to_arrow(td_tensor *const *columns,
    const char *const *names, int n, struct ArrowArray *array,
    struct ArrowSchema *schema);
/* A stream of that one chunk; takes both over unless it fails. */
TD_API bool td_arrow_stream(struct ArrowArray *array,
    struct ArrowSchema *schema, struct ArrowArrayStream *stream);
