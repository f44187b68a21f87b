/* Passes over small graphs whose derivatives are whole numbers, and what is left of them. */
#include "check.h"
#include "core/runtime.h"

void td_memory_fail_after(int64_t grants);

static const td_backward_options plain = { 0 };
static const td_tensor_options wide = { .dtype = TD_FLOAT64 };

static td_tensor *leaf(double x)
{
    return td_full(TD_RANK_0, td_float(x), (td_tensor_options){ .dtype = TD_FLOAT64, .requires_grad = true });
}

static void expect_gradient(td_tensor *x, double expected)
{
    check_no_error();
    td_tensor *g = td_grad_of(x);
    if (g == NULL)
        check_wrong("  expected  %g\n  got       no gradient", expected);
    const double got = td_item_double(g);
    if (got != expected)
        check_wrong("  expected  %g\n  got       %g", expected, got);
}

static void expect_pass(td_tensor *y)
{
    const bool ok = td_backward(y, plain);
    check_no_error();
    if (!ok)
        check_wrong("  expected  true from td_backward\n  got       false, and no error");
}

/* ---- graphs by hand ------------------------------------------------------ */

static td_tensor *add_twice(td_tensor *b, td_tensor *c) { return td_add(b, td_add(c, c)); }
static td_tensor *b_then_c(td_tensor *b) { return add_twice(b, b); }
static td_tensor *c_then_b(td_tensor *b) { return td_add(td_add(b, b), b); }
static td_tensor *twice(td_tensor *b) { return td_add(b, b); }
static td_tensor *once(td_tensor *b) { return td_neg(td_neg(b)); }
static td_tensor *pair_and_product(td_tensor *b) { return td_add(td_add(b, b), td_mul(b, td_neg(b))); }
static td_tensor *product_and_pair(td_tensor *b) { return td_add(td_mul(td_neg(b), b), td_add(b, b)); }
static td_tensor *square(td_tensor *b) { return td_mul(b, b); }
static td_tensor *both_ways(td_tensor *b)
{
    td_tensor *c = td_neg(b), *d = td_add(c, b);
    return td_add(td_add(d, c), td_add(b, td_add(d, b)));
}
static td_tensor *as_a_list(td_tensor *b)
{
    td_tensor *c = td_reshape(b, TD_DIMS(1)), *parts[] = { c, c, td_neg(c), c };
    return td_sum(td_cat(parts, 4, 0), (td_reduce_options)TD_DEFAULTS);
}

static const struct { const char *what; td_tensor *(*of)(td_tensor *b); double slope; } graphs[] = {
    { "b = a + a, y = b + b", twice, 4 },
    { "b = a + a, y = -(-b)", once, 2 },
    { "b = a + a, c = b + b, y = b + c", b_then_c, 6 },
    { "b = a + a, c = b + b, y = c + b", c_then_b, 6 },
    { "b = a + a, y = b * b, a = 3", square, 24 },
    { "b = a + a, y = (b + b) + b * (-b), a = 3", pair_and_product, 4 - 24 },
    { "b = a + a, y = (-b) * b + (b + b), a = 3", product_and_pair, 4 - 24 },
    { "b = a + a, c = -b, d = c + b, y = (d + c) + (b + (d + b))", both_ways, 2 },
    { "b = a + a, y = sum of the list b, b, -b, b", as_a_list, 4 },
};

static const char *rule = "a node is visited once, after the last of its gradients has come";

static void check_graphs(void)
{
    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++) {
        check_case(graphs[i].what, rule);
        td_scope_begin();
        td_tensor *a = leaf(3);
        expect_pass(graphs[i].of(td_add(a, a)));
        expect_gradient(a, graphs[i].slope);
        expect_pass(graphs[i].of(td_add(a, a)));
        expect_gradient(a, 2 * graphs[i].slope);
        td_scope_end();
    }
}

/* Sums of earlier values, chosen at random: the derivative is the number of paths. */
static void check_random(int seed)
{
    enum { N = 24 };
    char what[80];
    td_tensor *v[N];
    double paths[N] = { 1 };
    uint64_t r = (uint64_t)seed * 0x9e3779b97f4a7c15u + 1;
    snprintf(what, sizeof what, "a random graph of %d sums, number %d", N - 1, seed);
    check_case(what, "dy/da = the number of paths from y to a");
    td_scope_begin();
    v[0] = leaf(1);
    for (int i = 1; i < N; i++) {
        int from[2];
        for (int k = 0; k < 2; k++) {
            r = r * 6364136223846793005u + 1442695040888963407u;
            from[k] = i - 1 - (int)((r >> 33) % (uint64_t)(i < 5 ? i : 5));
        }
        v[i] = td_add(v[from[0]], v[from[1]]);
        paths[i] = paths[from[0]] + paths[from[1]];
    }
    expect_pass(v[N - 1]);
    expect_gradient(v[0], paths[N - 1]);
    td_scope_end();
}

