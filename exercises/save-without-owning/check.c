/* What is saved, who owns it, and what becomes of it later. */
#include "check.h"
#include "core/memory.h"
#include "core/runtime.h"
#include "grad/autograd.h"

void td_memory_fail_after(int64_t grants);

static const td_tensor_options floats = { 0 }, wide = { .dtype = TD_FLOAT64 };

static void expect(const char *what, int64_t expected, int64_t got)
{
    if (expected != got)
        check_wrong("  %s\n  expected  %lld\n  got       %lld", what, (long long)expected, (long long)got);
}

/* One result saved, from inside a scope; what is checked needs no values. */
static void check_one(const char *what, td_tensor *y, int slot)
{
    char text[160];
    td_saved saved = { 0 };
    td_scope_begin();
    const int64_t shares = td_object_count(y), depth = td_self()->depth;
    const td_memory_info before = td_memory_stats();
    td_node *node = y->node;
    const bool wants = y->requires_grad;
    snprintf(text, sizeof text, "%s, slot %d", what, slot);
    check_case(text, "saved->tensor = a handle of its own on the same elements, without a node");
    const bool ok = td_save_result(&saved, y, slot);
    const td_memory_info after = td_memory_stats();
    expect("scopes open", depth, td_self()->depth);
    check_no_error();
    expect("returns true", true, ok);
    const td_tensor *s = saved.tensor;
    expect("saves a handle of its own", true, s != NULL && s != y);
    expect("the result has as many shares as before", shares, td_object_count(y));
    expect("the result has its node as before", true, y->node == node && y->requires_grad == wants);
    expect("tensors more than before", 1, after.live_tensors - before.live_tensors);
    expect("nodes more than before", 0, after.live_nodes - before.live_nodes);
    expect("bytes of elements more than before", 0, after.bytes - before.bytes);
    expect("what is saved is on the storage of the result", true, s->storage == y->storage);
    expect("what is saved has no node", true, s->node == NULL);
    expect("what is saved wants no gradient", false, s->requires_grad);
    expect("what is saved is no view that owns its base", true, s->base == NULL || s->base == y->base);
    expect("shares of what is saved", 1, td_object_count(s));
    expect("saved->result", 1 + slot, saved.result);
    expect("the version noted is that of the result", td_version_of(y), saved.version);
    expect("dtype", td_dtype_of(y), td_dtype_of(s));
    const td_dims a = td_shape_of(y), b = td_shape_of(s);
    expect("rank", a.count, b.count);
    expect("first element", 0, (char *)td_data((td_tensor *)s) - (char *)td_data(y));
    for (int d = 0; d < a.count; d++) {
        expect("size", a.at[d], b.at[d]);
        expect("stride", y->strides[d], s->strides[d]);
    }
    td_scope_end();
    expect("shares of what is saved when the scope around it has ended", 1, td_object_count(s));
    if (y->node == NULL && (td_dtype_of(y) == TD_FLOAT32 || td_dtype_of(y) == TD_FLOAT64) && td_numel(y) > 0) {
        check_case(text, "a change in place of the result changes the version, and is noticed");
        td_add_scalar_(y, td_float(1));
        expect("version of what is saved, after the change", saved.version + 1, td_version_of(s));
    }
    td_release(saved.tensor);
}

static void check_kinds(void)
{
    td_scope_begin();
    td_tensor *x = td_set_requires_grad(td_ones(TD_DIMS(2, 3), floats), true);
    td_tensor *plain = td_ones(TD_DIMS(3), floats);
    check_one("a vector of three", plain, 0);
    check_one("a product with a node", td_mul(x, x), 0);
    check_one("a product with a node", td_mul(x, x), 1);
    check_one("a third result", td_exp(x), 2);
    check_one("the last of eight results", td_exp(x), 7);
    td_tensor *often = td_zeros(TD_DIMS(4), wide);
    for (int i = 0; i < 3; i++)
        td_add_scalar_(often, td_float(1));
    check_one("float64, written to three times", often, 0);
    td_tensor *m = td_ones(TD_DIMS(5, 7), floats);
    const td_opt_i64 first = td_some(1), last = td_some(4);
    check_one("a transposed matrix", td_t(m), 0);
    check_one("rows 1 to 3 of a matrix", td_slice(m, 0, first, last, 1), 0);
    check_one("every second column", td_slice(m, 1, first, last, 2), 0);
    check_one("a transposed product with a node", td_t(td_mul(x, x)), 0);
    check_one("a number", td_full(TD_RANK_0, td_float(2), floats), 0);
    check_one("no elements", td_zeros(TD_DIMS(0, 3), floats), 0);
    check_one("whole numbers", td_zeros(TD_DIMS(3), (td_tensor_options){ .dtype = TD_INT64 }), 1);
    check_one("half precision", td_zeros(TD_DIMS(3), (td_tensor_options){ .dtype = TD_FLOAT16 }), 0);
    td_no_grad_begin();
    check_one("recording off", td_exp(x), 0);
    td_no_grad_end();
    td_scope_end();
}

