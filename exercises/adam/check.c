/* Steps divided by a root, against the same steps taken one number at a time in double. */
#include "check.h"
#include "ops/kernels/optimisers-kernels.h"

enum { N = 13, FIRST = 3, LAST = 16, ALL = 19, STEPS = 4 };

/* --- the loop itself, on the elements 3 to 15 of 19 ------------------------------ */

typedef struct { double theta[ALL], square[ALL], mean[ALL], extra[ALL]; } numbers;

static const char *how(const step *s, bool mean, bool extra)
{
    return s->leads ? (extra ? "extra = max(extra, v), q = m / (scale * sqrt(extra) + eps), theta = shrink * theta - rate * q"
                             : "q = m / (scale * sqrt(v) + eps), theta = shrink * theta - rate * q")
         : mean ? (extra ? "q = d / (scale * sqrt(v - m * m) + eps), extra = mu * extra + q, theta = shrink * theta - rate * extra"
                         : "q = d / (scale * sqrt(v - m * m) + eps), theta = shrink * theta - rate * q")
         : extra ? "q = d / (scale * sqrt(v) + eps), extra = mu * extra + q, theta = shrink * theta - rate * extra"
                 : "q = d / (scale * sqrt(v) + eps), theta = shrink * theta - rate * q";
}

/* One step, as the contract says it. */
static void expect(const step *s, bool has_mean, bool has_extra, const double *g, numbers *x)
{
    for (int i = FIRST; i < LAST; i++) {
        const double d = s->sign * g[i] + (s->decay != 0 ? s->decay * x->theta[i] : 0);
        const double v = x->square[i] = s->keep * x->square[i] + s->take * d * d;
        const double m = x->mean[i] = has_mean ? s->follow * x->mean[i] + (1 - s->follow) * d : x->mean[i];
        double under = has_mean && !s->leads ? v - m * m : v, top = s->leads ? m : d;
        if (has_extra && s->leads)
            under = x->extra[i] = isnan(v) || v > x->extra[i] ? v : x->extra[i];
        double q = top / (sqrt(under) * s->scale + s->eps);
        if (has_extra && !s->leads)
            q = x->extra[i] = s->mu * x->extra[i] + q;
        x->theta[i] = s->shrink * x->theta[i] - s->rate * q;
    }
}

