/* needs: tensors elementwise reductions matmul random graph rules gradcheck modules losses optimisers data */

/* Every allocation fails in turn.

   A scenario is run with its first allocation made to fail, then with its
   second, and so on until it succeeds.  Each failure must be one clear
   error, and must leave every counter where it was before. */
#include "treadle_test.h"
#include "core/registry.h"
#include "samples.h"

static td_tensor *matrix(int64_t rows, int64_t columns)
{
    return td_randn(TD_DIMS(rows, columns), plain);
}

static td_tensor *leaf(int64_t rows, int64_t columns)
{
    return td_set_requires_grad(matrix(rows, columns), true);
}

static bool creating_and_viewing(void *context)
{
    td_tensor *x = td_arange(td_int(0), td_int(30), td_int(1), plain);
    td_tensor *y = td_permute(td_reshape(x, TD_DIMS(2, 3, 5)), TD_DIMS(2, 0, 1));
    td_tensor *z = td_contiguous(td_select(y, 0, 3));
    td_tensor *both[] = { td_clone(z), td_to(z, TD_INT64) };
    return td_cat(both, 2, 0) && td_stack(both, 2, 0) && td_to(z, TD_FLOAT16) && td_linspace(0, 1, 7, plain);
}

static bool elementwise(void *context)
{
    td_tensor *x = matrix(7, 5), *row = matrix(1, 5);
    td_tensor *y = td_tanh(td_mul(td_add(x, row), td_transpose(matrix(5, 7), 0, 1)));
    td_tensor *mask = td_gt(y, td_zeros_like(y, plain));
    return td_where(mask, y, x) && td_add_scalar(td_exp(y), td_float(2)) && td_add_(x, row);
}

static bool reducing_and_multiplying(void *context)
{
    td_tensor *x = matrix(37, 23);
    td_tensor *y = td_matmul(td_transpose(x, 0, 1), x);
    return td_sum(y, (td_reduce_options){ .dims = TD_DIMS(0) }) && td_mean(y, (td_reduce_options){ 0 })
        && td_softmax(y, 1) && td_logsumexp(y, (td_reduce_options){ .dims = TD_DIMS(1) })
        && td_linear(x, matrix(11, 23), td_randn(TD_DIMS(11), plain));
}

static bool a_large_product(void *context)
{
    return td_matmul(matrix(130, 300), matrix(300, 140)) != NULL;
}

static bool backward(void *context)
{
    td_tensor *x = leaf(5, 3), *w = leaf(3, 4);
    td_tensor *y = td_tanh(td_matmul(x, w));
    td_tensor *loss = td_mean(td_mul(y, td_add(y, y)), (td_reduce_options){ 0 });
    return td_backward(loss, (td_backward_options){ 0 }) && td_grad_of(x) && td_grad_of(w);
}

static bool second_derivative(void *context)
{
    td_tensor *x = leaf(3, 2), *gradient = NULL, *second = NULL;
    td_tensor *y = td_sum(td_mul(td_tanh(x), td_exp(x)), (td_reduce_options){ 0 });
    if (!td_grad(&y, 1, &x, 1, &gradient, (td_grad_options){ .create_graph = true }))
        return false;
    td_tensor *sum = td_sum(td_mul(gradient, gradient), (td_reduce_options){ 0 });
    return td_grad(&sum, 1, &x, 1, &second, (td_grad_options){ 0 });
}

static bool hooks_and_retained_gradients(void *context)
{
    td_tensor *x = leaf(2, 3);
    td_tensor *y = td_mul(x, x);
    return td_retain_grad(y) && td_backward(td_sum(y, (td_reduce_options){ 0 }), (td_backward_options){ 0 })
        && td_grad_of(y);
}

/* With no scope open the caller owns everything, as Python does: what an
   operator lends to its own scope must not be released twice. */
static bool changes_in_place_without_a_scope(void *context)
{
    td_scope_barrier_begin();
    td_tensor *w = leaf(3, 2), *x = td_mul(w, w), *row = td_select(x, 0, 1);
    td_tensor *changed[] = { td_mul_(x, w), td_mul_scalar_(x, td_float(2)), td_sub_(row, row),
                             td_fill_(row, td_float(2)), td_copy_(row, row), td_zero_(x) };
    td_tensor *sum = td_sum(x, (td_reduce_options){ 0 });
    const bool good = td_backward(sum, (td_backward_options){ 0 });
    assert_true(x == NULL || td_object_count(x) > 0);
    assert_true(row == NULL || td_object_count(row) > 0);
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++)
        td_release(changed[i]);
    td_release(sum);
    td_release(row);
    td_release(x);
    td_release(w);
    td_scope_barrier_end();
    return good;
}

static td_module *network(void)
{
    td_module *layers[] = { td_linear_module(6, 5, (td_linear_options){ 0 }), td_relu_module(),
                            td_linear_module(5, 3, (td_linear_options){ 0 }) };
    return td_sequential(layers, 3);
}

