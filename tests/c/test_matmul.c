/* needs: matmul */
/* Products against the formula in double: sizes around every tile edge,
   strides, batches, types; errors; the same bits for any threads. */
#include "treadle_test.h"
#include "../examples/matmul-ladder.h"
#include "ops/gemm.h"
#include "core/memory.h"
#include "core/runtime.h"

/* ---- the core, on bare memory ----------------------------------------- */

/* One product in one type, checked entry by entry.  `turn` bit 0: a is
   stored transposed, bit 1: b is. */
static void check_product(td_dtype dtype, int64_t m, int64_t n, int64_t k,
                          int turn, double alpha, double beta)
{
    const size_t size = td_dtype_size(dtype);
    const double u = dtype == TD_FLOAT32 ? ldexp(1, -24) : ldexp(1, -53);
    const int64_t ldc = n + 3;
    const int64_t rsa = turn & 1 ? 1 : k, csa = turn & 1 ? m : 1;
    const int64_t rsb = turn & 2 ? 1 : n, csb = turn & 2 ? k : 1;
    char *a = malloc((size_t)(m * k + 1) * size);
    char *b = malloc((size_t)(k * n + 1) * size);
    char *c = malloc((size_t)(m * ldc + 1) * size);
    double *da = malloc((size_t)(m * k + 1) * 8);
    double *db = malloc((size_t)(k * n + 1) * 8);
    double *dc = malloc((size_t)(m * ldc + 1) * 8);
    double *got = malloc((size_t)(m * ldc + 1) * 8);
    for (int64_t i = 0; i < m * k; i++)
        da[i] = (float)(uniform() - 0.4);
    for (int64_t i = 0; i < k * n; i++)
        db[i] = (float)(uniform() - 0.6);
    for (int64_t i = 0; i < m * ldc; i++)
        dc[i] = beta == 0 ? NAN : (float)uniform();
    td_convert(dtype, a, 1, TD_FLOAT64, da, 1, m * k);
    td_convert(dtype, b, 1, TD_FLOAT64, db, 1, k * n);
    td_convert(dtype, c, 1, TD_FLOAT64, dc, 1, m * ldc);
    assert_true(td_gemm(dtype, &(td_product){
        m, n, k, alpha, beta, a, rsa, csa, b, rsb, csb, c, ldc, NULL }));
    td_convert(TD_FLOAT64, got, 1, dtype, c, 1, m * ldc);
    comparison entries = { 0 };
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < ldc; j++) {
            const double before = dc[i * ldc + j];
            double sum = 0, magnitude = 0;
            for (int64_t p = 0; j < n && p < k; p++) {
                const double t = da[i * rsa + p * csa]
                               * db[p * rsb + j * csb];
                sum += t;
                magnitude += fabs(t);
            }
            double expected = alpha * sum
                            + (beta == 0 ? 0 : beta * before);
            double slack = ((double)(k + 3) * fabs(alpha) * magnitude
                     + (beta == 0 ? 0 : 3 * fabs(beta * before))) * u;
            if (j >= n) {              /* not ours to touch */
                expected = before;
                slack = 0;
            }
            compare(&entries, got[i * ldc + j], expected, slack);
        }
    expect_right(entries, "%s m %lld n %lld k %lld turn %d alpha %g beta %g",
                 td_dtype_name(dtype), (long long)m, (long long)n,
                 (long long)k, turn, alpha, beta);
    free(a); free(b); free(c); free(da); free(db); free(dc); free(got);
}

static void products_agree_with_the_formula(void **state)
{
    const int64_t sizes[] = { 1, 2, 5, 6, 7, 13, 14, 15, 16, 17, 31, 33,
                              67 };
    const int many = sizeof sizes / sizeof *sizes;
    for (int i = 0; i < many; i++)
        for (int j = 0; j < many; j++)
            for (int l = 0; l < many; l++) {
                const int turn = (i + j + l) % 4;
                const double beta = (i + 2 * j + l) % 3 * 0.5;
                check_product(TD_FLOAT32, sizes[i], sizes[j], sizes[l],
                              turn, 1.5, beta);
                check_product(TD_FLOAT64, sizes[i], sizes[j], sizes[l],
                              turn ^ 3, 1, beta);
            }
}

