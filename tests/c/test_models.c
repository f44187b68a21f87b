/* needs: models */
/* Models of C: what they leave behind without a scope and when memory fails, a GPT's memory, gradients for all parameters.  That their
   answers are Python's is tested by tests/python/test_doors.py. */
#include "treadle_test.h"

static td_module *gpt(bool plain_one)
{
    return td_gpt_module((td_args){ .vocab_size = 7, .n_positions = 6, .n_embd = 4, .n_layer = 2, .n_head = 2,
        .rotary = !plain_one, .rms = !plain_one, .no_bias = !plain_one, .activation = plain_one ? NULL : "swiglu" });
}
static td_tensor *letters(int64_t n)
{
    return td_randint(0, 7, TD_DIMS(2, n), (td_tensor_options){ .dtype = TD_INT64 });
}

static void nothing_is_left_without_a_scope(void **state)
{
    td_module *m = gpt(false);
    td_tensor *x = letters(2), *none = td_zeros(TD_DIMS(0), plain);
    td_scope_barrier_begin();
    td_no_grad_begin();
    for (int i = 0; i < 3; i++) {
        const int64_t before = td_memory_stats().live_tensors;
        td_more memory = { { none } };
        for (int k = 0; k < 3; k++) {
            td_tensor *old = memory.at[0];
            td_release(td_forward_with(m, x, &memory));
            assert_ptr_not_equal(memory.at[0], old);
            if (k > 0)
                td_release(old);
        }
        assert_int_equal(td_size(memory.at[0], 3), 6);
        td_release(memory.at[0]);
        td_release(td_forward(m, x));
        assert_int_equal(td_memory_stats().live_tensors, before);
    }
    td_no_grad_end();
    td_scope_barrier_end();
}

static void a_memory_is_a_value(void **state)
{
    td_module *m = gpt(true);
    td_tensor *begun = letters(3), *one = letters(1), *other = letters(1);
    td_no_grad_begin();
    td_more first = { { td_zeros(TD_DIMS(0), plain) } };
    td_forward_with(m, begun, &first);
    td_more a = first, b = first;                    /* two continuations */
    td_tensor *y = td_forward_with(m, one, &a), *z = td_forward_with(m, other, &b);
    td_more again = first;
    td_tensor *w = td_forward_with(m, one, &again);
    assert_int_equal(td_size(first.at[0], 3), 3);
    for (int64_t i = 0; i < td_numel(y); i++)
        assert_true(at(y, i) == at(w, i));
    assert_int_equal(td_size(z, 1), 1);
    td_no_grad_end();
}

static void gradients_reach_all_parameters(void **state)
{
    td_module *models[] = { gpt(true), gpt(false),
        td_mlp_module((td_args){ .sizes = TD_DIMS(5, 4, 3) }),
        td_resnet_module((td_args){ .blocks = 1, .width = 2, .projection = true }),
        td_resnet_module((td_args){ .blocks = 1, .width = 3 }),
        td_forecaster_module((td_args){ .hidden_size = 3 }), td_cnn_module((td_args){ .channels = TD_DIMS(2, 3), .hidden = 4 }) };
    td_tensor *x[] = { letters(6), letters(6), td_randn(TD_DIMS(2, 5), plain), td_randn(TD_DIMS(2, 3, 8, 7), plain),
        td_randn(TD_DIMS(2, 3, 5, 8), plain), td_randn(TD_DIMS(2, 4, 1), plain), td_randn(TD_DIMS(2, 784), plain) };
    for (int i = 0; i < 7; i++) {
        td_tensor *p[64];
        const int n = td_parameters(models[i], p, 64);
        td_backward(td_sum(td_square(td_forward(models[i], x[i])), (td_reduce_options){ 0 }),
                    (td_backward_options)TD_DEFAULTS);
        assert_false(td_failed());
        assert_in_range(n, 4, 64);
        for (int k = 0; k < n; k++)
            assert_non_null(td_grad_of(p[k]));
    }
}

static bool make_and_write(void *context)
{
    td_more memory = { { td_zeros(TD_DIMS(0), plain) } };
    td_module *m = gpt(context != NULL);
    return td_forward_with(m, letters(2), &memory) && td_forward_with(m, letters(1), &memory);
}
static bool make_and_see(void *context)
{
    td_module *m = td_resnet_module((td_args){ .blocks = 1, .width = 1, .projection = context != NULL });
    td_module *f = td_forecaster_module((td_args){ .hidden_size = 2 });
    return td_forward(m, td_ones(TD_DIMS(2, 3, 4, 4), plain)) && td_forward(f, td_ones(TD_DIMS(2, 3, 1), plain))
        && td_forward(td_mlp_module((td_args){ .sizes = TD_DIMS(3, 2, 2) }), td_ones(TD_DIMS(2, 3), plain))
        && td_cnn_module((td_args){ .channels = TD_DIMS(1, 1) });
}
static void every_allocation_may_fail(void **state)
{
    for (int i = 0; i < 2; i++) {
        assert_in_range(fail_each_allocation(make_and_write, i ? state : NULL), 50, 2999);
        assert_in_range(fail_each_allocation(make_and_see, i ? state : NULL), 50, 2999);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(nothing_is_left_without_a_scope),
        CASE(a_memory_is_a_value),
        CASE(gradients_reach_all_parameters),
        CASE(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
