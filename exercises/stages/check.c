/* A call is sent through stages that write down when they are asked, and what they are told. */
#include "check.h"
#include "core/call.h"

/* Calls pass_stages as the hole makes it (between.c), which sees the stages below. */
bool pass_between(td_call *call, unsigned set, td_kernel *kernel);
void exchange_kernel(td_plan *plan, td_kernel *kernel);
extern const int stages_of_the_check;

enum { STAGES = 6, CHANGE = 3 };
static const char *const names[] = { "compose", "mute", "record", "change", "trace", "profile" };
static const char *const formula =
    "enter from the outermost, run the kernel, count the results, leave from the innermost what was entered";

typedef struct {
    const char *what;
    unsigned set;           /* stages in the way */
    int refuses;            /* the stage that refuses, or -1 */
    bool kernel;            /* what the kernel says */
    int breaks;             /* the stage that says no on the way out, or -1 */
    int results;
    bool exchanged;         /* the outermost stage puts another kernel in place */
    bool nested;            /* the kernel calls an operator */
} journey;

static _Thread_local const journey *now;
static _Thread_local char went[2000];
static _Thread_local unsigned inside;       /* stages entered and not left */
static _Thread_local int counted, muted, depth;

static void say(const char *format, ...)
{
    const size_t at = strlen(went);
    va_list list;
    va_start(list, format);
    vsnprintf(went + at, sizeof went - at, format, list);
    va_end(list);
}

static bool another_kernel(td_call *call);

static bool entered(int stage, td_plan *plan)
{
    const bool ok = stage != now->refuses;
    say(" >%s%s", names[stage], ok ? "" : "(no)");
    inside |= 1u << stage;
    if (now->exchanged && now->set >> stage == 1)
        exchange_kernel(plan, another_kernel);
    return ok || (td_fail(TD_ERROR_VALUE, names[stage], "refused"), false);
}

static bool left(int stage, const td_call *call, bool ok)
{
    say(" <%s(%s,%d)", names[stage], ok ? "yes" : "no", call->n_out);
    inside &= ~(1u << stage);
    return stage != now->breaks && ok;
}

/* `mute` and `record` share what they do on the way in: record stands further out. */
bool enter_0(td_call *call, td_plan *plan);
bool enter_1(td_call *call, td_plan *plan);
bool enter_3(td_call *call, td_plan *plan);
bool enter_4(td_call *call, td_plan *plan);
bool enter_5(td_call *call, td_plan *plan);
bool leave_0(td_call *call, bool ok);
bool leave_1(td_call *call, bool ok);
bool leave_2(td_call *call, bool ok);
bool leave_3(td_call *call, bool ok);
bool leave_4(td_call *call, bool ok);
bool leave_5(td_call *call, bool ok);
void note_view_of_the_check(td_call *call, bool recording);
bool enter_0(td_call *call, td_plan *plan) { (void)call; return entered(0, plan); }
bool enter_1(td_call *call, td_plan *plan)
{
    (void)call;
    return entered(now->set >> 2 & 1 && !(inside >> 2 & 1) ? 2 : 1, plan);
}
bool enter_3(td_call *call, td_plan *plan) { (void)call; return entered(3, plan); }
bool enter_4(td_call *call, td_plan *plan) { (void)call; return entered(4, plan); }
bool enter_5(td_call *call, td_plan *plan) { (void)call; return entered(5, plan); }
bool leave_0(td_call *call, bool ok) { return left(0, call, ok); }
bool leave_1(td_call *call, bool ok) { return left(1, call, ok); }
bool leave_2(td_call *call, bool ok) { return left(2, call, ok); }
bool leave_3(td_call *call, bool ok) { return left(3, call, ok); }
bool leave_4(td_call *call, bool ok) { return left(4, call, ok); }
bool leave_5(td_call *call, bool ok) { return left(5, call, ok); }
void note_view_of_the_check(td_call *call, bool recording)
{
    (void)call, (void)recording;
    counted++;
}

static void travel(const journey *j);

static bool run_kernel(td_call *call, const char *name)
{
    say(" %s%s", name, now->kernel ? "" : "(no)");
    if (now->nested && depth++ == 0) {
        const journey *mine = now, inner = { "", 0x12, -1, true, -1, 1, false, false };
        const unsigned held = inside;
        inside = 0;
        say(" [");
        travel(&inner);
        say(" ]");
        now = mine, inside = held;
    }
    for (int k = 0; k < now->results; k++)
        call->out[k] = call->in[0].as.tensor;
    if (now->results > 0)       /* a view of the operand: counting it is seen */
        call->out[0] = td_t(call->in[0].as.tensor);
    return now->kernel || (td_fail(TD_ERROR_VALUE, "kernel", "failed"), false);
}

static bool row_kernel(td_call *call) { return run_kernel(call, "row's kernel"); }
static bool given_kernel(td_call *call) { return run_kernel(call, "kernel"); }
static bool another_kernel(td_call *call) { return run_kernel(call, "exchanged kernel"); }

static td_tensor *operand;

