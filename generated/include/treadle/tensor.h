/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "printing": edit that, not this file. */
/* Tensors: typed, shaped, strided views of reference-counted storage.

   Every function that returns a tensor returns a new object, which
   belongs to the innermost scope or, with none open, to the caller; it
   returns NULL with an error pending if it fails.  Arguments are
   borrowed.  Views share storage with their argument.

       td_tensor *x = td_arange(td_int(0), td_int(6), td_int(1),
                                (td_tensor_options)TD_DEFAULTS);
       td_tensor *m = td_reshape(x, TD_DIMS(2, 3));
       td_tensor *mt = td_transpose(m, 0, 1);
       char text[200];
       td_repr(mt, text, sizeof text); */
#pragma once
#include <treadle/base.h>

typedef struct td_tensor td_tensor;

/* tensors: enumeration td_dtype */
typedef enum {
    TD_DTYPE_NONE = 0,      /* in an option: the default */
    TD_FLOAT32, TD_FLOAT64, TD_INT64, TD_INT32, TD_UINT8, TD_BOOL,
    TD_FLOAT16, TD_BFLOAT16, TD_INT8, TD_INT16,     /* storage only */
    TD_DTYPE_COUNT
} td_dtype;

/* tensors: struct td_device */
typedef enum { TD_DEVICE_CPU = 0, TD_DEVICE_CUDA } td_device_kind;

typedef struct {
    td_device_kind kind;
    int index;              /* which of several */
} td_device;

/* tensors: struct td_scalar */
typedef enum {
    TD_SCALAR_NONE, TD_SCALAR_BOOL, TD_SCALAR_INT, TD_SCALAR_FLOAT
} td_scalar_kind;

typedef struct {
    td_scalar_kind kind;
    union { bool b; int64_t i; double f; } as;
} td_scalar;

/* tensors: makers of scalars */
static inline td_scalar td_float(double f)
{
    td_scalar s;
    s.kind = TD_SCALAR_FLOAT;
    s.as.f = f;
    return s;
}
static inline td_scalar td_int(int64_t i)
{
    td_scalar s;
    s.kind = TD_SCALAR_INT;
    s.as.i = i;
    return s;
}
static inline td_scalar td_boolean(bool b)
{
    td_scalar s;
    s.kind = TD_SCALAR_BOOL;
    s.as.i = 0;
    s.as.b = b;
    return s;
}
/* tensors: struct td_dims */
#define TD_MAX_RANK 8

typedef struct {
    int count;
    int64_t at[TD_MAX_RANK];
} td_dims;

#define TD_DIMS(...) \
    ((td_dims){ (int)(sizeof((int64_t[]){ __VA_ARGS__ }) \
                      / sizeof(int64_t)), { __VA_ARGS__ } })
#define TD_RANK_0 ((td_dims){ 0, { 0 } })

/* operators: struct td_tensor_options */
typedef struct { bool given; int64_t value; } td_opt_i64;
typedef struct { bool given; double value; } td_opt_f64;
typedef struct { bool given; bool value; } td_opt_bool;
#define td_some(x) { true, (x) }
#ifdef __cplusplus
#define TD_DEFAULTS {}
#else
#define TD_DEFAULTS { 0 }
#endif

typedef struct {
    td_dtype dtype;         /* 0: the default of the operator */
    td_device device;       /* 0: the CPU */
    bool requires_grad;     /* see chapter "graph" */
} td_tensor_options;
#define TD_OF(type) (td_tensor_options){ .dtype = type }

/* printing: prototypes of dtypes */
TD_API const char *td_dtype_name(td_dtype dtype);  /* "float32" */
TD_API size_t td_dtype_size(td_dtype dtype);       /* bytes */
typedef bool td_asks_dtype(td_dtype dtype);
TD_API td_asks_dtype td_dtype_is_floating;
TD_API td_asks_dtype td_dtype_is_integer;
/* or only stores */
TD_API td_asks_dtype td_dtype_computes;
TD_API td_dtype td_dtype_wide(td_dtype dtype);  /* halves: float32 */