static void check_sizes_of_graphs(void)
{
    check_case("one value used 600 times", "600 edges, 600 gradients");
    td_scope_begin();
    td_tensor *a = leaf(1), *b = td_add(a, a), *y = td_neg(b);
    for (int i = 1; i < 600; i++)
        y = td_add(y, b);
    expect_pass(y);
    expect_gradient(a, 2 * 599 - 2);
    td_scope_end();
    check_case("one leaf used 70000 times", "70000 edges, 70000 gradients");
    td_tensor *x = leaf(1), *sum = td_neg(x);
    for (int i = 1; i < 70000; i++) {
        td_tensor *next = td_add(sum, x);
        td_release(sum);
        sum = next;
    }
    expect_pass(sum);
    td_scope_begin();
    expect_gradient(x, 69998);
    td_scope_end();
    td_release(sum), td_release(x);
    check_case("a chain of 200000 negations", "no step of the pass is nested in the one before");
    td_tensor *z = leaf(1), *end = td_retain(z);
    for (int i = 0; i < 200000; i++) {
        td_tensor *next = td_neg(end);
        td_release(end);
        end = next;
    }
    expect_pass(end);
    td_scope_begin();
    expect_gradient(z, 1);
    td_scope_end();
    td_release(end), td_release(z);
}

/* ---- custom functions: two results, and gradients that are absent --------- */

static bool two_results(void *context, td_custom_call *call)
{
    (void)context;
    td_scope_begin();
    td_tensor *g = td_zeros(TD_RANK_0, wide);
    for (int k = 0; k < 2; k++)
        if (call->grad_out[k] != NULL)
            g = td_add(g, td_mul_scalar(call->grad_out[k], td_float(k == 0 ? 2 : 3)));
    call->grad_in[0] = td_scope_end_with(g);
    return !td_failed();
}

static bool first_only(void *context, td_custom_call *call)
{
    (void)context;
    call->grad_in[0] = td_retain(call->grad_out[0]);
    return true;
}

static td_tensor *constant(double x)
{
    return td_full(TD_RANK_0, td_float(x), wide);
}

static void check_custom(void)
{
    check_case("one node, results p and q; y = p * q, dp/da = 2, dq/da = 3", "each result has its own gradient");
    td_scope_begin();
    td_tensor *a = leaf(1), *b = td_neg(td_neg(a)), *out[] = { constant(5), constant(7) };
    td_record_custom("two", 1, &b, 2, out, two_results, NULL, NULL);
    expect_pass(td_mul(out[0], out[1]));
    expect_gradient(a, 2 * 7 + 3 * 5);
    td_scope_end();

    check_case("one node, results p and q, of which only q is used", "the gradient of p is absent");
    td_scope_begin();
    a = leaf(1), b = td_neg(td_neg(a)), out[0] = constant(5), out[1] = constant(7);
    td_record_custom("two", 1, &b, 2, out, two_results, NULL, NULL);
    expect_pass(td_neg(out[1]));
    expect_gradient(a, -3);
    td_scope_end();

    check_case("a rule returns no gradient for b, which gets one on another way", "an absent gradient counts");
    td_scope_begin();
    a = leaf(1), b = td_neg(a);
    td_tensor *in[] = { leaf(2), b }, *y = constant(1);
    td_record_custom("first", 2, in, 1, &y, first_only, NULL, NULL);
    expect_pass(td_add(y, b));
    expect_gradient(a, -1);
    expect_gradient(in[0], 1);
    td_scope_end();

    check_case("a rule returns no gradient for a leaf, which gets one on another way", "an absent gradient counts");
    td_scope_begin();
    a = leaf(1);
    td_tensor *leaves[] = { leaf(2), a };
    y = constant(1);
    td_record_custom("first", 2, leaves, 1, &y, first_only, NULL, NULL);
    expect_pass(td_add(y, a));
    expect_gradient(a, 1);
    td_scope_end();

    check_case("a rule returns no gradient for a leaf that is used nowhere else", "absent is not zero");
    td_scope_begin();
    td_tensor *alone[] = { leaf(2), leaf(3) };
    y = constant(1);
    td_record_custom("first", 2, alone, 1, &y, first_only, NULL, NULL);
    expect_pass(td_add(y, y));
    if (td_grad_of(alone[1]) != NULL)
        check_wrong("  expected  no gradient\n  got       %g", td_item_double(td_grad_of(alone[1])));
    expect_gradient(alone[0], 2);
    td_scope_end();
}

/* ---- hooks, shared gradients, td_grad ------------------------------------- */

static int seen;
static double seen_sum;

static td_tensor *look(void *context, td_tensor *grad)
{
    (void)context;
    seen++;
    seen_sum += td_item_double(grad);
    return NULL;
}

static td_tensor *refuse(void *context, td_tensor *grad)
{
    (void)context, (void)grad;
    td_fail(TD_ERROR_CALLBACK, "hook", "not today");
    return NULL;
}

