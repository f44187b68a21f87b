/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "matmul": edit that, not this file. */
/* The lower rungs of matrix multiplication: c (m,n) = a (m,k) b (k,n),
   row-major and contiguous, float32, one thread.  Kept to be compared
   with; the library's own product is td_gemm in gemm.h.

       float a[6], b[12], c[8];            // m = 2, k = 3, n = 4
       rung_0(2, 4, 3, a, b, c);
*/
#pragma once
#include <stdint.h>
#include <string.h>
enum { RUNG_DEPTH = 64, RUNG_WIDTH = 512 };
/* matmul: rung 0: the formula */
static inline void rung_0(int64_t m, int64_t n, int64_t k,
                          const float *a, const float *b, float *c)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += a[i * k + p] * b[p * n + j];
            c[i * n + j] = sum;
        }
}
/* matmul: rung 1: rows times rows */
static inline void rung_1(int64_t m, int64_t n, int64_t k,
                          const float *a, const float *b, float *c)
{
    memset(c, 0, (size_t)(m * n) * sizeof *c);
    for (int64_t i = 0; i < m; i++)
        for (int64_t p = 0; p < k; p++)
            for (int64_t j = 0; j < n; j++)
                c[i * n + j] += a[i * k + p] * b[p * n + j];
}
/* matmul: rung 2: blocks of b */
static inline void rung_2(int64_t m, int64_t n, int64_t k,
                          const float *a, const float *b, float *c)
{
    memset(c, 0, (size_t)(m * n) * sizeof *c);
    /* blocks: exercise blocks */
    for (int64_t p0 = 0; p0 < k; p0 += RUNG_DEPTH)
        for (int64_t j0 = 0; j0 < n; j0 += RUNG_WIDTH) {
            const int64_t p1 = p0 + RUNG_DEPTH < k ? p0 + RUNG_DEPTH : k;
            const int64_t j1 = j0 + RUNG_WIDTH < n ? j0 + RUNG_WIDTH : n;
            for (int64_t i = 0; i < m; i++)
                for (int64_t p = p0; p < p1; p++)
                    for (int64_t j = j0; j < j1; j++)
                        c[i * n + j] += a[i * k + p] * b[p * n + j];
        }
}
/* matmul: rung 3: a tile of c */
static inline void rung_3(int64_t m, int64_t n, int64_t k,
                          const float *a, const float *b, float *c)
{
    for (int64_t i = 0; i < m; i += 4)
        for (int64_t j = 0; j < n; j += 8) {
            const int64_t rows = m - i < 4 ? m - i : 4;
            const int64_t columns = n - j < 8 ? n - j : 8;
            float tile[4][8] = { { 0 } };
            /* matmul: sum the tile of rung 3 */
            if (rows == 4 && columns == 8) {
                for (int64_t p = 0; p < k; p++)
                    for (int64_t r = 0; r < 4; r++)
                        for (int64_t s = 0; s < 8; s++)
                            tile[r][s] += a[(i + r) * k + p] * b[p * n + j + s];
            } else {
                for (int64_t p = 0; p < k; p++)
                    for (int64_t r = 0; r < rows; r++)
                        for (int64_t s = 0; s < columns; s++)
                            tile[r][s] += a[(i + r) * k + p] * b[p * n + j + s];
            }
            for (int64_t r = 0; r < rows; r++)
                for (int64_t s = 0; s < columns; s++)
                    c[(i + r) * n + j + s] = tile[r][s];
        }
}
