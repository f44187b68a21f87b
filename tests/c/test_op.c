/* needs: tensors */
/* The door: what td_run refuses, and that refusing leaves nothing behind. */
#include "treadle_test.h"
#include "core/call.h"

static void a_call_by_name_equals_the_typed_function(void **state)
{
    td_tensor *x = td_reshape(td_arange(td_int(0), td_int(15), td_int(1), plain), TD_DIMS(3, 5));
    const td_value in[] = { td_v_tensor(x) }, attr[] = { td_v_int(-1), td_v_int(0) };
    td_call call = { .op = td_op_find("transpose"), .n_in = 1, .n_attr = 2, .in = in, .attr = attr };
    assert_true(td_run(&call));
    assert_int_equal(call.n_out, 1);
    const td_tensor *y = td_transpose(x, 0, 1);
    assert_int_equal(td_size(call.out[0], 0), 5);
    assert_memory_equal(td_strides(call.out[0]), td_strides(y), 2 * sizeof(int64_t));
    assert_ptr_equal(td_data(call.out[0]), td_data(x));
}

static void the_door_refuses_a_wrong_number_of_arguments(void **state)
{
    td_tensor *x = td_zeros(TD_DIMS(3, 5), plain);
    const td_value in[] = { td_v_tensor(x), td_v_tensor(x) };
    const td_value attr[] = { td_v_int(0), td_v_int(1), td_v_int(1) };
    const int counts[][2] = { { 0, 2 }, { 2, 2 }, { 1, 1 }, { 1, 3 }, { 0, 0 } };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        td_call call = { .op = &td_ops[TD_OP_transpose], .n_in = counts[i][0],
                         .n_attr = counts[i][1], .in = in, .attr = attr };
        assert_false(td_run(&call));
        assert_int_equal(call.n_out, 0);
        expect_error(TD_ERROR_TYPE, "transpose(tensor input, int dim0, int dim1)");
    }
}

/* Every operator, every argument a string: none but string parameters take it. */
static void the_door_refuses_arguments_of_a_wrong_kind(void **state)
{
    td_value strings[TD_MAX_PARAMETERS];
    for (int i = 0; i < TD_MAX_PARAMETERS; i++)
        strings[i] = (td_value){ .kind = TD_STRING, .as.string = "no tensor" };
    for (int n = 0; n < td_op_count(); n++) {
        td_signature s;
        assert_true(td_signature_parse(td_ops[n].signature, &s));
        td_call call = { .op = &td_ops[n], .in = strings, .attr = strings };
        bool only_strings = true;
        for (int i = 0; i < s.n_parameters; i++) {
            *(s.at[i].is_input ? &call.n_in : &call.n_attr) += 1;
            only_strings &= s.at[i].kind == TD_P_STRING;
        }
        if (only_strings)
            continue;
        if (td_run(&call))
            fail_msg("%s takes strings", td_ops[n].name);
        expect_error(TD_ERROR_TYPE, td_ops[n].name);
    }
}

/* Every operator, nothing given: what is required is missed, nothing crashes. */
static void the_door_refuses_what_is_absent_and_required(void **state)
{
    const td_value nothing[TD_MAX_PARAMETERS] = { { .kind = TD_NONE } };
    for (int n = 0; n < td_op_count(); n++) {
        td_signature s;
        assert_true(td_signature_parse(td_ops[n].signature, &s));
        td_call call = { .op = &td_ops[n], .in = nothing, .attr = nothing };
        bool required = false;
        for (int i = 0; i < s.n_parameters; i++) {
            *(s.at[i].is_input ? &call.n_in : &call.n_attr) += 1;
            required |= !s.at[i].optional && !s.at[i].has_default;
        }
        if (!required)
            continue;
        refused(td_run(&call), TD_ERROR_TYPE, td_ops[n].name);
    }
}

static void a_missing_tensor_is_named(void **state)
{
    refused(td_t(NULL), TD_ERROR_VALUE, "t: argument 'input' is NULL");
    refused(td_copy_(td_zeros(TD_DIMS(2), plain), NULL), TD_ERROR_VALUE, "copy_: argument 'src' is NULL");
    td_tensor *list[] = { td_zeros(TD_DIMS(2), plain), NULL };
    refused(td_cat(list, 2, 0), TD_ERROR_VALUE, "cat: argument 'tensors' is NULL");
}

static int kernels_run;
static bool counting_kernel(td_call *call)
{
    kernels_run++;
    return td_return(call, td_zeros(TD_DIMS(2), plain));
}

