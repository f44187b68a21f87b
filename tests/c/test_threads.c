/* needs: parallel graph modules losses optimisers random networks inspection */

/* Training with any number of threads, in several threads, and after a fork. */
#include "treadle_test.h"
#include <pthread.h>
#include <stdatomic.h>

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

/* ---- two threads on one leaf --------------------------------------------

   Writers that race may leave any numbers, but every handle, hook and node
   stays what it is, and no error is raised. */

enum { ROUNDS = SANITIZED ? 1500 : 10000, WIDE = 70 };

typedef struct { td_tensor *leaf, *result, *place; td_optimiser *sgd; atomic_bool over; } shared;
typedef struct { shared *of; void (*step)(shared *); bool good; } looping;

static void *loop(void *context)
{
    looping *l = context;
    l->good = true;
    for (int i = 0; i < ROUNDS && l->good && !atomic_load(&l->of->over); i++) {
        td_scope_begin();
        l->step(l->of);
        td_scope_end();
        l->good = !td_failed();
    }
    if (!l->good)
        print_error("%s\n", td_error_message());
    atomic_store(&l->of->over, true);
    td_error_clear();
    return NULL;
}

static void together(shared *s, void (*a)(shared *), void (*b)(shared *))
{
    looping l[2] = { { s, a, true }, { s, b, true } };
    pthread_t thread[2];
    atomic_store(&s->over, false);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, loop, &l[i]), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    assert_true(l[0].good && l[1].good);
}

static td_tensor *new_leaf(void)
{
    return td_ones(TD_DIMS(WIDE), (td_tensor_options){ .requires_grad = true });
}

static void pass(shared *s)
{
    td_backward(td_sum(td_mul(s->leaf, td_full(TD_DIMS(), td_float(2), plain)), (td_reduce_options)TD_DEFAULTS),
                (td_backward_options)TD_DEFAULTS);
}

static void drop(shared *s) { td_set_grad(s->leaf, NULL); }
static void replace(shared *s) { td_set_grad(s->leaf, td_ones(TD_DIMS(WIDE), plain)); }

static void zero(shared *s)
{
    td_tensor *g = td_grad_of(s->leaf);
    if (g != NULL)
        td_zero_(g);
}

static void copy(shared *s)
{
    td_tensor *g = td_grad_of(s->leaf);
    if (g != NULL)
        td_clone(g);
}

static void step(shared *s)
{
    td_zero_grad(s->sgd);
    td_step(s->sgd);
}

static td_tensor *no_change(void *context, td_tensor *grad)
{
    return NULL;
}

static void hang(shared *s)
{
    td_remove_hook(s->leaf, td_register_hook(s->leaf, no_change, NULL, NULL));
}

static void hang_after(shared *s)
{
    td_remove_hook(s->leaf, td_register_post_hook(s->leaf, no_change, NULL, NULL));
}

static void pass_again(shared *s)
{
    td_backward(s->result, (td_backward_options){ .retain_graph = true });
}

static void hang_on_result(shared *s)
{
    td_remove_hook(s->place, td_register_hook(s->place, no_change, NULL, NULL));
}

static void retain_and_drop(shared *s)
{
    td_tensor *y = td_detach(s->place);
    td_retain_grad(s->place);
    td_set_grad(s->place, y);
    td_set_grad(s->place, NULL);
}

/* `b` races with passes into a leaf, one after the other. */
static void during_passes(void (*b)(shared *))
{
    shared s = { .leaf = new_leaf() };
    s.sgd = td_sgd(&s.leaf, 1, 0.001, (td_sgd_options){ .momentum = 0.5 });
    together(&s, pass, b);
    td_set_grad(s.leaf, NULL);
    pass(&s);
    VALUES(td_slice(td_grad_of(s.leaf), 0, (td_opt_i64)td_some(0), (td_opt_i64)td_some(2), 1), 2, 2);
}

static void gradients_are_dropped_during_passes(void **state) { during_passes(drop); }
static void gradients_are_replaced_during_passes(void **state) { during_passes(replace); }
static void gradients_are_zeroed_during_passes(void **state) { during_passes(zero); }
static void gradients_are_copied_during_passes(void **state) { during_passes(copy); }
static void steps_are_taken_during_passes(void **state) { during_passes(step); }
static void hooks_come_and_go_during_passes(void **state) { during_passes(hang); }
static void post_hooks_come_and_go_during_passes(void **state) { during_passes(hang_after); }

