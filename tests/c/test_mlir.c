/* needs: tools networks */
/* The MLIR back end: the programs of the C back end, against the interpreter;
   tools that are missing, fail or hang. */
#include "treadle_test.h"
#include <sys/stat.h>

static const td_device cpu = { TD_DEVICE_CPU, 0 };
static const char *backend = "mlir";    /* or "mlir-loops" */
static char cache[64];

typedef td_tensor *function(td_tensor *const *in);

/* Compiles and runs f on the inputs with `backend` and compares with eager
   results, within `tolerance` of the larger of 1 and the number. */
static void expect_same(function *f, td_tensor *const *in, int n,
                        double tolerance)
{
    td_tensor *symbol[4], *got = NULL, *want = f(in);
    assert_true(td_trace_begin(true));
    for (int i = 0; i < n; i++)
        symbol[i] = td_trace_input(td_shape_of(in[i]), in[i]->dtype, cpu);
    td_tensor *y = f(symbol);
    td_program *p = td_trace_end(&y, 1);
    td_executable *e = td_compile(p, (td_compile_options){
        .backend = backend });
    if (e == NULL)
        print_message("%s\n", td_error_message());
    assert_non_null(e);
    assert_string_equal(td_executable_backend(e), backend);
    for (int run = 0; run < 2; run++) {
        assert_true(td_execute(e, in, n, &got));
        assert_int_equal(got->dtype, want->dtype);
        assert_int_equal(td_numel(got), td_numel(want));
        td_tensor *a = td_reshape(td_to(got, TD_FLOAT64), TD_DIMS(-1));
        td_tensor *b = td_reshape(td_to(want, TD_FLOAT64), TD_DIMS(-1));
        const double *x = td_data(td_contiguous(a));
        const double *z = td_data(td_contiguous(b));
        for (int64_t i = 0; i < td_numel(want); i++)
            if (!(x[i] == z[i] || (isnan(x[i]) && isnan(z[i]))
                  || fabs(x[i] - z[i])
                     <= tolerance * fmax(1, fabs(z[i]))))
                fail_msg("element %d: %.9g, not %.9g", (int)i, x[i], z[i]);
        td_release(got);
    }
    td_release(e);
}

static td_tensor *normal(td_dims shape, td_dtype dtype)
{
    return td_to(td_randn(shape, (td_tensor_options){ 0 }), dtype);
}

/* ---- rows ------------------------------------------------------------- */

static td_tensor *smooth(td_tensor *const *in)
{
    td_tensor *x = in[0], *y = td_tanh(td_mul(td_exp(td_neg(x)), x));
    y = td_add(y, td_sigmoid(td_sub(x, td_sin(x))));
    y = td_div(y, td_add_scalar(td_square(td_cos(x)), td_float(1.5)));
    return td_add(y, td_log(td_add_scalar(td_abs(x), td_float(0.1))));
}

static td_tensor *kinked(td_tensor *const *in)
{
    td_tensor *x = in[0];
    td_tensor *y = td_maximum(td_relu(x), td_mul_scalar(x, td_float(-2)));
    y = td_minimum(y, td_sqrt(td_abs(x)));
    y = td_add(y, td_sign(x));
    return td_where(td_isnan(x), td_mul_scalar(y, td_float(0)), y);
}

static td_tensor *truth(td_tensor *const *in)
{
    return td_logical_not(td_eq(td_ge(in[0], in[1]), td_lt_scalar(in[0],
                                                    td_float(0.5))));
}

static td_tensor *whole(td_tensor *const *in)
{
    return td_to(td_le(in[0], in[1]), TD_FLOAT32);
}

static void rows_agree_with_the_interpreter(void **state)
{
    const int64_t sizes[] = { 1, 10, 16, 37, 1000 };
    for (int k = 0; k < 5; k++)
        for (int big = 0; big < 2; big++) {
            const td_dtype t = big ? TD_FLOAT64 : TD_FLOAT32;
            td_tensor *in[] = { normal(TD_DIMS(sizes[k]), t),
                                normal(TD_DIMS(sizes[k]), t) };
            expect_same(smooth, in, 1, big ? 1e-12 : 3e-6);
            expect_same(kinked, in, 1, big ? 1e-15 : 1e-6);
            expect_same(truth, in, 2, 0);
        }
}

