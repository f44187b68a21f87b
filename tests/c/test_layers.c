/* needs: attention */
/* Layers made from rows: what they leave behind without a scope, when
   memory fails, when several threads use one; states, parts, training. */
#include "treadle_test.h"
#include "nn/module.h"
#include <pthread.h>

static td_module *decoder(void)
{
    return td_transformer_decoder_layer_module((td_args){
        .d_model = 6, .nhead = 2, .dim_feedforward = 5,
        .dropout = td_some(0.0) });
}
static td_module *lstm(void)
{
    return td_lstm_module((td_args){ .input_size = 3, .hidden_size = 4,
        .num_layers = 2, .bidirectional = true });
}
static td_tensor *picture(int64_t a, int64_t b, int64_t c)
{
    return td_randn(TD_DIMS(a, b, c), plain);
}

/* ---- names ------------------------------------------------------------ */

static void names_are_pytorchs(void **state)
{
    const char *names[] = { "weight_ih_l0", "weight_hh_l0", "bias_ih_l0",
        "bias_hh_l0", "weight_ih_l0_reverse" };
    td_named_tensor found[32];
    assert_int_equal(td_named_state(lstm(), found, 32), 16);
    for (int i = 0; i < 5; i++)
        assert_string_equal(found[i].name, names[i]);
    assert_string_equal(found[15].name, "bias_hh_l1_reverse");
    assert_int_equal(td_size(found[8].tensor, 1), 8);
    assert_int_equal(td_named_state(decoder(), found, 32), 18);
    assert_string_equal(found[4].name, "multihead_attn.in_proj_weight");
    assert_string_equal(found[2].name, "self_attn.out_proj.weight");
}

static void buffers_are_saved_and_not_trained(void **state)
{
    td_module *m = td_batch_norm2d_module((td_args){ .num_features = 3 });
    td_tensor *p[8];
    td_named_tensor found[8];
    assert_int_equal(td_parameters(m, p, 8), 2);
    assert_int_equal(td_named_state(m, found, 8), 5);
    td_tensor *x = td_randn(TD_DIMS(2, 3, 4, 5), plain);
    td_forward(m, x);
    td_forward(m, x);
    td_train(m, false);
    td_forward(m, x);
    assert_string_equal(found[4].name, "num_batches_tracked");
    assert_int_equal(td_item_int(found[4].tensor), 2);
}

static void parts_have_names_or_numbers(void **state)
{
    td_tensor *w = td_set_requires_grad(td_ones(TD_DIMS(2), plain), true);
    td_module *one = lstm(), *two = decoder();
    td_module *net = td_parts((td_named_part[]){ { "lstm", one, NULL },
        { NULL, two, NULL }, { "scale", NULL, w } }, 3);
    td_named_tensor found[64];
    assert_int_equal(td_named_parameters(net, found, 64), 16 + 18 + 1);
    assert_string_equal(found[0].name, "lstm.weight_ih_l0");
    assert_string_equal(found[16].name, "1.self_attn.in_proj_weight");
    assert_string_equal(found[34].name, "scale");
    assert_ptr_equal(td_child(net, "lstm"), one);
    td_train(net, false);
    assert_false(td_is_training(one));
    assert_null(td_child(net, "scale"));
    expect_error(TD_ERROR_INDEX, "there is no scale");
    assert_null(td_parts((td_named_part[]){ { "a", NULL, NULL } }, 1));
    expect_error(TD_ERROR_VALUE, "part 0 must be a module or a parameter");
    assert_null(td_parts((td_named_part[]){ {
        "a_name_of_more_than_thirty_one_letters", one, NULL } }, 1));
    expect_error(TD_ERROR_VALUE, "a name is too long: a_name_of_more");
    assert_null(td_parts(NULL, 1));
    expect_error(TD_ERROR_VALUE, "parts is NULL");
    assert_null(td_child(net, NULL));
    expect_error(TD_ERROR_INDEX, "there is no NULL");
    assert_null(td_child(td_relu_module(), "0"));
    expect_error(TD_ERROR_INDEX, "there is no 0");
}

/* ---- computing ---------------------------------------------------------- */

