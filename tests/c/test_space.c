/* needs: printing */
/* Walks over strided memory, compared with counting through indices. */
#include "treadle_test.h"
#include "core/space.h"

enum { ROOM = 4096 };

static td_tensor look_of(td_tensor *x, td_dims shape, td_dims strides, int64_t offset)
{
    td_tensor y = td_look(x);
    y.rank = shape.count;
    memcpy(y.shape, shape.at, sizeof y.shape);
    memcpy(y.strides, strides.at, sizeof y.strides);
    y.offset = offset;
    return y;
}

/* Layouts of [ROOM] numbers: dense, turned, sliced, expanded, overlapping,
   backwards, of one element, of none, and of eight dimensions. */
static const struct { td_dims shape, strides; int64_t offset; } examples[] = {
    { { 0, { 0 } }, { 0, { 0 } }, 7 },
    { { 1, { 5 } }, { 1, { 0 } }, 3 },
    { { 2, { 3, 5 } }, { 2, { 5, 1 } }, 0 },
    { { 2, { 3, 5 } }, { 2, { 1, 3 } }, 2 },
    { { 3, { 2, 3, 4 } }, { 3, { 0, 4, 1 } }, 0 },
    { { 3, { 2, 3, 5 } }, { 3, { 15, 5, 1 } }, 1 },
    { { 3, { 2, 1, 3 } }, { 3, { 6, 9, 2 } }, 1 },
    { { 3, { 4, 3, 3 } }, { 3, { 2, 1, 1 } }, 0 },
    { { 2, { 3, 4 } }, { 2, { -4, -1 } }, 11 },
    { { 3, { 2, 0, 3 } }, { 3, { 3, 3, 1 } }, 0 },
    { { 4, { 1, 1, 1, 1 } }, { 4, { 9, 8, 7, 6 } }, 5 },
    { { 8, { 2, 2, 2, 2, 2, 2, 2, 2 } }, { 8, { 1, 2, 4, 8, 16, 32, 64, 128 } }, 0 },
    { { 8, { 2, 3, 1, 2, 2, 3, 1, 2 } }, { 8, { 72, 24, 5, 12, 6, 2, 9, 1 } }, 0 },
};
enum { EXAMPLES = sizeof examples / sizeof examples[0] };

static td_tensor laid_out(td_tensor *numbers, int i)
{
    return look_of(numbers, examples[i].shape, examples[i].strides, examples[i].offset);
}

static int64_t counted(const td_tensor *x, int64_t i)
{
    const td_dims shape = td_shape_of(x);
    int64_t index[TD_MAX_RANK];
    td_unravel(i, &shape, index);
    return x->offset + td_ravel(index, &shape, x->strides);
}

static void a_gathered_stretch_is_the_one_that_counting_finds(void **state)
{
    td_tensor *numbers = td_arange(td_float(0), td_float(ROOM), td_float(1), plain);
    for (int l = 0; l < EXAMPLES; l++) {
        const td_tensor x = laid_out(numbers, l);
        td_space s;
        double block[ROOM];
        td_space_begin(&s, &x, TD_ALL_DIMS);
        assert_int_equal(s.total, td_numel(&x));
        td_collapse(&s.shape, s.operands, s.stride);
        for (int64_t start = 0; start < s.total; start++)
            for (int64_t n = 1; n <= s.total - start; n += 1 + n / 3) {
                td_space_carry(&s, 0, s.data[0], start, n, TD_FLOAT64, block, false);
                for (int64_t i = 0; i < n; i++)
                    assert_true(block[i] == (double)counted(&x, start + i));
                assert_true(*(float *)td_space_place(&s, 0, start) == (float)counted(&x, start));
            }
    }
}

