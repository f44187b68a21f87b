/* needs: parallel */
/* Parallel loops and reductions under every executor and thread count. */
#include "treadle_test.h"
#include <pthread.h>
#include "core/memory.h"
#include "core/parallel.h"
#include "core/runtime.h"

static int setup(void **state)
{
    return begin_bare(state) || !td_set_threads(4);
}

/* Tests may leave errors here, but no loop. */
static int teardown(void **state)
{
    td_error_clear();
    return end_bare(state) || td_self()->looping != 0
        || td_self()->serial != 0 || td_process()->pool.active != 0;
}
#undef CASE
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* ---- loops ----------------------------------------------------------- */

enum { MOST = 1009 };
static atomic_int visits[MOST];
static atomic_int calls, bad_parts;
static int64_t length;

static bool visit(void *context, int64_t begin, int64_t end, int worker)
{
    if (begin < 0 || end > length || begin >= end || worker < 0
        || worker >= td_threads() || context != visits)
        atomic_fetch_add(&bad_parts, 1);
    atomic_fetch_add(&calls, 1);
    for (int64_t i = begin; i < end; i++)
        atomic_fetch_add(&visits[i], 1);
    return true;
}

static void visit_all(int64_t n, int64_t grain)
{
    memset(visits, 0, sizeof visits);
    calls = bad_parts = 0;
    length = n;
    assert_true(td_parallel_for(n, grain, visit, visits));
    assert_int_equal(bad_parts, 0);
    for (int64_t i = 0; i < MOST; i++)
        assert_int_equal(visits[i], i < n);
}

static void visit_many(void *unused)
{
    const int64_t lengths[] = { 1, 2, 5, 64, 997, MOST };
    const int64_t grains[] = { -1, 0, 1, 3, 100, 5000 };
    for (int i = 0; i < 6; i++)
        for (int g = 0; g < 6; g++) {
            visit_all(lengths[i], grains[g]);
            assert_true(calls <= td_threads());
            if (lengths[i] <= grains[g])
                assert_int_equal(calls, 1);
        }
}

static void every_index_is_visited_once(void **state)
{
    under_any_threads(visit_many, NULL);
}

static void empty_loops_call_nobody(void **state)
{
    visit_all(0, 1);
    assert_int_equal(calls, 0);
    visit_all(-7, 1);
    assert_int_equal(calls, 0);
}

static int64_t sizes[8];

static bool note_size(void *context, int64_t begin, int64_t end, int worker)
{
    sizes[begin / 25] = end - begin;
    return true;
}

static void chunks_differ_by_at_most_one(void **state)
{
    memset(sizes, 0, sizeof sizes);
    assert_true(td_parallel_for(103, 1, note_size, NULL));
    const int64_t expected[] = { 26, 26, 26, 25 };
    for (int i = 0; i < 4; i++)
        assert_int_equal(sizes[i], expected[i]);
}

static bool read_enormous(void *context, int64_t begin, int64_t end,
                          int worker)
{
    atomic_fetch_add((atomic_llong *)context, end - begin);
    return true;
}

static void enormous_lengths_do_not_overflow(void **state)
{
    atomic_llong sum = 0;
    assert_true(td_parallel_for(INT64_MAX, 1, read_enormous, &sum));
    assert_int_equal(sum, INT64_MAX);
    sum = 0;
    assert_true(td_parallel_for(INT64_MAX, INT64_MAX - 1, read_enormous,
                                &sum));
    assert_int_equal(sum, INT64_MAX);
}

/* ---- failures -------------------------------------------------------- */

static bool fail_from_three(void *context, int64_t begin, int64_t end,
                            int worker)
{
    for (int64_t i = begin; i < end; i++)
        if (i >= *(int64_t *)context)
            return td_fail(TD_ERROR_INDEX, "body", "at %d", (int)i);
    return true;
}

