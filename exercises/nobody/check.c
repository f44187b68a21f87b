/* Attention under masks, its gradients and second derivatives, against the formula in double precision. */
#include "check.h"
#include "core/registry.h"

enum { MOST = 256, N = 2, H = 2, L = 3, S = 4, D = 2 };
static const char *const formula = "o_i = sum of p_ij v_j over the keys of row i, p_ij = exp(s_ij) / their sum; no keys: 0";
#define AWAY (-INFINITY)

typedef struct {
    const char *what;
    td_dims shape;
    bool floats;
    double mask[N * H * L * S];
} example;

static const example examples[] = {
    { "who may look at whom", { 2, { 3, 4 } }, false, { 1, 0, 0, 0,  1, 1, 0, 0,  0, 1, 1, 1 } },
    { "a row that nobody may look at", { 2, { 3, 4 } }, false, { 1, 0, 1, 1,  0, 0, 0, 0,  1, 1, 1, 1 } },
    { "who may look at whom, and nobody at one", { 2, { 3, 4 } }, false, { 1, 0, 0, 1,  0, 1, 0, 1,  0, 1, 0, 0 } },
    { "nobody may look at anything", { 2, { 3, 4 } }, false, { 0 } },
    { "a single row for all questions", { 1, { 4 } }, false, { 0, 1, 1, 0 } },
    { "a single row, and all of it away", { 1, { 4 } }, false, { 0 } },
    { "one key for all", { 2, { 3, 1 } }, false, { 1, 0, 1 } },
    { "a mask for each head", { 4, { 2, 2, 3, 4 } }, false,
      { 1, 1, 0, 0,  0, 0, 0, 0,  1, 0, 0, 1,   0, 1, 0, 1,  1, 1, 1, 1,  0, 0, 0, 0,
        0, 0, 0, 0,  0, 0, 1, 1,  0, 1, 1, 1,   1, 0, 0, 0,  0, 0, 0, 0,  0, 0, 1, 0 } },
    { "padding, one row for each example", { 4, { 2, 1, 1, 4 } }, false, { 1, 1, 0, 0,  0, 0, 0, 0 } },
    { "floats: a row of minus infinity", { 2, { 3, 4 } }, true, { 0, AWAY, 0, 0,  AWAY, AWAY, AWAY, AWAY,  AWAY, 0, 0, AWAY } },
    { "floats that only prefer", { 2, { 3, 4 } }, true, { 1, -2, 0.5, 3,  -1, -1, 2, AWAY,  0, 0, 0, 0 } },
    { "floats: a large negative number is no minus infinity", { 2, { 3, 4 } }, true,
      { -1e12, -1e12, AWAY, AWAY,  0, AWAY, AWAY, AWAY,  -1e300, AWAY, AWAY, AWAY } },
    { "floats: a single row, and all of it away", { 1, { 4 } }, true, { AWAY, AWAY, AWAY, AWAY } },
    { "floats: padding for each example", { 4, { 2, 1, 1, 4 } }, true, { 0, AWAY, AWAY, 0,  AWAY, AWAY, AWAY, AWAY } },
};

/* The number of the mask that belongs to score i of [N, H, L, S]. */
static double of_mask(const example *e, int i)
{
    const int size[] = { N, H, L, S };
    int at = 0, step = 1;
    for (int d = 3; d >= 0; i /= size[d--]) {
        const int mine = d - (4 - e->shape.count);
        if (mine >= 0 && e->shape.at[mine] > 1)
            at += i % size[d] * step;
        step *= mine >= 0 ? (int)e->shape.at[mine] : 1;
    }
    return e->mask[at];
}

static td_tensor *numbers(double *x, td_dims shape, int64_t n, int step, double scale, td_dtype type)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = scale * ((double)(i * step % 19) - 8.5) / 8;
    return td_set_requires_grad(td_to(td_from_data(x, shape, (td_tensor_options){ .dtype = TD_FLOAT64 }), type), true);
}

static td_tensor *mask_of(const example *e, td_dtype type)
{
    td_tensor *m = td_from_data(e->mask, e->shape, (td_tensor_options){ .dtype = TD_FLOAT64 });
    return td_to(m, e->floats ? type : TD_BOOL);
}

static td_tensor *attend(td_tensor *const *qkv, td_tensor *mask)
{
    return TD_RUN(scaled_dot_product_attention, (td_v_tensor(qkv[0]), td_v_tensor(qkv[1]), td_v_tensor(qkv[2]), td_v_tensor(mask)),
                  td_v_float(0), td_v_bool(false), td_v_float(1), td_v_bool(false));
}

typedef struct { double q[MOST], k[MOST], v[MOST], out[MOST], dq[MOST], dk[MOST], dv[MOST]; } all;