static void check_hooks(void)
{
    check_case("a hook on a leaf that is used three times", "it sees the sum, once");
    for (int at_leaf = 1; at_leaf >= 0; at_leaf--) {
        td_scope_begin();
        td_tensor *a = leaf(1), *b = td_neg(a), *x = at_leaf ? a : b;
        td_register_hook(x, look, NULL, NULL);
        seen = 0, seen_sum = 0;
        expect_pass(td_add(td_add(x, x), td_neg(td_neg(x))));
        if (seen != 1 || seen_sum != 3)
            check_wrong("  expected  called once, with 3\n  got       called %d times, with %g in all", seen, seen_sum);
        td_scope_end();
        check_case("a hook on a result that is used three times", "it sees the sum, once");
    }
    for (int at_leaf = 1; at_leaf >= 0; at_leaf--) {
        check_case(at_leaf ? "a hook on a leaf fails" : "a hook on a result fails", "td_backward returns false, the error pending");
        td_scope_begin();
        td_tensor *a = leaf(1), *b = td_neg(a);
        td_register_hook(at_leaf ? a : b, refuse, NULL, NULL);
        const bool ok = td_backward(td_add(b, b), plain);
        if (ok || !td_failed())
            check_wrong("  expected  false and an error\n  got       %s", ok ? "true" : "false, and no error");
        td_error_clear();
        td_scope_end();
    }
}

static void check_sharing(void)
{
    check_case("y = a + b, z = y + a: one tensor is sent to both leaves", "the gradient of b is not changed with that of a");
    td_scope_begin();
    td_tensor *a = leaf(1), *b = leaf(1);
    td_tensor *p = td_neg(td_neg(a)), *q = td_neg(td_neg(b));
    expect_pass(td_add(td_add(p, q), td_mul_scalar(td_add(p, a), td_float(2))));
    expect_gradient(a, 5);
    expect_gradient(b, 1);
    td_scope_end();

    check_case("a seed that the program holds", "it is not written to");
    td_scope_begin();
    td_tensor *x = leaf(1), *seed = constant(1), *y = td_add(x, x);
    td_backward(td_add(y, x), (td_backward_options){ .gradient = seed });
    check_no_error();
    expect_gradient(x, 3);
    check_numbers(td_data(seed), (const double[]){ 1 }, 1, 0);
    td_scope_end();

    check_case("td_grad by a and by b = -a, y = b + b + a", "the answers go to the program, not to the leaf");
    td_scope_begin();
    td_tensor *w = leaf(1), *v = td_neg(w), *sum = td_add(td_add(v, v), w);
    td_tensor *of[] = { w, v }, *g[2];
    td_grad(&sum, 1, of, 2, g, (td_grad_options){ .retain_graph = true });
    check_no_error();
    check_numbers((const double[]){ td_item_double(g[0]), td_item_double(g[1]) }, (const double[]){ -1, 2 }, 2, 0);
    if (td_grad_of(w) != NULL)
        check_wrong("  expected  no gradient in the leaf\n  got       %g", td_item_double(td_grad_of(w)));
    expect_pass(sum);
    expect_gradient(w, -1);
    td_scope_end();

    check_case("y = a * a * a, a = 2, differentiated twice", "6 a = 12");
    td_scope_begin();
    td_tensor *c = leaf(2), *cube = td_mul(td_mul(c, c), c), *first, *second;
    td_grad(&cube, 1, &c, 1, &first, (td_grad_options){ .create_graph = true });
    td_grad(&first, 1, &c, 1, &second, (td_grad_options){ 0 });
    check_no_error();
    check_numbers((const double[]){ td_item_double(second) }, (const double[]){ 12 }, 1, 0);
    td_scope_end();
}

/* Each allocation of a pass fails in turn. */
static void check_memory(void)
{
    bool done = false;
    for (int k = 0; !done; k++) {
        char what[80];
        snprintf(what, sizeof what, "allocation %d of a pass fails", k);
        check_case(what, "false and an error, or true and none; nothing is lost");
        td_scope_begin();
        td_tensor *a = leaf(1), *b = td_add(a, a), *y = td_mul(td_add(b, td_add(b, b)), b);
        td_memory_fail_after(k);
        const bool ok = td_backward(y, plain);
        td_memory_fail_after(-1);
        if (ok == td_failed())
            check_wrong("  expected  %s\n  got       %s", ok ? "false" : "an error", ok ? "true" : "none");
        done = ok;
        td_error_clear();
        if (done)
            expect_gradient(a, 24);
        td_scope_end();
        const td_memory_info m = td_memory_stats();
        if (m.live_tensors != 0 || m.live_nodes != 0)
            check_wrong("  leak: %d tensors and %d nodes are still alive", (int)m.live_tensors, (int)m.live_nodes);
    }
}

int main(void)
{
    check_graphs();
    check_custom();
    check_hooks();
    check_sharing();
    for (int seed = 0; seed < 40; seed++)
        check_random(seed);
    check_memory();
    check_sizes_of_graphs();
    check_case("everything computed, all scopes closed", "every node is freed");
    if (td_live_node_count() != 0)
        check_wrong("  leak: %d nodes are still alive", (int)td_live_node_count());
    return check_end();
}