static void large_products_agree_with_the_formula(void **state)
{
    for (int turn = 0; turn < 4; turn++) {
        check_product(TD_FLOAT32, 151, 137, 811, turn, 1, 0);
        check_product(TD_FLOAT32, 151, 277, 1101, turn, 1, 0);      /* three stretches, b packed */
        check_product(TD_FLOAT32, 353, 101, 97, turn, 0.5, 1);
        check_product(TD_FLOAT32, 40, 300, 1101, turn, 1, 0.5);     /* slivers that the first tile keeps */
        for (int m = 2; m < 6; m++) {           /* few rows, fewer than four of them too */
            check_product(TD_FLOAT32, m, 640, 900, turn, 1, 1);
            check_product(TD_FLOAT64, 14 + m, 230, 500, turn, 1, 0);
        }
        check_product(TD_FLOAT32, 29, 2087, 41, turn, 1, 0.25);
        check_product(TD_FLOAT64, 131, 273, 601, turn, 1, 1);
        check_product(TD_FLOAT32, 1, 1031, 5003, turn, 1, 0);
        check_product(TD_FLOAT64, 1031, 1, 4099, turn, 2, 1);
    }
}

static void an_empty_sum_is_zero(void **state)
{
    check_product(TD_FLOAT32, 3, 4, 0, 0, 1, 0);
    check_product(TD_FLOAT64, 30, 40, 0, 0, 1, 2);
    check_product(TD_FLOAT32, 1, 4, 0, 0, 1, 0);
    check_product(TD_FLOAT32, 0, 4, 3, 0, 1, 0);
    check_product(TD_FLOAT32, 4, 0, 3, 0, 1, 0);
}

static void every_level_agrees_with_the_formula(void **state)
{
    const char *const levels[] = { "base", "v1", "v2", "v3", "v4" };
    char best[16];
    const int before = td_threads();
    snprintf(best, sizeof best, "%s", td_isa());
    for (int l = 0; l < 5; l++) {
        if (!td_set_isa(levels[l])) {
            td_error_clear();
            continue;
        }
        for (int n = 1; n <= 16; n *= 2)        /* one vector wide */
            for (int threads = 1; threads <= 3; threads += 2) {
                assert_true(td_set_threads(threads));
                check_product(TD_FLOAT32, 100, n, 10100 / n, 0, 1, 0);
                check_product(TD_FLOAT64, 100, n, 10100 / n, 0, 1, 0);
            }
        for (int turn = 0; turn < 4; turn++) {
            check_product(TD_FLOAT32, 47, 71, 601, turn, 1, 0);
            check_product(TD_FLOAT64, 47, 71, 601, turn, 1, 0.5);
            check_product(TD_FLOAT32, 203, 139, 97, turn, 1, 1);
            check_product(TD_FLOAT32, 1, 171, 97, turn, 1, 1);
        }
    }
    assert_true(td_set_isa(best));
    assert_true(td_set_threads(before));
}

static void products_agree_with_the_ladder(void **state)
{
    const int64_t m = 37, n = 53, k = 71;
    float a[37 * 71], b[71 * 53], c[37 * 53], d[37 * 53];
    double x[37 * 71], y[71 * 53], z[37 * 53];
    for (int64_t i = 0; i < m * k; i++)
        x[i] = a[i] = (float)(uniform() - 0.5);
    for (int64_t i = 0; i < k * n; i++)
        y[i] = b[i] = (float)(uniform() - 0.5);
    rung_0(m, n, k, a, b, c);
    td_product of = { .m = m, .n = n, .k = k, .alpha = 1, .a = a,
                      .rsa = k, .csa = 1, .b = b, .rsb = n, .csb = 1,
                      .c = d, .ldc = n };
    assert_true(td_gemm(TD_FLOAT32, &of));
    of.a = x, of.b = y, of.c = z;
    assert_true(td_gemm(TD_FLOAT64, &of));
    comparison single = { 0 }, twice = { 0 };
    for (int64_t i = 0; i < m * n; i++) {
        compare(&single, d[i], c[i], 1e-5);
        compare(&twice, z[i], c[i], 1e-5);
    }
    expect_right(single, "float32");
    expect_right(twice, "float64");
}

