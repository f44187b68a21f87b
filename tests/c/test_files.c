/* needs: metrics transforms files */
/* Tables and records in C, batches that are cut and mirrored, counts. */
#define TREADLE_TEST_FOLDER
#include "treadle_test.h"

static td_csv *table(const char *text)
{
    return td_csv_read(write_plain("table", text, strlen(text)), 0);
}

static const double none = NAN;

static void a_table_is_rows_of_texts_and_columns_of_numbers(void **state)
{
    td_csv *t = table("a,\"b \"\"c\"\"\"\n1,2.5\n-3,\n");
    assert_int_equal(td_csv_rows(t), 3);
    assert_int_equal(td_csv_columns(t), 2);
    assert_string_equal(td_csv_text(t, 0, 1), "b \"c\"");
    assert_string_equal(td_csv_text(t, 2, 1), "");
    assert_null(td_csv_text(t, 3, 0));
    assert_null(td_csv_text(t, 0, -1));
    assert_int_equal(td_csv_dtype(t, 0, 1), TD_INT64);
    assert_int_equal(td_csv_dtype(t, 1, 1), TD_FLOAT32);
    assert_int_equal(td_csv_dtype(t, 0, 0), TD_DTYPE_NONE);
    td_tensor *x = td_csv_column(t, 0, 1, TD_INT32, none);
    assert_int_equal(((int32_t *)td_data(x))[1], -3);
    x = td_csv_column(t, 1, 1, TD_FLOAT64, none);
    assert_true(((double *)td_data(x))[0] == 2.5 && isnan(((double *)td_data(x))[1]));
    x = td_csv_column(t, 1, 2, TD_INT64, 9);
    assert_int_equal(((int64_t *)td_data(x))[0], 9);
    refused(td_csv_column(t, 1, 2, TD_INT64, none), TD_ERROR_VALUE, "line 3, column 2 (b \"c\"): expected int64, got ''");
    refused(td_csv_column(t, 2, 1, TD_INT64, none), TD_ERROR_INDEX, "no column 2");
    refused(td_csv_column(t, 0, 4, TD_INT64, none), TD_ERROR_INDEX, "from row 4");
    refused(td_csv_column(NULL, 0, 4, TD_INT64, none), TD_ERROR_VALUE, "table is NULL");
}

static void tables_that_are_none_are_refused(void **state)
{
    refused(table("a,b\n1\n"), TD_ERROR_IO, "line 2: expected 2 values, got 1");
    refused(table("a\n\"x\ny"), TD_ERROR_IO, "line 2: a quotation mark is never closed");
    refused(td_csv_read(write_plain("table", "a\0b", 3), 0), TD_ERROR_IO, "zero byte");
    refused(td_csv_read("/nowhere", 0), TD_ERROR_IO, "/nowhere");
    refused(td_csv_read(NULL, 0), TD_ERROR_VALUE, "path is NULL");
    refused(td_csv_read(path, '\n'), TD_ERROR_VALUE, "delimiter");
    assert_int_equal(td_csv_rows(table("")), 0);
}

/* Every byte of some tables replaced by each that means something. */
static void spoilt_tables_end_in_a_table_or_an_error(void **state)
{
    const char *seeds[] = { "a,\"b\"\n1,2\r\n", "\"\"\"x\"\n\"\n\"", "\xef\xbb\xbf,\n,", "1e999,0x1p3\nnan,-" };
    for (size_t s = 0; s < 4; s++)
        for (size_t at = 0; at < strlen(seeds[s]); at++)
            for (int k = 0; k < 7; k++) {
                char text[64];
                td_scope_begin();
                strcpy(text, seeds[s]);
                text[at] = "\",\n\r9 \0"[k];
                td_csv *t = td_csv_read(write_plain("table", text, strlen(seeds[s])), 0);
                for (int64_t c = 0; c < td_csv_columns(t) && !td_failed(); c++)
                    td_csv_column(t, c, 0, td_csv_dtype(t, c, 0) ? TD_FLOAT32 : TD_INT64, none);
                td_error_clear();
                td_scope_end();
            }
}

static bool read_a_table(void *unused)
{
    td_csv *t = td_csv_read(path, 0);
    return t && td_csv_column(t, 0, 0, TD_INT64, none);
}

static void every_allocation_may_fail(void **state)
{
    write_plain("table", "1,2\n3,4", 7);
    assert_in_range(fail_each_allocation(read_a_table, NULL), 1, 99);
}

