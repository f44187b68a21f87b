/* Pairs of shapes, what they make, and what is said when they make nothing. */
#include "check.h"

typedef struct { const char *what; td_dims a, b, expected; } example;

static const example examples[] = {
    { "a row of 3 meets [2,3]", { 1, { 3 } }, { 2, { 2, 3 } }, { 2, { 2, 3 } } },
    { "[3,1] meets [4]", { 2, { 3, 1 } }, { 1, { 4 } }, { 2, { 3, 4 } } },
    { "[64,1,10] meets [3,10]", { 3, { 64, 1, 10 } }, { 2, { 3, 10 } }, { 3, { 64, 3, 10 } } },
    { "equal shapes, [5,7]", { 2, { 5, 7 } }, { 2, { 5, 7 } }, { 2, { 5, 7 } } },
    { "a single number meets [2,3]", { 0, { 0 } }, { 2, { 2, 3 } }, { 2, { 2, 3 } } },
    { "two single numbers", { 0, { 0 } }, { 0, { 0 } }, { 0, { 0 } } },
    { "1 against 0", { 2, { 4, 1 } }, { 1, { 0 } }, { 2, { 4, 0 } } },
    { "0 against 1", { 2, { 0, 3 } }, { 2, { 1, 1 } }, { 2, { 0, 3 } } },
};
static const char *formula = "flush right: equal sizes stay, a 1 or a missing size becomes the other";

static void check_shape(const example *x, const td_dims *got)
{
    char is[TD_SHAPE_TEXT], should[TD_SHAPE_TEXT];
    check_case(x->what, formula);
    if (td_failed())
        check_wrong("  expected  %s\n  got       an error: %s", td_dims_text(&x->expected, should), td_error_message());
    if (!td_dims_equal(got, &x->expected))
        check_wrong("  expected  %s\n  got       %s", td_dims_text(&x->expected, should), td_dims_text(got, is));
}

static void check_refusal(void)
{
    const td_dims a = { 2, { 3, 4 } }, b = { 1, { 3 } };
    td_dims out = { 1, { 17 } };
    check_case("[3,4] does not meet [3]", "4 against 3 in dimension 1 of the result: neither equal nor 1");
    if (td_broadcast_dims("add", &a, &b, &out) || !td_failed())
        check_wrong("  expected  an error\n  got       a shape of %d dimensions", out.count);
    const char *expected = "add: shapes [3, 4] and [3] do not broadcast (dimension 1: 4 against 3)";
    if (strcmp(td_error_message(), expected) != 0)
        check_wrong("  expected  %s\n  got       %s", expected, td_error_message());
    td_error_clear();
    if (out.count != 1 || out.at[0] != 17)
        check_wrong("  expected  *out as it was\n  got       another shape in it");
}

int main(void)
{
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        td_dims out = { 0 };
        td_broadcast_dims("add", &examples[i].a, &examples[i].b, &out);
        check_shape(&examples[i], &out);
    }
    const example last = { "the result replaces b: [2,3,5] meets [5]", { 3, { 2, 3, 5 } }, { 1, { 5 } }, { 3, { 2, 3, 5 } } };
    td_dims shared = last.b;
    td_broadcast_dims("add", &last.a, &shared, &shared);
    check_shape(&last, &shared);
    check_refusal();
    return check_end();
}
