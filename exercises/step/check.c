/* Steps of the optimiser, against the same steps taken one number at a time. */
#include "check.h"
#include "ops/kernels/optimisers-kernels.h"

enum { STEPS = 3 };
typedef struct {
    const char *what, *formula;
    int64_t n;
    double rate[STEPS];
    td_sgd_options options;
    double first;                /* parameter 0 at the start */
    double fine;                 /* added to all others and to the gradients */
} example;

static const char *plain = "theta = theta - rate * d", *momentum = "m = mu * m + take * d, theta = theta - rate * m";
static const char *ahead = "m = mu * m + take * d, theta = theta - rate * (d + mu * m)";
static const char *decay = "d = sign * g + decay * theta, theta = theta - rate * d";

static double slope(int64_t i, int step, double fine)
{
    return (double)(i * 37 % 11 - 4) / 8 + step + fine;
}

/* All numbers are short sums of powers of two, so that both sides round alike. */
static void expect(const example *x, double *theta, double *m)
{
    const td_sgd_options *o = &x->options;
    for (int step = 0; step < STEPS; step++)
        for (int64_t i = 0; i < x->n; i++) {
            const double d = (o->maximize ? -1 : 1) * slope(i, step, x->fine)
                           + (o->weight_decay != 0 ? o->weight_decay * theta[i] : 0);
            m[i] = step ? o->momentum * m[i] + (1 - o->dampening) * d : d;
            theta[i] -= x->rate[step] * (o->momentum == 0 ? d : o->nesterov ? d + o->momentum * m[i] : m[i]);
        }
}

static void check_example(const example *x, td_dtype dtype, double tolerance)
{
    const size_t n = (size_t)x->n;
    double *expected = calloc(n, sizeof(double)), *m = calloc(n, sizeof(double)), *g = calloc(n, sizeof(double));
    const td_tensor_options wide = { .dtype = TD_FLOAT64 };
    check_case(x->what, x->formula);
    td_scope_begin();
    for (int64_t i = 0; i < x->n; i++)
        expected[i] = (double)(i % 7) / 4 + 1 + x->fine;
    expected[0] = x->first;
    td_tensor *theta = td_clone(td_to(td_from_data(expected, TD_DIMS(x->n), wide), dtype));
    td_set_requires_grad(theta, true);
    td_optimiser *sgd = td_sgd(&theta, 1, x->rate[0], x->options);
    for (int step = 0; step < STEPS; step++) {
        for (int64_t i = 0; i < x->n; i++)
            g[i] = slope(i, step, x->fine);
        td_set_grad(theta, td_to(td_from_data(g, TD_DIMS(x->n), wide), dtype));
        td_set_learning_rate(sgd, x->rate[step]);
        td_step(sgd);
    }
    expect(x, expected, m);
    td_set_grad(theta, NULL);
    check_no_error();
    td_no_grad_begin();
    check_tensor(theta, TD_DIMS(x->n), expected, tolerance);
    td_no_grad_end();
    td_scope_end();
    free(expected), free(m), free(g);
}

/* Arrays that would begin so many bytes before `x`, where nobody looks. */
static void *before(void *x, int64_t bytes)
{
    return (void *)((uintptr_t)x - (uintptr_t)bytes);
}

/* One call of the loop itself, on the elements 2 to 6 of 9, in one type; all
   results are exact.  A third of the gradients are zero. */
#define LOOP_OF(T, which)                                                                 \
    static void check_##T(step s, bool buffer, int64_t far)                               \
    {                                                                                     \
        T theta[9], g[9], m[9];                                                           \
        double theta_left[9], m_left[9];                                                  \
        for (int i = 0; i < 9; i++) {                                                     \
            theta[i] = (T)(i + 1), g[i] = (T)(i % 3 - 1), m[i] = (T)(4 - i);              \
            double d = s.sign * (double)g[i] + s.decay * (double)theta[i];                \
            const double new_m = s.mu * (double)m[i] + s.take * d;                        \
            d = !buffer ? d : s.nesterov ? d + s.mu * new_m : new_m;                      \
            const bool mine = i >= 2 && i < 7;                                            \
            m_left[i] = mine && buffer ? new_m : (double)m[i];                            \
            theta_left[i] = (double)theta[i] - (mine ? s.rate * d : 0);                   \
        }                                                                                 \
        s.theta = before(theta, far * (int64_t)sizeof(T));                                \
        s.g = before(g, far * (int64_t)sizeof(T));                                        \
        s.state[0] = buffer ? before(m, far * (int64_t)sizeof(T)) : NULL;                 \
        TD_ISA(td_step_level).sgd[which](&s, far + 2, far + 7);                           \
        for (int i = 0; i < 9; i++)                                                       \
            check_numbers(&(double){ (double)theta[i] }, &theta_left[i], 1, 0);           \
        check_formula = buffer ? "m = mu * m + take * d, also where mu, the rate or a gradient is 0" \
                               : "without a buffer none is written";                      \
        for (int i = 0; i < 9; i++)                                                       \
            check_numbers(&(double){ (double)m[i] }, &m_left[i], 1, 0);                   \
        for (int i = 0; i < 9; i++)                                                       \
            check_numbers(&(double){ (double)g[i] }, &(double){ i % 3 - 1 }, 1, 0);       \
    }
