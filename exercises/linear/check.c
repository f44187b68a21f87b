/* Gradients of a linear layer, against the sums of their definition. */
#include "check.h"
#include "grad/autograd.h"

void linear_rule(td_backward_pass *b);

typedef struct {
    const char *what;
    td_dims batch;               /* the axes before the last */
    int64_t p, q;
    bool bias, constant;         /* constant: x wants no gradient */
} example;

static const example examples[] = {
    { "a square weight", { 1, { 2 } }, 3, 3, true, false },
    { "one row and one output", { 1, { 1 } }, 2, 1, false, false },
    { "a batch of 5", { 1, { 5 } }, 3, 4, true, false },
    { "two leading axes, [2,5]", { 2, { 2, 5 } }, 3, 4, true, false },
    { "a single row without a batch", { 0, { 0 } }, 3, 2, true, false },
    { "x wants no gradient", { 1, { 5 } }, 3, 4, true, true },
    { "a batch of no rows", { 1, { 0 } }, 3, 4, true, false },
};

static td_tensor *numbers(double *x, td_dims shape, int64_t n, int64_t step, bool needs)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (double)(i * step % 19 - 7) / 7;         /* which no float holds */
    return td_set_requires_grad(td_from_data(x, shape, (td_tensor_options){ .dtype = TD_FLOAT64 }), needs);
}

static void check_gradient(const example *e, const char *of, const char *formula, td_tensor *leaf, const double *expected)
{
    static char what[120];
    snprintf(what, sizeof what, "%s: gradient of %s", e->what, of);
    check_case(what, formula);
    td_tensor *got = td_grad_of(leaf);
    if (!got)
        check_wrong("  expected  a tensor\n  got       none");
    check_tensor(got, td_shape_of(leaf), expected, 1e-12);
}

static void check_example(const example *e)
{
    double x[64], w[64], c[8], g[64], dx[64] = { 0 }, dw[64] = { 0 }, dc[8] = { 0 };
    const int64_t p = e->p, q = e->q;
    int64_t rows = 1;
    td_dims in = e->batch, out = e->batch;
    for (int d = 0; d < e->batch.count; d++)
        rows *= e->batch.at[d];
    in.at[in.count++] = p, out.at[out.count++] = q;
    td_scope_begin();
    td_tensor *tx = numbers(x, in, rows * p, 5, !e->constant), *tw = numbers(w, TD_DIMS(q, p), q * p, 7, true);
    td_tensor *tc = e->bias ? numbers(c, TD_DIMS(q), q, 3, true) : NULL, *tg = numbers(g, out, rows * q, 11, false);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < q; j++) {
            dc[j] += g[r * q + j];
            for (int64_t i = 0; i < p; i++) {
                dx[r * p + i] += g[r * q + j] * w[j * p + i];
                dw[j * p + i] += g[r * q + j] * x[r * p + i];
            }
        }
    check_case(e->what, "y = x W^T + c, backward");
    td_backward(td_linear(tx, tw, tc), (td_backward_options){ .gradient = tg });
    check_no_error();
    if (!e->constant)
        check_gradient(e, "x", "dX = dY W", tx, dx);
    check_gradient(e, "W", "dW = dY^T X, with all leading axes as rows", tw, dw);
    if (tc)
        check_gradient(e, "the bias", "dc = the sum of dY over all rows", tc, dc);
    td_scope_end();
}

/* The rule by itself: which gradients it stores, for every set of inputs that
   need one.  What stands behind the last input is nobody's. */
static void check_wants(int inputs, int wanted)
{
    char what[120];
    double x[8], w[8], c[8], g[8];
    td_scope_begin();
    td_tensor *in[3] = { numbers(x, TD_DIMS(2, 3), 6, 5, wanted & 1), numbers(w, TD_DIMS(2, 3), 6, 7, wanted & 2),
                         numbers(c, TD_DIMS(2), 2, 3, wanted & 4) };
    td_tensor *y = td_linear(in[0], in[1], inputs == 3 ? in[2] : NULL);
    td_tensor *grad = numbers(g, TD_DIMS(2, 2), 4, 11, false), *stored[4] = { NULL, NULL, NULL, NULL };
    for (int i = 0; i < inputs; i++)
        y->node->in[i].needed = wanted >> i & 1;
    stored[inputs] = y;
    snprintf(what, sizeof what, "%d inputs, a gradient wanted of%s%s%s alone", inputs, wanted & 1 ? " x" : "",
             wanted & 2 ? " W" : "", wanted & 4 ? " the bias" : "");
    check_case(what, "b->grad_in[i] is stored where i < b->n_in and td_needs(b, i), and nowhere else");
    td_backward_pass b = { .node = y->node, .n_in = inputs, .n_out = 1, .grad = &grad, .grad_in = stored };
    td_no_grad_begin();
    linear_rule(&b);
    td_no_grad_end();
    check_no_error();
    for (int i = 0; i < inputs; i++)
        if ((stored[i] != NULL) != (wanted >> i & 1))
            check_wrong("  expected  b->grad_in[%d] %s\n  got       %s", i, wanted >> i & 1 ? "set" : "left NULL",
                        stored[i] ? "a tensor" : "NULL");
    check_case(what, "g is what others still add up: it stays as it is");
    check_tensor(grad, TD_DIMS(2, 2), g, 0);
    if (stored[inputs] != y)
        check_wrong("  expected  b->grad_in[%d] left alone: there are %d inputs\n  got       another tensor in it",
                    inputs, inputs);
    td_scope_end();
}

