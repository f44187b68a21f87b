/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "tensors": edit that, not this file. */
#include "core/call.h"
#include "core/device.h"

/* tensors: function find_room */
static size_t room(const td_storage *s)
{
    return (size_t)(s->bytes > 0 ? s->bytes : 1);
}

static bool find_room(td_storage *s)
{
    if (td_self()->symbolic)
        return true;
    const td_device_table *table = td_table_of("tensor", s->device);
    return table != NULL
        && table->allocate(s->device.index, room(s), &s->data);
}

/* tensors: function storage_new */
static size_t with_head(int64_t bytes)
{
    return (size_t)bytes + (bytes < TD_LARGE ? sizeof(td_storage)
                                             : 1024);
}

static td_storage *storage_new(int64_t bytes, td_device device)
{
    const bool host = device.kind == TD_DEVICE_CPU
                   && !td_self()->symbolic;
    td_storage *s = td_alloc_aligned(with_head(host ? bytes : 0));
    if (s == NULL)
        return NULL;
    *s = (td_storage){ .count = 1, .device = device, .bytes = bytes };
    if (host) {
        s->data = (char *)s + with_head(bytes) - bytes;
        td_count_bytes(bytes);
        /* seeing: watch elements being taken */
        if (td_process_state.profile_memory)
            td_event_memory(s, bytes);
    } else if (!find_room(s)) {
        td_free(s, sizeof *s);
        s = NULL;
    }
    return s;
}

/* tensors: function td_storage_release */
td_storage *td_storage_retain(td_storage *s)
{
    atomic_fetch_add(&s->count, 1);
    return s;
}
void td_storage_release(td_storage *s)
{
    if (s == NULL || (s->count > 1
                      && atomic_fetch_sub(&s->count, 1) > 1))
        return;
    int64_t behind = 0;
    if (s->release != NULL)
        td_free_context(s->release, s->context);
    else if (s->data != NULL && s->device.kind == TD_DEVICE_CPU) {
        /* seeing: watch elements being given back */
        if (td_process_state.profile_memory)
            td_event_memory(s, -s->bytes);
        td_count_bytes(-(behind = s->bytes));
    } else if (s->data != NULL)
        td_table_of("release", s->device)->release(s->device.index,
                                                   s->data, room(s));
    td_free(s, with_head(behind));
}

/* tensors: class of tensors */
static void tensor_destroy(void *object)
{
    td_tensor *x = object;
    /* python: ask who knows a dying tensor */
    td_free_context(x->drop_companion, x->companion);
    /* graph: release the fields of td_tensor */
    td_forget_graph(x);
    /* in-place: release the fields of td_tensor */
    td_release(x->base);
    td_storage_release(x->storage);
}

static const td_class tensor_class = {
    "tensor", tensor_destroy, TD_COUNT_TENSORS
};


/* tensors: function td_lay */
void td_lay(td_tensor *x, const td_dims *shape, const int64_t *strides)
{
    x->rank = shape->count;
    memcpy(x->shape, shape->at, sizeof x->shape);
    if (strides != NULL)
        memcpy(x->strides, strides, sizeof x->strides);
    else
        td_dims_strides(shape, x->strides);
}

/* tensors: function fresh */
static td_tensor *fresh(const td_dims *shape, td_dtype dtype,
                        int64_t bytes, td_device device)
{
    td_tensor *x = td_object_new(&tensor_class, sizeof *x);
    if (x == NULL)
        return NULL;
    x->dtype = dtype;
    td_lay(x, shape, NULL);
    x->storage = storage_new(bytes, device);
    if (x->storage != NULL)
        return x;
    td_discard(x);
    return NULL;
}

/* tensors: function is_dtype */
static bool is_dtype(const char *operation, td_dtype dtype)
{
    return td_dtype_size(dtype) > 0
        || td_fail(TD_ERROR_TYPE, operation, "%d is not a dtype",
                   (int)dtype);
}

/* tensors: function td_tensor_new */
td_tensor *td_tensor_new(td_dims shape, td_dtype dtype,
                         td_device device)
{
    int64_t numel, bytes;
    if (!is_dtype("tensor", dtype)
        || !td_dims_numel("tensor", &shape, &numel))
        return NULL;
    /* tensors: count the bytes of the elements */
    if (!td_mul_size(numel, (int64_t)td_dtype_size(dtype), &bytes))
        return td_fail(TD_ERROR_MEMORY, "tensor", "%" PRId64 " elements of "
            "%s are more than memory can hold", numel,
            td_dtype_name(dtype)), NULL;
    return fresh(&shape, dtype, bytes, device);
}

/* tensors: function td_tensor_alias */
td_tensor *td_tensor_alias(const td_tensor *x)
{
    td_tensor *y = td_object_new(&tensor_class, sizeof *y);
    if (y == NULL)
        return NULL;
    td_describe(y, x);
    td_storage_retain(y->storage);
    return y;
}

td_tensor *td_tensor_like(const td_tensor *x, td_dtype dtype)
{
    const td_dims shape = td_shape_of(x);
    return fresh(&shape, dtype,
                 td_numel(x) * (int64_t)td_dtype_size(dtype),
                 x->storage->device);
}

