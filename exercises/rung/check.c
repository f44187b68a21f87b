/* Products on the card, of matrices that lie this way and that.  SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <treadle/matmul.h>
#include "check.h"

static const td_device card = { TD_DEVICE_CUDA, 0 }, cpu = { TD_DEVICE_CPU, 0 };
static const char *const lies[] = { "in rows", "in columns", "every second of its rows and columns", "one row, again and again" };
enum { ROWS, COLUMNS, SECOND, REPEATED };

/* A matrix on the card, whose element (c, i, j) is data[c][i][j]; with REPEATED data[c][0][j]. */
static td_tensor *matrix(td_dtype type, const void *data, int64_t batch, int64_t m, int64_t n, int lie)
{
    const size_t size = td_dtype_size(type);
    const td_opt_i64 all = { 0 };
    const int64_t rows = lie == COLUMNS ? n : lie == SECOND ? 2 * m : lie == REPEATED ? 1 : m;
    const int64_t columns = lie == COLUMNS ? m : lie == SECOND ? 2 * n : n;
    td_tensor *x = td_tensor_new(TD_DIMS(batch, rows, columns), type, cpu);
    memset(td_data(x), 0x7f, (size_t)(batch * rows * columns) * size);
    for (int64_t c = 0; c < batch; c++)
        for (int64_t i = 0; i < (lie == REPEATED ? 1 : m); i++)
            for (int64_t j = 0; j < n; j++) {
                const int64_t at = lie == COLUMNS ? j * m + i : lie == SECOND ? 2 * i * columns + 2 * j : i * n + j;
                memcpy((char *)td_data(x) + (size_t)(c * rows * columns + at) * size,
                       (const char *)data + (size_t)((c * m + i) * n + j) * size, size);
            }
    x = td_to_device(x, card);
    x = lie == COLUMNS ? td_transpose(x, 1, 2) : lie == REPEATED ? td_expand(x, TD_DIMS(batch, m, n))
      : lie == SECOND ? td_slice(td_slice(x, 1, all, all, 2), 2, all, all, 2) : x;
    return batch == 1 ? td_select(x, 0, 0) : x;
}

#define PRODUCT_OF(T, type, name, wide)                                                                    \
    static void check_##name(const char *what, const T *a, const T *b, int64_t batch, int64_t m, int64_t n, int64_t k, \
                             int lie_a, int lie_b)                                                         \
    {                                                                                                      \
        char text[200];                                                                                    \
        snprintf(text, sizeof text, "%s, [%d,%d] times [%d,%d], of type " #T ", A %s, B %s", what, (int)m, (int)k, (int)k, \
                 (int)n, lies[lie_a], lies[lie_b]);                                                        \
        check_case(text, "C[i][j] = A[i][0] B[0][j] + A[i][1] B[1][j] + ..., in this order");              \
        td_scope_begin();                                                                                  \
        td_tensor *x = matrix(type, a, batch, m, k, lie_a), *y = matrix(type, b, batch, k, n, lie_b);      \
        td_tensor *z = td_matmul(x, y);                                                                    \
        td_synchronise(card);                                                                              \
        check_no_error();                                                                                  \
        const T *got = td_data(td_to_host(z));                                                             \
        check_no_error();                                                                                  \
        for (int64_t c = 0; c < batch; c++)                                                                \
            for (int64_t i = 0; i < m; i++)                                                                \
                for (int64_t j = 0; j < n; j++) {                                                          \
                    T sum = 0;                                                                             \
                    for (int64_t l = 0; l < k; l++)                                                        \
                        sum += a[(c * m + (lie_a == REPEATED ? 0 : i)) * k + l]                            \
                             * b[(c * k + (lie_b == REPEATED ? 0 : l)) * n + j];                           \
                    const T is = got[(c * m + i) * n + j];                                                 \
                    if (is != sum && (is == is || sum == sum))                                             \
                        check_wrong("  first bad element (%d, %d) of matrix %d\n  expected  " wide "\n  got       " wide, \
                                    (int)i, (int)j, (int)c, sum, is);                                      \
                }                                                                                          \
        td_scope_end();                                                                                    \
    }
