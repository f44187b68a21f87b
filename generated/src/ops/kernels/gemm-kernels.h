/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "products": edit that, not this file. */
/* What the loops of gemm.c know of the kernels: their tables, one for
   each instruction set and type. */
#pragma once
#include "core/isa.h"
#include "ops/gemm.h"
/* matmul: struct td_tile */
enum {
    DEPTH = 512,             /* most steps between two visits of c */
    BLOCK = 16,              /* tiles of rows of a in L2 */
    PANEL = 2048             /* columns of b in L3 */
};
typedef struct {
    int64_t rows, wide;                /* at most ROWS, WIDTH vectors */
    int64_t depth;                     /* steps of p, may be 0 */
    const void *a;
    int64_t rsa, csa;                  /* row and column stride of a */
    const void *b;
    const int64_t *at;                 /* where each row of b begins */
    bool follow;                       /* one behind the other */
    double alpha, beta;
    void *c;
    int64_t ldc;
    void *keep;                        /* a copy of b, or NULL */
    const char *next;                  /* asked for: next + p * ahead */
    int64_t ahead;                     /* bytes, may be 0 */
} td_tile;
/* matmul: struct td_gemm_kernel */
typedef struct {
    size_t size;                  /* bytes an element */
    int64_t rows, columns;        /* the tile in registers */
    void (*tile)(const td_tile *);
    void (*pack)(int64_t depth, int64_t lanes, int64_t width,
                 const void *from, int64_t across, int64_t along,
                 void *to);
    void (*dots)(const td_product *);
} td_gemm_kernel;
/* products: tables of the gemm kernels */
typedef struct {
    const td_gemm_kernel *of[2];        /* of float, of double */
} td_gemm_level;
TD_ISA_TABLE(td_gemm_level, td_gemm_level);
