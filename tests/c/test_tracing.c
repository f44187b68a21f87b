/* needs: tracing losses optimisers modules random */
/* Traces and programs: recorded, printed, read, verified, replayed. */
#include "treadle_test.h"
#include "core/registry.h"
#include <treadle/op.h>
#include <treadle/treadle.h>

static const td_device cpu = { TD_DEVICE_CPU, 0 };
static const td_tensor_options none = TD_DEFAULTS;

static void expect_close(const td_tensor *a, const td_tensor *b, double slack)
{
    assert_int_equal(td_numel(a), td_numel(b));
    const size_t size = td_dtype_size(td_dtype_of(a));
    for (int64_t i = 0; i < td_numel(a); i++) {
        const char *p = (const char *)td_data(a) + (size_t)i * size;
        const char *q = (const char *)td_data(b) + (size_t)i * size;
        const double left = size == 4 ? *(const float *)p : *(const double *)p;
        const double right = size == 4 ? *(const float *)q : *(const double *)q;
        if (slack == 0 ? memcmp(p, q, size) != 0 : !(fabs(left - right) <= slack))
            fail_msg("first difference at element %d", (int)i);
    }
}
#define expect_equal(a, b) expect_close(a, b, 0)

typedef struct { td_tensor *w[5]; td_optimiser *sgd; } net;

/* 6 -> 5 -> 3, with biases and a scale, and SGD with momentum. */
static net new_net(void)
{
    net n;
    const td_dims shapes[] = { TD_DIMS(5, 6), TD_DIMS(5), TD_DIMS(3, 5), TD_DIMS(3), TD_DIMS(3) };
    td_manual_seed(11);
    for (int i = 0; i < 5; i++)
        n.w[i] = td_randn(shapes[i], (td_tensor_options){ .requires_grad = true });
    n.sgd = td_sgd(n.w, 5, 0.05, (td_sgd_options){ .momentum = 0.9, .weight_decay = 1e-3 });
    return n;
}

static td_tensor *step(net *n, td_tensor *x, td_tensor *t)
{
    td_zero_grad(n->sgd);
    td_tensor *h = td_tanh(td_relu(td_linear(x, n->w[0], n->w[1])));
    td_tensor *y = td_mul(td_linear(h, n->w[2], n->w[3]), n->w[4]);
    td_tensor *loss = td_cross_entropy(y, t, (td_cross_entropy_options){ .label_smoothing = 0.1 });
    td_backward(loss, (td_backward_options)TD_DEFAULTS);
    td_step(n->sgd);
    return loss;
}

static td_tensor *batch(void) { return td_randn(TD_DIMS(7, 6), none); }
static td_tensor *labels(void)
{
    return td_to(td_randint(0, 3, TD_DIMS(7), none), TD_INT64);
}

static td_program *traced(net *n)
{
    td_trace_begin(true);
    td_tensor *x = td_trace_input(TD_DIMS(7, 6), TD_FLOAT32, cpu);
    td_tensor *t = td_trace_input(TD_DIMS(7), TD_INT64, cpu);
    td_tensor *loss = step(n, x, t);
    return td_trace_end(&loss, 1);
}

/* To rounding: eager rules run as fused loops, traced ones as operators. */
static void a_replayed_step_is_the_eager_step(void **state)
{
    td_tensor *x = batch(), *t = labels();
    net a = new_net(), b = new_net();
    step(&a, x, t);                         /* makes the buffers */
    step(&b, x, t);
    td_program *p = traced(&b);
    assert_true(td_program_verify(p));
    for (int k = 0; k < 20; k++) {
        td_tensor *loss = NULL;
        assert_true(td_program_run(p, (td_tensor *[]){ x, t }, 2, &loss));
        expect_close(step(&a, x, t), loss, 2e-6);
    }
    for (int i = 0; i < 5; i++)
        expect_close(a.w[i], b.w[i], 1e-5);
}

