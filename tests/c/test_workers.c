/* needs: workers transforms */
/* Loaders that make batches ahead in a thread; maps over datasets. */
#include "treadle_test.h"
#include <signal.h>

enum { N = 23 };
typedef struct { int calls, fails_at; } source;

static bool make(void *context, const int64_t *index, int64_t n, td_tensor **input, td_tensor **target)
{
    source *s = context;
    if (++s->calls == s->fails_at)
        return td_fail(TD_ERROR_CALLBACK, "camera", "no light in batch %d", s->calls);
    *input = td_rand(TD_DIMS(n, 2), plain);
    *target = td_empty(TD_DIMS(n), (td_tensor_options){ .dtype = TD_INT64 });
    for (int64_t i = 0; i < n; i++)
        ((int64_t *)td_data(*target))[i] = index[i];
    return true;
}

static int64_t epoch(td_loader *l, int64_t *labels, float *drawn)
{
    int64_t n = 0;
    td_batch b;
    td_scope_begin();
    while (td_loader_next(l, &b)) {
        assert_int_equal(td_size(b.target, 0), b.size);
        for (int64_t i = 0; i < b.size; i++) {
            labels[n] = ((int64_t *)td_data(b.target))[i];
            drawn[n++] = ((float *)td_data(b.input))[2 * i];
        }
        td_scope_end();
        td_scope_begin();
    }
    td_scope_end();
    return n;
}

static void the_order_is_that_of_a_loader_without(void **state)
{
    for (int shuffle = 0; shuffle < 2; shuffle++)
        for (int drop = 0; drop < 2; drop++) {
            int64_t expected[2 * N], got[2 * N];
            float drawn[2 * N], before[N] = { 0 };
            for (int ahead = 0; ahead < 4; ahead++) {
                source s = { 0 };
                td_scope_begin();
                td_manual_seed(3);
                td_loader *l = td_data_loader(td_dataset_new(N, make, &s, NULL), 5,
                    (td_loader_options){ shuffle, drop, ahead });
                int64_t *here = ahead ? got : expected, all = drop ? 20 : N;
                assert_int_equal(epoch(l, here, drawn), all);
                if (ahead == 1 || !shuffle)
                    assert_int_equal(epoch(l, here + all, drawn + all), all);
                if (ahead)
                    assert_memory_equal(got, expected, (size_t)all * sizeof *got);
                if (ahead == 1)
                    memcpy(before, drawn, sizeof before);
                if (ahead > 1)      /* draws depend on neither depth nor time */
                    assert_memory_equal(before, drawn, (size_t)all * sizeof *drawn);
                if (ahead && !shuffle)
                    assert_true(drawn[0] != drawn[all]);
                td_scope_end();
            }
        }
}

static void an_epoch_can_be_left_and_begun_again(void **state)
{
    static source s;    /* outlives the test, as the thread does */
    td_batch b;
    int64_t labels[N];
    float drawn[N];
    td_loader *l = td_data_loader(td_dataset_new(N, make, &s, NULL), 2, (td_loader_options){ .prefetch = 3 });
    for (int i = 0; i < 3; i++)
        assert_true(td_loader_next(l, &b));
    td_loader_rewind(l);
    assert_int_equal(epoch(l, labels, drawn), N);
    for (int i = 0; i < N; i++)
        assert_int_equal(labels[i], i);
    assert_true(td_loader_next(l, &b));
}                       /* the scope of the test releases a loader that is at work */

static void a_failure_arrives_where_the_batch_is_taken(void **state)
{
    static source s;    /* outlives the test, as the thread does */
    s = (source){ .fails_at = 2 };
    td_batch b;
    td_loader *l = td_data_loader(td_dataset_new(N, make, &s, NULL), 5, (td_loader_options){ .prefetch = 2 });
    assert_true(td_loader_next(l, &b));
    assert_false(td_loader_next(l, &b));
    assert_null(b.input);
    expect_error(TD_ERROR_CALLBACK, "no light in batch 2");
    assert_true(td_loader_next(l, &b));
    assert_int_equal(((int64_t *)td_data(b.target))[0], 5);
}

