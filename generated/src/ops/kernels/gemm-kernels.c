/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "matmul": edit that, not this file. */
/* Matrix multiplication, the part that depends on the instruction set:
   compiled once for each, see gemm-kernels.h. */
#include "ops/kernels/gemm-kernels.h"
/* matmul: attribute for wide vectors */
#if defined __clang__ && defined __AVX512F__
#define WIDE __attribute__((min_vector_width(512)))
#else
#define WIDE
#endif
/* matmul: constants of the register tile */
#define SIX(F) F(1) F(2) F(3) F(4) F(5) F(6)
#define TEN(F) SIX(F) F(7) F(8) F(9) F(10)
#if defined __AVX512F__
enum { VECTOR = 64, ROWS = 14, DOWN = 4, ACROSS = 6 };
#define HEIGHTS(F) TEN(F) F(11) F(12) F(13) F(14)
#elif defined __aarch64__
enum { VECTOR = 16, ROWS = 10, DOWN = 4, ACROSS = 5 };
#define HEIGHTS TEN
#else
#ifdef __AVX2__
enum { VECTOR = 32, ROWS = 6, DOWN = 3, ACROSS = 4 };
#else
enum { VECTOR = 16, ROWS = 6, DOWN = 3, ACROSS = 4 };
#endif
#define HEIGHTS SIX
#endif
enum { WIDTH = 2, LINE = 4 * WIDTH };   /* vectors in a row */
#define MIX __builtin_shufflevector
#define BODY "ops/kernels/gemm-tile.inc"
#include "ops/kernels/twice.inc"
const td_gemm_level TD_ISA(td_gemm_level) = {
    { &kernel_f32, &kernel_f64 }
};
