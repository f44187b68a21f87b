/* needs: gradcheck */
/* The graph and the backward pass: every promise of chapter 10. */
#include "treadle_test.h"
#include <pthread.h>
#include "grad/autograd.h"
#include "core/runtime.h"

static const td_tensor_options leaf_f64 = { .dtype = TD_FLOAT64, .requires_grad = true };
static const td_reduce_options all = TD_DEFAULTS;
static const td_grad_options ask = TD_DEFAULTS;

static td_tensor *leaf(double x)
{
    return td_full(TD_DIMS(1), td_float(x), leaf_f64);
}

static td_tensor *vector(int n, double first)
{
    td_tensor *x = td_zeros(TD_DIMS(n), wide);
    for (int i = 0; i < n; i++)
        ((double *)td_data(x))[i] = first + i;
    return td_set_requires_grad(x, true);
}

static bool backward(td_tensor *root)
{
    return td_backward(root, (td_backward_options)TD_DEFAULTS);
}

static double grad(td_tensor *x)
{
    td_scope_begin();
    const double value = td_item_double(td_grad_of(x));
    td_scope_end();
    return value;
}

/* leaves and flags ------------------------------------------------------- */

static void results_require_gradients_and_are_no_leaves(void **state)
{
    td_tensor *x = leaf(2), *c = td_full(TD_DIMS(1), td_float(3), wide);
    td_tensor *y = td_mul(x, c), *z = td_mul(c, c);
    assert_true(td_is_leaf(x) && td_requires_grad(x));
    assert_true(!td_is_leaf(y) && td_requires_grad(y));
    assert_true(td_is_leaf(z) && !td_requires_grad(z));
    assert_string_equal(td_grad_fn_name(y), "MulBackward0");
    assert_string_equal(td_grad_fn_name(td_log_softmax(td_mul(x, x), 0)), "LogSoftmaxBackward0");
    assert_null(td_grad_fn_name(x));
    assert_null(td_grad_of(x));
}

static void count_releases(void *count)
{
    ++*(int *)count;
}

static void memory_of_a_tensor_that_fails_stays_with_the_caller(void **state)
{
    int64_t data[2] = { 1, 2 };
    int released = 0;
    const td_tensor_options asking = { .dtype = TD_INT64, .requires_grad = true };
    td_scope_begin();
    refused(td_from_memory(data, TD_DIMS(2), TD_DIMS(1), asking, count_releases, &released),
            TD_ERROR_RUNTIME, "int64");
    td_scope_end();
    assert_int_equal(released, 0);
    td_scope_begin();
    assert_non_null(td_from_memory(data, TD_DIMS(2), TD_DIMS(1), (td_tensor_options){ .dtype = TD_INT64 },
                                   count_releases, &released));
    td_scope_end();
    assert_int_equal(released, 1);
}

static void only_floats_require_gradients(void **state)
{
    td_tensor *i = td_zeros(TD_DIMS(2), (td_tensor_options){ .dtype = TD_INT64 });
    refused(td_set_requires_grad(i, true), TD_ERROR_RUNTIME, "int64");
    refused(td_zeros(TD_DIMS(2), (td_tensor_options){ .dtype = TD_BOOL, .requires_grad = true }),
            TD_ERROR_RUNTIME, "bool");
}

static void flag_of_a_result_cannot_be_cleared(void **state)
{
    td_tensor *x = leaf(1), *y = td_add(x, x);
    refused(td_set_requires_grad(y, false), TD_ERROR_RUNTIME, "detach");
    assert_ptr_equal(td_set_requires_grad(y, true), y);
    assert_ptr_equal(td_set_requires_grad(x, false), x);
    assert_false(td_requires_grad(x));
}

static void null_and_pending_errors_are_answered(void **state)
{
    refused(backward(NULL), TD_ERROR_TYPE, "NULL");
    refused(td_set_requires_grad(NULL, true), TD_ERROR_TYPE, "NULL");
    td_tensor *x = leaf(1);
    td_fail(TD_ERROR_VALUE, "test", "pending");
    assert_false(backward(x));
    assert_null(td_detach(x));
    assert_int_equal(td_register_hook(x, NULL, NULL, NULL), 0);
    expect_error(TD_ERROR_VALUE, "pending");
}

static void gradient_must_match_its_tensor(void **state)
{
    td_tensor *x = vector(3, 1);
    refused(td_set_grad(x, td_zeros(TD_DIMS(2), wide)), TD_ERROR_RUNTIME, "float64 [2]");
    refused(td_set_grad(x, td_zeros(TD_DIMS(3), (td_tensor_options){ .dtype = TD_FLOAT32 })),
            TD_ERROR_RUNTIME, "float32 [3]");
    td_tensor *g = td_zeros(TD_DIMS(3), wide);
    assert_true(td_set_grad(x, g));
    assert_ptr_equal(td_grad_of(x), g);
    assert_true(td_set_grad(x, NULL));
    assert_null(td_grad_of(x));
}

/* the caller's list of axes is gone when the rule runs, and others were there since */
static void attributes_outlive_the_call(void **state)
{
    (void)state;
    td_tensor *x = td_reshape(vector(6, 1), TD_DIMS(2, 3));
    td_tensor *y = td_sum(x, (td_reduce_options){ .dims = TD_DIMS(1) });
    td_tensor *z = td_sum(x, (td_reduce_options){ .dims = TD_DIMS(0) });
    assert_true(backward(td_add(td_sum(td_mul(y, y), all), td_sum(z, all))));
}