/* The same with the hooks and the gradient of a result in the middle. */
static void during_passes_through(void (*b)(shared *))
{
    shared s = { .leaf = new_leaf() };
    s.place = td_mul(s.leaf, s.leaf);
    s.result = td_sum(s.place, (td_reduce_options)TD_DEFAULTS);
    together(&s, pass_again, b);
}

static void hooks_of_a_result_come_and_go_during_passes(void **state) { during_passes_through(hang_on_result); }
static void a_result_retains_its_gradient_during_passes(void **state) { during_passes_through(retain_and_drop); }

/* ---- many readers ------------------------------------------------------- */

typedef struct { pthread_barrier_t *start; td_tensor *view, *made; bool good; } reading;

static void *read_view(void *context)
{
    reading *r = context;
    pthread_barrier_wait(r->start);
    td_scope_begin();
    td_tensor *sum = td_sum(td_mul(r->view, r->view), (td_reduce_options)TD_DEFAULTS);
    r->good = td_requires_grad(r->view) && !td_is_leaf(r->view) && !td_failed();
    r->made = td_scope_end_with(sum);
    td_error_clear();
    return NULL;
}

/* view = 2 leaf when the base has changed, so the slope of its square is 8. */
static void two_threads_read_a_view_whose_base_has_changed(void **state)
{
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, 2);
    for (int round = 0; round < ROUNDS / 10; round++) {
        td_scope_begin();
        td_tensor *leaf = new_leaf(), *base = td_mul(leaf, td_ones(TD_DIMS(), plain)), *got;
        td_tensor *view = td_slice(base, 0, (td_opt_i64)td_some(1), (td_opt_i64)td_some(WIDE), 1);
        td_mul_(base, td_full(TD_DIMS(), td_float(2), plain));
        reading r[2] = { { &start, view, NULL, true }, { &start, view, NULL, true } };
        pthread_t thread[2];
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&thread[i], NULL, read_view, &r[i]), 0);
        for (int i = 0; i < 2; i++)
            pthread_join(thread[i], NULL);
        for (int i = 0; i < 2; i++) {
            assert_true(r[i].good);
            td_adopt(r[i].made);
            assert_true(td_grad(&r[i].made, 1, &leaf, 1, &got, (td_grad_options){ .retain_graph = true }));
            VALUES(td_slice(got, 0, (td_opt_i64)td_some(0), (td_opt_i64)td_some(3), 1), 0, 8, 8);
        }
        td_scope_end();
    }
    pthread_barrier_destroy(&start);
}

static void *pack(void *context, td_tensor *x)
{
    return td_retain(x);
}

static td_tensor *unpack(void *context, void *packed)
{
    return td_retain(packed);
}

/* Opens a scope and records, as any owner may who is called. */
static void free_owner(void *context)
{
    td_scope_begin();
    td_sum(td_mul(new_leaf(), new_leaf()), (td_reduce_options)TD_DEFAULTS);
    td_scope_end();
    ++*(int *)context;
}

static void *leave_all_open(void *freed)
{
    td_saved_hooks_begin((td_saved_hooks){ pack, unpack, td_release, freed, free_owner });
    td_saved_hooks_begin((td_saved_hooks){ pack, unpack, td_release, freed, free_owner });
    td_no_grad_begin();
    td_enable_grad_begin();
    td_scope_begin();
    td_exp(new_leaf());
    return NULL;
}

static void a_thread_ends_with_saving_hooks_open(void **state)
{
    const td_memory_info first = td_memory_stats();
    int freed = 0;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, leave_all_open, &freed), 0);
    pthread_join(thread, NULL);
    const td_memory_info last = td_memory_stats();
    assert_int_equal(freed, 2);
    assert_int_equal(last.live_objects, first.live_objects);
    assert_int_equal(last.bytes, first.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(learning_lowers_the_loss),
        CASE(same_bits_for_any_number_of_threads_and_executor),
        CASE(two_threads_train_two_models_as_if_alone),
        CASE(two_threads_ask_one_model),
        CASE(training_goes_on_in_a_forked_child),
        CASE(gradients_are_dropped_during_passes),
        CASE(gradients_are_replaced_during_passes),
        CASE(gradients_are_zeroed_during_passes),
        CASE(gradients_are_copied_during_passes),
        CASE(steps_are_taken_during_passes),
        CASE(hooks_come_and_go_during_passes),
        CASE(post_hooks_come_and_go_during_passes),
        CASE(hooks_of_a_result_come_and_go_during_passes),
        CASE(a_result_retains_its_gradient_during_passes),
        CASE(two_threads_read_a_view_whose_base_has_changed),
        CASE(a_thread_ends_with_saving_hooks_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
