/* Transposed convolutions and gradients of pictures, against the sum of their definition. */
#include "check.h"

typedef struct {
    const char *what;
    int n, c, o, groups, x[2], k[2], step[2], margin[2], gap[2], more[2];   /* o: channels of the small side */
    bool bias;
} example;

static const example examples[] = {
    { "a stamp in each of nine places", 1, 1, 2, 1, { 4, 7 }, { 2, 3 }, { 1, 2 }, { 0, 0 }, { 1, 1 }, { 0, 0 }, false },
    { "two channels and a margin", 1, 2, 3, 1, { 5, 7 }, { 3, 3 }, { 1, 2 }, { 1, 1 }, { 1, 1 }, { 0, 0 }, false },
    { "every second line, every third number", 2, 2, 2, 1, { 7, 11 }, { 3, 2 }, { 2, 3 }, { 1, 0 }, { 1, 1 }, { 0, 0 }, false },
    { "a window with gaps", 1, 1, 2, 1, { 9, 11 }, { 2, 3 }, { 1, 2 }, { 2, 1 }, { 3, 2 }, { 0, 0 }, false },
    { "a bias", 2, 3, 2, 1, { 6, 6 }, { 2, 3 }, { 2, 1 }, { 0, 1 }, { 1, 1 }, { 0, 0 }, true },
    { "three groups", 2, 6, 6, 3, { 6, 5 }, { 3, 3 }, { 2, 1 }, { 1, 1 }, { 1, 1 }, { 1, 0 }, true },
    { "more than the windows see", 1, 2, 2, 1, { 8, 6 }, { 3, 3 }, { 2, 2 }, { 0, 0 }, { 1, 1 }, { 1, 1 }, true },
    { "one number after the other", 1, 2, 3, 1, { 1, 19 }, { 1, 5 }, { 1, 2 }, { 0, 2 }, { 1, 1 }, { 0, 0 }, false },
    { "a window as large as the picture", 3, 2, 2, 1, { 4, 3 }, { 4, 3 }, { 2, 2 }, { 0, 0 }, { 1, 1 }, { 0, 0 }, false },
    { "lines of 300 numbers", 1, 1, 2, 1, { 4, 301 }, { 2, 2 }, { 2, 1 }, { 0, 0 }, { 1, 1 }, { 0, 0 }, false },
    { "in several strips", 1, 16, 2, 1, { 33, 31 }, { 3, 3 }, { 1, 2 }, { 1, 1 }, { 1, 1 }, { 0, 0 }, true },
    { "another geometry in several strips", 2, 16, 2, 1, { 65, 32 }, { 3, 3 }, { 2, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0 }, true },
};

static int places(const example *e, int i)
{
    return (e->x[i] - e->more[i] + 2 * e->margin[i] - e->gap[i] * (e->k[i] - 1) - 1) / e->step[i] + 1;
}

static double number(int64_t i, int step)
{
    return (double)(i * step % 23 - 11) / 4;
}

