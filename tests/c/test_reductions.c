/* needs: reductions */
/* Reductions against loops in double, for every set of dimensions, several
   layouts and types; their errors; and the same bits for any threads. */
#include "treadle_test.h"
#include "core/memory.h"
#include "core/runtime.h"

enum { MOST = 1 << 21 };

static td_tensor *laid_out(td_dims shape, td_dtype dtype, layout how)
{
    if (td_dtype_is_floating(dtype))
        return random_tensor(shape, dtype, how, -1.5, 2.5);
    if (dtype == TD_UINT8)
        return random_tensor(shape, dtype, how, 0, 256);
    return random_tensor(shape, dtype, how, -700, 1300);
}

static td_tensor *fresh(td_dims shape, td_dtype dtype)
{
    return laid_out(shape, dtype, PLAIN);
}

/* Splits `index` over the dimensions whose bit in `mask` is `bit`. */
static int64_t part(const td_tensor *x, unsigned mask, unsigned bit,
                    int64_t index)
{
    int64_t offset = 0;
    for (int d = x->rank - 1; d >= 0; d--)
        if ((mask >> d & 1) == bit) {
            offset += index % x->shape[d] * x->strides[d];
            index /= x->shape[d];
        }
    return offset;
}

/* The numbers of result `kept` when `mask` is reduced, in order. */
static int64_t numbers_of(const td_tensor *x, unsigned mask, int64_t kept,
                          double *numbers)
{
    int64_t n = 1;
    for (int d = 0; d < x->rank; d++)
        n *= mask >> d & 1 ? x->shape[d] : 1;
    const int64_t first = n ? part(x, mask, 0, kept) : 0;
    for (int64_t i = 0; i < n; i++)
        numbers[i] = element_at(x, first + part(x, mask, 1, i));
    return n;
}

/* ---- folds against a loop -------------------------------------------- */

typedef td_tensor *reduction(td_tensor *x, td_reduce_options options);
typedef double reference(const double *x, int64_t n);

static double sum_of(const double *x, int64_t n)
{
    long double s = 0;
    for (int64_t i = 0; i < n; i++)
        s += x[i];
    return (double)s;
}

static double size_of(const double *x, int64_t n)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++)
        s += fabs(x[i]);
    return s;
}

static double mean_of(const double *x, int64_t n)
{
    return sum_of(x, n) / (double)n;
}

static double max_of(const double *x, int64_t n)
{
    double m = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        m = x[i] > m ? x[i] : m;
    return m;
}

static double min_of(const double *x, int64_t n)
{
    double m = INFINITY;
    for (int64_t i = 0; i < n; i++)
        m = x[i] < m ? x[i] : m;
    return m;
}

static double any_of(const double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (x[i] != 0)
            return 1;
    return 0;
}

static double all_of(const double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (x[i] == 0)
            return 0;
    return 1;
}

static double lse_of(const double *x, int64_t n)
{
    const double m = max_of(x, n);
    long double s = 0;
    for (int64_t i = 0; i < n; i++)
        s += exp(x[i] - m);
    return n ? m + log((double)s) : -INFINITY;
}

typedef struct {
    const char *name;
    reduction *run;
    reference *expected;
    bool floating;             /* takes floating-point numbers only */
    bool adds;                 /* rounds; the others are exact */
    bool choosy;               /* an error on nothing */
} fold_case;

static const fold_case folds[] = {
    { "sum", td_sum, sum_of, false, true, false },
    { "mean", td_mean, mean_of, true, true, false },
    { "amax", td_amax, max_of, false, false, true },
    { "amin", td_amin, min_of, false, false, true },
    { "any", td_any, any_of, false, false, false },
    { "all", td_all, all_of, false, false, false },
    { "logsumexp", td_logsumexp, lse_of, true, true, false },
};

static double tolerance(const fold_case *f, td_dtype dtype,
                        const double *x, int64_t n, double expected)
{
    const double u = dtype == TD_FLOAT32 ? ldexp(1, -24) : ldexp(1, -52);
    if (!f->adds)
        return 0;
    if (f->run == td_logsumexp)
        return 16 * u * (1 + fabs(expected) + fabs(max_of(x, n)));
    double depth = 140 + (n > 4096 ? log2((double)n / 4096) : 0);
    if (dtype == TD_FLOAT64)
        depth += (double)n;            /* the reference rounds as well */
    return depth * u * size_of(x, n) / (f->run == td_mean ? (double)n : 1);
}

