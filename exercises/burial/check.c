/* Objects die: each once, at once, completely, and never one inside another. */
#include "check.h"
#include "core/error.h"
#include "core/object.h"
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const formula = "the release that finds no burial going on works off all that die until it returns";

/* How often destroying called for memory.  The sanitizer's allocator tells. */
int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void *, size_t), void (*)(const volatile void *));
static _Thread_local bool watching;
static _Thread_local int requests;

static void asked(const volatile void *block, size_t bytes)
{
    (void)block, (void)bytes;
    requests += watching;
}

static void given_back(const volatile void *block)
{
    (void)block;
}

/* A knot holds up to two others and, if it is wide, many more. */
typedef struct knot {
    td_object object;
    struct knot *one, *two, **more;
    int many, life;
    void (*last_words)(struct knot *);
} knot;

enum { LIVES = 250000 };
static unsigned char died[LIVES];
static _Thread_local int dead, inside, deepest;

static void knot_destroy(void *object)
{
    knot *k = object;
    dead++;
    deepest = ++inside > deepest ? inside : deepest;
    if (k->life < 0 || k->life >= LIVES)
        check_wrong("  expected  an object as it was\n  got       one whose memory was somebody else's");
    if (++died[k->life] > 1)
        check_wrong("  expected  each object destroyed once\n  got       number %d destroyed twice", k->life);
    if (k->last_words != NULL)
        k->last_words(k);
    td_release(k->one);
    td_release(k->two);
    for (int i = 0; i < k->many; i++)
        td_release(k->more[i]);
    free(k->more);
    inside--;
}

static const td_class knot_class = { "knot", knot_destroy, TD_COUNT_OTHERS };
static const td_class like_a_tensor = { "like a tensor", knot_destroy, TD_COUNT_TENSORS };
static const td_class like_a_node = { "like a node", knot_destroy, TD_COUNT_NODES };
static const td_class bare = { "bare", NULL, TD_COUNT_OTHERS };

static int lives;

/* Takes over the references to what it holds. */
static knot *tie(const td_class *class, knot *one, knot *two)
{
    knot *k = td_object_new(class, sizeof *k);
    k->one = one, k->two = two, k->life = lives++;
    return k;
}

static td_memory_info before;

static void begin(const char *what)
{
    check_case(what, formula);
    memset(died, 0, sizeof died);
    dead = inside = deepest = lives = requests = 0;
    before = td_memory_stats();
}

static void expect_destroyed(int expected)
{
    if (dead != expected)
        check_wrong("  expected  %d destroyed\n  got       %d when td_release returned", expected, dead);
    if (deepest > 1)
        check_wrong("  expected  at most 1 destroy at a time\n  got       %d, one inside the other", deepest);
}

static void expect_count(const char *name, int64_t expected, int64_t got)
{
    if (got != expected)
        check_wrong("  expected  %" PRId64 " %s\n  got       %" PRId64, expected, name, got);
}

/* All that was made since `begin` is gone, and no counter has moved. */
static void end(int expected)
{
    expect_destroyed(expected);
    const td_memory_info now = td_memory_stats();
    expect_count("live tensors", before.live_tensors, now.live_tensors);
    expect_count("live nodes", before.live_nodes, now.live_nodes);
    expect_count("live objects", before.live_objects, now.live_objects);
}

/* A process of its own, begun before the library is, keeps blocks by their
   size: one that comes back must be found by the next that asks for as much. */
static int may_begin[2];
static pid_t keeper;

static int sizes_not_given_back(void)
{
    int wrong = 0;
    setenv("TREADLE_ALLOC", "cache", 1);
    for (size_t bytes = sizeof(td_object); bytes <= 5000; bytes = bytes * 3 / 2) {
        const int64_t kept = td_memory_stats().cached_bytes;
        td_release(td_object_new(&bare, bytes));
        const int64_t more = td_memory_stats().cached_bytes;
        td_alloc(bytes);
        wrong += more <= kept || td_memory_stats().cached_bytes != kept;
    }
    return wrong;
}

