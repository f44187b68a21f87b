/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "exchange": edit that, not this file. */
#include <treadle/treadle.h>
#include "core/device.h"
/* exchange: structures of DLPack */
typedef struct {
    void *data;
    struct { int32_t kind, index; } device;
    int32_t rank;
    struct { uint8_t code, bits; uint16_t lanes; } type;
    int64_t *shape, *strides;       /* strides NULL: row-major */
    uint64_t byte_offset;
} dl_tensor;
typedef struct {
    dl_tensor tensor;
    void *context;
    void (*deleter)(void *frame);
} dl_old;

typedef struct {
    uint32_t major, minor;
    void *context;
    void (*deleter)(void *frame);
    uint64_t flags;
    dl_tensor tensor;
} dl_new;

enum { DL_CPU = 1, DL_READ_ONLY = 1, DL_COPIED = 2 };
/* exchange: table of DLPack's types */
enum { DL_INT, DL_UINT, DL_FLOAT, DL_BFLOAT = 4, DL_BOOL = 6 };

/* By td_dtype: none, float32 and 64, int64 and 32, uint8, bool,
   float16, bfloat16, int8 and 16. */
static const uint8_t dl_code[] = { 0, DL_FLOAT, DL_FLOAT, DL_INT,
    DL_INT, DL_UINT, DL_BOOL, DL_FLOAT, DL_BFLOAT, DL_INT, DL_INT };

static td_dtype dtype_of_dl(const dl_tensor *t)
{
    for (int i = 1; i < TD_DTYPE_COUNT; i++)
        if (dl_code[i] == t->type.code && t->type.lanes == 1
            && 8 * td_dtype_size((td_dtype)i) == t->type.bits)
            return (td_dtype)i;
    td_fail(TD_ERROR_TYPE, "from_dlpack", "elements of code %d with %d "
            "bits and %d lanes are not supported", t->type.code,
            t->type.bits, t->type.lanes);
    return TD_DTYPE_NONE;
}
/* exchange: struct dl_loan */
typedef struct {
    union { dl_old old; dl_new new; } frame;
    td_tensor *alias;
} dl_loan;

static void end_loan(void *frame)
{
    dl_loan *l = frame;
    td_release(l->alias);
    td_free(l, sizeof *l);
}
/* exchange: function describe_loan */
static dl_tensor describe_loan(td_tensor *x)
{
    return (dl_tensor){ .data = td_numel(x) > 0 ? td_at(x) : NULL,
        .device = { DL_CPU, 0 }, .rank = x->rank,
        .type = { dl_code[x->dtype],
                  (uint8_t)(8 * td_dtype_size(x->dtype)), 1 },
        .shape = x->shape, .strides = x->strides };
}
/* exchange: function td_to_dlpack */
void *td_to_dlpack(td_tensor *x, bool versioned, bool copied)
{
    if (!td_at_home(x)
        || (td_data(x) == NULL && td_numel(x) > 0))
        return td_fail(TD_ERROR_UNSUPPORTED, "to_dlpack", "only memory "
            "of the CPU can be lent; copy the tensor there first"),
            NULL;
    dl_loan *l = td_alloc(sizeof *l);
    if (l == NULL)
        return NULL;
    td_scope_barrier_begin();
    l->alias = td_tensor_alias(x);
    td_scope_barrier_end();
    if (l->alias == NULL)
        return end_loan(l), NULL;
    /* exchange: fill the frame that was asked */
    if (versioned)
        l->frame.new = (dl_new){ .major = 1, .deleter = end_loan,
            .flags = copied ? DL_COPIED : 0,
            .tensor = describe_loan(l->alias) };
    else
        l->frame.old = (dl_old){ .tensor = describe_loan(l->alias),
            .deleter = end_loan };
    return &l->frame;
}
/* exchange: function td_free_dlpack */
#define FREE(version) \
    static void free_##version(void *frame) \
    { \
        const dl_##version *f = frame; \
        if (f->deleter != NULL) \
            f->deleter(frame); \
    }
FREE(old)
FREE(new)

