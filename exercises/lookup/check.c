/* Gradients of readings, against a loop over what was read. */
#include "check.h"
#include "core/registry.h"

static const char *formula = "each element of g is added where it was read, zeros elsewhere";
static const td_backward_options none = { 0 };

static td_tensor *filled(td_dims shape, td_dtype dtype, int step)
{
    td_tensor *x = td_zeros(shape, (td_tensor_options){ .dtype = TD_FLOAT64 });
    for (int64_t i = 0; i < td_numel(x); i++)
        ((double *)td_data(x))[i] = (double)(i * step % 19 - 7) / 7;
    return td_to(x, dtype);
}

static td_tensor *places(const int64_t *at, td_dims shape, td_dtype dtype)
{
    return td_to(td_from_data(at, shape, (td_tensor_options){ .dtype = TD_INT64 }), dtype);
}

/* Where element k of the result comes from, in x as a line: what a reading of the numbers 0, 1, 2, ... answers. */
static td_tensor *origins(td_tensor *x, td_tensor *index, int dim, int covers)
{
    td_tensor *numbers = td_zeros(td_shape_of(x), (td_tensor_options){ .dtype = TD_INT64 });
    for (int64_t i = 0; i < td_numel(x); i++)
        ((int64_t *)td_data(numbers))[i] = i;
    return td_index_points(numbers, index, dim, covers);
}

static void check(const char *what, td_dims shape, td_dtype dtype, const int64_t *at, td_dims of, int dim, int covers)
{
    static double expected[1000];
    td_scope_begin();
    td_tensor *x = td_set_requires_grad(filled(shape, dtype, 5), true);
    td_tensor *index = places(at, of, dtype == TD_FLOAT32 ? TD_INT32 : TD_INT64);
    check_case(what, formula);
    td_tensor *from = origins(x, index, dim, covers), *y = td_index_points(x, index, dim, covers);
    td_tensor *g = filled(td_shape_of(y), dtype, 11), *wide = td_to(g, TD_FLOAT64), *before = td_clone(wide);
    memset(expected, 0, sizeof expected);
    for (int64_t k = 0; k < td_numel(g); k++)
        expected[((int64_t *)td_data(from))[k]] += ((double *)td_data(wide))[k];
    td_backward(y, (td_backward_options){ .gradient = g });
    check_no_error();
    if (td_grad_of(x) == NULL)
        check_wrong("  expected  a gradient of x\n  got       none");
    if (td_dtype_of(td_grad_of(x)) != dtype)
        check_wrong("  expected  a gradient of type %s\n  got       %s", td_dtype_name(dtype), td_dtype_name(td_dtype_of(td_grad_of(x))));
    check_tensor(td_grad_of(x), shape, expected, dtype == TD_FLOAT32 ? 1e-6 : 1e-15);
    check_case("g is what others still need: it stays as it is", formula);
    check_tensor(g, td_shape_of(g), td_data(before), 0);
    td_scope_end();
}

/* Two readings of one table, of which the second finds a sum. */
static void check_sum(int readings)
{
    const int64_t at[] = { 3, 1, 3, 0, 2, 2 };
    double expected[12] = { 0 };
    char what[80];
    snprintf(what, sizeof what, "a sum has begun: a table that is read %d times", readings);
    check_case(what, "the gradients of all readings, added up; each once");
    td_scope_begin();
    td_tensor *x = td_set_requires_grad(filled(TD_DIMS(4, 3), TD_FLOAT64, 5), true), *all = NULL;
    for (int k = 0; k < readings; k++) {
        td_tensor *y = td_index_points(x, places(at + k, TD_DIMS(3), TD_INT64), 0, 1);
        td_tensor *w = filled(TD_DIMS(3, 3), TD_FLOAT64, 3 + k), *s = td_sum(td_mul(y, w), (td_reduce_options){ 0 });
        for (int i = 0; i < 9; i++)
            expected[at[k + i / 3] * 3 + i % 3] += ((double *)td_data(w))[i];
        all = all ? td_add(all, s) : s;
    }
    td_backward(all, none);
    check_no_error();
    check_tensor(td_grad_of(x), TD_DIMS(4, 3), expected, 1e-14);
    td_scope_end();
}

/* Bytes above what there was, at most, while a table is derived through that was read so many times. */
static int64_t peak(int64_t rows, int readings)
{
    const int64_t at[] = { 5, rows - 7, 5 };
    td_scope_begin();
    td_tensor *x = td_set_requires_grad(td_zeros(TD_DIMS(rows, 4), (td_tensor_options){ .dtype = TD_FLOAT64 }), true), *all = NULL;
    td_tensor *index = places(at, TD_DIMS(3), TD_INT64);
    for (int k = 0; k < readings; k++) {
        td_tensor *s = td_sum(td_index_points(x, index, 0, 1), (td_reduce_options){ 0 });
        all = all ? td_add(all, s) : s;
    }
    const int64_t before = td_memory_stats().bytes;
    td_backward(all, none);
    check_no_error();
    const int64_t more = td_memory_stats().peak_bytes - before;
    const double got = ((double *)td_data(td_grad_of(x)))[20];
    check_numbers(&got, &(double){ 2 * readings }, 1, 0);
    td_scope_end();
    return more;
}