static void prepare_sizes(void)
{
    char go;
    if (pipe(may_begin) != 0 || (keeper = fork()) < 0)
        abort();
    if (keeper > 0)
        return;
    close(may_begin[1]);
    _exit(read(may_begin[0], &go, 1) == 1 && sizes_not_given_back() ? 9 : 0);
}

static void check_sizes_given_back(void)
{
    int status = 0;
    check_case("an object is given back in its own size", "the next to ask for so many bytes gets its memory");
    if (write(may_begin[1], "!", 1) != 1 || waitpid(keeper, &status, 0) != keeper)
        abort();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 9)
        check_wrong("  expected  td_free with all the bytes of the object\n"
                    "  got       another size");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        check_wrong("  expected  objects of 48 to 5000 bytes made and released\n  got       a process that ended");
}

static void check_one(void)
{
    begin("one object");
    td_release(tie(&knot_class, NULL, NULL));
    end(1);
    begin("one object, and a second one after it");
    td_release(tie(&knot_class, NULL, NULL));
    td_release(tie(&knot_class, NULL, NULL));
    end(2);
    begin("one object of a class that has nothing to release");
    td_release(td_object_new(&bare, sizeof(knot)));
    end(0);
}

static knot *chain(int length)
{
    knot *k = NULL;
    for (int i = 0; i < length; i++)
        k = tie(&knot_class, k, NULL);
    return k;
}

static void check_shapes(void)
{
    begin("one holds the next, three in all");
    td_release(chain(3));
    end(3);
    begin("one holds two, each of which holds two: seven");
    knot *leaf[4], *pair[2];
    for (int i = 0; i < 4; i++)
        leaf[i] = tie(&knot_class, NULL, NULL);
    for (int i = 0; i < 2; i++)
        pair[i] = tie(&knot_class, leaf[2 * i], leaf[2 * i + 1]);
    td_release(tie(&knot_class, pair[0], pair[1]));
    end(7);
    begin("two hold the same one, and somebody else holds it too");
    knot *shared = tie(&knot_class, NULL, NULL);
    td_retain(shared), td_retain(shared);
    td_release(tie(&knot_class, tie(&knot_class, shared, NULL), shared));
    expect_destroyed(2);
    td_release(shared);
    end(3);
    begin("one object counted as a tensor, which holds one counted as a node");
    td_release(tie(&like_a_tensor, tie(&like_a_node, NULL, NULL), NULL));
    end(2);
    begin("a chain of 40");
    td_release(chain(40));
    end(40);
    begin("a chain of 200000");
    td_release(chain(200000));
    end(200000);
}

static knot *wide(int many)
{
    knot *k = tie(&knot_class, NULL, NULL);
    k->more = malloc((size_t)many * sizeof *k->more);
    for (; k->many < many; k->many++)
        k->more[k->many] = tie(&knot_class, NULL, NULL);
    return k;
}

static void check_wide(void)
{
    begin("one holds 200000");
    td_release(wide(200000));
    end(200001);
}

static void check_scopes(void)
{
    knot *k[5];
    for (int victim = 0; victim < 5; victim++) {
        char what[80];
        snprintf(what, sizeof what, "five in a scope, number %d released before its end", victim);
        begin(what);
        td_scope_begin();
        for (int i = 0; i < 5; i++)
            k[i] = tie(&knot_class, NULL, NULL);
        td_release(k[victim]);
        expect_destroyed(1);
        td_scope_end();
        end(5);
    }
    begin("a scope of three, each of which holds the one before");
    td_scope_begin();
    k[0] = tie(&knot_class, NULL, NULL);
    k[1] = tie(&knot_class, td_retain(k[0]), NULL);
    k[2] = tie(&knot_class, td_retain(k[1]), NULL);
    td_scope_end();
    end(3);
    begin("the newer of two in a scope holds the older, which was released: neighbours die together");
    td_scope_begin();
    k[0] = tie(&knot_class, NULL, NULL);
    k[1] = tie(&knot_class, k[0], NULL);
    k[2] = tie(&knot_class, NULL, NULL);
    td_scope_end();
    end(3);
}

