/* Gradients of what was overwritten and of what was written, against their definition. */
#include "check.h"
#include "grad/autograd.h"

td_rule overwrite_rule;

static const char *formula = "w-bar = g where it was written; y0-bar = g elsewhere, and 0 where it was written";
enum { ROWS = 3, COLUMNS = 4, ALL = ROWS * COLUMNS };
enum { W_ALONE = 1, PAST_ALONE = 2, NUMBER = 4, INFINITE = 8, NARROW = 16, SPREAD = 32, TURNED = 64, BROADCAST = 128 };

typedef struct {
    const char *what;
    int from, rows, columns, down, right;   /* of the part: first element, sizes, steps; rows 0: everything */
    int how;
} example;

static const example examples[] = {
    { "a row of a matrix", 0, 1, 4, 4, 1, 0 },
    { "the second row", 4, 1, 4, 4, 1, 0 },
    { "a column of a matrix", 2, 3, 1, 4, 1, 0 },
    { "every second element of two rows", 5, 2, 2, 4, 2, 0 },
    { "the diagonal", 0, 1, 3, 1, 5, 0 },
    { "a single element", 7, 1, 1, 1, 1, 0 },
    { "all of it", 0, 0, 0, 0, 0, 0 },
    { "a part without elements", 4, 1, 0, 4, 1, 0 },
    { "a row of a matrix, infinite where it was overwritten", 4, 1, 4, 4, 1, INFINITE },
    { "all of it, infinite where it was overwritten", 0, 0, 0, 0, 0, INFINITE },
    { "a column of a matrix, w alone wants a gradient", 1, 3, 1, 4, 1, W_ALONE },
    { "a column of a matrix, the past alone wants a gradient", 1, 3, 1, 4, 1, PAST_ALONE },
    { "a row is filled with a number", 4, 1, 4, 4, 1, NUMBER },
    { "all of it is filled with a number", 0, 0, 0, 0, 0, NUMBER },
    { "one number is written to a column", 1, 3, 1, 4, 1, BROADCAST },
    { "float32", 4, 1, 4, 4, 1, NARROW },
    { "a gradient with strides of 0", 1, 2, 2, 4, 2, SPREAD },
    { "a gradient with strides of a turned matrix", 1, 2, 2, 4, 2, TURNED },
};

static td_tensor *part_of_it(const example *e, td_tensor *y)
{
    const td_dims size = e->rows == 1 ? TD_DIMS(e->columns) : TD_DIMS(e->rows, e->columns);
    const td_dims step = e->rows == 1 ? TD_DIMS(e->right) : TD_DIMS(e->down, e->right);
    const td_value in = td_v_tensor(y), attr[] = { td_v_ints(&size), td_v_ints(&step), td_v_int(e->from) };
    return e->rows == 0 ? y : td_run1(&td_ops[TD_OP_strided_view], 1, &in, 3, attr);
}

static td_tensor *numbers(td_dims shape, int step, td_dtype dtype, bool needs)
{
    td_tensor *x = td_zeros(shape, (td_tensor_options){ .dtype = TD_FLOAT64 });
    for (int64_t i = 0; x && i < td_numel(x); i++)
        ((double *)td_data(x))[i] = (double)(i * step % 19 - 7) / 4;
    return td_set_requires_grad(td_to(x, dtype), needs);
}

/* The element of the matrix that element k of the part is. */
static int place(const example *e, int k)
{
    return e->rows == 0 ? k : e->from + k / e->columns * e->down + k % e->columns * e->right;
}

static void compare(const example *e, const char *of, td_tensor *got, td_dims shape, const double *expected, td_dtype dtype)
{
    char what[160];
    snprintf(what, sizeof what, "%s: gradient of %s", e->what, of);
    check_case(what, formula);
    if (got == NULL)
        check_wrong("  expected  a tensor\n  got       none");
    if (td_dtype_of(got) != dtype)
        check_wrong("  expected  type %s\n  got       %s", td_dtype_name(dtype), td_dtype_name(td_dtype_of(got)));
    check_tensor(got, shape, expected, 0);
}

typedef struct {
    td_tensor *past, *w, *y;        /* w: NULL if a number was written */
    td_dims size;                   /* of the part */
    int n;
    double g[ALL], by_past[ALL], by_w[ALL];
} story;

static void tell(const example *e, story *s)
{
    const td_dtype dtype = e->how & NARROW ? TD_FLOAT32 : TD_FLOAT64;
    const td_dims matrix = TD_DIMS(ROWS, COLUMNS);
    s->past = numbers(matrix, 5, dtype, !(e->how & W_ALONE));
    s->y = td_clone(s->past);
    td_tensor *v = part_of_it(e, s->y);
    s->size = td_shape_of(v), s->n = (int)td_numel(v);
    s->w = e->how & NUMBER ? NULL
         : numbers(e->how & BROADCAST ? TD_RANK_0 : s->size, 7, dtype, !(e->how & PAST_ALONE));
    s->w ? td_copy_(v, s->w) : td_fill_(v, td_float(3));
    check_no_error();
    for (int i = 0; i < ALL; i++)
        s->g[i] = e->how & SPREAD ? 1 : (double)(i * 11 % 17 - 8) / 4;
    for (int k = 0; k < s->n; k++)
        if (e->how & INFINITE)
            s->g[place(e, k)] = k % 2 ? NAN : INFINITY;
    memcpy(s->by_past, s->g, sizeof s->g);
    memset(s->by_w, 0, sizeof s->by_w);
    for (int k = 0; k < s->n; k++) {
        s->by_w[e->how & BROADCAST ? 0 : k] += s->g[place(e, k)];
        s->by_past[place(e, k)] = 0;
    }
}