/* ---- tensors ----------------------------------------------------------- */

static td_tensor *laid_out(td_dims shape, td_dtype dtype, layout how)
{
    const bool floating = td_dtype_is_floating(dtype);
    return random_tensor(shape, dtype, how, floating ? -0.9 : 0,
                         floating ? 1.1 : 12);
}

static td_tensor *fresh(td_dims shape, td_dtype dtype)
{
    return laid_out(shape, dtype, PLAIN);
}

/* Offset of the matrix that element `index` of `batch` names in x. */
static int64_t matrix_of(const td_tensor *x, const td_dims *batch,
                         int64_t index)
{
    int64_t offset = 0;
    for (int d = batch->count - 1; d >= 0; d--) {
        const int own = d - batch->count + x->rank - 2;
        if (own >= 0 && x->shape[own] != 1)
            offset += index % batch->at[d] * x->strides[own];
        index /= batch->at[d];
    }
    return offset;
}

static void compare_matmul(td_tensor *x, td_tensor *y, const char *what)
{
    td_tensor *out = td_matmul(x, y);
    if (!out)
        fail_msg("%s: %s", what, td_error_message());
    const int64_t m = x->rank > 1 ? x->shape[x->rank - 2] : 1;
    const int64_t k = x->shape[x->rank - 1];
    const int64_t n = y->rank > 1 ? y->shape[y->rank - 1] : 1;
    const int64_t rsx = x->rank > 1 ? x->strides[x->rank - 2] : 0;
    const int64_t csx = x->strides[x->rank - 1];
    const int64_t rsy = y->strides[y->rank > 1 ? y->rank - 2 : 0];
    const int64_t csy = y->rank > 1 ? y->strides[y->rank - 1] : 0;
    td_dims batch = { 0 };
    for (int d = 0; d < out->rank - (x->rank > 1) - (y->rank > 1); d++)
        batch.at[batch.count++] = out->shape[d];
    comparison c = { 0 };
    for (int64_t i = 0; i < td_numel(out); i++) {
        const int64_t b = i / (m * n), row = i / n % m, column = i % n;
        const int64_t ox = matrix_of(x, &batch, b) + row * rsx;
        const int64_t oy = matrix_of(y, &batch, b) + column * csy;
        double sum = 0, size = 0;
        for (int64_t p = 0; p < k; p++) {
            const double t = element_at(x, ox + p * csx)
                           * element_at(y, oy + p * rsy);
            sum += t;
            size += fabs(t);
        }
        const double slack = x->dtype == TD_FLOAT32
            ? (double)(k + 1) * ldexp(size, -24)
            : (double)(k + 1) * ldexp(size, -53);
        compare(&c, at(out, i), sum, slack);
    }
    expect_right(c, "%s %s", what, td_dtype_name(x->dtype));
}