static void comparisons_know_signs_and_nan(void **state)
{
    td_tensor *bytes[] = {
        td_randint(0, 256, TD_DIMS(61), (td_tensor_options){
            .dtype = TD_UINT8 }),
        td_randint(0, 256, TD_DIMS(61), (td_tensor_options){
            .dtype = TD_UINT8 }) };
    td_tensor *longs[] = {
        td_randint(-9, 9, TD_DIMS(61), (td_tensor_options){
            .dtype = TD_INT64 }),
        td_randint(-9, 9, TD_DIMS(61), (td_tensor_options){
            .dtype = TD_INT64 }) };
    expect_same(whole, bytes, 2, 0);
    expect_same(whole, longs, 2, 0);
    td_tensor *odd = normal(TD_DIMS(21), TD_FLOAT32);
    ((float *)td_data(odd))[3] = NAN;
    ((float *)td_data(odd))[17] = INFINITY;
    ((float *)td_data(odd))[20] = -INFINITY;
    td_tensor *in[] = { odd, td_clone(odd) };
    expect_same(kinked, in, 1, 1e-6);
    expect_same(truth, in, 2, 0);
}

/* ---- layouts ------------------------------------------------------------- */

static td_tensor *spread_out(td_tensor *const *in)
{
    return td_add(td_mul(in[0], in[1]), td_t(in[2]));
}

static td_tensor *counted(td_tensor *const *in)
{
    td_tensor *n = td_arange(td_int(3), td_int(3 + 2 * 19), td_int(2),
                             (td_tensor_options){ 0 });
    return td_to(td_eq(in[0], n), TD_FLOAT32);
}

static void broadcasts_and_strides_are_indices(void **state)
{
    td_tensor *in[] = { normal(TD_DIMS(7, 37), TD_FLOAT32),
                        normal(TD_DIMS(7, 1), TD_FLOAT32),
                        normal(TD_DIMS(37, 7), TD_FLOAT32) };
    expect_same(spread_out, in, 3, 1e-6);
    td_tensor *labels = td_randint(0, 41, TD_DIMS(11, 1),
        (td_tensor_options){ .dtype = TD_INT64 });
    expect_same(counted, &labels, 1, 0);
}

/* ---- folds --------------------------------------------------------------- */

static int fold_op;
static int64_t fold_dim;

static td_tensor *folded(td_tensor *const *in)
{
    const td_reduce_options over = {
        .dims = { fold_dim < 9, { fold_dim } } };
    td_tensor *x = td_square(in[0]);
    return fold_op == 0 ? td_sum(x, over)
        : fold_op == 1 ? td_amax(x, over) : td_amin(x, over);
}

static void folds_agree_over_every_axis(void **state)
{
    const int64_t widths[] = { 1, 5, 16, 35 };
    for (int k = 0; k < 4; k++)
        for (fold_op = 0; fold_op < 3; fold_op++)
            for (fold_dim = 0; fold_dim < 10; fold_dim += fold_dim < 2
                 ? 1 : 7) {
                td_tensor *x = normal(TD_DIMS(3, 7, widths[k]),
                                      k % 2 ? TD_FLOAT64 : TD_FLOAT32);
                expect_same(folded, &x, 1, 1e-6);
            }
    fold_op = 1;
    fold_dim = 2;
    td_tensor *x = normal(TD_DIMS(2, 3, 20), TD_FLOAT32);
    ((float *)td_data(x))[18] = NAN;
    expect_same(folded, &x, 1, 1e-6);
}

/* A chain of 60,000 additions would be wrong by 1e-4. */
static void long_sums_are_as_exact_as_eager_ones(void **state)
{
    const td_dims shapes[] = { TD_DIMS(1000003), TD_DIMS(262147, 3),
                               TD_DIMS(3, 262147) };
    for (int k = 0; k < 3; k++)
        for (int columns = 0; columns < (k > 0 ? 2 : 1); columns++) {
            td_tensor *x = td_full(shapes[k], td_float(0.3),
                                   (td_tensor_options){ 0 });
            fold_op = 0;
            fold_dim = columns;
            expect_same(folded, &x, 1, 1e-6);
        }
}

/* ---- products ------------------------------------------------------------ */

static td_tensor *multiplied(td_tensor *const *in)
{
    td_tensor *y = td_relu(td_add(td_matmul(in[0], td_t(in[1])), in[2]));
    return td_matmul(td_t(y), in[0]);
}

static void products_agree(void **state)
{
    const int64_t sizes[][3] = { { 1, 1, 1 }, { 6, 16, 5 }, { 13, 37, 29 },
                                 { 17, 10, 33 }, { 64, 49, 100 } };
    for (int k = 0; k < 5; k++) {
        const int64_t m = sizes[k][0], n = sizes[k][1], d = sizes[k][2];
        for (int big = 0; big < 2; big++) {
            const td_dtype t = big ? TD_FLOAT64 : TD_FLOAT32;
            td_tensor *in[] = { normal(TD_DIMS(m, d), t),
                                normal(TD_DIMS(n, d), t),
                                normal(TD_DIMS(n), t) };
            expect_same(multiplied, in, 3, big ? 1e-12 : 2e-5);
        }
    }
}

