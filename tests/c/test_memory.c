/* needs: memory */
/* Errors, allocation, objects, scopes, and the runtime's start and end. */
#include "treadle_test.h"
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/types.h>
#include "core/error.h"
#include "core/memory.h"
#include "core/object.h"
#include "core/runtime.h"

/* A thread whose wind is another: enough to build chains and trees. */
typedef struct yarn {
    td_object object;
    int id;
    struct yarn *held[2];
} yarn;

static int destroyed, last_destroyed;

static void yarn_destroy(void *object)
{
    yarn *y = object;
    destroyed++;
    last_destroyed = y->id;
    td_release(y->held[0]);
    td_release(y->held[1]);
}

static const td_class yarn_class = { "yarn", yarn_destroy,
                                     TD_COUNT_OTHERS };

static yarn *spin(int id)
{
    yarn *y = td_object_new(&yarn_class, sizeof *y);
    if (y != NULL)
        y->id = id;
    return y;
}

static char *program;

static int setup(void **state)
{
    destroyed = 0;
    return begin_bare(state);
}

/* Tests may leave errors here, but no scope, loan or dying object. */
static int teardown(void **state)
{
    td_error_clear();
    return end_bare(state) || td_self()->depth != 0
        || td_self()->loans != 0 || td_self()->dying != NULL;
}
#undef CASE
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* ---- errors ---------------------------------------------------------- */

static void nothing_is_pending_at_first(void **state)
{
    assert_false(td_failed());
    assert_int_equal(td_error(), TD_OK);
    assert_string_equal(td_error_message(), "");
    assert_string_equal(td_error_operation(), "");
}

static void fail_records_code_operation_and_text(void **state)
{
    assert_false(td_fail(TD_ERROR_INDEX, "select", "axis %d of %d", 3, 2));
    assert_true(td_failed());
    assert_int_equal(td_error(), TD_ERROR_INDEX);
    assert_string_equal(td_error_operation(), "select");
    assert_string_equal(td_error_message(), "select: axis 3 of 2");
}

static void first_error_wins(void **state)
{
    td_fail(TD_ERROR_VALUE, "first", "cause");
    td_fail(TD_ERROR_MEMORY, "second", "consequence");
    assert_int_equal(td_error(), TD_ERROR_VALUE);
    assert_string_equal(td_error_message(), "first: cause");
    td_error_clear();
    assert_false(td_failed());
    assert_string_equal(td_error_message(), "");
    td_fail(TD_ERROR_IO, "third", "again");
    assert_int_equal(td_error(), TD_ERROR_IO);
}