static void detach_shares_elements_and_cuts(void **state)
{
    td_tensor *x = leaf(3), *d = td_detach(td_mul(x, x));
    assert_true(td_is_leaf(d) && !td_requires_grad(d));
    assert_true(backward(td_mul(d, x)));
    assert_true(grad(x) == 9);
}

/* grad mode -------------------------------------------------------------- */

static void modes_nest_and_restore(void **state)
{
    assert_true(td_grad_enabled());
    td_no_grad_begin();
    assert_false(td_grad_enabled());
    td_enable_grad_begin();
    assert_true(td_grad_enabled());
    td_no_grad_begin();
    td_no_grad_end();
    assert_true(td_grad_enabled());
    td_enable_grad_end();
    assert_false(td_grad_enabled());
    assert_true(td_is_leaf(td_mul(leaf(1), leaf(2))));
    td_no_grad_end();
    assert_true(td_grad_enabled());
    td_no_grad_end();
    expect_error(TD_ERROR_RUNTIME, "no grad mode is open");
}

static void too_many_modes_are_an_error(void **state)
{
    for (int i = 0; i < TD_GRAD_DEPTH; i++)
        td_no_grad_begin();
    assert_false(td_failed());
    td_enable_grad_begin();
    expect_error(TD_ERROR_RUNTIME, "nest at most");
    for (int i = 0; i <= TD_GRAD_DEPTH; i++)
        td_no_grad_end();
    assert_false(td_failed());
    assert_true(td_grad_enabled());
}

/* the pass --------------------------------------------------------------- */

static void gradients_accumulate_over_passes(void **state)
{
    td_tensor *x = leaf(3);
    assert_true(backward(td_mul(x, x)));
    assert_true(backward(td_mul(x, x)));
    assert_true(grad(x) == 12);
}

static void leaf_can_be_the_root(void **state)
{
    td_tensor *x = leaf(3);
    assert_true(backward(x));
    assert_true(grad(x) == 1);
}

static void root_needs_a_history_and_a_seed(void **state)
{
    refused(backward(td_zeros(TD_DIMS(1), wide)), TD_ERROR_RUNTIME, "does not require a gradient");
    td_tensor *x = vector(3, 1), *y = td_mul(x, x);
    refused(backward(y), TD_ERROR_RUNTIME, "3, give the gradient");
    td_tensor *short_seed = td_ones(TD_DIMS(2), wide);
    refused(td_backward(y, (td_backward_options){ .gradient = short_seed }), TD_ERROR_RUNTIME, "float64 [2]");
    td_tensor *seed = td_full(TD_DIMS(3), td_float(0.5), wide);
    assert_true(td_backward(y, (td_backward_options){ .gradient = seed }));
    for (int i = 0; i < 3; i++)
        assert_true(at(td_grad_of(x), i) == 1 + i);
    assert_true(at(seed, 0) == 0.5);
}

static void one_element_of_any_rank_needs_no_seed(void **state)
{
    td_tensor *x = td_full(TD_DIMS(1, 1, 1), td_float(2), leaf_f64);
    assert_true(backward(td_mul(x, x)));
    assert_true(at(td_grad_of(x), 0) == 4);
    td_tensor *s = td_full(TD_RANK_0, td_float(2), leaf_f64);
    assert_true(backward(td_mul(s, s)));
    assert_true(grad(s) == 4);
}

static void empty_tensors_go_backward(void **state)
{
    td_tensor *x = td_zeros(TD_DIMS(0, 3), leaf_f64);
    assert_true(backward(td_sum(td_mul(x, x), all)));
    assert_int_equal(td_numel(td_grad_of(x)), 0);
    assert_int_equal(td_size(td_grad_of(x), 1), 3);
}

static void broadcasting_is_undone(void **state)
{
    td_tensor *m = td_full(TD_DIMS(4, 3), td_float(2), leaf_f64);
    td_tensor *row = vector(3, 1), *number = td_full(TD_RANK_0, td_float(5), leaf_f64);
    assert_true(backward(td_sum(td_add(td_mul(m, row), number), all)));
    assert_int_equal(td_rank(td_grad_of(row)), 1);
    for (int i = 0; i < 3; i++)
        assert_true(at(td_grad_of(row), i) == 8);
    assert_true(grad(number) == 12);
    for (int i = 0; i < 12; i++)
        assert_true(at(td_grad_of(m), i) == 1 + i % 3);
}

static void gradient_has_the_dtype_of_its_operand(void **state)
{
    td_tensor *a = td_full(TD_DIMS(2), td_float(3), (td_tensor_options){ .dtype = TD_FLOAT32, .requires_grad = true });
    td_tensor *b = vector(2, 1);
    assert_true(backward(td_sum(td_mul(a, b), all)));
    assert_int_equal(td_dtype_of(td_grad_of(a)), TD_FLOAT32);
    assert_int_equal(td_dtype_of(td_grad_of(b)), TD_FLOAT64);
}

static void a_graph_can_be_walked_once_or_retained(void **state)
{
    td_tensor *x = leaf(3), *y = td_add(x, x);
    assert_true(backward(y));
    assert_false(backward(y));          /* though add saved nothing */
    expect_error(TD_ERROR_RUNTIME, "a second time");
    refused(backward(td_mul(y, x)), TD_ERROR_RUNTIME, "a second time (at add)");
    td_tensor *z = td_mul(x, x);
    const td_backward_options keep = { .retain_graph = true };
    assert_true(td_set_grad(x, NULL));
    assert_true(td_backward(z, keep));
    assert_true(td_backward(z, keep));
    assert_true(backward(z));
    assert_true(grad(x) == 18);
    refused(backward(z), TD_ERROR_RUNTIME, "a second time");
}