static void compare_fold(const fold_case *f, td_tensor *x, layout how,
                         unsigned mask, bool keepdim)
{
    static double numbers[MOST];
    td_reduce_options options = { .keepdim = keepdim };
    for (int d = 0; d < x->rank; d++)
        if (mask >> d & 1)
            options.dims.at[options.dims.count++] =
                d % 2 ? d : d - x->rank;
    if (options.dims.count == 0)
        mask = (1u << x->rank) - 1;
    td_tensor *y = f->run(x, options);
    int64_t count = 1;
    for (int d = 0; d < x->rank; d++)
        count *= mask >> d & 1 ? 1 : x->shape[d];
    const bool nothing = td_numel(x) == 0;
    if (nothing && count > 0 && f->choosy) {
        assert_null(y);
        td_error_clear();
        return;
    }
    if (!y)
        fail_msg("%s: %s", f->name, td_error_message());
    assert_int_equal(td_numel(y), count);
    assert_true(td_is_contiguous(y));
    assert_int_equal(y->rank, keepdim ? x->rank
                     : x->rank - __builtin_popcount(mask));
    comparison c = { 0 };
    for (int64_t i = 0; i < count; i++) {
        const int64_t n = numbers_of(x, mask, i, numbers);
        const double expected = f->expected(numbers, n);
        compare(&c, at(y, i), expected,
                tolerance(f, x->dtype, numbers, n, expected));
    }
    expect_right(c, "%s %s rank %d mask %x %s", f->name,
                 td_dtype_name(x->dtype), x->rank, mask,
                 layout_names[how]);
}

static void folds_agree_with_a_loop(void **state)
{
    const td_dims shapes[] = {
        { 0 }, TD_DIMS(1), TD_DIMS(7), TD_DIMS(0), TD_DIMS(3, 0, 2),
        TD_DIMS(5, 3), TD_DIMS(2, 3, 5), TD_DIMS(3, 1, 4, 2),
        TD_DIMS(131, 67), TD_DIMS(13, 3, 29),
    };
    const td_dtype dtypes[] = { TD_FLOAT32, TD_FLOAT64, TD_INT64, TD_INT32,
                                TD_UINT8, TD_BOOL };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t t = 0; t < 6; t++)
            for (int how = 0; how < LAYOUTS; how++) {
                td_scope_begin();
                td_tensor *x = laid_out(shapes[s], dtypes[t],
                                        (layout)how);
                const bool large = td_numel(x) > 1000;
                for (size_t f = 0; f < sizeof folds / sizeof *folds; f++)
                    for (unsigned mask = 0; mask < 1u << x->rank; mask++) {
                        if (folds[f].floating
                            && !td_dtype_is_floating(x->dtype))
                            continue;
                        if (large && mask == 0 && f > 2)
                            continue;
                        compare_fold(&folds[f], x, (layout)how, mask,
                                     mask % 2);
                    }
                td_scope_end();
            }
}

static void long_rows_and_columns_agree_with_a_loop(void **state)
{
    const td_dims shapes[] = { TD_DIMS(4097), TD_DIMS(3, 8209),
                               TD_DIMS(1031, 13), TD_DIMS(1307, 1) };
    for (size_t s = 0; s < 4; s++)
        for (int how = 0; how < LAYOUTS; how++)
            for (int t = 0; t < 2; t++) {
                td_scope_begin();
                td_tensor *x = laid_out(shapes[s],
                                        t ? TD_FLOAT64 : TD_FLOAT32,
                                        (layout)how);
                for (size_t f = 0; f < sizeof folds / sizeof *folds; f++)
                    compare_fold(&folds[f], x, (layout)how, 1, false);
                td_scope_end();
            }
}

static void sum_stays_within_its_bound(void **state)
{
    const int64_t n = 20 * 1000 * 1000;
    td_tensor *ones = td_ones(TD_DIMS(n), plain);
    assert_true(td_item_double(td_sum(ones, TD_REDUCE_DEFAULTS)) == n);
    td_tensor *x = fresh(TD_DIMS(1000003), TD_FLOAT32);
    const float *v = td_data(x);
    double exact = 0, size = 0;
    for (int64_t i = 0; i < 1000003; i++) {
        exact += v[i];
        size += fabs(v[i]);
    }
    const double got = td_item_double(td_sum(x, TD_REDUCE_DEFAULTS));
    assert_true(fabs(got - exact) <= 78 * ldexp(1, -24) * size);
}