static void matmul_of_every_rank_and_layout(void **state)
{
    const struct { td_dims x, y; int rank; const char *name; } cases[] = {
        { TD_DIMS(5), TD_DIMS(5), 0, "[5] [5]" },
        { TD_DIMS(3, 5), TD_DIMS(5), 1, "[3,5] [5]" },
        { TD_DIMS(5), TD_DIMS(5, 3), 1, "[5] [5,3]" },
        { TD_DIMS(3, 5), TD_DIMS(5, 7), 2, "[3,5] [5,7]" },
        { TD_DIMS(1, 5), TD_DIMS(5, 1), 2, "[1,5] [5,1]" },
        { TD_DIMS(2, 3, 5), TD_DIMS(5, 7), 3, "[2,3,5] [5,7]" },
        { TD_DIMS(2, 3, 5), TD_DIMS(5), 2, "[2,3,5] [5]" },
        { TD_DIMS(5), TD_DIMS(2, 5, 3), 2, "[5] [2,5,3]" },
        { TD_DIMS(3, 5), TD_DIMS(4, 5, 7), 3, "[3,5] [4,5,7]" },
        { TD_DIMS(4, 3, 5), TD_DIMS(4, 5, 7), 3, "[4,3,5] [4,5,7]" },
        { TD_DIMS(5, 1, 2, 3), TD_DIMS(4, 3, 2), 4,
          "[5,1,2,3] [4,3,2]" },
        { TD_DIMS(2, 1, 1, 3), TD_DIMS(1, 4, 3, 2), 4,
          "[2,1,1,3] [1,4,3,2]" },
        { TD_DIMS(6, 1, 5), TD_DIMS(5, 7), 3, "[6,1,5] [5,7]" },
        { TD_DIMS(2, 40, 33), TD_DIMS(33, 50), 3, "[2,40,33] [33,50]" },
        { TD_DIMS(3, 0), TD_DIMS(0, 4), 2, "[3,0] [0,4]" },
        { TD_DIMS(0, 3), TD_DIMS(3, 4), 2, "[0,3] [3,4]" },
        { TD_DIMS(0, 2, 3), TD_DIMS(3, 4), 3, "[0,2,3] [3,4]" },
        { TD_DIMS(2, 3, 0), TD_DIMS(0), 2, "[2,3,0] [0]" },
    };
    const td_dtype dtypes[] = { TD_FLOAT32, TD_FLOAT64, TD_INT64, TD_INT32 };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int t = 0; t < 4; t++)
            for (int how = 0; how < 16; how++) {
                td_scope_begin();
                td_tensor *x = laid_out(cases[c].x, dtypes[t], how % 4);
                td_tensor *y = laid_out(cases[c].y, dtypes[t], how / 4);
                compare_matmul(x, y, cases[c].name);
                td_tensor *out = td_matmul(x, y);
                assert_int_equal(out->rank, cases[c].rank);
                td_scope_end();
            }
}

static void integers_wrap_around(void **state)
{
    const int32_t big[] = { INT32_MAX, INT32_MAX };
    td_tensor *x = td_from_data(big, TD_DIMS(2),
                         (td_tensor_options){ .dtype = TD_INT32 });
    const uint32_t square = (uint32_t)INT32_MAX * INT32_MAX;
    assert_int_equal(td_item_int(td_dot(x, x)), (int32_t)(2 * square));
    const uint8_t small[] = { 200, 100 };
    x = td_from_data(small, TD_DIMS(2),
              (td_tensor_options){ .dtype = TD_UINT8 });
    assert_int_equal(td_item_int(td_dot(x, x)),
                     (200 * 200 + 100 * 100) % 256);
}

static void broadcast_batches_are_not_copied(void **state)
{
    td_tensor *w = fresh(TD_DIMS(64, 64), TD_FLOAT32);
    td_tensor *x = td_expand(fresh(TD_DIMS(1, 64, 64), TD_FLOAT32),
                             TD_DIMS(500, 64, 64));
    td_matmul(w, td_slice(x, 0, (td_opt_i64)td_some(0),
                          (td_opt_i64)td_some(2), 1));
    const int64_t before = td_memory_stats().bytes;
    td_memory_reset_peak();
    assert_non_null(td_matmul(w, x));
    assert_true(td_memory_stats().peak_bytes - before
                < 500 * 64 * 64 * 4 + (1 << 20));
}

/* ---- linear, addmm, bmm, dot ------------------------------------------- */

static void linear_is_a_turned_product_and_a_bias(void **state)
{
    const td_dims inputs[] = { TD_DIMS(5), TD_DIMS(3, 5), TD_DIMS(2, 3, 5),
                               TD_DIMS(0, 5), TD_DIMS(70, 5) };
    for (int i = 0; i < 5; i++)
        for (int how = 0; how < 3; how++)
            for (int t = 0; t < 3; t++) {
                const td_dtype dtype = t == 0 ? TD_FLOAT32
                                     : t == 1 ? TD_FLOAT64 : TD_INT64;
                td_scope_begin();
                td_tensor *x = laid_out(inputs[i], dtype, how);
                td_tensor *w = laid_out(TD_DIMS(7, 5), dtype, how);
                td_tensor *b = laid_out(TD_DIMS(7), dtype, how);
                td_tensor *bare = td_linear(x, w, NULL);
                td_tensor *y = td_linear(x, w, b);
                td_tensor *z = td_matmul(x, td_t(w));
                assert_int_equal(y->rank, x->rank);
                comparison c = { 0 };
                for (int64_t j = 0; j < td_numel(y); j++) {
                    compare(&c, at(bare, j), at(z, j), 1e-5);
                    compare(&c, at(y, j), at(z, j) + at(b, j % 7), 1e-5);
                }
                expect_right(c, "linear without and with a bias");
                td_scope_end();
            }
}

