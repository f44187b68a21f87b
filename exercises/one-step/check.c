/* Steps of an LSTM and sequences of them, against the formulas in double precision. */
#include "check.h"
#include "core/registry.h"

enum { MOST = 400 };
static const char *const formula = "c' = s(f) c + s(i) tanh(g), h' = s(o) tanh(c'), blocks i, f, g, o, s(x) = 1 / (1 + exp(-x))";

static double gate(double x)
{
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

/* One step of n examples with p inputs and m units, in place. */
static void expect(int n, int p, int m, const double *x, const double *w, const double *u, const double *b, double *h, double *c)
{
    double a[MOST], before[MOST];
    memcpy(before, h, (size_t)(n * m) * sizeof *h);
    for (int s = 0; s < n; s++) {
        for (int r = 0; r < 4 * m; r++) {
            a[r] = b[r];
            for (int i = 0; i < p; i++)
                a[r] += w[r * p + i] * x[s * p + i];
            for (int i = 0; i < m; i++)
                a[r] += u[r * m + i] * before[s * m + i];
        }
        for (int j = 0; j < m; j++) {
            double *cell = &c[s * m + j];
            *cell = gate(a[m + j]) * *cell + gate(a[j]) * tanh(a[2 * m + j]);
            h[s * m + j] = gate(a[3 * m + j]) * tanh(*cell);
        }
    }
}

static td_tensor *of(const double *x, td_dims shape, td_dtype type)
{
    return td_to(td_from_data(x, shape, (td_tensor_options){ .dtype = TD_FLOAT64 }), type);
}

static bool cell(td_tensor *const in[6], td_tensor *out[2])     /* x, h, c, w, u, b */
{
    const td_value values[] = { td_v_tensor(in[0]), td_v_tensors(2, in + 1), td_v_tensor(in[3]), td_v_tensor(in[4]),
                                td_v_tensor(in[5]), td_v_none() };
    td_call call = { .op = td_op_find("lstm_cell"), .n_in = 6, .in = values };
    const bool ok = td_run(&call);
    memcpy(out, call.out, 2 * sizeof *out);
    return ok;
}

typedef struct { double x[MOST], w[MOST], u[MOST], b[MOST], h[MOST], c[MOST]; } numbers;

static void check_step(const char *what, int n, int p, int m, const numbers *a, td_dtype type)
{
    char text[160];
    numbers z = *a;
    const double tolerance = type == TD_FLOAT64 ? 1e-14 : 1e-6;
    const td_dims state = TD_DIMS(n, m);
    td_scope_begin();
    td_tensor *in[] = { of(a->x, TD_DIMS(n, p), type), of(a->h, state, type), of(a->c, state, type),
                        of(a->w, TD_DIMS(4 * m, p), type), of(a->u, TD_DIMS(4 * m, m), type), of(a->b, TD_DIMS(4 * m), type) };
    td_tensor *out[2];
    expect(n, p, m, a->x, a->w, a->u, a->b, z.h, z.c);
    snprintf(text, sizeof text, "%s, in %s: c", what, type == TD_FLOAT64 ? "double" : "float");
    check_case(text, formula);
    cell(in, out);
    check_no_error();
    check_tensor(out[1], state, z.c, tolerance);
    text[strlen(text) - 1] = 'h';
    check_case(text, formula);
    check_tensor(out[0], state, z.h, tolerance);
    snprintf(text, sizeof text, "%s: the memory that was given", what);
    check_case(text, "c and h belong to the caller and stay as they are");
    check_tensor(in[2], state, a->c, type == TD_FLOAT64 ? 0 : 1e-7);
    check_tensor(in[1], state, a->h, type == TD_FLOAT64 ? 0 : 1e-7);
    td_scope_end();
}

static td_tensor *first_derivative(void *context, td_tensor *const *in)
{
    td_tensor *out[2];
    (void)context;
    return cell(in, out) ? td_add(out[0], td_mul_scalar(out[1], td_float(0.5))) : NULL;
}

static void check_derivatives(void)
{
    const td_tensor_options o = { .dtype = TD_FLOAT64, .requires_grad = true };
    td_scope_begin();
    td_manual_seed(2);
    td_tensor *in[] = { td_randn(TD_DIMS(2, 2), o), td_randn(TD_DIMS(2, 2), o), td_randn(TD_DIMS(2, 2), o),
                        td_randn(TD_DIMS(8, 2), o), td_randn(TD_DIMS(8, 2), o), td_randn(TD_DIMS(8), o) };
    check_case("the gradient by x, h, c and the weights", "the derivative of c' by c is f, and so on through all gates");
    td_gradcheck(first_derivative, NULL, 6, in, (td_gradcheck_options){ 0 });
    check_no_error();
    check_case("the second derivative by x, h, c and the weights", "gates have slopes, and slopes have slopes");
    td_gradgradcheck(first_derivative, NULL, 6, in, (td_gradcheck_options){ 0 });
    check_no_error();
    td_scope_end();
}

/* Block k of `a` at +-1000, all others at zero. */
static void check_full(int k, double full, td_dtype type)
{
    char what[160];
    double c0 = 0.5, h0 = 0.25, x0 = 1, b0[4] = { 0 }, zeros[4] = { 0 };
    b0[k] = full;
    td_scope_begin();
    td_tensor *in[] = { of(&x0, TD_DIMS(1, 1), type), of(&h0, TD_DIMS(1, 1), type), of(&c0, TD_DIMS(1, 1), type),
                        of(zeros, TD_DIMS(4, 1), type), of(zeros, TD_DIMS(4, 1), type), of(b0, TD_DIMS(4), type) };
    td_tensor *out[2];
    for (int i = 1; i < 6; i++)
        td_set_requires_grad(in[i], true);
    snprintf(what, sizeof what, "a gate that is full: block %d of a is %g", k, full);
    check_case(what, formula);
    expect(1, 1, 1, &x0, zeros, zeros, b0, &h0, &c0);
    cell(in, out);
    check_no_error();
    check_tensor(out[1], TD_DIMS(1, 1), &c0, 1e-6);
    check_tensor(out[0], TD_DIMS(1, 1), &h0, 1e-6);
    check_case(what, "where a = +-1000 the slope is zero, and everywhere a number");
    td_backward(td_sum(td_add(out[0], out[1]), (td_reduce_options){ 0 }), (td_backward_options){ 0 });
    check_no_error();
    for (int i = 1; i < 6; i++) {
        td_tensor *g = td_grad_of(in[i]);
        if (!g)
            check_wrong("  gradient by %s\n  expected  a tensor\n  got       none", i == 1 ? "h" : i == 2 ? "c" : "a weight");
        g = td_to(g, TD_FLOAT64);
        for (int j = 0; j < td_numel(g); j++)
            if (!isfinite(((const double *)td_data(g))[j]) || (i == 5 && j == k && ((const double *)td_data(g))[j] != 0))
                check_wrong("  gradient by %s, number %d\n  expected  %s\n  got       %g", i == 1 ? "h" : i == 2 ? "c" : "a weight", j,
                            i == 5 && j == k ? "0" : "a number", ((const double *)td_data(g))[j]);
    }
    td_scope_end();
}

/* Two layers over five steps: the operator of sequences takes the same steps. */
static void check_sequence(const numbers *a)
{
    enum { T = 5, N = 2, M = 3 };
    double h[2][N * M], c[2][N * M], expected[T * N * M], first[2 * N * M];
    const td_tensor_options wide = { .dtype = TD_FLOAT64 };
    for (int i = 0; i < 2 * N * M; i++)
        h[i / (N * M)][i % (N * M)] = c[i / (N * M)][i % (N * M)] = first[i] = a->c[i];
    for (int t = 0; t < T; t++) {
        expect(N, M, M, a->x + t * N * M, a->w, a->u, a->b, h[0], c[0]);
        expect(N, M, M, h[0], a->u, a->w, a->b, h[1], c[1]);
        memcpy(expected + t * N * M, h[1], sizeof h[1]);
    }
    td_scope_begin();
    check_case("five steps of two layers", formula);
    td_tensor *w = td_from_data(a->w, TD_DIMS(4 * M, M), wide), *u = td_from_data(a->u, TD_DIMS(4 * M, M), wide);
    td_tensor *b = td_from_data(a->b, TD_DIMS(4 * M), wide), *zero = td_zeros(TD_DIMS(4 * M), wide);
    td_tensor *params[] = { w, u, b, zero, u, w, b, zero };
    td_tensor *state[] = { td_from_data(first, TD_DIMS(2, N, M), wide), td_from_data(first, TD_DIMS(2, N, M), wide) };
    td_tensor *y = TD_RUN(lstm, (td_v_tensor(td_from_data(a->x, TD_DIMS(T, N, M), wide)), td_v_tensors(2, state), td_v_tensors(8, params)),
                          td_v_bool(true), td_v_int(2), td_v_float(0), td_v_bool(false), td_v_bool(false), td_v_bool(false));
    check_no_error();
    check_tensor(y, TD_DIMS(T, N, M), expected, 1e-13);
    td_scope_end();
}

int main(void)
{
    static numbers hand, a;
    hand = (numbers){ .x = { 1 }, .w = { 1, 1, 1, 1 }, .u = { 1, 1, 1, 1 }, .c = { 2 } };
    check_step("one unit by hand", 1, 1, 1, &hand, TD_FLOAT64);
    for (int i = 0; i < MOST; i++) {
        a.x[i] = (i * 37 % 101) / 50.0 - 1.1;
        a.w[i] = (i * 29 % 53) / 40.0 - 0.6;
        a.u[i] = (i * 23 % 59) / 40.0 - 0.8;
        a.b[i] = (i * 31 % 71) / 30.0 - 1.2;
        a.h[i] = (i * 41 % 67) / 40.0 - 0.7;
        a.c[i] = (i * 43 % 61) / 20.0 - 1.3;
    }
    for (int i = 0; i < 2; i++) {
        const td_dtype type = i ? TD_FLOAT32 : TD_FLOAT64;
        check_step("gates that differ", 1, 3, 2, &a, type);
        check_step("a batch of three", 3, 2, 3, &a, type);
        check_step("another size: five units", 2, 1, 5, &a, type);
        check_step("an empty batch", 0, 2, 3, &a, type);
        check_step("one unit by hand, again", 1, 1, 1, &hand, type);
    }
    check_sequence(&a);
    check_derivatives();
    for (int k = 0; k < 4; k++) {
        check_full(k, 1000, TD_FLOAT64);
        check_full(k, -1000, TD_FLOAT64);
        check_full(k, -1000, TD_FLOAT32);
    }
    return check_end();
}
