/* needs: codegen networks */
/* The C back end: programs compiled and interpreted agree; what goes wrong
   with the compiler or its cache has words and leaves nothing behind.

   A program is a function that builds outputs from inputs.  `agree` traces
   it, interprets it, compiles it, runs it twice, and compares.  Values may
   differ by 1e-5 of their size (and of 1): compiled code contracts products
   and sums, and folds in another order. */
#include "treadle_test.h"
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>

#define PROGRAM_VALUES 120

typedef void builder(td_tensor **in, td_tensor **out);

static const td_compile_options with_c = { .backend = "c" };
static char cache[100];

static td_program *trace(builder *build, td_tensor **in, int n, int n_out)
{
    td_tensor *x[PROGRAM_VALUES], *y[PROGRAM_VALUES] = { NULL };
    assert_true(td_trace_begin(true));
    for (int i = 0; i < n; i++)
        x[i] = td_trace_input(td_shape_of(in[i]), td_dtype_of(in[i]),
                              td_device_of(in[i]));
    build(x, y);
    td_program *p = td_trace_end(y, n_out);
    if (p == NULL)
        fail_msg("%s", td_error_message());
    return p;
}

static void expect_alike(td_tensor *got, td_tensor *expected, int which)
{
    comparison c = { 0 };
    const td_dims a = td_shape_of(got), b = td_shape_of(expected);
    if (td_dtype_of(got) != td_dtype_of(expected) || !td_dims_equal(&a, &b))
        fail_msg("output %d has another type", which);
    for (int64_t i = 0; i < td_numel(got); i++) {
        const double e = at(expected, i);
        compare(&c, at(got, i), e, 1e-5 * (1 + fabs(e)));
    }
    expect_right(c, "output %d", which);
}

static td_executable *compiled(td_program *p)
{
    td_executable *e = td_compile(p, with_c);
    if (e == NULL)
        fail_msg("%s", td_error_message());
    assert_string_equal(td_executable_backend(e), "c");
    return e;
}

static void agree(builder *build, td_tensor **in, int n, int n_out)
{
    td_tensor *expected[PROGRAM_VALUES], *got[PROGRAM_VALUES];
    td_program *p = trace(build, in, n, n_out);
    if (!td_program_run(p, in, n, expected))
        fail_msg("interpreter: %s", td_error_message());
    td_executable *e = compiled(p);
    for (int run = 0; run < 2; run++) {
        if (!td_execute(e, in, n, got))
            fail_msg("%s", td_error_message());
        for (int k = 0; k < n_out; k++)
            expect_alike(got[k], expected[k], k);
    }
}

static void write_file(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    chmod(path, mode);
}

/* A sanitizer watches us, not what the compiler made: there nothing is optimised, which takes a seventh of the time.
   The plain run optimises a program of nearly each kind as users do, and all of them if TREADLE_LONG is set. */
static void optimise(bool wanted)
{
#ifdef __SANITIZE_ADDRESS__
    wanted = false;
#else
    wanted = wanted || getenv("TREADLE_LONG") != NULL;
#endif
    char path[120];
    snprintf(path, sizeof path, "%s/plainly", cache);
    if (wanted)
        unsetenv("TREADLE_CC");
    else
        setenv("TREADLE_CC", path, 1);
}

/* ---- elementwise -------------------------------------------------------- */

static td_tensor *call(const char *name, td_tensor *a, td_tensor *b)
{
    const td_value in[] = { { .kind = TD_TENSOR, .as.tensor = a },
                            { .kind = TD_TENSOR, .as.tensor = b } };
    td_call c = { .op = td_op_find(name), .n_in = b ? 2 : 1, .in = in };
    return td_run(&c) ? c.out[0] : NULL;
}

