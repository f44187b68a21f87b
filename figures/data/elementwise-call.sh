# Nanoseconds for the exponential of one number of a million: a call of the C
# library for each, and the loop of the row exp at the highest level; one thread,
# the best of twenty.  And all floats there are, tried one in 997: seconds.
set -e
work=$(mktemp -d)
cat > "$work/call.c" <<'END'
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <stdio.h>
#include <time.h>
#include "ops/elementwise.h"
enum { N = 1 << 20 };
static float x[N], y[N];
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
int main(void)
{
    double call = 1, loop = 1;
    char *data[] = { (char *)y, (char *)x };
    for (int i = 0; i < N; i++)
        x[i] = (float)(i % 2001 - 1000) / 100;
    td_loop *row = TD_ISA_PICK(td_elementwise)->loop[TD_ROW_exp][TD_FLOAT32];
    for (int again = 0; again < 20; again++) {
        double from = now();
        for (int i = 0; i < N; i++)
            y[i] = expf(x[i]);
        call = fmin(call, now() - from);
        from = now();
        row(N, data);
        loop = fmin(loop, now() - from);
    }
    printf("expf,%.3g\nloop,%.3g\n", call / N * 1e9, loop / N * 1e9);
    return 0;
}
END
have=$(nm "${BUILD:-build}/libtreadle.a" 2>/dev/null | grep -q td_elementwise_v4 && echo -DTD_HAVE_ISA_v4 || true)
cc -O2 -fno-builtin -Igenerated/include -Igenerated/src -DTD_ISA_NAME=base $have "$work/call.c" "${BUILD:-build}/libtreadle.a" \
  -o "$work/call" -lm -lpthread -lz -ldl -fopenmp -lstdc++ 1>&2
echo "how,ns"
"$work/call"
rm -rf "$work"
