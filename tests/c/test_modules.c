/* needs: modules */
/* Modules: names, lists, sharing, training flag, release; the first weights
   of each initialiser; failures. */
#include "treadle_test.h"
#include "nn/module.h"

static const td_linear_options usual = TD_DEFAULTS;

static td_module *three_layers(void)
{
    return td_sequential((td_module *[]){ td_linear_module(5, 7, usual),
        td_relu_module(), td_linear_module(7, 3, usual) }, 3);
}

/* ---- names and lists ---------------------------------------------------------- */

static void names_are_paths(void **state)
{
    td_module *inner = three_layers();
    td_module *net = td_sequential((td_module *[]){ td_relu_module(), inner,
        td_linear_module(3, 2, (td_linear_options){ .no_bias = true }) }, 3);
    const char *names[] = { "1.0.weight", "1.0.bias", "1.2.weight",
                            "1.2.bias", "2.weight" };
    const int64_t sizes[] = { 35, 7, 21, 3, 6 };
    td_named_tensor found[8];
    assert_int_equal(td_named_parameters(net, found, 8), 5);
    for (int i = 0; i < 5; i++) {
        assert_string_equal(found[i].name, names[i]);
        assert_int_equal(td_numel(found[i].tensor), sizes[i]);
        assert_true(td_requires_grad(found[i].tensor));
        assert_true(td_is_leaf(found[i].tensor));
    }
    assert_int_equal(td_named_state(net, found, 8), 5);
}

static void a_short_array_is_filled_as_far_as_it_goes(void **state)
{
    td_module *net = three_layers();
    td_tensor *p[4] = { NULL };
    assert_int_equal(td_parameters(net, NULL, 0), 4);
    assert_int_equal(td_parameters(net, p, 2), 4);
    assert_true(p[0] && p[1] && !p[2]);
    assert_int_equal(td_parameters(td_relu_module(), p, 4), 0);
}

static void a_shared_layer_is_trained_once_and_saved_twice(void **state)
{
    td_module *l = td_linear_module(4, 4, usual);
    td_module *net = td_sequential((td_module *[]){ l, td_relu_module(), l },
                                   3);
    td_named_tensor found[8];
    assert_int_equal(td_named_parameters(net, found, 8), 2);
    assert_int_equal(td_named_state(net, found, 8), 4);
    assert_string_equal(found[2].name, "2.weight");
    assert_ptr_equal(found[2].tensor, found[0].tensor);
}

static void a_name_too_long_is_an_error(void **state)
{
    td_module *net = td_linear_module(1, 1, usual);
    for (int i = 0; i < 60; i++)
        net = td_sequential(&net, 1);
    assert_int_equal(td_parameters(net, NULL, 0), -1);
    expect_error(TD_ERROR_RUNTIME, "longer than");
}

/* ---- a class of one's own ---------------------------------------------------------- */

typedef struct {
    td_module module;
    td_module *first;            /* a part */
} custom;

static td_tensor *custom_forward(td_module *self, td_tensor *x)
{
    custom *c = (custom *)self;
    return td_mul(td_forward(c->first, x), self->parts->object);
}
static const td_module_class custom_class = { "Custom", custom_forward };

static void parts_are_all_a_module_needs(void **state)
{
    custom *c = td_module_new(&custom_class, sizeof *c);
    c->first = three_layers();
    assert_true(td_add_part(&c->module, TD_PART_PARAMETER,
                            td_new_parameter(TD_RANK_0, plain, 2, 2), "scale"));
    assert_true(td_add_part(&c->module, TD_PART_BUFFER, td_zeros(TD_DIMS(1), plain), "seen"));
    assert_true(td_add_part(&c->module, TD_PART_MODULE, c->first, "first"));
    assert_true(td_add_part(&c->module, TD_PART_KEPT, td_ones(TD_DIMS(3), plain), "nobody's"));
    td_named_tensor found[16];
    assert_int_equal(td_named_parameters(&c->module, found, 16), 5);
    assert_string_equal(found[0].name, "scale");
    assert_string_equal(found[1].name, "first.0.weight");
    assert_int_equal(td_named_state(&c->module, found, 16), 6);
    assert_string_equal(found[1].name, "seen");
    td_tensor *x = td_randn(TD_DIMS(2, 5), plain);
    td_tensor *y = td_forward(&c->module, x), *z = td_forward(c->first, x);
    assert_true(td_item_double(td_select(td_select(y, 0, 1), 0, 2))
        == 2 * td_item_double(td_select(td_select(z, 0, 1), 0, 2)));
    assert_true(td_is_training(&c->module));
    assert_true(td_train(&c->module, false));
    assert_false(td_is_training(c->first));
    assert_false(td_is_training(c->first->parts->next->next->object));
    assert_true(td_train(&c->module, true));
    assert_true(td_is_training(c->first));
}