static void long_errors_are_cut_and_ended(void **state)
{
    char text[4000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    td_fail(TD_ERROR_VALUE, text, "%s", text);
    assert_true(strlen(td_error_operation()) < 48);
    assert_true(strlen(td_error_message()) < 464);
    assert_true(strlen(td_error_message()) > 400);
}

static void failing_allocates_nothing(void **state)
{
    td_memory_fail_after(0);
    const int64_t before = td_memory_stats().allocations;
    td_fail(TD_ERROR_VALUE, "op", "%d %s %g", 1, "two", 3.0);
    assert_int_equal(td_memory_stats().allocations, before);
    assert_string_equal(td_error_message(), "op: 1 two 3");
}

static void *failing_thread(void *out)
{
    if (td_failed())
        return NULL;
    td_fail(TD_ERROR_TYPE, "other", "thread");
    td_error_take(out);
    return td_failed() ? NULL : out;
}

static void errors_belong_to_their_thread(void **state)
{
    pthread_t thread;
    td_error_record record;
    void *result;
    td_fail(TD_ERROR_VALUE, "mine", "stays");
    pthread_create(&thread, NULL, failing_thread, &record);
    pthread_join(thread, &result);
    assert_ptr_equal(result, &record);
    assert_string_equal(td_error_message(), "mine: stays");
    td_error_clear();
    assert_false(td_error_restore(&record));
    assert_int_equal(td_error(), TD_ERROR_TYPE);
    assert_string_equal(td_error_message(), "other: thread");
}

static void restoring_does_not_replace(void **state)
{
    const td_error_record other = { TD_ERROR_IO, "b", "b: later" };
    const td_error_record none = { TD_OK, "", "" };
    assert_true(td_error_restore(&none));
    assert_false(td_failed());
    td_fail(TD_ERROR_VALUE, "a", "sooner");
    assert_false(td_error_restore(&other));
    assert_string_equal(td_error_message(), "a: sooner");
}

static void pending_error_stops_producers(void **state)
{
    td_scope_begin();
    yarn *y = spin(1);
    td_fail(TD_ERROR_VALUE, "x", "y");
    assert_null(spin(2));
    assert_null(td_object_new_unscoped(&yarn_class, sizeof(yarn)));
    assert_null(td_share(y));
    assert_null(td_scope_end_with(y));
    assert_int_equal(destroyed, 1);
    assert_true(td_failed());
}

/* ---- allocation ------------------------------------------------------ */

static void records_are_zeroed(void **state)
{
    const char zero[173] = { 0 };
    char *block = td_alloc(173);
    assert_non_null(block);
    assert_memory_equal(block, zero, 173);
    td_free(block, 173);
    int64_t *array = td_alloc_array(7, sizeof *array);
    assert_non_null(array);
    assert_memory_equal(array, zero, 56);
    td_free(array, 56);
    td_free(NULL, 0);
}

static void storage_is_aligned_and_counted(void **state)
{
    const td_memory_info before = td_memory_stats();
    const size_t sizes[] = { 0, 1, 63, 64, 65, TD_LARGE };
    void *data[6];
    int64_t sum = 0;
    for (int i = 0; i < 6; i++) {
        data[i] = td_storage_alloc(sizes[i]);
        assert_non_null(data[i]);
        assert_int_equal((uintptr_t)data[i] % TD_ALIGNMENT, 0);
        memset(data[i], i, sizes[i]);
        sum += (int64_t)sizes[i];
    }
    assert_int_equal((uintptr_t)data[5] % 4096, 0);
    assert_int_equal(td_memory_stats().bytes, before.bytes + sum);
    assert_int_equal(td_memory_stats().allocations,
                     before.allocations + 6);
    for (int i = 0; i < 6; i++)
        td_storage_free(data[i], sizes[i]);
    td_storage_free(NULL, 100);
    assert_int_equal(td_memory_stats().bytes, before.bytes);
    assert_true(td_memory_stats().peak_bytes >= before.bytes + sum);
}

static void peak_is_the_most_at_one_time(void **state)
{
    const int64_t before = td_memory_stats().bytes;
    td_memory_reset_peak();
    assert_int_equal(td_memory_stats().peak_bytes, before);
    void *a = td_storage_alloc(1000);
    void *b = td_storage_alloc(3000);
    td_storage_free(a, 1000);
    a = td_storage_alloc(500);
    assert_int_equal(td_memory_stats().peak_bytes, before + 4000);
    td_storage_free(b, 3000);
    td_memory_reset_peak();
    assert_int_equal(td_memory_stats().peak_bytes, before + 500);
    td_storage_free(a, 500);
}

static void fail_after_counts_down_once(void **state)
{
    for (int n = 0; n < 4; n++) {
        td_memory_fail_after(n);
        for (int i = 0; i < 6; i++) {
            void *block = i % 2 ? td_alloc(8) : td_storage_alloc(8);
            assert_int_equal(block == NULL, i == n);
            assert_int_equal(td_error(),
                             i == n ? TD_ERROR_MEMORY : TD_OK);
            td_error_clear();
            if (i % 2)
                td_free(block, 8);
            else
                td_storage_free(block, 8);
        }
    }
}

static void fail_after_negative_never_fails(void **state)
{
    td_memory_fail_after(0);
    td_memory_fail_after(-5);
    void *block = td_alloc(8);
    assert_non_null(block);
    td_free(block, 8);
    td_memory_fail_after(INT64_MAX);
    block = td_alloc(8);
    assert_non_null(block);
    td_free(block, 8);
}

static void failed_allocation_is_a_memory_error(void **state)
{
    td_memory_fail_after(0);
    assert_null(td_storage_alloc(12345));
    assert_string_equal(td_error_message(),
                        "memory: cannot allocate 12345 bytes");
    td_error_clear();
    td_memory_fail_after(0);
    const td_memory_info before = td_memory_stats();
    assert_null(spin(1));
    assert_int_equal(td_memory_stats().live_objects, before.live_objects);
}

static void absurd_sizes_are_refused(void **state)
{
    const int64_t bytes = td_memory_stats().bytes;
    assert_null(td_storage_alloc(SIZE_MAX));
    td_error_clear();
    assert_null(td_storage_alloc((size_t)PTRDIFF_MAX + 1));
    td_error_clear();
    assert_null(td_alloc(SIZE_MAX - 8));
    td_error_clear();
    assert_null(td_alloc_array(SIZE_MAX / 2, 4));
    assert_int_equal(td_error(), TD_ERROR_MEMORY);
    assert_int_equal(td_memory_stats().bytes, bytes);
}

static void sizes_are_checked(void **state)
{
    int64_t out = -1;
    assert_true(td_mul_size(3, 5, &out));
    assert_int_equal(out, 15);
    assert_true(td_mul_size(0, INT64_MAX, &out));
    assert_int_equal(out, 0);
    assert_true(td_mul_size(INT64_MAX, 1, &out));
    assert_false(td_mul_size(INT64_C(1) << 32, INT64_C(1) << 31, &out));
    assert_false(td_mul_size(-1, 5, &out));
    assert_false(td_mul_size(5, -1, &out));
    assert_true(td_add_size(INT64_MAX - 1, 1, &out));
    assert_int_equal(out, INT64_MAX);
    assert_false(td_add_size(INT64_MAX, 1, &out));
    assert_false(td_add_size(-1, 1, &out));
}

/* ---- memory that comes back ------------------------------------------ */

/* What a thread may keep, and more than that. */
enum { POCKET = 1 << 20, MANY = 3000, RECORD = 1000 };

static void skip_if_plain(void)
{
    if (td_process()->plain)
        skip();
    td_memory_trim();
}

static int64_t asked(void)
{
    return td_memory_stats().system_allocations;
}

static int64_t kept(void)
{
    return td_memory_stats().cached_bytes;
}

/* Each size that begins a class, ends one, or stands in the middle. */
static void blocks_have_the_bytes_that_were_wanted(void **state)
{
    for (size_t n = 0; n < (size_t)1 << 22; n += 1 + n / 97) {
        char *block = td_storage_alloc(n);
        assert_true(malloc_usable_size(block) >= n);
        td_storage_free(block, n);
        block = memset(td_alloc_aligned(n), 1, n);
        td_free(block, n);
    }
}

static void a_freed_block_is_used_again(void **state)
{
    skip_if_plain();
    const size_t sizes[] = { 1, 1000, 16384, 18000, 200000, 50000000 };
    for (int i = 0; i < 6; i++) {
        void *a = td_storage_alloc(sizes[i]);
        const int64_t before = asked(), was_kept = kept();
        td_storage_free(a, sizes[i]);
        assert_true(kept() - was_kept >= (int64_t)sizes[i]);
        assert_true(kept() - was_kept <= 64 + (int64_t)sizes[i] * 9 / 8);
        void *b = td_storage_alloc(sizes[i] - sizes[i] / 100);
        assert_ptr_equal(a, b);
        assert_int_equal(kept(), was_kept);
        assert_int_equal(asked(), before);
        td_storage_free(b, sizes[i] - sizes[i] / 100);
    }
}

static void records_of_used_memory_are_zero(void **state)
{
    skip_if_plain();
    char *a = td_alloc(RECORD);
    memset(a, 77, RECORD);
    td_free(a, RECORD);
    char *b = td_alloc(RECORD - 1);
    assert_ptr_equal(a, b);
    for (int i = 0; i < RECORD - 1; i++)
        assert_int_equal(b[i], 0);
    td_free(b, RECORD - 1);
}

static void trimming_gives_all_back(void **state)
{
    skip_if_plain();
    assert_int_equal(kept(), 0);
    td_free(td_alloc(10), 10);
    td_free(td_alloc(100000), 100000);
    assert_true(kept() > 100000);
    td_memory_trim();
    assert_int_equal(kept(), 0);
    const int64_t before = asked();
    td_free(td_alloc(100000), 100000);
    assert_int_equal(asked(), before + 1);
}

static void what_is_kept_is_bounded(void **state)
{
    skip_if_plain();
    const int64_t limit = td_memory_cache();
    void *block[10];
    assert_true(limit > 1 << 20);
    assert_true(td_memory_set_cache(300000));
    assert_int_equal(td_memory_cache(), 300000);
    for (int i = 0; i < 10; i++)
        block[i] = td_alloc((size_t)(i + 1) * 20000);
    for (int i = 0; i < 10; i++) {
        td_free(block[i], (size_t)(i + 1) * 20000);
        assert_true(kept() > 0 && kept() <= 300000);
    }
    const int64_t before = asked();         /* the last is among them */
    td_free(td_alloc(200000), 200000);
    assert_int_equal(asked(), before);
    assert_true(td_memory_set_cache(0));
    assert_int_equal(kept(), 0);
    td_free(td_alloc(200000), 200000);
    assert_int_equal(kept(), 0);
    refused(td_memory_set_cache(-1), TD_ERROR_VALUE, "got -1");
    assert_true(td_memory_set_cache(limit));
}

/* Frees what another thread made, more than its own pocket holds. */
static void *free_many(void *blocks)
{
    for (int i = 0; i < MANY; i++)
        td_free(((void **)blocks)[i], RECORD);
    return blocks;
}

static void other_threads_give_back(void **state)
{
    static void *blocks[MANY];
    pthread_t thread;
    skip_if_plain();
    for (int round = 0; round < 3; round++) {
        const int64_t before = asked();
        for (int i = 0; i < MANY; i++)
            assert_non_null(blocks[i] = td_alloc(RECORD));
        assert_int_equal(asked() - before, round == 0 ? MANY : 0);
        pthread_create(&thread, NULL, free_many, blocks);
        pthread_join(thread, NULL);
        assert_int_equal(kept(), MANY * 1024);  /* none in a pocket */
    }
}

static void *pass_blocks_on(void *box)
{
    _Atomic(void *) *at = box;
    for (int i = 0; i < 20000; i++) {
        const size_t bytes = 64 + (size_t)(i % 7) * 1000;
        size_t *mine = td_alloc_aligned(bytes);
        mine[0] = bytes;
        memset(mine + 1, i, bytes - sizeof *mine);
        size_t *other = atomic_exchange(at, mine);
        if (other != NULL)
            td_free(other, other[0]);
    }
    return NULL;
}

static void threads_free_each_others_blocks(void **state)
{
    pthread_t thread[3];
    _Atomic(void *) box = NULL;
    const int64_t bytes = td_memory_stats().bytes;
    for (int i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, pass_blocks_on, &box);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    size_t *last = atomic_load(&box);
    td_free(last, last[0]);
    assert_int_equal(td_memory_stats().bytes, bytes);
}

/* Address space for 80 megabytes more, while 64 are kept: the rest can only
   come from what is kept. */
static int trims_before_it_fails(void)
{
    const size_t large = 64 << 20, larger = 80 << 20;
    struct rlimit all = { 0, RLIM_INFINITY };
    td_free(td_alloc_aligned(large), large);
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    if (file == NULL || fscanf(file, "%lu", &pages) != 1)
        return 0;                           /* not on this system */
    fclose(file);
    all.rlim_cur = pages * (size_t)sysconf(_SC_PAGESIZE) + (32 << 20);
    if (setrlimit(RLIMIT_AS, &all) != 0)
        return 1;
    void *block = td_alloc_aligned(larger);
    if (block == NULL || td_failed() || kept() != 0)
        return 2;
    td_free(block, larger);
    if (td_alloc_aligned((size_t)1 << 30) != NULL)
        return 3;
    return td_error() != TD_ERROR_MEMORY;
}

static void memory_that_is_kept_is_tried_before_failing(void **state)
{
    if (SANITIZED || td_process()->plain)
        skip();                             /* shadows need room; nothing is kept */
    assert_int_equal(forked(trims_before_it_fails), 0);
}

static atomic_bool forking;

static void *allocate_meanwhile(void *unused)
{
    for (int i = 0; atomic_load(&forking); i++)
        td_free(td_alloc((size_t)(i % 50) * 1000), (size_t)(i % 50) * 1000);
    return NULL;
}

static int allocates_much(void)
{
    const int64_t objects = td_memory_stats().live_objects;
    for (int i = 0; i < 5000; i++)
        td_free(td_alloc((size_t)(i % 50) * 1000), (size_t)(i % 50) * 1000);
    yarn *y = spin(1);
    const bool counted = td_memory_stats().live_objects == objects + 1;
    td_release(y);
    return td_failed() || !counted;
}

static void a_fork_finds_the_lists_whole(void **state)
{
    pthread_t thread;
    if (SANITIZED)
        skip();
    skip_if_plain();
    atomic_store(&forking, true);
    pthread_create(&thread, NULL, allocate_meanwhile, NULL);
    int wrong = 0;
    for (int i = 0; i < 20; i++)
        wrong += forked(allocates_much);
    atomic_store(&forking, false);
    pthread_join(thread, NULL);
    assert_int_equal(wrong, 0);
}

static void plain_keeps_nothing(void **state)
{
    assert_int_equal(again(program, "plain", "TREADLE_ALLOC", "plain"), 0);
}

/* The other process. */
static int check_plain(void)
{
    const int64_t before = asked();
    td_free(td_alloc(10), 10);
    td_storage_free(td_storage_alloc(100000), 100000);
    if (asked() != before + 2 || kept() != 0 || td_memory_cache() != 0)
        return 1;
    if (td_memory_set_cache(5) || td_error() != TD_ERROR_UNSUPPORTED)
        return 2;
    td_error_clear();
    return !td_memory_set_cache(0);
}

/* ---- objects --------------------------------------------------------- */

static void last_release_destroys(void **state)
{
    yarn *y = spin(7);
    assert_int_equal(td_object_count(y), 1);
    assert_int_equal(td_memory_stats().live_objects,
                     counters_before.live_objects + 1);
    assert_ptr_equal(td_retain(y), y);
    assert_int_equal(td_object_count(y), 2);
    td_release(y);
    assert_int_equal(destroyed, 0);
    td_release(y);
    assert_int_equal(destroyed, 1);
    assert_int_equal(last_destroyed, 7);
}

static void null_is_no_object(void **state)
{
    assert_null(td_retain(NULL));
    td_release(NULL);
    assert_null(td_keep(NULL));
    assert_null(td_adopt(NULL));
    assert_null(td_share(NULL));
    td_scope_begin();
    assert_null(td_adopt(NULL));
    assert_null(td_keep(NULL));
    assert_null(td_scope_end_with(NULL));
    assert_false(td_failed());
}

static void class_says_where_it_is_counted(void **state)
{
    const td_class tensor = { "t", NULL, TD_COUNT_TENSORS };
    const td_class node = { "n", NULL, TD_COUNT_NODES };
    const td_memory_info before = td_memory_stats();
    void *t = td_object_new(&tensor, sizeof(td_object));
    void *n = td_object_new_unscoped(&node, sizeof(td_object));
    td_memory_info now = td_memory_stats();
    assert_int_equal(now.live_tensors, before.live_tensors + 1);
    assert_int_equal(now.live_nodes, before.live_nodes + 1);
    assert_int_equal(now.live_objects, before.live_objects + 2);
    assert_int_equal(td_live_node_count(), now.live_nodes);
    td_release(t);
    td_release(n);
    now = td_memory_stats();
    assert_int_equal(now.live_tensors, before.live_tensors);
    assert_int_equal(now.live_nodes, before.live_nodes);
}

enum { LONG = 1000000 };

static void *chain(void *out)
{
    yarn *head = NULL;
    for (int i = 0; i < LONG; i++) {
        yarn *next = spin(i);
        if (next == NULL)
            return NULL;
        next->held[0] = head;
        head = next;
    }
    td_release(head);
    return out;
}

static void long_chain_dies_on_the_default_stack(void **state)
{
    assert_non_null(chain(&destroyed));
    assert_int_equal(destroyed, LONG);
}

static void long_chain_dies_on_a_small_stack(void **state)
{
    pthread_attr_t small;
    pthread_t thread;
    void *result = NULL;
    pthread_attr_init(&small);
    assert_int_equal(pthread_attr_setstacksize(&small, 64 * 1024), 0);
    assert_int_equal(pthread_create(&thread, &small, chain, &destroyed), 0);
    pthread_join(thread, &result);
    pthread_attr_destroy(&small);
    assert_non_null(result);
    assert_int_equal(destroyed, LONG);
}

static void diamonds_die_once(void **state)
{
    yarn *y = spin(0);
    for (int i = 1; i <= 60; i++) {
        yarn *above = spin(i);
        above->held[0] = y;
        above->held[1] = td_retain(y);
        y = above;
    }
    td_release(y);
    assert_int_equal(destroyed, 61);
}

static atomic_int racers_done;

static void *retain_and_release(void *object)
{
    for (int i = 0; i < 20000; i++)
        td_release(td_retain(object));
    td_release(object);
    atomic_fetch_add(&racers_done, 1);
    return NULL;
}

static void counts_are_exact_across_threads(void **state)
{
    pthread_t thread[3];
    yarn *y = spin(1);
    for (int i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, retain_and_release,
                       td_retain(y));
    td_release(y);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(destroyed, 1);
}

/* ---- scopes ---------------------------------------------------------- */

static void without_a_scope_the_caller_owns(void **state)
{
    yarn *y = spin(1);
    assert_ptr_equal(td_keep(y), y);
    assert_ptr_equal(td_adopt(y), y);
    assert_int_equal(td_object_count(y), 1);
    td_release(y);
    assert_int_equal(destroyed, 1);
}

static void scope_frees_newest_first(void **state)
{
    td_scope_begin();
    spin(1);
    spin(2);
    spin(3);
    td_scope_end();
    assert_int_equal(destroyed, 3);
    assert_int_equal(last_destroyed, 1);
}

static void inner_scope_frees_only_its_own(void **state)
{
    td_scope_begin();
    spin(1);
    td_scope_begin();
    spin(2);
    td_scope_end();
    assert_int_equal(destroyed, 1);
    assert_int_equal(last_destroyed, 2);
    td_scope_end();
    assert_int_equal(destroyed, 2);
}

static void end_with_hands_to_the_enclosing_scope(void **state)
{
    td_scope_begin();
    td_scope_begin();
    spin(1);
    yarn *y = spin(2);
    spin(3);
    assert_ptr_equal(td_scope_end_with(y), y);
    assert_int_equal(destroyed, 2);
    td_scope_end();
    assert_int_equal(destroyed, 3);
}

static void end_with_hands_to_the_caller(void **state)
{
    td_scope_begin();
    spin(1);
    yarn *y = td_scope_end_with(spin(2));
    assert_int_equal(destroyed, 1);
    assert_int_equal(td_object_count(y), 1);
    td_release(y);
    assert_int_equal(destroyed, 2);
}

static yarn *same(yarn *y)
{
    td_scope_begin();
    spin(100);
    return td_scope_end_with(y);
}

/* A function may return its argument: the caller gets a reference as it
   would for a new object, wherever the argument lives. */
static void end_with_shares_a_stranger(void **state)
{
    yarn *mine = spin(1);
    yarn *again = same(mine);
    assert_ptr_equal(again, mine);
    assert_int_equal(td_object_count(mine), 2);
    td_release(again);

    td_scope_begin();
    again = same(mine);
    assert_int_equal(td_object_count(mine), 2);
    td_scope_end();
    assert_int_equal(td_object_count(mine), 1);
    td_release(mine);

    td_scope_begin();
    yarn *scoped = spin(2);
    assert_ptr_equal(same(scoped), scoped);
    assert_int_equal(td_object_count(scoped), 1);
    td_scope_end();
    assert_int_equal(destroyed, 5);
}

static void keep_moves_one_level_and_only_members(void **state)
{
    td_scope_begin();
    yarn *outer = spin(1);
    td_scope_begin();
    td_scope_begin();
    yarn *y = spin(2);
    td_keep(outer);
    td_keep(y);
    td_keep(y);
    td_scope_end();
    assert_int_equal(destroyed, 0);
    td_scope_end();
    assert_int_equal(destroyed, 1);
    assert_int_equal(last_destroyed, 2);
    td_scope_end();
    assert_int_equal(destroyed, 2);
}

static void keep_reaches_the_caller(void **state)
{
    td_scope_begin();
    yarn *y = td_keep(spin(1));
    td_keep(y);
    td_scope_end();
    assert_int_equal(destroyed, 0);
    assert_int_equal(td_object_count(y), 1);
    td_release(y);
}

static void adopt_gives_to_the_scope(void **state)
{
    yarn *y = spin(1);
    td_scope_begin();
    assert_ptr_equal(td_adopt(y), y);
    td_adopt(y);
    td_scope_end();
    assert_int_equal(destroyed, 1);
}

static void adopt_lends_what_others_hold(void **state)
{
    yarn *y = spin(1);
    td_scope_begin();
    assert_ptr_equal(td_adopt(td_retain(y)), y);
    assert_int_equal(td_object_count(y), 2);
    td_scope_end();
    assert_int_equal(td_object_count(y), 1);
    td_release(y);
    assert_int_equal(destroyed, 1);
}

static void adopt_drops_what_its_scope_holds(void **state)
{
    td_scope_begin();
    yarn *y = spin(1);
    td_scope_begin();
    td_adopt(td_retain(y));
    assert_int_equal(td_object_count(y), 1);
    td_scope_end();
    assert_int_equal(destroyed, 0);
    td_scope_end();
    assert_int_equal(destroyed, 1);
}

static void kept_loan_becomes_a_reference(void **state)
{
    yarn *y = spin(1);
    td_scope_begin();
    td_share(y);
    td_keep(y);
    td_scope_end();
    assert_int_equal(td_object_count(y), 2);
    td_release(y);
    td_scope_begin();
    td_scope_begin();
    td_share(y);
    td_keep(y);
    td_scope_end();
    assert_int_equal(td_object_count(y), 2);
    td_scope_end();
    assert_int_equal(td_object_count(y), 1);
    td_release(y);
}

static void lending_without_memory_leaks_nothing(void **state)
{
    yarn *y = spin(1);
    td_scope_begin();
    td_memory_fail_after(0);
    assert_null(td_share(y));
    assert_int_equal(td_error(), TD_ERROR_MEMORY);
    td_scope_end();
    td_error_clear();
    assert_int_equal(td_object_count(y), 1);
    td_scope_begin();
    td_scope_begin();
    td_memory_fail_after(0);
    assert_null(td_scope_end_with(y));
    td_scope_end();
    assert_int_equal(td_object_count(y), 1);
    td_release(y);
}

static void early_release_leaves_the_scope_whole(void **state)
{
    td_scope_begin();
    spin(1);
    yarn *y = spin(2);
    spin(3);
    td_release(y);
    assert_int_equal(destroyed, 1);
    td_scope_end();
    assert_int_equal(destroyed, 3);
}

/* The scope still lists y, but only x holds it: x takes it along. */
static void scope_end_survives_neighbours_that_go(void **state)
{
    td_scope_begin();
    yarn *y = spin(1), *x = spin(2);
    x->held[0] = td_retain(y);
    td_release(y);
    assert_int_equal(destroyed, 0);
    td_scope_end();
    assert_int_equal(destroyed, 2);
}

static void retained_objects_survive_their_scope(void **state)
{
    td_scope_begin();
    yarn *y = td_retain(spin(1));
    td_scope_end();
    assert_int_equal(destroyed, 0);
    td_scope_begin();
    td_adopt(y);
    td_scope_end();
    assert_int_equal(destroyed, 1);
}

static void under_a_barrier_the_caller_owns(void **state)
{
    td_scope_begin();
    spin(1);
    td_scope_barrier_begin();
    yarn *y = spin(2);
    yarn *z = td_share(y);
    assert_int_equal(td_object_count(y), 2);
    td_scope_begin();
    yarn *kept = td_keep(spin(3));
    td_scope_end();
    td_scope_barrier_end();
    td_scope_end();
    assert_int_equal(destroyed, 1);
    td_release(y);
    td_release(z);
    td_release(kept);
    assert_int_equal(destroyed, 3);
}

static void barrier_guards_the_scopes_below(void **state)
{
    td_scope_begin();
    yarn *y = spin(1);
    td_scope_barrier_begin();
    td_scope_end();
    assert_int_equal(td_error(), TD_ERROR_RUNTIME);
    td_error_clear();
    td_keep(y);
    td_scope_begin();
    td_scope_begin();
    spin(2);
    td_scope_barrier_end();
    assert_int_equal(destroyed, 1);
    assert_int_equal(td_self()->depth, 1);
    td_scope_end();
    assert_int_equal(destroyed, 2);
}

static void unbalanced_ends_are_errors(void **state)
{
    td_scope_end();
    assert_string_equal(td_error_message(),
                        "scope_end: no scope is open");
    td_error_clear();
    td_scope_barrier_end();
    assert_int_equal(td_error(), TD_ERROR_RUNTIME);
    td_error_clear();
    yarn *y = spin(1);
    assert_null(td_scope_end_with(y));
    assert_int_equal(td_error(), TD_ERROR_RUNTIME);
    assert_int_equal(td_object_count(y), 1);
    td_release(y);
    td_error_clear();
    td_scope_begin();
    td_scope_barrier_end();
    assert_int_equal(td_error(), TD_ERROR_RUNTIME);
    assert_int_equal(td_self()->depth, 0);
}

static void too_deep_is_an_error_and_unwinds(void **state)
{
    for (int i = 0; i < TD_SCOPE_DEPTH; i++)
        td_scope_begin();
    assert_false(td_failed());
    spin(1);
    td_scope_begin();
    assert_string_equal(td_error_message(),
                        "scope_begin: scopes nest at most 1024 deep");
    td_scope_barrier_begin();
    td_error_clear();
    spin(2);
    td_scope_barrier_end();
    td_scope_end();
    assert_int_equal(destroyed, 0);
    td_scope_end();
    assert_int_equal(destroyed, 2);
    for (int i = 1; i < TD_SCOPE_DEPTH; i++)
        td_scope_end();
    assert_false(td_failed());
}

static void scope_end_works_while_an_error_is_pending(void **state)
{
    td_scope_begin();
    spin(1);
    td_fail(TD_ERROR_VALUE, "x", "y");
    td_scope_end();
    assert_int_equal(destroyed, 1);
    assert_string_equal(td_error_message(), "x: y");
}

static void *leave_scopes_open(void *out)
{
    td_scope_begin();
    spin(1);
    td_scope_barrier_begin();
    td_scope_begin();
    spin(2);
    return out;
}

static void ending_thread_frees_its_scopes(void **state)
{
    pthread_t thread;
    pthread_create(&thread, NULL, leave_scopes_open, NULL);
    pthread_join(thread, NULL);
    assert_int_equal(destroyed, 2);
}

static void *adopt_elsewhere(void *object)
{
    td_scope_begin();
    void *shared = td_share(object);
    const bool right = shared == object && td_object_count(object) == 2;
    td_scope_end();
    return right ? object : NULL;
}

static void threads_share_objects_of_foreign_scopes(void **state)
{
    pthread_t thread[2];
    void *result;
    td_scope_begin();
    yarn *y = spin(1);
    pthread_create(&thread[0], NULL, adopt_elsewhere, y);
    pthread_join(thread[0], &result);
    assert_ptr_equal(result, y);
    assert_int_equal(td_object_count(y), 1);
    td_scope_end();
    assert_int_equal(destroyed, 1);
}

static void *share_often(void *object)
{
    for (int i = 0; i < 3000; i++) {
        td_scope_begin();
        for (int k = 0; k < 3; k++)
            if (td_share(object) != object)
                return NULL;
        td_scope_end();
    }
    return object;
}

/* A model made long ago, used by two threads at once. */
static void threads_share_one_object_at_once(void **state)
{
    pthread_t thread[2];
    yarn *y = spin(1);
    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, share_often, y);
    for (int i = 0; i < 2; i++) {
        void *result;
        pthread_join(thread[i], &result);
        assert_ptr_equal(result, y);
    }
    assert_int_equal(td_object_count(y), 1);
    td_release(y);
}

