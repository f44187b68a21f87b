/* needs: arrow */
/* Columns of tables in C: arrays made here as other programs make them,
   every refusal, structures that lie, loans that are taken apart, and
   memory that fails at every place in turn. */
#include "treadle_test.h"

static const td_scalar none = { 0 };
static int let_go;

static void count_let_go(void *context) { let_go++; }

static void release_nothing(struct ArrowArray *a) { a->release = NULL; }
static void keep_schema(struct ArrowSchema *s) { s->release = NULL; }

/* A table { x: float32, m: +w:2 of +w:3 of int32, b: bool } at offset 1 of
   5 rows, each column with an offset of its own. */
typedef struct {
    struct ArrowSchema table, column[3], list[2], *columns[3], *lists[2];
    struct ArrowArray a_table, a_column[3], a_list[2], *a_columns[3], *a_lists[2];
    const void *none[1], *x[2], *m[1], *inner[1], *leaf[2], *b[2];
    float numbers[64];
    int32_t places[4096];
    uint8_t bits[64], x_valid[64], m_valid[64], leaf_valid[64];
} made;

static made make(void)
{
    made t = { 0 };
    for (int i = 0; i < 64; i++) {
        t.numbers[i] = (float)i;
        t.bits[i] = (uint8_t)draw();
        t.x_valid[i] = t.m_valid[i] = t.leaf_valid[i] = 0xff;
    }
    for (int i = 0; i < 4096; i++)
        t.places[i] = i;
    return t;
}

/* Pointers into t itself, once it is where it stays. */
static void wire(made *t)
{
    static const char *const format[] = { "f", "+w:2", "b" }, *const name[] = { "x", "m", "b" };
    t->table = (struct ArrowSchema){ .format = "+s", .n_children = 3, .children = t->columns,
                                     .release = keep_schema };
    t->x[1] = t->numbers, t->b[1] = t->bits, t->leaf[1] = t->places;
    const void **buffers[] = { t->x, t->m, t->b };
    for (int i = 0; i < 3; i++) {
        t->column[i] = (struct ArrowSchema){ .format = format[i], .name = name[i], .release = keep_schema };
        t->columns[i] = &t->column[i];
        t->a_column[i] = (struct ArrowArray){ .length = 6, .offset = i + 1, .n_buffers = i == 1 ? 1 : 2,
            .buffers = buffers[i], .release = release_nothing };
        t->a_columns[i] = &t->a_column[i];
    }
    t->column[1].n_children = t->a_column[1].n_children = 1;
    t->column[1].children = &t->lists[0], t->a_column[1].children = &t->a_lists[0];
    for (int i = 0; i < 2; i++) {
        t->list[i] = (struct ArrowSchema){ .format = i ? "i" : "+w:3", .name = "item", .release = keep_schema,
            .n_children = 1 - i, .children = i ? NULL : &t->lists[1] };
        t->lists[i] = &t->list[i];
        t->a_list[i] = (struct ArrowArray){ .length = i ? 600 : 40, .offset = 5 + i, .n_buffers = 1 + i,
            .buffers = i ? t->leaf : t->inner, .n_children = 1 - i, .children = i ? NULL : &t->a_lists[1],
            .release = release_nothing };
        t->a_lists[i] = &t->a_list[i];
    }
    t->a_table = (struct ArrowArray){ .length = 5, .offset = 1, .n_buffers = 1, .buffers = t->none,
        .n_children = 3, .children = t->a_columns, .release = release_nothing };
}

static td_tensor *take(made *t, int64_t k, td_scalar fill)
{
    return td_from_arrow(&t->a_table, &t->table, k, fill, count_let_go, t);
}

/* ---- reading ------------------------------------------------------------ */

static void offsets_add_up(void **state)
{
    made t = make();
    wire(&t);
    let_go = 0;
    td_scope_begin();
    td_tensor *x = take(&t, 0, none);
    VALUES(x, 2, 3, 4, 5, 6);                   /* table 1 + column 1 */
    assert_ptr_equal(td_data(x), &t.numbers[2]);
    td_tensor *m = take(&t, 1, none);
    assert_true(td_rank(m) == 3 && td_size(m, 0) == 5 && td_size(m, 1) == 2 && td_size(m, 2) == 3);
    /* row 1 + 2, of 2 lists, after 5; of 3 numbers, after 6 */
    const int32_t first = ((1 + 2) * 2 + 5) * 3 + 6;
    for (int i = 0; i < 30; i++)
        assert_true(((int32_t *)td_data(m))[i] == first + i);
    assert_ptr_equal(td_data(m), &t.places[first]);
    td_tensor *b = take(&t, 2, none);
    for (int i = 0; i < 5; i++)
        assert_true(((bool *)td_data(b))[i] == ((t.bits[(i + 4) / 8] >> (i + 4) % 8) & 1));
    assert_true(let_go == 1);                   /* the bools were copied */
    assert_string_equal(td_arrow_name(&t.table, 1), "m");
    assert_null(td_arrow_name(&t.table, 3));
    td_scope_end();
    assert_true(let_go == 3);
    x = td_from_arrow(NULL, &t.table, 1, none, count_let_go, NULL);
    assert_true(td_rank(x) == 3 && td_numel(x) == 0 && td_size(x, 2) == 3 && let_go == 4);
}

