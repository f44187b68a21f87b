/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "matmul": edit that, not this file. */
/* needs: matmul */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "../examples/matmul-ladder.h"
#include "ops/gemm.h"
enum { M = 53, N = 71, K = 131 };
static float a[M * K], b[K * N], expected[M * N], c[M * N];

static void compare(void)
{
    for (int i = 0; i < M * N; i++)
        assert_true(fabsf(c[i] - expected[i]) <= K * 200 * 0x1p-24f);
}

static void every_rung_makes_the_same_product(void **state)
{
    (void)state;
    for (int i = 0; i < M * K; i++)
        a[i] = (float)(i * 37 % 101) / 101;
    for (int i = 0; i < K * N; i++)
        b[i] = (float)(i * 53 % 103) / 103 - 0.5f;
    rung_0(M, N, K, a, b, expected);
    /* matmul: compare each rung with rung 0 */
    rung_1(M, N, K, a, b, c);
    compare();
    rung_2(M, N, K, a, b, c);
    compare();
    rung_3(M, N, K, a, b, c);
    compare();
    assert_true(td_gemm(TD_FLOAT32, &(td_product){
        .m = M, .n = N, .k = K, .alpha = 1, .a = a, .rsa = K, .csa = 1,
        .b = b, .rsb = N, .csb = 1, .c = c, .ldc = N }));
    compare();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rung_makes_the_same_product),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