static void products_of_any_layout_agree(void **state)
{
    products_agree(state);
    backend = "mlir-loops";
    products_agree(state);
    backend = "mlir";
}

/* ---- a training step ------------------------------------------------------ */

static td_tensor *soft(td_tensor *const *in)
{
    const td_reduce_options row = { .dims = TD_DIMS(1), .keepdim = true };
    td_tensor *z = td_sub(in[0], td_amax(in[0], row));
    return td_mul(td_sub(z, td_log(td_sum(td_exp(z), row))),
                  td_log_softmax(in[0], 1));
}

static void a_softmax_agrees(void **state)
{
    td_tensor *x = normal(TD_DIMS(5, 10), TD_FLOAT32);
    expect_same(soft, &x, 1, 1e-5);
}

typedef struct {
    td_module *net;
    td_optimiser *sgd;
} learner;

static learner new_learner(void)
{
    learner l;
    td_tensor *parameters[4];
    td_manual_seed(3);
    l.net = td_sequential((td_module *[]){ td_linear_module(20, 33,
            (td_linear_options)TD_DEFAULTS),
        td_relu_module(), td_linear_module(33, 10,
            (td_linear_options)TD_DEFAULTS) }, 3);
    td_parameters(l.net, parameters, 4);
    l.sgd = td_sgd(parameters, 4, 0.05, (td_sgd_options){
        .momentum = 0.9, .weight_decay = 1e-3 });
    return l;
}

static td_tensor *learn(const learner *l, td_tensor *const *in)
{
    td_zero_grad(l->sgd);
    td_tensor *loss = td_cross_entropy(td_forward(l->net, in[0]), in[1],
        (td_cross_entropy_options)TD_DEFAULTS);
    td_backward(loss, (td_backward_options)TD_DEFAULTS);
    td_step(l->sgd);
    return loss;
}

static td_executable *compile_step(const learner *l, td_tensor *const *in,
                                   const char *name)
{
    td_tensor *symbol[2];
    assert_true(td_trace_begin(true));
    for (int i = 0; i < 2; i++)
        symbol[i] = td_trace_input(td_shape_of(in[i]), in[i]->dtype, cpu);
    td_tensor *loss = learn(l, symbol);
    td_program *p = td_trace_end(&loss, 1);
    assert_non_null(p);
    return td_compile(p, (td_compile_options){ .backend = name });
}

static void twenty_steps_follow(const char *name)
{
    const learner eager = new_learner(), compiled = new_learner();
    td_tensor *in[] = { normal(TD_DIMS(29, 20), TD_FLOAT32),
        td_randint(0, 10, TD_DIMS(29), (td_tensor_options){
            .dtype = TD_INT64 }) };
    learn(&eager, in);
    learn(&compiled, in);
    td_executable *e = compile_step(&compiled, in, name);
    if (e == NULL)
        print_message("%s\n", td_error_message());
    assert_non_null(e);
    for (int step = 0; step < 20; step++) {
        td_tensor *got = NULL;
        td_scope_begin();
        const double want = td_item_double(learn(&eager, in));
        assert_true(td_execute(e, in, 2, &got));
        assert_true(fabs(td_item_double(got) - want) <= 2e-5 * want);
        td_release(got);
        td_scope_end();
    }
    ((int64_t *)td_data(in[1]))[5] = 10;
    td_tensor *got = NULL;
    assert_false(td_execute(e, in, 2, &got));
    expect_error(TD_ERROR_INDEX, "10");
    td_release(e);
}

static void twenty_training_steps_follow_the_eager_ones(void **state)
{
    twenty_steps_follow("mlir");
    twenty_steps_follow("mlir-loops");
}

/* ---- tools --------------------------------------------------------------- */