static int in_child(void *loader)
{
    td_batch b;
    if (!td_loader_next(loader, &b) || ((int64_t *)td_data(b.target))[0] != 5)
        return 1;
    td_release(loader);
    return 0;
}

static void a_forked_child_makes_its_own(void **state)
{
    static source s;
    td_batch b;
    td_loader *l = td_data_loader(td_dataset_new(N, make, &s, NULL), 5, (td_loader_options){ .prefetch = 2 });
    assert_true(td_loader_next(l, &b));
    const pid_t child = fork();
    if (child == 0)
        _exit(in_child(td_retain(l)));
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(td_loader_next(l, &b));
}

static td_tensor *doubled(void *calls, td_tensor *x)
{
    return ++*(int *)calls == 2 ? NULL : td_add(x, x);
}

static td_tensor *as_it_is(void *unused, td_tensor *x)
{
    return x;
}

static void a_map_changes_the_inputs(void **state)
{
    td_tensor *x = td_arange(td_float(0), td_float(6), td_float(1), plain);
    td_dataset *d = td_tensor_dataset(td_reshape(x, TD_DIMS(3, 2)), td_reshape(x, TD_DIMS(3, 2)));
    int calls = 0;
    const int64_t index[] = { 2, 0 };
    td_tensor *input, *target;
    d = td_map_dataset(d, doubled, &calls);
    assert_true(td_dataset_get(d, index, 2, &input, &target));
    const float wanted[] = { 8, 10, 0, 2 };
    assert_memory_equal(td_data(input), wanted, sizeof wanted);
    assert_true(((float *)td_data(target))[0] == 4);
    assert_false(td_dataset_get(d, index, 2, &input, &target));
    expect_error(TD_ERROR_RUNTIME, "recorded no error");
    d = td_map_dataset(td_tensor_dataset(td_reshape(x, TD_DIMS(3, 2)), td_reshape(x, TD_DIMS(3, 2))), as_it_is, NULL);
    assert_true(td_dataset_get(d, index, 2, &input, &target));
    assert_memory_equal(td_data(input), td_data(target), sizeof wanted);
    refused(td_map_dataset(NULL, doubled, NULL), TD_ERROR_VALUE, "map_dataset");
    refused(td_tensor_dataset(x, td_reshape(x, TD_DIMS(3, 2))), TD_ERROR_RUNTIME, "3 rows");
}

/* ---- a place kept, and found again -------------------------------------- */

static td_tensor *cut_and_mirrored(void *unused, td_tensor *x)
{
    return td_random_horizontal_flip(td_random_crop(x, 3, 3, 1), 0.5);
}

static td_dataset *pictures(void)
{
    td_tensor *bytes = td_empty(TD_DIMS(N, 2, 4, 5), (td_tensor_options){ .dtype = TD_UINT8 });
    td_tensor *labels = td_empty(TD_DIMS(N), (td_tensor_options){ .dtype = TD_UINT8 });
    for (int i = 0; i < N * 40; i++)
        ((uint8_t *)td_data(bytes))[i] = (uint8_t)(37 * i + i / 40);
    for (int i = 0; i < N; i++)
        ((uint8_t *)td_data(labels))[i] = (uint8_t)i;
    return td_map_dataset(td_image_dataset(bytes, labels), cut_and_mirrored, NULL);
}

enum { SEEN = 3 * N * 19 };

/* What is left of `epochs`, all numbers of it; the training draws, too. */
static int64_t learn(td_loader *l, int epochs, int64_t stop, double *seen)
{
    int64_t n = 0;
    td_batch b;
    while (epochs > 0 && stop != 0) {
        td_scope_begin();
        if (td_loader_next(l, &b)) {
            const int64_t size = td_numel(b.input);
            for (int64_t i = 0; i < size; i++)
                seen[n++] = ((float *)td_data(b.input))[i];
            for (int64_t i = 0; i < b.size; i++)
                seen[n++] = (double)((int64_t *)td_data(b.target))[i];
            seen[n++] = td_item_double(td_rand((td_dims){ 0 }, plain));
            stop--;
        } else {
            assert_false(td_failed());
            epochs--;
        }
        td_scope_end();
    }
    return n;
}

