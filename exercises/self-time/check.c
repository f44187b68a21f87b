/* Events that nest as a text says, each a while long; what the library says of them must add up.  SPDX-License-Identifier: MIT */
#include "check.h"
#include <time.h>

static int64_t clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void spend(int64_t ns)
{
    for (const int64_t until = clock_now() + ns; clock_now() < until;)
        ;
}

/* A letter begins an event of that name, a ) ends the innermost; + makes a tensor of 64 bytes, - lets the newest go;
   the events of the operator that makes it are among them.  A capital letter begins a forward event of the small letter's name. */
static td_event *play(const char *script, int *n, int64_t *began, int64_t *ended, int *most)
{
    td_tensor *made[16];
    int count = 0;
    const td_profile_options options = { .memory = true };
    *most = 0;
    if (!td_profile_begin(options))
        check_wrong("  error     %s", td_error_message());
    for (const char *c = script; *c; c++) {
        const bool forward = *c >= 'A' && *c <= 'Z';
        const char name[2] = { (char)(forward ? *c + 32 : *c), 0 };
        spend(20000);
        if (*c == '+')
            made[count++] = td_zeros(TD_DIMS(16), (td_tensor_options)TD_DEFAULTS);
        else if (*c == '-')
            td_release(made[--count]);
        else if (*c == ')') {
            ended[*most] = clock_now();
            td_event_end();
            ++*most;
        } else {
            began[*c & 127] = clock_now();
            td_event_begin(name, forward ? TD_EVENT_FORWARD : TD_EVENT_USER);
        }
    }
    while (count > 0)
        td_release(made[--count]);
    return td_profile_end(n);
}

static const char *total = "total = end - start";
static const char *self = "self = total - sum of the totals of the events directly inside";
static const char *bytes = "bytes = self_bytes + sum of the bytes of the events directly inside";
static const char *again = "again: an event around it, however far, has its kind and its name";

static void judge(const char *what, const char *script)
{
    static int64_t began[128], ended[64];
    int n, ends;
    check_case(what, total);
    const int64_t first = clock_now();
    td_event *e = play(script, &n, began, ended, &ends);
    const int64_t all = clock_now() - first;
    if (e == NULL)
        check_wrong("  error     %s", td_error_message());
    for (int i = 0; i < n; i++) {
        int64_t inner = 0, held = e[i].self_bytes;
        bool same = false;
        if (e[i].kind == TD_EVENT_MEMORY)
            continue;
        for (int k = i + 1; k < n; k++)
            if (e[k].outer == i && e[k].kind != TD_EVENT_MEMORY)
                inner += e[k].total, held += e[k].bytes;
        for (int k = e[i].outer; k >= 0; k = e[k].outer)
            same |= e[k].kind == e[i].kind && strcmp(e[k].name, e[i].name) == 0;
        if (e[i].total < 0 || e[i].total > all || (e[i].kind == TD_EVENT_USER && e[i].total < 20000))
            check_wrong("  in '%s', event '%s' (number %d)\n  expected  a total of 20000 to %lld ns\n  got       %lld", script, e[i].name, i,
                        (long long)all, (long long)e[i].total);
        check_formula = self;
        if (e[i].self != e[i].total - inner)
            check_wrong("  in '%s', event '%s' (number %d), total %lld\n  expected  self %lld ns\n  got       self %lld ns", script, e[i].name, i,
                        (long long)e[i].total, (long long)(e[i].total - inner), (long long)e[i].self);
        check_formula = bytes;
        if (e[i].bytes != held)
            check_wrong("  in '%s', event '%s' (number %d)\n  expected  %lld bytes\n  got       %lld", script, e[i].name, i, (long long)held,
                        (long long)e[i].bytes);
        check_formula = again;
        if (e[i].again != same)
            check_wrong("  in '%s', event '%s' (number %d)\n  expected  again = %d\n  got       again = %d", script, e[i].name, i, same, e[i].again);
    }
    td_profile_free(e, n);
}

int main(void)
{
    judge("one event", "a)");
    judge("two, one behind the other", "a)b)");
    judge("one inside another", "ab))");
    judge("three inside each other", "abc)))");
    judge("two inside one", "ab)c))");
    judge("a second tree of events", "ab))cd)e))");
    judge("a tensor made in an event", "a+)-");
    judge("a tensor made deep inside", "ab+c)))-");
    judge("made in one event and given back in another", "ab+)c-))");
    judge("an event inside one of its name", "aa))");
    judge("an event far inside one of its name", "xabca)))))");
    judge("one of its name beside it", "xa)a))");
    judge("a forward event that makes a tensor", "wA+))-");
    judge("the name of an event of another kind", "aA))");
    judge("forward events of one name", "AbA)))");
    return check_end();
}
