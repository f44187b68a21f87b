/* needs: networks */
/* The classifier of the chapter: it learns, its losses are known and do not
   depend on threads, it leaves nothing behind and does not grow. */
#include "treadle_test.h"
#include <pthread.h>
static FILE *progress;                   /* where its progress line goes */
#define main the_classifier
#undef stderr
#define stderr progress
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"   /* its `plain` is not ours */
#include "../examples/classifier.c"
#pragma GCC diagnostic pop
#undef stderr
#define stderr stderr
#undef main
int the_classifier(int argc, char **argv);

/* Stripes: class k is bright in rows 2 k and 2 k + 1, under noise. */
static td_dataset *stripes(int64_t n)
{
    const td_tensor_options bytes = { .dtype = TD_UINT8 };
    td_tensor *images = td_randint(0, 100, TD_DIMS(n, 28, 28), bytes);
    td_tensor *labels = td_randint(0, 10, TD_DIMS(n), bytes);
    uint8_t *p = td_data(images);
    for (int64_t i = 0; i < n; i++) {
        const int k = ((uint8_t *)td_data(labels))[i];
        for (int j = 0; j < 56; j++)
            p[i * 784 + k * 56 + j] = (uint8_t)(p[i * 784 + j] + 100);
    }
    return td_image_dataset(images, labels);
}

static training small_training(int64_t images)
{
    training t = { .epochs = 1, .rate = 0.02 };
    td_manual_seed(1);
    t.net = build_network();
    t.train = stripes(images);
    t.test = stripes(500);
    t.loader = td_data_loader(t.train, 64,
                              (td_loader_options){ .shuffle = true });
    td_tensor *parameters[6];
    assert_int_equal(td_parameters(t.net, parameters, 6), 6);
    t.sgd = td_sgd(parameters, 6, 0.05, (td_sgd_options){
        .momentum = 0.9 });
    assert_false(td_failed());
    return t;
}

static void the_network_has_the_parameters_of_the_chapter(void **state)
{
    td_tensor *p[6];
    int64_t numbers = 0;
    assert_int_equal(td_parameters(build_network(), p, 6), 6);
    for (int i = 0; i < 6; i++)
        numbers += td_numel(p[i]);
    assert_int_equal(numbers, 235146);
}

static void stripes_are_learned(void **state)
{
    training t = small_training(2000);
    assert_int_equal(train_epoch(&t, 1), 32);
    assert_int_equal(train_epoch(&t, 2), 32);
    assert_true(count_correct(t.net, t.test) > 475);
    assert_false(td_failed());
}

static void nothing_is_left_after_a_step(void **state)
{
    training t = small_training(640);
    t.steps = 1;
    train_epoch(&t, 1);              /* gradients and buffers appear */
    const td_memory_info before = td_memory_stats();
    t.steps = 9;
    assert_int_equal(train_epoch(&t, 1), 8);
    count_correct(t.net, t.test);
    assert_int_equal(before.live_nodes, 0);
    assert_true(counters_are_back(before));
}

static void an_epoch_does_not_grow(void **state)
{
    training t = small_training(6400);
    t.steps = 10;
    train_epoch(&t, 1);
    td_memory_reset_peak();
    const int64_t after_a_tenth = td_memory_stats().peak_bytes;
    t.steps = 0;
    train_epoch(&t, 1);
    const int64_t grown = td_memory_stats().peak_bytes - after_a_tenth;
    assert_true(grown < 2000000);
}

static void a_failing_allocation_stops_and_leaves_nothing(void **state)
{
    for (int64_t n = 0; n < 90; n += 7) {
        td_scope_begin();
        training t = small_training(128);
        td_memory_fail_after(n);
        train_epoch(&t, 1);
        assert_false(had_memory(!td_failed()));
        assert_int_equal(td_live_node_count(), 0);
        assert_int_equal(train_epoch(&t, 2) > 0, 1);
        assert_false(td_failed());
        td_scope_end();
    }
}

static void *train_alone(void *out)
{
    td_scope_begin();
    training t = small_training(640);
    train_epoch(&t, 1);
    *(double *)out = td_failed() ? -1 : t.total;
    td_scope_end();
    return NULL;
}