static void nodes_are_freed_during_the_pass(void **state)
{
    const int64_t nodes = td_live_node_count();
    td_tensor *x = leaf(1);
    td_scope_begin();
    td_tensor *y = x;
    for (int i = 0; i < 10; i++)
        y = td_mul(y, x);
    td_retain(y);
    td_scope_end();
    assert_int_equal(td_live_node_count(), nodes + 10);
    assert_true(backward(y));
    assert_int_equal(td_live_node_count(), nodes + 1);
    td_release(y);
    assert_int_equal(td_live_node_count(), nodes);
}

static void saved_tensors_are_dropped_by_the_pass(void **state)
{
    td_tensor *x = td_full(TD_DIMS(1000), td_float(2), leaf_f64);
    td_scope_begin();
    td_tensor *y = td_retain(td_sum(td_exp(td_tanh(td_mul(x, x))), all));
    td_scope_end();
    const int64_t held = td_memory_stats().bytes;
    assert_true(backward(y));
    assert_true(td_memory_stats().bytes < held);
    td_release(y);
}

static void dropping_the_result_frees_the_record(void **state)
{
    const int64_t nodes = td_live_node_count(), bytes = td_memory_stats().bytes;
    td_tensor *x = leaf(0.5);
    for (int i = 0; i < 100; i++) {
        td_scope_begin();
        td_tensor *y = td_exp(td_tanh(x));      /* saves results */
        td_mul(y, y);
        td_scope_end();
    }
    assert_int_equal(td_live_node_count(), nodes);
    assert_int_equal(td_memory_stats().bytes, bytes + 8);
}

static void operands_used_often_add_up(void **state)
{
    td_tensor *x = leaf(2);
    td_tensor *a = td_mul(x, x), *b = td_mul(a, x), *c = td_add(a, b);
    td_tensor *d = td_mul(c, a), *e = td_sub(d, td_mul(b, b));
    assert_true(backward(e));
    /* x^4 + x^5 - x^6 */
    assert_true(grad(x) == 4 * 8 + 5 * 16 - 6 * 32);
}

static void shared_gradients_are_not_added_in_place(void **state)
{
    td_tensor *a = vector(3, 1), *b = vector(3, 5);
    td_tensor *y = td_add(a, b);        /* both get one tensor */
    td_tensor *z = td_add(y, a);        /* and a gets another */
    assert_true(backward(td_sum(z, all)));
    assert_true(at(td_grad_of(a), 0) == 2 && at(td_grad_of(b), 0) == 1);
    td_no_grad_begin();
    td_fill_(td_grad_of(a), td_float(7));
    td_no_grad_end();
    assert_true(at(td_grad_of(b), 0) == 1);
}

static void expanded_gradients_become_real_ones(void **state)
{
    td_tensor *x = vector(5, 0);
    assert_true(backward(td_sum(x, all)));
    assert_true(td_is_contiguous(td_grad_of(x)));
    td_no_grad_begin();
    td_fill_(td_select(td_grad_of(x), 0, 2), td_float(9));
    td_no_grad_end();
    assert_true(at(td_grad_of(x), 1) == 1 && at(td_grad_of(x), 2) == 9);
}

static void a_held_gradient_is_left_alone(void **state)
{
    td_tensor *x = vector(2, 1);
    assert_true(backward(td_sum(x, all)));
    td_tensor *held = td_retain(td_grad_of(x));
    assert_true(backward(td_sum(x, all)));
    td_scope_begin();
    td_tensor *mine = td_grad_of(x);
    td_scope_end();                             /* x alone holds it */
    assert_ptr_not_equal(mine, held);
    assert_true(backward(td_sum(x, all)));
    assert_ptr_equal(td_grad_of(x), mine);      /* in place now */
    assert_true(at(held, 0) == 1 && at(mine, 0) == 3);
    td_release(held);
}

static void users_seed_is_not_stolen(void **state)
{
    td_tensor *x = vector(2, 1), *seed = td_ones(TD_DIMS(2), wide);
    assert_true(td_backward(x, (td_backward_options){ .gradient = seed }));
    assert_ptr_not_equal(td_grad_of(x), seed);
    assert_true(backward(td_sum(x, all)));
    assert_true(at(seed, 0) == 1);
}

/* td_grad ---------------------------------------------------------------- */

static void grad_returns_without_touching_leaves(void **state)
{
    td_tensor *x = leaf(3), *w = leaf(4), *y = td_mul(td_mul(x, x), w);
    td_tensor *in[2] = { x, w }, *g[2];
    assert_true(td_grad(&y, 1, in, 2, g, ask));
    assert_true(td_item_double(g[0]) == 24 && td_item_double(g[1]) == 9);
    assert_null(td_grad_of(x));
    assert_null(td_grad_of(w));
}

static void grad_of_results_in_the_middle(void **state)
{
    td_tensor *x = leaf(3), *a = td_mul(x, x), *b = td_add(a, x), *y = td_mul(b, a);
    td_tensor *in[3] = { a, b, y }, *g[3];
    assert_true(td_grad(&y, 1, in, 3, g, ask));
    assert_true(td_item_double(g[0]) == 12 + 9);
    assert_true(td_item_double(g[1]) == 9);
    assert_true(td_item_double(g[2]) == 1);
}