/* Every allocation of a small program fails in turn; nothing stays. */
static yarn *weave(void)
{
    td_scope_begin();
    yarn *a = spin(1), *b = spin(2), *c = spin(3);
    if (c != NULL) {
        c->held[0] = td_retain(a);
        c->held[1] = td_retain(b);
    }
    td_share(c);
    return td_scope_end_with(c);
}

static bool share_and_weave(void *global)
{
    td_share(global);
    return weave() != NULL;
}

static void every_allocation_may_fail(void **state)
{
    yarn *global = spin(0);
    assert_int_equal(fail_each_allocation(share_and_weave, global), 4);
    assert_int_equal(td_object_count(global), 1);
    td_release(global);
}

/* ---- runtime --------------------------------------------------------- */

static int uses_everything(void)
{
    td_scope_begin();
    yarn *y = spin(1);
    void *data = td_storage_alloc(100);
    td_storage_free(data, 100);
    td_scope_end();
    return y == NULL || td_failed();
}

static void forked_child_works(void **state)
{
    td_scope_begin();
    spin(1);
    assert_int_equal(forked(uses_everything), 0);
    td_scope_end();
}

static void environment_numbers_are_checked(void **state)
{
    unsetenv("TREADLE_TEST");
    assert_int_equal(td_environment_int("TREADLE_TEST", 1, 9, 4), 4);
    setenv("TREADLE_TEST", "", 1);
    assert_int_equal(td_environment_int("TREADLE_TEST", 1, 9, 4), 4);
    setenv("TREADLE_TEST", "7", 1);
    assert_int_equal(td_environment_int("TREADLE_TEST", 1, 9, 4), 7);
    assert_false(td_failed());
    const char *const wrong[] = { "0", "10", "-1", "seven", "7x", "7 ",
                                  "99999999999999999999" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setenv("TREADLE_TEST", wrong[i], 1);
        assert_int_equal(td_environment_int("TREADLE_TEST", 1, 9, 4), 4);
        assert_int_equal(td_error(), TD_ERROR_VALUE);
        td_error_clear();
    }
    setenv("TREADLE_TEST", "seven", 1);
    td_environment_int("TREADLE_TEST", 1, 9, 4);
    assert_string_equal(td_error_message(), "TREADLE_TEST: expected a "
                        "number from 1 to 9, got 'seven'");
    unsetenv("TREADLE_TEST");
}