LOOP_OF(double, 0)
LOOP_OF(float, 1)

/* Every combination of settings: bit k of `which` chooses between two of each. */
static void check_loop(int which)
{
    char what[200];
    step s = { .rate = which & 1 ? 0.5 : 0, .mu = which & 2 ? 0.5 : 0, .take = which & 4 ? 1 : 0.75,
               .decay = which & 8 ? 0.25 : which & 16 ? -0.5 : 0, .sign = which & 32 ? 1 : -1,
               .nesterov = which & 64 };
    const bool buffer = which & 128;
    snprintf(what, sizeof what, "elements 2 to 6 of 9, %s buffer%s, rate %g, mu %g, take %g, decay %g, sign %g",
             buffer ? "with a" : "without a", s.nesterov ? ", Nesterov's variant" : "", s.rate, s.mu, s.take, s.decay, s.sign);
    const char *how = buffer && s.nesterov ? "d = sign * g + decay * theta, theta = theta - rate * (d + mu * m), with the new m"
                    : buffer ? "theta = theta - rate * m, with the new m" : decay;
    check_case(what, how);
    check_double(s, buffer, 0);
    check_case(what, how);
    check_float(s, buffer, 0);
}

int main(void)
{
    const example examples[] = {
        { "the plain step", plain, 5, { 0.5, 0.5, 0.5 }, { 0 }, 1, 0 },
        { "the plain step of an infinite parameter without decay", plain, 3, { 0.5, 0.5, 0.5 }, { 0 }, INFINITY, 0 },
        { "an infinite parameter with momentum and without decay", momentum, 3, { 0.5, 0.5, 0.5 }, { .momentum = 0.5 }, INFINITY, 0 },
        { "numbers that no float holds", momentum, 5, { 0.5, 0.5, 0.5 }, { .momentum = 0.5 }, 1, 0x1p-30 },
        { "Nesterov's variant of numbers that no float holds", ahead, 5, { 0.5, 0.5, 0.5 },
          { .momentum = 0.5, .nesterov = true, .weight_decay = 0.25 }, 1, 0x1p-30 },
        { "momentum", momentum, 5, { 0.5, 0.5, 0.5 }, { .momentum = 0.5 }, 1, 0 },
        { "momentum with dampening", momentum, 5, { 0.5, 0.5, 0.5 }, { .momentum = 0.5, .dampening = 0.25 }, 1, 0 },
        { "momentum, the rate changes between two steps", momentum, 5, { 0.5, 0.125, 0.25 }, { .momentum = 0.5 }, 1, 0 },
        { "Nesterov's variant", ahead, 5, { 0.5, 0.5, 0.5 }, { .momentum = 0.5, .nesterov = true }, 1, 0 },
        { "decay", decay, 5, { 0.5, 0.5, 0.5 }, { .weight_decay = 0.25 }, 1, 0 },
        { "uphill with decay", decay, 5, { 0.5, 0.5, 0.5 }, { .weight_decay = 0.25, .maximize = true }, 1, 0 },
        { "20000 numbers, shared by threads", momentum, 20000, { 0.5, 0.5, 0.5 }, { .momentum = 0.5 }, 1, 0 },
    };
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        check_example(&examples[i], TD_FLOAT32, 0x1p-22);
        check_example(&examples[i], TD_FLOAT64, 0x1p-50);
    }
    for (int which = 255; which >= 0; which--)
        check_loop(which);
    check_case("elements 2^32 + 2 to 2^32 + 6, with a buffer", "an index is an int64_t");
    check_double((step){ .rate = 0.5, .mu = 0.5, .take = 1, .sign = 1 }, true, INT64_C(1) << 32);
    return check_end();
}