/* A directory with the four tools, of which one is replaced by a script. */
static void refuse_with(const char *tool, const char *script,
                        td_error_code code, const char *words)
{
    static const char *const tools[] = { "mlir-opt", "mlir-translate",
                                         "opt", "llc" };
    char folder[] = "/tmp/treadle-mlir-XXXXXX", path[96];
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 4; i++) {
        const bool bad = strcmp(tools[i], tool) == 0;
        snprintf(path, sizeof path, "%s/%s", folder, tools[i]);
        if (bad && script == NULL)
            continue;
        FILE *file = fopen(path, "w");
        fprintf(file, "#!/bin/sh\n%s\n", bad ? script : "exit 0");
        fclose(file);
        chmod(path, 0700);
    }
    setenv("TREADLE_MLIR_BIN", folder, 1);
    setenv("TREADLE_CC_SECONDS", "1", 1);
    td_tensor *x;
    assert_true(td_trace_begin(true));
    x = td_exp(td_trace_input(TD_DIMS(23), TD_FLOAT32, cpu));
    td_program *p = td_trace_end(&x, 1);
    assert_null(td_compile(p, (td_compile_options){ .backend = "mlir" }));
    expect_error(code, words);
    unsetenv("TREADLE_MLIR_BIN");
    unsetenv("TREADLE_CC_SECONDS");
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, tools[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void missing_failing_and_hanging_tools_are_errors(void **state)
{
    refuse_with("mlir-opt", NULL, TD_ERROR_UNSUPPORTED, "mlir-opt");
    refuse_with("llc", NULL, TD_ERROR_UNSUPPORTED, "llc-15");
    refuse_with("mlir-opt", "echo not my dialect; exit 3",
                TD_ERROR_RUNTIME, "not my dialect");
    refuse_with("opt", "exit 1", TD_ERROR_RUNTIME, "failed");
    refuse_with("mlir-translate", "exec sleep 9", TD_ERROR_RUNTIME,
                "did not finish in 1 second");
    refuse_with("none", "", TD_ERROR_RUNTIME, "failed");
}

static void what_the_dialects_have_no_word_for_is_named(void **state)
{
    static const char *const ops[] = { "tan", "round", "hypot" };
    for (int i = 0; i < 3; i++) {
        assert_true(td_trace_begin(true));
        td_tensor *x = td_trace_input(TD_DIMS(23), TD_FLOAT32, cpu);
        td_tensor *y = i == 0 ? td_tan(x) : i == 1 ? td_round(x)
                     : td_hypot(x, x);
        td_program *p = td_trace_end(&y, 1);
        assert_null(td_compile(p, (td_compile_options){
            .backend = "mlir" }));
        char words[40];
        snprintf(words, sizeof words, "has no word for '%s'", ops[i]);
        expect_error(TD_ERROR_UNSUPPORTED, words);
    }
}

static td_tensor *soft_columns(td_tensor *const *in)
{
    return td_softmax(in[0], 0);
}

/* The table of functions that is linked with what the tools make. */
static void stages_have_the_type_they_are_called_through(void **state)
{
    char command[256];
    setenv("TREADLE_MLIR_KEEP", "1", 1);
    td_tensor *other = normal(TD_DIMS(47), TD_FLOAT32);
    expect_same(smooth, &other, 1, 1e-5);
    unsetenv("TREADLE_MLIR_KEEP");
    snprintf(command, sizeof command, "find %s -name '*.c' | xargs cat | tr "
             "-s ' \\n' ' ' | grep -q '_0(void \\*context, int64_t begin, "
             "int64_t end, int worker)'", cache);
    assert_int_equal(system(command), 0);
}

static void a_softmax_of_nothing_agrees(void **state)
{
    td_tensor *none = normal(TD_DIMS(0, 3), TD_FLOAT32);
    expect_same(soft_columns, &none, 1, 0);
}

static bool have_tools(void)
{
    td_tensor *x;
    td_scope_begin();
    td_trace_begin(true);
    x = td_exp(td_trace_input(TD_DIMS(3), TD_FLOAT32, cpu));
    td_program *p = td_trace_end(&x, 1);
    td_executable *e = td_compile(p, (td_compile_options){
        .backend = "mlir" });
    const bool missing = td_error() == TD_ERROR_UNSUPPORTED;
    if (missing)
        printf("skipped: %s\n", td_error_message());
    td_error_clear();
    td_release(e);
    td_scope_end();
    return !missing;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(rows_agree_with_the_interpreter),
        CASE(comparisons_know_signs_and_nan),
        CASE(broadcasts_and_strides_are_indices),
        CASE(folds_agree_over_every_axis),
        CASE(long_sums_are_as_exact_as_eager_ones),
        CASE(products_of_any_layout_agree),
        CASE(a_softmax_agrees),
        CASE(twenty_training_steps_follow_the_eager_ones),
        CASE(stages_have_the_type_they_are_called_through),
        CASE(a_softmax_of_nothing_agrees),
        CASE(what_the_dialects_have_no_word_for_is_named),
    };
    const struct CMUnitTest everywhere[] = {
        CASE(missing_failing_and_hanging_tools_are_errors),
    };
    snprintf(cache, sizeof cache, "/tmp/treadle-cache-XXXXXX");
    if (mkdtemp(cache) == NULL)
        return 1;
    setenv("TREADLE_CACHE", cache, 1);
    int failed = cmocka_run_group_tests(everywhere, NULL, NULL);
    if (have_tools())
        failed += cmocka_run_group_tests(tests, NULL, NULL);
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", cache);
    return system(command) != 0 ? 1 : failed;
}
