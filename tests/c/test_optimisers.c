/* needs: optimisers */
/* Optimisers against PyTorch's trajectories, types and layouts, what they
   refuse, and parameters that are never half updated. */
#include "treadle_test.h"
#include <math.h>

/* The four gradients of PyTorch's golden trajectories. */
static const double slopes[4][2] = { { 1, -.5 }, { .1, 2 }, { -.3, .7 },
                                     { 4, -.01 } };

static td_tensor *walk(td_dtype type, td_sgd_options options, bool strided)
{
    const double start[] = { 1, -2 };
    td_tensor *p = td_to(td_from_data(start, TD_DIMS(2), wide), type);
    if (strided) {
        td_tensor *room = td_zeros(TD_DIMS(2, 3),
                                   (td_tensor_options){ .dtype = type });
        td_tensor *column = td_select(room, 1, 1);
        td_copy_(column, p);
        p = column;
    }
    td_set_requires_grad(p, true);
    td_optimiser *o = td_sgd(&p, 1, .1, options);
    assert_non_null(o);
    for (int t = 0; t < 4; t++) {
        td_tensor *g = td_to(td_from_data(slopes[t], TD_DIMS(2), wide),
                             type);
        assert_true(td_zero_grad(o));
        assert_null(td_grad_of(p));
        assert_true(td_set_grad(p, g));
        assert_true(td_step(o));
    }
    return p;
}

static void golden_trajectories(void **state)
{
    const struct { td_sgd_options o; double p[2]; } golden[] = {
        { { 0 }, { .52, -2.219 } },
        { { .momentum = .9 }, { .286, -2.50205 } },
        { { .momentum = .9, .nesterov = true }, { -.1226, -2.670845 } },
        { { .momentum = .9, .dampening = .5, .weight_decay = .1 },
          { .413700589, -2.041487784 } },
        { { .momentum = .9, .maximize = true }, { 1.714, -1.49795 } } };
    for (size_t k = 0; k < sizeof golden / sizeof golden[0]; k++)
        for (int form = 0; form < 4; form++) {
            const bool single = form & 1;
            td_tensor *p = walk(single ? TD_FLOAT32 : TD_FLOAT64,
                                golden[k].o, form & 2);
            comparison c = { 0 };
            for (int i = 0; i < 2; i++)
                compare(&c, at(p, i), golden[k].p[i],
                        single ? 1e-6 : 6e-10);
            expect_right(c, "row %zu form %d", k, form);
        }
}

typedef td_optimiser *maker(td_tensor *const *p);

#define MAKER(name, rule, ...)                                    \
    static td_optimiser *name(td_tensor *const *p)                \
    {                                                             \
        return td_adapt(rule, p, 1, .1,                           \
                        (td_adapt_options){ __VA_ARGS__ });       \
    }
MAKER(plain_adam, TD_ADAM, .maximize = false)
MAKER(decaying_adam, TD_ADAM, .weight_decay = td_some(.1))
MAKER(amsgrad, TD_ADAM, .beta1 = td_some(.9), .beta2 = td_some(.5),
      .amsgrad = true)
MAKER(climbing_adam, TD_ADAM, .beta1 = td_some(0), .beta2 = td_some(.9),
      .maximize = true)
MAKER(plain_adamw, TD_ADAMW, .maximize = false)
MAKER(plain_rmsprop, TD_RMSPROP, .maximize = false)
MAKER(centred_rmsprop, TD_RMSPROP, .centered = true, .momentum = .5,
      .weight_decay = td_some(.1))
MAKER(plain_adagrad, TD_ADAGRAD, .maximize = false)
MAKER(slowing_adagrad, TD_ADAGRAD, .lr_decay = .1, .weight_decay = td_some(.1))