/* Results, and what the derivatives of their sum with weights 1, 2, 3 ... / 10 should be. */
static void expect(const example *e, all *a)
{
    memset(a->out, 0, sizeof a->out), memset(a->dq, 0, sizeof a->dq), memset(a->dk, 0, sizeof a->dk), memset(a->dv, 0, sizeof a->dv);
    for (int row = 0; row < N * H * L; row++) {
        double p[S] = { 0 }, top = -INFINITY, sum = 0, mean = 0, dp[S];
        const int keys = row / L * S;
        bool in[S];
        for (int j = 0; j < S; j++) {
            const double m = of_mask(e, row * S + j);
            in[j] = e->floats ? m != AWAY : m != 0;
            for (int d = 0; d < D; d++)
                p[j] += a->q[row * D + d] * a->k[(keys + j) * D + d];
            p[j] += e->floats ? m : 0;
            if (in[j] && !(p[j] <= top))
                top = p[j];
        }
        for (int j = 0; j < S; j++)
            sum += p[j] = in[j] ? exp(p[j] - top) : 0;
        for (int j = 0; j < S; j++) {
            p[j] = in[j] ? p[j] / sum : 0;
            dp[j] = 0;
            for (int d = 0; d < D; d++) {
                const double g = (row * D + d + 1) / 10.0;
                a->out[row * D + d] += in[j] ? p[j] * a->v[(keys + j) * D + d] : 0;
                a->dv[(keys + j) * D + d] += p[j] * g;
                dp[j] += a->v[(keys + j) * D + d] * g;
            }
            mean += p[j] * dp[j];
        }
        for (int j = 0; j < S; j++)
            for (int d = 0; d < D; d++) {
                a->dq[row * D + d] += p[j] * (dp[j] - mean) * a->k[(keys + j) * D + d];
                a->dk[(keys + j) * D + d] += p[j] * (dp[j] - mean) * a->q[row * D + d];
            }
    }
}

static void say(const example *e, td_dtype type, const char *of)
{
    char what[180];
    snprintf(what, sizeof what, "%s, in %s: %s", e->what, type == TD_FLOAT64 ? "double" : "float", of);
    check_case(what, formula);
}

static void check_example(const example *e, td_dtype type, double scale)
{
    static all a;
    const double tolerance = type == TD_FLOAT64 ? 1e-12 : 1e-4;
    const td_dims questions = TD_DIMS(N, H, L, D), keys = TD_DIMS(N, H, S, D);
    double ten[MOST];
    td_scope_begin();
    td_tensor *in[] = { numbers(a.q, questions, N * H * L * D, 7, scale, type), numbers(a.k, keys, N * H * S * D, 5, scale, type),
                        numbers(a.v, keys, N * H * S * D, 11, 1, type) };
    td_tensor *mask = mask_of(e, type);
    for (int i = 0; i < MOST; i++)
        ten[i] = (i + 1) / 10.0;
    expect(e, &a);
    say(e, type, "the result");
    td_tensor *out = attend(in, mask);
    check_no_error();
    check_tensor(out, questions, a.out, tolerance);
    say(e, type, "gradient of the queries");
    td_backward(out, (td_backward_options){ .gradient = td_to(td_from_data(ten, questions, (td_tensor_options){ .dtype = TD_FLOAT64 }), type) });
    check_no_error();
    check_tensor(td_grad_of(in[0]), questions, a.dq, tolerance);
    say(e, type, "gradient of the keys");
    check_tensor(td_grad_of(in[1]), keys, a.dk, 10 * tolerance);
    say(e, type, "gradient of the values");
    check_tensor(td_grad_of(in[2]), keys, a.dv, 10 * tolerance);
    say(e, type, "the mask itself");
    if (!e->floats || type == TD_FLOAT64)
        check_tensor(mask, e->shape, e->mask, 0);
    say(e, type, "the result of a second call");
    check_tensor(attend(in, mask), questions, a.out, tolerance);
    td_scope_end();
}

/* Scores of plus and minus a hundred thousand: the largest is away. */
static void check_favourite(bool floats)
{
    example e = { "a favourite that is away", { 2, { 3, 4 } }, floats, { 0 } };
    for (int i = 0; i < L * S; i++)
        e.mask[i] = floats ? (i % S < 2 ? AWAY : 0) : i % S >= 2;
    check_example(&e, TD_FLOAT64, 600);
}

