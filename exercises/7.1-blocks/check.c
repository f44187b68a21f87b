/* Rung 2: its numbers, its edges, and that it goes block by block. */
#include "check.h"
#include "gemm-ladder.h"

static const char *formula = "c[i][j] = sum over p of a[i][p] * b[p][j]";

static void check_product(const char *what, int m, int n, int k)
{
    float *a = malloc((size_t)(m * k) * sizeof *a), *b = malloc((size_t)(k * n) * sizeof *b);
    float *c = malloc((size_t)(m * n) * sizeof *c), *expected = calloc((size_t)(m * n), sizeof *c);
    for (int i = 0; i < m * k; i++)
        a[i] = (float)(i * 37 % 11) - 4;
    for (int i = 0; i < k * n; i++)
        b[i] = (float)(i * 53 % 13) - 5;
    for (int i = 0; i < m * n; i++)
        c[i] = NAN;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            for (int p = 0; p < k; p++)
                expected[i * n + j] += a[i * k + p] * b[p * n + j];
    check_case(what, formula);
    rung_2(m, n, k, a, b, c);
    check_floats(c, expected, m * n, 0);
    free(a), free(b), free(c), free(expected);
}

/* The two rows of C are also the rows 64 and 65 of B, the second block.
   While the first block is in use both rows must change, so that row 0
   then meets in row 65 what the first block left there. */
static void check_order(void)
{
    enum { N = 3, K = 66 };
    float a[2 * K], b[K * N], sum[2][N] = { { 0 } };
    for (int i = 0; i < 2 * K; i++)
        a[i] = (float)(i * 37 % 5) - 2;
    for (int i = 0; i < K * N; i++)
        b[i] = (float)(i * 53 % 7) - 2;
    a[64] = a[K + 65] = 0, a[65] = a[K + 64] = 2;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < N; j++)
            for (int p = 0; p < 64; p++)
                sum[i][j] += a[i * K + p] * b[p * N + j];
    for (int j = 0; j < N; j++)
        sum[0][j] += 2 * sum[1][j];
    for (int j = 0; j < N; j++)
        sum[1][j] += 2 * sum[0][j];
    rung_2(2, N, K, a, b, b + 64 * N);
    check_case("a block is used up before the next (C shares memory with the second block of B)",
               "for each block: for every row i: c[i][j] += a[i][p] * b[p][j]");
    check_floats(b + 64 * N, sum[0], 2 * N, 0);
}

int main(void)
{
    check_product("2 x 2 by 2 x 2", 2, 2, 2);
    check_product("131 rows of B, three blocks deep", 3, 5, 131);
    check_product("600 columns of B, two blocks wide", 5, 600, 7);
    check_product("a ragged edge on both sides", 7, 1031, 193);
    check_product("one row by one column", 1, 1, 1);
    check_order();
    return check_end();
}