static void a_transposed_sum_has_the_same_bits(void **state)
{
    td_tensor *x = fresh(TD_DIMS(117, 211), TD_FLOAT32);
    td_tensor *a = td_sum(x, TD_REDUCE_DEFAULTS);
    td_tensor *b = td_sum(td_t(x), TD_REDUCE_DEFAULTS);
    assert_memory_equal(td_data(a), td_data(b), 4);
}

static void dtype_option_converts_first(void **state)
{
    td_tensor *x = td_full(TD_DIMS(3), td_int(200),
                           (td_tensor_options){ .dtype = TD_UINT8 });
    td_tensor *s = td_sum(x, TD_REDUCE_DEFAULTS);
    assert_int_equal(td_dtype_of(s), TD_INT64);
    assert_int_equal(td_item_int(s), 600);
    td_reduce_options options = { .dtype = TD_FLOAT64 };
    s = td_sum(x, options);
    assert_int_equal(td_dtype_of(s), TD_FLOAT64);
    options.dtype = TD_FLOAT32;
    assert_true(td_item_double(td_mean(x, options)) == 200);
    options.dtype = TD_INT32;
    s = td_sum(x, options);
    assert_int_equal(td_dtype_of(s), TD_INT32);
    assert_int_equal(td_item_int(s), 600);
}

/* ---- special values --------------------------------------------------- */

static void nan_wins_wherever_it_stands(void **state)
{
    for (int64_t n = 1; n < 200; n += 9)
        for (int64_t at = 0; at < n; at += 4) {
            td_scope_begin();
            td_tensor *x = fresh(TD_DIMS(n), TD_FLOAT32);
            ((float *)td_data(x))[at] = NAN;
            assert_true(isnan(td_item_double(td_max(x))));
            assert_true(isnan(td_item_double(td_min(x))));
            assert_true(isnan(td_item_double(
                td_sum(x, TD_REDUCE_DEFAULTS))));
            td_arg_options all = { .keepdim = false };
            assert_int_equal(td_item_int(td_argmax(x, all)), at);
            assert_int_equal(td_item_int(td_argmin(x, all)), at);
            assert_true(td_item_int(td_any(x, TD_REDUCE_DEFAULTS)) == 1);
            td_scope_end();
        }
    td_tensor *two = fresh(TD_DIMS(5000), TD_FLOAT64);
    ((double *)td_data(two))[17] = NAN;
    ((double *)td_data(two))[4500] = NAN;
    td_arg_options all = { .keepdim = false };
    assert_int_equal(td_item_int(td_argmax(two, all)), 17);
}

static void nan_wins_down_a_column(void **state)
{
    td_tensor *x = fresh(TD_DIMS(300, 20), TD_FLOAT32);
    ((float *)td_data(x))[20 * 150 + 7] = NAN;
    td_reduce_options options = { .dims = TD_DIMS(0) };
    td_tensor *y = td_amax(x, options);
    for (int64_t j = 0; j < 20; j++)
        assert_int_equal(isnan(at(y, j)), j == 7);
}

static void a_half_is_true(void **state)
{
    td_tensor *x = td_full(TD_DIMS(3), td_float(0.5),
                           plain);
    assert_int_equal(td_item_int(td_all(x, TD_REDUCE_DEFAULTS)), 1);
    assert_int_equal(td_dtype_of(td_all(x, TD_REDUCE_DEFAULTS)), TD_BOOL);
}