/* One question, whose score with key 2 is not a number. */
static void check_nan(bool floats)
{
    const td_tensor_options wide = { .dtype = TD_FLOAT64 };
    const double q = 1, k[] = { 1, 2, NAN }, v[] = { 1, 2, 3 };
    const double seen[] = { floats ? AWAY : 0, floats ? AWAY : 0, floats ? 0 : 1 };
    const double not_seen[] = { floats ? 0 : 1, floats ? 0 : 1, floats ? AWAY : 0 };
    td_scope_begin();
    td_tensor *in[] = { td_from_data(&q, TD_DIMS(1, 1), wide), td_from_data(k, TD_DIMS(3, 1), wide), td_from_data(v, TD_DIMS(3, 1), wide) };
    td_tensor *mask = td_from_data(seen, TD_DIMS(1, 3), wide);
    check_case("a score that is NaN and takes part, alone", "the mask says who takes part, and NaN stays NaN");
    td_tensor *y = attend(in, floats ? mask : td_to(mask, TD_BOOL));
    check_no_error();
    if (!isnan(td_item_double(y)))
        check_wrong("  expected  nan\n  got       %g", td_item_double(y));
    if (!floats) {
        check_case("a score that is NaN and is away", formula);
        y = attend(in, td_to(td_from_data(not_seen, TD_DIMS(1, 3), wide), TD_BOOL));
        check_no_error();
        if (!(fabs(td_item_double(y) - (exp(1) + 2 * exp(2)) / (exp(1) + exp(2))) < 1e-12))
            check_wrong("  expected  %.9g\n  got       %g", (exp(1) + 2 * exp(2)) / (exp(1) + exp(2)), td_item_double(y));
    } else {
        const double unknown[] = { NAN, AWAY, AWAY }, ones[] = { 1, 1, 1 };
        check_case("floats: a mask that is NaN", "what is not minus infinity takes part, and NaN stays NaN");
        in[1] = td_from_data(ones, TD_DIMS(3, 1), wide);
        y = attend(in, td_from_data(unknown, TD_DIMS(1, 3), wide));
        check_no_error();
        if (!isnan(td_item_double(y)))
            check_wrong("  expected  nan\n  got       %g", td_item_double(y));
    }
    td_scope_end();
}

static td_tensor *biased(void *context, td_tensor *const *in)
{
    (void)context;
    return attend(in, in[3]);
}

/* A mask that is learnt. */
static void check_learnt(void)
{
    const td_tensor_options o = { .dtype = TD_FLOAT64, .requires_grad = true };
    td_scope_begin();
    td_manual_seed(5);
    td_tensor *in[] = { td_randn(TD_DIMS(2, 3, 2), o), td_randn(TD_DIMS(2, 2, 2), o), td_randn(TD_DIMS(2, 2, 2), o), td_randn(TD_DIMS(3, 2), o) };
    check_case("the gradient of a mask of floats", "a number that is added to a score has the gradient of the score");
    td_tensor *y = attend(in, in[3]), *m = NULL;
    td_tensor *sum = td_sum(td_mul(y, y), (td_reduce_options){ 0 });
    check_no_error();
    td_grad(&sum, 1, &in[3], 1, &m, (td_grad_options){ .allow_unused = true });
    check_no_error();
    if (!m)
        check_wrong("  expected  a gradient\n  got       none: the mask was not recorded");
    td_gradcheck(biased, NULL, 4, in, (td_gradcheck_options){ 0 });
    check_no_error();
    check_case("the second derivative by scores and mask", formula);
    td_gradgradcheck(biased, NULL, 4, in, (td_gradcheck_options){ 0 });
    check_no_error();
    const double away[] = { AWAY, AWAY, 0.5, AWAY, 1, 2 };
    check_case("the gradient of a mask of floats, one row of minus infinity", "an empty row asks for nothing: its gradient is 0");
    td_tensor *mask = td_set_requires_grad(td_from_data(away, TD_DIMS(3, 2), (td_tensor_options){ .dtype = TD_FLOAT64 }), true);
    y = attend(in, mask);
    td_backward(td_sum(td_mul(y, y), (td_reduce_options){ 0 }), (td_backward_options){ 0 });
    check_no_error();
    const double *g = td_data(td_grad_of(mask));
    for (int i = 0; i < 6; i++)
        if (i < 2 ? g[i] != 0 : !isfinite(g[i]))
            check_wrong("  gradient of number %d of the mask\n  expected  %s\n  got       %g", i, i < 2 ? "0" : "a number", g[i]);
    td_scope_end();
}

/* No keys at all: nothing is there to be folded. */
static void check_empty(bool floats)
{
    const td_tensor_options wide = { .dtype = TD_FLOAT64 };
    const double zero[6] = { 0 };
    td_scope_begin();
    check_case("no keys at all", formula);
    td_tensor *in[] = { td_ones(TD_DIMS(3, 2), wide), td_ones(TD_DIMS(0, 2), wide), td_ones(TD_DIMS(0, 2), wide) };
    td_tensor *y = attend(in, td_zeros(TD_DIMS(3, 0), (td_tensor_options){ .dtype = floats ? TD_FLOAT64 : TD_BOOL }));
    check_no_error();
    check_tensor(y, TD_DIMS(3, 2), zero, 0);
    td_scope_end();
}

int main(void)
{
    const size_t n = sizeof examples / sizeof examples[0];
    check_example(&examples[0], TD_FLOAT64, 1);
    for (size_t i = 0; i < n; i++)
        for (int wide = 0; wide < 2; wide++)
            if (wide || !strstr(examples[i].what, "large"))
                check_example(&examples[i], wide ? TD_FLOAT64 : TD_FLOAT32, 1);
    check_favourite(false);
    check_favourite(true);
    check_nan(false);
    check_nan(true);
    check_learnt();
    check_empty(false);
    check_empty(true);
    return check_end();
}