void td_free_dlpack(void *managed, bool versioned)
{
    if (managed != NULL)
        (versioned ? free_new : free_old)(managed);
}
/* exchange: function acceptable */
static bool acceptable(const dl_new *n, const dl_tensor *t)
{
    if (n && n->major != 1)
        return td_fail(TD_ERROR_UNSUPPORTED, "from_dlpack", "version "
            "%u.%u of the protocol, expected 1", n->major, n->minor);
    if (t->device.kind != DL_CPU)
        return td_fail(TD_ERROR_UNSUPPORTED, "from_dlpack", "memory of "
            "device type %d cannot be shared, only that of the CPU",
            t->device.kind);
    return (t->rank >= 0 && t->rank <= TD_MAX_RANK)
        || td_fail(TD_ERROR_VALUE, "from_dlpack", "rank %d, at most %d "
                   "is supported", t->rank, TD_MAX_RANK);
}
/* exchange: function td_from_dlpack */
td_tensor *td_from_dlpack(void *managed, bool versioned,
                          td_opt_bool copy)
{
    const dl_new *n = versioned ? managed : NULL;
    const dl_tensor *t = n ? &n->tensor : &((dl_old *)managed)->tensor;
    if (!acceptable(n, t))
        return NULL;
    td_foreign m = { .data = (char *)t->data + t->byte_offset,
        .dtype = dtype_of_dl(t), .unit = t->type.bits / 8,
        .shape = { .count = t->rank } };
    for (int d = 0; d < t->rank; d++) {
        m.shape.at[d] = t->shape[d];
        if (t->strides)
            m.strides.at[m.strides.count++] = t->strides[d];
    }
    if (n && n->flags & DL_READ_ONLY && !(copy.given && copy.value))
        td_fail(TD_ERROR_VALUE, "from_dlpack", "the memory is "
                "read-only; ask for a copy");
    return td_borrow("from_dlpack", m, copy,
                     versioned ? free_new : free_old, managed);
}
/* exchange: functions on storages */
const void *td_storage_of(const td_tensor *x)
{
    return x->storage;
}

td_tensor *td_storage_bytes(const td_tensor *x)
{
    td_tensor *y = td_tensor_alias(x);
    if (y == NULL)
        return NULL;
    y->dtype = TD_UINT8;
    y->offset = 0;
    td_lay(y, &TD_DIMS(x->storage->bytes), NULL);
    return y;
}
static bool inside(const td_tensor *bytes, size_t size, td_dims shape,
                   td_dims strides, int64_t offset, bool empty)
{
    double last = (double)offset;
    bool good = offset >= 0 && shape.count == strides.count;
    for (int d = 0; d < shape.count; d++) {
        good &= strides.at[d] >= 0;
        last += ((double)shape.at[d] - 1) * (double)strides.at[d];
    }
    return (good && (empty || (last + 1) * (double)size
                     <= (double)bytes->storage->bytes))
        || td_fail(TD_ERROR_VALUE, "storage", "shape and strides at "
            "offset %" PRId64 " leave the %" PRId64 " bytes of the "
            "storage", offset, bytes->storage->bytes);
}

td_tensor *td_over_storage(td_tensor *bytes, td_dtype dtype,
                           td_dims shape, td_dims strides,
                           int64_t offset)
{
    int64_t numel;
    if (!td_dims_numel("storage", &shape, &numel)
        || !inside(bytes, td_dtype_size(dtype), shape, strides, offset,
                   numel == 0))
        return NULL;
    if (dtype == TD_BOOL && td_on_host(bytes) && !td_holds_truths(
            (char *)bytes->storage->data + offset, shape.count,
            shape.at, strides.at))
        return td_fail(TD_ERROR_VALUE, "storage", "bools of other "
                       "bytes than 0 and 1"), NULL;
    td_tensor *y = td_tensor_alias(bytes);
    if (y == NULL)
        return NULL;
    y->dtype = dtype;
    y->offset = offset;
    td_lay(y, &shape, strides.at);
    return y;
}
