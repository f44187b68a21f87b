/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "products": edit that, not this file. */
/* What the loops of gemm.c know of the kernels: their tables, one for
   each instruction set and type. */
#pragma once
#include "core/isa.h"
#include "ops/gemm.h"
/* matmul: struct td_tile */
typedef struct {
    int64_t rows, wide;                /* at most ROWS, WIDTH vectors */
    int64_t depth;                     /* steps of p, may be 0 */
    const void *a;
    int64_t rsa, csa;                  /* row and column stride of a */
    const void *b;
    const int64_t *at;                 /* where each row of b begins */
    double alpha, beta;
    void *c;
    int64_t ldc;
} td_tile;
/* matmul: struct td_gemm_kernel */
typedef struct {
    size_t size;                  /* bytes an element */
    int64_t rows, columns;        /* the tile in registers */
    int64_t depth, block, panel;  /* cache blocks: p, rows, columns */
    int64_t span;                 /* columns of a tile of one row */
    void (*tile)(const td_tile *);
    void (*pack)(int64_t depth, int64_t lanes, int64_t width,
                 const void *from, int64_t across, int64_t along,
                 void *to);
    void (*dots)(const td_product *);
} td_gemm_kernel;
/* products: tables of the gemm kernels */
typedef struct {
    const td_gemm_kernel *of_float, *of_double;
} td_gemm_level;
TD_ISA_TABLE(td_gemm_level, td_gemm_level);
