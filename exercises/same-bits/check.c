/* Reductions whose accumulators spell what was combined with what. */
#include "check.h"
#include "core/parallel.h"
#include <pthread.h>
#include <time.h>

enum { MOST = 26, WIDE = 100 };
static const char *const formula = "block i is [i*grain, ...); accumulator i takes i+1, then i+2, i+4, ... into it";

/* Who was called with what, in whatever thread. */
typedef struct {
    pthread_mutex_t lock;
    pthread_t caller;
    int64_t n, grain, fails_at;
    bool silent, foreign;
    int mapped[MOST + 1], maps, combines;
    int64_t bad[2];                     /* a part that is no block */
} record;

static record seen;
static long pause;                      /* nanoseconds of one combine: time for others to take the next */

static bool note(void *context, int64_t begin, int64_t end)
{
    record *r = context;
    if (r != &seen)
        check_wrong("  expected  a context of the caller's\n  got       another pointer");
    pthread_mutex_lock(&r->lock);
    const int64_t block = begin / r->grain, left = r->n - begin;
    const bool good = begin % r->grain == 0 && begin >= 0 && begin < r->n
        && end == begin + (left < r->grain ? left : r->grain);
    if (good)
        r->mapped[block < MOST ? block : MOST]++;
    else
        r->bad[0] = begin, r->bad[1] = end;
    r->maps++;
    pthread_mutex_unlock(&r->lock);
    return good;
}

static bool spell(void *context, int64_t begin, int64_t end, void *word)
{
    record *r = context;
    if (!note(context, begin, end))
        return true;
    const int64_t block = begin / r->grain;
    char *text = word;
    const size_t length = strlen(text);
    if (length < WIDE - 1)
        text[length] = (char)('a' + block);
    if (r->fails_at >= 0 && block >= r->fails_at)
        return r->silent ? false : td_fail(TD_ERROR_VALUE, "map", "block %d", (int)block);
    return true;
}

static void join(void *context, void *into, const void *from)
{
    record *r = context;
    char text[2 * WIDE + 3];
    if (pause > 0)
        nanosleep(&(struct timespec){ .tv_nsec = pause }, NULL);
    r->combines++;
    r->foreign |= !pthread_equal(r->caller, pthread_self());
    snprintf(text, sizeof text, "(%s%s)", (char *)into, (const char *)from);
    text[WIDE - 1] = '\0';
    memcpy(into, text, strlen(text) + 1);
}

/* What the tree makes of blocks `first` to `first + count - 1`. */
static char *spelt(char *out, int first, int count)
{
    int half = 1;
    while (2 * half < count)
        half *= 2;
    if (count == 0)
        return out;
    if (count == 1)
        *out++ = (char)('a' + first);
    else {
        *out++ = '(';
        out = spelt(out, first, half);
        out = spelt(out, first + half, count - half);
        *out++ = ')';
    }
    return out;
}

static void begin(const char *what, int64_t n, int64_t grain)
{
    check_case(what, formula);
    pthread_mutex_t lock = seen.lock;
    seen = (record){ .lock = lock, .caller = pthread_self(), .n = n, .grain = grain, .fails_at = -1, .bad = { -1, -1 } };
}

static void expect_words(const char *expected, const char *got)
{
    if (seen.bad[0] >= 0 || seen.bad[1] >= 0)
        check_wrong("  expected  parts that are whole blocks of %" PRId64 ", of [0,%" PRId64 ")\n"
                    "  got       [%" PRId64 ",%" PRId64 ")", seen.grain, seen.n, seen.bad[0], seen.bad[1]);
    if (strcmp(expected, got) != 0)
        check_wrong("  expected  %s\n  got       %s", expected, got);
}

static void check_tree(const char *what, int64_t n, int64_t grain)
{
    char expected[WIDE] = "", word[WIDE] = "", empty[WIDE] = "";
    const int count = (int)(n / grain + (n % grain != 0));
    begin(what, n, grain);
    *spelt(expected, 0, count) = '\0';
    const bool ok = td_parallel_reduce(n, grain, WIDE, empty, spell, join, &seen, word);
    check_no_error();
    expect_words(expected, word);
    if (!ok)
        check_wrong("  expected  true\n  got       false");
    for (int i = 0; i < count; i++)
        if (seen.mapped[i] != 1)
            check_wrong("  expected  each block mapped once\n  got       block %d mapped %d times", i, seen.mapped[i]);
    if (seen.maps != count || seen.combines != (count > 0 ? count - 1 : 0))
        check_wrong("  expected  %d calls of map and %d of combine\n  got       %d and %d", count,
                    count > 0 ? count - 1 : 0, seen.maps, seen.combines);
    if (seen.foreign)
        check_wrong("  expected  combine called in the thread that called td_parallel_reduce\n  got       another thread");
}