static void grad_prunes_what_it_does_not_need(void **state)
{
    td_tensor *x = leaf(3), *w = leaf(2);
    td_tensor *side = td_mul(w, w), *y = td_mul(x, side), *g;
    assert_true(td_grad(&y, 1, &x, 1, &g, ask));
    assert_true(td_item_double(g) == 4);
    assert_true(backward(side));        /* was not run, nor freed */
    assert_true(grad(w) == 4);
}

static void unused_inputs_are_an_error_or_null(void **state)
{
    td_tensor *x = leaf(3), *w = leaf(2), *y = td_mul(x, x);
    td_tensor *in[2] = { x, w }, *g[2];
    const td_grad_options keep = { .retain_graph = true };
    assert_false(td_grad(&y, 1, in, 2, g, keep));
    refused(g[0], TD_ERROR_RUNTIME, "input 1 was not used");
    assert_true(td_grad(&y, 1, in, 2, g, (td_grad_options){ .allow_unused = true }));
    assert_true(td_item_double(g[0]) == 6);
    assert_null(g[1]);
    td_tensor *c = td_zeros(TD_DIMS(1), wide);
    refused(td_grad(&y, 1, &c, 1, g, ask), TD_ERROR_RUNTIME, "does not require");
}

static void several_outputs_and_seeds(void **state)
{
    td_tensor *x = vector(3, 1), *a = td_mul(x, x), *b = td_sum(a, all);
    td_tensor *out[2] = { a, b }, *g;
    td_tensor *seeds[2] = { td_full(TD_DIMS(3), td_float(10), wide), NULL };
    assert_true(td_grad(out, 2, &x, 1, &g, (td_grad_options){ .grad_outputs = seeds }));
    for (int i = 0; i < 3; i++)
        assert_true(at(g, i) == 11 * 2 * (1 + i));
}

static void same_input_and_root_twice(void **state)
{
    td_tensor *x = leaf(3), *y = td_mul(x, x);
    td_tensor *out[2] = { y, y }, *in[2] = { x, x }, *g[2];
    assert_true(td_grad(out, 2, in, 2, g, ask));
    assert_true(td_item_double(g[0]) == 12 && td_item_double(g[1]) == 12);
}

/* second derivatives ----------------------------------------------------- */

static void saved_results_are_tied_to_the_graph_again(void **state)
{
    td_tensor *x = leaf(0.7), *y = td_exp(x), *g, *h, *k;
    const td_grad_options more = { .create_graph = true };
    assert_true(td_grad(&y, 1, &x, 1, &g, more));
    assert_true(td_grad(&g, 1, &x, 1, &h, more));
    assert_true(td_grad(&h, 1, &x, 1, &k, ask));
    assert_true(fabs(td_item_double(k) - exp(0.7)) < 1e-14);
}

static void third_derivative_of_tanh(void **state)
{
    td_tensor *x = leaf(0.3), *g = td_tanh(x);
    for (int i = 0; i < 3; i++)
        assert_true(td_grad(&g, 1, &x, 1, &g, (td_grad_options){ .create_graph = true }));
    const double t = tanh(0.3), s = 1 - t * t;
    assert_true(fabs(td_item_double(g) - (4 * t * t * s - 2 * s * s)) < 1e-13);
}

static void create_graph_leaves_a_graph_on_the_gradient(void **state)
{
    td_tensor *x = leaf(2), *y = td_mul(td_mul(x, x), x);
    assert_true(td_backward(y, (td_backward_options){ .create_graph = true }));
    td_tensor *g = td_retain(td_grad_of(x));
    assert_true(td_requires_grad(g));
    assert_true(td_set_grad(x, NULL));
    assert_true(backward(g));
    assert_true(grad(x) == 12);
    td_release(g);
}

/* versions --------------------------------------------------------------- */

static void modified_operands_are_caught(void **state)
{
    td_tensor *x = vector(3, 1), *w = vector(3, 2), *y = td_sum(td_mul(x, w), all);
    td_no_grad_begin();
    td_fill_(td_slice(w, 0, (td_opt_i64)td_some(0), (td_opt_i64)td_some(1), 1), td_float(0));
    td_no_grad_end();
    refused(backward(y), TD_ERROR_RUNTIME,
            "gradient of mul was modified in place: input 1, float64 [3], is at version 1, expected version 0");
}

static void modified_results_are_caught(void **state)
{
    td_tensor *x = leaf(1), *y = td_exp(x);
    td_no_grad_begin();
    td_zero_(y);
    td_no_grad_end();
    refused(backward(y), TD_ERROR_RUNTIME, "gradient of exp was modified in place: output 0");
}

static void what_no_rule_needs_may_be_modified(void **state)
{
    td_tensor *x = leaf(1), *c = td_full(TD_DIMS(1), td_float(2), wide);
    td_tensor *y = td_add(x, c), *z = td_mul(x, c);
    td_no_grad_begin();
    td_zero_(x);                /* mul needs only c: x alone wants a gradient */
    td_no_grad_end();
    assert_true(backward(y) && backward(z));
    assert_true(grad(x) == 3);
}

static void leaves_cannot_be_changed_in_place(void **state)
{
    td_tensor *x = leaf(1), *c = td_zeros(TD_DIMS(1), wide);
    refused(td_add_(x, c), TD_ERROR_RUNTIME, "a leaf that requires a gradient");
    refused(td_zero_(td_select(x, 0, 0)), TD_ERROR_RUNTIME, "a view of a leaf");
    td_no_grad_begin();
    assert_non_null(td_add_(x, c));
    td_no_grad_end();
    assert_non_null(td_add_(c, c));
}

