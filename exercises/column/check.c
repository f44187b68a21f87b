/* Difference quotients of small functions, seen from the outside: what they were called with, and what the check says. */
#include "check.h"

static const char *formula = "column j of the quotients = (f(x + h at j) - f(x - h at j)) / 2h";

typedef struct {
    td_tensor *(*f)(td_tensor *const *in, int call);
    int calls, fails_at;
    double old[16], h;              /* NAN: any step */
    bool looks;                     /* at what it is called with */
    int64_t live;
} context;

static td_tensor *make(const double *x, td_dims shape)
{
    return td_set_requires_grad(td_from_data(x, shape, (td_tensor_options){ .dtype = TD_FLOAT64 }), true);
}

/* At call n, from 2 on, element (n - 2) / 2 is moved by h to one side, the other side's turn is next, all else is as it was. */
static void look(context *c, const td_tensor *x)
{
    const int moved = (c->calls - 2) / 2;
    const double *now = td_data(x);
    static double side;
    for (int i = 0; i < td_numel(x); i++) {
        if (i != moved && memcmp(&now[i], &c->old[i], sizeof *now) != 0)
            check_wrong("  call %d, element %d\n  expected  %.17g, as it was\n  got       %.17g", c->calls, i, c->old[i], now[i]);
        if (i == moved && now[i] != c->old[i] + c->h && now[i] != c->old[i] - c->h)
            check_wrong("  call %d, element %d\n  expected  %.17g or %.17g\n  got       %.17g", c->calls, i, c->old[i] + c->h,
                        c->old[i] - c->h, now[i]);
    }
    if (c->calls % 2 == 0)
        side = now[moved];
    else if (side == now[moved])
        check_wrong("  element %d\n  expected  one call to each side\n  got       %.17g twice", moved, side);
}

static td_tensor *called(void *where, td_tensor *const *in)
{
    context *c = where;
    c->calls++;
    const int64_t live = td_memory_stats().live_tensors;
    if (c->calls == 2)
        c->live = live;
    if (c->calls > 2 && live > c->live && c->looks)
        check_wrong("  call %d: %d tensors are alive\n  expected  %d, as at call 2: each call's are freed before the next",
                    c->calls, (int)live, (int)c->live);
    if (c->looks && c->calls > 1)
        look(c, in[0]);
    if (c->calls == c->fails_at)
        return td_reshape(in[0], TD_DIMS(17));
    return c->f(in, c->calls);
}

static td_tensor *squares(td_tensor *const *in, int call) { (void)call; return td_square(in[0]); }
static td_tensor *cubes(td_tensor *const *in, int call) { (void)call; return td_mul(in[0], td_square(in[0])); }
static td_tensor *turned(td_tensor *const *in, int call) { (void)call; return td_transpose(cubes(in, 1), 0, 1); }
static td_tensor *looked(td_tensor *const *in, int call) { (void)call; return td_reshape(in[0], TD_DIMS(-1)); }
static td_tensor *product(td_tensor *const *in, int call) { (void)call; return td_matmul(in[1], in[0]); }

static td_tensor *wrong(td_tensor *const *in, int call)
{
    return td_mul_scalar(in[0], td_float(call == 1 ? 2 : 1));
}

static td_tensor *not_a_number(td_tensor *const *in, int call)
{
    (void)in;
    return td_full(TD_DIMS(2), td_float(call == 1 ? 0 : call == 2 ? INFINITY : NAN), (td_tensor_options){ .dtype = TD_FLOAT64 });
}

/* says: part of the message of a check that must fail; NULL: it passes. */
static void check(const char *what, context c, int n_in, td_tensor *const *in, td_gradcheck_options o, const char *says)
{
    check_case(what, formula);
    td_tensor *x = in[0];
    const int64_t n = td_numel(x);
    memcpy(c.old, td_data(x), (size_t)n * sizeof(double));
    const uint32_t version = x->storage->version;
    const bool right = td_gradcheck(called, &c, n_in, in, o);
    if (says == NULL && !right)
        check_wrong("  expected  a derivative that is found right\n  got       %s", td_failed() ? td_error_message() : "false");
    if (says != NULL && (right || !strstr(td_error_message(), says)))
        check_wrong("  expected  an error that says: %s\n  got       %s", says, right ? "true" : td_error_message());
    td_error_clear();
    if (c.fails_at && c.calls != c.fails_at)
        check_wrong("  expected  no call after the one that failed, %d\n  got       %d calls", c.fails_at, c.calls);
    for (int i = 0; i < n; i++)
        if (memcmp((double *)td_data(x) + i, &c.old[i], sizeof(double)) != 0)
            check_wrong("  element %d of x afterwards\n  expected  %.17g, as it was\n  got       %.17g", i, c.old[i],
                        ((double *)td_data(x))[i]);
    if (x->storage->version != version)
        check_wrong("  expected  x of version %d, for nobody shall notice\n  got       version %d", (int)version,
                    (int)x->storage->version);
}

int main(void)
{
    const td_gradcheck_options exact = { .eps = td_some(0.5), .atol = td_some(1e-6), .rtol = td_some(0) };
    const td_gradcheck_options quarter = { .eps = td_some(0.25), .atol = td_some(1e-12), .rtol = td_some(0) };
    const td_gradcheck_options usual = TD_DEFAULTS;
    const double three[] = { 3 }, half[] = { 0.5 }, some[] = { 100, 3, -7 }, six[] = { 1, 2, 3, 5, 7, 11 };
    const double odd[] = { 0.7, 1e5 / 3, 1e-300, -0.0 };
    td_scope_begin();
    td_tensor *x = make(three, TD_DIMS(1)), *y = make(half, TD_DIMS(1)), *v = make(some, TD_DIMS(3));
    td_tensor *m = make(six, TD_DIMS(2, 3)), *z = make(odd, TD_DIMS(4));
    td_tensor *both[] = { v, td_detach(m) };
    check("the square of 3", (context){ .f = squares }, 1, &x, exact, NULL);
    check("the cube of 0.5 and a step of 1/4", (context){ .f = cubes }, 1, &y, quarter, "the difference quotient 0.8125");
    check("a matrix of 2 by 3 times a vector", (context){ .f = product }, 2, both, quarter, NULL);
    check("numbers that are no sums of a few powers of two, x is as it was", (context){ .f = squares }, 1, &z,
          usual, NULL);
    check("a function that failed at the second call", (context){ .f = squares, .fails_at = 2 }, 1, &v, quarter, "reshape");
    check("a function that failed at the fifth call", (context){ .f = squares, .fails_at = 5 }, 1, &v, quarter, "reshape");
    check("a result that is a view of its input", (context){ .f = looked }, 1, &m, quarter, NULL);
    check("what three numbers are called with, one by one, by h at a time", (context){ .f = squares, .h = 0.25, .looks = true }, 1,
          &v, quarter, NULL);
    check("a turned result, its elements in row-major order", (context){ .f = turned }, 1, &m, usual, NULL);
    check("a result that is not a number", (context){ .f = not_a_number }, 1, &v, usual, "nan");
    check("a rule that is wrong by a factor of two", (context){ .f = wrong }, 1, &v, quarter,
          "the rule says 2, the difference quotient 1");
    check_case("second derivatives of cubes", formula);
    context c = { .f = cubes };
    if (!td_gradgradcheck(called, &c, 1, &v, usual))
        check_wrong("  expected  derivatives that are found right\n  got       %s", td_error_message());
    td_scope_end();
    return check_end();
}
