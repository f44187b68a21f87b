/* What a trace has changed, against what was done to each tensor in it. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <pthread.h>
#include "compiler/ir.h"

static const char *rule = "a view from outside whose newest look has another version ends as the value of that look";
static const td_device cpu = { TD_DEVICE_CPU, 0 };

static td_tensor *counted(int64_t n, td_dtype dtype)
{
    td_tensor *x = td_arange(td_int(1), td_int(n + 1), td_int(1), (td_tensor_options){ 0 });
    return td_to(x, dtype);
}

/* The value of x, which was captured or is input number `input`. */
static int value_of(const td_program *p, const td_tensor *x, int input)
{
    for (int v = 0; v < p->n_values; v++)
        if (x != NULL ? p->value[v].tensor == x : p->value[v].origin == TD_IR_INPUT && input-- == 0)
            return v;
    check_wrong("  expected  a value for each tensor of the trace\n  got       none");
}

static const char *named(int v, char *text)
{
    snprintf(text, 20, v < 0 ? "no update" : "%%%d", v);
    return text;
}

/* Value v must end as the result of step number `step`, counted from 1; 0: as it was. */
static void expect(const td_program *p, int v, int step)
{
    char is[20], should[20];
    const int expected = step > 0 ? p->step[step - 1].out[0] : -1;
    if (p->value[v].update != expected)
        check_wrong("  expected  update %%%d = %s\n  got       update %%%d = %s", v, named(expected, should), v,
                    named(p->value[v].update, is));
}

/* No value that a step made is updated. */
static td_program *end(void)
{
    td_program *p = td_trace_end(NULL, 0);
    check_no_error();
    for (int v = 0; v < p->n_values; v++)
        if (p->value[v].origin == TD_IR_RESULT && p->value[v].update >= 0)
            check_wrong("  expected  no update of %%%d, which a step made\n  got       update %%%d = %%%d", v, v,
                        p->value[v].update);
    return p;
}

static void check_counter(bool symbolic)
{
    check_case(symbolic ? "a counter changed twice" : "a counter changed twice, in a trace that computes", rule);
    td_tensor *n = counted(1, TD_FLOAT32);
    td_trace_begin(symbolic);
    td_add_(n, n);
    td_add_(n, n);
    td_program *p = end();
    expect(p, value_of(p, n, 0), 2);
}

static void check_kinds(void)
{
    td_tensor *buffer = counted(5, TD_FLOAT32), *whole = counted(5, TD_INT64), *other = counted(5, TD_FLOAT32);
    check_case("captured, without a gradient, of float32", rule);
    td_trace_begin(true);
    td_add_(buffer, other);
    td_program *p = end();
    expect(p, value_of(p, buffer, 0), 1);
    expect(p, value_of(p, other, 0), 0);
    check_case("captured, of int64", rule);
    td_trace_begin(true);
    td_add_(whole, whole);
    p = end();
    expect(p, value_of(p, whole, 0), 1);
    check_case("an input, and another that is only read", rule);
    td_trace_begin(true);
    td_tensor *x = td_trace_input(TD_DIMS(3), TD_FLOAT32, cpu), *y = td_trace_input(TD_DIMS(3), TD_FLOAT32, cpu);
    td_mul_(x, y);
    p = end();
    expect(p, value_of(p, NULL, 0), 1);
    expect(p, value_of(p, NULL, 1), 0);
    check_case("a result that is changed in place", rule);
    td_trace_begin(true);
    td_tensor *made = td_mul(buffer, other);
    td_add_(made, other);
    td_mul_(made, made);
    p = end();
    expect(p, value_of(p, buffer, 0), 0);
    check_case("two captured tensors changed, and an empty one", rule);
    td_tensor *none = counted(0, TD_FLOAT32);
    td_trace_begin(true);
    td_add_(buffer, other);
    td_add_(other, other);
    td_add_(none, none);
    p = end();
    expect(p, value_of(p, buffer, 0), 1);
    expect(p, value_of(p, other, 0), 2);
    expect(p, value_of(p, none, 0), 3);
}

static void check_views(void)
{
    td_tensor *matrix = td_reshape(counted(6, TD_FLOAT32), TD_DIMS(2, 3));
    td_tensor *row = td_select(matrix, 0, 1), *first = td_select(matrix, 0, 0);
    check_case("two views of one memory, read, then one changed", rule);
    td_trace_begin(true);
    td_mul(row, first);
    td_add_(first, first);
    td_program *p = end();
    expect(p, value_of(p, first, 0), 2);
    expect(p, value_of(p, row, 0), 0);
    check_case("two shapes that begin at one address, read, then one changed", rule);
    td_trace_begin(true);
    td_neg(matrix);
    td_add_(first, first);
    p = end();
    expect(p, value_of(p, first, 0), 2);
    expect(p, value_of(p, matrix, 0), 0);
    check_case("two handles of one view: the one that was captured", rule);
    td_tensor *again = td_select(matrix, 0, 0);
    td_trace_begin(true);
    td_neg(first);
    td_add_(again, again);
    p = end();
    expect(p, value_of(p, first, 0), 2);
}

static void check_many(void)
{
    td_tensor *x[40];
    check_case("forty captured tensors, every second one changed", rule);
    for (int i = 0; i < 40; i++)
        x[i] = counted(i + 1, TD_FLOAT32);
    td_trace_begin(true);
    for (int i = 0; i < 40; i++)
        td_neg(x[i]);
    for (int i = 0; i < 40; i += 2)
        td_add_(x[i], x[i]);
    td_program *p = end();
    for (int i = 0; i < 40; i++)
        expect(p, value_of(p, x[i], 0), i % 2 ? 0 : 41 + i / 2);
}

static void *in_thread(void *unused)
{
    td_scope_begin();
    check_counter(true);
    td_scope_end();
    return unused;
}

int main(void)
{
    td_scope_begin();
    check_counter(true);
    check_kinds();
    check_views();
    check_many();
    check_counter(false);
    check_case("a second trace after a long one", rule);
    td_tensor *w = counted(2, TD_FLOAT32);
    td_trace_begin(true);
    td_add_(w, w);
    td_program *p = end();
    expect(p, value_of(p, w, 0), 1);
    td_scope_end();
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
    return check_end();
}