static void fail_everywhere(void *unused)
{
    for (int64_t first = 0; first < 40; first += 13) {
        assert_false(td_parallel_for(40, 1, fail_from_three, &first));
        char expected[40];
        snprintf(expected, sizeof expected, "body: at %d", (int)first);
        assert_int_equal(td_error(), TD_ERROR_INDEX);
        assert_string_equal(td_error_message(), expected);
        td_error_clear();
        visit_all(100, 1);
    }
}

static void lowest_failing_chunk_wins(void **state)
{
    for (int i = 0; i < 20; i++)
        under_any_threads(fail_everywhere, NULL);
}

static bool fail_silently(void *context, int64_t begin, int64_t end,
                          int worker)
{
    return false;
}

static bool fail_but_say_true(void *context, int64_t begin, int64_t end,
                              int worker)
{
    td_fail(TD_ERROR_VALUE, "body", "forgotten");
    return true;
}

static void fail_oddly(void *unused)
{
    for (int64_t grain = 1; grain < 200; grain += 150) {
        assert_false(td_parallel_for(100, grain, fail_silently, NULL));
        assert_int_equal(td_error(), TD_ERROR_RUNTIME);
        td_error_clear();
        assert_false(td_parallel_for(100, grain, fail_but_say_true, NULL));
        assert_string_equal(td_error_message(), "body: forgotten");
        td_error_clear();
        visit_all(100, 1);
    }
}

static void careless_bodies_still_fail(void **state)
{
    under_any_threads(fail_oddly, NULL);
}

static void pending_error_stops_loops(void **state)
{
    double result = 5;
    calls = 0;
    td_fail(TD_ERROR_VALUE, "x", "y");
    assert_false(td_parallel_for(10, 1, visit, visits));
    assert_false(td_parallel_for(0, 1, visit, visits));
    assert_false(td_parallel_reduce(10, 1, 8, &result, NULL, NULL, NULL,
                                    &result));
    assert_int_equal(calls, 0);
    assert_false(td_set_threads(2));
    assert_false(td_set_executor(TD_EXECUTOR_SERIAL));
    td_error_clear();
    assert_int_equal(td_threads(), 4);
}

/* ---- nesting --------------------------------------------------------- */

static atomic_int inner_parts, inner_threads_differ;

static bool inner(void *context, int64_t begin, int64_t end, int worker)
{
    atomic_fetch_add(&inner_parts, 1);
    if (worker != 0 || td_worker_count() != 1
        || !pthread_equal(pthread_self(), *(pthread_t *)context))
        atomic_fetch_add(&inner_threads_differ, 1);
    return true;
}

static bool outer(void *context, int64_t begin, int64_t end, int worker)
{
    pthread_t me = pthread_self();
    for (int64_t i = begin; i < end; i++)
        if (!td_parallel_for(1000, 1, inner, &me))
            return false;
    return true;
}

static void nest(void *unused)
{
    if (td_threads() == 1 || td_get_executor() == TD_EXECUTOR_SERIAL)
        return;
    inner_parts = inner_threads_differ = 0;
    assert_true(td_parallel_for(23, 1, outer, NULL));
    assert_int_equal(inner_parts, 23);
    assert_int_equal(inner_threads_differ, 0);
}

static void inner_loops_run_serially(void **state)
{
    under_any_threads(nest, NULL);
}

static void serial_scopes_keep_the_caller_alone(void **state)
{
    td_serial_begin();
    td_serial_begin();
    td_serial_end();
    assert_int_equal(td_worker_count(), 1);
    visit_all(500, 1);
    assert_int_equal(calls, 1);
    td_serial_end();
    assert_int_equal(td_worker_count(), 4);
    visit_all(500, 1);
    assert_int_equal(calls, 4);
    td_serial_end();
    assert_string_equal(td_error_message(),
                        "serial_end: no serial scope is open");
}

static bool set_inside(void *context, int64_t begin, int64_t end,
                       int worker)
{
    if (begin == 0)
        return td_set_threads(2);
    return td_set_executor(TD_EXECUTOR_SERIAL);
}