/* hooks ------------------------------------------------------------------ */

typedef struct { int calls, freed; double seen, factor; td_tensor *x; int64_t id; } notes;

static td_tensor *note(void *context, td_tensor *g)
{
    notes *n = context;
    n->calls++;
    n->seen = td_item_double(g);
    return n->factor != 0 ? td_mul_scalar(g, td_float(n->factor)) : NULL;
}

static void note_freed(void *context)
{
    ((notes *)context)->freed++;
}

static void leaf_hooks_see_the_sum_once(void **state)
{
    td_tensor *x = leaf(3);
    notes n = { .factor = 10 }, m = { 0 };
    const int64_t id = td_register_hook(x, note, &n, note_freed);
    assert_true(id > 0);
    assert_true(td_register_hook(x, note, &m, NULL) > id);
    assert_true(backward(td_add(td_mul(x, x), x)));
    assert_int_equal(n.calls, 1);
    assert_true(n.seen == 7 && m.seen == 70 && grad(x) == 70);
    assert_true(td_remove_hook(x, id));
    assert_int_equal(n.freed, 1);
    assert_false(td_remove_hook(x, id));
    assert_true(backward(td_mul(x, x)));
    assert_int_equal(n.calls, 1);
    assert_int_equal(m.calls, 2);
}

static void hooks_of_results_change_what_flows_on(void **state)
{
    td_tensor *x = leaf(3), *y = td_mul(x, x);
    notes n = { .factor = -1 };
    td_register_hook(y, note, &n, note_freed);
    td_tensor *z = td_add(y, y);
    assert_true(backward(z));
    assert_true(n.seen == 2 && grad(x) == -12);
    assert_int_equal(n.freed, 1);       /* with the node's contents */
    td_tensor *w = td_mul(x, x), *g;
    td_register_hook(w, note, &n, NULL);
    assert_true(td_grad(&w, 1, &x, 1, &g, ask));
    assert_true(td_item_double(g) == -6);
}

static td_tensor *remove_self(void *context, td_tensor *g)
{
    notes *n = context;
    n->calls++;
    assert_true(td_remove_hook(n->x, n->id));
    return NULL;
}

static void a_hook_may_remove_itself(void **state)
{
    td_tensor *x = leaf(3);
    notes n = { .x = x }, m = { 0 };
    n.id = td_register_hook(x, remove_self, &n, note_freed);
    td_register_hook(x, note, &m, NULL);
    assert_true(backward(td_mul(x, x)) && backward(td_mul(x, x)));
    assert_int_equal(n.calls, 1);
    assert_int_equal(n.freed, 1);
    assert_int_equal(m.calls, 2);
}

static td_tensor *fail_hook(void *context, td_tensor *g)
{
    td_release(td_mul(g, g));
    td_scope_begin();
    td_no_grad_begin();
    td_fail(TD_ERROR_CALLBACK, "hook", "on purpose");
    return td_retain(g);
}

static void a_failing_hook_stops_the_pass(void **state)
{
    td_tensor *x = leaf(3), *w = leaf(2), *y = td_mul(x, x), *z = td_mul(y, w);
    td_register_hook(y, fail_hook, NULL, NULL);
    refused(td_backward(z, (td_backward_options){ .retain_graph = true }), TD_ERROR_CALLBACK, "on purpose");
    assert_true(td_grad_enabled());
    assert_null(td_grad_of(x));
    refused(backward(z), TD_ERROR_CALLBACK, "on purpose");        /* the graph was retained */
    refused(backward(z), TD_ERROR_RUNTIME, "a second time");      /* the graph was released */
}

static td_tensor *wrong_shape(void *context, td_tensor *g)
{
    return td_zeros(TD_DIMS(2, 2), wide);
}

static void a_hook_must_keep_the_shape(void **state)
{
    td_tensor *x = leaf(3);
    td_register_hook(x, wrong_shape, NULL, NULL);
    refused(backward(td_mul(x, x)), TD_ERROR_RUNTIME, "float64 [2, 2]");
    assert_int_equal(td_register_hook(td_zeros(TD_DIMS(1), wide), note, NULL, NULL), 0);
    expect_error(TD_ERROR_RUNTIME, "cannot have a hook");
}

static td_tensor *backward_again(void *context, td_tensor *g)
{
    backward(context);
    return NULL;
}

static void a_pass_inside_a_pass(void **state)
{
    td_tensor *x = leaf(3), *w = leaf(5), *y = td_mul(x, x);
    td_tensor *other = td_mul(w, w);
    td_register_hook(y, backward_again, other, NULL);
    assert_true(backward(td_add(y, y)));        /* another graph: fine */
    assert_true(grad(w) == 10 && grad(x) == 12);
    td_tensor *u = td_mul(x, x), *v = td_mul(td_add(u, u), u);
    td_register_hook(u, backward_again, v, NULL);
    refused(backward(v), TD_ERROR_RUNTIME, "second time");
    td_tensor *p = td_mul(x, x), *q = td_mul(p, p);
    td_register_hook(p, backward_again, p, NULL);        /* itself, now running */
    refused(backward(q), TD_ERROR_RUNTIME, "another backward pass is running");
}

