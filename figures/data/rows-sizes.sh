# Nanoseconds of a sum of two tensors of n elements, the second of the same
# shape (short way up to a block, then the frame), a row that repeats, and in
# float64 (which is converted); one thread, the best of 30 runs.
set -e
work=$(mktemp -d)
cat > "$work/sizes.c" <<'END'
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <time.h>
#include <treadle/treadle.h>
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}
static double cost(td_tensor *a, td_tensor *b)
{
    double best = 1e18;
    const int calls = (int)(200000 / (td_numel(a) + 200)) + 1;
    for (int again = 0; again < 30; again++) {
        const double from = now();
        for (int i = 0; i < calls; i++)
            td_release(td_add(a, b));
        const double took = (now() - from) / calls;
        best = took < best ? took : best;
    }
    return best;
}
int main(void)
{
    const td_tensor_options f32 = { .dtype = TD_FLOAT32 }, f64 = { .dtype = TD_FLOAT64 };
    td_set_threads(1);
    for (int64_t n = 4; n <= 1 << 20; n *= 4) {
        td_tensor *a = td_ones(TD_DIMS(4, n / 4), f32), *b = td_ones(TD_DIMS(4, n / 4), f32);
        td_tensor *row = td_ones(TD_DIMS(n / 4), f32), *wide = td_ones(TD_DIMS(4, n / 4), f64);
        printf("%lld,%.3g,%.3g,%.3g\n", (long long)n, cost(a, b), cost(a, row), cost(a, wide));
        td_release(a), td_release(b), td_release(row), td_release(wide);
    }
    return td_failed();
}
END
cc -O2 -Igenerated/include "$work/sizes.c" "${BUILD:-build}/libtreadle.a" -o "$work/sizes" -lm -lpthread -lz -ldl -fopenmp -lstdc++ 1>&2
echo "n,same,row,converted"
"$work/sizes"
rm -rf "$work"
