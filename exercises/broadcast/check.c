/* Pairs of shapes, what they make, and what is said when they make nothing. */
#define _POSIX_C_SOURCE 200809L       /* barriers */
#include "check.h"
#include <pthread.h>

typedef struct {
    const char *what;
    td_dims a, b, expected;
    const char *refusal;            /* expected in place of a shape */
} example;

#define BIG 4294967296              /* 2^32: nothing of it is left in an int */
static const example examples[] = {
    { "a row of 3 meets [2,3]", { 1, { 3 } }, { 2, { 2, 3 } }, { 2, { 2, 3 } }, NULL },
    { "[3,1] meets [4]", { 2, { 3, 1 } }, { 1, { 4 } }, { 2, { 3, 4 } }, NULL },
    { "[64,1,10] meets [3,10]", { 3, { 64, 1, 10 } }, { 2, { 3, 10 } }, { 3, { 64, 3, 10 } }, NULL },
    { "equal shapes, [5,7]", { 2, { 5, 7 } }, { 2, { 5, 7 } }, { 2, { 5, 7 } }, NULL },
    { "a single number meets [2,3]", { 0, { 0 } }, { 2, { 2, 3 } }, { 2, { 2, 3 } }, NULL },
    { "two single numbers", { 0, { 0 } }, { 0, { 0 } }, { 0, { 0 } }, NULL },
    { "1 against 0", { 2, { 4, 1 } }, { 1, { 0 } }, { 2, { 4, 0 } }, NULL },
    { "0 against 1", { 2, { 0, 3 } }, { 2, { 1, 1 } }, { 2, { 0, 3 } }, NULL },
    { "0 against a missing size", { 2, { 0, 3 } }, { 1, { 3 } }, { 2, { 0, 3 } }, NULL },
    { "[2,3,5] meets [5]", { 3, { 2, 3, 5 } }, { 1, { 5 } }, { 3, { 2, 3, 5 } }, NULL },
    { "as many dimensions as there may be, 8", { 8, { 2, 1, 3, 1, 2, 1, 3, 1 } }, { 8, { 1, 4, 1, 5, 1, 4, 1, 5 } },
      { 8, { 2, 4, 3, 5, 2, 4, 3, 5 } }, NULL },
    { "8 dimensions meet 5", { 8, { 2, 3, 4, 5, 1, 7, 1, 9 } }, { 5, { 5, 6, 7, 8, 1 } },
      { 8, { 2, 3, 4, 5, 6, 7, 8, 9 } }, NULL },
    { "a size of 2^32 + 1", { 2, { 1, BIG + 1 } }, { 2, { 3, 1 } }, { 2, { 3, BIG + 1 } }, NULL },
    { "a size of 3 * 2^32 against 1", { 1, { 1 } }, { 2, { 2, 3 * BIG } }, { 2, { 2, 3 * BIG } }, NULL },
    { "[3,4] does not meet [3]", { 2, { 3, 4 } }, { 1, { 3 } }, { 1, { 17 } },
      "shapes [3, 4] and [3] do not broadcast (dimension 1: 4 against 3)" },
    { "[0] does not meet [3]", { 1, { 0 } }, { 1, { 3 } }, { 1, { 17 } },
      "shapes [0] and [3] do not broadcast (dimension 0: 0 against 3)" },
    { "[2,3] does not meet [2,0]", { 2, { 2, 3 } }, { 2, { 2, 0 } }, { 1, { 17 } },
      "shapes [2, 3] and [2, 0] do not broadcast (dimension 1: 3 against 0)" },
    { "two misfits, the first from the left is named", { 3, { 7, 2, 3 } }, { 2, { 4, 5 } }, { 1, { 17 } },
      "shapes [7, 2, 3] and [4, 5] do not broadcast (dimension 1: 2 against 4)" },
    { "the misfit stands behind what fits", { 3, { 1, 2, 4 } }, { 3, { 5, 1, 3 } }, { 1, { 17 } },
      "shapes [1, 2, 4] and [5, 1, 3] do not broadcast (dimension 2: 4 against 3)" },
    { "the misfit stands in front of what fits", { 3, { 6, 2, 1 } }, { 3, { 5, 1, 3 } }, { 1, { 17 } },
      "shapes [6, 2, 1] and [5, 1, 3] do not broadcast (dimension 0: 6 against 5)" },
    { "7 against 2^32 + 7", { 1, { 7 } }, { 1, { BIG + 7 } }, { 1, { 17 } },
      "shapes [7] and [4294967303] do not broadcast (dimension 0: 7 against 4294967303)" },
    { "5 against 2^32 + 1", { 1, { BIG + 1 } }, { 1, { 5 } }, { 1, { 17 } },
      "shapes [4294967297] and [5] do not broadcast (dimension 0: 4294967297 against 5)" },
};