/* Where there is no state, none is given: who writes it ends the program. */
#define LOOP_OF(T, which, tolerance)                                                                     \
    static void compare_##T(const char *what, const char *name, const char *formula, const T *got,       \
                            const double *expected)                                                      \
    {                                                                                                    \
        char text[200];                                                                                  \
        double wide[ALL];                                                                                \
        for (int i = 0; i < ALL; i++)                                                                    \
            wide[i] = (double)got[i];                                                                    \
        snprintf(text, sizeof text, "%s, in " #T ": %s", what, name);                                    \
        check_case(text, formula);                                                                       \
        check_numbers(wide, expected, ALL, tolerance);                                                   \
    }                                                                                                    \
    static void check_##T(const char *what, step s, bool mean, bool extra, double (*slope)(int, int))    \
    {                                                                                                    \
        T theta[ALL], square[ALL], m[ALL], e[ALL], g[ALL];                                               \
        double wide[ALL];                                                                                \
        numbers x;                                                                                       \
        const double rate = s.rate;                                                                      \
        for (int i = 0; i < ALL; i++) {                                                                  \
            theta[i] = (T)(i % 5) - 2, square[i] = (T)(9 + i % 3) / 2;                                   \
            m[i] = (T)(i % 4 - 1) / 4, e[i] = (T)(i % 2) + (T)0.75;                                      \
            x.theta[i] = (double)theta[i], x.square[i] = (double)square[i];                              \
            x.mean[i] = (double)m[i], x.extra[i] = (double)e[i];                                         \
        }                                                                                                \
        for (int n = 1; n <= 3; n++) {                                                                   \
            for (int i = 0; i < ALL; i++)                                                                \
                g[i] = (T)(wide[i] = slope(i, n));                                                       \
            check_case(what, how(&s, mean, extra));                                                      \
            s.theta = theta, s.g = g, s.state[0] = square;                                               \
            s.state[1] = mean ? m : NULL, s.state[2] = extra ? e : NULL;                                 \
            TD_ISA(td_step_level).adaptive[which](&s, FIRST, LAST);                                      \
            expect(&s, mean, extra, wide, &x);                                                           \
            compare_##T(what, "square", "v = keep * square + take * d * d, d = sign * g + decay * theta", square, x.square); \
            compare_##T(what, "mean", "m = follow * mean + rest * d", m, x.mean);                        \
            compare_##T(what, "extra", how(&s, mean, extra), e, x.extra);                                \
            compare_##T(what, "theta", how(&s, mean, extra), theta, x.theta);                            \
            compare_##T(what, "g", "the gradient is only read", g, wide);                                \
            s.rate = rate / (1 + n);                                                                     \
        }                                                                                                \
    }
LOOP_OF(double, 0, 0x1p-46)
LOOP_OF(float, 1, 0x1p-19)

static double mixed(int i, int n) { return (double)(i * 37 % 11 - 4) / 4 + 0.3125 * n; }
static double huge(int i, int n) { return 4000 * mixed(i, n); }
static double zeros(int i, int n) { return (i + n) % 3 ? 0 : mixed(i, n); }

static void check_loop(const char *what, step s, bool mean, bool extra, double (*slope)(int, int))
{
    check_double(what, s, mean, extra, slope);
    check_float(what, s, mean, extra, slope);
}

static void check_rules(void)
{
    static const struct { const char *what; bool leads, mean, extra; } rules[] = {
        { "Adam", true, true, false }, { "AMSGrad", true, true, true }, { "Adagrad or a plain RMSprop", false, false, false },
        { "RMSprop with momentum", false, false, true }, { "a centred RMSprop", false, true, false },
        { "a centred RMSprop with momentum", false, true, true } };
    static const struct { const char *what; double sign, decay, shrink; } ways[] = {
        { "", 1, 0, 1 }, { ", uphill", -1, 0, 1 }, { ", decay", 1, 0.25, 1 }, { ", uphill with decay", -1, -0.5, 1 },
        { ", the decay of AdamW", 1, 0, 0.75 }, { ", uphill with both kinds of decay", -1, 0.25, 0.75 } };
    char what[160];
    for (int w = 0; w < 6; w++)
        for (int r = 0; r < 6; r++) {
            step s = { .rate = 0.5, .mu = 0.75, .keep = 0.75, .take = 0.25, .follow = 0.75, .scale = 1.5, .eps = 0,
                       .decay = ways[w].decay, .shrink = ways[w].shrink, .sign = ways[w].sign, .leads = rules[r].leads };
            if (rules[r].leads || !rules[r].mean)
                s.follow = 0.5;
            snprintf(what, sizeof what, "%s%s, 13 numbers of 19; the rate changes", rules[r].what, ways[w].what);
            check_loop(what, s, rules[r].mean, rules[r].extra, mixed);
            s.eps = 3;
            snprintf(what, sizeof what, "%s%s, an epsilon of 3", rules[r].what, ways[w].what);
            check_loop(what, s, rules[r].mean, rules[r].extra, mixed);
            s.eps = 0x1p-26;
            snprintf(what, sizeof what, "%s%s, a gradient of zero now and then", rules[r].what, ways[w].what);
            check_loop(what, s, rules[r].mean, rules[r].extra, zeros);
            s.keep = s.take = 1;
            snprintf(what, sizeof what, "%s%s, squares that are added up as by Adagrad", rules[r].what, ways[w].what);
            check_loop(what, s, rules[r].mean, rules[r].extra, mixed);
        }
}

/* --- the optimisers, against the textbook -------------------------------------------- */

typedef struct {
    const char *what, *formula;
    td_adapting rule;
    double rate;
    td_adapt_options o;
    double slope, first;        /* the scale of the gradients; parameter 0 at the start */
} example;

static double slope_of(const example *x, int64_t i, int t)
{
    return x->slope * ((double)(i * 37 % 11 - 4) / 4 + (t == 2 ? -2.5 : 0.5 * t));
}

static double given(td_opt_f64 o, double otherwise) { return o.given ? o.value : otherwise; }

static void textbook(const example *x, int64_t n, double *theta)
{
    const td_adapt_options *o = &x->o;
    const bool adam = x->rule == TD_ADAM || x->rule == TD_ADAMW, adagrad = x->rule == TD_ADAGRAD;
    const double b1 = given(o->beta1, 0.9), b2 = adam ? given(o->beta2, 0.999) : given(o->alpha, 0.99);
    const double eps = given(o->eps, adagrad ? 1e-10 : 1e-8), decay = given(o->weight_decay, x->rule == TD_ADAMW ? 0.01 : 0);
    for (int64_t i = 0; i < n; i++) {
        double m = 0, v = 0, most = 0, buffer = 0, rate = x->rate;
        for (int t = 1; t <= STEPS; t++, rate /= 2) {
            double d = (o->maximize ? -1 : 1) * slope_of(x, i, t);
            if (x->rule == TD_ADAMW)
                theta[i] *= 1 - rate * decay;
            else if (decay != 0)
                d += decay * theta[i];
            v = adagrad ? v + d * d : b2 * v + (1 - b2) * d * d;
            if (adam) {
                m = b1 * m + (1 - b1) * d;
                most = fmax(most, v);
                theta[i] -= rate * (m / (1 - pow(b1, t))) / (sqrt((o->amsgrad ? most : v) / (1 - pow(b2, t))) + eps);
            } else if (adagrad) {
                theta[i] -= rate / (1 + (t - 1) * o->lr_decay) * d / (sqrt(v) + eps);
            } else {
                m = b2 * m + (1 - b2) * d;
                buffer = o->momentum * buffer + d / (sqrt(o->centered ? v - m * m : v) + eps);
                theta[i] -= rate * buffer;
            }
        }
    }
}

static void check_example(const example *x, int64_t n, td_dtype dtype, double tolerance)
{
    const td_tensor_options wide = { .dtype = TD_FLOAT64 };
    double *expected = calloc((size_t)n, sizeof(double)), *g = calloc((size_t)n, sizeof(double)), rate = x->rate;
    check_case(x->what, x->formula);
    td_scope_begin();
    for (int64_t i = 0; i < n; i++)
        expected[i] = (double)(i % 7) / 4 + 1;
    expected[0] = x->first;
    td_tensor *theta = td_clone(td_to(td_from_data(expected, TD_DIMS(n), wide), dtype));
    td_set_requires_grad(theta, true);
    td_optimiser *adam = td_adapt(x->rule, &theta, 1, rate, x->o);
    for (int t = 1; t <= STEPS; t++, rate /= 2) {
        for (int64_t i = 0; i < n; i++)
            g[i] = slope_of(x, i, t);
        td_set_grad(theta, td_to(td_from_data(g, TD_DIMS(n), wide), dtype));
        td_set_learning_rate(adam, rate);
        td_step(adam);
    }
    textbook(x, n, expected);
    td_set_grad(theta, NULL);
    td_no_grad_begin();
    check_tensor(theta, TD_DIMS(n), expected, tolerance);
    td_no_grad_end();
    td_scope_end();
    free(expected), free(g);
}

static void check_optimisers(void)
{
    static const char *adam = "m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2, both divided by 1 - b^t; theta -= rate * m / (sqrt(v) + eps)";
    static const char *rms = "v = a v + (1 - a) g^2, theta -= rate * g / (sqrt(v) + eps)";
    const example examples[] = {
        { "Adam, four steps, the rate changes", adam, TD_ADAM, 0.5, { 0 }, 1, 1 },
        { "Adam, gradients of 4000", adam, TD_ADAM, 0.5, { .beta1 = td_some(0.999), .beta2 = td_some(0.99) }, 4000, 1 },
        { "Adam of an infinite parameter without decay", adam, TD_ADAM, 0.5, { 0 }, 1, INFINITY },
        { "Adam, an epsilon of 1", adam, TD_ADAM, 0.5, { .eps = td_some(1) }, 1, 1 },
        { "Adam, decay", adam, TD_ADAM, 0.5, { .weight_decay = td_some(0.5) }, 1, 1 },
        { "AdamW, a large decay", "theta = theta * (1 - rate * decay), then a step of Adam without decay", TD_ADAMW, 0.5,
          { .weight_decay = td_some(0.5) }, 1, 1 },
        { "AMSGrad", "v under the root is the largest so far", TD_ADAM, 0.5, { .amsgrad = true, .beta2 = td_some(0.5) }, 1, 1 },
        { "RMSprop", rms, TD_RMSPROP, 0.25, { .alpha = td_some(0.5) }, 1, 1 },
        { "a centred RMSprop", rms, TD_RMSPROP, 0.25, { .alpha = td_some(0.5), .centered = true }, 1, 1 },
        { "RMSprop with momentum, the rate changes", rms, TD_RMSPROP, 0.25, { .alpha = td_some(0.5), .momentum = 0.5 }, 1, 1 },
        { "Adagrad, a rate that falls", "v = v + g^2, theta -= rate / (1 + (t - 1) later) * g / (sqrt(v) + eps)", TD_ADAGRAD, 0.5,
          { .lr_decay = 0.25 }, 1, 1 },
        { "Adam uphill with decay", adam, TD_ADAM, 0.5, { .maximize = true, .weight_decay = td_some(0.5) }, 1, 1 },
    };
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        check_example(&examples[i], 5, TD_FLOAT32, 2e-5);
        check_example(&examples[i], 5, TD_FLOAT64, 1e-11);
    }
    check_example(&(example){ "20000 numbers, shared by threads", adam, TD_ADAM, 0.5, { 0 }, 1, 1 }, 20000, TD_FLOAT32, 2e-5);
}