static bool a_training_step(void *context)
{
    td_tensor *parameters[8];
    td_module *net = network();
    const int count = td_parameters(net, parameters, 8);
    td_optimiser *sgd = td_sgd(parameters, count, 0.1, (td_sgd_options){ .momentum = 0.9 });
    td_tensor *labels = td_randint(0, 3, TD_DIMS(7), plain);
    for (int i = 0; i < 2; i++) {
        if (!td_zero_grad(sgd))
            return false;
        td_tensor *loss = td_cross_entropy(td_forward(net, matrix(7, 6)), labels, (td_cross_entropy_options){ 0 });
        if (!td_backward(loss, (td_backward_options){ 0 }) || !td_step(sgd))
            return false;
    }
    return true;
}

static bool loading_batches(void *context)
{
    td_tensor *images = td_zeros(TD_DIMS(11, 4, 3), (td_tensor_options){ .dtype = TD_UINT8 });
    td_tensor *labels = td_zeros(TD_DIMS(11), (td_tensor_options){ .dtype = TD_UINT8 });
    td_dataset *set = td_image_dataset(images, labels);
    td_loader *loader = td_data_loader(set, 4, (td_loader_options){ .shuffle = true });
    td_batch batch;
    int64_t seen = 0;
    while (td_loader_next(loader, &batch))
        seen += batch.size;
    return !td_failed() && seen == 11;
}

/* The first call of each sample of the registry, forward and backward. */
static bool one_sample(void *context)
{
    const sample *from = context;
    const char *text = from->kind == SAMPLE_UNARY ? "[3,2]t" : from->kind == SAMPLE_BINARY ? "[2,1,3] [4,1]" : from->call;
    sample_call s;
    if (!sample_read(&s, from, text) || !td_run(&s.call))
        return false;
    td_tensor *y = s.call.out[0];
    return !td_requires_grad(y) || td_backward(td_sum(y, (td_reduce_options){ 0 }), (td_backward_options){ 0 });
}

static void every_sample_survives(void **state)
{
    for (const sample *s = samples; s->name != NULL; s++)
        if (fail_each_allocation(one_sample, (void *)(uintptr_t)s) < 1)
            fail_msg("%s allocates nothing", s->name);
}

#define SWEEP(name, at_least)                          \
    static void name##_survives(void **state)          \
    {                                                  \
        (void)state;                                   \
        assert_true(fail_each_allocation(name, NULL) >= at_least);  \
    }

SWEEP(creating_and_viewing, 10)
SWEEP(elementwise, 10)
SWEEP(reducing_and_multiplying, 10)
SWEEP(a_large_product, 3)
SWEEP(backward, 20)
SWEEP(second_derivative, 20)
SWEEP(hooks_and_retained_gradients, 5)
SWEEP(changes_in_place_without_a_scope, 40)
SWEEP(a_training_step, 40)
SWEEP(loading_batches, 10)

/* A step that fails half-way leaves each parameter all old or all new. */
typedef struct {
    td_tensor *parameters[2];
    td_optimiser *sgd;
    float old[2][35], new[2][35];
} stepping;

static void copy_values(const stepping *s, float to[2][35])
{
    for (int i = 0; i < 2; i++)
        memcpy(to[i], td_data(s->parameters[i]), sizeof to[i]);
}

static void begin_step(stepping *s)
{
    td_manual_seed(5);
    for (int i = 0; i < 2; i++) {
        s->parameters[i] = leaf(5, 7);
        td_set_grad(s->parameters[i], matrix(5, 7));
    }
    s->sgd = td_sgd(s->parameters, 2, 0.1, (td_sgd_options){ .momentum = 0.9 });
    if (td_failed())
        fail_msg("%s", td_error_message());
    copy_values(s, s->old);
}

static void a_failed_step_leaves_whole_parameters(void **state)
{
    stepping s;
    td_scope_begin();
    begin_step(&s);
    assert_true(td_step(s.sgd));
    copy_values(&s, s.new);
    td_scope_end();
    bool good = false;
    for (int64_t k = 0; !good; k++) {
        assert_true(k < 1000);
        td_scope_begin();
        begin_step(&s);
        td_memory_fail_after(k);
        good = had_memory(td_step(s.sgd));
        float now[2][35];
        copy_values(&s, now);
        for (int i = 0; i < 2; i++)
            assert_true(memcmp(now[i], s.old[i], sizeof now[i]) == 0 || memcmp(now[i], s.new[i], sizeof now[i]) == 0);
        td_scope_end();
    }
}

/* Allocations are counted in one thread. */
static int begin_alone(void **state)
{
    return begin(state) || !td_set_threads(1);
}
#define ALONE(name) cmocka_unit_test_setup_teardown(name, begin_alone, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ALONE(creating_and_viewing_survives),
        ALONE(elementwise_survives),
        ALONE(reducing_and_multiplying_survives),
        ALONE(a_large_product_survives),
        ALONE(backward_survives),
        ALONE(second_derivative_survives),
        ALONE(hooks_and_retained_gradients_survives),
        ALONE(changes_in_place_without_a_scope_survives),
        ALONE(a_training_step_survives),
        ALONE(loading_batches_survives),
        ALONE(every_sample_survives),
        ALONE(a_failed_step_leaves_whole_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