/* Without any scope the new handle is the saved one's alone. */
static void check_without_scope(void)
{
    td_saved saved = { 0 };
    check_case("no scope is open", "a handle that belongs to nobody but saved");
    td_tensor *y = td_ones(TD_DIMS(3), floats);
    td_save_result(&saved, y, 0);
    expect("shares of what is saved", 1, td_object_count(saved.tensor));
    td_release(y);
    check_case("the result is released", "the elements stay, for the rule");
    check_floats(td_data(saved.tensor), (const float[]){ 1, 1, 1 }, 3, 0);
    td_release(saved.tensor);
    expect("tensors alive at the end", 0, td_memory_stats().live_tensors);
}

/* Real records: exp and tanh save their results. */
static void check_records(void)
{
    check_case("e^x recorded a hundred times, no pass", "a record that nobody walks is freed with its result");
    td_scope_begin();
    td_tensor *x = td_set_requires_grad(td_ones(TD_DIMS(3), wide), true);
    const td_memory_info before = td_memory_stats();
    for (int i = 0; i < 100; i++) {
        td_scope_begin();
        td_tanh(td_exp(x));
        td_scope_end();
    }
    const td_memory_info after = td_memory_stats();
    expect("nodes alive more than before", 0, after.live_nodes - before.live_nodes);
    expect("tensors alive more than before", 0, after.live_tensors - before.live_tensors);
    expect("bytes more than before", 0, after.bytes - before.bytes);

    check_case("e^x differentiated three times", "each derivative of e^x is e^x");
    td_tensor *y = td_exp(x);
    for (int i = 0; i < 3 && !td_failed(); i++) {
        td_tensor *seed = td_ones(TD_DIMS(3), wide), *g = NULL;
        td_grad(&y, 1, &x, 1, &g, (td_grad_options){ .grad_outputs = &seed, .create_graph = true });
        y = g;
    }
    const double e = exp(1);
    check_tensor(y, TD_DIMS(3), (const double[]){ e, e, e }, 1e-12);

    check_case("e^x, then x + 1 in its place", "a saved result that was written to is refused");
    y = td_exp(x);
    td_no_grad_begin();
    td_add_scalar_(y, td_float(1));
    td_no_grad_end();
    td_tensor *seed = td_ones(TD_DIMS(3), wide);
    if (td_backward(y, (td_backward_options){ .gradient = seed }) || !td_failed())
        check_wrong("  expected  an error: a tensor needed for the gradient of exp was modified in place\n"
                    "  got       a gradient");
    td_error_clear();
    td_scope_end();
}

static int packed;
static void check_failures(void)
{
    td_scope_begin();
    td_tensor *y = td_ones(TD_DIMS(3), floats);
    for (int open = 0; open < 2; open++) {
        td_saved saved = { 0 };
        check_case(open ? "an error is pending" : "there is no memory for a handle",
                   "false, the error stays pending, nothing is saved");
        const int64_t depth = td_self()->depth, tensors = td_memory_stats().live_tensors;
        if (open)
            td_fail(TD_ERROR_VALUE, "before", "of no use");
        else
            td_memory_fail_after(0);
        const bool ok = td_save_result(&saved, y, 0);
        td_memory_fail_after(-1);
        expect("returns true", false, ok);
        expect("an error is pending", true, td_failed());
        td_error_clear();
        expect("scopes open", depth, td_self()->depth);
        expect("something is saved", false, saved.tensor != NULL);
        expect("shares of the result", 1, td_object_count(y));
        expect("tensors alive", tensors, td_memory_stats().live_tensors);
    }
    td_scope_end();
    (void)packed;
}

int main(void)
{
    for (int again = 0; again < 2; again++) {
        check_kinds();
        check_without_scope();
        check_records();
        check_failures();
    }
    return check_end();
}
