/* needs: saving files arrow */
/* Files that somebody spoilt: IDX, CSV, CIFAR-10, safetensors, and the
   structures of Arrow.

   Each seed in tests/seeds is read as it is, and then changed at random
   places, over and over.  Whatever the bytes are, the answer is a tensor
   or an error with words, in bounded time, and nothing is left behind.
   The sanitizers see the rest.  `make test` does a thousand changes of
   each kind; `make test-fuzz-files` sets

       TREADLE_FUZZ=60      seconds for each kind
       TREADLE_SEED=3       where the random numbers begin

   The file that was read last stays in the folder that is printed if the
   program dies; under a name was-*.csv (or whatever it is) in tests/seeds
   it is tried for ever. */
#define TREADLE_TEST_FOLDER
#include "treadle_test.h"
#include <dirent.h>
#include <libgen.h>
#include <sys/stat.h>
#include <time.h>
#include <treadle/arrow.h>
#include <treadle/safetensors.h>

enum { LARGEST = 1 << 16 };
static volatile unsigned sum;           /* so that what is read is read */

static void read_elements(td_tensor *x)
{
    td_tensor *y = x ? td_contiguous(x) : NULL;
    if (y == NULL)
        return;
    const unsigned char *p = td_data(y);
    const int64_t n = td_numel(y) * (int64_t)td_dtype_size(td_dtype_of(y));
    unsigned all = 0;
    for (int64_t i = 0; i < n; i++)
        all += p[i];
    sum += all;
}

/* ---- readers ------------------------------------------------------------ */

static void read_idx(const unsigned char *bytes, size_t n)
{
    write_plain("input", bytes, n);
    td_tensor *x = td_idx_read(path);
    assert_true(!x || td_numel(x) <= 1032 * (int64_t)n);
    read_elements(x);
}

static void read_text(const unsigned char *bytes, size_t n)
{
    write_plain("input", bytes, n);
    td_csv *t = td_csv_read(path, n % 7 ? 0 : ';');
    for (int64_t r = 0; r < td_csv_rows(t); r++)
        for (int64_t c = 0; c < td_csv_columns(t); c++)
            sum += (unsigned)strlen(td_csv_text(t, r, c));
    for (int64_t c = 0; t && c < td_csv_columns(t); c++)
        for (int from = 0; from < 2 && from <= td_csv_rows(t); from++) {
            static const td_dtype kinds[] = { TD_FLOAT32, TD_INT64, TD_UINT8, TD_BOOL, TD_FLOAT16 };
            read_elements(td_csv_column(t, c, from, td_csv_dtype(t, c, from), NAN));
            td_error_clear();
            read_elements(td_csv_column(t, c, from, kinds[draw() % 5], -1.5));
            td_error_clear();
        }
    if (t == NULL)
        return;
    assert_null(td_csv_text(t, td_csv_rows(t), 0));
    assert_null(td_csv_text(t, 0, td_csv_columns(t)));
}

static void read_photographs(const unsigned char *bytes, size_t n)
{
    const bool train = n % 2;
    write_plain("test_batch.bin", bytes, n);
    write_plain("data_batch_1.bin", bytes, n);
    td_dataset *d = td_cifar10(folder, train);
    td_tensor *x = NULL, *y = NULL;
    const int64_t size = d ? td_dataset_size(d) : 0, index[] = { size - 1, 0 };
    if (d == NULL)
        return;
    assert_in_range(size, 1, LARGEST);
    assert_true(td_dataset_get(d, index, 2, &x, &y));
    read_elements(x);
    td_error_clear();
    assert_false(td_dataset_get(d, &size, 1, &x, &y));
}

static void read_saved(const unsigned char *bytes, size_t n)
{
    write_plain("input", bytes, n);
    for (int how = 0; how < 3; how++) {
        td_error_clear();
        td_safetensors *f = how < 2 ? td_safetensors_open(path, how) : td_safetensors_over(bytes, (int64_t)n);
        const char *name, *text;
        for (int i = 0; f && (text = td_safetensors_note(f, i, &name)); i++)
            sum += (unsigned)(strlen(text) + strlen(name));
        for (int i = 0; i < (f ? td_safetensors_count(f) : 0); i++) {
            const td_saved_tensor *t = td_safetensors_at(f, i);
            assert_true(t->begin >= 0 && t->begin <= t->end && t->end <= (int64_t)n);
            assert_ptr_equal(td_safetensors_find(f, t->name), t);
            read_elements(td_safetensors_get(f, t->name));
            td_error_clear();
        }
        assert_true(f || how == 0 || td_failed());
    }
}

/* Structures as the bytes say, whose lengths and children are what they
   promise to be and whose memory is as long as any promise. */
enum { LEVELS = 8, CHILDREN = 3 };