static void a_pending_error_closes_the_door(void **state)
{
    const td_op op = { .name = "counting", .signature = "counting() -> tensor", .kernel = counting_kernel };
    td_call call = { .op = &op };
    kernels_run = 0;
    td_fail(TD_ERROR_VALUE, "earlier", "went wrong");
    assert_false(td_run(&call));
    assert_int_equal(kernels_run, 0);
    refused(td_zeros(TD_DIMS(2), plain), TD_ERROR_VALUE, "earlier: went wrong");
}

static bool half_a_kernel(td_call *call)
{
    call->out[0] = td_zeros(TD_DIMS(3), plain);
    call->out[1] = td_ones(TD_DIMS(5), plain);
    call->n_out = 2;
    return td_fail(TD_ERROR_RUNTIME, "half", "lost its way");
}

/* Outside of any scope, where nobody else would free them. */
static void results_of_a_failed_kernel_are_taken_back(void **state)
{
    const td_op op = { .name = "half", .signature = "half() -> tensor, tensor", .kernel = half_a_kernel };
    td_call call = { .op = &op };
    td_scope_barrier_begin();
    assert_false(td_run(&call));
    td_scope_barrier_end();
    assert_null(call.out[0]);
    assert_null(call.out[1]);
    assert_int_equal(call.n_out, 0);
    expect_error(TD_ERROR_RUNTIME, "half: lost its way");
    assert_int_equal(td_memory_stats().live_tensors, 0);
}

static void an_optional_argument_may_be_absent(void **state)
{
    td_tensor *x = td_zeros(TD_DIMS(1, 3, 1), plain);
    const td_value in[] = { td_v_tensor(x) }, attr[] = { td_v_none() };
    td_call call = { .op = &td_ops[TD_OP_squeeze], .n_in = 1, .n_attr = 1, .in = in, .attr = attr };
    assert_true(td_run(&call));
    assert_int_equal(td_rank(call.out[0]), 1);
}

static void a_list_longer_than_any_rank_is_refused(void **state)
{
    const int64_t sizes[9] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    const td_value attr[] = { { .kind = TD_INTS, .as.ints = { 9, sizes } }, td_v_none(), td_v_none() };
    td_call call = { .op = &td_ops[TD_OP_zeros], .n_attr = 3, .attr = attr };
    refused(td_run(&call), TD_ERROR_VALUE, "at most 8 dimensions, got 9");
}

static void types_that_are_none_are_refused(void **state)
{
    for (int dtype = -1; dtype <= TD_DTYPE_COUNT; dtype += TD_DTYPE_COUNT + 1) {
        const td_tensor_options o = { .dtype = (td_dtype)dtype };
        float memory[2] = { 1, 2 };
        refused(td_zeros(TD_DIMS(2), o), TD_ERROR_TYPE, "is not a dtype");
        refused(td_from_data(memory, TD_DIMS(2), o), TD_ERROR_TYPE, "is not a dtype");
        refused(td_from_memory(memory, TD_DIMS(2), TD_DIMS(1), o, NULL, NULL), TD_ERROR_TYPE, "is not a dtype");
        refused(td_to(td_ones(TD_DIMS(2), plain), o.dtype), TD_ERROR_TYPE, "is not a dtype");
    }
}

static void every_way_to_create_refuses_an_absent_device(void **state)
{
    const td_tensor_options cuda = { .device = { TD_DEVICE_CUDA, 0 } };
    setenv("TREADLE_CUDA", "0", 1);
    td_tensor *x = td_ones(TD_DIMS(2, 3), plain);
    float memory[6] = { 0 };
#define REFUSED(call) assert_null(call); expect_error(TD_ERROR_UNSUPPORTED, "device cuda is not available")
    REFUSED(td_empty(TD_DIMS(2), cuda));
    REFUSED(td_zeros(TD_DIMS(2), cuda));
    REFUSED(td_ones(TD_DIMS(2), cuda));
    REFUSED(td_full(TD_DIMS(2), td_int(3), cuda));
    REFUSED(td_arange(td_int(0), td_int(3), td_int(1), cuda));
    REFUSED(td_linspace(0, 1, 3, cuda));
    REFUSED(td_eye(3, (td_opt_i64)TD_DEFAULTS, cuda));
    REFUSED(td_empty_like(x, cuda));
    REFUSED(td_zeros_like(x, cuda));
    REFUSED(td_ones_like(x, cuda));
    REFUSED(td_full_like(x, td_float(2), cuda));
    REFUSED(td_from_data(memory, TD_DIMS(6), cuda));
    assert_null(td_from_memory(memory, TD_DIMS(6), TD_DIMS(1), cuda, NULL, NULL));
    expect_error(TD_ERROR_UNSUPPORTED, "only memory of the CPU");
}