static void two_threads_train_two_models(void **state)
{
    pthread_t thread[2];
    double alone, total[2];
    train_alone(&alone);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, train_alone,
                                        &total[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    assert_true(alone > 0 && total[0] == alone && total[1] == alone);
}

static void train_once_more(void *total)
{
    double now;
    train_alone(&now);
    assert_true(now == *(double *)total);
}

static void bits_do_not_depend_on_threads_or_executor(void **state)
{
    double total;
    train_alone(&total);
    under_any_threads(train_once_more, &total);
}

/* ---- real images -------------------------------------------------------------- */

static bool real(training *t, bool digits)
{
    *t = (training){ .epochs = 5, .digits = digits,
                     .rate = digits ? 0.05 : 0.02 };
    prepare_training(t);
    if (!td_failed())
        return true;
    print_message("skipped: %s\n", td_error_message());
    td_error_clear();
    return false;
}

static void first_losses_are_known(void **state)
{
    training t;
    const double known[] = { 2.29772234, 2.28832126, 2.29528642 };
    if (!real(&t, false))
        skip();
    comparison c = { 0 };
    for (int i = 0; i < 3; i++) {
        td_batch batch;
        assert_true(td_loader_next(t.loader, &batch));
        compare(&c, learn_batch(t.net, t.sgd, &batch), known[i], 1e-5);
    }
    expect_right(c, "losses");
}

static bool wanted_long(void)
{
    const char *set = getenv("CI_LONG");
    return set && strcmp(set, "1") == 0;
}

static void clothes_are_recognised(void **state)
{
    training t;
    if (!real(&t, false))
        skip();
    if (!wanted_long())
        t.steps = 300;
    double percent = 0;
    for (int epoch = 1; epoch <= t.epochs && !finished(&t); epoch++) {
        train_epoch(&t, epoch);
        percent = (double)count_correct(t.net, t.test) / 100;
    }
    print_message("clothes: %.2f %% right\n", percent);
    assert_true(percent >= (wanted_long() ? 86 : 72));
}

static void digits_are_recognised(void **state)
{
    training t;
    if (!real(&t, true))
        skip();
    if (!wanted_long())
        t.steps = 300;
    double percent = 0, mean = 0;
    for (int epoch = 1; epoch <= t.epochs && !finished(&t); epoch++) {
        const int steps = train_epoch(&t, epoch);
        percent = (double)count_correct(t.net, t.test) / 100;
        mean = epoch == 1 ? t.total / steps : mean;
    }
    print_message("digits: %.2f %% right\n", percent);
    assert_true(percent >= (wanted_long() ? 97.5 : 88));
    assert_true(mean < 0.6 && (!wanted_long() || mean <= 0.33));
}

/* ---- the program ----------------------------------------------------------------- */

static int run_with(char **arguments)
{
    int n = 0;
    while (arguments[n])
        n++;
    FILE *kept = stdout;
    stdout = progress;
    const int result = the_classifier(n, arguments);
    stdout = kept;
    td_error_clear();
    return result;
}

static void wrong_options_and_folders_end_with_a_status(void **state)
{
    assert_int_equal(run_with((char *[]){ "classifier", "--help", NULL }),
                     2);
    assert_int_equal(run_with((char *[]){ "classifier", "--lr", NULL }), 2);
    assert_int_equal(run_with((char *[]){ "classifier", "--data",
                                          "/nonexistent", NULL }), 1);
    assert_int_equal(run_with((char *[]){ "classifier", "--losses",
                                          "/nonexistent/file", NULL }), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_network_has_the_parameters_of_the_chapter),
        CASE(stripes_are_learned),
        CASE(nothing_is_left_after_a_step),
        CASE(an_epoch_does_not_grow),
        CASE(a_failing_allocation_stops_and_leaves_nothing),
        CASE(two_threads_train_two_models),
        CASE(bits_do_not_depend_on_threads_or_executor),
        CASE(first_losses_are_known),
        CASE(clothes_are_recognised),
        CASE(digits_are_recognised),
        CASE(wrong_options_and_folders_end_with_a_status),
    };
    progress = fopen("/dev/null", "w");
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fclose(progress);
    return failed;
}