static void watched_results_keep_their_gradient(void **state)
{
    td_tensor *x = leaf(3), *y = td_mul(x, x), *z = td_mul(y, y);
    assert_true(td_retain_grad(y));
    td_scope_begin();
    assert_true(td_retain_grad(td_mul(y, x)));  /* dies before the pass */
    td_scope_end();
    const td_backward_options keep = { .retain_graph = true };
    assert_true(td_backward(z, keep));
    assert_true(grad(y) == 18);
    assert_true(td_backward(z, keep));
    assert_true(grad(y) == 36);
    refused(td_retain_grad(td_zeros(TD_DIMS(1), wide)), TD_ERROR_RUNTIME, "does not require");
}

static void a_dead_watcher_is_forgotten(void **state)
{
    td_tensor *x = leaf(3);
    td_scope_begin();
    td_tensor *y = td_mul(x, x);
    td_retain_grad(y);
    td_tensor *z = td_retain(td_add(y, x));
    td_scope_end();
    assert_true(backward(z));
    assert_true(grad(x) == 7);
    td_release(z);
}

/* custom functions ------------------------------------------------------- */

typedef struct { int freed; bool fail, silent; } custom_notes;

static void custom_freed(void *context)
{
    ((custom_notes *)context)->freed++;
}

/* y = x^2 with saved x and y: gradient 2 g x, written as 2 g y / x */
static bool square_backward(void *context, td_custom_call *call)
{
    custom_notes *n = context;
    if (n->fail)
        return n->silent ? false : td_fail(TD_ERROR_CALLBACK, "square", "refused");
    assert_int_equal(call->n_saved, 2);
    assert_true(call->needs[0]);
    td_scope_begin();
    td_tensor *slope = td_div(td_mul_scalar(call->saved[1], td_float(2)), call->saved[0]);
    call->grad_in[0] = td_scope_end_with(td_mul(call->grad_out[0], slope));
    return !td_failed();
}

static td_tensor *square(td_tensor *x, custom_notes *n)
{
    td_no_grad_begin();
    td_tensor *y = td_mul(x, x);
    td_no_grad_end();
    td_tensor *saved[2] = { x, y };
    if (!td_record_custom("Square", 1, &x, 1, &y, square_backward, n, custom_freed)
        || !td_save_for_backward(y, 2, saved))
        return NULL;
    return y;
}

static td_tensor *square_of(void *context, td_tensor *const *in)
{
    return square(in[0], context);
}

static void custom_functions_have_rules(void **state)
{
    custom_notes n = { 0 };
    td_tensor *x = leaf(3), *y = square(x, &n);
    assert_string_equal(td_grad_fn_name(y), "SquareBackward");
    assert_true(backward(td_mul(y, y)));
    assert_true(grad(x) == 4 * 27);
    assert_int_equal(n.freed, 1);
    td_tensor *v = vector(3, 1);
    assert_true(td_gradcheck(square_of, &n, 1, &v, (td_gradcheck_options)TD_DEFAULTS));
    assert_true(td_gradgradcheck(square_of, &n, 1, &v, (td_gradcheck_options)TD_DEFAULTS));
}

static void custom_functions_that_fail(void **state)
{
    custom_notes n = { .fail = true };
    refused(backward(square(leaf(3), &n)), TD_ERROR_CALLBACK, "refused");
    n.silent = true;
    refused(backward(square(leaf(3), &n)), TD_ERROR_CALLBACK, "without saying why");
    n.fail = false;
    td_tensor *x = leaf(3), *y = square(x, &n);
    td_no_grad_begin();
    td_zero_(x);
    td_no_grad_end();
    refused(backward(y), TD_ERROR_RUNTIME, "gradient of Square was modified in place: saved tensor 0");
}

/* What a rule of a stranger may do wrong, one bit each. */
typedef enum { OTHER_SHAPE = 1, OTHER_DTYPE = 2, UNASKED = 4, SAME_TWICE = 8, FALSE_SILENTLY = 16, TRUE_FAILING = 32,
               NOTHING = 64 } nonsense;

static bool nonsensical_backward(void *context, td_custom_call *call)
{
    const int how = *(int *)context;
    td_tensor *g = how & OTHER_SHAPE ? td_ones(TD_DIMS(7), wide)
                 : how & OTHER_DTYPE ? td_to(call->grad_out[0], TD_FLOAT32) : td_clone(call->grad_out[0]);
    for (int i = 0; i < call->n_in && !(how & NOTHING); i++)
        if (call->needs[i] || how & UNASKED)
            call->grad_in[i] = how & SAME_TWICE ? td_retain(g) : td_clone(g);
    td_release(g);
    if (how & TRUE_FAILING)
        td_fail(TD_ERROR_INDEX, "mine", "my own words");
    return !(how & FALSE_SILENTLY);
}

static bool run_nonsense(int how, td_tensor *a, td_tensor *b)
{
    td_tensor *in[] = { a, b };
    td_no_grad_begin();
    td_tensor *y = td_mul(a, b);
    td_no_grad_end();
    return td_record_custom("Odd", 2, in, 1, &y, nonsensical_backward, &how, NULL)
        && backward(td_sum(y, all));
}