PRODUCT_OF(float, TD_FLOAT32, float, "%.9g")
PRODUCT_OF(double, TD_FLOAT64, double, "%.17g")
PRODUCT_OF(int64_t, TD_INT64, whole, "%" PRId64)

static float f[2][9000];
static double d[2][3000];
static int64_t w[2][3000];

static void check_counts(void)
{
    static const char *const what[] = { "sectors of device memory, of a request on average: two rows, or columns, of 16 floats lie in 4",
        "accesses of the busiest thread, to those of all threads on average: 1 if the work is shared",
        "requests of warps: 2 for each step and 1 for the results, of each of 8 warps of 4 blocks" };
    double (*counted)(int what) = NULL;
    char path[4000];
    snprintf(path, sizeof path, "%s/libtreadle_emulate_checked.so", getenv("TREADLE_PLUGINS"));
    void *plugin = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (plugin != NULL)
        *(void **)&counted = dlsym(plugin, "counted");
    const double allowed[] = { 4, 1.01, 4 * (4 * 8 * (2 * 2 + 1)) };
    for (int k = 0; k < 3; k++) {
        check_case("requests of whole warps, in the four products above", what[k]);
        const double got = counted ? counted(k) : -1;
        if (!(got >= 0 && got <= allowed[k]))
            check_wrong("  expected  at most %g\n  got       %g", allowed[k], got);
    }
}

int main(void)
{
    for (int side = 0; side < 2; side++)
        for (int k = 0; k < 9000; k++) {
            f[side][k] = (float)(k * (side ? 31 : 37) % 19 - 9);
            if (k < 3000)
                d[side][k] = k * (side ? 31 : 37) % 19 / 8.0 + 0x1p-23, w[side][k] = (k * (side ? 31 : 37) % 19 - 9) * 40000000 + k;
        }
    for (int k = 0; k < 4; k++)
        check_float("whole squares", f[0], f[1], 1, 32, 32, 32, k / 2, k % 2);
    check_counts();
    check_float("one square", f[0], f[1], 1, 16, 16, 16, ROWS, ROWS);
    check_float("small numbers", f[0], f[1], 1, 3, 5, 7, ROWS, ROWS);
    check_float("one number", f[0], f[1], 1, 1, 1, 1, ROWS, ROWS);
    check_float("three steps", f[0], f[1], 1, 16, 16, 48, ROWS, ROWS);
    for (int k = 0; k < 16; k++)
        check_float("ragged in all directions", f[0], f[1], 1, 23, 19, 37, k / 4, k % 4);
    check_float("nothing to add", f[0], f[1], 1, 5, 7, 0, ROWS, ROWS);
    check_float("three products in one", f[0], f[1], 3, 17, 5, 18, ROWS, COLUMNS);
    check_double("numbers that a float cannot hold", d[0], d[1], 1, 5, 19, 21, ROWS, COLUMNS);
    check_whole("numbers that a double cannot hold", w[0], w[1], 1, 18, 6, 33, COLUMNS, ROWS);
    for (int l = 0; l < 40; l++)
        f[0][l] = l == 0 ? 0x1p24f : l == 39 ? -0x1p24f : 1, f[1][l] = 1;
    check_float("numbers whose rounding tells the order", f[0], f[1], 1, 1, 1, 40, ROWS, ROWS);
    for (int l = 0; l < 340; l++)
        f[0][l] = l % 17 == 16 ? INFINITY : 1, f[1][l] = l % 20 == 3 ? -INFINITY : 2;
    check_float("an infinity beside the edge", f[0], f[1], 1, 20, 3, 17, ROWS, ROWS);
    check_float("an infinity beside the edge", f[0], f[1], 1, 3, 20, 17, ROWS, ROWS);
    f[0][5] = 0, f[1][5] = INFINITY;
    check_float("zero times infinity", f[0], f[1], 1, 1, 1, 9, ROWS, ROWS);
    return check_end();
}