static void a_state_goes_on_where_it_stopped(void **state)
{
    td_module *m = lstm();
    td_tensor *x = picture(5, 2, 3);
    td_more whole = { { NULL } }, parts = { { NULL } };
    td_module *uni = td_gru_module((td_args){ .input_size = 3,
                                              .hidden_size = 4 });
    td_tensor *y = td_forward_with(uni, x, &whole);
    td_tensor *first = td_forward_with(uni, td_slice(x, 0,
        (td_opt_i64)td_some(0), (td_opt_i64)td_some(2), 1), &parts);
    td_tensor *rest = td_forward_with(uni, td_slice(x, 0,
        (td_opt_i64)td_some(2), (td_opt_i64)td_some(5), 1), &parts);
    comparison c = { 0 };
    for (int i = 0; i < 40; i++)
        compare(&c, i < 16 ? at(first, i) : at(rest, i - 16), at(y, i),
                1e-6);
    for (int i = 0; i < 8; i++)
        compare(&c, at(parts.at[0], i), at(whole.at[0], i), 1e-6);
    expect_right(c, "a state in two pieces");
    td_forward_with(m, x, &whole);       /* another layer's state */
    expect_error(TD_ERROR_RUNTIME, "");
    assert_non_null(td_forward_with(uni, x, NULL));
    assert_null(td_forward_with(NULL, x, &whole));
    expect_error(TD_ERROR_VALUE, "module is NULL");
}

static void gradients_reach_all_parameters(void **state)
{
    td_module *m = decoder();
    td_more more = { { picture(7, 2, 6) } };
    td_tensor *y = td_forward_with(m, picture(4, 2, 6), &more), *p[32];
    td_backward(td_sum(td_mul(y, y), (td_reduce_options){ 0 }),
                (td_backward_options){ 0 });
    const int n = td_parameters(m, p, 32);
    assert_int_equal(n, 18);
    for (int i = 0; i < n; i++)
        assert_non_null(td_grad_of(p[i]));
}

static void a_text_and_its_mask_in_both_forms(void **state)
{
    td_module *m = td_multihead_attention_module((td_args){
        .embed_dim = 6, .num_heads = 3, .no_bias = true });
    td_tensor *x = picture(4, 2, 6);
    td_tensor *out = td_logical_not(td_tril(td_ones(TD_DIMS(4, 4),
        (td_tensor_options){ .dtype = TD_BOOL }), 0));
    td_tensor *added = td_where_scalar(out, td_full(TD_RANK_0,
        td_float(-INFINITY), plain), td_float(0));
    td_more a = { { NULL, NULL, out } }, b = { { NULL, NULL, added } };
    td_tensor *y = td_forward_with(m, x, &a);
    td_tensor *z = td_forward_with(m, x, &b);
    comparison c = { 0 };
    for (int i = 0; i < 48; i++)
        compare(&c, at(y, i), at(z, i), 1e-6);
    expect_right(c, "masks");
}

/* ---- what is left behind -------------------------------------------------- */

static void nothing_is_left_without_a_scope(void **state)
{
    td_module *m = lstm(), *d = td_dropout_module((td_args){ 0 });
    td_tensor *x = picture(5, 2, 3);
    td_scope_barrier_begin();
    td_no_grad_begin();
    for (int i = 0; i < 3; i++) {
        const int64_t before = td_memory_stats().live_tensors;
        td_tensor *y = td_forward(d, x);
        td_release(td_forward(m, y));
        td_release(y);
        assert_int_equal(td_memory_stats().live_tensors, before);
    }
    td_no_grad_end();
    td_scope_barrier_end();
}

static bool make_and_run(void *context)
{
    td_more more = { { picture(2, 1, 6) } };
    td_tensor *x = picture(2, 1, 3), *u = picture(2, 1, 6);
    td_module *n = td_batch_norm1d_module((td_args){ .num_features = 1 });
    return td_forward(lstm(), x) && td_forward(n, x)
        && td_forward_with(decoder(), u, &more);
}
static void every_allocation_may_fail(void **state)
{
    const int64_t failed = fail_each_allocation(make_and_run, NULL);
    assert_in_range(failed, 50, 2999);
}

static void *run_shared(void *m)
{
    td_scope_begin();
    td_no_grad_begin();
    double sum = 0;
    for (int i = 0; i < 50; i++) {
        td_tensor *x = td_ones(TD_DIMS(5, 2, 3), plain);
        sum = td_item_double(td_sum(td_forward(m, x),
                                    (td_reduce_options){ 0 }));
    }
    td_no_grad_end();
    td_scope_end();
    double *kept = malloc(sizeof *kept);
    *kept = td_failed() ? NAN : sum;
    return kept;
}
static void threads_share_a_layer(void **state)
{
    td_module *m = lstm();
    pthread_t threads[4];
    double *sums[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, run_shared, m);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], (void **)&sums[i]);
    for (int i = 0; i < 4; i++)
        assert_true(*sums[i] == *sums[0]);
    for (int i = 0; i < 4; i++)
        free(sums[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(names_are_pytorchs),
        CASE(buffers_are_saved_and_not_trained),
        CASE(parts_have_names_or_numbers),
        CASE(a_state_goes_on_where_it_stopped),
        CASE(gradients_reach_all_parameters),
        CASE(a_text_and_its_mask_in_both_forms),
        CASE(nothing_is_left_without_a_scope),
        CASE(every_allocation_may_fail),
        CASE(threads_share_a_layer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
