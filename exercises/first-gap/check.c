/* Where values lie in the arena, against a plan that was made with a map of taken lines. */
#include "check.h"
#include "compiler/lower.h"

enum { LINES = 8192, MOST = 100 };
static const char *rule = "a value goes to the lowest address at which nothing lies that is alive";
static char text[60000];
static int length, made, summed, named[MOST];

static void begin(void)
{
    length = made = summed = 0;
}

static __attribute__((format(printf, 1, 2))) void put(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    length += vsnprintf(text + length, sizeof text - (size_t)length, format, list);
    va_end(list);
}

/* A program as a list of events: n > 0 makes a value of n * 64 bytes, -k lets the k-th die.  Each value is an exponential, kept in
   memory because two sums read it. */
static td_program *program_of(const int64_t *event, int n)
{
    int v = 0, k = 0, sums[2 * MOST];
    begin();
    for (int e = 0; e < n; e++)
        if (event[e] > 0)
            put("input %%%d : float32[%" PRId64 "]\n", v++, 16 * event[e]);
    const int inputs = v;
    for (int e = 0; e < n; e++)
        if (event[e] > 0) {
            named[made] = v;
            put("%%%d = exp(%%%d) : float32[%" PRId64 "]\n", v++, k++, 16 * event[e]);
            made++;
        } else
            for (int twice = 0; twice < 2; twice++) {
                sums[summed++] = v;
                put("%%%d = sum(%%%d, dim=[0], keepdim=%s) : float32[%s]\n", v++, named[-event[e] - 1],
                    twice ? "True" : "False", twice ? "1" : "");
            }
    (void)inputs;
    put("return ");
    for (int s = 0; s < summed; s++)
        put("%s%%%d", s ? ", " : "", sums[s]);
    put("\n");
    td_program *p = td_program_parse(text);
    check_no_error();
    return p;
}

static void expect_place(int nth, int64_t got, int64_t expected)
{
    if (got != expected)
        check_wrong("  value %d   expected at %" PRId64 ", got %" PRId64, nth + 1, expected, got);
}

/* Plans the events and compares with a map of which lines of 64 bytes are taken. */
static void check_plan(const int64_t *event, int n)
{
    static bool taken[LINES];
    int64_t at[MOST], size[MOST], high = 0;
    int k = 0;
    td_lowered *l = td_lower(program_of(event, n));
    check_no_error();
    memset(taken, 0, sizeof taken);
    for (int e = 0; e < n; e++)
        if (event[e] > 0) {
            int64_t from = 0, free = 0;
            while (free < event[e])
                if (taken[from + free])
                    from += free + 1, free = 0;
                else
                    free++;
            memset(taken + from, 1, (size_t)event[e]);
            at[k] = from, size[k] = event[e];
            high = from + event[e] > high ? from + event[e] : high;
            expect_place(k, l->value[named[k]].place, 64 * from);
            k++;
        } else
            memset(taken + at[-event[e] - 1], 0, (size_t)size[-event[e] - 1]);
    if (l->bytes != 64 * high)
        check_wrong("  expected  an arena of %" PRId64 " bytes\n  got       %" PRId64, 64 * high, (int64_t)l->bytes);
    td_lowered_free(l);
}

#define PLAN(what, ...)                                               \
    do {                                                              \
        const int64_t list[] = { __VA_ARGS__ };                       \
        check_case(what, rule);                                       \
        check_plan(list, (int)(sizeof list / sizeof *list));          \
    } while (0)

static void check_large(void)
{
    const int64_t big = INT64_C(1) << 26;       /* lines: 4 GiB */
    const int64_t list[] = { big, big, 3, -1, 5, big - 5, -2, -3, -4, -5 }, at[] = { 0, big, 2 * big, 0, 5 };
    check_case("places of more than 2^32 bytes", rule);
    td_lowered *l = td_lower(program_of(list, 10));
    check_no_error();
    for (int k = 0; k < 5; k++)
        expect_place(k, l->value[named[k]].place, 64 * at[k]);
    td_lowered_free(l);
}

static void check_random(void)
{
    uint32_t state = 7;
    check_case("first gap of many, in programs by chance", rule);
    for (int round = 0; round < 60; round++) {
        int64_t event[2 * MOST];
        int n = 0, born = 0, alive[MOST], living = 0;
        while (born < 40 || living > 0) {
            state = state * 1664525u + 1013904223u;
            if (born < 40 && (living == 0 || state >> 30 < 2)) {
                event[n++] = 1 + (state >> 20) % (round % 2 ? 7 : 40);
                alive[living++] = ++born;
            } else {
                const int which = (int)((state >> 16) % (uint32_t)living);
                event[n++] = -alive[which];
                alive[which] = alive[--living];
            }
        }
        check_plan(event, n);
    }
}

int main(void)
{
    td_scope_begin();
    PLAN("two values that live at once", 1, 2, -1, -2);
    PLAN("a gap that fits exactly", 1, 2, 2, -2, 2, 1, -1, -3, -4, -5);
    PLAN("a gap before the first place", 3, 1, -1, 2, 1, -2, -3, -4);
    PLAN("a gap that is larger than the value, then the rest of it", 4, 1, -1, 1, 2, 2, -2, -3, -4, -5);
    PLAN("the first gap, although a later one fits better", 5, 1, 2, 1, -1, -3, 2, 1, -2, -4, -5, -6);
    PLAN("the first gap is too short, the second is not", 1, 1, 3, 1, -1, -3, 2, 1, -2, -4, -5, -6);
    check_large();
    check_random();
    int64_t many[3 * 40];
    for (int i = 0; i < 40; i++)
        many[i] = 2;
    for (int i = 0; i < 20; i++)
        many[40 + i] = -(2 * i + 2);
    for (int i = 0; i < 20; i++)
        many[60 + i] = 2;
    for (int i = 0; i < 40; i++)
        many[80 + i] = i < 20 ? -(2 * i + 1) : -(40 + i - 19);
    check_case("forty places, every second one free again", rule);
    check_plan(many, 120);
    td_scope_end();
    return check_end();
}