static td_random_state numbers_now(void)
{
    const td_random_state now = td_random_swap((td_random_state){ 0 });
    td_random_swap(now);
    return now;
}

/* Left after each number of batches, with the same and another depth. */
static void an_epoch_goes_on_to_the_same_bits(void **state)
{
    static double straight[3 * SEEN], again[3 * SEEN];
    for (int shuffle = 0; shuffle < 2; shuffle++)
        for (int ahead = 0; ahead < 4; ahead += 1 + ahead)
            for (int64_t left = 0; left < 10; left += 1 + left % 2) {
                const td_loader_options options = { .shuffle = shuffle, .prefetch = ahead };
                const td_loader_options deeper = { .shuffle = shuffle, .prefetch = ahead ? ahead + 2 : 0 };
                td_scope_begin();
                td_manual_seed(7);
                td_loader *l = td_data_loader(pictures(), 5, options);
                const int64_t before = learn(l, 3, left, straight);
                const td_loader_place place = td_loader_tell(l);
                const td_random_state numbers = numbers_now();
                const int epochs = left < 5 ? 3 : 2;
                const int64_t wanted = learn(l, epochs, -1, straight + before);
                td_manual_seed(99);
                td_loader *other = td_data_loader(pictures(), 5, deeper);
                if (left % 3 == 1)       /* it was at work elsewhere */
                    learn(other, 1, 2, again);
                assert_true(td_loader_seek(other, place));
                td_random_swap(numbers);
                assert_int_equal(td_loader_tell(other).next, place.next);
                assert_int_equal(learn(other, epochs, -1, again), wanted);
                assert_memory_equal(again, straight + before, (size_t)wanted * sizeof *again);
                td_scope_end();
            }
}

/* The place goes through a pipe from a process that is killed. */
static void a_killed_run_goes_on_to_the_same_bits(void **state)
{
    static double straight[3 * SEEN], again[3 * SEEN];
    struct { td_loader_place place; td_random_state numbers; int64_t seen; } kept, last = { .seen = -1 };
    int ends[2];
    for (int64_t left = 2; left < 9; left += 5) {
        assert_int_equal(pipe(ends), 0);
        const pid_t child = fork();
        if (child == 0) {
            td_manual_seed(7);
            td_loader *l = td_data_loader(pictures(), 5, (td_loader_options){ .shuffle = true, .prefetch = 2 });
            kept.seen = learn(l, 3, left, again);
            kept.place = td_loader_tell(l), kept.numbers = numbers_now();
            if (write(ends[1], &kept, sizeof kept) == (ssize_t)sizeof kept)
                learn(l, 1, 1, again);
            raise(SIGKILL);
        }
        close(ends[1]);
        assert_int_equal(read(ends[0], &last, sizeof last), sizeof last);
        close(ends[0]);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        td_scope_begin();
        td_manual_seed(7);
        const int64_t all = learn(td_data_loader(pictures(), 5, (td_loader_options){ .shuffle = true, .prefetch = 1 }),
                                  3, -1, straight);
        td_loader *l = td_data_loader(pictures(), 5, (td_loader_options){ .shuffle = true, .prefetch = 3 });
        assert_true(td_loader_seek(l, last.place));
        td_random_swap(last.numbers);
        assert_int_equal(learn(l, left < 5 ? 3 : 2, -1, again) + last.seen, all);
        assert_memory_equal(again, straight + last.seen, (size_t)(all - last.seen) * sizeof *again);
        td_scope_end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_order_is_that_of_a_loader_without),
        CASE(an_epoch_can_be_left_and_begun_again),
        CASE(a_failure_arrives_where_the_batch_is_taken),
        CASE(a_forked_child_makes_its_own),
        CASE(a_map_changes_the_inputs),
        CASE(an_epoch_goes_on_to_the_same_bits),
        CASE(a_killed_run_goes_on_to_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
