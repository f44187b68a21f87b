/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "products": edit that, not this file. */
/* Products of matrices in memory, of any strides.

   Results have the same bits for any number of threads.  All functions
   return false, with the error recorded, if scratch memory is short.

       float a[6], b[12], c[8];               // (2,3) (3,4) -> (2,4)
       td_gemm(TD_FLOAT32, &(td_product){ .m = 2, .n = 4, .k = 3,
           .alpha = 1, .a = a, .rsa = 3, .csa = 1,
           .b = b, .rsb = 4, .csb = 1, .c = c, .ldc = 4 });
*/
#pragma once
#include "core/space.h"
/* matmul: struct td_product */
/* c (m,n) = alpha a (m,k) b (k,n) + beta c.  Rows of c are contiguous,
   ldc apart; a and b have any strides, counted in elements, 0 included.
   With beta 0, c is not read.  With rows, row p of b begins at number
   rows[p], and up to TD_SLIVER numbers behind its n are read too. */
enum { TD_SLIVER = 128 };
typedef struct {
    int64_t m, n, k;
    double alpha, beta;
    const void *a;
    int64_t rsa, csa;
    const void *b;
    int64_t rsb, csb;
    void *c;
    int64_t ldc;
    const int64_t *rows;               /* instead of rsb, or NULL */
} td_product;
/* float32 and float64 */
bool td_gemm(td_dtype dtype, const td_product *product);
/* c = alpha a b + beta c, where csa and rsb are 1; column j of b begins
   at csb j, or at rows[j]. */
void td_dots(td_dtype dtype, const td_product *product);
/* One for each place of the space of c, a, b; also of int64, int32 and
   uint8.  The pointers of `first` are not looked at. */
bool td_gemm_batch(const td_product *first, const td_space *batch);
/* The dimensions in front of a stack's matrices. */
td_dims td_batch_of(const td_tensor *x);