static void a_symbolic_trace_leaves_weights_and_gradients_alone(void **state)
{
    net n = new_net();
    step(&n, batch(), labels());
    td_tensor *w = td_clone(td_detach(n.w[0])), *before = td_grad_of(n.w[0]);
    traced(&n);
    expect_equal(w, td_detach(n.w[0]));
    assert_ptr_equal(td_grad_of(n.w[0]), before);
    td_set_grad(n.w[0], NULL);
    td_backward(td_sum(td_mul(n.w[0], n.w[0]), (td_reduce_options)TD_DEFAULTS), (td_backward_options)TD_DEFAULTS);
    td_tensor *g = td_grad_of(n.w[0]);
    td_trace_begin(true);
    td_backward(td_sum(n.w[0], (td_reduce_options)TD_DEFAULTS), (td_backward_options)TD_DEFAULTS);
    td_trace_end(NULL, 0);
    assert_ptr_equal(td_grad_of(n.w[0]), g);
}

static char printed[40000];

static const char *print(td_program *p)
{
    assert_true(td_program_print(p, printed, sizeof printed) < (int64_t)sizeof printed);
    return printed;
}

static void printing_and_reading_is_a_round_trip(void **state)
{
    net n = new_net();
    static char first[40000];
    step(&n, batch(), labels());
    strcpy(first, print(traced(&n)));
    td_program *read = td_program_parse(first);
    assert_non_null(read);
    assert_string_equal(print(read), first);
    assert_int_equal(td_program_inputs(read), 2 + 10);
}

static void scalars_and_lists_survive_the_round_trip(void **state)
{
    td_trace_begin(true);
    td_tensor *x = td_trace_input(TD_DIMS(3, 4), TD_FLOAT64, cpu);
    td_tensor *y = td_add_scalar(td_mul_scalar(x, td_float(0.1)), td_int(-3));
    y = td_where_scalar(td_gt_scalar(y, td_float(1e-30)), y, td_float(-INFINITY));
    y = td_cat((td_tensor *[]){ y, x, y }, 3, -1);
    y = td_sum(y, (td_reduce_options){ .dims = TD_DIMS(0, 1), .keepdim = true });
    td_program *p = td_trace_end(&y, 1);
    static char first[4000];
    strcpy(first, print(p));
    assert_non_null(strstr(first, "0.1"));
    assert_string_equal(print(td_program_parse(first)), first);
    td_tensor *data = td_ones(TD_DIMS(3, 4), (td_tensor_options){ .dtype = TD_FLOAT64 }), *a, *b;
    assert_true(td_program_run(p, &data, 1, &a));
    assert_true(td_program_run(td_program_parse(first), &data, 1, &b));
    expect_equal(a, b);
}

static void a_third_survives_the_round_trip(void **state)
{
    td_trace_begin(true);
    td_tensor *x = td_trace_input(TD_DIMS(3), TD_FLOAT64, cpu);
    td_tensor *y = td_mul_scalar(x, td_float(1.0 / 3));
    td_program *p = td_trace_end(&y, 1);
    td_tensor *data = td_ones(TD_DIMS(3), (td_tensor_options){ .dtype = TD_FLOAT64 }), *a, *b;
    assert_true(td_program_run(p, &data, 1, &a));
    assert_true(td_program_run(td_program_parse(print(p)), &data, 1, &b));
    expect_equal(a, b);
}

static void a_run_that_fails_changes_nothing(void **state)
{
    td_tensor *w = td_ones(TD_DIMS(2, 3), (td_tensor_options){ 0 });
    td_tensor *same = td_clone(w);
    td_trace_begin(true);
    td_tensor *t = td_trace_input(TD_DIMS(2), TD_INT64, cpu);
    td_add_(w, w);
    td_tensor *loss = td_cross_entropy(w, t, (td_cross_entropy_options)TD_DEFAULTS);
    td_program *p = td_trace_end(&loss, 1);
    td_tensor *bad = td_full(TD_DIMS(2), td_int(7), (td_tensor_options){ .dtype = TD_INT64 });
    assert_false(td_program_run(p, &bad, 1, &loss));
    expect_error(TD_ERROR_INDEX, "target 7 at position 0");
    expect_equal(w, same);
}

