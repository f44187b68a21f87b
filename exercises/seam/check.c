/* New shapes for old strides: what counting the elements says, and what the fold says. */
#include "check.h"

typedef struct {
    const char *what;
    td_dims old, steps, shape;
} example;

#define BIG (INT64_C(1) << 32)
#define WILD (INT64_C(1) << 61)     /* of a dimension that nobody walks */
static const example examples[] = {
    { "every second of eight columns, [3,4] as [6,2]", { 2, { 3, 4 } }, { 2, { 8, 2 } }, { 2, { 6, 2 } } },
    { "every second of nine columns, [3,4] as [2,6]", { 2, { 3, 4 } }, { 2, { 9, 2 } }, { 2, { 2, 6 } } },
    { "every second of nine columns, [3,4] as [3,2,2]", { 2, { 3, 4 } }, { 2, { 9, 2 } }, { 3, { 3, 2, 2 } } },
    { "a fresh [2,3,4] as [6,4]", { 3, { 2, 3, 4 } }, { 3, { 12, 4, 1 } }, { 2, { 6, 4 } } },
    { "a transpose, [3,2] as [6]", { 2, { 3, 2 } }, { 2, { 1, 3 } }, { 1, { 6 } } },
    { "a transpose, [3,2] as [3,1,2]", { 2, { 3, 2 } }, { 2, { 1, 3 } }, { 3, { 3, 1, 2 } } },
    { "the left half of a matrix, [4,3] as [12]", { 2, { 4, 3 } }, { 2, { 6, 1 } }, { 1, { 12 } } },
    { "a row repeated, [4,3] as [2,2,3]", { 2, { 4, 3 } }, { 2, { 0, 1 } }, { 3, { 2, 2, 3 } } },
    { "a row repeated, [4,3] as [12]", { 2, { 4, 3 } }, { 2, { 0, 1 } }, { 1, { 12 } } },
    { "a number repeated, [4,3] as [2,6]", { 2, { 4, 3 } }, { 2, { 0, 0 } }, { 2, { 2, 6 } } },
    { "backwards, [4,3] as [12]", { 2, { 4, 3 } }, { 2, { -3, -1 } }, { 1, { 12 } } },
    { "backwards, [6] as [2,3]", { 1, { 6 } }, { 1, { -2 } }, { 2, { 2, 3 } } },
    { "rows backwards, [4,3] as [12]", { 2, { 4, 3 } }, { 2, { -3, 1 } }, { 1, { 12 } } },
    { "one picture of a batch, [1,3,4] as [12]", { 3, { 1, 3, 4 } }, { 3, { 99, 4, 1 } }, { 1, { 12 } } },
    { "a size of 1 within, [3,1,4] as [12]", { 3, { 3, 1, 4 } }, { 3, { 4, 99, 1 } }, { 1, { 12 } } },
    { "a size of 1 within, [3,1,4] as [3,4]", { 3, { 3, 1, 4 } }, { 3, { 9, 99, 1 } }, { 2, { 3, 4 } } },
    { "a size of 1 at the right, [3,4,1] as [12]", { 3, { 3, 4, 1 } }, { 3, { 8, 2, WILD } }, { 1, { 12 } } },
    { "a size of 1 at the right, [3,4,1] as [6,1,2]", { 3, { 3, 4, 1 } }, { 3, { 8, 2, -7 } }, { 3, { 6, 1, 2 } } },
    { "sizes of 1 only, [1,1] as a number", { 2, { 1, 1 } }, { 2, { WILD, -WILD } }, { 0, { 0 } } },
    { "a number as [1,1,1]", { 0, { 0 } }, { 0, { 0 } }, { 3, { 1, 1, 1 } } },
    { "a number as a number", { 0, { 0 } }, { 0, { 0 } }, { 0, { 0 } } },
    { "runs of three dimensions, [2,3,4,5] as [24,5]", { 4, { 2, 3, 4, 5 } }, { 4, { 120, 40, 10, 1 } }, { 2, { 24, 5 } } },
    { "runs of three dimensions, [2,3,4,5] as [4,30]", { 4, { 2, 3, 4, 5 } }, { 4, { 120, 40, 10, 1 } }, { 2, { 4, 30 } } },
    { "a seam at the left only, [2,3,4] as [2,12]", { 3, { 2, 3, 4 } }, { 3, { 99, 4, 1 } }, { 2, { 2, 12 } } },
    { "a seam at the left only, [2,3,4] as [24]", { 3, { 2, 3, 4 } }, { 3, { 99, 4, 1 } }, { 1, { 24 } } },
    { "a seam at the right only, [2,3,4] as [6,4]", { 3, { 2, 3, 4 } }, { 3, { 18, 6, 1 } }, { 2, { 6, 4 } } },
    { "a seam at the right only, [2,3,4] as [24]", { 3, { 2, 3, 4 } }, { 3, { 18, 6, 1 } }, { 1, { 24 } } },
    { "the stride is the run's in bytes of another, [2,2,2] as [8]", { 3, { 2, 2, 2 } }, { 3, { 2, 2, 1 } }, { 1, { 8 } } },
    { "eight dimensions become one", { 8, { 2, 1, 3, 1, 2, 1, 2, 1 } }, { 8, { 36, -5, 12, 0, 6, 77, 3, 8 } }, { 1, { 24 } } },
    { "one dimension becomes eight", { 1, { 24 } }, { 1, { 3 } }, { 8, { 2, 1, 3, 1, 2, 1, 2, 1 } } },
};