/* Destroying may do anything that a program does with objects. */
static knot *elsewhere;

static void make_another(knot *k)
{
    (void)k;
    td_scope_begin();
    knot *inner = tie(&knot_class, NULL, NULL);
    tie(&knot_class, td_retain(inner), NULL);
    td_scope_end();
}

static void look_at_counts(knot *k)
{
    (void)k;
    expect_count("live objects inside its destroy", before.live_objects + 1, td_memory_stats().live_objects);
}

static void release_elsewhere(knot *k)
{
    (void)k;
    td_release(elsewhere);
}

static void check_busy(void)
{
    begin("destroying makes two objects in a scope of its own");
    knot *k = tie(&knot_class, NULL, NULL);
    k->last_words = make_another;
    td_release(k);
    end(3);
    begin("an object is still counted while it is being destroyed");
    k = tie(&knot_class, NULL, NULL);
    k->last_words = look_at_counts;
    td_release(k);
    end(1);
    begin("an object that destroying releases stands in an open scope");
    td_scope_begin();
    knot *low = tie(&knot_class, NULL, NULL);
    elsewhere = tie(&knot_class, NULL, NULL);
    knot *high = tie(&knot_class, NULL, NULL);
    k = td_keep(tie(&knot_class, NULL, NULL));
    k->last_words = release_elsewhere;
    td_release(k);
    expect_destroyed(2);
    if (td_object_count(low) != 1 || td_object_count(high) != 1)
        check_wrong("  expected  its neighbours alive\n  got       other counts");
    td_scope_end();
    end(4);
}

static void check_bad_weather(void)
{
    begin("no memory is left, and 301 die");
    knot *k = wide(300);
    watching = true;
    td_memory_fail_after(0);
    td_release(k);
    td_memory_fail_after(-1);
    watching = false;
    check_no_error();
    expect_count("requests for memory", 0, requests);
    expect_count("requests granted", before.allocations + 301, td_memory_stats().allocations);
    end(301);
    begin("a chain of 5000 asks for no memory");
    k = chain(5000);
    watching = true;
    td_release(k);
    watching = false;
    expect_count("requests for memory", 0, requests);
    end(5000);
    begin("an error is pending");
    k = chain(3);
    td_fail(TD_ERROR_VALUE, "test", "this error was here before");
    td_release(k);
    if (!td_failed() || strcmp(td_error_message(), "test: this error was here before") != 0)
        check_wrong("  expected  the error \"test: this error was here before\"\n  got       \"%s\"", td_error_message());
    td_error_clear();
    end(3);
}

/* One thread waits inside a destroy, and another releases meanwhile. */
static sem_t in_the_middle, other_is_done;

static void wait_for_the_other(knot *k)
{
    (void)k;
    sem_post(&in_the_middle);
    sem_wait(&other_is_done);
}

static void *slow(void *k)
{
    td_release(k);
    return NULL;
}

static void check_threads(void)
{
    pthread_t thread;
    begin("another thread is in the middle of a burial");
    sem_init(&in_the_middle, 0, 0), sem_init(&other_is_done, 0, 0);
    knot *k = tie(&knot_class, tie(&knot_class, NULL, NULL), NULL), *mine = chain(3);
    k->last_words = wait_for_the_other;
    pthread_create(&thread, NULL, slow, k);
    sem_wait(&in_the_middle);
    td_release(mine);
    const int seen = dead;
    sem_post(&other_is_done);
    pthread_join(thread, NULL);
    dead = seen;
    end(3);
}

int main(void)
{
    prepare_sizes();
    __sanitizer_install_malloc_and_free_hooks(asked, given_back);
    check_one();
    check_shapes();
    check_scopes();
    check_busy();
    check_bad_weather();
    check_threads();
    check_wide();
    check_sizes_given_back();
    return check_end();
}