static void whole_progressions_are_counted_without_rounding(void **state)
{
    const struct { int64_t from, to, by, count, last; } cases[] = {
        { 2, 9, 3, 3, 8 }, { 9, 2, -3, 3, 3 }, { 5, 5, 1, 0, 0 }, { -7, 8, 5, 3, 3 },
        { (int64_t)1 << 53, ((int64_t)1 << 53) + 3, 1, 3, ((int64_t)1 << 53) + 2 },
        { INT64_MIN, INT64_MAX, INT64_MAX / 2 + 1, 4, INT64_MAX / 2 + 1 },
        { INT64_MAX, INT64_MIN, INT64_MIN, 2, -1 },
        { INT64_MAX - 1, INT64_MAX, 5, 1, INT64_MAX - 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const td_tensor *x = td_arange(td_int(cases[i].from), td_int(cases[i].to), td_int(cases[i].by), plain);
        assert_non_null(x);
        assert_int_equal(td_numel(x), cases[i].count);
        if (cases[i].count > 0)
            assert_true(((const int64_t *)td_data(x))[cases[i].count - 1] == cases[i].last);
    }
    const double no_steps[] = { 0, (double)NAN, (double)INFINITY };
    for (size_t i = 0; i < 3; i++) {
        refused(td_arange(td_float(0), td_float(3), td_float(no_steps[i]), plain),
                TD_ERROR_RUNTIME, "must be finite and step not zero");
    }
}

static void cat_skips_old_style_empty_tensors(void **state)
{
    td_tensor *nothing = td_zeros(TD_DIMS(0), plain), *x = td_ones(TD_DIMS(2, 3), plain);
    td_tensor *list[] = { nothing, x, nothing, x };
    const td_tensor *y = td_cat(list, 4, 1);
    assert_non_null(y);
    assert_int_equal(td_size(y, 0), 2);
    assert_int_equal(td_size(y, 1), 6);
    td_tensor *empties[] = { nothing, nothing };
    assert_int_equal(td_size(td_cat(empties, 2, 0), 0), 0);
    td_tensor *wrong[] = { x, td_ones(TD_DIMS(3), plain) };
    refused(td_cat(wrong, 2, 0), TD_ERROR_RUNTIME, "tensor 1 has shape [3]");
}

static void contiguous_ignores_strides_of_size_one(void **state)
{
    float memory[7] = { 0 };
    td_tensor *x = td_from_memory(memory, TD_DIMS(1, 7, 1), TD_DIMS(99, 1, 5), plain, NULL, NULL);
    assert_true(td_is_contiguous(x));
    assert_ptr_equal(td_data(td_contiguous(x)), memory);
    assert_int_equal(td_rank(td_view(x, TD_DIMS(7))), 1);
}

/* What is read once says the same as the text it was read from. */
static void traits_say_what_the_signature_says(void **state)
{
    for (int n = 0; n < td_op_count(); n++) {
        const td_traits *t = td_traits_of(&td_ops[n]);
        td_signature s;
        assert_true(td_signature_parse(td_ops[n].signature, &s));
        int in = 0, attr = 0;
        bool random = false;
        for (int i = 0; i < s.n_parameters; i++) {
            const bool may_be_absent = s.at[i].optional || s.at[i].has_default;
            const unsigned takes = s.at[i].is_input ? t->in[in] : t->attr[attr];
            assert_int_equal(takes >> TD_NONE & 1, may_be_absent);
            if (s.at[i].is_input)
                assert_int_equal(t->mutated >> in & 1, s.at[i].mutated);
            *(s.at[i].is_input ? &in : &attr) += 1;
            random |= s.at[i].kind == TD_P_GENERATOR;
        }
        assert_int_equal(t->n_in, in);
        assert_int_equal(t->n_attr, attr);
        assert_int_equal(t->random, random);
    }
    const td_op foreign = { .name = "foreign", .signature = "foreign() -> tensor" };
    assert_true(td_traits_of(&foreign)->n_in < 0);
    assert_ptr_equal(td_traits_of(&foreign), td_traits_of(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_call_by_name_equals_the_typed_function),
        CASE(the_door_refuses_a_wrong_number_of_arguments),
        CASE(the_door_refuses_arguments_of_a_wrong_kind),
        CASE(the_door_refuses_what_is_absent_and_required),
        CASE(a_missing_tensor_is_named),
        CASE(a_pending_error_closes_the_door),
        CASE(results_of_a_failed_kernel_are_taken_back),
        CASE(an_optional_argument_may_be_absent),
        CASE(a_list_longer_than_any_rank_is_refused),
        CASE(types_that_are_none_are_refused),
        CASE(every_way_to_create_refuses_an_absent_device),
        CASE(whole_progressions_are_counted_without_rounding),
        CASE(cat_skips_old_style_empty_tensors),
        CASE(contiguous_ignores_strides_of_size_one),
        CASE(traits_say_what_the_signature_says),
    };
    return cmocka_run_group_tests_name("op", tests, NULL, NULL);
}