/* Ten steps; the numbers are those of tests/python/test_optim.py. */
static void steps_that_adapt_follow_pytorch(void **state)
{
    const double g[10][2] = { { 1, -.5 }, { .1, 2 }, { -.3, .7 },
        { 4, -.01 }, { .2, .3 }, { -1, -2 }, { .05, .5 }, { 0, -.4 },
        { -.7, 1.5 }, { .6, -.25 } };
    const struct { maker *make; double p[2]; } golden[] = {
        { plain_adam, { .538100192519, -2.15093156297 } },
        { decaying_adam, { .496301358545, -2.00674804965 } },
        { amsgrad, { .65333812331, -2.09491080337 } },
        { climbing_adam, { 1.19614123743, -1.92596437504 } },
        { plain_adamw, { .530855958139, -2.13047901249 } },
        { plain_rmsprop, { -.578310976943, -2.15738139422 } },
        { centred_rmsprop, { -1.59841858089, -1.30745213325 } },
        { plain_adagrad, { .841846737142, -2.01538272952 } },
        { slowing_adagrad, { .831902568042, -1.96170611975 } } };
    for (size_t k = 0; k < sizeof golden / sizeof golden[0]; k++)
        for (int single = 0; single < 2; single++) {
            const td_dtype type = single ? TD_FLOAT32 : TD_FLOAT64;
            const double start[] = { 1, -2 };
            td_tensor *p = td_set_requires_grad(td_to(
                td_from_data(start, TD_DIMS(2), wide), type), true);
            td_optimiser *o = golden[k].make(&p);
            assert_non_null(o);
            for (int t = 0; t < 10; t++) {
                td_set_grad(p, td_to(td_from_data(g[t], TD_DIMS(2),
                                                  wide), type));
                assert_true(td_step(o));
            }
            comparison c = { 0 };
            for (int i = 0; i < 2; i++)
                compare(&c, at(p, i), golden[k].p[i],
                        single ? 2e-6 : 1e-10);
            expect_right(c, "row %zu single %d", k, single);
            td_zero_grad(o);
        }
}

/* Threads share a long parameter; each element moves as a lone one does. */
static void adam_treats_every_element_alike(void **state)
{
    enum { N = 30011 };
    td_tensor *p[2] = { td_ones(TD_DIMS(N), plain),
                        td_ones(TD_DIMS(1), plain) };
    td_set_threads(3);
    td_optimiser *o[2];
    for (int k = 0; k < 2; k++) {
        td_set_requires_grad(p[k], true);
        o[k] = td_adapt(TD_ADAM, &p[k], 1, .1, (td_adapt_options){
            .amsgrad = true,
            .weight_decay = td_some(.1) });
        for (int t = 0; t < 3; t++) {
            td_set_grad(p[k], td_full(td_shape_of(p[k]),
                                      td_float(.3 * t - .2), plain));
            assert_true(td_step(o[k]));
        }
        td_zero_grad(o[k]);
    }
    for (int i = 0; i < N; i++)
        assert_true(fabs(at(p[0], i) - at(p[1], 0)) < 2e-7);
}

/* One step of each kind on many elements, against a loop in the type. */
static void a_long_parameter_takes_the_same_step(void **state)
{
    enum { N = 40009 };
    td_tensor *first = NULL;
    for (int threads = 1; threads <= 4; threads++) {
        td_set_threads(threads);
        td_manual_seed(6);
        td_tensor *p = td_randn(TD_DIMS(N), plain);
        td_tensor *before = td_clone(p), *g = td_randn(TD_DIMS(N), plain);
        td_set_requires_grad(p, true);
        td_optimiser *o = td_sgd(&p, 1, .25, (td_sgd_options){
            .momentum = .5, .weight_decay = .125 });
        td_set_grad(p, g);
        assert_true(td_step(o));
        assert_true(td_step(o));
        const float *b = td_data(before), *s = td_data(g), *a = td_data(p);
        comparison c = { 0 };
        for (int i = 0; i < N; i++) {
            const double d1 = s[i] + .125 * b[i], p1 = b[i] - .25 * d1;
            const double d2 = .5 * d1 + s[i] + .125 * p1;
            compare(&c, a[i], p1 - .25 * d2, 2e-6);
        }
        expect_right(c, "%d threads", threads);
        if (!first)
            first = td_clone(td_detach(p));
        assert_memory_equal(td_data(first), a, N * sizeof *a);
        td_set_grad(p, NULL);
    }
}

static void a_strided_gradient_is_read_in_order(void **state)
{
    td_tensor *p = td_set_requires_grad(td_zeros(TD_DIMS(3, 5), wide), true);
    td_tensor *g = td_transpose(td_randn(TD_DIMS(5, 3), wide), 0, 1);
    td_optimiser *o = td_sgd(&p, 1, 1, (td_sgd_options)TD_DEFAULTS);
    td_set_grad(p, g);
    assert_true(td_step(o));
    td_tensor *sum = td_add(td_detach(p), g);
    assert_true(td_item_double(td_amax(td_abs(sum),
                (td_reduce_options)TD_DEFAULTS)) == 0);
    td_set_grad(p, NULL);
}

