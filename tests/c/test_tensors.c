/* needs: tensors */
/* Types, shapes, views, copies and printing, and how each refuses. */
#include "treadle_test.h"
#include <limits.h>
#include "core/registry.h"

static void expect_repr(const td_tensor *x, const char *expected)
{
    char text[8192];
    const int64_t n = td_repr(x, text, sizeof text);
    assert_string_equal(text, expected);
    assert_int_equal(n, strlen(expected));
}

static void expect_shape(const td_tensor *x, td_dims shape)
{
    const td_dims got = td_shape_of(x);
    char a[TD_SHAPE_TEXT], b[TD_SHAPE_TEXT];
    assert_non_null(x);
    assert_string_equal(td_dims_text(&got, a), td_dims_text(&shape, b));
}

static td_tensor *count_to(int64_t n)
{
    return td_arange(td_int(0), td_int(n), td_int(1), plain);
}

static void promotion_follows_the_table(void **state)
{
    assert_int_equal(td_promote(TD_INT64, TD_FLOAT32), TD_FLOAT32);
    assert_int_equal(td_promote(TD_FLOAT32, TD_FLOAT64), TD_FLOAT64);
    assert_int_equal(td_promote(TD_UINT8, TD_INT8), TD_INT16);
    assert_int_equal(td_promote(TD_UINT8, TD_INT32), TD_INT32);
    assert_int_equal(td_promote(TD_FLOAT16, TD_BFLOAT16), TD_FLOAT32);
    assert_int_equal(td_promote(TD_INT64, TD_FLOAT16), TD_FLOAT16);
    assert_int_equal(td_promote(TD_BOOL, TD_UINT8), TD_UINT8);
    for (int a = 1; a < TD_DTYPE_COUNT; a++)
        for (int b = 1; b < TD_DTYPE_COUNT; b++)
            assert_int_equal(td_promote(a, b), td_promote(b, a));
}