static void custom_functions_that_return_nonsense(void **state)
{
    const struct { int how; td_error_code code; const char *words; } wrong[] = {
        { OTHER_SHAPE, TD_ERROR_RUNTIME, "sum" }, { OTHER_SHAPE | UNASKED, TD_ERROR_RUNTIME, "sum" },
        { FALSE_SILENTLY, TD_ERROR_CALLBACK, "Odd: the backward function failed" },
        { FALSE_SILENTLY | UNASKED | SAME_TWICE, TD_ERROR_CALLBACK, "without saying why" },
        { TRUE_FAILING, TD_ERROR_INDEX, "mine: my own words" },
        { TRUE_FAILING | FALSE_SILENTLY, TD_ERROR_INDEX, "mine: my own words" } };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        td_tensor *a = vector(3, 1), *b = vector(3, 1);
        refused(run_nonsense(wrong[i].how, a, b), wrong[i].code, wrong[i].words);
        assert_null(td_grad_of(a));
    }
    const int fine[] = { 0, OTHER_DTYPE, UNASKED, SAME_TWICE, SAME_TWICE | UNASKED | OTHER_DTYPE, NOTHING };
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        td_tensor *a = vector(3, 1), *b = td_ones(TD_DIMS(3), wide);
        assert_true(run_nonsense(fine[i], a, b));
        assert_null(td_grad_of(b));
        if (fine[i] & NOTHING)
            assert_null(td_grad_of(a));
        else
            assert_true(td_dtype_of(td_grad_of(a)) == TD_FLOAT64 && td_numel(td_grad_of(a)) == 3);
    }
    td_tensor *a = vector(3, 1);
    td_tensor *y = td_detach(a), *twice[] = { y, y };
    refused(td_record_custom("Odd", 1, &a, 2, twice, nonsensical_backward, NULL, NULL), TD_ERROR_RUNTIME, "result 1");
}

static void custom_functions_without_record(void **state)
{
    custom_notes n = { 0 };
    td_tensor *c = td_full(TD_DIMS(1), td_float(3), wide), *y = square(c, &n);
    assert_true(td_is_leaf(y));
    assert_int_equal(n.freed, 1);
    td_no_grad_begin();
    square(leaf(3), &n);
    td_no_grad_end();
    assert_int_equal(n.freed, 2);
    td_tensor *x = leaf(3), *z = td_mul(x, x);
    refused(td_record_custom("f", 1, &x, 1, &x, square_backward, &n, custom_freed), TD_ERROR_RUNTIME, "result 0");
    refused(td_record_custom("f", 1, &x, 1, &z, square_backward, &n, custom_freed), TD_ERROR_RUNTIME, "result 0");
    assert_int_equal(n.freed, 4);
    td_fail(TD_ERROR_VALUE, "test", "pending");
    assert_false(td_record_custom("f", 1, &x, 1, &z, square_backward, &n, custom_freed));
    assert_int_equal(n.freed, 5);
    td_error_clear();
}

/* several results; the gradient of one never arrives */
static bool split_backward(void *context, td_custom_call *call)
{
    custom_notes *n = context;
    n->freed += call->grad_out[1] == NULL ? 100 : 0;
    call->grad_in[0] = td_retain(call->grad_out[0]);
    assert_false(call->needs[1]);
    return true;
}

static void absent_gradients_are_null(void **state)
{
    custom_notes n = { 0 };
    td_tensor *x = leaf(3), *c = td_zeros(TD_DIMS(1), wide);
    td_tensor *in[3] = { x, c, NULL }, *out[2];
    td_no_grad_begin();
    out[0] = td_clone(x);
    out[1] = td_clone(x);
    td_no_grad_end();
    assert_true(td_record_custom("split", 3, in, 2, out, split_backward, &n, NULL));
    assert_true(backward(out[0]));
    assert_int_equal(n.freed, 100);
    assert_true(grad(x) == 1);
}

/* a rule that answers nothing: whoever waits for it must not wait for ever */
static bool silent_backward(void *context, td_custom_call *call)
{
    (void)context;
    (void)call;
    return true;
}

static void absent_gradients_still_count(void **state)
{
    (void)state;
    td_tensor *x = leaf(3), *u = td_mul(x, x);
    td_no_grad_begin();
    td_tensor *f = td_clone(u);
    td_no_grad_end();
    assert_true(td_record_custom("silent", 1, &u, 1, &f, silent_backward, NULL, NULL));
    assert_true(backward(td_add(f, u)));
    assert_true(grad(x) == 6);
}

/* deep graphs ------------------------------------------------------------ */

static void *deep_chain(void *unused)
{
    td_tensor *x = leaf(1), *y = td_retain(x);
    for (int i = 0; i < 300000; i++) {
        td_tensor *next = td_mul(y, x);
        td_release(y);
        y = next;
    }
    const bool ok = backward(y) && grad(x) == 300001;
    td_release(y);
    y = td_retain(x);
    for (int i = 0; i < 300000; i++) {          /* and freed unwalked */
        td_tensor *next = td_mul(y, x);
        td_release(y);
        y = next;
    }
    td_release(y);
    td_release(x);
    return ok ? unused : NULL;
}

static void chains_need_no_stack(void **state)
{
    int token;
    void *result;
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 * 1024);
    assert_int_equal(pthread_create(&thread, &small, deep_chain, &token), 0);
    pthread_join(thread, &result);
    assert_ptr_equal(result, &token);
}

/* threads ---------------------------------------------------------------- */

enum { PASSES = 200 };

static void *train(void *context)
{
    td_tensor *w = context;
    for (int i = 0; i < PASSES; i++) {
        td_scope_begin();
        td_tensor *x = td_full(TD_DIMS(3), td_float(2), wide);
        td_tensor *y = td_sum(td_mul(td_mul(w, x), w), all);
        if (!backward(y))
            return NULL;
        td_scope_end();
    }
    return context;
}

static void passes_in_two_threads_share_leaves(void **state)
{
    td_tensor *w = td_full(TD_DIMS(3), td_float(1), leaf_f64);
    pthread_t threads[2];
    void *result;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, train, w);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], &result);
        assert_non_null(result);
    }
    for (int i = 0; i < 3; i++)
        assert_true(at(td_grad_of(w), i) == 2 * PASSES * 4);
}