/* The type of a result of two dimensioned operands, as in PyTorch. */
TD_API td_dtype td_promote(td_dtype a, td_dtype b);

/* What options with dtype 0 mean: float32 at first.  Only float32 and
   float64 can be set; others are TD_ERROR_TYPE. */
TD_API td_dtype td_default_dtype(void);
TD_API bool td_set_default_dtype(td_dtype dtype);

TD_API double td_scalar_double(td_scalar s);
TD_API int64_t td_scalar_int(td_scalar s);         /* truncates */
TD_API bool td_scalar_fits(td_scalar value, td_dtype dtype);

/* printing: prototypes of tensors */
TD_API int td_rank(const td_tensor *x);
TD_API const int64_t *td_shape(const td_tensor *x);     /* rank sizes */
TD_API const int64_t *td_strides(const td_tensor *x);   /* elements */
TD_API td_dims td_shape_of(const td_tensor *x);
typedef int64_t td_counts(const td_tensor *x);
TD_API td_counts td_numel;
TD_API td_counts td_offset;                   /* elements */
TD_API td_dtype td_dtype_of(const td_tensor *x);
TD_API td_device td_device_of(const td_tensor *x);
typedef bool td_asks(const td_tensor *x);
TD_API td_asks td_is_contiguous;

/* Whether there are elements to look at: not in a symbolic trace. */
TD_API td_asks td_has_values;

/* Address of element 0; borrowed, valid while the tensor lives. */
TD_API void *td_data(const td_tensor *x);

/* Size of one dimension, negative ones from the end; -1 with
   TD_ERROR_INDEX if there is no such dimension. */
TD_API int64_t td_size(const td_tensor *x, int dim);

/* The element of a tensor with one; else TD_ERROR_RUNTIME. */
TD_API td_scalar td_item(const td_tensor *x);
TD_API double td_item_double(const td_tensor *x);
TD_API td_counts td_item_int;

/* Text as PyTorch prints it.  Writes at most capacity bytes with the
   final zero, returns the length of the whole text; buffer may be
   NULL. */
TD_API int64_t td_repr(const td_tensor *x, char *buffer,
                       int64_t capacity);
/* The same, and a new line, to standard output. */
TD_API td_asks td_print;
/* Choices for that text, of the process; -1 in SCI_MODE: as it fits. */
typedef enum {
    TD_PRINT_PRECISION, TD_PRINT_THRESHOLD, TD_PRINT_EDGEITEMS,
    TD_PRINT_LINEWIDTH, TD_PRINT_SCI_MODE, TD_PRINT_OPTIONS
} td_print_choice;
TD_API int64_t td_print_option(td_print_choice which);
TD_API bool td_set_print_option(td_print_choice which, int64_t value);
/* Arithmetic of shapes.  Sizes and strides are in elements; failures
   are TD_ERROR_RUNTIME and name `operation`. */
TD_API bool td_dims_numel(const char *operation, const td_dims *shape,
                          int64_t *numel);
TD_API void td_dims_strides(const td_dims *shape, int64_t *strides);
TD_API void td_unravel(int64_t number, const td_dims *shape,
                       int64_t *index);
TD_API int64_t td_ravel(const int64_t *index, const td_dims *shape,
                        const int64_t *strides);
TD_API bool td_broadcast_dims(const char *operation, const td_dims *a,
                              const td_dims *b, td_dims *out);
TD_API bool td_broadcast_shapes(const char *operation,
                                const td_tensor *a, const td_tensor *b,
                                td_dims *out);

/* printing: prototypes of creation */
typedef td_tensor *td_of_size(td_dims size, td_tensor_options o);
typedef td_tensor *td_shaped_as(td_tensor *x, td_tensor_options o);

/* New row-major tensors of dtype o.dtype or, if that is 0, the default.
   Negative sizes and overflow are TD_ERROR_RUNTIME. */
TD_API td_of_size td_empty;
TD_API td_of_size td_zeros;
TD_API td_of_size td_ones;
/* dtype 0: int64 for an int, bool for a bool, else the default. */
TD_API td_tensor *td_full(td_dims size, td_scalar value,
                          td_tensor_options o);