static void settings_wait_for_the_loop(void **state)
{
    assert_false(td_parallel_for(100, 1, set_inside, NULL));
    assert_string_equal(td_error_message(), "set_threads: not possible "
                        "inside a parallel loop");
    assert_int_equal(td_threads(), 4);
}

/* ---- reductions ------------------------------------------------------ */

static float values[10007];

static bool add_up(void *context, int64_t begin, int64_t end, void *total)
{
    const float *x = context;
    for (int64_t i = begin; i < end; i++)
        *(float *)total += x[i];
    return true;
}

static void add(void *context, void *into, const void *from)
{
    *(float *)into += *(const float *)from;
}

static const float zero = 0;
static float reference[4];

static float sum_of(int64_t n, int64_t grain)
{
    float sum = -1;
    assert_true(td_parallel_reduce(n, grain, sizeof sum, &zero, add_up,
                                   add, values, &sum));
    return sum;
}

static void sums_match(void *unused)
{
    const float sums[] = { sum_of(10007, 64), sum_of(10007, 1),
                           sum_of(9001, 1000), sum_of(10007, 20000) };
    if (reference[0] == 0)
        memcpy(reference, sums, sizeof sums);
    assert_memory_equal(sums, reference, sizeof sums);
    assert_true(sum_of(0, 64) == 0);
    assert_true(sum_of(-3, 64) == 0);
}

static void reductions_give_the_same_bits(void **state)
{
    uint32_t seed = 12345;
    double exact = 0;
    for (int i = 0; i < 10007; i++) {
        seed = seed * 1664525 + 1013904223;
        values[i] = (float)seed / 4294967296.0f * 2 - 0.9f;
        exact += values[i];
    }
    memset(reference, 0, sizeof reference);
    under_any_threads(sums_match, NULL);
    assert_true(reference[0] - exact < 1e-2 && exact - reference[0] < 1e-2);
    assert_true(reference[0] != reference[3]);
}

/* Concatenation is associative but not commutative: order shows. */
static bool spell(void *context, int64_t begin, int64_t end, void *word)
{
    for (int64_t i = begin; i < end; i++)
        ((char *)word)[strlen(word)] = (char)('a' + i);
    return true;
}

static void append(void *context, void *into, const void *from)
{
    strcat(into, from);
}

static void spell_alphabet(void *unused)
{
    const char empty[27] = "";
    for (int64_t grain = 1; grain < 30; grain++) {
        char word[27];
        assert_true(td_parallel_reduce(26, grain, 27, empty, spell,
                                       append, NULL, word));
        assert_string_equal(word, "abcdefghijklmnopqrstuvwxyz");
    }
}

static void combination_keeps_the_order(void **state)
{
    under_any_threads(spell_alphabet, NULL);
}

static bool fail_late(void *context, int64_t begin, int64_t end, void *out)
{
    return end < 90 || td_fail(TD_ERROR_VALUE, "map", "block at %d",
                               (int)begin);
}

static void failed_reductions_leave_the_result(void **state)
{
    float result = 42;
    assert_false(td_parallel_reduce(100, 10, 4, &zero, fail_late, add,
                                    NULL, &result));
    assert_string_equal(td_error_message(), "map: block at 80");
    td_error_clear();
    td_memory_fail_after(0);
    assert_false(td_parallel_reduce(10007, 10, 4, &zero, add_up, add,
                                    values, &result));
    assert_int_equal(td_error(), TD_ERROR_MEMORY);
    assert_true(result == 42);
}

/* ---- scratch --------------------------------------------------------- */

static bool use_scratch(void *context, int64_t begin, int64_t end,
                        int worker)
{
    for (int64_t i = begin; i < end; i++) {
        const size_t bytes = 1000 + 700 * (size_t)i;
        unsigned char *buffer = td_scratch(bytes);
        if (!buffer || (uintptr_t)buffer % 64)
            return td_fail(TD_ERROR_VALUE, "scratch", "not aligned");
        memset(buffer, worker + 1, bytes);
        for (size_t k = 0; k < bytes; k++)
            if (buffer[k] != worker + 1)
                return td_fail(TD_ERROR_VALUE, "scratch", "shared");
    }
    return true;
}