static void travel(const journey *j)
{
    static const td_op row = { .name = "journey", .signature = "journey(tensor input) -> tensor", .kernel = row_kernel };
    const td_value in = td_v_tensor(operand);
    td_call call = { .op = &row, .n_in = 1, .in = &in, .n_out = 7 };    /* 7: nobody has counted */
    now = j;
    const bool ok = pass_between(&call, j->set, given_kernel);
    say(" = %s, %d results", ok ? "yes" : "no", call.n_out);
}

/* The same journey as the section tells it, in a few loops that take no trouble. */
static void expect(const journey *j, char *out, size_t size)
{
    int in = STAGES, at = 0;
    bool ok = true;
#define ADD(...) at += snprintf(out + at, size - (size_t)at, __VA_ARGS__)
    out[0] = 0;
    for (int k = STAGES - 1; k >= 0 && ok; k--)
        if (j->set >> k & 1) {
            ok = k != j->refuses, in = k;
            ADD(" >%s%s", names[k], ok ? "" : "(no)");
        }
    const bool runs = ok;
    if (ok) {
        ok = j->kernel;
        ADD(" %s%s", j->exchanged ? "exchanged kernel" : "kernel", ok ? "" : "(no)");
        if (j->nested)
            ADD(" [ >trace >mute kernel <mute(yes,1) <trace(yes,1) = yes, 1 results ]");
    }
    const int results = runs ? j->results : 0;
    for (int k = in; k < STAGES; k++)
        if (j->set >> k & 1) {
            ADD(" <%s(%s,%d)", names[k], ok ? "yes" : "no", results);
            ok = ok && k != j->breaks;
        }
    ADD(" = %s, %d results", ok ? "yes" : "no", results);
}

static void check_journey(const journey *j)
{
    char expected[2000];
    check_case(j->what, formula);
    td_scope_begin();
    expect(j, expected, sizeof expected);
    went[0] = 0, inside = 0, counted = 0, depth = 0;
    travel(j);
    td_error_clear();
    td_scope_end();
    if (strcmp(went, expected) != 0)
        check_wrong("  expected %s\n  got      %s", expected, went);
    const int views = j->kernel && j->results > 0 && (j->refuses < 0 || !(j->set >> j->refuses & 1)) ? 1 + j->nested : 0;
    if (counted != views)
        check_wrong("  expected  results of a call that %s\n  got       count_results told that it %s",
                    views ? "succeeds" : "has failed", counted ? "succeeds" : "has failed");
}

static const journey journeys[] = {
    { "no stage in the way", 0, -1, true, -1, 1, false, false },
    { "one stage, the innermost", 1, -1, true, -1, 1, false, false },
    { "one stage, the outermost", 32, -1, true, -1, 1, false, false },
    { "two stages, change and record", 12, -1, true, -1, 1, false, false },
    { "all stages", 63, -1, true, -1, 2, false, false },
    { "compose and profile, none between", 33, -1, true, -1, 8, false, false },
    { "the kernel fails", 12, -1, false, -1, 0, false, false },
    { "the kernel fails with a result made", 29, -1, false, -1, 1, false, false },
    { "the outermost of three refuses", 28, 4, true, -1, 1, false, false },
    { "the second of three refuses", 28, 3, true, -1, 1, false, false },
    { "the innermost of three refuses", 21, 0, true, -1, 1, false, false },
    { "the only stage refuses", 8, 3, true, -1, 1, false, false },
    { "a stage says no on the way out", 63, -1, true, 2, 1, false, false },
    { "the innermost says no on the way out", 63, -1, true, 0, 1, false, false },
    { "the outermost says no on the way out", 63, -1, true, 5, 1, false, false },
    { "the only stage says no on the way out", 4, -1, true, 2, 1, false, false },
    { "the kernel fails with no stage in the way", 0, -1, false, -1, 1, false, false },
    { "a stage exchanges the kernel", 24, -1, true, -1, 1, true, false },
    { "the kernel calls an operator", 13, -1, true, -1, 1, false, true },
    { "the kernel calls an operator, and no stage is in the way", 0, -1, true, -1, 1, false, true },
};

int main(void)
{
    check_case("before the first call", formula);
    if (stages_of_the_check != STAGES)
        check_wrong("  expected  %d stages\n  got       %d: the check wants more", STAGES, stages_of_the_check);
    td_scope_begin();
    operand = td_zeros(TD_DIMS(2, 3), (td_tensor_options)TD_DEFAULTS);
    for (int again = 0; again < 2; again++)
        for (size_t i = 0; i < sizeof journeys / sizeof journeys[0]; i++)
            check_journey(&journeys[i]);
    for (unsigned set = 0; set < 1u << STAGES; set++)
        for (int k = -1; k < STAGES; k++) {
            char what[100];
            snprintf(what, sizeof what, "stages 0x%x in the way, %s%s", set, k < 0 ? "none" : names[k], " refuses");
            check_journey(&(journey){ what, set, k, true, -1, 1, false, false });
        }
    td_scope_end();
    return check_end();
}