typedef struct { td_tensor *root; int done, busy, other; } rivals;

static void *walk_shared_graph(void *context)
{
    rivals *r = context;
    for (int i = 0; i < 100; i++) {
        if (td_backward(r->root, (td_backward_options){ .retain_graph = true }))
            r->done++;
        else if (strstr(td_error_message(), "another backward pass"))
            r->busy++;
        else
            r->other++;
        td_error_clear();
    }
    return NULL;
}

static void two_threads_on_one_graph_get_an_error_or_a_turn(void **state)
{
    td_tensor *x = leaf(1), *y = x;
    for (int i = 0; i < 200; i++)
        y = td_add(y, x);
    rivals r[2] = { { .root = y }, { .root = y } };
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, walk_shared_graph, &r[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(r[0].other + r[1].other, 0);
    assert_int_equal(r[0].done + r[1].done + r[0].busy + r[1].busy, 200);
    assert_true(grad(x) == 201.0 * (r[0].done + r[1].done));
}

/* failing memory --------------------------------------------------------- */

static bool whole_step(td_tensor *x, td_tensor *w)
{
    td_scope_begin();
    td_tensor *y = td_tanh(td_matmul(x, w));
    td_tensor *g, *loss = td_mean(td_mul(y, y), all);
    td_retain_grad(y);
    bool ok = td_grad(&loss, 1, &w, 1, &g, (td_grad_options){ .create_graph = true });
    ok = ok && backward(td_sum(td_mul(g, g), all));
    ok = ok && backward(td_mean(td_softmax(td_cat((td_tensor *[]){ x, td_t(w) }, 2, 0), 0), all));
    td_scope_end();
    return ok;
}

static void every_allocation_may_fail(void **state)
{
    td_tensor *x = td_full(TD_DIMS(2, 3), td_float(0.3), wide);
    td_tensor *w = td_full(TD_DIMS(3, 2), td_float(0.5), leaf_f64);
    assert_true(whole_step(x, w));
    td_set_grad(w, NULL);
    const td_memory_info start = td_memory_stats();
    bool ok = false;
    for (int n = 0; !ok && n < 5000; n++) {
        td_memory_fail_after(n);
        ok = had_memory(whole_step(x, w));
        assert_true(td_grad_enabled());
        assert_int_equal(td_self()->muted, 0);
        td_set_grad(w, NULL);
        assert_true(counters_are_back(start));
    }
    assert_true(ok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(results_require_gradients_and_are_no_leaves),
        CASE(only_floats_require_gradients),
        CASE(flag_of_a_result_cannot_be_cleared),
        CASE(null_and_pending_errors_are_answered),
        CASE(gradient_must_match_its_tensor),
        CASE(attributes_outlive_the_call),
        CASE(detach_shares_elements_and_cuts),
        CASE(modes_nest_and_restore),
        CASE(too_many_modes_are_an_error),
        CASE(gradients_accumulate_over_passes),
        CASE(leaf_can_be_the_root),
        CASE(root_needs_a_history_and_a_seed),
        CASE(one_element_of_any_rank_needs_no_seed),
        CASE(empty_tensors_go_backward),
        CASE(broadcasting_is_undone),
        CASE(gradient_has_the_dtype_of_its_operand),
        CASE(a_graph_can_be_walked_once_or_retained),
        CASE(nodes_are_freed_during_the_pass),
        CASE(saved_tensors_are_dropped_by_the_pass),
        CASE(dropping_the_result_frees_the_record),
        CASE(operands_used_often_add_up),
        CASE(shared_gradients_are_not_added_in_place),
        CASE(expanded_gradients_become_real_ones),
        CASE(a_held_gradient_is_left_alone),
        CASE(users_seed_is_not_stolen),
        CASE(grad_returns_without_touching_leaves),
        CASE(grad_of_results_in_the_middle),
        CASE(grad_prunes_what_it_does_not_need),
        CASE(unused_inputs_are_an_error_or_null),
        CASE(several_outputs_and_seeds),
        CASE(same_input_and_root_twice),
        CASE(saved_results_are_tied_to_the_graph_again),
        CASE(third_derivative_of_tanh),
        CASE(create_graph_leaves_a_graph_on_the_gradient),
        CASE(modified_operands_are_caught),
        CASE(modified_results_are_caught),
        CASE(what_no_rule_needs_may_be_modified),
        CASE(leaves_cannot_be_changed_in_place),
        CASE(leaf_hooks_see_the_sum_once),
        CASE(hooks_of_results_change_what_flows_on),
        CASE(a_hook_may_remove_itself),
        CASE(a_failing_hook_stops_the_pass),
        CASE(a_hook_must_keep_the_shape),
        CASE(a_pass_inside_a_pass),
        CASE(watched_results_keep_their_gradient),
        CASE(a_dead_watcher_is_forgotten),
        CASE(custom_functions_have_rules),
        CASE(custom_functions_that_fail),
        CASE(custom_functions_that_return_nonsense),
        CASE(memory_of_a_tensor_that_fails_stays_with_the_caller),
        CASE(custom_functions_without_record),
        CASE(absent_gradients_are_null),
        CASE(absent_gradients_still_count),
        CASE(chains_need_no_stack),
        CASE(passes_in_two_threads_share_leaves),
        CASE(two_threads_on_one_graph_get_an_error_or_a_turn),
        CASE(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