typedef struct {
    const unsigned char *at, *end;
    int used;
    struct ArrowSchema schema[LEVELS], *schemas[LEVELS][CHILDREN];
    struct ArrowArray array[LEVELS], *arrays[LEVELS][CHILDREN];
    const void *buffers[LEVELS][4];
    char format[LEVELS][16];
} arrow;

static unsigned char arena[1 << 14];
static int let_go;

static void count_let_go(void *context) { let_go++; }
static void release_array(struct ArrowArray *a) { a->release = NULL; }
static void release_schema(struct ArrowSchema *s) { s->release = NULL; }

static int next_byte(arrow *a)
{
    return a->at < a->end ? *a->at++ : 0;
}

static int build(arrow *a, int deep)
{
    const int me = a->used++;
    for (int i = 0, c; (c = next_byte(a)) != 0 && i < 15; i++)
        a->format[me][i] = (char)c;
    const int length = next_byte(a), offset = next_byte(a);
    const int gaps = (signed char)next_byte(a), buffers = next_byte(a);
    const int children = next_byte(a), flags = next_byte(a), name = next_byte(a);
    next_byte(a);
    int made = 0;
    for (; made < CHILDREN && made < children && a->used < LEVELS && deep < 4; made++) {
        const int child = a->used;
        build(a, deep + 1);
        a->schemas[me][made] = flags & 32 && made ? NULL : &a->schema[child];
        a->arrays[me][made] = flags & 64 && made ? NULL : &a->array[child];
    }
    a->buffers[me][0] = flags & 1 ? arena : NULL;
    a->buffers[me][1] = flags & 2 ? NULL : arena + (flags >> 7);
    a->buffers[me][2] = arena;
    a->schema[me] = (struct ArrowSchema){ .format = flags & 4 ? NULL : a->format[me], .name = name ? "x" : NULL,
        .n_children = made, .children = made ? a->schemas[me] : NULL, .release = release_schema,
        .dictionary = flags & 8 ? &a->schema[me] : NULL };
    a->array[me] = (struct ArrowArray){ .length = flags & 16 ? -length : length, .offset = offset, .null_count = gaps,
        .n_buffers = buffers % 4, .buffers = buffers % 4 ? a->buffers[me] : NULL, .n_children = made,
        .children = made ? a->arrays[me] : NULL, .release = release_array };
    return me;
}

static void read_columns(const unsigned char *bytes, size_t n)
{
    static arrow a;
    a = (arrow){ .at = bytes, .end = bytes + n };
    for (size_t i = 0; i < sizeof arena; i++)
        arena[i] = (unsigned char)(i * 37 % 251);
    build(&a, 0);
    for (int64_t k = -1; k <= CHILDREN; k++)
        for (int fill = 0; fill < 2; fill++) {
            td_error_clear();
            const int before = let_go;
            td_scope_begin();
            td_tensor *x = td_from_arrow(&a.array[0], &a.schema[0], k, fill ? td_int(1) : (td_scalar){ 0 },
                                         count_let_go, NULL);
            td_arrow_name(&a.schema[0], k);
            const bool made = x != NULL;
            assert_true(made || td_failed());
            read_elements(x);
            td_scope_end();
            assert_int_equal(let_go - before, made);
        }
}

/* ---- seeds and their changes ------------------------------------------- */

typedef struct {
    const char *ending;
    void (*read)(const unsigned char *bytes, size_t n);
    const char *words[12];      /* what means something in such a file */
} kind;

typedef struct {
    unsigned char *bytes;
    size_t n;
} input;

static int seeds_of(const kind *k, input seeds[64])
{
    char here[] = __FILE__, name[700];
    snprintf(name, sizeof name, "%s/../seeds", dirname(here));
    DIR *d = opendir(name);
    int count = 0;
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL && count < 64;) {
        const char *dot = strrchr(e->d_name, '.');
        if (!dot || strcmp(dot + 1, k->ending))
            continue;
        snprintf(name, sizeof name, "%.300s/../seeds/%.300s", here, e->d_name);
        FILE *f = fopen(name, "rb");
        assert_non_null(f);
        seeds[count].bytes = malloc(LARGEST);
        seeds[count].n = fread(seeds[count].bytes, 1, LARGEST, f);
        fclose(f);
        count++;
    }
    closedir(d);
    assert_true(count > 2 || !strcmp(k->ending, "cifar"));
    return count;
}

static size_t below(size_t n)
{
    return n ? draw() % n : 0;
}

static void insert(input *x, size_t at, const void *bytes, size_t n)
{
    if (x->n + n > LARGEST)
        return;
    memmove(x->bytes + at + n, x->bytes + at, x->n - at);
    memcpy(x->bytes + at, bytes, n);
    x->n += n;
}