/* Too many to be counted: the strides are given, or { -1 } if there are none. */
static const struct { example x; td_dims expected; } large[] = {
    { { "a number repeated 2^40 times, as [2^33, 2^7]", { 2, { 256 * BIG, 1 } }, { 2, { 0, 0 } }, { 2, { 2 * BIG, 128 } } },
      { 2, { 0, 0 } } },
    { { "2^33 rows of 3, as [2^32, 6]", { 2, { 2 * BIG, 3 } }, { 2, { 0, 1 } }, { 2, { BIG, 6 } } }, { -1, { 0 } } },
    { { "2^33 rows of 3, as [2^32, 2, 3]", { 2, { 2 * BIG, 3 } }, { 2, { 0, 1 } }, { 3, { BIG, 2, 3 } } },
      { 3, { 0, 0, 1 } } },
    { { "2^32 + 2 repeated, with 3 beside, as [2^31 + 1, 2, 3]", { 2, { BIG + 2, 3 } }, { 2, { 0, -4 } },
      { 3, { BIG / 2 + 1, 2, 3 } } }, { 3, { 0, 0, -4 } } },
};

static const char *const formula = "strides exist if element n of the new shape stands where element n of the old one does, for all n";
static float memory[1 << 12];

static int64_t counted(const td_dims *shape)
{
    int64_t n = 1;
    for (int d = 0; d < shape->count; d++)
        n *= shape->at[d];
    return n;
}

static int64_t place(int64_t n, const td_dims *shape, const td_dims *steps)
{
    int64_t at = 0;
    for (int d = shape->count - 1; d >= 0; n /= shape->at[d--])
        if (shape->at[d] > 1)
            at += n % shape->at[d] * steps->at[d];
    return at;
}

/* The only strides there can be are the ways from element 0 to its neighbours. */
static td_dims by_counting(const example *x)
{
    td_dims steps = { x->shape.count, { 0 } };
    const int64_t n = counted(&x->shape);
    int64_t inner = 1;
    for (int d = x->shape.count - 1; d >= 0; inner *= x->shape.at[d--])
        steps.at[d] = x->shape.at[d] > 1 ? place(inner, &x->old, &x->steps) : 0;
    for (int64_t i = 0; i < n; i++)
        if (place(i, &x->old, &x->steps) != place(i, &x->shape, &steps))
            return (td_dims){ -1, { 0 } };
    return steps;
}