/* tensors: function release_nothing */
static void release_nothing(void *context)
{
    (void)context;
}

/* tensors: function td_from_memory */
td_tensor *td_from_memory(void *data, td_dims shape, td_dims strides,
                          td_tensor_options options,
                          td_frees *release, void *context)
{
    int64_t numel;
    /* tensors: check what can be checked of foreign memory */
    if (!td_dims_numel("from_memory", &shape, &numel)
        || (options.dtype && !is_dtype("from_memory", options.dtype)))
        return NULL;
    if (shape.count != strides.count)
        td_fail(TD_ERROR_VALUE, "from_memory", "%d sizes but %d strides",
                shape.count, strides.count);
    else if (data == NULL && numel > 0)
        td_fail(TD_ERROR_VALUE, "from_memory", "data is NULL");
    else if (options.device.kind != TD_DEVICE_CPU)
        td_fail(TD_ERROR_UNSUPPORTED, "from_memory", "only memory of the "
                "CPU can be shared; move it with to()");
    td_tensor *x = td_object_new(&tensor_class, sizeof *x);
    if (x == NULL)
        return NULL;
    x->storage = td_alloc(sizeof *x->storage);
    if (x->storage == NULL) {
        td_discard(x);
        return NULL;
    }
    /* tensors: describe the memory of another */
    atomic_init(&x->storage->count, 1);
    x->storage->data = data != NULL ? data : x->storage;
    x->storage->release = release_nothing;      /* until all is well */
    x->storage->context = context;
    x->dtype = options.dtype ? options.dtype : td_default_dtype();
    td_lay(x, &shape, strides.at);
    int64_t reach = 1;
    for (int d = 0; d < x->rank; d++)
        reach += (x->shape[d] - 1) * x->strides[d];
    x->storage->bytes = numel > 0
        ? reach * (int64_t)td_dtype_size(x->dtype) : 0;
    if (td_with_options(x, options) == NULL)
        return NULL;
    if (release != NULL)
        x->storage->release = release;
    return x;
}

/* tensors: function td_holds_truths */
bool td_holds_truths(const void *data, int rank, const int64_t *shape,
                     const int64_t *strides)
{
    const unsigned char *at = data;
    bool holds = rank > 0 || *at <= 1;
    for (int64_t i = 0; rank > 0 && holds && i < shape[0]; i++)
        holds = td_holds_truths(at + i * strides[0], rank - 1,
                                shape + 1, strides + 1);
    return holds;
}

/* tensors: function td_is_contiguous */
bool td_is_contiguous(const td_tensor *x)
{
    int64_t step = 1;
    for (int d = x->rank - 1; d >= 0; d--) {
        if (x->shape[d] == 0)
            return true;
        if (x->shape[d] != 1 && x->strides[d] != step)
            step = -1;
        else if (step > 0)
            step *= x->shape[d];
    }
    return step > 0;
}

/* tensors: functions that ask about tensors */
int td_rank(const td_tensor *x) { return x ? x->rank : 0; }
td_dtype td_dtype_of(const td_tensor *x) { return x ? x->dtype : 0; }
int64_t td_offset(const td_tensor *x) { return x ? x->offset : 0; }
const int64_t *td_shape(const td_tensor *x) { return x ? x->shape : 0; }
const int64_t *td_strides(const td_tensor *x)
{
    return x ? x->strides : 0;
}
bool td_has_values(const td_tensor *x)
{
    if (x == NULL || x->storage->data == NULL)
        return false;
    /* tracing: ask a trace whether this may be read */
    if (td_self()->reads != NULL)
        return td_self()->reads(x);
    return true;
}
void *td_data(const td_tensor *x)
{
    if (!td_has_values(x))
        return NULL;
    x->storage->shown = true;
    return td_at(x);
}

td_device td_device_of(const td_tensor *x)
{
    return x ? x->storage->device : TD_CPU;
}
td_dims td_shape_of(const td_tensor *x)
{
    td_dims shape = { td_rank(x), { 0 } };
    for (int d = 0; d < shape.count; d++)
        shape.at[d] = x->shape[d];
    return shape;
}
int64_t td_numel(const td_tensor *x)
{
    int64_t n = x ? 1 : 0;
    for (int d = 0; x && d < x->rank; d++)
        n *= x->shape[d];
    return n;
}
int64_t td_size(const td_tensor *x, int dim)
{
    int d;
    if (x == NULL || !td_wrap_dim("size", dim, x->rank, &d))
        return -1;
    return x->rank > 0 ? x->shape[d] : 1;
}
const char *td_shape_text(const td_tensor *x, char text[TD_SHAPE_TEXT])
{
    const td_dims shape = td_shape_of(x);
    return td_dims_text(&shape, text);
}

void td_bump_version(td_tensor *x)
{
    /* in-place: leave versions as they are */
    if (x->quiet)
        return;
    atomic_fetch_add(&x->storage->version, 1);
}
