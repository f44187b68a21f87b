/* What the tests in tests/c share, each thing once:

   begin, end             the fixture: a scope of its own, and counters that
                          must be back where they were
   refused, expect_error  the errors that a test provokes
   fail_each_allocation   memory that fails at every place in turn
   compare, expect_right  many numbers; expect_number one
   forked, again          a child process; this program once more
   under_any_threads      each executor with several numbers of threads;
                          expect_same_bits of what they compute
   draw, uniform          random numbers, the same in every run
   at, VALUES             the elements of a tensor
   random_tensor          a tensor of any layout
   in_folder, write_plain a folder of files, for who defines
   make_, remove_folder   TREADLE_TEST_FOLDER before including this

   The options `plain` (float32) and `wide` (float64) make most tensors.

   A test of an early chapter is compiled with the library of that chapter
   alone, so what needs later headers stands under their guards.  Include
   this file first. */
#ifndef TREADLE_TEST_H
#define TREADLE_TEST_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <treadle/treadle.h>

/* cmocka hands every test a state, which no test here has any use for, and
   most callbacks leave out one argument or another. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* ---- random numbers ----------------------------------------------------- */

static uint64_t draws;                   /* the state; begin sets it to 1 */

/* SplitMix64. */
static inline uint64_t draw(void)
{
    uint64_t z = (draws += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* At least 0, less than 1. */
static inline double uniform(void)
{
    return (double)(draw() >> 11) / 9007199254740992.0;
}

/* ---- the fixture -------------------------------------------------------- */

static td_memory_info counters_before;

/* Says what is more, or less, than `before`. */
static inline bool counters_are_back(td_memory_info before)
{
    const td_memory_info now = td_memory_stats();
    const bool back = now.live_tensors == before.live_tensors
        && now.live_nodes == before.live_nodes
        && now.live_objects == before.live_objects
        && now.bytes == before.bytes;
    if (!back)
        print_error("left behind: %lld tensors, %lld nodes, %lld objects, "
                    "%lld bytes\n",
                    (long long)(now.live_tensors - before.live_tensors),
                    (long long)(now.live_nodes - before.live_nodes),
                    (long long)(now.live_objects - before.live_objects),
                    (long long)(now.bytes - before.bytes));
    return back;
}

/* The same start for every test, whatever the one before did. */
static inline int begin_bare(void **state)
{
    setenv("TREADLE_CUDA", "0", 0);     /* whatever is in this machine */
    td_error_clear();
    td_memory_fail_after(-1);
    draws = 1;
    counters_before = td_memory_stats();
#if __has_include(<treadle/random.h>)
    td_manual_seed(1);
#endif
#if __has_include(<treadle/parallel.h>)
    return !td_set_executor(TD_EXECUTOR_POOL) || !td_set_threads(2);
#else
    return 0;
#endif
}

/* No error may be pending; counters are as they were. */
static inline int end_bare(void **state)
{
    const bool clean = !td_failed();
    if (!clean)
        print_error("still pending: %s\n", td_error_message());
    td_error_clear();
    td_memory_fail_after(-1);
    return !counters_are_back(counters_before) || !clean;
}

/* The same, with a scope open around the test. */
static inline int begin(void **state)
{
    const int wrong = begin_bare(state);
    td_scope_begin();
    return wrong;
}

static inline int end(void **state)
{
    td_scope_end();
    return end_bare(state);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

/* ---- errors ------------------------------------------------------------- */

/* The pending error has this code, and `words` are in its message or, when
   `whole`, are all of it.  Afterwards none is pending. */
static inline void expect_error_at(bool whole, td_error_code code,
                                   const char *words, const char *file,
                                   int line)
{
    const char *got = td_error_message();
    const bool right = td_error() == code
        && (whole ? strcmp(got, words) == 0 : strstr(got, words) != NULL);
    if (!right)
        print_error("expected error %d with '%s', got %d: %s\n", (int)code,
                    words, (int)td_error(), got);
    td_error_clear();
    if (!right)
        _fail(file, line);
}
#define expect_error(code, words) \
    expect_error_at(false, code, words, __FILE__, __LINE__)

/* `call` gives NULL or false, and that error. */
#define refused(call, code, words) \
    (assert_true(!(call)), expect_error(code, words))
#define refused_saying(call, code, message) \
    (assert_true(!(call)), \
     expect_error_at(true, code, message, __FILE__, __LINE__))

/* ---- failing memory ----------------------------------------------------- */

/* After td_memory_fail_after and an attempt: it is done, or what stopped it
   is the want of memory.  From here on there is enough. */
static inline bool had_memory(bool done)
{
    td_memory_fail_after(-1);
    if (done)
        assert_false(td_failed());
    else
        expect_error(TD_ERROR_MEMORY, "cannot allocate");
    return done;
}

typedef bool scenario(void *context);

static inline bool run_in_scope(scenario *run, void *context)
{
    td_scope_begin();
    const bool done = run(context);
    td_scope_end();
    return done;
}

/* Fails allocation 0, 1, 2, ... of `run` until it succeeds, and says how
   many failed: each with one clear error that left nothing behind.  The
   first run makes what is made only once. */
static inline int64_t fail_each_allocation(scenario *run, void *context)
{
    if (!run_in_scope(run, context))
        fail_msg("%s", td_error_message());
    const td_memory_info before = td_memory_stats();
    for (int64_t k = 0; k < 100000; k++) {
        td_memory_fail_after(k);
        const bool done = had_memory(run_in_scope(run, context));
        if (!counters_are_back(before))
            fail_msg("when allocation %lld failed", (long long)k);
        if (done)
            return k;
    }
    fail_msg("never succeeded");
    return 0;
}

/* ---- numbers ------------------------------------------------------------ */

typedef struct {
    int64_t count, wrong, first;         /* numbers; wrong ones; the first */
    double expected, got, worst;         /* of the first; relative error */
} comparison;

/* One number more.  It is right if it is equal, not a number where none is
   expected, or no more than `slack` away. */
static inline void compare(comparison *c, double got, double expected,
                           double slack)
{
    const double error = fabs(got - expected);
    const bool same = got == expected || (isnan(got) && isnan(expected));
    if (!same)
        c->worst = fmax(c->worst, isnan(error) ? (double)INFINITY
                                               : error / fabs(expected));
    if (!same && !(error <= slack && isfinite(error)) && c->wrong++ == 0) {
        c->first = c->count;
        c->expected = expected;
        c->got = got;
    }
    c->count++;
}

static inline void report_wrong(const comparison *c, const char *file,
                                int line)
{
    print_error(": %lld of %lld are wrong, first [%lld]: expected %.17g, "
                "got %.17g; worst relative error %.3g\n",
                (long long)c->wrong, (long long)c->count,
                (long long)c->first, c->expected, c->got, c->worst);
    _fail(file, line);
}

/* All that was compared is right; the rest, as for printf, says what it is. */
#define expect_right(c, ...)                            \
    do {                                                \
        if ((c).wrong > 0) {                            \
            print_error(__VA_ARGS__);                   \
            report_wrong(&(c), __FILE__, __LINE__);     \
        }                                               \
    } while (0)

#define expect_number(got, expected, slack)             \
    do {                                                \
        comparison one_ = { 0 };                        \
        compare(&one_, got, expected, slack);           \
        expect_right(one_, "%s", #got);                 \
    } while (0)

/* ---- processes ---------------------------------------------------------- */

/* The sanitizers' own runtimes lose their locks in a fork. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED 1
#elif defined __has_feature
#define SANITIZED \
    (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED 0
#endif

static inline int status_of(pid_t child)
{
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

/* The status of `check`, run in a forked child that then exits. */
static inline int forked(int (*check)(void))
{
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        alarm(120);
        _exit(check());
    }
    return status_of(child);
}

/* The status of `program`, run anew as `argument` with one variable set. */
static inline int again(const char *program, const char *argument,
                        const char *variable, const char *value)
{
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        setenv(variable, value, 1);
        execl(program, program, argument, (char *)NULL);
        _exit(99);
    }
    return status_of(child);
}

/* ---- threads ------------------------------------------------------------ */

#if __has_include(<treadle/parallel.h>)
/* Calls `check` under each executor that is built, with 1 to 7 threads. */
static inline void under_any_threads(void (*check)(void *), void *context)
{
    static const int threads[] = { 1, 2, 3, 4, 7 };
    for (int e = TD_EXECUTOR_POOL; e <= TD_EXECUTOR_SERIAL; e++)
        for (int t = 0; t < 5; t++) {
            if (!td_set_executor((td_executor)e)) {
                expect_error(TD_ERROR_UNSUPPORTED, "OpenMP");
                continue;
            }
            assert_true(td_set_threads(threads[t]));
            check(context);
        }
}
#endif

/* ---- files ---------------------------------------------------------------- */

#ifdef TREADLE_TEST_FOLDER
static char folder[] = "/tmp/treadle-test-XXXXXX";
static char path[300];                   /* the last that was asked for */

static inline int make_folder(void **state)
{
    return mkdtemp(folder) == NULL;
}

static inline int remove_folder(void **state)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static inline const char *in_folder(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static inline const char *write_plain(const char *name, const void *bytes,
                                      size_t n)
{
    FILE *f = fopen(in_folder(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
    return path;
}
#endif

/* ---- tensors ------------------------------------------------------------ */

#if __has_include(<treadle/tensor.h>)
#include "core/tensor.h"

static const td_tensor_options plain = TD_DEFAULTS;
static const td_tensor_options wide = { .dtype = TD_FLOAT64 };

/* The element stored `offset` elements after the first one. */
static inline double element_at(const td_tensor *x, int64_t offset)
{
    double v;
    if (x->dtype == TD_FLOAT32)          /* the usual one, at once */
        return ((const float *)td_at(x))[offset];
    td_convert(TD_FLOAT64, &v, 1, x->dtype, (const char *)td_at(x)
               + offset * (int64_t)td_dtype_size(x->dtype), 1, 1);
    return v;
}

/* Element `i` in reading order, whatever the layout. */
static inline double at(const td_tensor *x, int64_t i)
{
    int64_t offset = 0;
    for (int d = x->rank - 1; d >= 0; d--) {
        offset += i % x->shape[d] * x->strides[d];
        i /= x->shape[d];
    }
    return element_at(x, offset);
}

static inline void expect_values_at(const td_tensor *x, double slack, int n,
                                    const double *expected,
                                    const char *file, int line)
{
    comparison c = { 0 };
    _assert_true(x != NULL, "a result", file, line);
    _assert_int_equal((uintmax_t)td_numel(x), (uintmax_t)n, file, line);
    for (int i = 0; i < n; i++)
        compare(&c, at(x, i), expected[i], slack);
    if (c.wrong > 0) {
        print_error("elements");
        report_wrong(&c, file, line);
    }
}

#define expect_values(x, slack, n, expected) \
    expect_values_at(x, slack, n, expected, __FILE__, __LINE__)

/* The elements of x are those listed, or no more than `slack` away. */
#define VALUES_NEAR(x, slack, ...)                                  \
    expect_values(x, slack,                                         \
        (int)(sizeof((double[]){ __VA_ARGS__ }) / sizeof(double)),  \
        ((double[]){ __VA_ARGS__ }))
#define VALUES(x, ...) VALUES_NEAR(x, 0, __VA_ARGS__)

typedef enum { PLAIN, TURNED, SLICED, SPREAD, LAYOUTS } layout;
static const char *const layout_names[] = { "plain", "turned", "sliced",
                                            "spread" };

/* Numbers in [low, high): whole ones in whole dtypes, coins in bool. */
static inline td_tensor *random_plain(td_dims shape, td_dtype dtype,
                                      double low, double high)
{
    td_tensor *x = td_tensor_new(shape, dtype,
                                 (td_device){ TD_DEVICE_CPU, 0 });
    assert_non_null(x);
    const int64_t n = td_numel(x);
    double *numbers = malloc((size_t)(n + 1) * sizeof *numbers);
    assert_non_null(numbers);
    for (int64_t i = 0; i < n; i++) {
        const double u = uniform(), v = low + u * (high - low);
        numbers[i] = dtype == TD_BOOL ? u < 0.5
                   : td_dtype_is_floating(dtype) ? v : floor(v);
    }
    td_convert(dtype, td_at(x), 1, TD_FLOAT64, numbers, 1, n);
    free(numbers);
    return x;
}

/* The same as a view: dimensions stored in the other order, every second
   element of a larger tensor, or one row shown as all. */
static inline td_tensor *random_tensor(td_dims shape, td_dtype dtype,
                                       layout how, double low, double high)
{
    td_dims other = shape, order = shape;
    const int n = shape.count;
    for (int d = 0; d < n; d++) {
        other.at[d] = how == TURNED ? shape.at[n - 1 - d]
                    : how == SLICED ? shape.at[d] * 2 + 1
                    : how == SPREAD && d == 0 ? shape.at[0] > 0
                    : shape.at[d];
        order.at[d] = n - 1 - d;
    }
    td_tensor *x = random_plain(other, dtype, low, high);
    if (how == TURNED && n > 0)
        return td_permute(x, order);
    for (int d = 0; how == SLICED && d < n; d++)
        x = td_slice(x, d, (td_opt_i64)td_some(1),
                     (td_opt_i64)td_some(shape.at[d] * 2 + 1), 2);
    return how == SPREAD && n > 0 ? td_expand(x, shape) : x;
}

static inline bool same_bytes(td_tensor *a, td_tensor *b)
{
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(td_numel(a), td_numel(b));
    assert_int_equal(td_dtype_of(a), td_dtype_of(b));
    return memcmp(td_data(a), td_data(b), (size_t)td_numel(a)
                  * td_dtype_size(td_dtype_of(a))) == 0;
}

/* Jobs 0 to n - 1, and what each gave at first. */
typedef struct {
    td_tensor *(*job)(int which, void *context);
    void *context;
    int n;
    td_tensor *first[32];
} jobs;

static inline void do_again(void *context)
{
    const jobs *j = context;
    for (int i = 0; i < j->n; i++) {
        td_scope_begin();
        if (!same_bytes(j->job(i, j->context), j->first[i]))
            fail_msg("job %d differs with executor %d, %d threads", i,
                     (int)td_get_executor(), td_threads());
        td_scope_end();
    }
}

/* Every job gives the same bits under any executor and number of threads. */
static inline void expect_same_bits(td_tensor *(*job)(int, void *), int n,
                                    void *context)
{
    jobs j = { .job = job, .context = context, .n = n };
    assert_in_range(n, 1, 32);
    assert_true(td_set_executor(TD_EXECUTOR_SERIAL));
    for (int i = 0; i < n; i++)
        j.first[i] = job(i, context);
    under_any_threads(do_again, &j);
}
#endif
#endif
