/* needs: statistics */

/* Order and statistics from C: the typed functions, and every allocation
   of what has no gradient, and so no sample, failing in turn. */
#include "treadle_test.h"
#include "core/registry.h"

static td_tensor *matrix(void)
{
    static const double x[] = { 3, 1, 2, 0.5, 4, 6 };
    return td_from_data(x, TD_DIMS(2, 3), (td_tensor_options){ .dtype = TD_FLOAT64 });
}

static void expect(td_tensor *x, int n, const double *values)
{
    assert_non_null(x);
    assert_int_equal(td_numel(x), n);
    x = td_to(td_contiguous(x), TD_FLOAT64);
    for (int i = 0; i < n; i++)
        if (fabs(((double *)td_data(x))[i] - values[i]) > 1e-12)
            fail_msg("element %d is %g, not %g", i, ((double *)td_data(x))[i], values[i]);
}
#define EXPECT(x, ...) \
    expect(x, sizeof (double[]){ __VA_ARGS__ } / sizeof(double), (double[]){ __VA_ARGS__ })

static void typed_functions_sort_and_select(void **state)
{
    td_tensor *places;
    EXPECT(td_sort(matrix(), 1, false, &places), 1, 2, 3, 0.5, 4, 6);
    EXPECT(places, 1, 2, 0, 0, 1, 2);
    EXPECT(td_sort(matrix(), 0, true, NULL), 3, 4, 6, 0.5, 1, 2);
    EXPECT(td_topk(matrix(), 2, -1, true, &places), 3, 2, 6, 4);
    EXPECT(places, 0, 2, 2, 1);
    EXPECT(td_median_dim(matrix(), 1, true, &places), 2, 4);
    EXPECT(places, 2, 1);
    EXPECT(td_cumsum(matrix(), 1), 3, 4, 6, 0.5, 4.5, 10.5);
    EXPECT(td_cumprod(matrix(), 0), 3, 1, 2, 1.5, 4, 12);
    EXPECT(td_prod(matrix(), (td_arg_options){ .dim = td_some(1) }), 6, 12);
}

static void typed_functions_describe(void **state)
{
    const td_dims rows = TD_DIMS(1);
    EXPECT(td_var(matrix(), (td_var_options){ .dims = rows }), 1, 7.75);
    EXPECT(td_var(matrix(), (td_var_options){ .dims = rows, .correction = td_some(0) }), 2. / 3, 15.5 / 3);
    EXPECT(td_std(matrix(), (td_var_options){ .dims = rows, .keepdim = true }), 1, sqrt(7.75));
    EXPECT(td_norm(matrix(), 1, (td_reduce_options){ .dims = rows }), 6, 10.5);
    EXPECT(td_norm(matrix(), INFINITY, (td_reduce_options){ 0 }), 6);
    td_tensor *drawn = td_multinomial(matrix(), 3, false);
    EXPECT(td_sum(drawn, (td_reduce_options){ .dims = rows }), 3, 3);
}

static void errors_name_the_operator_that_was_called(void **state)
{
    refused(td_var(matrix(), (td_var_options){ .dims = TD_DIMS(5) }), TD_ERROR_INDEX, "var");
    refused(td_topk(matrix(), 4, 1, true, NULL), TD_ERROR_RUNTIME, "topk");
    refused(td_multinomial(matrix(), 0, true), TD_ERROR_RUNTIME, "multinomial");
}

/* The operators without samples, by name, on operands that fit. */
static bool without_sample(void *context)
{
    const char *name = context;
    const bool whole = strcmp(name, "bincount") == 0;
    td_tensor *x = whole ? td_arange(td_int(0), td_int(6), td_int(1), plain) : matrix();
    td_tensor *line = td_arange(td_int(0), td_int(3), td_int(1), (td_tensor_options){ .dtype = TD_FLOAT64 });
    const td_op *op = td_op_find(name);
    td_signature s;
    td_value in[2] = { td_v_tensor(x), td_v_none() }, attr[TD_MAX_PARAMETERS];
    td_call call = { .op = op, .in = in, .attr = attr };
    assert_true(td_signature_parse(td_op_signature(op), &s));
    for (int i = 0; i < s.n_parameters; i++)
        if (s.at[i].is_input)
            call.n_in++;
        else
            attr[call.n_attr++] = s.at[i].has_default ? td_v_none() : td_v_int(2);
    if (strcmp(name, "searchsorted") == 0)
        in[0] = td_v_tensor(line), in[1] = td_v_tensor(x);
    if (strcmp(name, "bucketize") == 0)
        in[1] = td_v_tensor(line);
    for (int i = 0; i < call.n_attr; i++)
        if (strncmp(name, "unique", 6) == 0 && i < call.n_attr - 1)
            attr[i] = td_v_bool(true);
    return !td_failed() && td_run(&call);
}

static void every_failure_is_survived(void **state)
{
    static const char *const names[] = { "argsort", "unique", "unique_consecutive", "multinomial",
        "count_nonzero", "bincount", "histc", "searchsorted", "bucketize" };
    for (int i = 0; i < 9; i++)
        assert_true(fail_each_allocation(without_sample, (void *)(uintptr_t)names[i]) >= 1);
}

static int begin_alone(void **state)
{
    return begin(state) || !td_set_threads(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(typed_functions_sort_and_select),
        CASE(typed_functions_describe),
        CASE(errors_name_the_operator_that_was_called),
        cmocka_unit_test_setup_teardown(every_failure_is_survived, begin_alone, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