static double *numbers(int64_t n, int step)
{
    double *x = malloc((size_t)(n + 1) * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = number(i, step);
    return x;
}

/* x of every picture and channel: its bias, and for every place and tap the product that the window stamps. */
static double *stamped(const example *e, const double *g, const double *w, const double *bias)
{
    const int oh = places(e, 0), ow = places(e, 1), h = e->x[0], v = e->x[1], c = e->c / e->groups, o = e->o / e->groups;
    double *x = calloc((size_t)(e->n * e->c * h * v + 1), sizeof *x);
    for (int i = 0; bias && i < e->n * e->c * h * v; i++)
        x[i] = bias[i / (h * v) % e->c];
    for (int n = 0; n < e->n; n++)
        for (int u = 0; u < e->groups; u++)
            for (int j = 0; j < o; j++)
                for (int d = 0; d < c; d++)
                    for (int t = 0; t < e->k[0] * e->k[1]; t++)
                        for (int l = 0; l < oh * ow; l++) {
                            const int a = l / ow * e->step[0] - e->margin[0] + t / e->k[1] * e->gap[0];
                            const int b = l % ow * e->step[1] - e->margin[1] + t % e->k[1] * e->gap[1];
                            if (a >= 0 && a < h && b >= 0 && b < v)
                                x[((n * e->c + u * c + d) * h + a) * v + b]
                                    += g[(n * e->o + u * o + j) * oh * ow + l]
                                    * w[((u * o + j) * c + d) * e->k[0] * e->k[1] + t];
                        }
    return x;
}

static td_convolution_options options(const example *e, bool transposed)
{
    return (td_convolution_options){ .stride = TD_DIMS(e->step[0], e->step[1]), .padding = TD_DIMS(e->margin[0], e->margin[1]),
        .dilation = TD_DIMS(e->gap[0], e->gap[1]), .transposed = transposed, .groups = e->groups,
        .output_padding = transposed ? TD_DIMS(e->more[0], e->more[1]) : (td_dims){ 0 } };
}

/* `hole`: a NaN is put at one place of the small side. */
static void check_stamps(const example *e, td_dtype type, const char *as, bool hole)
{
    char what[200];
    const int oh = places(e, 0), ow = places(e, 1);
    const td_dims small = TD_DIMS(e->n, e->o, oh, ow), large = TD_DIMS(e->n, e->c, e->x[0], e->x[1]);
    const td_dims window = TD_DIMS(e->o, e->c / e->groups, e->k[0], e->k[1]);
    double *g = numbers((int64_t)e->n * e->o * oh * ow, 7), *w = numbers((int64_t)e->o * e->c * e->k[0] * e->k[1], 5);
    double *bias = numbers(e->c, 3), *zeros = calloc((size_t)(e->n * e->c * e->x[0] * e->x[1] + 1), sizeof *zeros);
    if (hole)
        g[oh * ow / 2] = NAN;
    else                            /* numbers that a float does not know */
        for (int i = 0; type == TD_FLOAT64 && i < e->n * e->o * oh * ow; i++)
            g[i] += 1e-9 * number(i, 3);
    double *expected = stamped(e, g, w, e->bias ? bias : NULL);
    const td_tensor_options wide = { .dtype = TD_FLOAT64 };
    td_scope_begin();
    td_tensor *tw = td_to(td_from_data(w, window, wide), type), *tg = td_to(td_from_data(g, small, wide), type);
    td_tensor *tb = e->bias ? td_to(td_from_data(bias, TD_DIMS(e->c), wide), type) : NULL;
    snprintf(what, sizeof what, "%s, %s: the transposed convolution", e->what, as);
    check_case(what, "x[q] = bias + the sum of w[k] g[p] over all p, k with p s - m + k d = q");
    check_tensor(td_convolution(tg, tw, tb, options(e, true)), large, expected, type == TD_FLOAT64 ? 1e-13 : 1e-5);
    free(expected);
    expected = stamped(e, g, w, NULL);
    snprintf(what, sizeof what, "%s, %s: the gradient of the picture", e->what, as);
    check_case(what, "dx[q] = the sum of w[k] g[p] over all p, k with p s - m + k d = q");
    td_tensor *x = td_set_requires_grad(td_to(td_from_data(zeros, large, wide), type), true);
    if (e->more[0] + e->more[1] == 0 || !e->bias) {
        td_backward(td_convolution(x, tw, NULL, options(e, false)), (td_backward_options){ .gradient = tg });
        check_no_error();
        check_tensor(td_grad_of(x), large, expected, type == TD_FLOAT64 ? 1e-13 : 1e-5);
    }
    td_scope_end();
    free(g), free(w), free(bias), free(zeros), free(expected);
}

/* The same bits with one thread and with two. */
static void check_threads(void)
{
    td_scope_begin();
    check_case("sixteen pictures, one thread and two", "who stamps which picture makes no difference");
    td_tensor *g = td_randn(TD_DIMS(16, 4, 17, 17), (td_tensor_options){ 0 });
    td_tensor *w = td_randn(TD_DIMS(4, 8, 3, 3), (td_tensor_options){ 0 });
    td_tensor *y[2];
    for (int i = 0; i < 2; i++) {
        td_set_threads(i + 1);
        y[i] = td_convolution(g, w, NULL, (td_convolution_options){ .transposed = true, .stride = TD_DIMS(2) });
        check_no_error();
    }
    check_floats(td_data(y[1]), td_data(y[0]), td_numel(y[0]), 0);
    td_scope_end();
}

static td_tensor *convolved(void *context, td_tensor *const *in)
{
    return td_convolution(in[0], in[1], NULL, options(context, false));
}

/* The gradient is linear in what it was made of, and knows it. */
static void check_second(void)
{
    static example e;
    e = examples[2];
    td_scope_begin();
    check_case("every second line, differentiated twice", "the derivatives of the adjoint are a convolution and a weight's gradient");
    const td_tensor_options o = { .dtype = TD_FLOAT64, .requires_grad = true };
    td_tensor *in[] = { td_randn(TD_DIMS(1, 2, 7, 5), o), td_randn(TD_DIMS(2, 2, 3, 2), o) };
    td_gradcheck(convolved, &e, 2, in, (td_gradcheck_options){ 0 });
    check_no_error();
    td_gradgradcheck(convolved, &e, 2, in, (td_gradcheck_options){ 0 });
    check_no_error();
    td_scope_end();
}

int main(void)
{
    const size_t n = sizeof examples / sizeof examples[0];
    check_stamps(&examples[0], TD_FLOAT32, "numbers of type float", false);
    check_stamps(&examples[0], TD_FLOAT64, "numbers of type double", false);
    for (size_t i = 1; i < n; i++) {
        check_stamps(&examples[i], TD_FLOAT32, "numbers of type float", false);
        check_stamps(&examples[i], TD_FLOAT64, "numbers of type double", false);
    }
    check_stamps(&examples[1], TD_FLOAT32, "a column that is not a number", true);
    check_stamps(&examples[2], TD_FLOAT64, "a column that is not a number", true);
    check_second();
    check_threads();
    return check_end();
}
