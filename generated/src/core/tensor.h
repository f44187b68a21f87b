/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "printing": edit that, not this file. */
/* Inside a tensor, and what kernels use to make and fill one.

       td_tensor *y = td_tensor_new(shape, x->dtype, td_device_of(x));
       if (y == NULL)
           return false;
       float *out = td_at(y); */
#pragma once
#include <math.h>
#include <treadle/tensor.h>
#include "core/object.h"

/* tensors: struct td_storage */
typedef struct td_storage {
    _Alignas(TD_ALIGNMENT)
    atomic_int count;               /* handles that share it */
    atomic_uint version;            /* raised by a change in place */
    td_device device;
    void *data;
    int64_t bytes;
    td_frees *release; /* of memory that is not ours */
    void *context;
    bool hidden;                    /* nobody sees what is in it */
    atomic_bool shown;              /* somebody has its address */
} td_storage;

/* tensors: struct td_tensor */
struct td_tensor {
    td_object object;
    td_storage *storage;
    td_dtype dtype;
    int rank;
    int64_t shape[TD_MAX_RANK];
    int64_t strides[TD_MAX_RANK];   /* in elements */
    int64_t offset;                 /* in elements */
    /* graph: td_tensor fields */
    _Atomic(struct td_node *) node; /* what made it; NULL: a leaf */
    int slot;                       /* which of the node's results it is */
    atomic_bool requires_grad;
    atomic_bool watched;            /* its node keeps a gradient for it */
    _Atomic(struct td_tensor *) grad;   /* so far; NULL: absent */
    _Atomic(struct td_hook_entry *) hooks;  /* of a leaf; or: in the node */
    struct td_sink *sink;           /* a leaf's, while a pass starts */
    /* in-place: td_tensor fields */
    struct td_tensor *base;         /* strong: what it is a view of */
    atomic_uint rebased;            /* of a base: histories so far */
    atomic_uint seen;               /* of a view: base->rebased then */
    atomic_int leaf_views;          /* of a base: leaves that look at it */
    atomic_bool leaf_view;          /* of such a leaf: it is counted */
    bool untracked;                 /* made from a graph, unrecorded */
    atomic_bool quiet;              /* its changes are not counted */
    /* python: td_tensor fields */
    void *companion;                 /* the wrapper of another language */
    td_frees *drop_companion;  /* not null: this handle owns it */
};

#define TD_SHAPE_TEXT 192

static inline void *td_at(const td_tensor *x)
{
    char *data = x->storage->data;
    return data == NULL || x->offset == 0   /* of a trace: NULL */
         ? data : data + x->offset * (int64_t)td_dtype_size(x->dtype);
}
/* tensors: function td_describe */
/* y sees what x sees, without a share of the storage. */
static inline void td_describe(td_tensor *y, const td_tensor *x)
{
    y->storage = x->storage;
    y->dtype = x->dtype;
    y->rank = x->rank;
    y->offset = x->offset;
    memcpy(y->shape, x->shape, sizeof y->shape);
    memcpy(y->strides, x->strides, sizeof y->strides);
}

/* views: function td_look */
static inline td_tensor td_look(const td_tensor *x)
{
    td_tensor y = { .rank = 0 };
    td_describe(&y, x);
    return y;
}

/* printing: prototypes inside of tensors */
/* Between the two, numbers of this thread have a decimal point. */
void *td_locale_begin(void);
td_frees td_locale_end;

/* Text that grows while it is written, the same in every country;
   free() what it was, or have as much copied as there is room for. */
typedef struct {
    FILE *file;
    char *at;
    size_t length;
    void *locale;
} td_text;

bool td_text_begin(td_text *t);
char *td_text_end(td_text *t);
int64_t td_text_copy(td_text *t, char *out, int64_t room);
#define TD_CPU ((td_device){ 0 })
td_tensor *td_tensor_new(td_dims shape, td_dtype dtype,
                         td_device device);
td_tensor *td_tensor_alias(const td_tensor *x);
/* Fresh and contiguous, in the shape of x. */
td_tensor *td_tensor_like(const td_tensor *x, td_dtype dtype);
/* Strides NULL: one element behind the other. */
void td_lay(td_tensor *x, const td_dims *shape, const int64_t *strides);
td_tensor *td_with_options(td_tensor *x, td_tensor_options options);
void td_bump_version(td_tensor *x);
void td_drop_dim(td_tensor *y, int dim);    /* of a td_look */
/* Finds the size that is -1, if x has as many elements as `shape`. */
bool td_infer_size(const td_tensor *x, td_dims *shape);
/* 0 for no type at all, then 1 bool, 2 integers, 3 floats. */
int td_dtype_category(td_dtype dtype);
td_dtype td_scalar_dtype(td_scalar s);      /* of what s.as holds */
bool td_dims_equal(const td_dims *a, const td_dims *b);
td_storage *td_storage_retain(td_storage *s);
void td_storage_release(td_storage *s);     /* NULL is fine */
bool td_wrap_dim(const char *op, int64_t dim, int rank, int *out);
const char *td_dims_text(const td_dims *shape,
                         char text[TD_SHAPE_TEXT]);
const char *td_shape_text(const td_tensor *x, char text[TD_SHAPE_TEXT]);
td_scalar td_element(const td_tensor *x, int64_t at);
void td_store(td_dtype dtype, void *at, td_scalar value);
/* n elements from `src` to `dst`, strides in elements.  The memory must
   not overlap unless the types are equal and both strides 1. */
void td_convert(td_dtype to, void *dst, int64_t dst_stride,
                td_dtype from, const void *src, int64_t src_stride,
                int64_t n);
/* The same with each element `times` times, side by side. */
void td_convert_each(td_dtype to, void *dst, int64_t times,
                     td_dtype from, const void *src, int64_t src_stride,
                     int64_t n);

/* Elements of `in`, broadcast to the shape of `out` and converted.
   Shapes must broadcast, memory must not overlap. */
bool td_copy_elements(td_tensor *out, const td_tensor *in);
td_tensor *td_copied(const td_tensor *x, td_dtype dtype);
td_tensor *td_copied_to(const td_tensor *x, td_dtype dtype,
                        td_device device);
bool td_fill_all(td_tensor *x, td_scalar value);
bool td_check_fits(td_scalar value, td_dtype dtype);

/* Whether no two elements of `x` have one place; fails if two have. */
td_asks td_writes_alone;
