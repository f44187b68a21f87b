/* One layer of the program by hand, against the formulas of section "Back". */
#include "check.h"

int batch_of_the_program(void);
void layer_backward_of_the_program(int in, int out, float *weight, float *result, float *d_weight, float *d_bias,
                                   float *d_result, const float *x, float *d_x, int clipped);

static const char *const formula = "dL/dW[j][i] = sum over p of d[p][j]*x[p][i], dL/db[j] = sum over p of d[p][j], "
                                   "dL/dx[p][i] = sum over j of d[p][j]*W[j][i]";
enum { INPUT = 1, WEIGHT, RESULT, SLOPE };

typedef struct { int in, out, clipped, wants_x; } shape;

static float *numbers(int n, const float *from)
{
    float *x = malloc((size_t)n * sizeof *x);
    for (int i = 0; i < n; i++)
        x[i] = from ? from[i] : 123;            /* the function is to clear what it fills */
    return x;
}

static void compare(const char *what, const char *part, const float *got, const float *expected, int n)
{
    char text[200];
    snprintf(text, sizeof text, "%s: %s", what, part);
    check_case(text, formula);
    check_floats(got, expected, n, 1e-5);
}

static void unchanged(const char *what, const float *now, const float *before, int n)
{
    if (memcmp(now, before, (size_t)n * sizeof *now) != 0)
        check_wrong("  expected  %s as it was\n  got       other numbers in it", what);
}

/* Each array in a block of its own, so that reading beyond it is noticed. */
static void check_layer(const char *what, shape s, const float *x, const float *weight, const float *result, const float *d)
{
    const int b = batch_of_the_program(), in = s.in, out = s.out;
    float *xs = numbers(b * in, x), *w = numbers(out * in, weight), *r = numbers(b * out, result), *dr = numbers(b * out, d);
    float *dw = numbers(out * in, NULL), *db = numbers(out, NULL), *dx = s.wants_x ? numbers(b * in, NULL) : NULL;
    float *ew = calloc((size_t)(out * in), 4), *eb = calloc((size_t)out, 4), *ex = calloc((size_t)(b * in), 4);
    for (int p = 0; p < b; p++)
        for (int j = 0; j < out; j++)
            if (!(s.clipped && result[p * out + j] <= 0)) {
                eb[j] += d[p * out + j];
                for (int i = 0; i < in; i++) {
                    ew[j * in + i] += d[p * out + j] * x[p * in + i];
                    ex[p * in + i] += d[p * out + j] * weight[j * in + i];
                }
            }
    check_case(what, formula);
    layer_backward_of_the_program(in, out, w, r, dw, db, dr, xs, dx, s.clipped);
    compare(what, "the input's derivatives", dx ? dx : ex, ex, b * in);
    compare(what, "the weights' derivatives", dw, ew, out * in);
    compare(what, "the biases' derivatives", db, eb, out);
    check_case(what, "only the derivatives of weights, biases and inputs change");
    unchanged("the input", xs, x, b * in);
    unchanged("the weights", w, weight, out * in);
    unchanged("the results", r, result, b * out);
    unchanged("the results' derivatives", dr, d, b * out);
    free(xs), free(w), free(r), free(dr), free(dw), free(db), free(dx), free(ew), free(eb), free(ex);
}

static float pick(int seed, int i, int sizes)
{
    return (float)((i + 1) * (37 + 20 * seed) % sizes) / 8 - (float)(sizes / 16);
}

/* Pseudo-random numbers; every fourth result is 0, as relu leaves it. */
static void check_shape_of(const char *name, shape s)
{
    char what[160];
    const int b = batch_of_the_program();
    float *x = numbers(b * s.in, NULL), *w = numbers(s.out * s.in, NULL), *r = numbers(b * s.out, NULL), *d = numbers(b * s.out, NULL);
    for (int i = 0; i < b * s.in; i++)
        x[i] = pick(INPUT, i, 101);
    for (int i = 0; i < s.out * s.in; i++)
        w[i] = pick(WEIGHT, i, 97);
    for (int i = 0; i < b * s.out; i++) {
        r[i] = i % 4 ? pick(RESULT, i, 89) : 0;
        d[i] = pick(SLOPE, i, 103);
    }
    snprintf(what, sizeof what, "%s, %d in, %d out, %s, %s", name, s.in, s.out, s.clipped ? "clipped" : "not clipped",
             s.wants_x ? "with d_x" : "d_x is NULL");
    check_layer(what, s, x, w, r, d);
    free(x), free(w), free(r), free(d);
}

/* Where relu has clipped, not even infinity comes back. */
static void check_extremes(void)
{
    const int b = batch_of_the_program();
    float *x = numbers(b * 2, NULL), *r = numbers(b, NULL), *d = numbers(b, NULL);
    const float w[2] = { 2, -1 };
    for (int p = 0; p < b; p++)
        x[2 * p] = 3, x[2 * p + 1] = 4, r[p] = p == 5 || p == 9 ? 0 : 3, d[p] = p == 5 ? INFINITY : p == 9 ? NAN : 0.5f;
    check_layer("infinity and NaN where relu clipped", (shape){ 2, 1, 1, 1 }, x, w, r, d);
    d[5] = d[9] = 0.125f, r[5] = -1, r[9] = -0.0f;
    check_layer("results below zero, and minus zero", (shape){ 2, 1, 1, 1 }, x, w, r, d);
    check_layer("results below zero in a layer that does not clip", (shape){ 2, 1, 0, 1 }, x, w, r, d);
    r[5] = 1e-30f, r[9] = 1e-45f, d[3] = 0.0625f;
    check_layer("the smallest results above zero", (shape){ 2, 1, 1, 1 }, x, w, r, d);
    r[5] = NAN, d[5] = 0.25f;
    check_layer("a result that is not a number is not 0 or less", (shape){ 2, 1, 1, 1 }, x, w, r, d);
    free(x), free(r), free(d);
}

/* The layer of the text, and the same with a second result. */
static void check_worked(void)
{
    const int b = batch_of_the_program();
    float *x = calloc((size_t)(2 * b), 4), *r = calloc((size_t)(2 * b), 4), *d = calloc((size_t)(2 * b), 4);
    const float w[] = { 2, -1, 3, 5 };
    x[0] = 3, x[1] = 4, r[0] = 3, d[0] = 0.5f;
    check_layer("the layer of the text", (shape){ 2, 1, 0, 1 }, x, w, r, d);
    r[1] = 1, d[0] = 1, d[1] = 2;
    check_layer("two results from one input", (shape){ 2, 2, 0, 1 }, x, w, r, d);
    free(x), free(r), free(d);
}

int main(void)
{
    check_worked();
    for (int bits = 0; bits < 4; bits++) {
        const int clipped = bits & 1, wants = bits < 2;
        check_shape_of("more in than out", (shape){ 7, 3, clipped, wants });
        check_shape_of("more out than in", (shape){ 2, 11, clipped, wants });
        check_shape_of("one to one", (shape){ 1, 1, clipped, wants });
        check_shape_of("a first layer", (shape){ 784, 16, clipped, wants });
    }
    check_extremes();
    return check_end();
}