static td_tensor *images(void)
{
    return td_reshape(td_arange(td_float(1), td_float(1 + 2 * 3 * 5 * 7), td_float(1), plain), TD_DIMS(2, 3, 5, 7));
}

static void a_crop_is_a_part_of_each_image(void **state)
{
    td_tensor *x = images();
    int seen = 0;
    for (int k = 0; k < 40; k++) {
        td_tensor *y = td_random_crop(x, 4, 5, 0);
        for (int b = 0; b < 2; b++) {
            const float *in = (float *)td_data(x) + b * 105, *out = (float *)td_data(y) + b * 60;
            const int corner = (int)(out[0] - in[0]), top = corner / 7, left = corner % 7;
            assert_in_range(top, 0, 1);
            assert_in_range(left, 0, 2);
            seen |= 1 << (3 * top + left);
            for (int c = 0; c < 3; c++)
                for (int i = 0; i < 4; i++)
                    assert_memory_equal(out + (c * 4 + i) * 5, in + (c * 5 + top + i) * 7 + left, 5 * sizeof *out);
        }
    }
    assert_int_equal(seen, 63);
    td_tensor *y = td_random_crop(x, 9, 11, 2);
    assert_true(((float *)td_data(y))[0] == 0 && ((float *)td_data(y))[2 * 11 + 2] == 1);
    refused(td_random_crop(x, 6, 5, 0), TD_ERROR_VALUE, "6 points cannot be cut from 5");
    refused(td_random_crop(td_select(x, 0, 0), 2, 2, 0), TD_ERROR_RUNTIME, "3 dimensions");
    refused(td_random_crop(NULL, 2, 2, 0), TD_ERROR_VALUE, "x is NULL");
}

static void a_flip_mirrors_some_images(void **state)
{
    td_tensor *x = images();
    int mirrored = 0;
    for (int k = 0; k < 200; k++) {
        td_tensor *y = td_random_horizontal_flip(x, 0.25);
        for (int b = 0; b < 2; b++) {
            const float *in = (float *)td_data(x) + b * 105, *out = (float *)td_data(y) + b * 105;
            const bool turned = out[0] != in[0];
            for (int i = 0; i < 105; i++)
                assert_true(out[i] == in[turned ? i - i % 7 + 6 - i % 7 : i]);
            mirrored += turned;
        }
    }
    assert_in_range(mirrored, 60, 140);
}

static void hits_and_confusions_are_counted(void **state)
{
    const float score[] = { 1, 5, 4, 3, 3, 4, 2, 2, 2 };
    const int64_t target[] = { 2, 0, 1 }, taken[] = { 2, 2, 1 };
    td_tensor *s = td_empty(TD_DIMS(3, 3), plain);
    td_tensor *t = td_empty(TD_DIMS(3), (td_tensor_options){ .dtype = TD_INT64 });
    td_tensor *p = td_clone(t);
    memcpy(td_data(s), score, sizeof score);
    memcpy(td_data(t), target, sizeof target);
    memcpy(td_data(p), taken, sizeof taken);
    assert_true(td_item_double(td_accuracy(s, t, 1)) == 0);
    assert_true(td_item_double(td_accuracy(s, t, 2)) == 1);
    const int64_t wanted[] = { 0, 0, 1, 0, 1, 0, 0, 0, 1 };
    assert_memory_equal(td_data(td_confusion_matrix(p, t, 3)), wanted, sizeof wanted);
    refused(td_confusion_matrix(p, t, 2), TD_ERROR_INDEX, "example 0 is of class 2; there are 2");
    refused(td_confusion_matrix(s, t, 3), TD_ERROR_RUNTIME, "int64 vectors");
    refused(td_accuracy(s, t, 4), TD_ERROR_RUNTIME, "topk");
    refused(td_accuracy(s, td_arange(td_int(1), td_int(2), td_int(1), (td_tensor_options){ .dtype = TD_INT64 }), 1), TD_ERROR_RUNTIME, "equal length");
    ((int64_t *)td_data(t))[1] = -1;
    refused(td_accuracy(s, t, 1), TD_ERROR_INDEX, "example 1 is of class -1; there are 3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_table_is_rows_of_texts_and_columns_of_numbers),
        CASE(tables_that_are_none_are_refused),
        CASE(spoilt_tables_end_in_a_table_or_an_error),
        CASE(every_allocation_may_fail),
        CASE(a_crop_is_a_part_of_each_image),
        CASE(a_flip_mirrors_some_images),
        CASE(hits_and_confusions_are_counted),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