static void gaps_at_each_level(void **state)
{
    made t = make();
    wire(&t);
    t.none[0] = t.m_valid, t.a_table.null_count = -1;
    t.leaf[0] = t.leaf_valid, t.a_list[1].null_count = 1;
    td_tensor *m = take(&t, 1, none);           /* nobody is missing after all */
    assert_non_null(m);
    t.m_valid[0] = 0xff ^ 1 << 3;               /* row 2 of the table */
    const int first = ((1 + 2) * 2 + 5) * 3 + 6;
    t.leaf_valid[first / 8] = (uint8_t)~(1 << first % 8);
    refused(take(&t, 1, none), TD_ERROR_VALUE, "column 'm' misses 7 of 30 elements");
    td_tensor *filled = take(&t, 1, td_int(-9));
    for (int i = 0; i < 30; i++)
        assert_true(((int32_t *)td_data(filled))[i] == (i == 0 || i / 6 == 2 ? -9 : first + i));
    let_go = 0;
    refused(take(&t, 1, td_float(NAN)), TD_ERROR_RUNTIME, "nan does not fit int32");
    assert_true(let_go == 0);                   /* what fails lets nothing go */
    VALUES(take(&t, 0, td_float(-1)), 2, 3, -1, 5, 6);
    t.a_column[2].null_count = 1, t.b[0] = t.x_valid;
    t.x_valid[0] = 0x0f;
    td_tensor *b = take(&t, 2, td_boolean(true));
    for (int i = 0; i < 5; i++)
        assert_true(((bool *)td_data(b))[i] || i == 1);
}

static void what_is_no_column_is_named(void **state)
{
    made t = make();
    const char *formats[] = { "S", "I", "L", "u", "vu", "U", "+s", "+l", "tdD", "d:3,2", "n", "ff", "" };
    const char *names[] = { "uint16", "uint32", "uint64", "text", "text", "text", "a table", "lists of any length",
                            "no number", "no number", "no number", "no number", "no number" };
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        wire(&t);
        t.column[0].format = formats[i];
        refused(take(&t, 0, none), TD_ERROR_UNSUPPORTED, names[i]);
    }
    wire(&t);
    t.column[0].dictionary = &t.list[1];
    refused(take(&t, 0, none), TD_ERROR_UNSUPPORTED, "'x' holds places in a dictionary");
    refused(take(&t, 3, none), TD_ERROR_VALUE, "malformed");
    refused(take(&t, -1, none), TD_ERROR_UNSUPPORTED, "a table");
    t.a_table.release = NULL;
    refused(take(&t, 0, none), TD_ERROR_VALUE, "released");
}

static void misaligned_numbers_are_copied(void **state)
{
    made t = make();
    wire(&t);
    memmove((char *)t.numbers + 1, t.numbers, sizeof t.numbers - 4);
    t.x[1] = (char *)t.numbers + 1;
    td_tensor *x = take(&t, 0, none);
    VALUES(x, 2, 3, 4, 5, 6);
    assert_true((uintptr_t)td_data(x) % 4 == 0);
}

/* ---- structures that lie ------------------------------------------------ */

/* Whatever the numbers say: an error, or a tensor that reads memory of ours.
   The buffers are larger than any length here that is not absurd; where an
   array with elements begins nobody can check, for buffers have no length. */
static void lies_are_refused_or_harmless(void **state)
{
    const int64_t lies[] = { INT64_MIN, -2, -1, 0, 1, 2, 3, 5, 7, INT64_MAX / 2, INT64_MAX - 3, INT64_MAX };
    static const char *const formats[] = { "+w:", "+w:0", "+w:1", "+w:2", "+w:-1", "+w:3x", "+w:9223372036854775807",
        "+w:99999999999999999999", "+w:4611686018427387904", "f", "b", "i", "C", "+s", "+l", "", "\xff" };
    int good = 0;
    for (int round = 0; round < 20000; round++) {
        made t = make();
        wire(&t);
        struct ArrowArray *arrays[] = { &t.a_table, &t.a_column[0], &t.a_column[1], &t.a_column[2], &t.a_list[0],
                                        &t.a_list[1] };
        struct ArrowSchema *schemas[] = { &t.column[0], &t.column[1], &t.column[2], &t.list[0], &t.list[1] };
        for (int n = 1 + (int)(draw() % 3); n > 0; n--) {
            struct ArrowArray *a = arrays[draw() % 6];
            struct ArrowSchema *s = schemas[draw() % 5];
            const bool leaf = a == arrays[1] || a == arrays[3] || a == arrays[5];
            const int64_t lie = lies[draw() % 12];
            switch (draw() % 10) {
            case 0: a->length = lie; break;
            case 1: a->offset = leaf && lie > 7 ? 7 : lie; break;
            case 2: a->null_count = lie; break;
            case 3: a->n_buffers = lie; break;
            case 4: a->n_children = lie; break;
            case 5: a->children = NULL; break;
            case 6: a->buffers = NULL; break;
            case 7: s->format = draw() % 9 ? formats[draw() % 17] : NULL; break;
            case 8: s->n_children = lie; break;
            default: s->children = NULL;
            }
        }
        td_scope_begin();
        td_tensor *x = take(&t, (int64_t)(draw() % 3), draw() % 2 ? td_int(1) : none);
        if (x != NULL && td_numel(x) < 4096) {
            td_tensor *sum = td_sum(td_to(x, TD_FLOAT64), (td_reduce_options)TD_DEFAULTS);
            assert_true(isfinite(td_item_double(sum)));
            good++;
        }
        td_error_clear();
        td_scope_end();
    }
    assert_true(good > 1000 && good < 19000);
}