static void change(const kind *k, input *x, const input *other)
{
    static const uint64_t numbers[] = { 0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff,
                                        0x7fffffffffffffff, 0x8000000000000000, 0xffffffffffffffff, 0x100000000 };
    const size_t at = below(x->n), to = at + below(x->n - at < 40 ? x->n - at : 40);
    int words = 0;
    while (words < 12 && k->words[words])
        words++;
    unsigned char part[64];
    uint64_t number = numbers[below(14)];
    const size_t size = (size_t)1 << below(4);
    switch (x->n ? below(10) : 8) {
    case 0: x->bytes[at] ^= (unsigned char)(1 << below(8)); break;
    case 1: x->bytes[at] = (unsigned char)draw(); break;
    case 2: x->n = at; break;
    case 3:                                     /* a part vanishes */
        memmove(x->bytes + at, x->bytes + to, x->n - to);
        x->n -= to - at;
        break;
    case 4:                                     /* is there twice */
        memcpy(part, x->bytes + at, to - at);
        insert(x, below(x->n), part, to - at);
        break;
    case 5:                                     /* two change places */
        part[0] = x->bytes[at], x->bytes[at] = x->bytes[to < x->n ? to : at];
        x->bytes[to < x->n ? to : at] = part[0];
        break;
    case 6:                                     /* a number, least digit first */
        if (at + size <= x->n)
            memcpy(x->bytes + at, &number, size);
        break;
    case 7:                                     /* or last */
        for (size_t i = 0; at + size <= x->n && i < size; i++, number >>= 8)
            x->bytes[at + size - 1 - i] = (unsigned char)number;
        break;
    case 8:
        if (words) {
            const char *word = k->words[below((size_t)words)];
            insert(x, at, word, strlen(word));
        }
        break;
    default:                                    /* the end of another */
        if (other->n) {
            const size_t from = below(other->n);
            x->n = at;
            insert(x, at, other->bytes + from, other->n - from);
        }
    }
}

static void read_one(const kind *k, const input *x)
{
    td_scope_begin();
    k->read(x->bytes, x->n);
    if (td_failed())
        assert_true(strlen(td_error_message()) > 8);
    td_error_clear();
    td_scope_end();
}

static void fuzz(const kind *k)
{
    input seeds[64], x = { malloc(LARGEST), 0 };
    const char *text = getenv("TREADLE_FUZZ"), *first = getenv("TREADLE_SEED");
    const time_t end = time(NULL) + (text ? atoi(text) : 0);
    const int count = seeds_of(k, seeds);
    draws = first ? strtoull(first, NULL, 10) : 1;
    if (text)
        print_message("%s: the last input is in %s\n", k->ending, folder);
    for (int i = 0; i < count; i++)
        read_one(k, &seeds[i]);
    const td_memory_info before = td_memory_stats();
    long done = 0;
    for (; text ? done % 100 || time(NULL) < end : done < 1000; done++) {
        const input *seed = &seeds[below((size_t)count)];
        memcpy(x.bytes, seed->bytes, x.n = seed->n);
        for (size_t i = 1 + below(1 + below(6)); i > 0; i--)
            change(k, &x, &seeds[below((size_t)count)]);
        alarm(20);                              /* whatever takes longer, hangs */
        read_one(k, &x);
        alarm(0);
        const td_memory_info now = td_memory_stats();
        assert_int_equal(now.live_objects, before.live_objects);
        assert_int_equal(now.bytes, before.bytes);
    }
    if (text)
        print_message("%s: %ld inputs\n", k->ending, done);
    for (int i = 0; i < count; i++)
        free(seeds[i].bytes);
    free(x.bytes);
}

static void idx(void **state)
{
    fuzz(&(kind){ "idx", read_idx, { "\x1f\x8b\x08" } });
}

static void csv(void **state)
{
    fuzz(&(kind){ "csv", read_text, { "\"", "\"\"", ",", "\n", "\r\n", "\r", ";", "\xef\xbb\xbf", "1e400", "nan", " ",
                                      "99999999999999999999" } });
}

static void cifar(void **state)
{
    fuzz(&(kind){ "cifar", read_photographs, { "\x1f\x8b\x08" } });
}

static void safetensors(void **state)
{
    fuzz(&(kind){ "safetensors", read_saved, { "{", "}", "[", "]", "\"", ":", ",", "\\u0000", "\\ud800", "-1",
                                               "18446744073709551616", "\"__metadata__\":{}," } });
}

static void columns(void **state)
{
    fuzz(&(kind){ "arrow", read_columns, { "+w:2", "+w:", "+s", "9999999999999", "-1", "0", "+w:0", "f", "b", "u" } });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(idx, begin, end),
        cmocka_unit_test_setup_teardown(csv, begin, end),
        cmocka_unit_test_setup_teardown(cifar, begin, end),
        cmocka_unit_test_setup_teardown(safetensors, begin, end),
        cmocka_unit_test_setup_teardown(columns, begin, end),
    };
    const char *only = getenv("TREADLE_FUZZ_ONLY");
    if (only)
        cmocka_set_test_filter(only);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