static void malformed_texts_are_refused_by_line(void **state)
{
    static const struct { const char *text, *words; } bad[] = {
        { "input %0 : float99[2]\nreturn %0\n", "line 1: expected a dtype" },
        { "input %0 : float32[2]\n%1 = nothing(%0) : float32[2]\n", "line 2: there is no such operator" },
        { "input %0 : float32[2]\ninput %0 : float32[2]\n", "line 2: this value is defined twice" },
        { "input %0 : float32[2]\n%1 = relu(%0 : float32[2]\n", "line 2: expected ')'" },
        { "input %0 : float32[2]\n%1 = relu(%0) : float32[2] x\n", "line 2: the line should end" },
        { "%1 = relu(%0) : float32[2]\nreturn %1\n", "uses %0 before it is defined" },
        { "input %0 : float32[2]\n%1 = relu(%0) : float32[3]\n", "makes float32[2], the program says" },
        { "input %0 : float32[2]\nreturn %7\n", "returns %7, which no step makes" },
        { "input %0 : float32[2]\ninput %1 : float32[3]\nupdate %0 = %1\n", "cannot be updated" },
        { "input %0 : float32[2]\n%1 = relu(%0) : float32[2]\nupdate %1 = %0\n", "%1 cannot be updated" },
        { "update %0 = %1\ninput %0 : float32[2]\ninput %1 : float32[2]\n", "line 1: what is updated is not declared" },
        { "input %0 : float32[2]\n%1, %2 = relu(%0) : float32[2], float32[2]\n", "step 1 (relu) makes none[]" },
        { "input %0 : float32[2]\n%1, %2 = add_(%0, 1) : float32[2], float32[2]\n", "step 1 (add_) makes none[]" },
        { "input %99999999 : float32[2]\n", "expected the number of a value" },
        { "input %0 : float32[1,2,3,4,5,6,7,8,9]\n", "the list is too long" },
        { "input %0 : float32[2]\ninput %1 : float32[2]\nreturn %0, %1\nreturn\n", "line 4: a program returns once" },
        { "input %0 : float32[99999999999999999999]\n", "line 1: expected an integer" },
        { "input %0 : float32[2]\n%1 = add(%0, 99999999999999999999) : float32[2]\n", "line 2: expected a number" },
        { "input %0 : float32[2]\n%1 = add(%0,\n3) : float32[2]\n", "line 2: expected a number" },
        { "input %0 : float32[2]\n%1 = cat([%0,\n%0], dim=0) : float32[4]\n", "line 2: expected '%'" },
        { "input %0 : float32[2]\n%1 = gelu(%0, approximate='tanh\n') : float32[2]\n", "line 2: expected '''" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_null(td_program_parse(bad[i].text));
        expect_error(TD_ERROR_VALUE, bad[i].words);
    }
    assert_null(td_program_parse("input %0 : float32[2]\n%1 = gelu(%0, approximate='it\\x27s \xc3\xa9') : float32[2]\n"));
    expect_error(TD_ERROR_UNSUPPORTED, "got 'it's \xc3\xa9'");
    assert_null(td_program_parse("input %0 : float32[2]\n%1 = gelu(%0, approximate='') : float32[2]\n"));
    expect_error(TD_ERROR_UNSUPPORTED, "got ''");
    assert_null(td_program_parse(NULL));
    expect_error(TD_ERROR_VALUE, "NULL");
}

static void numbers_at_their_ends_survive_the_round_trip(void **state)
{
    static const double floats[] = { INFINITY, -INFINITY, NAN, -0.0, 0.0, 5e-324, -2.2250738585072009e-308,
                                     1.7976931348623157e308, 1.0 / 3, 1e22, 1e-5, 123456789.0 };
    static const int64_t integers[] = { INT64_MAX, INT64_MIN, 0, -1, (1LL << 53) + 1 };
    char first[8000];
    td_trace_begin(true);
    td_tensor *y = td_trace_input(TD_DIMS(3), TD_FLOAT64, cpu);
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
        y = td_add_scalar(y, td_float(floats[i]));
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
        y = td_add_scalar(y, td_int(integers[i]));
    strcpy(first, print(td_trace_end(&y, 1)));
    assert_non_null(strstr(first, ", inf)"));
    assert_non_null(strstr(first, "-0.0)"));
    assert_non_null(strstr(first, "-9223372036854775808)"));
    assert_string_equal(print(td_program_parse(first)), first);
}

static uint32_t next_random(uint32_t *random)
{
    *random = *random * 1664525u + 1013904223u;
    return *random >> 8;
}

static td_tensor *gelu(td_tensor *x, const char *approximate)
{
    const td_value in = { .kind = TD_TENSOR, .as.tensor = x };
    const td_value attr = { .kind = TD_STRING, .as.string = approximate };
    td_call call = { .op = td_op_find("gelu"), .n_in = 1, .in = &in, .n_attr = 1, .attr = &attr };
    return td_run(&call) ? call.out[0] : NULL;
}

/* Some steps on tensors of one shape, with scalars, lists and words. */
static td_program *random_program(uint32_t *r)
{
    td_tensor *x[20];
    int n = 2;
    td_trace_begin(true);
    x[0] = td_trace_input(TD_DIMS(2, 3), TD_FLOAT32, cpu);
    x[1] = td_ones(TD_DIMS(2, 3), none);
    while (n < 20) {
        td_tensor *a = x[next_random(r) % n], *b = x[next_random(r) % n];
        const double number = ldexp((double)next_random(r) - 8e6, (int)(next_random(r) % 2100) - 1070);
        switch (next_random(r) % 7) {
        case 0: x[n++] = td_mul_scalar(a, td_float(number)); break;
        case 1: x[n++] = td_sub(a, b); break;
        case 2: x[n++] = td_select(td_stack((td_tensor *[]){ a, b, a }, 3, 1), 1, -1); break;
        case 3: x[n++] = td_where_scalar(td_lt(a, b), a, td_int((int64_t)next_random(r) << 39)); break;
        case 4: x[n++] = gelu(a, next_random(r) % 2 ? "tanh" : "none"); break;
        case 5: x[n++] = td_expand(td_sum(a, (td_reduce_options){ .dims = TD_DIMS(1), .keepdim = true }), TD_DIMS(2, 3)); break;
        default: x[n++] = td_add_scalar_(td_clone(a), td_float(number));
        }
    }
    return td_trace_end(x + 17, 3);
}

static void every_program_prints_and_reads_to_itself(void **state)
{
    static char first[40000], bad[40000];
    uint32_t r = 7;
    for (int k = 0; k < 300; k++) {
        td_scope_begin();
        strcpy(first, print(random_program(&r)));
        td_program *read = td_program_parse(first);
        assert_non_null(read);
        assert_string_equal(print(read), first);
        strcpy(bad, first);
        const size_t length = strlen(bad);
        bad[next_random(&r) % length] = (char)next_random(&r);
        bad[k % 2 ? next_random(&r) % length : length] = '\0';
        td_program *damaged = td_program_parse(bad);
        assert_true((damaged == NULL) == td_failed());
        td_error_clear();
        if (damaged != NULL)                /* then it is a program: it prints to itself */
            strcpy(first, print(damaged));
        if (damaged != NULL)
            assert_string_equal(print(td_program_parse(first)), first);
        td_scope_end();
    }
}

static void a_thousand_tensors_are_joined(void **state)
{
    static char text[40000];
    td_tensor *x[1000], *out, *eager;
    td_tensor *data = td_randn(TD_DIMS(3), none);
    for (int stacks = 0; stacks < 2; stacks++) {
        td_trace_begin(true);
        x[0] = td_trace_input(TD_DIMS(3), TD_FLOAT32, cpu);
        for (int i = 1; i < 1000; i++)
            x[i] = x[i / 2];
        out = stacks ? td_stack(x, 1000, 0) : td_cat(x, 1000, 0);
        td_program *p = td_trace_end(&out, 1);
        assert_non_null(p);
        strcpy(text, print(p));
        td_program *read = td_program_parse(text);
        assert_non_null(read);
        assert_string_equal(print(read), text);
        for (int i = 0; i < 1000; i++)
            x[i] = data;
        eager = stacks ? td_stack(x, 1000, 0) : td_cat(x, 1000, 0);
        td_executable *e = td_compile(p, (td_compile_options){ .backend = "interpreter" });
        assert_non_null(e);
        assert_true(td_execute(e, &data, 1, &out));
        expect_equal(eager, out);
    }
}

static void no_damaged_text_crashes_the_reader(void **state)
{
    net n = new_net();
    static char good[40000], bad[40000];
    step(&n, batch(), labels());
    strcpy(good, print(traced(&n)));
    const size_t length = strlen(good);
    uint32_t random = 1;
    for (int k = 0; k < 300; k++) {
        strcpy(bad, good);
        for (int c = 0; c < 3; c++) {
            random = random * 1664525u + 1013904223u;
            bad[random % length] = (char)(' ' + (random >> 16) % 95);
        }
        bad[random % 3 == 0 ? (random >> 8) % length : length] = '\0';
        td_scope_begin();
        td_program_parse(bad);
        td_error_clear();
        td_scope_end();
    }
}

static void every_beginning_of_a_text_is_read_or_refused(void **state)
{
    net n = new_net();
    static char text[40000];
    step(&n, batch(), labels());
    strcpy(text, print(traced(&n)));
    for (size_t k = strlen(text); k > 0; k -= k > 7 ? 7 : k) {
        text[k] = '\0';
        td_scope_begin();
        td_program *p = td_program_parse(text);
        assert_true((p == NULL) == td_failed());
        td_error_clear();
        td_scope_end();
    }
}

/* While a trace looks on, eager rules run as operators, like the replay. */
static void a_replayed_step_has_the_bits_of_a_watched_one(void **state)
{
    td_tensor *x = batch(), *t = labels();
    net a = new_net(), b = new_net();
    step(&a, x, t);
    step(&b, x, t);
    td_program *p = traced(&b);
    for (int k = 0; k < 20; k++) {
        td_tensor *loss = NULL;
        td_trace_begin(false);
        td_tensor *eager = step(&a, x, t);
        assert_non_null(td_trace_end(&eager, 1));
        assert_true(td_program_run(p, (td_tensor *[]){ x, t }, 2, &loss));
        expect_equal(eager, loss);
    }
    for (int i = 0; i < 5; i++)
        expect_equal(a.w[i], b.w[i]);
}

static void an_executable_runs_inside_a_trace(void **state)
{
    td_tensor *data = td_full(TD_DIMS(4), td_float(0.5), none), *a, *b;
    td_trace_begin(true);
    td_tensor *x = td_trace_input(TD_DIMS(4), TD_FLOAT32, cpu), *y = td_exp(td_neg(x)), *z;
    td_executable *e = td_compile(td_trace_end(&y, 1), (td_compile_options)TD_DEFAULTS);
    assert_non_null(e);
    td_trace_begin(true);
    x = td_trace_input(TD_DIMS(4), TD_FLOAT32, cpu);
    assert_true(td_execute(e, &x, 1, &y));
    z = td_sin(y);
    td_program *p = td_trace_end(&z, 1);
    assert_int_equal(td_program_steps(p), 3);
    assert_true(td_program_run(p, &data, 1, &a));
    b = td_sin(td_exp(td_neg(data)));
    expect_equal(a, b);
}

static void a_value_is_known_by_what_it_sees(void **state)
{
    td_trace_begin(false);
    td_tensor *x = td_ones(TD_DIMS(2, 3), none);
    td_tensor *y = td_relu(td_detach(td_t(td_t(x))));
    td_program *p = td_trace_end(&y, 1);
    assert_non_null(strstr(print(p), "relu(%0)"));
}

static void a_view_changed_behind_is_refused(void **state)
{
    td_tensor *x = td_ones(TD_DIMS(2, 3), none);
    td_trace_begin(false);
    td_tensor *y = td_relu(x);
    td_add_scalar_(td_select(y, 0, 1), td_int(1));
    assert_null(td_exp(y));
    expect_error(TD_ERROR_UNSUPPORTED, "exp: a tensor was changed in place through another view");
    assert_non_null(td_trace_end(&x, 1));
}

static void what_has_no_value_is_not_read(void **state)
{
    td_trace_begin(true);
    td_tensor *x = td_trace_input(TD_DIMS(1), TD_FLOAT32, cpu);
    td_tensor *y = td_exp(x);
    td_item(y);
    expect_error(TD_ERROR_RUNTIME, "has no value: it was made while tracing");
    assert_null(td_randn(TD_DIMS(2), none));
    expect_error(TD_ERROR_UNSUPPORTED, "random numbers cannot be traced");
    td_program *p = td_trace_end(&y, 1);
    assert_non_null(p);
    assert_null(td_exp(y));
    expect_error(TD_ERROR_RUNTIME, "has no value");
    td_trace_begin(false);
    assert_null(td_relu(y));
    td_error_clear();
    td_trace_end(NULL, 0);
}

/* Both compute at once, or where they were asked to, when nobody writes them down. */
static void a_trace_that_computes_has_all_parts(void **state)
{
    const td_dims five = TD_DIMS(5);
    const td_value row[] = { td_v_ints(&five), td_v_float(0.1) };
    td_no_grad_begin();
    td_tensor *x = td_randn(TD_DIMS(400, 5), none), *w = td_randn(five, none), *b = td_randn(five, none), *got[2];
    const td_value norm[] = { td_v_tensor(x), td_v_tensor(w), td_v_tensor(b) };
    td_trace_begin(false);
    td_tensor *y = td_exp(x);
    const td_value changed = td_v_tensor(y);
    td_run1(td_op_find("silu_"), 1, &changed, 0, NULL);
    td_tensor *made[] = { td_neg(y), td_run1(td_op_find("layer_norm"), 3, norm, 2, row) };
    td_program *p = td_trace_end(made, 2);
    td_copy_(x, td_randn(TD_DIMS(400, 5), none));
    assert_true(td_program_run(p, NULL, 0, got));
    y = td_exp(x);
    expect_close(got[0], td_neg(td_div(y, td_add_scalar(td_exp(td_neg(y)), td_int(1)))), 1e-5);
    expect_close(got[1], td_run1(td_op_find("layer_norm"), 3, norm, 2, row), 1e-5);
    td_no_grad_end();
}

static void inputs_must_be_as_traced(void **state)
{
    td_trace_begin(true);
    td_tensor *x = td_trace_input(TD_DIMS(2, 3), TD_FLOAT32, cpu), *y = td_exp(x), *out;
    td_program *p = td_trace_end(&y, 1);
    td_tensor *other = td_ones(TD_DIMS(3, 2), none);
    assert_false(td_program_run(p, &other, 1, &out));
    expect_error(TD_ERROR_VALUE, "input 0 is float32[3, 2], the program was traced with float32[2, 3]");
    assert_false(td_program_run(p, NULL, 0, &out));
    expect_error(TD_ERROR_VALUE, "input 0 is missing");
    assert_null(td_compile(p, (td_compile_options){ .backend = "abacus" }));
    expect_error(TD_ERROR_VALUE, "there is no back end 'abacus'");
}

static void traces_nest_and_the_outer_goes_on(void **state)
{
    td_tensor *x = td_ones(TD_DIMS(2), none);
    td_trace_begin(false);
    td_tensor *y = td_exp(x);
    td_trace_begin(true);
    td_tensor *a = td_trace_input(TD_DIMS(2), TD_FLOAT32, cpu), *b = td_sin(a);
    td_program *inner = td_trace_end(&b, 1);
    y = td_cos(y);
    td_program *outer = td_trace_end(&y, 1);
    assert_int_equal(td_program_steps(inner), 1);
    assert_int_equal(td_program_steps(outer), 2);
    assert_null(td_trace_end(NULL, 0));
    expect_error(TD_ERROR_RUNTIME, "no trace is open");
}

static void second_derivatives_can_be_traced(void **state)
{
    td_tensor *w = td_full(TD_DIMS(3), td_float(0.3), (td_tensor_options){ .dtype = TD_FLOAT64, .requires_grad = true });
    td_tensor *results[2];
    for (int k = 0; k < 2; k++) {
        td_tensor *g, *gg, *out;
        if (k == 1)
            td_trace_begin(true);
        td_tensor *y = td_sum(td_exp(td_tanh(w)), (td_reduce_options)TD_DEFAULTS);
        td_grad(&y, 1, &w, 1, &g, (td_grad_options){ .create_graph = true });
        g = td_sum(g, (td_reduce_options)TD_DEFAULTS);
        td_grad(&g, 1, &w, 1, &gg, (td_grad_options)TD_DEFAULTS);
        results[k] = gg;
        if (k == 1) {
            td_program *p = td_trace_end(&gg, 1);
            assert_true(td_program_run(p, NULL, 0, &out));
            results[k] = out;
        }
    }
    expect_close(results[1], results[0], 1e-12);
}

static void results_share_no_memory(void **state)
{
    td_program *p = td_program_parse("input %0 : float32[2, 3]\n%1 = exp(%0) : float32[2, 3]\n"
                                     "%2 = t(%1) : float32[3, 2]\nreturn %1, %1, %2, %0\n");
    td_tensor *x = td_ones(TD_DIMS(2, 3), none), *out[4];
    assert_true(td_program_run(p, &x, 1, out));
    for (int i = 0; i < 4; i++) {
        assert_ptr_not_equal(td_data(out[i]), td_data(x));
        for (int j = 0; j < i; j++)
            assert_ptr_not_equal(td_data(out[i]), td_data(out[j]));
    }
    assert_non_null(td_fill_(out[0], td_float(7)));
    expect_close(out[1], td_exp(x), 0);
}

static bool trace_and_run(void *context)
{
    net n = new_net();
    td_tensor *x = batch(), *t = labels(), *loss = NULL;
    step(&n, x, t);
    td_program *p = traced(&n);
    char *text = printed;
    if (p != NULL)
        td_program_print(p, text, sizeof printed);
    return p != NULL && td_program_parse(text) != NULL
        && td_program_run(p, (td_tensor *[]){ x, t }, 2, &loss);
}

static void every_allocation_may_fail(void **state)
{
    assert_in_range(fail_each_allocation(trace_and_run, NULL), 100, 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_replayed_step_is_the_eager_step),
        CASE(a_symbolic_trace_leaves_weights_and_gradients_alone),
        CASE(printing_and_reading_is_a_round_trip),
        CASE(scalars_and_lists_survive_the_round_trip),
        CASE(a_third_survives_the_round_trip),
        CASE(a_run_that_fails_changes_nothing),
        CASE(malformed_texts_are_refused_by_line),
        CASE(numbers_at_their_ends_survive_the_round_trip),
        CASE(every_program_prints_and_reads_to_itself),
        CASE(a_thousand_tensors_are_joined),
        CASE(no_damaged_text_crashes_the_reader),
        CASE(every_beginning_of_a_text_is_read_or_refused),
        CASE(a_replayed_step_has_the_bits_of_a_watched_one),
        CASE(an_executable_runs_inside_a_trace),
        CASE(a_value_is_known_by_what_it_sees),
        CASE(a_view_changed_behind_is_refused),
        CASE(what_has_no_value_is_not_read),
        CASE(inputs_must_be_as_traced),
        CASE(traces_nest_and_the_outer_goes_on),
        CASE(second_derivatives_can_be_traced),
        CASE(results_share_no_memory),
        CASE(a_trace_that_computes_has_all_parts),
        CASE(every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("tracing", tests, NULL, NULL);
}
