/* Calls that leave something behind, and calls that only look as if they did. */
#include "check.h"
#include "core/memory.h"
#include "core/runtime.h"
#include "grad/autograd.h"

bool leaks_more(void (*work)(void *context), void *context);
extern int calls_to_warm_up, calls_that_count;

enum { MOST = 100 };
static struct {
    int at, first, last;                /* this call; the first and the last that count */
    int other_context, bent;
    void (*work)(void);
    td_tensor *kept[MOST], *weight;
    td_node *cut[MOST];
    int n_kept, n_cut;
    int64_t counted[TD_COUNTS];         /* what was added to the counters by hand */
    int64_t bytes;
} now;

static td_tensor *some(int64_t n)
{
    return td_ones(TD_DIMS(n), (td_tensor_options)TD_DEFAULTS);
}

static void keep(td_tensor *x)
{
    now.kept[now.n_kept++] = td_retain(x);
}

static void drop(void)
{
    if (now.n_kept > 0)
        td_release(now.kept[--now.n_kept]);
}

static void counted(td_counter what, int64_t change)
{
    td_count(what, change);
    now.counted[what] += change;
}

static void counted_bytes(int64_t change)
{
    td_count_bytes(change);
    now.bytes += change;
}

/* ---- what is called ------------------------------------------------------ */

static void nothing(void) { td_add(some(3), td_mul(some(3), some(3))); }
static void keeps_each(void) { keep(some(5)); }
static void keeps_empty(void) { keep(some(0)); }
static void keeps_outside(void) { td_keep(some(5)); }
static void keeps_node(void)
{
    td_tensor *y = td_mul(now.weight, now.weight);
    if (y->node != NULL)
        now.cut[now.n_cut++] = td_retain(y->node);
}
static void plants(void)
{
    td_tensor *y = td_mul(now.weight, now.weight);
    if (y->node == NULL)
        return;
    y->node->out[0].saved.tensor = td_retain(y);
    now.cut[now.n_cut++] = td_retain(y->node);
    td_release(y->node);
}
static void other_kind(void) { counted(TD_COUNT_OTHERS, 1); }
static void node_for_other(void) { counted(TD_COUNT_NODES, 1), counted(TD_COUNT_OTHERS, -1); }
static void tensor_for_other(void) { counted(TD_COUNT_TENSORS, 1), counted(TD_COUNT_OTHERS, -1); }
static void tensor_for_node(void) { counted(TD_COUNT_TENSORS, 2), counted(TD_COUNT_NODES, -3); }
static void larger_and_larger(void)
{
    td_tensor *x = some(10 * (now.at + 1));
    drop();
    keep(x);
}
static void fewer_but_larger(void)
{
    drop(), drop();
    counted_bytes(4096);
}
static void once_at_last(void) { if (now.at == now.last) keep(some(1)); }
static void once_at_first(void) { if (now.at == now.first) keep(some(1)); }
static void once_before(void) { if (now.at == now.first - 1) keep(some(1)); }
static void once_between(void) { if (now.at == now.first + 12) counted(TD_COUNT_OTHERS, 1); }
static void one_byte(void) { if (now.at == now.first + 12) counted_bytes(1); }
static void four_gigabytes(void) { if (now.at == now.first + 7) counted_bytes(INT64_C(1) << 32); }
static void four_thousand_million(void) { if (now.at == now.first + 7) counted(TD_COUNT_OTHERS, INT64_C(1) << 32); }
static void first_call_only(void) { if (now.at == 0) keep(some(7)); }
static void until_warm(void) { if (now.at < now.first) keep(some(7)); }
static void last_of_all(void) { td_tensor *x = some(7); drop(); keep(x); }
static void up_and_down(void) { if (now.at % 2 == 0) keep(some(7)); else drop(); }
static void one_wave(void)
{
    if (now.at == now.first)
        for (int i = 0; i < 5; i++)
            keep(some(7));
    for (int i = 0; now.at == now.last && i < 5; i++)
        drop();
}
static void every_seventh(void) { if (now.at % 7 == 6) keep(some(1)); }
static void releases(void) { drop(); }
static void fails_and_keeps(void)
{
    if (td_failed())
        return;
    keep(some(2));
    td_fail(TD_ERROR_VALUE, "work", "of no use");
}
static void fails_only(void) { td_fail(TD_ERROR_VALUE, "work", "of no use"); }
static void higher_peaks(void) { some(100000 * (now.at + 1)); }

