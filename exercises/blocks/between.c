/* The rung has a file of its own: what a macro in the hole does to a name must
   not reach the check. */
#include "../examples/matmul-ladder.h"

void rung_2_between(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c)
{
    rung_2(m, n, k, a, b, c);
}
