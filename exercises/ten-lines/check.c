/* The walk back over lists of steps: derivatives by hand, and by forward mode for lists at random. */
#include "check.h"

enum { INPUT, ADD, SUBTRACT, MULTIPLY, LOG, SINE };
typedef struct { int does, a, b; } step;
void backward_between(int n, const void *s, const double *v, double *bar);
double run_between(int n, const void *s, double *v);
static const char *how = "bar[n-1] = 1; step i sends bar[i] * d v[i] / d operand to each operand, which adds up what it gets";

/* The derivative of the last step by step k, by forward mode. */
static double expected_by(int k, int n, const step *s, const double *v)
{
    double *dot = calloc((size_t)n, sizeof *dot);
    for (int i = k; i < n; i++) {
        const double x = v[s[i].a], y = v[s[i].b], dx = dot[s[i].a], dy = dot[s[i].b];
        const int does = dx == 0 && dy == 0 ? INPUT : s[i].does;
        dot[i] = i == k ? 1 : does == ADD ? dx + dy : does == SUBTRACT ? dx - dy : does == LOG ? dx / x
               : does == SINE ? dx * cos(x) : does == MULTIPLY ? dx * y + x * dy : 0;
    }
    const double result = dot[n - 1];
    free(dot);
    return result;
}

/* Walk back over a list whose inputs have these values; before that, bar holds `before`. */
static void check_list(const char *what, int n, const step *s, const double *inputs, int n_inputs, double before)
{
    double *v = calloc((size_t)n, sizeof *v), *kept = malloc((size_t)n * sizeof *v);
    double *bar = malloc((size_t)n * sizeof *v), *expected = malloc((size_t)n * sizeof *v);
    memcpy(v, inputs, (size_t)n_inputs * sizeof *v);
    run_between(n, s, v);
    memcpy(kept, v, (size_t)n * sizeof *v);
    for (int i = 0; i < n; i++)
        bar[i] = before, expected[i] = expected_by(i, n, s, v);
    check_case(what, how);
    backward_between(n, s, v, bar);
    check_numbers(bar, expected, n, 1e-13);
    if (memcmp(v, kept, (size_t)n * sizeof *v) != 0)
        check_wrong("  expected  the values as they were\n  got       other numbers in v");
    free(v), free(kept), free(bar), free(expected);
}

static void check_by_hand(void)
{
    const step formula[] = { { INPUT, 0, 0 }, { INPUT, 0, 0 }, { LOG, 0, 0 }, { MULTIPLY, 0, 1 }, { SINE, 1, 0 },
                             { ADD, 2, 3 }, { SUBTRACT, 5, 4 } };
    const step square[] = { { INPUT, 0, 0 }, { MULTIPLY, 0, 0 } }, twice[] = { { INPUT, 0, 0 }, { ADD, 0, 0 } };
    const step input[] = { { INPUT, 0, 0 } }, last[] = { { INPUT, 0, 0 }, { SINE, 0, 0 }, { INPUT, 0, 0 } };
    const step late[] = { { INPUT, 0, 0 }, { SINE, 0, 0 }, { INPUT, 0, 0 }, { MULTIPLY, 1, 2 } };
    const step none[] = { { INPUT, 0, 0 }, { SUBTRACT, 0, 0 }, { MULTIPLY, 1, 0 } };
    const step idle[] = { { INPUT, 0, 0 }, { LOG, 0, 0 }, { MULTIPLY, 1, 1 }, { ADD, 0, 0 } };
    const step chosen[] = { { INPUT, 0, 0 }, { INPUT, 0, 0 }, { LOG, 0, 0 }, { SINE, 0, 0 }, { MULTIPLY, 3, 1 } };
    const step small[] = { { INPUT, 0, 0 }, { INPUT, 0, 0 }, { INPUT, 0, 0 }, { MULTIPLY, 0, 1 }, { MULTIPLY, 3, 2 } };
    check_list("the chapter's formula at (2, 5)", 7, formula, (double[]){ 2, 5 }, 2, 0);
    check_list("the same, where bar held other numbers", 7, formula, (double[]){ 2, 5 }, 2, 17);
    check_list("a square at 3", 2, square, (double[]){ 3 }, 1, 0);
    check_list("a step used twice by a sum", 2, twice, (double[]){ 3 }, 1, 0);
    check_list("a list of one input", 1, input, (double[]){ 3 }, 1, 0);
    check_list("an input that stands last", 3, last, (double[]){ 3, 0, 4 }, 3, 0);
    check_list("an input that stands behind a step", 4, late, (double[]){ 3, 0, 4 }, 3, 0);
    check_list("a difference of a step and itself, a factor of 0", 3, none, (double[]){ 3 }, 1, 0);
    check_list("a logarithm of 0 that nobody uses", 4, idle, (double[]){ 0 }, 1, 0);
    check_list("a logarithm of 0 beside what is used", 5, chosen, (double[]){ 0, 2 }, 2, 0);
    check_list("an adjoint of 1e-20 that counts", 5, small, (double[]){ 1e20, 1e20, 1e-20 }, 3, 0);
}

/* Steps of every kind on operands at random. */
static void check_at_random(void)
{
    enum { N = 300 };
    static const double inputs[] = { 0.7, -0.4, 1.3, 0.2 };
    step s[N];
    uint64_t z = 1;
    for (int list = 0; list < 20; list++) {
        for (int i = 0; i < N; i++) {
            int draw[3];
            for (int k = 0; k < 3; k++)
                z = z * 6364136223846793005u + 1442695040888963407u, draw[k] = (int)(z >> 40);
            s[i] = i < 4 ? (step){ INPUT, 0, 0 } : (step){ ADD + draw[0] % 3, 0, draw[2] % i };
            if (i >= 4 && draw[0] % 5 < 3)
                s[i].does = SINE, s[i].b = 0;
            if (i >= 4)
                s[i].a = i - 1 - draw[1] % (i < 12 ? i : 12);
        }
        check_list("300 steps at random", N, s, inputs, 4, 0);
    }
}

/* Everything is used twice: 2^60 ways from the end to the input; sums of sines and logarithms in a long chain. */
static void check_long(void)
{
    enum { TWICE = 61, N = 2000000 };
    step *s = malloc(N * sizeof *s);
    for (int i = 0; i < TWICE; i++)
        s[i] = (step){ i == 0 ? INPUT : ADD, i - (i > 0), i - (i > 0) };
    check_list("sixty doublings", TWICE, s, (double[]){ 1 }, 1, 0);
    double *v = calloc(N, sizeof *v), *bar = calloc(N, sizeof *bar);
    for (int i = 0; i < N; i++)
        s[i] = i == 0 ? (step){ INPUT, 0, 0 } : (step){ ADD, i - 1, 0 };
    v[0] = 1;
    run_between(N, s, v);
    check_case("two million steps in a chain", "one walk: step i sends to i - 1 and to the input");
    backward_between(N, s, v, bar);
    const double expected[] = { N, 1, 1 }, got[] = { bar[0], bar[1], bar[N - 1] };
    check_numbers(got, expected, 3, 0);
    free(s), free(v), free(bar);
}

int main(void)
{
    check_by_hand();
    check_at_random();
    check_long();
    return check_end();
}
