/* Steps of a network of one layer, in float64, against the same steps in loops. */
#include "check.h"

double learn_batch_between(td_module *net, td_optimiser *sgd, const td_batch *batch);

enum { IN = 5, OUT = 3, MOST = 70 };
static const char *loss_is = "loss = -(1 / n) * sum of log softmax(x w^T + b)[y]";
static const char *step_is = "m = mu * m + g, w = w - rate * m, with g = (1 / n) * sum of (p - [c = y]) x";

typedef struct { double w[OUT * IN], b[OUT], dw[OUT * IN], db[OUT], mw[OUT * IN], mb[OUT]; } layer;

static double input(int n, int k, int step) { return (double)((n * 31 + k * 17 + step * 7) % 13 - 6) / 4; }
static int label(int n, int step) { return (n * 5 + step) % 3 == 0 ? 2 : (n + step) % OUT; }

/* The loss of a batch; its gradient in dw and db; then a step with momentum mu. */
static double learn(layer *l, int in, int out, int n, int step, double rate, double mu)
{
    double total = 0;
    memset(l->dw, 0, sizeof l->dw), memset(l->db, 0, sizeof l->db);
    for (int i = 0; i < n; i++) {
        double score[OUT], sum = 0;
        const int y = label(i, step) % out;
        for (int c = 0; c < out; c++) {
            score[c] = l->b[c];
            for (int k = 0; k < in; k++)
                score[c] += input(i, k, step) * l->w[c * in + k];
            sum += exp(score[c]);
        }
        total += log(sum) - score[y];
        for (int c = 0; c < out; c++) {
            const double miss = (exp(score[c]) / sum - (c == y)) / n;
            l->db[c] += miss;
            for (int k = 0; k < in; k++)
                l->dw[c * in + k] += miss * input(i, k, step);
        }
    }
    for (int c = 0; c < out * in; c++)
        l->w[c] -= rate * (l->mw[c] = mu * l->mw[c] + l->dw[c]);
    for (int c = 0; c < out; c++)
        l->b[c] -= rate * (l->mb[c] = mu * l->mb[c] + l->db[c]);
    return total / n;
}

static td_batch batch_of(int n, int in, int out, int step)
{
    double x[MOST * IN];
    int64_t y[MOST];
    for (int i = 0; i < n; i++) {
        y[i] = label(i, step) % out;
        for (int k = 0; k < in; k++)
            x[i * in + k] = input(i, k, step);
    }
    return (td_batch){ td_from_data(x, TD_DIMS(n, in), (td_tensor_options){ .dtype = TD_FLOAT64 }),
                       td_from_data(y, TD_DIMS(n), (td_tensor_options){ .dtype = TD_INT64 }), n };
}

/* Each of `got` within 1e-12, named. */
static void compare(const char *what, const char *formula, const td_tensor *got, const double *expected, int n)
{
    char text[200];
    snprintf(text, sizeof text, "%.140s: %s", check_what, what);
    const char *before = check_formula;
    check_formula = formula;
    if (!got)
        check_wrong("  %s\n  expected  %d numbers\n  got       none", what, n);
    const double *x = td_data(got);
    for (int i = 0; i < n; i++)
        if (!check_is_close(x[i], expected[i], 1e-12))
            check_wrong("  %s: first bad index %d of %d\n  expected  %.15g\n  got       %.15g", what, i, n, expected[i], x[i]);
    check_formula = before;
}

typedef struct {
    const char *what;
    int in, out, n, steps;
    double rate, mu;
    double left;                /* gradients that were left on the parameters */
    bool use;                   /* the network is switched to use */
} example;