/* ---- computing ------------------------------------------------------------------------ */

static void linear_is_x_times_w_transposed_plus_b(void **state)
{
    td_module *l = td_linear_module(5, 3,
        (td_linear_options){ .dtype = TD_FLOAT64 });
    td_tensor *p[2], *x = td_randn(TD_DIMS(4, 5),
        (td_tensor_options){ .dtype = TD_FLOAT64 });
    assert_int_equal(td_parameters(l, p, 2), 2);
    const double *w = td_data(p[0]), *b = td_data(p[1]), *v = td_data(x);
    td_tensor *y = td_forward(l, x);
    comparison c = { 0 };
    for (int n = 0; n < 4; n++)
        for (int o = 0; o < 3; o++) {
            double sum = b[o];
            for (int i = 0; i < 5; i++)
                sum += v[n * 5 + i] * w[o * 5 + i];
            compare(&c, at(y, n * 3 + o), sum, 1e-14);
        }
    expect_right(c, "linear");
    assert_null(td_forward(l, td_zeros(TD_DIMS(4, 6),
        (td_tensor_options){ .dtype = TD_FLOAT64 })));
    assert_true(td_failed());
    td_error_clear();
}

static void a_sequence_passes_through_and_an_empty_one_returns(void **state)
{
    td_module *none = td_sequential(NULL, 0);
    td_tensor *x = td_randn(TD_DIMS(2, 5), plain);
    assert_ptr_equal(td_forward(none, x), x);
    td_module *net = three_layers();
    td_no_grad_begin();
    const int64_t before = td_memory_stats().live_tensors;
    assert_int_equal(td_size(td_forward(net, x), 1), 3);
    assert_int_equal(td_memory_stats().live_tensors, before + 1);
    td_no_grad_end();
}

static void modules_live_as_long_as_their_sequence(void **state)
{
    td_scope_begin();
    td_scope_begin();
    td_module *net = td_scope_end_with(three_layers());
    td_tensor *p[4];
    assert_int_equal(td_parameters(net, p, 4), 4);
    assert_int_equal(td_memory_stats().live_tensors, 4);
    td_scope_end();
    assert_int_equal(td_memory_stats().live_tensors, 0);
}

/* ---- first weights -------------------------------------------------------------------- */

static void moments(td_tensor *x, double *most, double *deviation)
{
    const float *v = td_data(x);
    double sum = 0;
    *most = 0;
    for (int64_t i = 0; i < td_numel(x); i++) {
        *most = fmax(*most, fabs((double)v[i]));
        sum += (double)v[i] * v[i];
    }
    *deviation = sqrt(sum / (double)td_numel(x));
}

static void expect(td_tensor *x, double most, double deviation)
{
    double m, d;
    assert_non_null(x);
    moments(x, &m, &d);
    if (!(m <= most && fabs(d / deviation - 1) < 0.02))
        fail_msg("largest %g of %g, deviation %g of %g", m, most, d,
                 deviation);
}

static void each_initialiser_has_its_width(void **state)
{
    td_tensor *w = td_set_requires_grad(td_empty(TD_DIMS(300, 200), plain),
                                        true);
    const double xavier = sqrt(2.0 / 500), he = sqrt(2.0 / 200);
    const td_kaiming_options usual_he = TD_DEFAULTS;
    expect(td_xavier_uniform_(w, 1), sqrt(3) * xavier, xavier);
    expect(td_xavier_uniform_(w, 2), sqrt(3) * 2 * xavier, 2 * xavier);
    expect(td_xavier_normal_(w, 1), INFINITY, xavier);
    expect(td_kaiming_uniform_(w, usual_he), sqrt(3) * he, he);
    expect(td_kaiming_normal_(w, usual_he), INFINITY, he);
    expect(td_kaiming_normal_(w, (td_kaiming_options){ .fan_out = true }),
           INFINITY, sqrt(2.0 / 300));
    expect(td_kaiming_uniform_(w, (td_kaiming_options){
        .negative_slope = sqrt(5) }), 1 / sqrt(200), 1 / sqrt(600));
    td_tensor *kernel = td_empty(TD_DIMS(40, 30, 5, 3), plain);
    expect(td_kaiming_normal_(kernel, usual_he), INFINITY,
           sqrt(2.0 / (30 * 15)));
    expect(td_xavier_normal_(kernel, 1), INFINITY,
           sqrt(2.0 / (70 * 15)));
    td_module *l = td_linear_module(200, 300, usual);
    td_tensor *p[2];
    td_parameters(l, p, 2);
    expect(p[0], 1 / sqrt(200), 1 / sqrt(600));
    double most, deviation;
    moments(p[1], &most, &deviation);
    assert_true(most <= 1 / sqrt(200) && most > .95 / sqrt(200));
}