/* ---- lending ------------------------------------------------------------ */

static void a_table_is_lent_and_taken_apart(void **state)
{
    td_tensor *x = td_transpose(td_reshape(td_arange(td_int(0), td_int(12), td_int(1), plain), TD_DIMS(4, 3)), 0, 1);
    td_tensor *b = td_gt(td_arange(td_int(0), td_int(3), td_int(1), plain), td_ones(TD_DIMS(1), plain));
    struct ArrowArray array, chunk, child;
    struct ArrowSchema schema, again;
    struct ArrowArrayStream s;
    assert_true(td_to_arrow((td_tensor *[]){ x, b }, (const char *[]){ "x", "b" }, 2, &array, &schema));
    assert_true(array.length == 3 && array.n_children == 2 && schema.children[0]->n_children == 1);
    assert_string_equal(schema.children[0]->format, "+w:4");
    assert_string_equal(schema.children[1]->name, "b");
    assert_true(((const uint8_t *)array.children[1]->buffers[1])[0] == 4);
    assert_true(td_arrow_stream(&array, &schema, &s));
    assert_true(array.release == NULL && schema.release == NULL);
    assert_false(td_arrow_stream(&array, &schema, &s));
    expect_error(TD_ERROR_VALUE, "released");
    assert_true(s.get_schema(&s, &schema) == 0 && s.get_schema(&s, &again) == 0);
    schema.release(&schema);
    assert_true(s.get_next(&s, &chunk) == 0);
    s.release(&s);
    assert_true(s.release == NULL);
    child = *chunk.children[0];                 /* moved out */
    chunk.children[0]->release = NULL;
    chunk.release(&chunk);
    td_tensor *y = td_from_arrow(&child, again.children[0], -1, none, NULL, NULL);
    VALUES(y, 0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11);
    child.release(&child);
    again.release(&again);
}

static void what_cannot_be_lent_says_so(void **state)
{
    struct ArrowArray array;
    struct ArrowSchema schema;
    td_tensor *odd[] = { td_zeros((td_dims){ 0 }, plain), td_zeros(TD_DIMS(2), (td_tensor_options){ .dtype = TD_BFLOAT16 }),
                         td_set_requires_grad(td_zeros(TD_DIMS(2), plain), true) };
    const td_error_code codes[] = { TD_ERROR_VALUE, TD_ERROR_UNSUPPORTED, TD_ERROR_UNSUPPORTED };
    for (int i = 0; i < 3; i++) {
        assert_false(td_to_arrow(&odd[i], NULL, 1, &array, &schema));
        expect_error(codes[i], "to_arrow");
    }
    td_tensor *pair[] = { td_zeros(TD_DIMS(2), plain), td_zeros(TD_DIMS(3), plain) };
    assert_false(td_to_arrow(pair, (const char *[]){ "a", "b" }, 2, &array, &schema));
    expect_error(TD_ERROR_VALUE, "column 'b' has 3 rows, expected 2");
    td_release(odd[2]);
}

/* ---- memory that fails -------------------------------------------------- */

static bool trade(void *context)
{
    struct ArrowArray array, chunk = { 0 };
    struct ArrowSchema schema = { 0 };
    struct ArrowArrayStream s;
    td_tensor *x = td_zeros(TD_DIMS(2, 3), plain);
    if (!td_to_arrow((td_tensor *[]){ x, td_gt(x, x) }, (const char *[]){ "x", "b" }, 2, &array, &schema))
        return false;
    if (!td_arrow_stream(&array, &schema, &s)) {
        array.release(&array);
        schema.release(&schema);
        return false;
    }
    s.get_schema(&s, &schema);
    s.get_next(&s, &chunk);
    s.release(&s);
    const bool good = td_from_arrow(&chunk, &schema, 1, none, NULL, NULL);
    chunk.release(&chunk);
    schema.release(&schema);
    return good;
}

static void every_allocation_may_fail(void **state)
{
    assert_true(fail_each_allocation(trade, NULL) > 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(offsets_add_up),
        CASE(gaps_at_each_level),
        CASE(what_is_no_column_is_named),
        CASE(misaligned_numbers_are_copied),
        CASE(lies_are_refused_or_harmless),
        CASE(a_table_is_lent_and_taken_apart),
        CASE(what_cannot_be_lent_says_so),
        CASE(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
