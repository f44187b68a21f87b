# nanoseconds of a module's call over its operator's, of the operator, and of a list of forty parameters
made=$(mktemp -d); trap 'rm -rf "$made"' EXIT
cat > "$made/cost.c" <<'END'
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <time.h>
#include <treadle/treadle.h>

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return 1e9 * (double)t.tv_sec + (double)t.tv_nsec; }
static td_module *net, *layer;
static td_tensor *x, *p[40];
static void call(void) { td_forward(layer, x); }
static void operate(void) { td_linear(x, p[0], p[1]); }
static void list(void) { td_parameters(net, p, 40); }

static double timed(void (*f)(void))
{
    double best = 1e18;
    for (int k = 0; k < 200; k++) {
        td_scope_begin();
        const double start = now();
        for (int i = 0; i < 100; i++)
            f();
        const double took = (now() - start) / 100;
        best = took < best ? took : best;
        td_scope_end();
    }
    return best;
}

int main(void)
{
    td_module *layers[20];
    td_scope_begin();
    for (int i = 0; i < 20; i++)
        layers[i] = td_linear_module(1, 1, (td_linear_options){ 0 });
    layer = layers[0], net = td_sequential(layers, 20);
    x = td_ones(TD_DIMS(1, 1), (td_tensor_options){ 0 });
    td_parameters(layer, p, 2);
    td_no_grad_begin();
    const double operator = timed(operate), module = timed(call);
    printf("what,nanoseconds\nforward,%.1f\noperator,%.1f\nlist,%.1f\n", module > operator ? module - operator : 0, operator, timed(list));
    return td_failed();
}
END
${CC:-gcc} -std=c11 -O2 -fopenmp -Igenerated/include -o "$made/cost" "$made/cost.c" "${BUILD:-build}/libtreadle.a" -lz -lm -lpthread -ldl && TREADLE_THREADS=1 "$made/cost"
