/* needs: exchange */
/* Tensors lent and borrowed in C: every field, every refusal, deleters
   called once, and memory that fails at every place in turn. */
#include "treadle_test.h"

/* DLPack's own declarations, version 1.0. */
typedef struct {
    void *data;
    struct { int32_t device_type, device_id; } device;
    int32_t ndim;
    struct { uint8_t code, bits; uint16_t lanes; } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *);
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
    struct { uint32_t major, minor; } version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

static const td_opt_bool as_it_fits = { 0 }, never = { true, false },
                         always = { true, true };

/* ---- lending ------------------------------------------------------------ */

static void a_loan_describes_the_tensor(void **state)
{
    td_tensor *x = td_reshape(td_arange(td_int(0), td_int(24), td_int(1),
        (td_tensor_options){ .dtype = TD_INT32 }), TD_DIMS(4, 6));
    td_tensor *y = td_transpose(td_slice(x, 1, (td_opt_i64)td_some(1),
        (td_opt_i64)TD_DEFAULTS, 2), 0, 1);
    DLManagedTensorVersioned *m = td_to_dlpack(y, true, true);
    assert_true(m->version.major == 1 && m->flags == 2);
    const DLTensor *t = &m->dl_tensor;
    assert_ptr_equal((char *)t->data + t->byte_offset, td_data(y));
    assert_true(t->device.device_type == 1 && t->device.device_id == 0);
    assert_true(t->dtype.code == 0 && t->dtype.bits == 32
                && t->dtype.lanes == 1 && t->ndim == 2);
    assert_true(t->shape[0] == 3 && t->shape[1] == 4);
    assert_true(t->strides[0] == 2 && t->strides[1] == 6);
    m->deleter(m);
    td_free_dlpack(td_to_dlpack(x, false, false), false);
}

static void a_loan_outlives_scope_and_tensor(void **state)
{
    td_scope_begin();
    td_tensor *x = td_full(TD_DIMS(5), td_float(2.5), plain);
    DLManagedTensor *m = td_to_dlpack(x, false, false);
    td_scope_end();
    assert_true(((float *)m->dl_tensor.data)[4] == 2.5f);
    td_tensor *y = td_from_dlpack(m, false, as_it_fits);
    VALUES(td_add(y, y), 5, 5, 5, 5, 5);
}

static void empty_tensors_have_no_address(void **state)
{
    DLManagedTensor *m = td_to_dlpack(td_zeros(TD_DIMS(0, 3), plain), false,
                                      false);
    assert_null(m->dl_tensor.data);
    td_tensor *y = td_from_dlpack(m, false, never);
    assert_true(td_rank(y) == 2 && td_size(y, 1) == 3 && td_numel(y) == 0);
}

/* ---- borrowing ---------------------------------------------------------- */

static int deleted;

static void count_new(DLManagedTensorVersioned *m) { deleted++; }
static void count_old(DLManagedTensor *m) { deleted++; }

static float memory[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 };
static int64_t shape[2] = { 2, 3 }, strides[2] = { 3, 1 };

static DLManagedTensorVersioned foreign(void)
{
    deleted = 0;
    return (DLManagedTensorVersioned){ .version = { 1, 7 },
        .deleter = count_new, .dl_tensor = { .data = memory,
            .device = { 1, 0 }, .ndim = 2, .dtype = { 2, 32, 1 },
            .shape = shape, .byte_offset = 4 } };
}

static void borrowed_memory_is_given_back_once(void **state)
{
    DLManagedTensorVersioned m = foreign();
    td_scope_begin();
    td_tensor *x = td_from_dlpack(&m, true, never);
    td_tensor *row = td_select(x, 0, 1);
    assert_ptr_equal(td_data(x), memory + 1);
    VALUES(x, 1, 2, 3, 4, 5, 6);
    td_keep(row);
    td_scope_end();
    assert_int_equal(deleted, 0);
    VALUES(row, 4, 5, 6);
    td_scope_end();
    assert_int_equal(deleted, 1);
    td_scope_begin();
}

static void a_copy_gives_back_at_once(void **state)
{
    DLManagedTensorVersioned m = foreign();
    m.flags = 1;                        /* read-only */
    td_tensor *x = td_from_dlpack(&m, true, always);
    assert_true(deleted == 1 && td_data(x) != memory + 1);
    VALUES(x, 1, 2, 3, 4, 5, 6);
    DLManagedTensor old = { m.dl_tensor, NULL, count_old };
    old.dl_tensor.strides = (int64_t[]){ -3, 1 };
    old.dl_tensor.byte_offset = 16;
    VALUES(td_from_dlpack(&old, false, as_it_fits), 4, 5, 6, 1, 2, 3);
    assert_int_equal(deleted, 2);
    old.deleter = NULL;
    VALUES(td_from_dlpack(&old, false, always), 4, 5, 6, 1, 2, 3);
}