static void casts_out_of_range_are_defined(void **state)
{
    const double in[] = { NAN, INFINITY, -INFINITY, 2.9, -2.9, 1e30, -1e30, 300, -5, 9223372036854775807.0 };
    td_tensor *x = td_from_data(in, TD_DIMS(10), (td_tensor_options){ .dtype = TD_FLOAT64 });
    td_tensor *i = td_to(x, TD_INT64);
    VALUES(td_slice(i, 0, (td_opt_i64)TD_DEFAULTS, (td_opt_i64)td_some(5), 1), 0, (double)INT64_MAX, (double)INT64_MIN, 2, -2);
    assert_true(((int64_t *)td_data(i))[9] == INT64_MAX);
    VALUES(td_to(x, TD_UINT8), 0, 255, 0, 2, 0, 255, 0, 255, 0, 255);
    VALUES(td_to(x, TD_INT8), 0, 127, -128, 2, -2, 127, -128, 127, -5, 127);
    VALUES(td_to(x, TD_BOOL), 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
}

static void halves_round_to_nearest_even(void **state)
{
    /* 65504 is the largest; 65520 rounds to infinity; 2^-24 the smallest; 2^-25 ties to 0 */
    const float in[] = { 1, -2, 65504, 65519, 65520, 0x1p-24f, 0x1p-25f, 0x1.8p-25f, 1.00048828125f,
                         1.00146484375f, 0x1p-14f, -0.0f, INFINITY };
    td_tensor *x = td_from_data(in, TD_DIMS(13), plain);
    VALUES(td_to(td_to(x, TD_FLOAT16), TD_FLOAT32), 1, -2, 65504, 65504, INFINITY, 0x1p-24, 0, 0x1p-24, 1,
           1.001953125, 0x1p-14, 0, INFINITY);
    assert_true(signbit(((float *)td_data(td_to(td_to(x, TD_FLOAT16), TD_FLOAT32)))[11]));
    for (uint32_t h = 0; h < 65536; h++) {
        const uint16_t bits = (uint16_t)h;
        float single;
        uint16_t back;
        td_convert(TD_FLOAT32, &single, 1, TD_FLOAT16, &bits, 1, 1);
        td_convert(TD_FLOAT16, &back, 1, TD_FLOAT32, &single, 1, 1);
        assert_true(back == bits || isnan(single));
        td_convert(TD_FLOAT32, &single, 1, TD_BFLOAT16, &bits, 1, 1);
        td_convert(TD_BFLOAT16, &back, 1, TD_FLOAT32, &single, 1, 1);
        assert_true(back == bits || isnan(single));
    }
}

static void every_type_converts_into_every_other(void **state)
{
    for (int from = 1; from < TD_DTYPE_COUNT; from++)
        for (int to = 1; to < TD_DTYPE_COUNT; to++) {
            td_tensor *x = td_to(td_to(count_to(7), from), to);
            for (int i = 0; i < 7; i++) {
                const bool narrow = from == TD_BOOL || to == TD_BOOL;
                assert_true(at(x, i) == (narrow ? i > 0 : i));
            }
            td_tensor *y = td_to(td_t(td_reshape(td_to(count_to(6), from), TD_DIMS(2, 3))), to);
            assert_true(at(y, 5) == (from == TD_BOOL || to == TD_BOOL ? 1 : 5));
        }
}

static void creation_fills(void **state)
{
    VALUES(td_zeros(TD_DIMS(2, 2), plain), 0, 0, 0, 0);
    VALUES(td_ones(TD_DIMS(3), (td_tensor_options){ .dtype = TD_BOOL }), 1, 1, 1);
    assert_int_equal(td_dtype_of(td_full(TD_DIMS(2), td_int(7), plain)), TD_INT64);
    assert_int_equal(td_dtype_of(td_full(TD_DIMS(2), td_boolean(true), plain)), TD_BOOL);
    VALUES(td_full(TD_RANK_0, td_float(2.5), plain), 2.5);
    VALUES(td_full_like(count_to(3), td_float(2.5), plain), 2, 2, 2);
    VALUES(td_arange(td_int(5), td_int(-2), td_int(-3), plain), 5, 2, -1);
    VALUES(td_arange(td_float(0), td_float(1), td_float(0.25), plain), 0, 0.25, 0.5, 0.75);
    assert_int_equal(td_numel(td_arange(td_int(3), td_int(3), td_int(1), plain)), 0);
    VALUES(td_linspace(0, 1, 5, plain), 0, 0.25, 0.5, 0.75, 1);
    VALUES(td_linspace(3, 9, 1, plain), 3);
    VALUES(td_arange(td_float(0), td_int(1), td_float(0.5), TD_OF(TD_INT32)), 0, 0);
    VALUES(td_eye(2, (td_opt_i64)td_some(3), plain), 1, 0, 0, 0, 1, 0);
    td_tensor *full = td_full(TD_DIMS(1), td_int(INT64_MAX - 1), plain);
    assert_true(td_item_int(full) == INT64_MAX - 1);
}

static void creation_refuses(void **state)
{
    refused(td_zeros(TD_DIMS(2, -1), plain), TD_ERROR_RUNTIME, "size -1 of dimension 1 is negative");
    refused(td_zeros(TD_DIMS(INT64_MAX, 0, INT64_MAX), plain),
            TD_ERROR_RUNTIME, "more elements than an int64 can count");
    refused(td_zeros(TD_DIMS(INT64_MAX / 2), plain), TD_ERROR_MEMORY, "float32");
    refused(td_arange(td_int(0), td_int(3), td_int(0), plain), TD_ERROR_RUNTIME, "step 0");
    refused(td_arange(td_int(0), td_int(3), td_int(-1), plain), TD_ERROR_RUNTIME, "leads away");
    refused(td_arange(td_float(0.7), td_int(1), td_int(-1), plain), TD_ERROR_RUNTIME, "leads away");
    refused(td_arange(td_float(0), td_float(NAN), td_int(1), plain), TD_ERROR_RUNTIME, "finite");
    refused(td_linspace(0, 1, -1, plain), TD_ERROR_RUNTIME, "negative");
    refused(td_zeros(TD_DIMS(2), (td_tensor_options){ .device = { TD_DEVICE_CUDA, 0 } }),
            TD_ERROR_UNSUPPORTED, "device");
    refused(td_set_default_dtype(TD_INT64), TD_ERROR_TYPE, "int64");
    refused(td_from_data(NULL, TD_DIMS(2), plain), TD_ERROR_VALUE, "data is NULL");
}

static int released;
static void release(void *context)
{
    released += *(int *)context;
}

static void memory_of_another_is_released_once(void **state)
{
    static float data[6] = { 0, 1, 2, 3, 4, 5 };
    static int one = 1;
    released = 0;
    td_scope_begin();
    td_tensor *x = td_from_memory(data, TD_DIMS(3, 2), TD_DIMS(1, 3), plain, release, &one);
    VALUES(x, 0, 3, 1, 4, 2, 5);
    td_tensor *row = td_select(x, 0, 1);
    td_fill_(row, td_int(9));
    assert_true(data[1] == 9 && data[4] == 9);
    td_keep(row);
    td_scope_end();
    assert_int_equal(released, 0);
    td_scope_begin();
    td_scope_end();
    refused(td_from_memory(data, TD_DIMS(2), TD_DIMS(1, 1), plain, release, &one),
            TD_ERROR_VALUE, "1 sizes but 2 strides");
    refused(td_from_memory(NULL, TD_DIMS(2), TD_DIMS(1), plain, release, &one), TD_ERROR_VALUE, "NULL");
    assert_int_equal(released, 0);
}

static void views_share_and_describe(void **state)
{
    td_tensor *x = td_reshape(count_to(24), TD_DIMS(2, 3, -1));
    expect_shape(x, TD_DIMS(2, 3, 4));
    td_tensor *y = td_permute(x, TD_DIMS(-1, 0, 1));
    expect_shape(y, TD_DIMS(4, 2, 3));
    assert_true(at(y, 1) == 4 && at(y, 3) == 12 && at(y, 6) == 1);
    assert_false(td_is_contiguous(y));
    assert_ptr_equal(y->storage, x->storage);
    td_tensor *s = td_slice(x, 2, (td_opt_i64)td_some(-3), (td_opt_i64)td_some(100), 2);
    expect_shape(s, TD_DIMS(2, 3, 2));
    assert_true(at(s, 0) == 1 && at(s, 1) == 3 && at(s, 2) == 5);
    expect_shape(td_slice(x, 0, (td_opt_i64)td_some(5), (td_opt_i64)TD_DEFAULTS, 1), TD_DIMS(0, 3, 4));
    expect_shape(td_slice(x, 0, (td_opt_i64)TD_DEFAULTS, (td_opt_i64)TD_DEFAULTS, INT64_MAX), TD_DIMS(1, 3, 4));
    expect_shape(td_select(x, 1, -1), TD_DIMS(2, 4));
    VALUES(td_select(td_select(x, 0, 1), 0, -1), 20, 21, 22, 23);
    expect_shape(td_unsqueeze(x, -1), TD_DIMS(2, 3, 4, 1));
    expect_shape(td_unsqueeze(x, 0), TD_DIMS(1, 2, 3, 4));
    expect_shape(td_squeeze(td_unsqueeze(td_unsqueeze(x, 0), 2), TD_RANK_0), TD_DIMS(2, 3, 4));
    expect_shape(td_squeeze(td_unsqueeze(td_unsqueeze(x, 0), 2), TD_DIMS(2, 1)), TD_DIMS(1, 2, 3, 4));
    expect_shape(td_flatten(x, 1, -1), TD_DIMS(2, 12));
    expect_shape(td_flatten(td_full(TD_RANK_0, td_int(1), plain), 0, -1), TD_DIMS(1));
    td_tensor *e = td_expand(td_reshape(count_to(3), TD_DIMS(3, 1)), TD_DIMS(2, -1, 4));
    expect_shape(e, TD_DIMS(2, 3, 4));
    assert_true(at(e, 0) == 0 && at(e, 11) == 2 && at(e, 12) == 0 && at(e, 4) == 1);
    expect_shape(td_t(td_reshape(count_to(6), TD_DIMS(2, 3))), TD_DIMS(3, 2));
}

static void views_refuse(void **state)
{
    td_tensor *x = td_reshape(count_to(6), TD_DIMS(2, 3));
    refused(td_transpose(x, 0, 2), TD_ERROR_INDEX, "range of [-2, 1], but got 2");
    refused(td_permute(x, TD_DIMS(0, 0)), TD_ERROR_RUNTIME, "dimension 0 is named twice; got [2, 3]");
    refused(td_permute(x, TD_DIMS(0)), TD_ERROR_RUNTIME, "1 dimensions were given, expected all; got [2, 3]");
    refused(td_permute(x, TD_DIMS(0, 5)), TD_ERROR_INDEX, "range");
    refused(td_reshape(x, TD_DIMS(4, 2)), TD_ERROR_RUNTIME, "shape [4, 2] is invalid for input of shape [2, 3]");
    refused(td_reshape(x, TD_DIMS(-1, -1)), TD_ERROR_RUNTIME, "only one dimension can be inferred");
    refused(td_reshape(x, TD_DIMS(-1, 4)), TD_ERROR_RUNTIME, "invalid");
    refused(td_reshape(x, TD_DIMS(-2, 3)), TD_ERROR_RUNTIME, "invalid");
    refused(td_reshape(td_zeros(TD_DIMS(0), plain), TD_DIMS(-1, 0)), TD_ERROR_RUNTIME, "invalid");
    refused(td_view(td_t(x), TD_DIMS(6)), TD_ERROR_RUNTIME, "use reshape");
    refused(td_expand(x, TD_DIMS(2, 4)), TD_ERROR_RUNTIME, "size 3 of dimension 1 cannot be expanded to 4");
    refused(td_expand(x, TD_DIMS(3)), TD_ERROR_RUNTIME, "too few");
    refused(td_expand(x, TD_DIMS(-1, 2, 3)), TD_ERROR_RUNTIME, "expanded");
    refused(td_slice(x, 0, (td_opt_i64)TD_DEFAULTS, (td_opt_i64)TD_DEFAULTS, 0), TD_ERROR_VALUE, "greater than zero");
    refused(td_select(x, 1, 3), TD_ERROR_INDEX, "index 3 is out of bounds for dimension 1 with size 3");
    refused(td_select(td_full(TD_RANK_0, td_int(1), plain), 0, 0), TD_ERROR_INDEX, "rank 0");
    refused(td_t(td_zeros(TD_DIMS(1, 1, 1), plain)), TD_ERROR_RUNTIME, "at most 2");
    refused(td_unsqueeze(x, 3), TD_ERROR_INDEX, "[-3, 2]");
    refused(td_unsqueeze(td_zeros(TD_DIMS(1, 1, 1, 1, 1, 1, 1, 1), plain), 0), TD_ERROR_RUNTIME, "at most 8");
    refused(td_flatten(x, 1, 0), TD_ERROR_RUNTIME, "comes after");
    refused(td_transpose(NULL, 0, 1), TD_ERROR_VALUE, "transpose: argument 'input' is NULL");
    td_dims nine = { 9, { 1 } };
    refused(td_reshape(x, nine), TD_ERROR_VALUE, "at most 8");
}

/* Every shape into which the elements fit, against a copy made by indices. */
static void reshape_equals_counting(void **state)
{
    td_tensor *x = td_reshape(count_to(60), TD_DIMS(3, 4, 5));
    td_tensor *views[] = { x, td_permute(x, TD_DIMS(2, 0, 1)), td_transpose(x, 0, 1),
        td_slice(td_reshape(count_to(120), TD_DIMS(3, 8, 5)), 1, (td_opt_i64)TD_DEFAULTS, (td_opt_i64)TD_DEFAULTS, 2),
        td_expand(td_reshape(count_to(12), TD_DIMS(3, 4, 1)), TD_DIMS(3, 4, 5)) };
    const td_dims shapes[] = { TD_DIMS(60), TD_DIMS(12, 5), TD_DIMS(3, 20), TD_DIMS(1, 60, 1), TD_DIMS(2, 2, 3, 5),
                               TD_DIMS(5, 12), TD_DIMS(3, 2, 1, 2, 5), TD_DIMS(6, 10), TD_DIMS(3, 4, 5) };
    for (size_t v = 0; v < sizeof views / sizeof *views; v++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            td_tensor *y = td_reshape(views[v], shapes[s]);
            expect_shape(y, shapes[s]);
            for (int i = 0; i < 60; i++)
                if (at(y, i) != at(views[v], i))
                    fail_msg("view %zu, shape %zu, element %d", v, s, i);
        }
}

static void copies_of_large_strided_tensors_are_right(void **state)
{
    td_tensor *x = td_reshape(count_to(211 * 307 * 3), TD_DIMS(3, 211, 307));
    td_tensor *y = td_permute(x, TD_DIMS(2, 1, 0)), *z;
    for (int threads = 1; threads <= 3; threads++) {
        td_set_threads(threads);
        z = td_contiguous(y);
        assert_true(td_is_contiguous(z));
        for (int64_t i = 0; i < td_numel(y); i++)
            assert_true(((int64_t *)td_data(z))[i] == (i % 3) * 211 * 307 + i / 3 % 211 * 307 + i / 633);
        td_tensor *w = td_to(td_transpose(x, 1, 2), TD_FLOAT64);
        assert_true(at(w, 12345) == at(td_transpose(x, 1, 2), 12345));
    }
    assert_ptr_equal(td_contiguous(z), z);
    assert_ptr_not_equal(td_clone(z), z);
}

static void joins_and_stacks(void **state)
{
    td_tensor *a = td_reshape(count_to(6), TD_DIMS(2, 3)), *b = td_t(td_reshape(count_to(6), TD_DIMS(3, 2)));
    td_tensor *pair[] = { a, b };
    VALUES(td_cat(pair, 2, 0), 0, 1, 2, 3, 4, 5, 0, 2, 4, 1, 3, 5);
    VALUES(td_cat(pair, 2, -1), 0, 1, 2, 0, 2, 4, 3, 4, 5, 1, 3, 5);
    VALUES(td_stack(pair, 2, -1), 0, 0, 1, 2, 2, 4, 3, 1, 4, 3, 5, 5);
    expect_shape(td_stack(pair, 2, 1), TD_DIMS(2, 2, 3));
    td_tensor *mixed[] = { a, td_ones(TD_DIMS(1, 3), plain) };
    assert_int_equal(td_dtype_of(td_cat(mixed, 2, 0)), TD_FLOAT32);
    refused(td_stack(mixed, 2, 0), TD_ERROR_RUNTIME, "tensor 1 has shape [1, 3]");
    refused(td_cat(mixed, 2, 1), TD_ERROR_RUNTIME, "expected [2, 3] as the first but for dimension 1");
    refused(td_cat(mixed, 0, 0), TD_ERROR_RUNTIME, "non-empty");
    td_tensor *holes[] = { a, NULL };
    refused(td_cat(holes, 2, 0), TD_ERROR_VALUE, "NULL");
}

static void filling_copying_zeroing(void **state)
{
    td_tensor *x = td_zeros(TD_DIMS(2, 3), plain);
    const unsigned before = atomic_load(&x->storage->version);
    td_fill_(td_select(x, 1, 1), td_float(0.5));
    VALUES(x, 0, 0.5, 0, 0, 0.5, 0);
    assert_ptr_equal(td_copy_(x, count_to(3)), x);
    VALUES(x, 0, 1, 2, 0, 1, 2);
    td_tensor *v = td_flatten(x, 0, -1);
    td_copy_(td_slice(v, 0, (td_opt_i64)td_some(1), (td_opt_i64)TD_DEFAULTS, 1),
             td_slice(v, 0, (td_opt_i64)TD_DEFAULTS, (td_opt_i64)td_some(5), 1));
    VALUES(x, 0, 0, 1, 2, 0, 1);
    td_zero_(td_t(x));
    VALUES(x, 0, 0, 0, 0, 0, 0);
    assert_int_equal(atomic_load(&x->storage->version), before + 4);
    refused(td_copy_(x, count_to(4)), TD_ERROR_RUNTIME, "[4]");
    refused(td_copy_(x, td_zeros(TD_DIMS(1, 2, 3), plain)), TD_ERROR_RUNTIME, "copied into the first; got [2, 3] and [1, 2, 3]");
    refused(td_copy_(td_expand(count_to(1), TD_DIMS(3)), count_to(3)), TD_ERROR_RUNTIME, "expanded");
    td_fill_(td_expand(td_select(td_view(x, TD_DIMS(2, 1, 3)), 0, 1), TD_DIMS(5, 3)), td_int(7));
    VALUES(x, 0, 0, 0, 7, 7, 7);
}

static void printing_looks_like_pytorch(void **state)
{
    expect_repr(td_reshape(count_to(6), TD_DIMS(2, 3)), "tensor([[0, 1, 2],\n        [3, 4, 5]])");
    const float f[] = { 1.5f, -2.25f, 100, 0 };
    expect_repr(td_from_data(f, TD_DIMS(4), plain), "tensor([  1.5000,  -2.2500, 100.0000,   0.0000])");
    expect_repr(td_from_data(f, TD_DIMS(2, 2), plain),
                "tensor([[  1.5000,  -2.2500],\n        [100.0000,   0.0000]])");
    const float g[] = { 1, 2, INFINITY, NAN };
    expect_repr(td_from_data(g, TD_DIMS(4), plain), "tensor([1., 2., inf, nan])");
    const float h[] = { 1e-5f, 1 };
    expect_repr(td_from_data(h, TD_DIMS(2), plain), "tensor([1.0000e-05, 1.0000e+00])");
    expect_repr(td_full(TD_RANK_0, td_float(2.5), plain), "tensor(2.5000)");
    expect_repr(td_ones(TD_DIMS(2), (td_tensor_options){ .dtype = TD_BOOL }), "tensor([True, True])");
    expect_repr(td_zeros(TD_DIMS(2), (td_tensor_options){ .dtype = TD_FLOAT64 }), "tensor([0., 0.], dtype=float64)");
    expect_repr(td_zeros(TD_DIMS(0), plain), "tensor([])");
    expect_repr(td_zeros(TD_DIMS(2, 0), plain), "tensor([], size=(2, 0))");
    expect_repr(td_zeros(TD_DIMS(2, 2, 1), plain),
                "tensor([[[0.],\n         [0.]],\n\n        [[0.],\n         [0.]]])");
    expect_repr(count_to(1001), "tensor([   0,    1,    2,  ...,  998,  999, 1000])");
    expect_repr(td_full(TD_DIMS(2, 10), td_float(-0.5), plain),
                "tensor([[-0.5000, -0.5000, -0.5000, -0.5000, -0.5000, -0.5000, -0.5000, -0.5000,\n"
                "         -0.5000, -0.5000],\n"
                "        [-0.5000, -0.5000, -0.5000, -0.5000, -0.5000, -0.5000, -0.5000, -0.5000,\n"
                "         -0.5000, -0.5000]])");
    expect_repr(td_full(TD_DIMS(1001), td_float(1e-5), plain),
                "tensor([1.0000e-05, 1.0000e-05, 1.0000e-05,  ..., 1.0000e-05, 1.0000e-05,\n"
                "        1.0000e-05])");
    td_tensor *hidden = td_ones(TD_DIMS(1001), (td_tensor_options)TD_DEFAULTS);
    td_fill_(td_select(hidden, 0, 500), td_float(1e9));
    expect_repr(hidden, "tensor([1., 1., 1.,  ..., 1., 1., 1.])");
    expect_repr(td_t(td_reshape(count_to(6), TD_DIMS(2, 3))), "tensor([[0, 3],\n        [1, 4],\n        [2, 5]])");
    char small[5] = "xxxx";
    assert_int_equal(td_repr(count_to(3), small, 5), 17);
    assert_string_equal(small, "tens");
    expect_repr(NULL, "NULL");
}

static void item_reads_one(void **state)
{
    assert_true(td_item_double(td_full(TD_DIMS(1, 1), td_float(0.5), plain)) == 0.5);
    td_item(count_to(2));
    expect_error(TD_ERROR_RUNTIME, "2 elements");
    td_item(NULL);
    expect_error(TD_ERROR_VALUE, "NULL");
}

static void every_row_is_well_formed(void **state)
{
    assert_true(td_op_count() > 20);
    for (int n = 0; n < td_op_count(); n++) {
        const td_op *op = td_op_at(n);
        td_signature s;
        if (!td_signature_parse(td_op_signature(op), &s))
            fail_msg("signature of %s: %s", td_op_name(op), td_op_signature(op));
        assert_string_equal(s.name, td_op_name(op));
        assert_ptr_equal(td_op_find(s.name), op);
        if (strlen(td_op_documentation(op)) < 10)
            fail_msg("%s has no documentation", s.name);
    }
    assert_null(td_op_find("no such operator"));
    assert_null(td_op_at(-1));
    td_signature s;
    assert_true(td_signature_parse("f(tensor[] a, int[]? dim=None, *, float p=0.5) -> tensor, tensor", &s));
    assert_true(s.at[0].list && s.at[0].is_input && s.at[1].optional && s.at[1].list && !s.at[1].keyword_only);
    assert_true(s.at[2].keyword_only && s.at[2].has_default && s.n_results == 2);
    assert_string_equal(s.at[2].default_text, "0.5");
    const char *bad[] = { "", "f", "f(", "f(x y)", "f(tensor)", "f(tensor a) ->  int", "f(tensor a=) -> tensor" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(td_signature_parse(bad[i], &s));
}

static bool views_and_copies(void *context)
{
    td_tensor *a = td_reshape(count_to(6), TD_DIMS(2, 3));
    td_tensor *list[] = { a, td_contiguous(td_t(td_reshape(td_to(a, TD_FLOAT32), TD_DIMS(3, 2)))) };
    return td_select(td_stack(list, 2, 0), 0, 1) && td_copy_(td_select(a, 0, 0), td_select(a, 0, 1));
}

static void allocation_failures_leave_nothing(void **state)
{
    assert_in_range(fail_each_allocation(views_and_copies, NULL), 1, 199);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(promotion_follows_the_table), CASE(casts_out_of_range_are_defined), CASE(halves_round_to_nearest_even),
        CASE(every_type_converts_into_every_other), CASE(creation_fills), CASE(creation_refuses),
        CASE(memory_of_another_is_released_once), CASE(views_share_and_describe), CASE(views_refuse),
        CASE(reshape_equals_counting), CASE(copies_of_large_strided_tensors_are_right), CASE(joins_and_stacks),
        CASE(filling_copying_zeroing), CASE(printing_looks_like_pytorch), CASE(item_reads_one),
        CASE(every_row_is_well_formed), CASE(allocation_failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