static void logsumexp_of_infinities(void **state)
{
    const struct { float x[2]; double y; } cases[] = {
        { { -INFINITY, -INFINITY }, -INFINITY },
        { { INFINITY, 3 }, INFINITY }, { { -INFINITY, 2 }, 2 },
        { { 1000, 1000 }, 1000 + log(2) }, { { -1e30f, 0 }, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        td_tensor *x = td_from_data(cases[i].x, TD_DIMS(2),
                             plain);
        const double y = td_item_double(
            td_logsumexp(x, TD_REDUCE_DEFAULTS));
        assert_true(y == cases[i].y || fabs(y - cases[i].y) < 1e-4);
    }
    const float bad[] = { NAN, INFINITY };
    td_tensor *x = td_from_data(bad, TD_DIMS(2),
                         plain);
    assert_true(isnan(td_item_double(td_logsumexp(x,
                                          TD_REDUCE_DEFAULTS))));
}

/* ---- indices ---------------------------------------------------------- */

static void indices_agree_with_a_loop(void **state)
{
    static double numbers[MOST];
    const td_dims shapes[] = { TD_DIMS(5, 3), TD_DIMS(2, 3, 5),
                               TD_DIMS(3, 1, 7), TD_DIMS(2, 4100),
                               TD_DIMS(4100, 2) };
    const td_dtype dtypes[] = { TD_FLOAT32, TD_FLOAT64, TD_INT64,
                                TD_UINT8 };
    for (size_t s = 0; s < 5; s++)
    for (int t = 0; t < 4; t++)
    for (int how = 0; how < LAYOUTS; how++) {
        td_scope_begin();
        td_tensor *x = laid_out(shapes[s], dtypes[t], (layout)how);
        for (int dim = 0; dim < x->rank; dim++)
        for (int least = 0; least < 2; least++) {
            td_tensor *where;
            td_tensor *y = (least ? td_min_dim : td_max_dim)(
                x, dim - x->rank, dim % 2, &where);
            td_arg_options options = { .dim = td_some(dim) };
            td_tensor *alone = (least ? td_argmin : td_argmax)(x, options);
            assert_non_null(y);
            assert_int_equal(y->dtype, x->dtype);
            assert_int_equal(where->dtype, TD_INT64);
            for (int64_t i = 0; i < td_numel(y); i++) {
                const int64_t n = numbers_of(x, 1u << dim, i, numbers);
                int64_t best = 0;
                for (int64_t j = 1; j < n; j++)
                    if (least ? numbers[j] < numbers[best]
                              : numbers[j] > numbers[best])
                        best = j;
                assert_true(at(y, i) == numbers[best]);
                assert_int_equal((int64_t)at(where, i), best);
                assert_int_equal((int64_t)at(alone, i), best);
            }
        }
        td_scope_end();
    }
}

static void argmax_counts_in_reading_order(void **state)
{
    td_tensor *x = fresh(TD_DIMS(3, 5), TD_FLOAT32);
    ((float *)td_data(x))[7] = 100;            /* row 1, column 2 */
    td_arg_options all = { .keepdim = false };
    assert_int_equal(td_item_int(td_argmax(x, all)), 7);
    assert_int_equal(td_item_int(td_argmax(td_t(x), all)), 2 * 3 + 1);
    assert_true(td_rank(td_argmax(x, (td_arg_options){
                                       .keepdim = true })) == 2);
}

/* ---- softmax ---------------------------------------------------------- */

static void softmax_agrees_with_a_loop(void **state)
{
    static double numbers[MOST];
    const td_dims shapes[] = { { 0 }, TD_DIMS(7), TD_DIMS(5, 3),
                               TD_DIMS(2, 3, 5), TD_DIMS(3, 4099),
                               TD_DIMS(0, 3), TD_DIMS(3, 0) };
    for (size_t s = 0; s < 7; s++)
    for (int t = 0; t < 2; t++)
    for (int how = 0; how < LAYOUTS; how++)
    for (int dim = 0; dim < (shapes[s].count ? shapes[s].count : 1);
         dim++) {
        td_scope_begin();
        td_tensor *x = laid_out(shapes[s], t ? TD_FLOAT64 : TD_FLOAT32,
                                (layout)how);
        td_tensor *y = td_softmax(x, dim), *z = td_log_softmax(x, dim);
        const double u = t ? 1e-15 : 1e-6;
        assert_non_null(z);
        assert_int_equal(td_numel(y), td_numel(x));
        td_tensor *both[] = { y, z };
        const unsigned mask = x->rank ? 1u << dim : 0;
        const int64_t rows = td_numel(x) == 0 ? 0
            : td_numel(x) / (x->rank ? x->shape[dim] : 1);
        for (int64_t i = 0; i < rows; i++) {
            const int64_t n = numbers_of(x, mask, i, numbers);
            const double lse = lse_of(numbers, n);
            for (int b = 0; b < 2; b++) {
                static double got[MOST];
                numbers_of(both[b], mask, i, got);
                comparison c = { 0 };
                for (int64_t j = 0; j < n; j++) {
                    const double e = numbers[j] - lse;
                    const double slack = b ? 1 + fabs(e) : exp(e);
                    compare(&c, got[j], b ? e : exp(e), 4 * u * slack);
                }
                expect_right(c, "%s row %lld", b ? "log_softmax"
                             : "softmax", (long long)i);
            }
        }
        td_scope_end();
    }
}

static void softmax_is_stable(void **state)
{
    const float far[] = { 0, -200, 1e30f, -INFINITY };
    td_tensor *x = td_from_data(far, TD_DIMS(2),
                         plain);
    assert_true(at(td_log_softmax(x, 0), 1) == -200);
    x = td_from_data(far, TD_DIMS(4),
                     plain);
    assert_true(at(td_softmax(x, 0), 2) == 1);
    assert_true(at(td_softmax(x, 0), 3) == 0);
    x = td_from_data(far + 3, TD_DIMS(1),
                     plain);
    assert_true(isnan(at(td_softmax(x, 0), 0)));
    assert_true(isnan(at(td_log_softmax(x, 0), 0)));
}

static void a_value_does_not_depend_on_its_place(void **state)
{
    td_tensor *x = td_full(TD_DIMS(2, 103), td_float(0.37),
                           plain);
    const float *y = td_data(td_softmax(x, 1));
    for (int64_t i = 1; i < 206; i++)
        assert_memory_equal(y, y + i, 4);
}

/* ---- sum_to_size ------------------------------------------------------ */

static void sum_to_size_undoes_broadcasts(void **state)
{
    td_tensor *x = fresh(TD_DIMS(4, 3, 5), TD_FLOAT64);
    const td_dims sizes[] = { { 0 }, TD_DIMS(5), TD_DIMS(1), TD_DIMS(3, 1),
                              TD_DIMS(4, 1, 5), TD_DIMS(1, 1, 1),
                              TD_DIMS(4, 3, 5), TD_DIMS(1, 5) };
    static double numbers[MOST];
    for (size_t s = 0; s < 8; s++) {
        td_tensor *y = td_sum_to_size(x, sizes[s]);
        assert_non_null(y);
        assert_int_equal(y->rank, sizes[s].count);
        unsigned mask = 0;
        for (int d = 0; d < 3; d++) {
            const int j = d - 3 + y->rank;
            if (j < 0 || y->shape[j] == 1)
                mask |= 1u << d;
            if (j >= 0)
                assert_int_equal(y->shape[j], sizes[s].at[j]);
        }
        comparison c = { 0 };
        for (int64_t i = 0; i < td_numel(y); i++) {
            const int64_t n = numbers_of(x, mask, i, numbers);
            compare(&c, at(y, i), sum_of(numbers, n), 1e-13);
        }
        expect_right(c, "size %zu", s);
    }
    assert_true(td_data(td_sum_to_size(x, TD_DIMS(4, 3, 5)))
                == td_data(x));
}

/* ---- errors ----------------------------------------------------------- */

static void errors_say_what_is_wrong(void **state)
{
    td_tensor *x = fresh(TD_DIMS(3, 4), TD_FLOAT32);
    td_tensor *whole = fresh(TD_DIMS(3), TD_INT64);
    td_tensor *none = fresh(TD_DIMS(0, 3), TD_FLOAT32);
    td_reduce_options o = { .dims = TD_DIMS(2) };
    refused_saying(td_sum(x, o), TD_ERROR_INDEX,
                   "sum: dimension out of range (expected to be in range of "
                   "[-2, 1], but got 2)");
    o.dims = TD_DIMS(1, -1);
    refused_saying(td_amax(x, o), TD_ERROR_RUNTIME,
                   "amax: dimension 1 is named twice; got [3, 4]");
    refused_saying(td_mean(whole, TD_REDUCE_DEFAULTS), TD_ERROR_RUNTIME,
                   "mean: needs floating-point numbers, got int64; convert "
                   "with to() or dtype=");
    refused_saying(td_softmax(whole, 0), TD_ERROR_RUNTIME,
                   "softmax: needs floating-point numbers, got int64; "
                   "convert with to() or dtype=");
    refused_saying(td_max(none), TD_ERROR_RUNTIME,
                   "max: there is nothing to choose from; got [0, 3]");
    o.dims = TD_DIMS(0);
    refused_saying(td_amin(none, o), TD_ERROR_INDEX,
                   "amin: there is nothing to choose from; got [0, 3]");
    td_tensor *neither = td_zeros(TD_DIMS(0, 0), (td_tensor_options){ 0 });
    refused_saying(td_amin(neither, o), TD_ERROR_INDEX,
                   "amin: there is nothing to choose from; got [0, 0]");
    refused_saying(td_argmax(none, (td_arg_options){ .keepdim = false }),
                   TD_ERROR_RUNTIME, "argmax: there is nothing to choose "
                   "from; got [0, 3]");
    refused_saying(td_sum_to_size(x, TD_DIMS(3, 2)), TD_ERROR_RUNTIME,
                   "sum_to_size: expected a broadcast of [3, 2]; got [3, 4]");
    refused_saying(td_sum_to_size(x, TD_DIMS(1, 3, 4)), TD_ERROR_RUNTIME,
                   "sum_to_size: expected a broadcast of [1, 3, 4]; got "
                   "[3, 4]");
    refused_saying(td_log_softmax(x, -3), TD_ERROR_INDEX,
                   "log_softmax: dimension out of range (expected to be in "
                   "range of [-2, 1], but got -3)");
    td_tensor *small = td_to(x, TD_INT8);
    refused_saying(td_sum(small, TD_REDUCE_DEFAULTS), TD_ERROR_UNSUPPORTED,
                   "sum: not available for int8; convert with to()");
    assert_null(td_sum(NULL, TD_REDUCE_DEFAULTS));
    assert_true(td_failed());
    assert_null(td_sum(x, TD_REDUCE_DEFAULTS));
    td_error_clear();
}

static bool each_kind(void *context)
{
    td_tensor *x = context, *where;
    return td_sum(x, (td_reduce_options){ .dims = TD_DIMS(0) })
        && td_amax(td_to(x, TD_INT32), TD_REDUCE_DEFAULTS)
        && td_max_dim(x, 1, false, &where) && td_softmax(x, 0)
        && td_logsumexp(x, TD_REDUCE_DEFAULTS)
        && td_mean(x, TD_REDUCE_DEFAULTS);
}

static void failed_allocations_leave_nothing(void **state)
{
    td_tensor *x = fresh(TD_DIMS(200, 300), TD_FLOAT32);
    assert_in_range(fail_each_allocation(each_kind, x), 6, 240);
}

/* ---- the same bits ---------------------------------------------------- */

static td_tensor *work(int which, void *context)
{
    td_tensor *x = context;
    const td_reduce_options rows = { .dims = TD_DIMS(0) };
    const td_reduce_options columns = { .dims = TD_DIMS(1) };
    switch (which) {
    case 0: return td_sum(x, TD_REDUCE_DEFAULTS);
    case 1: return td_sum(x, rows);
    case 2: return td_sum(x, columns);
    case 3: return td_mean(td_t(x), rows);
    case 4: return td_softmax(x, 1);
    case 5: return td_log_softmax(x, 0);
    case 6: return td_logsumexp(x, columns);
    default: return td_argmax(x, (td_arg_options){ .dim = td_some(1) });
    }
}

static void same_bits_for_any_threads(void **state)
{
    td_tensor *x = fresh(TD_DIMS(521, 1409), TD_FLOAT32);
    expect_same_bits(work, 8, x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(folds_agree_with_a_loop),
        CASE(long_rows_and_columns_agree_with_a_loop),
        CASE(sum_stays_within_its_bound),
        CASE(a_transposed_sum_has_the_same_bits),
        CASE(dtype_option_converts_first),
        CASE(nan_wins_wherever_it_stands),
        CASE(nan_wins_down_a_column),
        CASE(a_half_is_true),
        CASE(logsumexp_of_infinities),
        CASE(indices_agree_with_a_loop),
        CASE(argmax_counts_in_reading_order),
        CASE(softmax_agrees_with_a_loop),
        CASE(softmax_is_stable),
        CASE(a_value_does_not_depend_on_its_place),
        CASE(sum_to_size_undoes_broadcasts),
        CASE(errors_say_what_is_wrong),
        CASE(failed_allocations_leave_nothing),
        CASE(same_bits_for_any_threads),
    };
    return cmocka_run_group_tests_name("reductions", tests, NULL, NULL);
}