static void use_scratch_everywhere(void *unused)
{
    const int64_t before = td_memory_stats().bytes;
    assert_true(td_parallel_for(40, 1, use_scratch, NULL));
    assert_int_equal(td_memory_stats().bytes, before);
}

static void scratch_belongs_to_its_thread(void **state)
{
    under_any_threads(use_scratch_everywhere, NULL);
}

static void *fail_scratch(void *unused)
{
    td_memory_fail_after(0);
    const bool refused = td_scratch(100) == NULL
        && td_error() == TD_ERROR_MEMORY;
    td_error_clear();
    void *buffer = td_scratch(100);
    const bool given = buffer != NULL && td_scratch(100) == buffer;
    td_memory_fail_after(0);
    const bool again = td_scratch(100000) == NULL;
    td_error_clear();
    return refused && given && again && td_scratch(0) ? values : NULL;
}

static void scratch_may_be_refused(void **state)
{
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, fail_scratch, NULL);
    pthread_join(thread, &result);
    assert_non_null(result);
    assert_null(td_scratch(SIZE_MAX));
    assert_int_equal(td_error(), TD_ERROR_MEMORY);
}

/* ---- user threads, forks, ends --------------------------------------- */

static bool count_up(void *context, int64_t begin, int64_t end, int worker)
{
    for (int64_t i = begin; i < end; i++)
        ((int *)context)[i]++;
    return true;
}

static void *loop_often(void *failure)
{
    int mine[301] = { 0 };
    for (int round = 0; round < 300; round++)
        if (!td_parallel_for(301, 1, count_up, mine))
            return failure;
    for (int i = 0; i < 301; i++)
        if (mine[i] != 300)
            return failure;
    return NULL;
}

static void loop_from_three_threads(void)
{
    pthread_t thread[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, loop_often,
                                        values), 0);
    for (int i = 0; i < 3; i++) {
        void *failure;
        pthread_join(thread[i], &failure);
        assert_null(failure);
    }
}