/* --- what is not a number must be seen ------------------------------------------------- */

static double one_nan(int i, int n) { return i == 7 && n == 2 ? (double)NAN : mixed(i, n); }

int main(void)
{
    const step first = { .rate = 1, .keep = 0.999, .take = 0.001, .follow = 0.9, .scale = 31.622776601683793, .eps = 0,
                         .shrink = 1, .sign = 1, .leads = true };
    check_loop("a first step of Adam, and two more, 13 numbers of 19", first, true, false, mixed);
    check_rules();
    const step slow = { .rate = 1, .keep = 0.75, .take = 0.25, .follow = 0.999, .scale = 1.5, .eps = 0, .shrink = 1, .sign = 1, .leads = true };
    check_loop("a mean of a thousand gradients of 4000", slow, true, false, huge);
    check_optimisers();
    step s = { .rate = 0.5, .mu = 0.75, .keep = 0.75, .take = 0.25, .follow = 0.5, .scale = 1.5, .eps = 0.125, .shrink = 1,
               .sign = 1, .leads = true };
    check_loop("a gradient that is not a number, of Adam", s, true, false, one_nan);
    check_loop("a gradient that is not a number, of AMSGrad", s, true, true, one_nan);
    s.leads = false;
    check_loop("a gradient that is not a number, of RMSprop", s, false, true, one_nan);
    return check_end();
}