typedef struct { const char *what; void (*work)(void); bool leak; int kept_before; } example;

static const char *formula = "true: tensors, nodes, objects or bytes are more after the last call than after the warm-up";

static const example examples[] = {
    { "tensors are made and dropped", nothing, false, 0 },
    { "each call needs more for a while than the one before", higher_peaks, false, 0 },
    { "a tensor is kept at each call", keeps_each, true, 0 },
    { "a tensor without elements is kept at each call", keeps_empty, true, 0 },
    { "td_keep moves a tensor to the scope outside", keeps_outside, true, 0 },
    { "a node is kept at each call", keeps_node, true, 0 },
    { "a cycle is planted in mul", plants, true, 0 },
    { "an object that is neither tensor nor node is kept", other_kind, true, 0 },
    { "a node comes for each other object that goes", node_for_other, true, 0 },
    { "a tensor comes for each other object that goes", tensor_for_other, true, 0 },
    { "two tensors come for three nodes that go", tensor_for_node, true, 0 },
    { "one tensor, larger at each call", larger_and_larger, true, 0 },
    { "tensors go, and bytes are more at each call", fewer_but_larger, true, 80 },
    { "one object is kept at the 21st call", once_between, true, 0 },
    { "one object is kept at the first call that counts", once_at_first, true, 0 },
    { "one object is kept at the last call", once_at_last, true, 0 },
    { "one object is kept at every seventh call", every_seventh, true, 0 },
    { "one byte more at the 21st call", one_byte, true, 0 },
    { "2^32 bytes more at one call", four_gigabytes, true, 0 },
    { "2^32 objects more at one call", four_thousand_million, true, 0 },
    { "one object is kept at the last call of the warm-up", once_before, false, 0 },
    { "the first call fills a cache", first_call_only, false, 0 },
    { "the warm-up fills a cache", until_warm, false, 0 },
    { "the tensor of the last call is kept", last_of_all, false, 0 },
    { "kept at one call, released at the next", up_and_down, false, 0 },
    { "five are kept at the first call that counts and released at the last", one_wave, false, 0 },
    { "each call releases what was there before", releases, false, 60 },
    { "a tensor is kept, and the call fails", fails_and_keeps, true, 0 },
    { "each call fails and keeps nothing", fails_only, false, 0 },
};

static void call(void *context)
{
    now.other_context += context != &now;
    now.bent += !td_grad_enabled();
    now.work();
    now.at++;
}

static void clean_up(void)
{
    while (now.n_kept > 0)
        drop();
    for (int i = 0; i < now.n_cut; i++) {
        td_node_drop(now.cut[i]);
        td_release(now.cut[i]);
    }
    for (int what = 0; what < TD_COUNTS; what++)
        td_count(what, -now.counted[what]);
    td_count_bytes(-now.bytes);
}

static void check_example(const example *x)
{
    memset(&now, 0, sizeof now);
    check_case(x->what, formula);
    td_scope_begin();
    now.weight = td_set_requires_grad(some(3), true);
    td_scope_begin();
    for (int i = 0; i < x->kept_before; i++)
        keep(some(3));
    td_scope_end();
    now.work = x->work;
    now.first = calls_to_warm_up;
    now.last = calls_to_warm_up + calls_that_count - 1;
    const int depth = td_self()->depth;
    const bool answer = leaks_more(call, &now);
    if (td_failed())
        check_wrong("  expected  no error left pending\n  got       %s", td_error_message());
    if (now.at != now.last + 1)
        check_wrong("  expected  work called %d times\n  got       %d times", now.last + 1, now.at);
    if (now.other_context > 0)
        check_wrong("  expected  work called with the context\n  got       something else, %d times", now.other_context);
    if (now.bent > 0 || !td_grad_enabled())
        check_wrong("  expected  recording on, as it was\n  got       off");
    if (td_self()->depth != depth)
        check_wrong("  expected  as many scopes open as before, %d\n  got       %d", depth, td_self()->depth);
    if (answer != x->leak)
        check_wrong("  expected  %s\n  got       %s", x->leak ? "true" : "false", answer ? "true" : "false");
    clean_up();
    td_scope_end();
}

int main(void)
{
    for (int again = 0; again < 2; again++)
        for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++)
            check_example(&examples[i]);
    return check_end();
}