static void check_trees(void)
{
    char what[120];
    td_set_threads(1);
    check_tree("five blocks of two: n = 10, grain = 2, one thread", 10, 2);
    for (int threads = 1; threads <= 7; threads++) {
        td_set_threads(threads);
        for (int blocks = 0; blocks <= MOST; blocks++)
            for (int64_t grain = 1; grain <= 5; grain += 2)
                for (int64_t n = blocks * grain - (blocks > 0 && grain > 1); n <= blocks * grain; n++) {
                    snprintf(what, sizeof what, "n = %d, grain = %d, %s: %s%s", (int)n, (int)grain,
                             n == 0 ? "no element" : n % grain ? "the last block is short" : "a multiple of the grain",
                             threads > 1 ? "more than one thread" : "one thread", threads > 2 ? ", more than two" : "");
                    check_tree(what, n, grain);
                }
    }
    pause = 2000000;
    check_tree("26 blocks of one element, which are combined slowly, on seven threads", MOST, 1);
    td_set_threads(2);
    check_tree("9 blocks of three elements, which are combined slowly, on two threads", 27, 3);
    pause = 0;
}

/* Values: the smallest, whose identity is not zero; sums of floats. */
static bool smallest(void *x, int64_t begin, int64_t end, void *out)
{
    for (int64_t i = begin; i < end; i++)
        if (((double *)x)[i] < *(double *)out)
            *(double *)out = ((double *)x)[i];
    return true;
}

static void smaller(void *x, void *into, const void *from)
{
    (void)x;
    if (*(const double *)from < *(double *)into)
        *(double *)into = *(const double *)from;
}

static void check_identity(void)
{
    const double most = INFINITY;
    double x[50], got = -7;
    for (int i = 0; i < 50; i++)
        x[i] = 3 + i * 37 % 50;
    check_case("the smallest of positive numbers", "an accumulator begins as the identity, here infinity");
    td_parallel_reduce(50, 8, sizeof got, &most, smallest, smaller, x, &got);
    check_no_error();
    check_numbers(&got, &(double){ 3 }, 1, 0);
    check_case("the smallest of no element", "an accumulator begins as the identity, here infinity");
    td_parallel_reduce(0, 8, sizeof got, &most, smallest, smaller, x, &got);
    check_numbers(&got, &most, 1, 0);
}

static bool add_up(void *x, int64_t begin, int64_t end, void *sum)
{
    for (int64_t i = begin; i < end; i++)
        *(float *)sum += ((float *)x)[i];
    return true;
}

static void add(void *x, void *into, const void *from)
{
    (void)x;
    *(float *)into += *(const float *)from;
}

static float summed(const float *x, int64_t first, int64_t count, int64_t grain, int64_t n)
{
    float sum = 0;
    int64_t half = 1;
    while (2 * half < count)
        half *= 2;
    if (count > 1)
        return summed(x, first, half, grain, n) + summed(x, first + half, count - half, grain, n);
    for (int64_t i = first * grain; i < (first + 1) * grain && i < n; i++)
        sum += x[i];
    return sum;
}

static void check_sums(void)
{
    enum { N = 100003 };
    float *x = malloc(N * sizeof *x), zero = 0;
    for (int i = 0; i < N; i++)
        x[i] = 1.0f / (float)(1 + (int64_t)i * 7919 % N);
    for (int threads = 1; threads <= 7; threads += 2)
        for (int64_t grain = 1; grain < 3 * N; grain = grain * 5 + 2) {
            char what[120];
            float sum = -1, expected = summed(x, 0, N / grain + (N % grain != 0), grain, N);
            snprintf(what, sizeof what, "the sum of %d floats, grain %d, on %d threads", N, (int)grain, threads);
            check_case(what, formula);
            td_set_threads(threads);
            td_parallel_reduce(N, grain, sizeof sum, &zero, add_up, add, x, &sum);
            check_no_error();
            check_floats(&sum, &expected, 1, 0);
        }
    free(x);
}

/* Accumulators of every size, in which each byte counts for itself. */
static size_t wide;

static bool mark(void *unused, int64_t begin, int64_t end, void *bytes)
{
    (void)unused;
    for (size_t k = 0; k < wide; k++)
        ((unsigned char *)bytes)[k] = (unsigned char)(((unsigned char *)bytes)[k] + (end - begin) * (int64_t)(k + 1));
    return true;
}

static void join_marks(void *unused, void *into, const void *from)
{
    (void)unused;
    for (size_t k = 0; k < wide; k++)
        ((unsigned char *)into)[k] = (unsigned char)(((unsigned char *)into)[k] + ((const unsigned char *)from)[k]);
}