static void user_threads_loop_at_once(void **state)
{
    loop_from_three_threads();
    assert_true(td_set_executor(TD_EXECUTOR_SERIAL));
    loop_from_three_threads();
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static bool inside, may_leave;

static bool wait_inside(void *context, int64_t begin, int64_t end,
                        int worker)
{
    if (begin > 0)
        return true;
    pthread_mutex_lock(&gate);
    inside = true;
    pthread_cond_broadcast(&opened);
    while (!may_leave)
        pthread_cond_wait(&opened, &gate);
    pthread_mutex_unlock(&gate);
    return true;
}

static void *hold_the_pool(void *unused)
{
    td_parallel_for(4, 1, wait_inside, unused);
    return NULL;
}

static bool is_caller(void *context, int64_t begin, int64_t end, int worker)
{
    return worker == 0 && pthread_equal(pthread_self(),
                                        *(pthread_t *)context);
}

static void busy_pool_leaves_the_second_alone(void **state)
{
    pthread_t holder, me = pthread_self();
    inside = may_leave = false;
    pthread_create(&holder, NULL, hold_the_pool, NULL);
    pthread_mutex_lock(&gate);
    while (!inside)
        pthread_cond_wait(&opened, &gate);
    pthread_mutex_unlock(&gate);
    assert_true(td_parallel_for(100, 1, is_caller, &me));
    pthread_mutex_lock(&gate);
    may_leave = true;
    pthread_cond_broadcast(&opened);
    pthread_mutex_unlock(&gate);
    pthread_join(holder, NULL);
}

static int loop_and_check(void)
{
    int mine[301] = { 0 };
    if (td_get_executor() == TD_EXECUTOR_OPENMP)
        return 1;
    for (int round = 0; round < 20; round++)
        if (!td_parallel_for(301, 1, count_up, mine))
            return 2;
    for (int i = 0; i < 301; i++)
        if (mine[i] != 20)
            return 3;
    if (td_threads() > 1 && td_get_executor() == TD_EXECUTOR_POOL
        && td_process()->pool.started != td_threads() - 1)
        return 4;
    if (td_set_executor(TD_EXECUTOR_OPENMP)
        || td_error() != TD_ERROR_UNSUPPORTED)
        return 5;
    td_error_clear();
    return 0;
}

static int loop_in_child(void)
{
    const int failure = loop_and_check();
    td_runtime_stop();
    return failure;
}

static int loop_in_grandchild(void)
{
    const int here = loop_and_check();
    return here ? here : forked(loop_in_child);
}

static void fork_everywhere(void *unused)
{
    visit_all(500, 1);
    assert_int_equal(forked(loop_in_child), 0);
    assert_int_equal(forked(loop_in_grandchild), 0);
    visit_all(500, 1);
}

static void forked_children_loop(void **state)
{
    if (SANITIZED)
        skip();
    under_any_threads(fork_everywhere, NULL);
}

static void fork_waits_for_a_loop_elsewhere(void **state)
{
    if (SANITIZED)
        skip();
    pthread_t other;
    void *failure;
    int failures = 0;
    pthread_create(&other, NULL, loop_often, values);
    for (int i = 0; i < 10; i++)
        failures += forked(loop_in_child) != 0;
    pthread_join(other, &failure);
    assert_null(failure);
    assert_int_equal(failures, 0);
}

static int loop_after_the_end(void)
{
    td_runtime_stop();
    int mine[301] = { 0 };
    if (!td_parallel_for(301, 1, count_up, mine))
        return 1;
    return td_process()->pool.started != 0;
}

static void loops_after_the_end_run_alone(void **state)
{
    if (SANITIZED)
        skip();
    assert_int_equal(forked(loop_after_the_end), 0);
}

static bool exit_inside(void *context, int64_t begin, int64_t end,
                        int worker)
{
    if (begin == *(int64_t *)context)
        exit(17);
    return true;
}

static int exit_in_first_chunk(void)
{
    int64_t begin = 0;
    td_parallel_for(4, 1, exit_inside, &begin);
    return 0;
}

static int exit_in_last_chunk(void)
{
    int64_t begin = 3;
    td_parallel_for(4, 1, exit_inside, &begin);
    return 0;
}

static void exit_inside_a_loop_ends_the_process(void **state)
{
    if (SANITIZED)
        skip();
    assert_int_equal(forked(exit_in_first_chunk), 17);
    assert_int_equal(forked(exit_in_last_chunk), 17);
}

static void pool_starts_late_and_stops_for_settings(void **state)
{
    assert_true(td_set_threads(3));
    assert_int_equal(td_process()->pool.started, 0);
    visit_all(2, 1);
    assert_int_equal(td_process()->pool.started, 1);
    visit_all(500, 1);
    assert_int_equal(td_process()->pool.started, 2);
    assert_true(td_set_threads(2));
    assert_int_equal(td_process()->pool.started, 0);
}

/* ---- settings -------------------------------------------------------- */

static void wrong_settings_are_refused(void **state)
{
    const int wrong[] = { 0, -1, 257, INT32_MAX };
    for (int i = 0; i < 4; i++) {
        assert_false(td_set_threads(wrong[i]));
        assert_int_equal(td_error(), TD_ERROR_VALUE);
        td_error_clear();
        assert_int_equal(td_threads(), 4);
    }
    assert_false(td_set_executor((td_executor)3));
    assert_int_equal(td_error(), TD_ERROR_VALUE);
    td_error_clear();
    assert_false(td_set_executor((td_executor)-1));
    td_error_clear();
    assert_int_equal(td_get_executor(), TD_EXECUTOR_POOL);
}

static void openmp_is_there_or_a_clear_error(void **state)
{
    if (td_set_executor(TD_EXECUTOR_OPENMP)) {
        assert_int_equal(td_get_executor(), TD_EXECUTOR_OPENMP);
        return;
    }
    assert_int_equal(td_error(), TD_ERROR_UNSUPPORTED);
    assert_string_equal(td_error_message(), "set_executor: this library "
                        "was built without OpenMP");
    assert_int_equal(td_get_executor(), TD_EXECUTOR_POOL);
}

static void deterministic_is_a_switch(void **state)
{
    assert_false(td_is_deterministic());
    assert_true(td_set_deterministic(true));
    assert_true(td_is_deterministic());
    assert_true(td_set_deterministic(false));
    assert_false(td_is_deterministic());
}

static char *program;

static int tell(const char *what)
{
    if (strcmp(what, "threads") == 0)
        return td_threads();
    if (strcmp(what, "executor") == 0)
        return (int)td_get_executor();
    if (strcmp(what, "deterministic") == 0)
        return td_is_deterministic();
    td_threads();
    return (int)td_error();
}

static void environment_is_read_once_at_the_start(void **state)
{
    unsetenv("TREADLE_THREADS");
    unsetenv("TREADLE_NUM_THREADS");
    unsetenv("TREADLE_EXECUTOR");
    assert_int_equal(again(program, "threads", "TREADLE_THREADS", "3"), 3);
    assert_int_equal(again(program, "threads", "TREADLE_NUM_THREADS", "5"), 5);
    assert_int_equal(again(program, "threads", "UNRELATED", "5"), td_processors());
    assert_int_equal(again(program, "error", "UNRELATED", "5"), TD_OK);
    assert_int_equal(again(program, "error", "TREADLE_THREADS", "0"),
                     TD_ERROR_VALUE);
    assert_int_equal(again(program, "error", "TREADLE_THREADS", "many"),
                     TD_ERROR_VALUE);
    assert_int_equal(again(program, "executor", "TREADLE_EXECUTOR", "serial"),
                     TD_EXECUTOR_SERIAL);
    assert_int_equal(again(program, "executor", "TREADLE_EXECUTOR", "pool"),
                     TD_EXECUTOR_POOL);
    assert_int_equal(again(program, "error", "TREADLE_EXECUTOR", "openmp"),
                     td_openmp_is_built() ? TD_OK : TD_ERROR_UNSUPPORTED);
    assert_int_equal(again(program, "error", "TREADLE_EXECUTOR", "gpu"),
                     TD_ERROR_VALUE);
    assert_int_equal(again(program, "deterministic", "TREADLE_DETERMINISTIC", "1"),
                     1);
    assert_int_equal(again(program, "deterministic", "TREADLE_DETERMINISTIC", "0"),
                     0);
}

int main(int argc, char **argv)
{
    program = argv[0];
    if (argc > 1)
        return tell(argv[1]);
    const struct CMUnitTest tests[] = {
        CASE(every_index_is_visited_once),
        CASE(empty_loops_call_nobody),
        CASE(chunks_differ_by_at_most_one),
        CASE(enormous_lengths_do_not_overflow),
        CASE(lowest_failing_chunk_wins),
        CASE(careless_bodies_still_fail),
        CASE(pending_error_stops_loops),
        CASE(inner_loops_run_serially),
        CASE(serial_scopes_keep_the_caller_alone),
        CASE(settings_wait_for_the_loop),
        CASE(reductions_give_the_same_bits),
        CASE(combination_keeps_the_order),
        CASE(failed_reductions_leave_the_result),
        CASE(scratch_belongs_to_its_thread),
        CASE(scratch_may_be_refused),
        CASE(user_threads_loop_at_once),
        CASE(busy_pool_leaves_the_second_alone),
        CASE(forked_children_loop),
        CASE(fork_waits_for_a_loop_elsewhere),
        CASE(loops_after_the_end_run_alone),
        CASE(exit_inside_a_loop_ends_the_process),
        CASE(pool_starts_late_and_stops_for_settings),
        CASE(wrong_settings_are_refused),
        CASE(openmp_is_there_or_a_clear_error),
        CASE(deterministic_is_a_switch),
        CASE(environment_is_read_once_at_the_start),
    };
    return cmocka_run_group_tests_name("parallel", tests, NULL, NULL);
}
