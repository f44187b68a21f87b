/* Draws below n, each compared with the definition; words at the edges are made by undoing the mixer. */
#include "check.h"
#include <pthread.h>
#include <inttypes.h>
#include "ops/random.h"

uint64_t draw_below_between(td_stream stream, uint64_t index, uint64_t n);
static const char *how = "x = the draw of the index; while x < 2^64 mod n: x = td_mix(x + step); the result is x % n";
static const uint64_t golden = 0x9e3779b97f4a7c15;

static uint64_t mixed(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* The factor that undoes an odd one: each step doubles the bits that are right. */
static uint64_t inverse(uint64_t odd)
{
    uint64_t r = odd;
    for (int i = 0; i < 6; i++)
        r *= 2 - odd * r;
    return r;
}

static uint64_t unmixed(uint64_t z)
{
    z = (z ^ z >> 31 ^ z >> 62) * inverse(0x94d049bb133111eb);
    z = (z ^ z >> 27 ^ z >> 54) * inverse(0xbf58476d1ce4e5b9);
    return z ^ z >> 30 ^ z >> 60;
}

static uint64_t left_over(uint64_t n)
{
    return (UINT64_MAX % n + 1) % n;
}

static uint64_t below(uint64_t x, uint64_t step, uint64_t n)
{
    if (n == 0)
        return x;
    while (x < left_over(n))
        x = mixed(x + step);
    return x % n;
}

static void compare(uint64_t got, uint64_t expected)
{
    if (got != expected)
        check_wrong("  expected  %" PRIu64 "\n  got       %" PRIu64, expected, got);
}

/* The draw of `index` is made to be x. */
static void check_word(const char *text, const char *what, uint64_t x, uint64_t n)
{
    char both[160];
    const uint64_t index = 1000003, step = golden;
    snprintf(both, sizeof both, "%s, %s", text, what);
    check_case(both, how);
    compare(draw_below_between((td_stream){ unmixed(x) - (index + 1) * step, step }, index, n), below(x, step, n));
}

static void check_edges(const char *text, uint64_t n)
{
    const uint64_t bad = n == 0 ? 0 : left_over(n);
    check_word(text, "the draw 0", 0, n);
    if (bad > 0)
        check_word(text, "the draw 2^64 mod n - 1, the last that is refused", bad - 1, n);
    check_word(text, "the draw 2^64 mod n, the first that is not refused", bad, n);
    check_word(text, "the draw after that", bad + 1, n);
    check_word(text, "the draw 2^64 - 1", UINT64_MAX, n);
    check_word(text, "the draw 2^64 - 1 less 2^64 mod n", UINT64_MAX - bad, n);
}

/* A thousand draws of a row of the table, then the same again from the back. */
static void check_row(const char *text, uint64_t n)
{
    const td_stream stream = td_stream_of((td_random_state){ 17, 4 });
    check_case(text, how);
    for (uint64_t i = 0; i < 1000; i++)
        compare(draw_below_between(stream, i, n), below(mixed(stream.start + (i + 1) * stream.step), stream.step, n));
    char again[120];
    snprintf(again, sizeof again, "%s, asked again from the last to the first", text);
    check_case(again, "the same arguments give the same number, whatever was drawn before");
    for (uint64_t i = 1000; i-- > 0;)
        compare(draw_below_between(stream, i, n), below(mixed(stream.start + (i + 1) * stream.step), stream.step, n));
}

/* Every second word is refused: look for one that is so twenty times. */
static void check_patience(void)
{
    const uint64_t n = (UINT64_C(1) << 63) + 1, bad = left_over(n);
    uint64_t first = 0;
    for (int run = 0; run < 20; first++) {
        uint64_t x = mixed(first);
        for (run = 0; run < 20 && x < bad; run++)
            x = mixed(x + golden);
    }
    check_word("n = 2^63 + 1", "a draw that is refused twenty times in a row", mixed(first - 1), n);
}

enum { MANY = 100000 };
static const td_stream shared = { 12345, 0x9e3779b97f4a7c15 };

static void *draw_many(void *numbers)
{
    for (uint64_t i = 0; i < MANY; i++)
        ((uint64_t *)numbers)[i] = draw_below_between(shared, i, (UINT64_C(1) << 63) + 1);
    return NULL;
}

static void check_threads(void)
{
    static uint64_t numbers[2][MANY];
    pthread_t other;
    check_case("two threads draw at once", "a number depends on stream, index and n, and on nothing else");
    pthread_create(&other, NULL, draw_many, numbers[0]);
    draw_many(numbers[1]);
    pthread_join(other, NULL);
    for (uint64_t i = 0; i < MANY; i++)
        for (int t = 0; t < 2; t++)
            compare(numbers[t][i], below(mixed(shared.start + (i + 1) * shared.step), shared.step, (UINT64_C(1) << 63) + 1));
}

static void check_tensor_of_dice(void)
{
    const td_stream stream = td_stream_of((td_random_state){ 6, 0 });
    td_scope_begin();
    check_case("a tensor of 60000 dice, td_randint(1, 7)", how);
    td_manual_seed(6);
    td_tensor *throws = td_randint(1, 7, TD_DIMS(60000), (td_tensor_options)TD_DEFAULTS);
    check_no_error();
    const int64_t *face = td_data(throws);
    for (uint64_t i = 0; i < 60000; i++)
        compare((uint64_t)face[i], 1 + below(mixed(stream.start + (i + 1) * stream.step), stream.step, 6));
    td_scope_end();
}

int main(void)
{
    static const struct { const char *text; uint64_t n; } ranges[] = {
        { "n = 6", 6 }, { "n = 3 * 2^62", UINT64_C(3) << 62 }, { "n = 1", 1 }, { "n = 2", 2 }, { "n = 1000003", 1000003 },
        { "n = 2^32", UINT64_C(1) << 32 }, { "n = 2^32 + 1", (UINT64_C(1) << 32) + 1 }, { "n = 2^63", UINT64_C(1) << 63 },
        { "n = 2^63 + 1", (UINT64_C(1) << 63) + 1 }, { "n = 2^64 - 1", UINT64_MAX }, { "n = 0, which is 2^64", 0 } };
    for (size_t k = 0; k < sizeof ranges / sizeof ranges[0]; k++) {
        check_edges(ranges[k].text, ranges[k].n);
        check_row(ranges[k].text, ranges[k].n);
    }
    check_patience();
    check_threads();
    check_tensor_of_dice();
    return check_end();
}