static void addmm_scales_and_broadcasts(void **state)
{
    td_tensor *a = fresh(TD_DIMS(3, 5), TD_FLOAT64);
    td_tensor *b = fresh(TD_DIMS(5, 4), TD_FLOAT64);
    td_tensor *c = td_matmul(a, b);
    const td_dims shapes[] = { { 0 }, TD_DIMS(4), TD_DIMS(1), TD_DIMS(3, 1),
                               TD_DIMS(1, 4), TD_DIMS(3, 4) };
    for (int s = 0; s < 6; s++) {
        td_tensor *x = fresh(shapes[s], TD_FLOAT64);
        td_tensor *all = td_expand(x, TD_DIMS(3, 4));
        td_tensor *y = td_addmm(x, a, b, td_float(0.5), td_int(2));
        assert_non_null(y);
        comparison sums = { 0 };
        for (int64_t i = 0; i < 12; i++)
            compare(&sums, at(y, i), 0.5 * at(all, i) + 2 * at(c, i), 1e-14);
        expect_right(sums, "addmm");
    }
    td_tensor *bad = td_full(TD_DIMS(4), td_float(NAN),
                             wide);
    td_tensor *y = td_addmm(bad, a, b, td_int(0), td_int(1));
    for (int64_t i = 0; i < 12; i++)
        assert_true(at(y, i) == at(c, i));
}

static void addmm_of_whole_numbers(void **state)
{
    td_tensor *x = fresh(TD_DIMS(3, 3), TD_INT64);
    td_tensor *y = td_addmm(x, x, x, td_int(3), td_int(-2));
    td_tensor *z = td_matmul(x, x);
    for (int64_t i = 0; i < 9; i++)
        assert_true(at(y, i) == 3 * at(x, i) - 2 * at(z, i));
}

/* ---- errors ------------------------------------------------------------ */

static void errors_say_what_is_wrong(void **state)
{
    td_tensor *x = fresh(TD_DIMS(2, 3), TD_FLOAT32);
    td_tensor *y = fresh(TD_DIMS(4, 5), TD_FLOAT32);
    td_tensor *v = fresh(TD_DIMS(4), TD_FLOAT32);
    td_tensor *s = fresh(TD_RANK_0, TD_FLOAT32);
    td_tensor *i = fresh(TD_DIMS(3, 2), TD_INT64);
    refused_saying(td_matmul(x, y), TD_ERROR_RUNTIME,
                   "matmul: shapes do not match: the columns of the first "
                   "must be as many as the rows of the second; got [2, 3] "
                   "and [4, 5]");
    refused_saying(td_matmul(x, s), TD_ERROR_RUNTIME,
                   "matmul: operands must have a dimension each; got "
                   "[2, 3] and []");
    refused_saying(td_matmul(x, i), TD_ERROR_RUNTIME,
                   "matmul: operands have types float32 and int64; both "
                   "must have one");
    refused_saying(td_matmul(fresh(TD_DIMS(2, 3, 4), TD_FLOAT32),
                             fresh(TD_DIMS(3, 4, 2), TD_FLOAT32)),
                   TD_ERROR_RUNTIME, "matmul: batch: shapes [2] and [3] do "
                   "not broadcast (dimension 0: 2 against 3)");
    td_tensor *small = td_to(x, TD_INT8);
    refused_saying(td_matmul(small, small), TD_ERROR_UNSUPPORTED,
                   "matmul: not available for int8; convert with to()");
    refused_saying(td_linear(x, y, NULL), TD_ERROR_RUNTIME,
                   "linear: shapes do not match: expected an input of "
                   "[..., in], a weight of [out, in] and a bias of [out]; "
                   "got [2, 3] and [4, 5]");
    refused_saying(td_linear(fresh(TD_DIMS(2, 5), TD_FLOAT32), y,
                             fresh(TD_DIMS(5), TD_FLOAT32)),
                   TD_ERROR_RUNTIME, "linear: shapes do not match: "
                   "expected an input of [..., in], a weight of [out, in] "
                   "and a bias of [out]; got [2, 5] and [4, 5] and [5]");
    refused_saying(td_dot(v, y), TD_ERROR_RUNTIME,
                   "dot: expected two vectors of equal length; got [4] and "
                   "[4, 5]");
    refused_saying(td_bmm(x, y), TD_ERROR_RUNTIME,
                   "bmm: expected two stacks of equally many matrices; got "
                   "[2, 3] and [4, 5]");
    refused_saying(td_addmm(v, x, y, td_int(1), td_int(1)), TD_ERROR_RUNTIME,
                   "addmm: shapes do not match: expected matrices mat1 of "
                   "[m, k] and mat2 of [k, n]; got [4] and [2, 3] and "
                   "[4, 5]");
    refused_saying(td_addmm(v, x, td_t(x), td_int(1), td_int(1)),
                   TD_ERROR_RUNTIME, "addmm: the first operand does not "
                   "broadcast to the product of the others; got [4] and "
                   "[2, 3] and [3, 2]");
    refused_saying(td_addmm(i, i, td_t(i), td_float(0.5), td_int(1)),
                   TD_ERROR_RUNTIME, "addmm: beta is 0.5, but operands of "
                   "type int64 need a whole number");
    assert_null(td_matmul(NULL, x));
    assert_true(td_failed());
    td_error_clear();
}