static void check_fold(const example *x, const td_dims *expected)
{
    char is[TD_SHAPE_TEXT], should[TD_SHAPE_TEXT];
    check_case(x->what, formula);
    td_scope_begin();
    td_tensor *old = td_from_memory(memory + sizeof memory / sizeof *memory / 2, x->old, x->steps,
                                    (td_tensor_options)TD_DEFAULTS, NULL, NULL);
    check_no_error();
    td_tensor *y = td_view(old, x->shape);
    td_dims_text(expected, should);
    if (expected->count < 0) {
        if (y != NULL)
            check_wrong("  expected  no strides, a seam is crossed\n  got       strides %s",
                        td_dims_text(&(td_dims){ x->shape.count, { td_strides(y)[0], td_strides(y)[1], td_strides(y)[2],
                        td_strides(y)[3], td_strides(y)[4], td_strides(y)[5], td_strides(y)[6], td_strides(y)[7] } }, is));
        if (strstr(td_error_message(), "not compatible") == NULL)
            check_wrong("  expected  no strides, and false\n  got       the error %s", td_error_message());
        td_error_clear();
    } else {
        if (y == NULL)
            check_wrong("  expected  strides %s\n  got       false", should);
        for (int d = 0; d < x->shape.count; d++)
            if (x->shape.at[d] > 1 && td_strides(y)[d] != expected->at[d])
                check_wrong("  first bad index %d of %d\n  expected  stride %" PRId64 "\n  got       stride %" PRId64,
                            d, x->shape.count, expected->at[d], td_strides(y)[d]);
    }
    for (int d = 0; d < x->old.count; d++)
        if (td_strides(old)[d] != x->steps.at[d] || td_shape(old)[d] != x->old.at[d])
            check_wrong("  expected  x as it was\n  got       other numbers in dimension %d", d);
    td_scope_end();
}

/* All ways to write n as a product of at most `room` sizes, ones among them. */
static void each_shape(example *x, int64_t n, int room)
{
    if (n == 1) {
        char what[160], a[TD_SHAPE_TEXT], b[TD_SHAPE_TEXT], c[TD_SHAPE_TEXT];
        const td_dims steps = by_counting(x);
        snprintf(what, sizeof what, "shape %s with strides %s as %s", td_dims_text(&x->old, a),
                 td_dims_text(&x->steps, b), td_dims_text(&x->shape, c));
        x->what = what;
        check_fold(x, &steps);
        x->what = "";
    }
    for (int64_t size = 1; room > 0 && size <= n; size++)
        if (n % size == 0) {
            x->shape.at[x->shape.count++] = size;
            each_shape(x, n / size, room - 1);
            x->shape.count--;
        }
}

int main(void)
{
    static const td_dims olds[][2] = {
        { { 2, { 3, 4 } }, { 2, { 4, 1 } } }, { { 2, { 3, 4 } }, { 2, { 8, 2 } } }, { { 2, { 3, 4 } }, { 2, { 9, 2 } } },
        { { 3, { 2, 3, 2 } }, { 3, { 6, 2, 1 } } }, { { 3, { 2, 3, 2 } }, { 3, { 2, 4, 1 } } },
        { { 3, { 2, 3, 2 } }, { 3, { 10, 2, 1 } } }, { { 3, { 2, 3, 2 } }, { 3, { 9, 3, 1 } } },
        { { 3, { 2, 3, 2 } }, { 3, { 0, 2, 1 } } }, { { 3, { 2, 1, 6 } }, { 3, { 12, 5, 2 } } },
        { { 4, { 2, 1, 2, 3 } }, { 4, { -6, 50, -3, -1 } } }, { { 4, { 2, 2, 2, 2 } }, { 4, { 16, 8, 2, 1 } } },
        { { 4, { 2, 2, 2, 2 } }, { 4, { 8, 4, 4, 2 } } }, { { 3, { 6, 2, 1 } }, { 3, { 2, 1, 1 } } },
    };
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        const td_dims steps = by_counting(&examples[i]);
        check_fold(&examples[i], &steps);
    }
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++)
        check_fold(&large[i].x, &large[i].expected);
    for (size_t i = 0; i < sizeof olds / sizeof olds[0]; i++) {
        example x = { "", olds[i][0], olds[i][1], { 0, { 0 } } };
        each_shape(&x, counted(&x.old), 4);
    }
    return check_end();
}