static void misaligned_elements_are_copied(void **state)
{
    DLManagedTensorVersioned m = foreign();
    char bytes[40];
    memcpy(bytes + 1, memory + 1, 24);
    m.dl_tensor.data = bytes;
    m.dl_tensor.byte_offset = 1;
    m.dl_tensor.strides = strides;
    refused(td_from_dlpack(&m, true, never), TD_ERROR_VALUE, "misaligned");
    assert_int_equal(deleted, 0);
    VALUES(td_from_dlpack(&m, true, as_it_fits), 1, 2, 3, 4, 5, 6);
    assert_int_equal(deleted, 1);
}

static void what_cannot_be_borrowed_is_named(void **state)
{
    DLManagedTensorVersioned good = foreign(), m = good;
    m.version.major = 2;
    refused(td_from_dlpack(&m, true, as_it_fits), TD_ERROR_UNSUPPORTED,
            "from_dlpack: version 2.7");
    m = good, m.flags = 1;
    refused(td_from_dlpack(&m, true, as_it_fits), TD_ERROR_VALUE,
            "read-only");
    m = good, m.dl_tensor.device.device_type = 2;
    refused(td_from_dlpack(&m, true, as_it_fits), TD_ERROR_UNSUPPORTED,
            "device type 2");
    m = good, m.dl_tensor.ndim = 9;
    refused(td_from_dlpack(&m, true, as_it_fits), TD_ERROR_VALUE, "rank 9");
    m = good, m.dl_tensor.ndim = -1;
    refused(td_from_dlpack(&m, true, as_it_fits), TD_ERROR_VALUE, "rank -1");
    m = good, m.dl_tensor.dtype.lanes = 4;
    refused(td_from_dlpack(&m, true, as_it_fits), TD_ERROR_TYPE, "4 lanes");
    m = good, m.dl_tensor.dtype.code = 5;
    refused(td_from_dlpack(&m, true, as_it_fits), TD_ERROR_TYPE, "code 5");
    m = good, m.dl_tensor.shape = (int64_t[]){ 2, -3 };
    refused(td_from_dlpack(&m, true, as_it_fits), TD_ERROR_RUNTIME,
            "from_dlpack");
    m = good, m.dl_tensor.shape = (int64_t[]){ INT64_MAX, 3 };
    refused(td_from_dlpack(&m, true, as_it_fits), TD_ERROR_RUNTIME,
            "from_dlpack");
    assert_int_equal(deleted, 0);
}

/* ---- storages ----------------------------------------------------------- */

static void a_storage_is_the_same_for_all_views(void **state)
{
    td_tensor *x = td_zeros(TD_DIMS(4, 5), plain);
    td_tensor *y = td_select(x, 0, 2), *b = td_storage_bytes(y);
    assert_ptr_equal(td_storage_of(x), td_storage_of(y));
    assert_ptr_equal(td_storage_of(x), td_storage_of(b));
    assert_true(td_numel(b) == 80 && td_dtype_of(b) == TD_UINT8);
    td_tensor *z = td_over_storage(b, TD_FLOAT32, TD_DIMS(2, 2),
                                   TD_DIMS(1, 5), 13);
    td_fill_(z, td_float(1));
    VALUES(td_sum(x, (td_reduce_options)TD_DEFAULTS), 4);
    assert_true(td_offset(z) == 13);
    refused(td_over_storage(b, TD_FLOAT32, TD_DIMS(2, 2), TD_DIMS(1, 5), 14),
            TD_ERROR_VALUE, "storage");
    refused(td_over_storage(b, TD_FLOAT64, TD_DIMS(11), TD_DIMS(1), 0),
            TD_ERROR_VALUE, "80 bytes");
    refused(td_over_storage(b, TD_UINT8, TD_DIMS(2), TD_DIMS(-1), 3),
            TD_ERROR_VALUE, "storage");
}

/* ---- memory that fails -------------------------------------------------- */

static bool exchange(void *context)
{
    td_tensor *x = td_arange(td_int(0), td_int(6), td_int(1), plain);
    for (int versioned = 0; versioned < 2; versioned++) {
        void *lent = x ? td_to_dlpack(x, versioned, false) : NULL;
        if (lent == NULL)
            return false;
        if (td_from_dlpack(lent, versioned, versioned ? always
                                                      : never) == NULL) {
            td_free_dlpack(lent, versioned);
            return false;
        }
    }
    td_tensor *bytes = td_storage_bytes(x);
    return bytes && td_over_storage(bytes, TD_INT32, TD_DIMS(2, 3),
                                    TD_DIMS(1, 2), 0);
}

static void every_allocation_may_fail(void **state)
{
    assert_true(fail_each_allocation(exchange, NULL) > 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_loan_describes_the_tensor),
        CASE(a_loan_outlives_scope_and_tensor),
        CASE(empty_tensors_have_no_address),
        CASE(borrowed_memory_is_given_back_once),
        CASE(a_copy_gives_back_at_once),
        CASE(misaligned_elements_are_copied),
        CASE(what_cannot_be_borrowed_is_named),
        CASE(a_storage_is_the_same_for_all_views),
        CASE(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
