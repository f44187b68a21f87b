/* needs: parallel graph modules losses optimisers random networks */

/* Training with any number of threads, in several threads, and after a fork. */
#include "treadle_test.h"
#include <pthread.h>

enum { INPUTS = 37, HIDDEN = 67, CLASSES = 5, BATCH = 131, STEPS = 7, WEIGHTS = 4 };

/* The losses of a run, and all parameters at its end. */
typedef struct {
    uint64_t seed;
    double loss[STEPS];
    float parameters[WEIGHTS][INPUTS * HIDDEN];
    bool good;
} run;

static td_module *network(void)
{
    td_module *layers[] = { td_linear_module(INPUTS, HIDDEN, (td_linear_options){ 0 }), td_relu_module(),
                            td_linear_module(HIDDEN, CLASSES, (td_linear_options){ 0 }) };
    return td_sequential(layers, 3);
}

static void train(run *r)
{
    td_scope_begin();
    td_manual_seed(r->seed);
    td_tensor *parameters[WEIGHTS];
    td_module *net = network();
    td_parameters(net, parameters, WEIGHTS);
    td_optimiser *sgd = td_sgd(parameters, WEIGHTS, 0.05, (td_sgd_options){ .momentum = 0.9 });
    td_tensor *x = td_randn(TD_DIMS(BATCH, INPUTS), (td_tensor_options){ 0 });
    td_tensor *labels = td_randint(0, CLASSES, TD_DIMS(BATCH), (td_tensor_options){ 0 });
    for (int i = 0; i < STEPS; i++) {
        td_scope_begin();
        td_zero_grad(sgd);
        td_tensor *loss = td_cross_entropy(td_forward(net, x), labels, (td_cross_entropy_options){ 0 });
        td_backward(loss, (td_backward_options){ 0 });
        td_step(sgd);
        r->loss[i] = td_failed() ? -1 : td_item_double(loss);
        td_scope_end();
    }
    r->good = !td_failed();
    for (int i = 0; r->good && i < WEIGHTS; i++)
        memcpy(r->parameters[i], td_data(parameters[i]), (size_t)td_numel(parameters[i]) * sizeof(float));
    td_scope_end();
}

static void assert_same(const run *a, const run *b)
{
    assert_true(a->good && b->good);
    assert_memory_equal(a->loss, b->loss, sizeof a->loss);
    assert_memory_equal(a->parameters, b->parameters, sizeof a->parameters);
}

static void learning_lowers_the_loss(void **state)
{
    static run r = { .seed = 3 };
    train(&r);
    assert_true(r.good && r.loss[STEPS - 1] < r.loss[0] && r.loss[STEPS - 1] > 0);
}

static void train_once_more(void *first)
{
    static run next = { .seed = 11 };
    train(&next);
    assert_same(first, &next);
}

static void same_bits_for_any_number_of_threads_and_executor(void **state)
{
    static run first = { .seed = 11 };
    assert_true(td_set_executor(TD_EXECUTOR_SERIAL));
    train(&first);
    under_any_threads(train_once_more, &first);
}

static void *train_in_thread(void *context)
{
    train(context);
    return NULL;
}

static void two_threads_train_two_models_as_if_alone(void **state)
{
    static run alone[2], together[2];
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) {
        alone[i].seed = together[i].seed = (uint64_t)(20 + i);
        train(&alone[i]);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, train_in_thread, &together[i]), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    for (int i = 0; i < 2; i++)
        assert_same(&alone[i], &together[i]);
}

typedef struct { td_module *net; td_tensor *x; float out[BATCH * CLASSES]; bool good; } asking;

static void *ask(void *context)
{
    asking *a = context;
    a->good = true;
    td_no_grad_begin();
    for (int i = 0; i < 20; i++) {
        td_scope_begin();
        td_tensor *y = td_forward(a->net, a->x);
        if (y)
            memcpy(a->out, td_data(y), sizeof a->out);
        a->good = a->good && y;
        td_scope_end();
    }
    td_no_grad_end();
    return NULL;
}

static void two_threads_ask_one_model(void **state)
{
    static asking a[3];
    pthread_t thread[2];
    td_scope_begin();
    td_manual_seed(2);
    td_module *net = network();
    td_tensor *x = td_randn(TD_DIMS(BATCH, INPUTS), (td_tensor_options){ 0 });
    for (int i = 0; i < 3; i++)
        a[i].net = net, a[i].x = x;
    ask(&a[2]);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, ask, &a[i]), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
        assert_true(a[i].good);
        assert_memory_equal(a[i].out, a[2].out, sizeof a[2].out);
    }
    td_scope_end();
}

static run before, after;

static int train_in_child(void)
{
    train(&after);
    return !after.good || memcmp(&before, &after, sizeof before) != 0;
}

static void training_goes_on_in_a_forked_child(void **state)
{
    if (SANITIZED)
        skip();
    before.seed = after.seed = 31;
    train(&before);
    assert_int_equal(forked(train_in_child), 0);
    train(&after);
    assert_same(&before, &after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(learning_lowers_the_loss),
        CASE(same_bits_for_any_number_of_threads_and_executor),
        CASE(two_threads_train_two_models_as_if_alone),
        CASE(two_threads_ask_one_model),
        CASE(training_goes_on_in_a_forked_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