/* The gradients are functions of x, W and dY, which have gradients again. */
static void check_second(bool of_weight)
{
    double x[6], w[6], g[4], r[6], expected[6] = { 0 };
    td_scope_begin();
    td_tensor *in[2] = { numbers(x, TD_DIMS(2, 3), 6, 5, true), numbers(w, TD_DIMS(2, 3), 6, 7, true) };
    td_tensor *tg = numbers(g, TD_DIMS(2, 2), 4, 11, false), *tr = numbers(r, TD_DIMS(2, 3), 6, 2, false);
    td_tensor *y = td_linear(in[0], in[1], NULL), *first = NULL, *second = NULL;
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 2; b++)
            for (int i = 0; i < 3; i++)
                expected[b * 3 + i] += of_weight ? g[b * 2 + a] * r[a * 3 + i] : g[a * 2 + b] * r[a * 3 + i];
    check_case(of_weight ? "the gradient of W, differentiated by x" : "the gradient of x, differentiated by W",
               of_weight ? "d/dX of <R, dY^T X> = dY R" : "d/dW of <R, dY W> = dY^T R");
    td_grad(&y, 1, &in[of_weight], 1, &first, (td_grad_options){ .grad_outputs = &tg, .create_graph = true });
    check_no_error();
    if (!td_requires_grad(first))
        check_wrong("  expected  a gradient that was recorded\n  got       one that does not know of what it was made");
    td_grad(&first, 1, &in[!of_weight], 1, &second, (td_grad_options){ .grad_outputs = &tr });
    check_no_error();
    check_tensor(second, TD_DIMS(2, 3), expected, 1e-12);
    td_scope_end();
}

/* All three gradients are functions of dY, too. */
static void check_by_gradient(int of)
{
    static const char *const names[] = { "the gradient of x, differentiated by dY", "the gradient of W, differentiated by dY",
                                         "the gradient of the bias, differentiated by dY" };
    static const char *const formulas[] = { "d/d(dY) of <R, dY W> = R W^T", "d/d(dY) of <R, dY^T X> = X R^T",
                                            "d/d(dY) of <R, sum of the rows of dY> = R in every row" };
    double x[6], w[6], c[2], g[4], r[6], expected[4] = { 0 };
    td_scope_begin();
    td_tensor *in[3] = { numbers(x, TD_DIMS(2, 3), 6, 5, true), numbers(w, TD_DIMS(2, 3), 6, 7, true),
                         numbers(c, TD_DIMS(2), 2, 3, true) };
    td_tensor *tg = numbers(g, TD_DIMS(2, 2), 4, 11, true), *first = NULL, *second = NULL;
    td_tensor *tr = of < 2 ? numbers(r, TD_DIMS(2, 3), 6, 2, false) : numbers(r, TD_DIMS(2), 2, 2, false);
    td_tensor *y = td_linear(in[0], in[1], in[2]);
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 2; b++)
            for (int i = 0; i < 3; i++)
                expected[a * 2 + b] += of == 0 ? r[a * 3 + i] * w[b * 3 + i] : of == 1 ? x[a * 3 + i] * r[b * 3 + i]
                                     : i == 0 ? r[b] : 0;
    check_case(names[of], formulas[of]);
    td_grad(&y, 1, &in[of], 1, &first, (td_grad_options){ .grad_outputs = &tg, .create_graph = true });
    check_no_error();
    if (!td_requires_grad(first))
        check_wrong("  expected  a gradient that was recorded\n  got       one that does not know of what it was made");
    td_grad(&first, 1, &tg, 1, &second, (td_grad_options){ .grad_outputs = &tr });
    check_no_error();
    check_tensor(second, TD_DIMS(2, 2), expected, 1e-12);
    td_scope_end();
}

int main(void)
{
    check_example(&examples[0]);
    for (int wanted = 7; wanted > 0; wanted--) {
        check_wants(3, wanted);
        if (wanted < 4)
            check_wants(2, wanted);
    }
    for (size_t i = 1; i < sizeof examples / sizeof examples[0]; i++)
        check_example(&examples[i]);
    check_second(false);
    check_second(true);
    for (int of = 0; of < 3; of++)
        check_by_gradient(of);
    return check_end();
}