/* [ceil((end - start) / step)]; dtype 0: int64 if all are ints. */
TD_API td_tensor *td_arange(td_scalar start, td_scalar end,
                            td_scalar step, td_tensor_options o);
TD_API td_tensor *td_linspace(double start, double end, int64_t steps,
                              td_tensor_options o);
TD_API td_tensor *td_eye(int64_t n, td_opt_i64 m, td_tensor_options o);

/* Like x in shape and, unless o.dtype is given, dtype. */
TD_API td_shaped_as td_empty_like;
TD_API td_shaped_as td_zeros_like;
TD_API td_shaped_as td_ones_like;
TD_API td_tensor *td_full_like(td_tensor *x, td_scalar value,
                               td_tensor_options o);

/* Copies row-major elements of the options' dtype from `data`. */
TD_API td_tensor *td_from_data(const void *data, td_dims shape,
                               td_tensor_options o);

/* Is every byte of these bools 0 or 1, as a tensor's are? */
TD_API bool td_holds_truths(const void *data, int rank,
                            const int64_t *shape,
                            const int64_t *strides);

/* Shares `data`; strides in elements.  Bools must hold truths.
   `release(context)` is called once when the last handle goes, and not
   at all if this fails. */
TD_API td_tensor *td_from_memory(void *data, td_dims shape,
                                 td_dims strides, td_tensor_options o,
                                 td_frees *release,
                                 void *context);

typedef struct {
    void *data;
    td_dtype dtype;
    td_dims shape, strides;     /* strides of fewer: row-major */
    int64_t unit;               /* bytes of a stride of 1 */
} td_foreign;

/* Memory of others, shared, or copied: always if copy is true, never
   if it is false, which is TD_ERROR_VALUE where it must; if it must
   when absent.  After a copy it is released at once; as above it is
   not if this fails. */
TD_API td_tensor *td_borrow(const char *op, td_foreign memory,
                            td_opt_bool copy, td_frees *release,
                            void *context);

/* printing: prototypes of views */
typedef td_tensor *td_of_one(td_tensor *x);
typedef td_tensor *td_along(td_tensor *x, int dim);
typedef td_tensor *td_along_two(td_tensor *x, int dim0, int dim1);
typedef td_tensor *td_with_dims(td_tensor *x, td_dims dims);

/* Views: O(1), the storage is shared.  Dimensions may be negative; one
   that does not exist is TD_ERROR_INDEX, a shape that does not fit
   TD_ERROR_RUNTIME. */
TD_API td_along_two td_transpose;
TD_API td_of_one td_t;                  /* rank <= 2 */
TD_API td_with_dims td_permute;
TD_API td_with_dims td_expand;
TD_API td_with_dims td_view;            /* one size may be -1 */
TD_API td_with_dims td_squeeze;         /* {}: all */
TD_API td_along td_unsqueeze;
TD_API td_tensor *td_slice(td_tensor *x, int dim, td_opt_i64 start,
                           td_opt_i64 end, int64_t step); /* step > 0 */
TD_API td_tensor *td_select(td_tensor *x, int dim, int64_t index);

/* Views if strides allow, else copies. */
TD_API td_with_dims td_reshape;
TD_API td_along_two td_flatten;         /* the first and the last */

/* printing: prototypes of copies */
/* x itself, with one more owner, if nothing is to be done. */
TD_API td_of_one td_contiguous;
TD_API td_tensor *td_to(td_tensor *x, td_dtype dtype);

TD_API td_of_one td_clone;
typedef td_tensor *td_of_list(td_tensor *const *x, int n, int dim);
TD_API td_of_list td_cat;
TD_API td_of_list td_stack;

/* In place; return x with one more owner. */
typedef td_tensor *td_of_two(td_tensor *x, td_tensor *y);
typedef td_tensor *td_with_scalar(td_tensor *x, td_scalar s);
typedef td_tensor *td_with_real(td_tensor *x, double value);
TD_API td_of_two td_copy_;
TD_API td_with_scalar td_fill_;
TD_API td_of_one td_zero_;