static void a_parameter_without_gradient_stays(void **state)
{
    td_tensor *p[2] = { td_ones(TD_DIMS(3), plain),
                        td_ones(TD_DIMS(3), plain) };
    for (int i = 0; i < 2; i++)
        td_set_requires_grad(p[i], true);
    td_optimiser *o = td_sgd(p, 2, .5, (td_sgd_options){
        .momentum = .9, .weight_decay = 1 });
    td_set_grad(p[1], td_ones(TD_DIMS(3), plain));
    assert_true(td_step(o));
    assert_true(*(float *)td_data(p[0]) == 1);
    assert_true(*(float *)td_data(p[1]) == 0);
    assert_true(td_zero_grad(o));
    assert_true(td_step(o));             /* nothing left to do */
    assert_true(*(float *)td_data(p[1]) == 0);
}

static void a_step_is_seen_in_the_version_and_not_in_the_graph(void **state)
{
    td_tensor *p = td_set_requires_grad(td_ones(TD_DIMS(3), plain), true);
    td_optimiser *o = td_sgd(&p, 1, .5, (td_sgd_options)TD_DEFAULTS);
    td_tensor *y = td_sum(td_mul(p, p), (td_reduce_options)TD_DEFAULTS);
    const unsigned version = atomic_load(&p->storage->version);
    td_set_grad(p, td_ones(TD_DIMS(3), plain));
    const int64_t nodes = td_live_node_count();
    assert_true(td_step(o));
    assert_int_equal(td_live_node_count(), nodes);
    assert_true(td_is_leaf(p) && td_requires_grad(p));
    assert_int_equal(atomic_load(&p->storage->version), version + 1);
    assert_false(td_backward(y, (td_backward_options)TD_DEFAULTS));
    assert_true(td_failed());
    td_error_clear();
    td_zero_grad(o);
}

static void the_optimiser_keeps_its_parameters(void **state)
{
    td_scope_begin();
    td_scope_begin();
    td_tensor *p = td_set_requires_grad(td_ones(TD_DIMS(3), plain), true);
    td_optimiser *o = td_scope_end_with(td_sgd(&p, 1, .5,
                                     (td_sgd_options)TD_DEFAULTS));
    assert_int_equal(td_memory_stats().live_tensors, 1);
    assert_true(td_step(o));
    td_scope_end();
    assert_int_equal(td_memory_stats().live_tensors, 0);
}

static void the_learning_rate_can_be_changed(void **state)
{
    td_tensor *p = td_set_requires_grad(td_ones(TD_DIMS(1), wide), true);
    td_optimiser *o = td_sgd(&p, 1, .5, (td_sgd_options)TD_DEFAULTS);
    assert_true(td_learning_rate(o) == .5);
    assert_true(td_set_learning_rate(o, .125));
    td_set_grad(p, td_ones(TD_DIMS(1), wide));
    assert_true(td_step(o));
    assert_true(*(double *)td_data(p) == .875);
    refused(td_set_learning_rate(o, -1), TD_ERROR_VALUE, "-1");
    assert_true(td_learning_rate(o) == .125);
    td_zero_grad(o);
}

static void wrong_settings_are_refused(void **state)
{
    td_tensor *p = td_set_requires_grad(td_ones(TD_DIMS(3), plain), true);
    td_tensor *twice[] = { p, td_ones(TD_DIMS(1), plain), p };
    const td_sgd_options none = TD_DEFAULTS;
    refused(td_sgd(&p, 1, -.1, none), TD_ERROR_VALUE, "learning rate -0.1");
    refused(td_sgd(&p, 1, NAN, none), TD_ERROR_VALUE, "learning rate");
    refused(td_sgd(&p, 1, .1, (td_sgd_options){ .momentum = -1 }),
            TD_ERROR_VALUE, "momentum -1");
    refused(td_sgd(&p, 1, .1, (td_sgd_options){ .weight_decay = -2 }),
            TD_ERROR_VALUE, "weight_decay -2");
    refused(td_sgd(&p, 1, .1, (td_sgd_options){ .nesterov = true }),
            TD_ERROR_VALUE, "nesterov");
    refused(td_sgd(&p, 1, .1, (td_sgd_options){ .nesterov = true,
        .momentum = .9, .dampening = .1 }), TD_ERROR_VALUE, "nesterov");
    refused(td_sgd(&p, 0, .1, none), TD_ERROR_VALUE, "no parameters");
    refused(td_sgd(NULL, 1, .1, none), TD_ERROR_VALUE, "no parameters");
    refused(td_sgd(twice, 3, .1, none),
            TD_ERROR_VALUE, "parameter 2 is parameter 0");
    td_tensor *missing[] = { NULL }, *result[] = { td_mul(p, p) };
    refused(td_sgd(missing, 1, .1, none),
            TD_ERROR_VALUE, "parameter 0 is NULL");
    refused(td_sgd(result, 1, .1, none), TD_ERROR_VALUE, "not a leaf");
    refused(td_adapt(TD_ADAM, &p, 1, .1, (td_adapt_options){
        .beta1 = td_some(1) }), TD_ERROR_VALUE, "beta1 1 must be a number "
        ">= 0 and < 1");
    refused(td_adapt(TD_ADAMW, &p, 1, -1, (td_adapt_options)TD_DEFAULTS),
            TD_ERROR_VALUE, "adamw: learning rate -1");
    refused(td_adapt(TD_RMSPROP, &p, 1, .1, (td_adapt_options){
        .momentum = NAN }),
            TD_ERROR_VALUE, "momentum");
    refused(td_adapt(TD_ADAGRAD, result, 1, .1,
                     (td_adapt_options)TD_DEFAULTS),
            TD_ERROR_VALUE, "not a leaf");
    refused(td_step(NULL), TD_ERROR_VALUE, "optimiser is NULL");
    refused(td_zero_grad(NULL), TD_ERROR_VALUE, "optimiser is NULL");
}