static void check_widths(void)
{
    unsigned char got[WIDE + 1], none[WIDE] = { 0 };
    for (wide = 1; wide <= WIDE; wide++) {
        char what[100];
        snprintf(what, sizeof what, "accumulators of 1 to 100 bytes: %d bytes", (int)wide);
        check_case(what, "accumulator i stands i * stride bytes after b->accumulators");
        memset(got, 99, sizeof got);
        td_parallel_reduce(23, 2, wide, none, mark, join_marks, NULL, got);
        check_no_error();
        for (size_t k = 0; k < wide; k++)
            if (got[k] != (unsigned char)(23 * (k + 1)))
                check_wrong("  first bad byte %d\n  expected  %d\n  got       %d", (int)k, (int)(unsigned char)(23 * (k + 1)), got[k]);
        if (got[wide] != 99)
            check_wrong("  expected  %d bytes in the result\n  got       more", (int)wide);
    }
}

static void check_huge(void)
{
    const int64_t grains[] = { INT64_MAX / 2, INT64_MAX - 1, INT64_MAX, INT64_MAX / 3 + 5, INT64_C(1) << 60 };
    for (int k = 0; k < 5; k++)
        check_tree("as many elements as there can be, of which map touches none", INT64_MAX, grains[k]);
    check_tree("as many elements as there can be in 33 bits, and a little more", (INT64_C(1) << 33) + 5, (INT64_C(1) << 31) + 7);
}

static void check_failures(void)
{
    char word[WIDE] = "as before", empty[WIDE] = "", expected[80];
    for (int threads = 1; threads <= 4; threads++)
        for (int at = 0; at < 12; at++)
            for (int silent = 0; silent < 2; silent++) {
                td_set_threads(threads);
                begin(silent ? "a block fails without a word, and all above it" : "a block fails, and all above it", 24, 2);
                seen.fails_at = at, seen.silent = silent != 0;
                const bool ok = td_parallel_reduce(24, 2, WIDE, empty, spell, join, &seen, word);
                snprintf(expected, sizeof expected, silent ? "parallel_for: a loop body failed without saying why" : "map: block %d", at);
                if (ok || !td_failed())
                    check_wrong("  expected  false and an error, from block %d on\n  got       %s", at, ok ? "true" : "no error");
                if (strcmp(td_error_message(), expected) != 0)
                    check_wrong("  expected  the error \"%s\"\n  got       \"%s\"", expected, td_error_message());
                td_error_clear();
                if (strcmp(word, "as before") != 0 || seen.combines > 0)
                    check_wrong("  expected  nothing combined\n  got       %d combined", seen.combines);
                if (threads == 1 && seen.maps != at + 1)
                    check_wrong("  expected  %d blocks mapped by the one thread, the last of which fails\n  got       %d", at + 1, seen.maps);
            }
}

static bool reduce_inside(void *x, int64_t begin, int64_t end, void *sum)
{
    float inner = 0, zero = 0;
    if (!td_parallel_reduce(end - begin, 2, sizeof inner, &zero, add_up, add, (float *)x + begin, &inner))
        return false;
    *(float *)sum += inner;
    return true;
}

static void check_nested(void)
{
    float x[60], got = -1, zero = 0, expected = 60 * 61 / 2;
    for (int i = 0; i < 60; i++)
        x[i] = (float)(i + 1);
    for (int threads = 1; threads <= 3; threads++) {
        td_set_threads(threads);
        check_case("a map that reduces something itself", formula);
        td_parallel_reduce(60, 7, sizeof got, &zero, reduce_inside, add, x, &got);
        check_no_error();
        check_floats(&got, &expected, 1, 0);
    }
}

/* Maps that stay in a block for a moment, so that every thread takes part. */
static void *reduce_forever(void *x)
{
    for (int i = 0; i < 300; i++) {
        float sum = -1, zero = 0, expected = (float)(*(float *)x * 64);
        td_parallel_reduce(64, 3, sizeof sum, &zero, add_up, add, x, &sum);
        if (sum != expected)
            return x;
    }
    return NULL;
}

static void check_two_users(void)
{
    float x[2][64];
    void *bad[2];
    pthread_t thread[2];
    td_set_threads(2);
    check_case("two threads of the program reduce at the same time", formula);
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 64; i++)
            x[k][i] = (float)(k + 1);
        pthread_create(&thread[k], NULL, reduce_forever, x[k]);
    }
    for (int k = 0; k < 2; k++)
        pthread_join(thread[k], &bad[k]);
    for (int k = 0; k < 2; k++)
        if (bad[k] != NULL)
            check_wrong("  expected  the sum of 64 times %d\n  got       another number", k + 1);
}

int main(void)
{
    pthread_mutex_init(&seen.lock, NULL);
    check_trees();
    check_identity();
    check_widths();
    check_huge();
    check_failures();
    check_nested();
    check_two_users();
    check_sums();
    return check_end();
}