static void check_shape(const char *expected, const td_dims *shape, const td_dims *got)
{
    char is[TD_SHAPE_TEXT], should[TD_SHAPE_TEXT];
    if (!td_dims_equal(got, shape))
        check_wrong("  expected  %s %s\n  got       %s", expected, td_dims_text(shape, should), td_dims_text(got, is));
}

static void check_refusal(const char *expected, bool returned)
{
    if (returned || !td_failed())
        check_wrong("  expected  an error: %s\n  got       %s", expected, returned ? "true" : "false, and no error");
    if (strncmp(td_error_message(), "add: ", 5) != 0 || strcmp(td_error_message() + 5, expected) != 0)
        check_wrong("  expected  %s\n  got       %s", expected, td_error_message());
    td_error_clear();
}

/* Sizes behind the last are those of other shapes, which nobody may read. */
static td_dims of(td_dims shape)
{
    for (int d = shape.count; d < (int)(sizeof shape.at / sizeof shape.at[0]); d++)
        shape.at[d] = 77;
    return shape;
}

/* `where`: the result in a place of its own, in that of a, in that of b. */
static void check_example(const example *x, const char *where)
{
    char what[160];
    td_dims a = of(x->a), b = of(x->b), other = { 1, { 17 } };
    td_dims *out = where[0] == 'a' ? &a : where[0] == 'b' ? &b : &other;
    const td_dims before = *out;
    snprintf(what, sizeof what, "%s%s%s", x->what, where[0] ? "; the result replaces " : "", where);
    check_case(what, "flush right: equal sizes stay, a 1 or a missing size becomes the other, all else is refused");
    const bool returned = td_broadcast_dims("add", &a, &b, out);
    if (x->refusal) {
        check_refusal(x->refusal, returned);
        check_shape("*out as it was,", &before, out);
    } else {
        check_no_error();
        check_shape("the shape", &x->expected, out);
        if (!returned)
            check_wrong("  expected  true\n  got       false");
    }
    if (out != &a)
        check_shape("a as it was,", &x->a, &a);
    if (out != &b)
        check_shape("b as it was,", &x->b, &b);
}

static pthread_barrier_t together;

/* Asks for one shape again and again beside another thread: the last that was not the expected one, or NULL. */
static void *ask_often(void *of)
{
    static const example pairs[] = {
        { "", { 4, { 2, 1, 5, 1 } }, { 4, { 1, 3, 1, 7 } }, { 4, { 2, 3, 5, 7 } }, NULL },
        { "", { 3, { 4, 1, 6 } }, { 2, { 8, 1 } }, { 3, { 4, 8, 6 } }, NULL },
    };
    const example *x = &pairs[of != NULL];
    bool differs = false;
    pthread_barrier_wait(&together);
    for (int i = 0; i < 500000; i++) {
        td_dims out = { 1, { 17 } };
        td_broadcast_dims("add", &x->a, &x->b, &out);
        differs = differs || !td_dims_equal(&out, &x->expected);
    }
    return differs ? &together : NULL;
}

static void check_threads(void)
{
    pthread_t thread[2];
    void *differs[2];
    check_case("two threads ask for a shape each, at the same time", "nothing is kept between calls or shared by them");
    pthread_barrier_init(&together, NULL, 2);
    for (int t = 0; t < 2; t++)
        pthread_create(&thread[t], NULL, ask_often, t ? &together : NULL);
    for (int t = 0; t < 2; t++)
        pthread_join(thread[t], &differs[t]);
    if (differs[0] || differs[1])
        check_wrong("  expected  the shape that one thread alone is given\n  got       others, now and then");
    pthread_barrier_destroy(&together);
}

int main(void)
{
    const size_t n = sizeof examples / sizeof examples[0];
    for (size_t i = 0; i < n; i++)
        check_example(&examples[i], "");
    for (size_t i = 0; i < n; i++) {
        check_example(&examples[i], "a");
        check_example(&examples[i], "b");
    }
    check_threads();
    return check_end();
}