static int every_row(td_tensor **in, td_tensor **out)
{
    int n = 0;
#define ROW(name, formula, sentence, operands, dtypes, flags) \
    if (strcmp(#dtypes, "WHOLE") != 0) \
        out[n++] = call(#name, in[0], operands == 2 ? in[1] : NULL);
#include "ops/elementwise.inc"
    return n;
}

static void rows(td_tensor **in, td_tensor **out)
{
    every_row(in, out);
}

static void check_rows(td_dtype dtype, double low, layout how)
{
    const td_dims shape = TD_DIMS(5, 7);
    td_tensor *in[] = { random_tensor(shape, dtype, how, low, 3),
                        random_tensor(shape, dtype, PLAIN, low, 3) };
    td_tensor *out[PROGRAM_VALUES];
    const int n = every_row(in, out);
    assert_false(td_failed());
    assert_in_range(n, 20, PROGRAM_VALUES);
    agree(rows, in, 2, n);
}

static void every_row_is_compiled(void **state)
{
    check_rows(TD_FLOAT32, -2, PLAIN);
    optimise(false);
    check_rows(TD_FLOAT64, -2, SLICED);
    check_rows(TD_FLOAT32, 0.1, TURNED);
    optimise(true);
}

static void whole(td_tensor **in, td_tensor **out)
{
    out[0] = td_add(in[0], in[1]);
    out[1] = td_eq(in[0], in[1]);
    out[2] = td_gt_scalar(in[0], td_int(2));
    out[3] = td_to(in[0], TD_FLOAT32);
    out[4] = td_where(out[2], in[0], in[1]);
    out[5] = td_where(out[1], out[3], td_neg(out[3]));
    out[6] = td_where_scalar(out[2], out[3], td_float(-1));
    out[7] = td_to(in[0], TD_BOOL);
    out[8] = td_logical_not(out[7]);
    out[9] = td_to(out[7], TD_FLOAT64);
    out[10] = td_to(out[9], TD_INT64);
    out[11] = td_clone(in[0]);
    out[12] = td_sum(in[0], TD_REDUCE_DEFAULTS);
    out[13] = td_mul(out[3], out[9]);
    out[14] = td_div(in[0], td_add_scalar(in[1], td_int(7)));
    out[15] = td_lt_scalar(in[0], td_float(1.5));
}

static void whole_numbers_and_truths_are_compiled(void **state)
{
    const td_dtype types[] = { TD_INT64, TD_INT32, TD_UINT8, TD_BOOL };
    for (int t = 0; t < 4; t++) {
        optimise(t == 0);
        td_tensor *in[] = {
            random_tensor(TD_DIMS(3, 5), types[t], TURNED, 0, 5),
            random_tensor(TD_DIMS(3, 5), types[t], PLAIN, 0, 5)
        };
        agree(whole, in, 2, 16);
    }
    optimise(true);
}

/* a [2, 3, 5]; b [3, 1]; c [5]; d []; e [2, 1, 5] */
static void broadcasts(td_tensor **in, td_tensor **out)
{
    int n = 0;
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 5; k++)
            out[n++] = td_mul(td_exp(in[i]), td_sub(in[k], in[i]));
    out[n++] = td_exp(td_expand(in[1], TD_DIMS(2, 3, 5)));
    out[n++] = td_add(td_permute(in[0], TD_DIMS(2, 0, 1)), in[3]);
    out[n++] = td_relu(td_select(in[0], 1, 2));
    out[n++] = td_neg(td_slice(in[0], 2, (td_opt_i64)td_some(1),
                               (td_opt_i64)td_some(5), 2));
    out[n++] = td_add_scalar(td_reshape(td_exp(in[0]), TD_DIMS(6, 5)),
                             td_float(2));
    out[n++] = td_mul(td_unsqueeze(in[2], 1), in[2]);
}

static void broadcasts_and_views_are_compiled(void **state)
{
    for (layout how = PLAIN; how < LAYOUTS; how++) {
        td_tensor *in[] = {
            random_tensor(TD_DIMS(2, 3, 5), TD_FLOAT32, how, -1, 1),
            random_tensor(TD_DIMS(3, 1), TD_FLOAT32, how, -1, 1),
            random_tensor(TD_DIMS(5), TD_FLOAT32, how, -1, 1),
            random_tensor(TD_DIMS(0), TD_FLOAT32, PLAIN, -1, 1),
            random_tensor(TD_DIMS(2, 1, 5), TD_FLOAT32, how, -1, 1)
        };
        in[3] = td_full((td_dims){ 0 }, td_float(0.7), plain);
        agree(broadcasts, in, 5, 31);
    }
}

/* ---- folds -------------------------------------------------------------- */

/* The first three take in a formula that nobody else reads, which makes
   loops; what is stored is folded by the library. */
static void folds(td_tensor **in, td_tensor **out)
{
    int n = 0;
    const int rank = td_rank(in[0]);
    for (int mask = 0; mask < 1 << rank; mask++) {
        td_tensor *x = td_mul_scalar(in[0], td_float(0.5 + mask));
        td_reduce_options o = { .keepdim = mask % 2 };
        for (int d = 0; d < rank; d++)
            if (mask >> d & 1)
                o.dims.at[o.dims.count++] = d;
        out[n++] = td_sum(x, o);
        out[n++] = td_amax(td_sub_scalar(in[0], td_float(mask)), o);
        o.keepdim = !o.keepdim;
        out[n++] = td_amin(in[0], o);
        out[n++] = td_mean(td_exp(td_neg(x)), o);
    }
}

static void every_subset_of_axes_folds(void **state)
{
    static const int64_t sizes[][3] = {
        { 3, 5, 7 }, { 1, 15, 16 }, { 17, 1, 1 }, { 1, 1, 1 }
    };
    for (int s = 0; s < 4; s++) {
        optimise(false);
        td_tensor *in = random_tensor(
            TD_DIMS(sizes[s][0], sizes[s][1], sizes[s][2]), TD_FLOAT32,
            (layout)(s % 3), -1, 1);
        agree(folds, &in, 1, 32);
    }
    td_tensor *x = td_full((td_dims){ 0 }, td_float(0.7), wide);
    agree(folds, &x, 1, 4);
    optimise(true);
}

static void folds_of_every_length(void **state)
{
    static const int64_t sizes[] = { 1, 15, 16, 17, 1000 };
    for (int s = 0; s < 5; s++) {
        optimise(sizes[s] == 17);
        td_tensor *a = random_tensor(TD_DIMS(3, sizes[s]), TD_FLOAT32,
                                     PLAIN, -1, 1);
        agree(folds, &a, 1, 16);
        td_tensor *b = random_tensor(TD_DIMS(sizes[s], 3), TD_FLOAT64,
                                     TURNED, -1, 1);
        ((double *)td_at(b))[0] = s % 2 ? NAN : INFINITY;
        agree(folds, &b, 1, 16);
    }
    optimise(true);
}

static void counted(td_tensor **in, td_tensor **out)
{
    td_tensor *i = td_arange(td_int(3), td_int(24), td_int(3), plain);
    out[0] = i;
    out[1] = td_eq(td_unsqueeze(in[0], 1), i);
    out[2] = td_add(td_to(i, TD_FLOAT32), td_ones(TD_DIMS(2, 7), plain));
    out[3] = td_sum(td_to(i, TD_FLOAT32), TD_REDUCE_DEFAULTS);
    out[4] = td_transpose(td_view(i, TD_DIMS(7, 1)), 0, 1);
    out[5] = td_zeros(TD_DIMS(4), plain);
    out[6] = td_matmul(td_ones(TD_DIMS(2, 3), plain),
                       td_to(td_view(td_slice(i, 0, (td_opt_i64)td_some(1),
                           (td_opt_i64)td_some(4), 1), TD_DIMS(3, 1)),
                             TD_FLOAT32));
}

static void counting_and_constants_are_compiled(void **state)
{
    td_tensor *in = random_tensor(TD_DIMS(5), TD_INT64, PLAIN, 0, 24);
    agree(counted, &in, 1, 7);
}

/* A count that has a place of its own is computed into it, and may be read
   from there, counted anew, or both, by every kind of stage. */
static void stored_counts(td_tensor **in, td_tensor **out)
{
    td_tensor_options real = { .dtype = TD_FLOAT64 };
    td_tensor *down = td_arange(td_int(10), td_int(-4), td_int(-2), plain);
    td_tensor *x = td_view(td_arange(td_int(0), td_int(12), td_int(1), real),
                           TD_DIMS(3, 4));
    td_tensor *kept = td_arange(td_int(2), td_int(9), td_int(1), plain);
    out[0] = down;
    out[1] = td_add(down, down);
    out[2] = td_index_select(in[0], 0, kept);
    out[3] = td_mul(td_to(kept, TD_FLOAT64), td_to(down, TD_FLOAT64));
    out[4] = td_matmul(x, td_t(x));
    out[5] = td_sum(x, (td_reduce_options){ .dims = TD_DIMS(0) });
    out[6] = td_sum(x, (td_reduce_options){ .dims = TD_DIMS(1) });
    out[7] = td_arange(td_int(5), td_int(6), td_int(1), plain);
    out[8] = td_add(out[7], td_slice(kept, 0, (td_opt_i64)td_some(1),
                                     (td_opt_i64)td_some(6), 2));
    out[9] = td_add_scalar_(td_arange(td_int(0), td_int(5), td_int(1), real),
                            td_int(1));
}

static void a_stored_count_is_computed_once_and_read_often(void **state)
{
    td_tensor *in = random_tensor(TD_DIMS(11, 2), TD_FLOAT32, PLAIN, 0, 24);
    agree(stored_counts, &in, 1, 10);
}

/* ---- products, softmax, losses ------------------------------------------ */

static void products(td_tensor **in, td_tensor **out)
{
    out[0] = td_matmul(in[0], in[1]);
    out[1] = td_matmul(td_t(in[1]), td_t(in[0]));
    out[2] = td_relu(td_add(td_matmul(in[0], in[1]), in[2]));
    out[3] = td_matmul(td_exp(in[0]), td_t(in[0]));
    out[4] = td_linear(in[0], td_t(in[1]), in[2]);
    out[5] = td_sum(td_matmul(in[0], td_neg(in[1])), TD_REDUCE_DEFAULTS);
    out[6] = td_matmul(in[0], td_expand(in[3], TD_DIMS(7, 2)));
    out[7] = td_matmul(td_slice(in[0], 1, (td_opt_i64)td_some(1),
                                (td_opt_i64)td_some(7), 2),
                       td_slice(in[1], 0, (td_opt_i64)td_some(0),
                                (td_opt_i64)td_some(3), 1));
    out[8] = td_matmul(in[0], in[3]);
    out[9] = td_softmax(out[0], 1);
    out[10] = td_log_softmax(out[0], 0);
    out[11] = td_add(td_matmul(in[0], in[1]), td_matmul(in[0], in[1]));
    td_tensor *a = td_matmul(in[0], td_exp(in[1]));
    out[12] = td_mul(a, td_matmul(td_exp(in[0]), in[1]));
}

static void products_are_compiled(void **state)
{
    for (layout how = PLAIN; how < LAYOUTS; how++) {
        td_tensor *in[] = {
            random_tensor(TD_DIMS(5, 7), TD_FLOAT32, how, -1, 1),
            random_tensor(TD_DIMS(7, 3), TD_FLOAT32, how, -1, 1),
            random_tensor(TD_DIMS(3), TD_FLOAT32, how, -1, 1),
            random_tensor(TD_DIMS(7, 1), TD_FLOAT32, how, -1, 1)
        };
        agree(products, in, 4, 13);
    }
}

static td_loss_reduction reduction;
static td_tensor *weights;              /* captured; needs a gradient */

static void entropy(td_tensor **in, td_tensor **out)
{
    const td_cross_entropy_options o = { .reduction = reduction,
                                         .ignore_index = td_some(2) };
    td_set_grad(weights, NULL);
    td_tensor *loss = td_cross_entropy(td_matmul(in[0], weights), in[1], o);
    td_backward(td_sum(loss, TD_REDUCE_DEFAULTS),
                (td_backward_options){ 0 });
    out[0] = loss;
    out[1] = td_grad_of(weights);
}

static void losses_and_gradients_are_compiled(void **state)
{
    weights = random_tensor(TD_DIMS(3, 5), TD_FLOAT32, PLAIN, -1, 1);
    td_set_requires_grad(weights, true);
    for (int w = TD_LOSS_MEAN; w <= TD_LOSS_NONE; w++) {
        td_tensor *in[] = {
            random_tensor(TD_DIMS(7, 3), TD_FLOAT32, PLAIN, -1, 1),
            random_tensor(TD_DIMS(7), TD_INT64, PLAIN, 0, 5)
        };
        reduction = (td_loss_reduction)w;
        agree(entropy, in, 2, 2);
        td_tensor *out[2];
        td_executable *e = compiled(trace(entropy, in, 2, 2));
        ((int64_t *)td_at(in[1]))[3] = 5;
        refused(td_execute(e, in, 2, out), TD_ERROR_INDEX,
                "target 5 at position 3 is not one of 5 classes");
    }
}

/* ---- calls, outputs, updates -------------------------------------------- */

static void calls(td_tensor **in, td_tensor **out)
{
    td_tensor *x = td_exp(in[0]), *both[] = { x, in[0], td_neg(x) };
    td_tensor *joined = td_cat(both, 3, 1);
    out[0] = td_mul_scalar(joined, td_float(2));
    out[1] = td_argmax(joined, (td_arg_options){ .dim = td_some(1) });
    out[2] = td_index_select(td_relu(in[0]), 0, in[1]);
    out[3] = td_add_scalar(out[2], td_float(1));
    out[4] = td_max_dim(x, 1, false, &out[5]);
    out[6] = td_eq_scalar(out[1], td_int(1));
    out[7] = out[0];
    out[8] = in[0];
    out[9] = td_t(x);
    out[10] = td_t(in[0]);
    out[11] = x;
    out[12] = td_to(td_mul_scalar(in[0], td_float(9)), TD_INT64);
    out[13] = td_cat((td_tensor *[]){ in[2], in[2] }, 2, 0);
    out[14] = td_exp(in[2]);
    out[15] = td_sum(in[2], (td_reduce_options){ .dims = TD_DIMS(0) });
    out[16] = in[2];
    out[17] = td_matmul(td_t(in[2]), in[2]);
}

static void calls_views_and_empty_tensors_agree(void **state)
{
    for (layout how = PLAIN; how < LAYOUTS; how++) {
        td_tensor *in[] = {
            random_tensor(TD_DIMS(5, 3), TD_FLOAT32, how, -1, 1),
            random_tensor(TD_DIMS(7), TD_INT64, PLAIN, 0, 5),
            random_tensor(TD_DIMS(0, 3), TD_FLOAT32, PLAIN, -1, 1)
        };
        agree(calls, in, 3, 18);
    }
}

static td_tensor *kept[3];              /* captured by the programs below */

static void fresh_kept(void)
{
    draws = 5;
    for (int i = 0; i < 3; i++)
        kept[i] = random_tensor(TD_DIMS(5, 5), TD_FLOAT32,
                                i == 2 ? TURNED : PLAIN, -1, 1);
}

static void updates(td_tensor **in, td_tensor **out)
{
    out[0] = td_exp(kept[0]);            /* reads it before the update */
    td_mul_scalar_(kept[0], td_float(0.5));
    td_add_(kept[0], in[0]);
    td_sub_(kept[1], td_matmul(kept[0], td_t(kept[1])));
    out[1] = td_add(kept[0], kept[1]);
    td_add_(kept[2], td_t(kept[2]));
    td_add_scalar_(in[0], td_float(3));
    out[2] = td_sum(kept[2], (td_reduce_options){ .dims = TD_DIMS(1) });
}

static void run_updates(bool compile, layout how, td_tensor **result)
{
    td_tensor *out[3];
    fresh_kept();
    td_tensor *in = random_tensor(TD_DIMS(5, 5), TD_FLOAT32, how, -1, 1);
    td_program *p = trace(updates, &in, 1, 3);
    td_executable *e = compile ? compiled(p) : NULL;
    for (int run = 0; run < 3; run++)
        assert_true(compile ? td_execute(e, &in, 1, out)
                            : td_program_run(p, &in, 1, out));
    for (int i = 0; i < 3; i++)
        result[i] = kept[i];
    for (int i = 0; i < 3; i++)
        result[3 + i] = out[i];
    result[6] = in;
}

static void updates_are_those_of_the_interpreter(void **state)
{
    for (layout how = PLAIN; how <= SLICED; how++) {
        td_tensor *expected[7], *got[7];
        run_updates(false, how, expected);
        run_updates(true, how, got);
        for (int i = 0; i < 7; i++)
            expect_alike(got[i], expected[i], i);
    }
}

/* A weight is overwritten, and read once more by a formula that comes later. */
static void read_late(td_tensor **in, td_tensor **out)
{
    td_tensor *before = td_exp(kept[0]);
    td_sub_(kept[0], in[0]);
    out[0] = td_add(td_matmul(kept[0], in[0]), before);
}

/* The text runs on six numbers as it is interpreted; the plan writes over
   a value, or copies. */
static void check_changed(const char *steps, bool over)
{
    char text[600], plan[2000];
    td_tensor *in = random_tensor(TD_DIMS(6), TD_FLOAT32, PLAIN, -2, 2);
    td_tensor *expected[2], *got[2];
    snprintf(text, sizeof text, "input %%0 : float32[6]\n"
             "%%1 = zeros(size=[2, 3], dtype=float32) : float32[2, 3]\n%s",
             steps);
    td_program *p = td_program_parse(text);
    if (p == NULL || !td_program_run(p, &in, 1, expected))
        fail_msg("%s", td_error_message());
    td_executable *e = compiled(p);
    td_executable_print(e, plan, sizeof plan);
    if ((strstr(plan, "over %1") != NULL) != over)
        fail_msg("not as expected: %s", plan);
    for (int run = 0; run < 2; run++) {
        if (!td_execute(e, &in, 1, got))
            fail_msg("%s", td_error_message());
        for (int k = 0; k < td_program_outputs(p); k++)
            expect_alike(got[k], expected[k], k);
    }
}

#define IN_ROW "%2 = reshape(%1, shape=[6]) : float32[6]\n" \
               "%3 = add_(%2, %0) : float32[6]\n"

static void a_view_of_zeros_is_changed_where_it_lies(void **state)
{
    check_changed(IN_ROW "%4 = exp(%3) : float32[6]\nreturn %4\n", true);
    check_changed(IN_ROW "%4 = reshape(%3, shape=[3, 2]) : float32[3, 2]\n"
                  "%5 = mul(%4, 2.0) : float32[3, 2]\n"
                  "%6 = sum(%3, keepdim=False) : float32[]\n"
                  "return %5, %6\n", true);
    /* somebody else reads the zeros, they leave, or the result does */
    check_changed(IN_ROW "%4 = add(%1, 1.0) : float32[2, 3]\n"
                  "%5 = exp(%3) : float32[6]\nreturn %4, %5\n", false);
    check_changed(IN_ROW "%4 = exp(%3) : float32[6]\nreturn %4, %1\n", false);
    check_changed(IN_ROW "return %3\n", false);
    /* given twice; lying otherwise; a part */
    check_changed("%2 = reshape(%1, shape=[6]) : float32[6]\n"
                  "%3 = add_(%2, %2) : float32[6]\n"
                  "%4 = add(%3, %0) : float32[6]\nreturn %4\n", false);
    check_changed("%2 = transpose(%1, dim0=0, dim1=1) : float32[3, 2]\n"
                  "%3 = reshape(%0, shape=[3, 2]) : float32[3, 2]\n"
                  "%4 = add_(%2, %3) : float32[3, 2]\n"
                  "%5 = mul(%4, %3) : float32[3, 2]\nreturn %5\n", false);
    check_changed("%2 = select(%1, dim=0, index=1) : float32[3]\n"
                  "%3 = slice(%0, dim=0, start=1, end=4, step=1) : float32[3]\n"
                  "%4 = add_(%2, %3) : float32[3]\n"
                  "%5 = exp(%4) : float32[3]\nreturn %5\n", false);
}

static void an_old_weight_that_is_still_read_is_not_overwritten(void **state)
{
    td_tensor *out[2], *weight[2];
    for (int compile = 0; compile < 2; compile++) {
        fresh_kept();
        td_tensor *in = random_tensor(TD_DIMS(5, 5), TD_FLOAT32, PLAIN, -1, 1);
        td_program *p = trace(read_late, &in, 1, 1);
        assert_true(compile ? td_execute(compiled(p), &in, 1, &out[1])
                            : td_program_run(p, &in, 1, &out[0]));
        weight[compile] = kept[0];
    }
    expect_alike(out[1], out[0], 0);
    expect_alike(weight[1], weight[0], 1);
}

/* A step of the optimiser, on weights that are inputs of it too. */
static td_optimiser *sgd;

static void descend(td_tensor **in, td_tensor **out)
{
    td_set_grad(kept[0], NULL);
    td_tensor *loss = td_sum(td_mul(td_matmul(in[0], kept[0]), in[0]),
                             TD_REDUCE_DEFAULTS);
    td_backward(loss, (td_backward_options){ 0 });
    td_step(sgd);
    out[0] = td_mul(in[0], in[1]);
}

static void a_weight_may_be_passed_as_an_input(void **state)
{
    td_tensor *expected[2], *got[2];
    for (int way = 0; way < 2; way++) {
        fresh_kept();
        td_set_requires_grad(kept[0], true);
        sgd = td_sgd(kept, 1, 0.1, (td_sgd_options){ 0 });
        td_tensor *in[] = { td_detach(kept[0]), td_detach(kept[0]) };
        td_tensor **y = way ? got : expected;
        td_program *p = trace(descend, in, 2, 1);
        assert_true(way ? td_execute(compiled(p), in, 2, y)
                        : td_program_run(p, in, 2, y));
        y[1] = kept[0];
    }
    expect_alike(got[0], expected[0], 0);
    expect_alike(got[1], expected[1], 1);
}

/* ---- a step of training ------------------------------------------------- */

typedef struct { td_tensor *p[6]; td_optimiser *sgd; } network;

static network net;

static network build_net(void)
{
    static const int64_t sizes[] = { 28, 17, 13, 10 };
    network b;
    draws = 3;
    for (int i = 0; i < 3; i++) {
        b.p[2 * i] = random_tensor(TD_DIMS(sizes[i + 1], sizes[i]),
                                   TD_FLOAT32, PLAIN, -0.3, 0.3);
        b.p[2 * i + 1] = random_tensor(TD_DIMS(sizes[i + 1]), TD_FLOAT32,
                                       PLAIN, -0.1, 0.1);
    }
    for (int i = 0; i < 6; i++)
        td_set_requires_grad(b.p[i], true);
    b.sgd = td_sgd(b.p, 6, 0.05, (td_sgd_options){
        .momentum = 0.9, .weight_decay = 0.01 });
    return b;
}

static void train_step(td_tensor **in, td_tensor **out)
{
    td_tensor *h = in[0];
    td_zero_grad(net.sgd);
    for (int i = 0; i < 3; i++) {
        h = td_linear(h, net.p[2 * i], net.p[2 * i + 1]);
        h = i < 2 ? td_relu(h) : h;
    }
    out[0] = td_cross_entropy(h, in[1], (td_cross_entropy_options){ 0 });
    td_backward(out[0], (td_backward_options){ 0 });
    td_step(net.sgd);
}

/* Twenty steps, the first of them eager, since only then the momenta
   exist; the losses of all, then the parameters, in `result`. */
static void train(bool compile, td_tensor **in, td_tensor **result)
{
    td_executable *e = NULL;
    net = build_net();
    for (int k = 0; k < 20; k++) {
        if (compile && k == 1)
            e = compiled(trace(train_step, in, 2, 1));
        if (e != NULL)
            assert_true(td_execute(e, in, 2, &result[k]));
        else
            train_step(in, &result[k]);
        if (td_failed())
            fail_msg("%s", td_error_message());
    }
    for (int i = 0; i < 6; i++)
        result[20 + i] = net.p[i];
}

static void twenty_steps_are_those_of_eager_training(void **state)
{
    td_tensor *expected[26], *got[26], *other[26];
    td_tensor *in[] = {
        random_tensor(TD_DIMS(64, 28), TD_FLOAT32, PLAIN, -1, 1),
        random_tensor(TD_DIMS(64), TD_INT64, PLAIN, 0, 10)
    };
    td_set_threads(1);
    train(false, in, expected);
    train(true, in, got);
    td_set_threads(4);
    train(true, in, other);
    for (int k = 0; k < 26; k++) {
        comparison c = { 0 };
        for (int64_t i = 0; i < td_numel(got[k]); i++)
            compare(&c, at(got[k], i), at(expected[k], i), 1e-5);
        expect_right(c, "result %d", k);
        assert_true(same_bytes(got[k], other[k]));
    }
    assert_true(at(got[19], 0) < at(got[0], 0));
}

/* ---- random programs ---------------------------------------------------- */

static uint64_t seed;

static void random_program(td_tensor **in, td_tensor **out)
{
    const uint64_t before = draws;
    td_tensor *pool[40] = { in[0], in[1], in[2] };
    draws = seed;
    for (int n = 3; n < 40; n++) {
        td_tensor *a = pool[draw() % (uint64_t)n];
        td_tensor *b = pool[draw() % (uint64_t)n];
        const td_dims all = { 0 };
        const td_dims axis = TD_DIMS((int64_t)(draw() % 2));
        switch (draw() % 11) {
        case 0: a = td_add(a, b); break;
        case 1: a = td_tanh(td_mul(a, b)); break;
        case 2: a = td_relu(td_sub(b, a)); break;
        case 3: a = td_sigmoid(a); break;
        case 4: a = td_where(td_lt(a, b), a, td_neg(b)); break;
        case 5: a = td_tanh(td_sum(a, (td_reduce_options){
                    .dims = axis, .keepdim = true })); break;
        case 6: a = td_amax(a, (td_reduce_options){
                    .dims = axis, .keepdim = true }); break;
        case 7: a = td_mean(a, (td_reduce_options){
                    .dims = all, .keepdim = true }); break;
        case 8: a = td_t(td_maximum(a, b)); break;
        case 9: a = td_tanh(td_matmul(td_add(a, in[0]),
                                      td_add(b, in[1]))); break;
        default: a = td_softmax(a, 1);
        }
        pool[n] = a;
    }
    for (int k = 0; k < 20; k++)
        out[k] = pool[20 + k];
    draws = before;
}

static void random_programs_agree(void **state)
{
    for (seed = 1; seed <= 6; seed++) {
        optimise(seed <= 2);
        td_tensor *in[] = {
            random_tensor(TD_DIMS(17, 17), TD_FLOAT32, PLAIN, -1, 1),
            random_tensor(TD_DIMS(17, 17), TD_FLOAT32, TURNED, -1, 1),
            random_tensor(TD_DIMS(17, 17), TD_FLOAT32, SPREAD, -1, 1)
        };
        agree(random_program, in, 3, 20);
    }
    optimise(true);
}

/* Forty inputs in one sum; a chain of 400 operators. */
static void wide_and_deep(td_tensor **in, td_tensor **out)
{
    out[0] = in[0];
    for (int i = 1; i < 40; i++)
        out[0] = td_add(out[0], in[i]);
    out[1] = in[0];
    for (int i = 0; i < 400; i++)
        out[1] = td_relu(td_add_scalar(out[1], td_float(0.01)));
}

static void formulas_may_be_wide_and_deep(void **state)
{
    td_tensor *in[40];
    for (int i = 0; i < 40; i++)
        in[i] = random_tensor(TD_DIMS(3, 5), TD_FLOAT32, PLAIN, -1, 1);
    agree(wide_and_deep, in, 40, 2);
}

/* ---- the compiler and the cache ----------------------------------------- */

static void simple(td_tensor **in, td_tensor **out)
{
    out[0] = td_relu(td_add_scalar(in[0], td_float(0.25)));
}

static td_tensor *simple_input(void)
{
    return random_tensor(TD_DIMS(5), TD_FLOAT32, PLAIN, -1, 1);
}

static void expect_no_children(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* The compiler is `text`, a script; compiling is refused with `words`, and
   the back end that needs no compiler takes over with them as its note. */
static void with_compiler(const char *text, td_error_code code,
                          const char *words)
{
    char path[200];
    td_tensor *in = simple_input(), *out;
    td_program *p = trace(simple, &in, 1, 1);
    snprintf(path, sizeof path, "%s/compiler", cache);
    if (text != NULL)
        write_file(path, text, 0700);
    setenv("TREADLE_CC", text ? path : "/nowhere/cc", 1);
    refused(td_compile(p, with_c), code, words);
    td_executable *e = td_compile(p, (td_compile_options){ 0 });
    assert_non_null(e);
    assert_string_not_equal(td_executable_backend(e), "c");
    assert_non_null(strstr(td_executable_note(e), words));
    assert_true(td_execute(e, &in, 1, &out));
    expect_number(at(out, 0), fmax(at(in, 0) + 0.25, 0), 1e-6);
    unsetenv("TREADLE_CC");
    unlink(path);
    expect_no_children();
}

static void a_compiler_may_be_missing_fail_or_hang(void **state)
{
    with_compiler(NULL, TD_ERROR_UNSUPPORTED, "cannot run /nowhere/cc");
    with_compiler("#!/bin/sh\necho no such loom >&2\nexit 1\n",
                  TD_ERROR_RUNTIME, "no such loom");
    with_compiler("#!/bin/sh\nexit 0\n", TD_ERROR_IO, "cannot write");
    with_compiler("#!/bin/sh\nkill -9 $$\n", TD_ERROR_RUNTIME, "failed");
    with_compiler("#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\n"
                  "echo rubbish > \"$2\"\n", TD_ERROR_RUNTIME,
                  "does not load");
    setenv("TREADLE_CC_SECONDS", "1", 1);
    with_compiler("#!/bin/sh\nsleep 600\n", TD_ERROR_RUNTIME,
                  "did not finish in 1 second");
    unsetenv("TREADLE_CC_SECONDS");
}

static void a_cache_must_be_writable(void **state)
{
    char path[300];
    td_tensor *in = simple_input();
    td_program *p = trace(simple, &in, 1, 1);
    snprintf(path, sizeof path, "%s/file", cache);
    write_file(path, "", 0600);
    strcat(path, "/below");
    setenv("TREADLE_CACHE", path, 1);
    refused(td_compile(p, with_c), TD_ERROR_IO, "set TREADLE_CACHE");
    memset(path, 'x', sizeof path - 1);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    setenv("TREADLE_CACHE", path, 1);
    refused(td_compile(p, with_c), TD_ERROR_IO, "too long");
    setenv("TREADLE_CACHE", cache, 1);
}

/* How many libraries lie in `directory`, and the last of them. */
static int libraries(const char *directory, char *path)
{
    char command[300];
    int n = 0;
    snprintf(command, sizeof command, "ls %s/*.so", directory);
    FILE *list = popen(command, "r");
    while (fscanf(list, "%199s", path) == 1)
        n++;
    pclose(list);
    return n;
}

static void run_simple(td_tensor *in)
{
    td_tensor *out;
    td_scope_begin();
    td_executable *e = compiled(trace(simple, &in, 1, 1));
    assert_true(td_execute(e, &in, 1, &out));
    expect_number(at(out, 0), fmax(at(in, 0) + 0.25, 0), 1e-6);
    td_scope_end();
}

static void damaged_and_foreign_code_is_compiled_again(void **state)
{
    char own[200], path[200], whole[300], command[700];
    td_tensor *in = simple_input();
    snprintf(own, sizeof own, "%s/own", cache);
    setenv("TREADLE_CACHE", own, 1);
    run_simple(in);
    assert_int_equal(libraries(own, path), 1);
    snprintf(whole, sizeof whole, "%s/whole", cache);
    snprintf(command, sizeof command, "cp %s %s", path, whole);
    assert_int_equal(system(command), 0);
    static const char *const damages[] = {
        "rm %2$s; head -c 5000 %1$s > %2$s", "rm %2$s; : > %2$s",
        "rm %2$s; echo rubbish > %2$s",
        "rm %2$s; cp /lib/x86_64-linux-gnu/libm.so.6 %2$s || echo x > %2$s",
        "rm %2$s; tr a b < %1$s > %2$s",
    };
    for (int i = 0; i < 5; i++) {
        snprintf(command, sizeof command, damages[i], whole, path);
        assert_int_equal(system(command), 0);
        run_simple(in);
        snprintf(command, sizeof command, "cmp -s %s %s", path, whole);
        const int same = system(command);
        assert_int_equal(libraries(own, path), 1);
        (void)same;
    }
    setenv("TREADLE_CC", "/nowhere/cc", 1);     /* another compiler, */
    td_program *p = trace(simple, &in, 1, 1);   /* another key */
    refused(td_compile(p, with_c), TD_ERROR_UNSUPPORTED, "cannot run");
    unsetenv("TREADLE_CC");
    setenv("TREADLE_CACHE", cache, 1);
}

static void what_is_compiled_is_found_again(void **state)
{
    char own[200], path[200];
    td_tensor *in = simple_input();
    snprintf(own, sizeof own, "%s/again", cache);
    setenv("TREADLE_CACHE", own, 1);
    run_simple(in);
    char *found = strdup(getenv("PATH"));
    setenv("PATH", "/nowhere", 1);      /* nothing can be compiled now */
    run_simple(in);
    setenv("PATH", found, 1);
    free(found);
    assert_int_equal(libraries(own, path), 1);
    setenv("TREADLE_CACHE", cache, 1);
}

static bool compile_and_run(void *context)
{
    td_tensor **in = context, *x[2], *y[1];
    for (int i = 0; i < 2; i++)
        x[i] = NULL;
    if (!td_trace_begin(true))
        return false;
    for (int i = 0; i < 2 && !td_failed(); i++)
        x[i] = td_trace_input(td_shape_of(in[i]), td_dtype_of(in[i]),
                              td_device_of(in[i]));
    if (!td_failed())
        train_step(x, y);
    td_program *p = td_trace_end(y, 1);
    td_executable *e = p ? td_compile(p, with_c) : NULL;
    return e != NULL && td_execute(e, in, 2, y) && td_zero_grad(net.sgd);
}

/* A step has no gradient to give up here, and leaves none: what it does
   with one is the next test's. */
static void memory_may_fail_anywhere(void **state)
{
    td_tensor *in[] = {
        random_tensor(TD_DIMS(3, 28), TD_FLOAT32, TURNED, -1, 1),
        random_tensor(TD_DIMS(3), TD_INT64, PLAIN, 0, 10)
    }, *first;
    net = build_net();
    train_step(in, &first);
    td_zero_grad(net.sgd);
    assert_true(fail_each_allocation(compile_and_run, in) > 100);
    expect_no_children();
}

/* How many of the net's parameters have a gradient, and whether weights,
   momenta and those gradients are what was copied before. */
typedef struct { td_tensor *weight[6], *momentum[6], *gradient[6]; } copies;

static int gradients(void)
{
    int n = 0;
    for (int i = 0; i < 6; i++)
        n += td_grad_of(net.p[i]) != NULL;
    return n;
}

static copies copy_net(void)
{
    copies c;
    for (int i = 0; i < 6; i++) {
        c.weight[i] = td_clone(net.p[i]);
        c.momentum[i] = td_clone(td_optimiser_state(net.sgd, i, 0));
        c.gradient[i] = td_clone(td_grad_of(net.p[i]));
    }
    return c;
}

static void expect_untouched(const copies *c)
{
    for (int i = 0; i < 6; i++) {
        td_tensor *gradient = td_grad_of(net.p[i]);
        assert_true(same_bytes(net.p[i], c->weight[i]));
        assert_true(same_bytes(td_optimiser_state(net.sgd, i, 0), c->momentum[i]));
        assert_true(gradient == NULL || same_bytes(gradient, c->gradient[i]));
    }
}

/* Whichever allocation of a step fails, weights and momenta are as they
   were.  The old gradients are all there, or have all gone: a step begins by
   letting go of them. */
static void check_lack_of_memory(const char *backend)
{
    td_tensor *in[] = {
        random_tensor(TD_DIMS(3, 28), TD_FLOAT32, TURNED, -1, 1),
        random_tensor(TD_DIMS(3), TD_INT64, PLAIN, 0, 10)
    }, *loss;
    int stayed = 0, gone = 0;
    bool done = false;
    net = build_net();
    train_step(in, &loss);
    td_executable *e = td_compile(trace(train_step, in, 2, 1), (td_compile_options){ .backend = backend });
    assert_true(td_execute(e, in, 2, &loss));
    for (int64_t n = 0; !done; n++) {
        if (gradients() == 0)
            assert_true(td_execute(e, in, 2, &loss));
        assert_int_equal(gradients(), 6);
        const copies before = copy_net();
        td_memory_fail_after(n);
        done = had_memory(td_execute(e, in, 2, &loss));
        if (!done) {
            expect_untouched(&before);
            stayed += gradients() == 6;
            gone += gradients() == 0;
            assert_int_equal(stayed + gone, n + 1);
        }
    }
    assert_true(stayed > 0 && gone > 20);
    assert_int_equal(gradients(), 6);
}

static void a_step_without_memory_leaves_no_half(void **state)
{
    check_lack_of_memory("c");
    check_lack_of_memory("interpreter");
}

/* The largest weight's gradient is two thirds of all. */
static void a_step_holds_one_gradient_of_a_weight(void **state)
{
    td_tensor *in[] = {
        random_tensor(TD_DIMS(1, 28), TD_FLOAT32, PLAIN, -1, 1),
        random_tensor(TD_DIMS(1), TD_INT64, PLAIN, 0, 10)
    }, *loss;
    net = build_net();
    train_step(in, &loss);
    td_executable *e = compiled(trace(train_step, in, 2, 1));
    assert_true(td_execute(e, in, 2, &loss));
    const int64_t before = td_memory_stats().bytes;
    td_memory_reset_peak();
    assert_true(td_execute(e, in, 2, &loss));
    assert_in_range(td_memory_stats().peak_bytes - before, 1, 28 * 17 * 4);
}

/* ---- whose cache, and whose children ------------------------------------ */

/* Compiles and runs `simple` in a cache of its own. */
static bool simple_is_compiled(void)
{
    td_tensor *in = simple_input(), *out = NULL;
    td_executable *e = td_compile(trace(simple, &in, 1, 1), with_c);
    return e != NULL && td_execute(e, &in, 1, &out)
        && fabs(at(out, 0) - fmax(at(in, 0) + 0.25, 0)) < 1e-6;
}

static const char *own_cache(const char *name)
{
    static char own[200];
    snprintf(own, sizeof own, "%s/%s", cache, name);
    setenv("TREADLE_CACHE", own, 1);
    return own;
}

/* `n` files lie in `folder`, and nothing that is half made. */
static void expect_tidy(const char *folder, int n)
{
    DIR *open = opendir(folder);
    assert_non_null(open);
    for (struct dirent *d; (d = readdir(open)) != NULL;)
        n -= d->d_name[0] != '.';
    closedir(open);
    assert_int_equal(n, 0);
}

static void only_a_private_folder_is_a_cache(void **state)
{
    td_tensor *in = simple_input();
    td_program *p = trace(simple, &in, 1, 1);
    const char *own = own_cache("open");
    assert_int_equal(mkdir(own, 0700), 0);
    static const mode_t open_modes[] = { 0777, 0770, 0720, 01777 };
    for (int i = 0; i < 4; i++) {
        chmod(own, open_modes[i]);
        refused(td_compile(p, with_c), TD_ERROR_IO, "only we can write to");
        expect_tidy(own, 0);
    }
    chmod(own, 0755);
    assert_true(simple_is_compiled());
    setenv("TREADLE_CACHE", cache, 1);
}

static void only_a_private_file_is_loaded(void **state)
{
    static const char *const changes[] = {
        "chmod 777 %s", "chmod 720 %s", "f=%s; mv $f $f.o; ln -s $f.o $f",
        "f=%s; rm $f; mkfifo $f",
    };
    char path[200], command[700];
    for (int i = 0; i < 4; i++) {
        const char *own = own_cache("files");
        assert_true(simple_is_compiled());
        assert_int_equal(libraries(own, path), 1);
        snprintf(command, sizeof command, changes[i], path);
        assert_int_equal(system(command), 0);
        setenv("TREADLE_CC_SECONDS", "20", 1);
        assert_true(simple_is_compiled());
        unsetenv("TREADLE_CC_SECONDS");
        struct stat s;
        assert_int_equal(lstat(path, &s), 0);
        assert_true(S_ISREG(s.st_mode) && (s.st_mode & 077) == 0);
        snprintf(command, sizeof command, "rm -rf %s", own);
        assert_int_equal(system(command), 0);
    }
    setenv("TREADLE_CACHE", cache, 1);
}

static void without_a_home_the_cache_is_private(void **state)
{
    char folder[64], home[200];
    struct stat s;
    snprintf(folder, sizeof folder, "/tmp/treadle-%u", (unsigned)geteuid());
    snprintf(home, sizeof home, "%s", getenv("HOME") ? getenv("HOME") : "");
    unsetenv("TREADLE_CACHE");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", "", 1);
    assert_true(simple_is_compiled());
    assert_int_equal(lstat(folder, &s), 0);
    assert_true(S_ISDIR(s.st_mode) && s.st_uid == geteuid()
                && (s.st_mode & 077) == 0);
    setenv("HOME", home, 1);
    setenv("TREADLE_CACHE", cache, 1);
}

static void names_may_have_spaces_and_quotes(void **state)
{
    char path[300];
    const char *own = own_cache("it's \"a\" $(cache) %s `x`; -o");
    assert_int_equal(mkdir(own, 0700), 0);
    snprintf(path, sizeof path, "%s/c c'\"%%s", own);
    write_file(path, "#!/bin/sh\nexec cc \"$@\"\n", 0700);
    setenv("TREADLE_CC", path, 1);
    assert_true(simple_is_compiled());
    unsetenv("TREADLE_CC");
    setenv("TREADLE_CACHE", cache, 1);
}

static void *compile_in_a_thread(void *unused)
{
    td_scope_begin();
    const bool ok = simple_is_compiled();
    td_scope_end();
    return ok ? NULL : "failed";
}

static void processes_and_threads_compile_one_program_at_once(void **state)
{
    const char *own = own_cache("crowd");
    pid_t child[8];
    pthread_t thread[4];
    for (int i = 0; i < 8; i++)
        if ((child[i] = fork()) == 0)
            _exit(compile_in_a_thread(NULL) != NULL);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL,
                                        compile_in_a_thread, NULL), 0);
    for (int i = 0; i < 4; i++) {
        void *failed = NULL;
        pthread_join(thread[i], &failed);
        assert_null(failed);
    }
    for (int i = 0; i < 8; i++) {
        int status = -1;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
    expect_tidy(own, 1);
    setenv("TREADLE_CACHE", cache, 1);
}

static void reap(int signal)
{
    const int error = errno;
    (void)signal;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    errno = error;
}

static void tick(int signal)
{
    (void)signal;
}

/* The compiler works, fails and hangs while signals are `how`. */
static void compile_under(int number, void (*how)(int), const char *name)
{
    struct sigaction act = { .sa_handler = how }, before;
    const char *own = own_cache(name);
    sigaction(number, &act, &before);
    assert_true(simple_is_compiled());
    expect_tidy(own, 1);
    td_tensor *in = simple_input();
    td_program *p = trace(simple, &in, 1, 1);
    char path[300];
    snprintf(path, sizeof path, "%s.cc", own);
    setenv("TREADLE_CC", path, 1);
    write_file(path, "#!/bin/sh\necho no such loom >&2\nexit 1\n", 0700);
    refused(td_compile(p, with_c), TD_ERROR_RUNTIME, "no such loom");
    write_file(path, "#!/bin/sh\nsleep 600\n", 0700);
    setenv("TREADLE_CC_SECONDS", "1", 1);
    refused(td_compile(p, with_c), TD_ERROR_RUNTIME, "did not finish");
    unsetenv("TREADLE_CC_SECONDS");
    unsetenv("TREADLE_CC");
    expect_tidy(own, 1);
    sigaction(number, &before, NULL);
    setenv("TREADLE_CACHE", cache, 1);
}

static void children_may_be_ignored_or_collected_by_others(void **state)
{
    compile_under(SIGCHLD, SIG_IGN, "ignored");
    compile_under(SIGCHLD, reap, "collected");
    const struct itimerval often = { { 0, 3000 }, { 0, 3000 } };
    const struct itimerval never = { { 0, 0 }, { 0, 0 } };
    struct sigaction act = { .sa_handler = tick }, before;
    sigaction(SIGALRM, &act, &before);
    setitimer(ITIMER_REAL, &often, NULL);
    compile_under(SIGALRM, tick, "interrupted");
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    expect_no_children();
}

static void a_compiler_may_talk_die_or_fill_the_disk(void **state)
{
    char path[300];
    const char *own = own_cache("full");
    td_tensor *in = simple_input();
    td_program *p = trace(simple, &in, 1, 1);
    snprintf(path, sizeof path, "%s.cc", own);
    setenv("TREADLE_CC", path, 1);
    write_file(path, "#!/bin/sh\nseq 1 900000\necho >&2\nexit 1\n", 0700);
    refused(td_compile(p, with_c), TD_ERROR_RUNTIME, "failed: 1 2 3 4");
    write_file(path, "#!/bin/sh\nkill -11 $$\n", 0700);
    refused(td_compile(p, with_c), TD_ERROR_RUNTIME, "failed by signal 11");
    unsetenv("TREADLE_CC");
    struct rlimit before, few;
    getrlimit(RLIMIT_FSIZE, &before);
    few = before;
    void (*usual)(int) = signal(SIGXFSZ, SIG_IGN);
    static const rlim_t sizes[] = { 100, 9000, 14000 };
    for (int i = 0; i < 3; i++) {
        few.rlim_cur = sizes[i];
        setrlimit(RLIMIT_FSIZE, &few);
        td_executable *e = td_compile(p, with_c);
        setrlimit(RLIMIT_FSIZE, &before);
        assert_null(e);
        assert_true(td_failed());
        td_error_clear();
        expect_tidy(own, 0);
    }
    signal(SIGXFSZ, usual);
    assert_true(simple_is_compiled());
    setenv("TREADLE_CACHE", cache, 1);
}

/* ---- nothing, and the smallest number ------------------------------------ */

static void of_nothing(td_tensor **in, td_tensor **out)
{
    out[0] = td_softmax(in[0], 0);
    out[1] = td_log_softmax(in[0], 0);
    out[2] = td_softmax(in[0], 1);
    out[3] = td_sum(in[0], (td_reduce_options){ .dims = TD_DIMS(0) });
    out[4] = td_mean(in[0], (td_reduce_options){ .dims = TD_DIMS(0) });
    out[5] = td_matmul(td_t(in[0]), in[0]);
    out[6] = td_add_scalar(td_matmul(in[0], td_t(in[0])), td_float(1));
    out[7] = td_cat((td_tensor *[]){ in[0], in[1] }, 2, 0);
}

static void folds_of_nothing_are_compiled(void **state)
{
    td_tensor *in[] = {
        random_tensor(TD_DIMS(0, 3), TD_FLOAT32, PLAIN, -1, 1),
        random_tensor(TD_DIMS(2, 3), TD_FLOAT32, PLAIN, -1, 1),
    };
    agree(of_nothing, in, 2, 8);
}

static void smallest(td_tensor **in, td_tensor **out)
{
    out[0] = td_mul_scalar(in[0], td_int(INT64_MIN));
}

static void the_smallest_whole_number_keeps_its_sign(void **state)
{
    td_tensor *in = random_tensor(TD_DIMS(5), TD_FLOAT32, PLAIN, 1, 2);
    agree(smallest, &in, 1, 1);
}

static void nothing_below_zero(td_tensor **in, td_tensor **out)
{
    out[0] = td_reciprocal(td_mul_scalar(in[0], td_float(-0.0)));
}

static void zero_keeps_its_sign(void **state)
{
    td_tensor *in = random_tensor(TD_DIMS(5), TD_FLOAT32, PLAIN, 1, 2);
    agree(nothing_below_zero, &in, 1, 1);
}

/* ---- how exact sums are ------------------------------------------------ */

static void sums(td_tensor **in, td_tensor **out)
{
    int n = 0;
    for (int mask = 1; mask < 1 << td_rank(in[0]); mask++) {
        td_reduce_options o = { .keepdim = true };
        for (int d = 0; d < td_rank(in[0]); d++)
            if (mask >> d & 1)
                o.dims.at[o.dims.count++] = d;
        td_tensor *x = td_mul_scalar(in[0], td_float(mask));
        out[n++] = td_sum(x, o);
        out[n++] = td_mean(td_mul(in[0], td_add_scalar(in[0],
                                             td_float(0.25 * mask))), o);
        out[n++] = td_var(in[0], (td_var_options){ .dims = o.dims });
        td_tensor *const all = td_logsumexp(in[0], o);
        out[n++] = td_exp(td_neg(all));
        out[n++] = td_sum(td_exp(td_sub(in[0], all)), o);
    }
}

/* The largest relative error of x against numbers of double precision. */
static double worst(td_tensor *x, td_tensor *exact)
{
    double error = 0;
    for (int64_t i = 0; i < td_numel(x); i++)
        error = fmax(error, fabs(at(x, i) / at(exact, i) - 1));
    return error;
}

static void check_sums(td_tensor *x)
{
    enum { ULPS = 4 };
    td_tensor *exact[40], *eager[40], *got[40], *again[40];
    td_tensor *as_double = td_to(x, TD_FLOAT64);
    const int n = 5 * ((1 << td_rank(x)) - 1), threads = td_threads();
    sums(&as_double, exact);
    sums(&x, eager);
    td_executable *e = compiled(trace(sums, &x, 1, n));
    td_set_threads(1);
    assert_true(td_execute(e, &x, 1, got));
    td_set_threads(2);
    assert_true(td_execute(e, &x, 1, again));
    td_set_threads(threads);
    for (int k = 0; k < n; k++) {
        const double error = worst(got[k], exact[k]);
        const double bound = fmax(worst(eager[k], exact[k]),
                                  ULPS * 0x1p-23);
        if (error > bound)
            fail_msg("output %d is %g from the sum, not %g", k, error,
                     bound);
        assert_memory_equal(td_data(got[k]), td_data(again[k]),
                            (size_t)td_numel(got[k]) * sizeof(float));
    }
}

static void compiled_sums_are_as_exact_as_eager_ones(void **state)
{
    check_sums(random_tensor(TD_DIMS(200003, 3), TD_FLOAT32, PLAIN, 0.1,
                             0.2));
    optimise(false);
    check_sums(random_tensor(TD_DIMS(30011, 7), TD_FLOAT32, SLICED, 0.1,
                             0.2));
    check_sums(td_full(TD_DIMS(1000003), td_float(0.1),
                       (td_tensor_options){ 0 }));
    optimise(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(every_row_is_compiled),
        CASE(whole_numbers_and_truths_are_compiled),
        CASE(broadcasts_and_views_are_compiled),
        CASE(every_subset_of_axes_folds),
        CASE(folds_of_every_length),
        CASE(counting_and_constants_are_compiled),
        CASE(a_stored_count_is_computed_once_and_read_often),
        CASE(products_are_compiled),
        CASE(losses_and_gradients_are_compiled),
        CASE(calls_views_and_empty_tensors_agree),
        CASE(updates_are_those_of_the_interpreter),
        CASE(a_view_of_zeros_is_changed_where_it_lies),
        CASE(an_old_weight_that_is_still_read_is_not_overwritten),
        CASE(a_weight_may_be_passed_as_an_input),
        CASE(twenty_steps_are_those_of_eager_training),
        CASE(random_programs_agree),
        CASE(formulas_may_be_wide_and_deep),
        CASE(folds_of_nothing_are_compiled),
        CASE(the_smallest_whole_number_keeps_its_sign),
        CASE(zero_keeps_its_sign),
        CASE(compiled_sums_are_as_exact_as_eager_ones),
        CASE(a_compiler_may_be_missing_fail_or_hang),
        CASE(a_cache_must_be_writable),
        CASE(damaged_and_foreign_code_is_compiled_again),
        CASE(what_is_compiled_is_found_again),
        CASE(memory_may_fail_anywhere),
        CASE(a_step_without_memory_leaves_no_half),
        CASE(a_step_holds_one_gradient_of_a_weight),
        CASE(only_a_private_folder_is_a_cache),
        CASE(only_a_private_file_is_loaded),
        CASE(without_a_home_the_cache_is_private),
        CASE(names_may_have_spaces_and_quotes),
        CASE(processes_and_threads_compile_one_program_at_once),
        CASE(children_may_be_ignored_or_collected_by_others),
        CASE(a_compiler_may_talk_die_or_fill_the_disk),
    };
    char command[130], path[120];
    snprintf(cache, sizeof cache, "%s", "/tmp/treadle-compile-XXXXXX");
    assert_non_null(mkdtemp(cache));
    setenv("TREADLE_CACHE", cache, 1);
    snprintf(path, sizeof path, "%s/plainly", cache);
    write_file(path, "#!/bin/sh\nexec cc \"$@\" -O0\n", 0700);
    optimise(true);
    cmocka_set_test_filter(getenv("TREADLE_TEST_FILTER"));
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(command, sizeof command, "rm -rf %s", cache);
    return failed + (system(command) != 0);
}