static td_tensor *seed(const example *e, const double *g, td_dtype dtype)
{
    const td_tensor_options wide = { .dtype = TD_FLOAT64 };
    double by_columns[ALL];
    for (int i = 0; i < ALL; i++)
        by_columns[i % COLUMNS * ROWS + i / COLUMNS] = g[i];
    if (e->how & SPREAD)
        return td_expand(td_full(TD_RANK_0, td_float(1), wide), TD_DIMS(ROWS, COLUMNS));
    if (e->how & TURNED)
        return td_transpose(td_from_data(by_columns, TD_DIMS(COLUMNS, ROWS), wide), 0, 1);
    return td_to(td_from_data(g, TD_DIMS(ROWS, COLUMNS), wide), dtype);
}

static void check(const example *e)
{
    story s;
    check_case(e->what, formula);
    td_scope_begin();
    tell(e, &s);
    const td_dtype dtype = td_dtype_of(s.y);
    td_tensor *g = seed(e, s.g, dtype);
    td_backward(s.y, (td_backward_options){ .gradient = g });
    check_no_error();
    if (s.w && !(e->how & PAST_ALONE))
        compare(e, "w", td_grad_of(s.w), td_shape_of(s.w), s.by_w, dtype);
    if (!(e->how & W_ALONE))
        compare(e, "the past", td_grad_of(s.past), TD_DIMS(ROWS, COLUMNS), s.by_past, dtype);
    check_case("g is what others still add up: it stays as it is", formula);
    check_tensor(g, TD_DIMS(ROWS, COLUMNS), s.g, 0);
    td_scope_end();
}

/* The rule by itself: what it stores, whoever wants a gradient.  Behind the last input there is nothing of ours. */
static void check_wants(const example *e, int inputs, int wanted)
{
    story s;
    char what[200];
    td_scope_begin();
    tell(e, &s);
    td_node node = *s.y->node;
    td_edge edges[3] = { s.y->node->in[0], s.y->node->in[0], s.y->node->in[0] };
    td_tensor *g = seed(e, s.g, TD_FLOAT64), *stored[3] = { NULL, NULL, NULL };
    edges[0].needed = wanted & 1, edges[1].needed = inputs > 1 ? wanted & 2 : true, edges[2].needed = true;
    node.in = edges, node.n_in = inputs;
    snprintf(what, sizeof what, "%s%s: a gradient is stored where it is needed, %s%s%s", e->what,
             inputs < 2 ? ", with numbers that were drawn" : "", wanted & 1 ? "for the past" : "",
             wanted == 3 ? " and " : "", wanted & 2 ? "for w" : "");
    check_case(what, "b->grad_in[i] is set where i < b->n_in and td_needs(b, i), and nowhere else");
    td_backward_pass b = { .node = &node, .op = node.op, .n_in = inputs, .n_out = 1, .n_attr = node.n_attr, .grad = &g,
                           .grad_in = stored };
    td_no_grad_begin();
    overwrite_rule(&b);
    td_no_grad_end();
    check_no_error();
    for (int i = 0; i < 3; i++) {
        const bool should = i < inputs && wanted >> i & 1;
        if ((stored[i] != NULL) != should)
            check_wrong("  expected  b->grad_in[%d] %s\n  got       %s", i, should ? "set" : "left NULL",
                        stored[i] ? "a tensor" : "NULL");
    }
    td_scope_end();
}

/* Both gradients are functions of g: each element of g goes to one of them, and comes back from there. */
static void check_second(const example *e, bool of_w)
{
    story s;
    char what[160];
    double expected[ALL] = { 0 };
    td_scope_begin();
    tell(e, &s);
    const td_dims matrix = TD_DIMS(ROWS, COLUMNS);
    td_tensor *g = td_set_requires_grad(seed(e, s.g, TD_FLOAT64), true), *x = of_w ? s.w : s.past, *first = NULL, *second = NULL;
    td_tensor *r = numbers(td_shape_of(x), 3, TD_FLOAT64, false);
    snprintf(what, sizeof what, "%s: gradient of %s, differentiated again", e->what, of_w ? "w" : "the past");
    check_case(what, of_w ? "g-bar = r where it was written, 0 elsewhere" : "g-bar = r, and 0 where it was written");
    for (int i = 0; i < ALL && !of_w; i++)
        expected[i] = ((double *)td_data(r))[i];
    for (int k = 0; k < s.n; k++)
        expected[place(e, k)] = of_w ? ((double *)td_data(r))[k] : 0;
    td_grad(&s.y, 1, &x, 1, &first, (td_grad_options){ .grad_outputs = &g, .create_graph = true });
    check_no_error();
    if (!first || !td_requires_grad(first))
        check_wrong("  expected  a gradient that was recorded\n  got       one that does not know of what it was made");
    td_grad(&first, 1, &g, 1, &second, (td_grad_options){ .grad_outputs = &r });
    check_no_error();
    check_tensor(second, matrix, expected, 0);
    td_scope_end();
}

int main(void)
{
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++)
        check(&examples[i]);
    for (int wanted = 3; wanted >= 0; wanted--) {
        check_wants(&examples[1], 2, wanted);
        check_wants(&examples[6], 2, wanted);
    }
    check_wants(&examples[1], 1, 1);
    check_wants(&examples[6], 1, 1);
    check_wants(&examples[1], 1, 0);
    for (int of_w = 0; of_w < 2; of_w++) {
        check_second(&examples[1], of_w);
        check_second(&examples[3], of_w);
    }
    check_second(&examples[6], true);
    return check_end();
}