static void environment_words_are_checked(void **state)
{
    const char *const words = "warp|weft";
    unsetenv("TREADLE_TEST");
    assert_int_equal(td_environment_choice("TREADLE_TEST", words, 1), 1);
    setenv("TREADLE_TEST", "warp", 1);
    assert_int_equal(td_environment_choice("TREADLE_TEST", words, 1), 0);
    assert_false(td_failed());
    setenv("TREADLE_TEST", "woof", 1);
    assert_int_equal(td_environment_choice("TREADLE_TEST", words, 1), 1);
    assert_string_equal(td_error_message(), "TREADLE_TEST: expected "
                        "warp|weft, got 'woof'");
    unsetenv("TREADLE_TEST");
}

static void misspelt_setting_is_reported_once(void **state)
{
    assert_int_equal(again(program, "misspelt", "TREADLE_ALLOC", "palin"),
                     0);
    assert_int_equal(again(program, "misspelt", "TREADLE_ALLOC", "caching"),
                     0);            /* no silent default */
}

/* The other process: the first producer reports, the next one works. */
static int report_misspelt(void)
{
    if (spin(1) != NULL || td_error() != TD_ERROR_VALUE)
        return 1;
    if (strcmp(td_error_operation(), "TREADLE_ALLOC") != 0)
        return 2;
    td_error_clear();
    yarn *y = spin(1);
    td_release(y);
    return y == NULL || td_failed() ? 3 : 0;
}