/* Fails each allocation of a step in turn.  Every parameter must be all
   old or all new, and a later step must end where an undisturbed one does. */
static void a_failing_step_tears_no_parameter(void **state)
{
    enum { N = 20011 };
    bool done = false;
    for (int64_t n = 0; !done; n++) {
        td_scope_begin();
        td_tensor *p[3];
        for (int i = 0; i < 3; i++) {
            p[i] = td_ones(TD_DIMS(N), plain);
            if (i == 1)                  /* a view with gaps */
                p[i] = td_slice(td_ones(TD_DIMS(2 * N), plain), 0,
                    (td_opt_i64)td_some(0), (td_opt_i64)TD_DEFAULTS, 2);
            td_set_requires_grad(p[i], true);
            td_set_grad(p[i], td_ones(TD_DIMS(N), plain));
        }
        td_optimiser *o = td_sgd(p, 3, .5, (td_sgd_options){
            .momentum = .5 });
        td_memory_fail_after(n);
        done = had_memory(td_step(o));
        bool past = false;
        for (int i = 0; i < 3; i++) {
            td_tensor *c = td_contiguous(td_detach(p[i]));
            const float *v = td_data(c);
            for (int j = 1; j < N; j++)
                assert_true(v[j] == v[0]);
            assert_true(v[0] == 1 || (v[0] == .5f && !past));
            past = past || v[0] == 1;
            assert_true(!done || v[0] == .5f);
        }
        td_scope_end();
        assert_true(n < 300);
    }
}

static void a_gradient_of_another_shape_is_refused(void **state)
{
    td_tensor *p = td_set_requires_grad(td_ones(TD_DIMS(3), plain), true);
    const td_op *op = td_op_find("sgd_step_");
    assert_non_null(op);
    td_tensor *short_one = td_ones(TD_DIMS(2), plain);
    td_value in[3] = { { .kind = TD_TENSOR, .as.tensor = p },
        { .kind = TD_TENSOR, .as.tensor = short_one } };
    td_value attr[7] = { { .kind = TD_SCALAR, .as.scalar = td_float(1) } };
    td_call call = { .op = op, .n_in = 3, .in = in, .n_attr = 7,
                     .attr = attr };
    td_no_grad_begin();
    refused(td_run(&call), TD_ERROR_RUNTIME, "grad has shape [2], expected [3]");
    in[1].as.tensor = td_ones(TD_DIMS(3), wide);
    refused(td_run(&call), TD_ERROR_TYPE, "grad is float64");
    in[1].as.tensor = td_ones(TD_DIMS(3), plain);
    in[2] = in[1];
    in[2].as.tensor = short_one;
    refused(td_run(&call), TD_ERROR_RUNTIME, "buffer has shape [2], expected [3]");
    td_no_grad_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(golden_trajectories),
        CASE(steps_that_adapt_follow_pytorch),
        CASE(adam_treats_every_element_alike),
        CASE(a_long_parameter_takes_the_same_step),
        CASE(a_strided_gradient_is_read_in_order),
        CASE(a_parameter_without_gradient_stays),
        CASE(a_step_is_seen_in_the_version_and_not_in_the_graph),
        CASE(the_optimiser_keeps_its_parameters),
        CASE(the_learning_rate_can_be_changed),
        CASE(wrong_settings_are_refused),
        CASE(a_failing_step_tears_no_parameter),
        CASE(a_gradient_of_another_shape_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