static void signals_survive_twenty_layers(void **state)
{
    td_tensor *x = td_randn(TD_DIMS(64, 256), plain);
    for (int i = 0; i < 20; i++)
        x = td_relu(td_linear(x, td_kaiming_normal_(
            td_empty(TD_DIMS(256, 256), plain),
            (td_kaiming_options)TD_DEFAULTS), NULL));
    double most, deviation;
    moments(x, &most, &deviation);
    assert_true(deviation > 0.2 && deviation < 5);
}

static void gains_are_pytorchs(void **state)
{
    assert_true(td_gain("linear", 0) == 1 && td_gain("sigmoid", 0) == 1);
    assert_true(td_gain("tanh", 0) == 5.0 / 3);
    assert_true(td_gain("relu", 0) == sqrt(2));
    assert_true(fabs(td_gain("leaky_relu", .2) - sqrt(2 / 1.04)) < 1e-15);
    assert_true(td_gain("selu", 0) == .75);
    td_gain("gelu", 0);
    expect_error(TD_ERROR_VALUE, "gelu");
    td_gain(NULL, 0);
    expect_error(TD_ERROR_VALUE, "(null)");
}

static void a_seed_makes_the_same_network(void **state)
{
    td_tensor *p[2][4];
    for (int k = 0; k < 2; k++) {
        td_manual_seed(31);
        td_parameters(three_layers(), p[k], 4);
    }
    for (int i = 0; i < 4; i++)
        assert_memory_equal(td_data(p[0][i]), td_data(p[1][i]),
                            (size_t)td_numel(p[0][i]) * sizeof(float));
    td_manual_seed(31);               /* weight first, then bias */
    td_tensor *w = td_uniform_(td_empty(TD_DIMS(7, 5), plain),
                               -1 / sqrt(5), 1 / sqrt(5));
    assert_memory_equal(td_data(w), td_data(p[0][0]), 35 * sizeof(float));
}

/* ---- failures --------------------------------------------------------------------------- */

static void wrong_arguments_are_named(void **state)
{
    refused(td_linear_module(-1, 3, usual), TD_ERROR_VALUE, "-1");
    refused(td_linear_module(3, 3, (td_linear_options){ .dtype = TD_INT64 }),
            TD_ERROR_TYPE, "int64");
    td_module *some[] = { td_relu_module(), NULL };
    refused(td_sequential(some, 2), TD_ERROR_VALUE, "NULL");
    refused(td_sequential(NULL, 2), TD_ERROR_VALUE, "2 children");
    refused(td_forward(NULL, td_zeros(TD_DIMS(1), plain)),
            TD_ERROR_VALUE, "module is NULL");
    refused(td_forward(some[0], NULL), TD_ERROR_VALUE, "input is NULL");
    assert_int_equal(td_parameters(NULL, NULL, 0), -1);
    expect_error(TD_ERROR_VALUE, "module is NULL");
    refused(td_train(NULL, true), TD_ERROR_VALUE, "module is NULL");
    refused(td_xavier_normal_(td_zeros(TD_DIMS(3), plain), 1),
            TD_ERROR_VALUE, "1 dimensions");
    refused(td_kaiming_normal_(NULL, (td_kaiming_options)TD_DEFAULTS),
            TD_ERROR_VALUE, "weight is NULL");
}

static void sizes_of_zero_make_a_module(void **state)
{
    td_module *l = td_linear_module(0, 3, usual);
    assert_non_null(l);
    td_tensor *y = td_forward(l, td_zeros(TD_DIMS(2, 0), plain));
    assert_int_equal(td_numel(y), 6);
    assert_non_null(td_linear_module(3, 0, usual));
}

static bool has_four_parameters(void *context)
{
    td_tensor *p[4];
    return td_parameters(three_layers(), p, 4) == 4 && !td_failed();
}

static void every_allocation_may_fail(void **state)
{
    const int64_t failed = fail_each_allocation(has_four_parameters, NULL);
    assert_in_range(failed, 1, 299);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(names_are_paths),
        CASE(a_short_array_is_filled_as_far_as_it_goes),
        CASE(a_shared_layer_is_trained_once_and_saved_twice),
        CASE(a_name_too_long_is_an_error),
        CASE(parts_are_all_a_module_needs),
        CASE(linear_is_x_times_w_transposed_plus_b),
        CASE(a_sequence_passes_through_and_an_empty_one_returns),
        CASE(modules_live_as_long_as_their_sequence),
        CASE(each_initialiser_has_its_width),
        CASE(signals_survive_twenty_layers),
        CASE(gains_are_pytorchs),
        CASE(a_seed_makes_the_same_network),
        CASE(wrong_arguments_are_named),
        CASE(sizes_of_zero_make_a_module),
        CASE(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