static void what_was_gathered_is_scattered_to_where_it_was(void **state)
{
    td_tensor *numbers = td_arange(td_float(0), td_float(ROOM), td_float(1), plain);
    for (int l = 0; l < EXAMPLES; l++) {
        const td_tensor x = laid_out(numbers, l);
        td_tensor *other = td_zeros(TD_DIMS(ROOM), wide);
        const td_tensor y = laid_out(other, l);
        td_space s;
        float block[ROOM];
        td_space_begin(&s, &x, TD_ALL_DIMS);
        td_space_add(&s, &y, TD_ALL_DIMS);
        td_collapse(&s.shape, s.operands, s.stride);
        td_space_carry(&s, 0, s.data[0], 0, s.total, TD_FLOAT32, block, false);
        const int64_t cut = s.total / 3;
        td_space_carry(&s, 1, s.data[1], 0, cut, TD_FLOAT32, block, true);
        td_space_carry(&s, 1, s.data[1], cut, s.total - cut, TD_FLOAT32, block + cut, true);
        for (int64_t i = 0; i < s.total; i++)
            assert_true(((double *)td_data(other))[counted(&y, i)] == (double)counted(&x, i));
        double sum = 0, expected = 0;
        bool seen[ROOM] = { false };
        for (int64_t i = 0; i < ROOM; i++)
            sum += ((double *)td_data(other))[i];
        for (int64_t i = 0; i < s.total; i++) {
            expected += seen[counted(&x, i)] ? 0 : (double)counted(&x, i);
            seen[counted(&x, i)] = true;
        }
        assert_true(sum == expected);       /* nothing beside it */
    }
}

static void operands_repeat_where_they_are_small(void **state)
{
    td_tensor *numbers = td_arange(td_float(0), td_float(ROOM), td_float(1), plain);
    const td_tensor x = look_of(numbers, TD_DIMS(3, 4, 5), TD_DIMS(20, 5, 1), 0);
    const td_tensor row = look_of(numbers, TD_DIMS(5), TD_DIMS(2), 1);
    const td_tensor column = look_of(numbers, TD_DIMS(4, 1), TD_DIMS(7, 9), 0);
    const td_tensor number = look_of(numbers, TD_RANK_0, TD_RANK_0, 42);
    const td_tensor *const all[] = { &row, &column, &number };
    td_space s;
    td_space_begin(&s, &x, TD_ALL_DIMS);
    for (int k = 0; k < 3; k++)
        td_space_add(&s, all[k], TD_ALL_DIMS);
    td_collapse(&s.shape, s.operands, s.stride);
    assert_int_equal(s.shape.count, 3);
    for (int64_t i = 0; i < s.total; i++) {
        const int64_t expected[] = { i, i % 5 * 2 + 1, i / 5 % 4 * 7, 42 };
        for (int k = 0; k < 4; k++)
            assert_true(*(float *)td_space_place(&s, k, i) == (float)expected[k]);
    }
}

static void lines_leave_one_dimension_out(void **state)
{
    td_tensor *numbers = td_arange(td_float(0), td_float(ROOM), td_float(1), plain);
    const td_tensor x = look_of(numbers, TD_DIMS(2, 5, 3), TD_DIMS(1, 2, 100), 0);
    const td_tensor label = look_of(numbers, TD_DIMS(2, 3), TD_DIMS(3, 1), 50);
    td_lines l = { 0 };
    assert_int_equal(td_lines_add(&l, &x, 1), 0);
    assert_int_equal(td_lines_add(&l, &label, -1), 1);
    assert_int_equal(l.space.total, 6);
    for (int64_t i = 0; i < 6; i++) {
        int64_t line[5], one;
        td_lines_carry(&l, 0, i, TD_INT64, line, false);
        td_lines_carry(&l, 1, i, TD_INT64, &one, false);
        assert_int_equal(one, 50 + i);
        for (int j = 0; j < 5; j++)
            assert_int_equal(line[j], i / 3 + 2 * j + i % 3 * 100);
    }
    double fives[] = { 5, 5, 5, 5, 5 };
    td_lines_carry(&l, 0, 4, TD_FLOAT64, fives, true);
    for (int j = 0; j < 5; j++)
        assert_true(((float *)td_data(numbers))[1 + 2 * j + 100] == 5);
    assert_true(((float *)td_data(numbers))[2 + 100] == 102);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_gathered_stretch_is_the_one_that_counting_finds),
        CASE(what_was_gathered_is_scattered_to_where_it_was),
        CASE(operands_repeat_where_they_are_small), CASE(lines_leave_one_dimension_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