static int stops_twice(void)
{
    td_runtime_stop();
    td_runtime_stop();
    return uses_everything();
}

static void stopping_twice_is_harmless(void **state)
{
    assert_int_equal(forked(stops_twice), 0);
}

int main(int argc, char **argv)
{
    program = argv[0];
    if (argc > 1 && strcmp(argv[1], "misspelt") == 0)
        return report_misspelt();
    if (argc > 1 && strcmp(argv[1], "plain") == 0)
        return check_plain();
    const struct CMUnitTest tests[] = {
        CASE(nothing_is_pending_at_first),
        CASE(fail_records_code_operation_and_text),
        CASE(first_error_wins),
        CASE(long_errors_are_cut_and_ended),
        CASE(failing_allocates_nothing),
        CASE(errors_belong_to_their_thread),
        CASE(restoring_does_not_replace),
        CASE(pending_error_stops_producers),
        CASE(records_are_zeroed),
        CASE(storage_is_aligned_and_counted),
        CASE(peak_is_the_most_at_one_time),
        CASE(fail_after_counts_down_once),
        CASE(fail_after_negative_never_fails),
        CASE(failed_allocation_is_a_memory_error),
        CASE(absurd_sizes_are_refused),
        CASE(sizes_are_checked),
        CASE(blocks_have_the_bytes_that_were_wanted),
        CASE(a_freed_block_is_used_again),
        CASE(records_of_used_memory_are_zero),
        CASE(trimming_gives_all_back),
        CASE(what_is_kept_is_bounded),
        CASE(other_threads_give_back),
        CASE(threads_free_each_others_blocks),
        CASE(memory_that_is_kept_is_tried_before_failing),
        CASE(a_fork_finds_the_lists_whole),
        CASE(plain_keeps_nothing),
        CASE(last_release_destroys),
        CASE(null_is_no_object),
        CASE(class_says_where_it_is_counted),
        CASE(long_chain_dies_on_the_default_stack),
        CASE(long_chain_dies_on_a_small_stack),
        CASE(diamonds_die_once),
        CASE(counts_are_exact_across_threads),
        CASE(without_a_scope_the_caller_owns),
        CASE(scope_frees_newest_first),
        CASE(inner_scope_frees_only_its_own),
        CASE(end_with_hands_to_the_enclosing_scope),
        CASE(end_with_hands_to_the_caller),
        CASE(end_with_shares_a_stranger),
        CASE(keep_moves_one_level_and_only_members),
        CASE(keep_reaches_the_caller),
        CASE(adopt_gives_to_the_scope),
        CASE(adopt_lends_what_others_hold),
        CASE(adopt_drops_what_its_scope_holds),
        CASE(kept_loan_becomes_a_reference),
        CASE(lending_without_memory_leaks_nothing),
        CASE(early_release_leaves_the_scope_whole),
        CASE(scope_end_survives_neighbours_that_go),
        CASE(retained_objects_survive_their_scope),
        CASE(under_a_barrier_the_caller_owns),
        CASE(barrier_guards_the_scopes_below),
        CASE(unbalanced_ends_are_errors),
        CASE(too_deep_is_an_error_and_unwinds),
        CASE(scope_end_works_while_an_error_is_pending),
        CASE(ending_thread_frees_its_scopes),
        CASE(threads_share_objects_of_foreign_scopes),
        CASE(threads_share_one_object_at_once),
        CASE(every_allocation_may_fail),
        CASE(forked_child_works),
        CASE(environment_numbers_are_checked),
        CASE(environment_words_are_checked),
        CASE(misspelt_setting_is_reported_once),
        CASE(stopping_twice_is_harmless),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