static bool both_products(void *context)
{
    td_tensor **in = context;
    return td_matmul(in[0], in[1])
        && td_linear(td_transpose(in[1], 1, 2), in[0], in[2]);
}

static void failed_allocations_leave_nothing(void **state)
{
    td_tensor *x = fresh(TD_DIMS(300, 310), TD_FLOAT32);
    td_tensor *y = fresh(TD_DIMS(5, 310, 90), TD_FLOAT32);
    td_tensor *b = fresh(TD_DIMS(300), TD_FLOAT32);
    td_tensor *in[] = { x, y, b };
    assert_in_range(fail_each_allocation(both_products, in), 2, 80);
}

/* ---- the same bits ------------------------------------------------------ */

static td_tensor *work(int which, void *context)
{
    td_tensor **x = context;
    switch (which) {
    case 0: return td_matmul(x[0], x[1]);
    case 1: return td_matmul(td_t(x[1]), td_t(x[0]));
    case 2: return td_matmul(x[2], x[3]);
    case 3: return td_matmul(x[0], x[4]);
    case 4: return td_matmul(x[5], x[0]);
    default: return td_linear(x[2], td_t(x[1]), x[5]);
    }
}

static void same_bits_for_any_threads(void **state)
{
    td_tensor *x[] = {
        fresh(TD_DIMS(257, 401), TD_FLOAT32),
        fresh(TD_DIMS(401, 257), TD_FLOAT32),
        fresh(TD_DIMS(61, 23, 401), TD_FLOAT32),
        fresh(TD_DIMS(61, 401, 19), TD_FLOAT32),
        fresh(TD_DIMS(401), TD_FLOAT32),
        fresh(TD_DIMS(257), TD_FLOAT32),
    };
    expect_same_bits(work, 6, x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(products_agree_with_the_formula),
        CASE(large_products_agree_with_the_formula),
        CASE(an_empty_sum_is_zero),
        CASE(every_level_agrees_with_the_formula),
        CASE(products_agree_with_the_ladder),
        CASE(matmul_of_every_rank_and_layout),
        CASE(integers_wrap_around),
        CASE(broadcast_batches_are_not_copied),
        CASE(linear_is_a_turned_product_and_a_bias),
        CASE(addmm_scales_and_broadcasts),
        CASE(addmm_of_whole_numbers),
        CASE(errors_say_what_is_wrong),
        CASE(failed_allocations_leave_nothing),
        CASE(same_bits_for_any_threads),
    };
    return cmocka_run_group_tests_name("matmul", tests, NULL, NULL);
}