static void check_example(const example *x)
{
    const double zero[OUT * IN] = { 0 };
    layer l = { .w = { 0 } };
    td_tensor *p[2];
    check_case(x->what, step_is);
    td_scope_begin();
    td_module *net = td_linear_module(x->in, x->out, (td_linear_options){ .dtype = TD_FLOAT64 });
    td_parameters(net, p, 2);
    for (int i = 0; i < x->out * x->in; i++)
        l.w[i] = x->in == 2 ? 0 : (double)(i * 7 % 5 - 2) / 4;
    memcpy(td_data(p[0]), l.w, (size_t)(x->out * x->in) * sizeof(double));
    memcpy(td_data(p[1]), zero, (size_t)x->out * sizeof(double));
    td_train(net, !x->use);
    td_optimiser *sgd = td_sgd(p, 2, x->rate, (td_sgd_options){ .momentum = x->mu });
    for (int k = 0; k < 2 && x->left != 0; k++)
        td_set_grad(p[k], td_full(td_shape_of(p[k]), td_float(x->left), (td_tensor_options){ .dtype = TD_FLOAT64 }));
    for (int step = 0; step < x->steps; step++) {
        const int n = step + 1 == x->steps ? x->n : x->n * 2;
        td_batch batch = batch_of(n, x->in, x->out, step);
        const int64_t nodes = td_live_node_count();
        const td_random_state dice = td_random_swap((td_random_state){ 0 });
        td_random_swap(dice);
        const double got = learn_batch_between(net, sgd, &batch);
        const double loss = learn(&l, x->in, x->out, n, step, x->rate, x->mu);
        check_no_error();
        compare("weight", step_is, p[0], l.w, x->out * x->in);
        compare("bias", step_is, p[1], l.b, x->out);
        check_formula = loss_is;
        if (!check_is_close(got, loss, 1e-12))
            check_wrong("  the loss before the step\n  expected  %.15g\n  got       %.15g", loss, got);
        check_formula = "the gradient of this loss is still there";
        compare("the gradient that is still there, of the weight", "g = (1 / n) * sum of (p - [c = y]) x", td_grad_of(p[0]), l.dw,
                x->out * x->in);
        if (td_live_node_count() > nodes + 5)
            check_wrong("  expected  the graph is released, at most 5 nodes are left\n  got       %" PRId64, td_live_node_count() - nodes);
        if (td_is_training(net) == x->use)
            check_wrong("  expected  the mode of the network as it was\n  got       %s", x->use ? "training" : "use");
        if (!td_grad_enabled())
            check_wrong("  expected  the graph is recorded as before\n  got       a thread that records nothing");
        const td_random_state after = td_random_swap(dice);
        if (memcmp(&after, &dice, sizeof after) != 0)
            check_wrong("  expected  no random number drawn\n  got       another place in the stream");
    }
    td_scope_end();
    if (td_live_node_count() != 0)
        check_wrong("  expected  no node of the graph is left\n  got       %" PRId64, (int64_t)td_live_node_count());
}

/* A label that is no class; then an error that was there before. */
static void check_failures(void)
{
    for (int how = 0; how < 3; how++) {
        const char *const cases[] = { "a label that is no class", "an error that was pending before", "an input of another width" };
        check_case(cases[how], "after a failure: NaN, no parameter moved, the error still pending, every scope as it was");
        td_scope_begin();
        td_module *net = td_linear_module(IN, OUT, (td_linear_options){ .dtype = TD_FLOAT64 });
        td_tensor *p[2], *before[2];
        td_parameters(net, p, 2);
        td_optimiser *sgd = td_sgd(p, 2, 0.5, (td_sgd_options){ .momentum = 0.9 });
        for (int k = 0; k < 2; k++) {
            td_set_grad(p[k], td_full(td_shape_of(p[k]), td_float(1), (td_tensor_options){ .dtype = TD_FLOAT64 }));
            before[k] = td_clone(td_detach(p[k]));
        }
        td_batch batch = batch_of(4, how == 2 ? IN - 1 : IN, OUT, 0);
        if (how == 0)
            ((int64_t *)td_data(batch.target))[2] = 7;
        if (how == 1)
            td_fail(TD_ERROR_VALUE, "the check", "an error from before");
        td_scope_begin();
        const double got = learn_batch_between(net, sgd, &batch);
        td_scope_end();
        if (!isnan(got))
            check_wrong("  expected  nan\n  got       %.15g", got);
        if (!td_failed())
            check_wrong("  expected  the error is still pending\n  got       none");
        if (how == 1 && !strstr(td_error_message(), "an error from before"))
            check_wrong("  expected  the error that was pending before\n  got       %s", td_error_message());
        td_error_clear();
        for (int k = 0; k < 2; k++)
            compare(k ? "bias" : "weight", "no parameter has moved", p[k], td_data(before[k]), (int)td_numel(p[k]));
        td_scope_end();
        check_case("after a failure every scope is closed", "a scope that is opened is closed, on every way out");
        if (td_memory_stats().live_objects != 0)
            check_wrong("  expected  no object is alive\n  got       %" PRId64 "; a scope was left open",
                        (int64_t)td_memory_stats().live_objects);
    }
}

int main(void)
{
    const example examples[] = {
        { "one example of class 0, weights zero", 2, 2, 1, 1, 0.1, 0, 0, false },
        { "three examples, two steps before the step of these", IN, OUT, 3, 3, 0.25, 0, 0, false },
        { "momentum, four steps, the last with half a batch", IN, OUT, 32, 4, 0.25, 0.5, 0, false },
        { "gradients were left from before", IN, OUT, 3, 1, 0.25, 0, 100, false },
        { "the mode: a network that is switched to use", IN, OUT, 3, 2, 0.25, 0, 0, true },
        { "a rate of zero", IN, OUT, 7, 2, 0, 0.5, 0, false },
    };
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++)
        check_example(&examples[i]);
    check_failures();
    return check_end();
}
