/* Rung 2: its numbers, its edges, how they round, and that it goes block by block. */
#include "check.h"

enum { DEPTH = 64, WIDTH = 512 };
void rung_2_between(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c);
static const char *formula = "c[i][j] = sum over p of a[i][p] * b[p][j]";

/* What the frame asks for, block by block; the order within a block is rung 1's. */
static void by_the_frame(int m, int n, int k, const float *a, const float *b, float *c)
{
    for (int p0 = 0; p0 < k; p0 += DEPTH)
        for (int j0 = 0; j0 < n; j0 += WIDTH)
            for (int i = 0; i < m; i++)
                for (int p = p0; p < k && p < p0 + DEPTH; p++)
                    for (int j = j0; j < n && j < j0 + WIDTH; j++)
                        c[i * n + j] += a[i * k + p] * b[p * n + j];
}

/* `per` divides whole numbers: sums of eighths are exact, those of sevenths round. */
static void check_product(const char *what, const char *how, int m, int n, int k, float per, float special)
{
    float *a = malloc((size_t)(m * k) * sizeof *a), *b = malloc((size_t)(k * n) * sizeof *b);
    float *c = malloc((size_t)(m * n) * sizeof *c), *expected = calloc((size_t)(m * n), sizeof *c);
    for (int i = 0; i < m * k; i++)
        a[i] = ((float)(i * 37 % 11) - 4) / per;
    for (int i = 0; i < k * n; i++)
        b[i] = ((float)(i * 53 % 13) - 5) / per;
    for (int i = 0; i < m * n; i++)
        c[i] = NAN;
    if (special != 0)
        a[1] = 0, b[n] = special, b[n + 1] = -special;
    by_the_frame(m, n, k, a, b, expected);
    check_case(what, how);
    rung_2_between(m, n, k, a, b, c);
    check_floats(c, expected, m * n, 0);
    free(a), free(b), free(c), free(expected);
}

/* C shares memory with rows `from`, `from` + 1 and so on of B, from column
   512 on, so that the left half of each row of C is the right half of a row of
   B, and its right half the left half of the next.  Within a block nothing is
   read that is also written, so only the order of the blocks shows: whether
   both halves of C have the sums of the first 64 rows, and nothing else, when
   the second 64 begin. */
static void check_order(const char *what, int from)
{
    enum { N = 2 * WIDTH, K = 66, ROWS = 2, ALL = (K + ROWS) * N + WIDTH };
    float a[ROWS * K], *b = malloc(ALL * sizeof *b), *expected = malloc(ALL * sizeof *b);
    for (int i = 0; i < ROWS * K; i++)
        a[i] = (float)(i * 37 % 5) - 1;
    a[64] = a[65] = a[K + 64] = a[K + 65] = 2;
    for (int i = 0; i < ALL; i++)
        b[i] = (float)(i * 53 % 7) - 2;
    const int c = from * N + WIDTH;
    memset(b + c, 0, ROWS * N * sizeof *b);
    memcpy(expected, b, ALL * sizeof *b);
    by_the_frame(ROWS, N, K, a, expected, expected + c);
    check_case(what, "for p0 = 0, 64, ...: for j0 = 0, 512, ...: the whole block, for all rows of C");
    rung_2_between(ROWS, N, K, a, b, b + c);
    check_floats(b + c, expected + c, ROWS * N, 0);
    free(b), free(expected);
}

int main(void)
{
    const char *one_by_one = "c[i][j] = (((0 + a[i][0] * b[0][j]) + a[i][1] * b[1][j]) + ...), in this order";
    check_product("2 x 2 by 2 x 2", formula, 2, 2, 2, 1, 0);
    check_product("131 rows of B, three blocks deep", formula, 3, 5, 131, 1, 0);
    check_product("600 columns of B, two blocks wide", formula, 5, 600, 7, 1, 0);
    check_product("a ragged edge on both sides", formula, 7, 1031, 193, 1, 0);
    check_product("one row by one column", formula, 1, 1, 1, 1, 0);
    check_product("whole blocks and nothing left", formula, 2, 1024, 128, 1, 0);
    check_product("B without rows: sums of nothing", formula, 2, 3, 0, 1, 0);
    check_product("A without rows", formula, 0, 3, 2, 1, 0);
    check_product("numbers that round, three blocks deep", one_by_one, 3, 5, 131, 7, 0);
    check_product("a zero of A meets infinities of B", formula, 2, 3, 4, 1, INFINITY);
    check_product("a zero of A meets NaN in B", formula, 2, 3, 4, 1, NAN);
    check_order("blocks of 64 rows, one after the other (C shares memory with the second row of blocks of B)", 64);
    check_order("blocks of 64 rows and no fewer (C shares memory with the first row of blocks of B)", 40);
    return check_end();
}