/* The second table is four times as large, so its peak is the peak of all. */
static void check_memory(void)
{
    enum { ROWS = 1 << 14, TABLE = ROWS * 4 * 8 };
    check_case("a large table, read once", formula);
    const int64_t once = peak(ROWS, 1);
    check_case("a table of 65536 rows is read six times: nothing as large as the table is made for a sum that has begun",
               "one buffer of zeros for all readings");
    const int64_t often = peak(4 * ROWS, 6);
    if (often > 4 * once + 2 * TABLE)
        check_wrong("  expected  no more than for one reading, %d bytes\n  got       %d bytes at the peak", (int)(4 * once), (int)often);
}

/* The gradient is a function of g: g-bar of <r, P^T g> is P r. */
static void check_second(const char *what, const int64_t *at, td_dims of, int dim, int covers)
{
    td_scope_begin();
    const td_dims shape = TD_DIMS(3, 4);
    td_tensor *x = td_set_requires_grad(filled(shape, TD_FLOAT64, 5), true), *r = filled(shape, TD_FLOAT64, 3);
    td_tensor *index = places(at, of, TD_INT64), *y = td_index_points(x, index, dim, covers);
    td_tensor *g = td_set_requires_grad(filled(td_shape_of(y), TD_FLOAT64, 11), true), *first = NULL, *second = NULL;
    check_case(what, "the derivative of <r, gradient of x> by g is r, read at the same places");
    td_grad(&y, 1, &x, 1, &first, (td_grad_options){ .grad_outputs = &g, .create_graph = true });
    check_no_error();
    if (!td_requires_grad(first))
        check_wrong("  expected  a gradient that was recorded\n  got       one that does not know of what it was made");
    td_grad(&first, 1, &g, 1, &second, (td_grad_options){ .grad_outputs = &r });
    check_no_error();
    check_tensor(second, td_shape_of(g), td_data(td_contiguous(td_index_points(r, index, dim, covers))), 1e-14);
    td_scope_end();
}

int main(void)
{
    const int64_t last[] = { 2, 0, 2 }, rows[] = { 4, 1, 4, 0, 4, 4 }, back[] = { -1, 0, -3, -1 }, pairs[] = { 2, 1, 0, 3, 2, 1, 1, 1 };
    const int64_t each[] = { 3, 0, 3, 3, 1, 2 }, many[] = { 1, 1, 1, 1, 1, 1, 1, 1, 0, 2, 1 };
    check("the last of three is read twice", TD_DIMS(3), TD_FLOAT64, last, TD_DIMS(3), 0, 1);
    check("more rows than were read", TD_DIMS(5, 3), TD_FLOAT64, rows, TD_DIMS(2), 0, 1);
    check("along dimension 1", TD_DIMS(3, 5, 2), TD_FLOAT64, rows, TD_DIMS(6), 1, 1);
    check("words of two sentences, rows of a table", TD_DIMS(5, 4), TD_FLOAT64, rows, TD_DIMS(2, 3), 0, 1);
    check("places counted from the end", TD_DIMS(3, 2), TD_FLOAT64, back, TD_DIMS(4), 0, 1);
    check("coordinates in pairs, one of them twice", TD_DIMS(3, 4), TD_FLOAT64, pairs, TD_DIMS(4, 2), 0, 2);
    check("coordinates in pairs, in the middle of four dimensions", TD_DIMS(2, 3, 4, 2), TD_FLOAT64, pairs, TD_DIMS(4, 2), 1, 2);
    check("a number for each element", TD_DIMS(3, 4), TD_FLOAT64, each, TD_DIMS(3, 2), 1, 0);
    check("float32, and an index of int32", TD_DIMS(5, 3), TD_FLOAT32, rows, TD_DIMS(6), 0, 1);
    check("one place for all, eleven times", TD_DIMS(3), TD_FLOAT64, many, TD_DIMS(11), 0, 1);
    check("a single number", TD_DIMS(3, 2), TD_FLOAT64, last, TD_RANK_0, 0, 1);
    check("nothing was read", TD_DIMS(3, 2), TD_FLOAT64, last, TD_DIMS(0), 0, 1);
    check_sum(2);
    check_sum(4);
    check_second("rows, differentiated again", last, TD_DIMS(3), 0, 1);
    check_second("coordinates, differentiated again", pairs, TD_DIMS(4, 2), 0, 2);
    check_memory();
    return check_end();
}
