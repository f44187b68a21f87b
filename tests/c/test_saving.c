/* needs: saving */
/* Files of tensors: whole, forged, cut, shared; and a write that is killed at each of its system calls. */
#define TREADLE_TEST_FOLDER
#include "treadle_test.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

static size_t read_all(const char *where, unsigned char *out, size_t room)
{
    FILE *f = fopen(where, "rb");
    const size_t n = f ? fread(out, 1, room, f) : 0;
    if (f)
        fclose(f);
    return n;
}

/* A header, blanks to a multiple of eight, and `data` bytes 1, 2, 3, ...; in memory of exactly that size. */
static unsigned char *build(const char *header, size_t data, size_t *n)
{
    const size_t length = (strlen(header) + 7) / 8 * 8;
    *n = 8 + length + data;
    unsigned char *b = malloc(*n);
    assert_non_null(b);
    memset(b, 0, 8);
    b[0] = (unsigned char)length, b[1] = (unsigned char)(length >> 8);
    memset(b + 8, ' ', length);
    memcpy(b + 8, header, strlen(header));
    for (size_t i = 0; i < data; i++)
        b[8 + length + i] = (unsigned char)(i + 1);
    return b;
}

/* ---- what is accepted ---------------------------------------------------- */

static td_safetensors *over(const char *header, size_t data, unsigned char **kept)
{
    size_t n;
    *kept = build(header, data, &n);
    return td_safetensors_over(*kept, (int64_t)n);
}

static void headers_are_read_as_the_format_says(void **state)
{
    unsigned char *b;
    td_safetensors *f = over(" {\"b\" : {\"data_offsets\":[4,10],\"dtype\":\"U16\",\"shape\":[3]}\n,\"\\u20ac\\ud83d\\ude00\\n\":"
        "{\"shape\":[],\"more\":[1,{\"x\":\"y\"},[]],\"dtype\":\"I32\",\"data_offsets\":[0,4]},\"empty\":{\"dtype\":\"F64\","
        "\"shape\":[3,0],\"data_offsets\":[4,4]},\"__metadata__\":{\"by\":\"hand\",\"\":\"\"}}", 10, &b);
    if (!f)
        fail_msg("%s", td_error_message());
    assert_int_equal(td_safetensors_count(f), 3);
    assert_string_equal(td_safetensors_at(f, 0)->name, "\xe2\x82\xac\xf0\x9f\x98\x80\n");
    assert_string_equal(td_safetensors_at(f, 1)->name, "empty");
    assert_string_equal(td_safetensors_at(f, 2)->type, "U16");
    assert_null(td_safetensors_at(f, 3));
    const char *name;
    assert_string_equal(td_safetensors_note(f, 0, &name), "hand");
    assert_string_equal(name, "by");
    assert_string_equal(td_safetensors_note(f, 1, &name), "");
    assert_null(td_safetensors_note(f, 2, &name));
    td_tensor *x = td_safetensors_get(f, "b");
    assert_int_equal(td_dtype_of(x), TD_INT32);
    VALUES(x, 5 + 6 * 256, 7 + 8 * 256, 9 + 10 * 256);
    assert_int_equal(td_numel(td_safetensors_get(f, "empty")), 0);
    VALUES(td_safetensors_get(f, "\xe2\x82\xac\xf0\x9f\x98\x80\n"), 0x04030201);
    refused(td_safetensors_get(f, "c"), TD_ERROR_INDEX, "holds no tensor 'c'");
    free(b);
    assert_int_equal(td_safetensors_count(over("{}", 0, &b)), 0);
    free(b);
}

static void types_beyond_ours_are_listed_and_named(void **state)
{
    unsigned char *b;
    td_safetensors *f = over("{\"x\":{\"dtype\":\"U64\",\"shape\":[1],\"data_offsets\":[0,8]},\"y\":{\"dtype\":\"F8_E4M3\",\"shape\":"
        "[2],\"data_offsets\":[8,10]},\"z\":{\"dtype\":\"BOOL\",\"shape\":[2],\"data_offsets\":[10,12]}}", 12, &b);
    assert_string_equal(td_safetensors_at(f, 0)->type, "U64");
    refused(td_safetensors_get(f, "x"), TD_ERROR_UNSUPPORTED, "tensor 'x' of type U64 cannot be read, none of ours can hold it");
    refused(td_safetensors_get(f, "y"), TD_ERROR_UNSUPPORTED, "tensor 'y'");
    refused(td_safetensors_get(f, "z"), TD_ERROR_IO, "tensor 'z' has bools of other bytes");
    free(b);
}

/* ---- what is refused ----------------------------------------------------- */

#define T(name, type, shape, from, to) "\"" name "\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":[" from "," to "]}"
/* One tensor of that name, refused in those words. */
#define NAMED(name, words) { "{" T(name, "U8", "[1]", "0", "1") "}", 1, words }

static const struct { const char *header; size_t data; const char *words; } lies[] = {
    { "", 0, "byte 0 of its header is no opening brace" },
    { "[]", 0, "no opening brace" },
    { "{} {}", 0, "no end" },
    { "{\"a\"}", 0, "no colon" },
    { "{,}", 0, "no string" },
    { "{\"a\":{},}", 0, "tensor 'a' lacks" },
    { "{" T("a", "U8", "[1]", "0", "1") ",}", 1, "no string" },
    { "{" T("a", "U8", "[1,]", "0", "1") "}", 1, "no whole number" },
    { "{" T("a", "U8", "[,1]", "0", "1") "}", 1, "no whole number" },
    { "{" T("a", "U8", "[1 1]", "0", "1") "}", 1, "no comma" },
    { "{" T("a", "U8", "[1]", "00", "1") "}", 1, "no whole number" },
    { "{" T("a", "U8", "[-1]", "0", "1") "}", 1, "no whole number" },
    { "{" T("a", "U8", "[1.0]", "0", "1") "}", 1, "no comma" },
    { "{" T("a", "U8", "[1e0]", "0", "1") "}", 1, "no comma" },
    { "{" T("a", "U8", "[9223372036854775808]", "0", "1") "}", 1, "no number of 63 bits" },
    { "{" T("a", "U8", "\"1\"", "0", "1") "}", 1, "no list" },
    { "{" T("a", "U8", "[1,1,1,1,1,1,1,1,1]", "0", "1") "}", 1, "more than 8 dimensions" },
    { "{" T("a", "Q8", "[1]", "0", "1") "}", 1, "tensor 'a' has a type that is none of the format's" },
    { "{" T("a", "u8", "[1]", "0", "1") "}", 1, "none of the format's" },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "lacks" },
    { "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, "lacks" },
    { "{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "lacks" },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1, "lacks" },
    { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,2]}}", 1, "lacks" },
    { "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "tensor 'a' has a field twice" },
    { "{\"a\":{\"dtype\":8,\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "no string" },
    { "{\"a\":1}", 0, "no description of a tensor" },
    { "{" T("a", "U8", "[1]", "0", "1") "," T("a", "U8", "[1]", "1", "2") "}", 2, "tensor 'a' is there twice" },
    { "{" T("a", "U8", "[1]", "0", "1") "," T("\\u0061", "U8", "[1]", "1", "2") "}", 2, "tensor 'a' is there twice" },
    { "{" T("a", "U8", "[1]", "0", "1") "," T("b", "U8", "[1]", "2", "3") "}", 3, "tensor 'b' does not begin where" },
    { "{" T("a", "U8", "[2]", "0", "2") "," T("b", "U8", "[2]", "1", "3") "}", 3, "tensor 'b' does not begin where" },
    { "{" T("a", "U8", "[1]", "1", "2") "}", 2, "tensor 'a' does not begin where" },
    { "{" T("a", "U8", "[2]", "2", "0") "}", 2, "tensor 'a' does not begin where" },
    { "{" T("a", "F32", "[2]", "0", "4") "}", 4, "tensor 'a' has another number of bytes" },
    { "{" T("a", "F4", "[3]", "0", "1") "}", 1, "tensor 'a' has another number of bytes" },
    { "{" T("a", "U8", "[4294967296,4294967296,0]", "0", "0") "}", 0, "tensor 'a' claims more than we can count" },
    { "{" T("a", "F64", "[1152921504606846976,2]", "0", "0") "}", 0, "tensor 'a' claims more than we can count" },
    { "{" T("a", "U8", "[4]", "0", "4") "}", 3, "is cut off" },
    { "{" T("a", "U8", "[4]", "0", "4") "}", 5, "bytes that belong to no tensor" },
    { "{}", 1, "bytes that belong to no tensor" },
    { "{\"__metadata__\":{\"a\":1}}", 0, "no string" },
    { "{\"__metadata__\":[]}", 0, "no object of strings" },
    { "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "has __metadata__ twice" },
    NAMED("\\ud800", "no string"),
    NAMED("\\udc00", "no string"),
    NAMED("\\ud800\\u0041", "no string"),
    NAMED("\\u0000", "no string"),
    NAMED("\\u12g4", "no string"),
    NAMED("\\x", "no string"),
    NAMED("a\tb", "no string"),
    { "{\"a", 0, "no string" },
    { "{\"a\\", 0, "no string" },
    NAMED("\xff", "not UTF-8"),
    NAMED("\xc0\x80", "not UTF-8"),
    NAMED("\xed\xa0\x80", "not UTF-8"),
    NAMED("\xf4\x90\x80\x80", "not UTF-8"),
    { "{\"a\":{\"x\":[[[[[", 0, "is no" },
};

static void every_lie_is_refused_by_name(void **state)
{
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        unsigned char *b;
        td_memory_reset_peak();
        const td_safetensors *f = over(lies[i].header, lies[i].data, &b);
        if (f || !strstr(td_error_message(), lies[i].words))
            fail_msg("%s: expected '%s', got '%s'", lies[i].header, lies[i].words, td_error_message());
        assert_true(td_error() == TD_ERROR_IO || td_error() == TD_ERROR_UNSUPPORTED);
        td_error_clear();
        free(b);
    }
}

static void deep_nesting_is_refused_without_recursion_to_match(void **state)
{
    char deep[5000] = "{\"a\":{\"x\":";
    memset(deep + 10, '[', 4000);
    unsigned char *b;
    refused(over(deep, 0, &b), TD_ERROR_IO, "is no");
    free(b);
}

static void lengths_of_headers_are_compared_with_the_file(void **state)
{
    unsigned char b[16] = { 2, 0, 0, 0, 0, 0, 0, 0, '{', '}', 0 };
    assert_non_null(td_safetensors_over(b, 10));
    refused(td_safetensors_over(b, 9), TD_ERROR_IO, "no room for its header");
    refused(td_safetensors_over(b, 7), TD_ERROR_IO, "no room for its header");
    refused(td_safetensors_over(b, 0), TD_ERROR_IO, "no room for its header");
    memset(b, 0xff, 8);
    refused(td_safetensors_over(b, 10), TD_ERROR_IO, "no room for its header");
    refused(td_safetensors_open(in_folder("absent"), true), TD_ERROR_IO, "absent: No such file");
    refused(td_safetensors_open(folder, true), TD_ERROR_IO, "not a regular file");
    refused(td_safetensors_open(NULL, true), TD_ERROR_VALUE, "path is NULL");
    fclose(fopen(in_folder("empty"), "wb"));
    refused(td_safetensors_open(path, true), TD_ERROR_IO, "no room for its header");
}

/* ---- mutations of seeds: under the sanitizers this is the fuzzer ----------- */

static volatile unsigned char sum;      /* so that the bytes are read */

static void read_everything(td_safetensors *f)
{
    for (int i = 0; i < td_safetensors_count(f); i++) {
        td_tensor *x = td_safetensors_get(f, td_safetensors_at(f, i)->name);
        for (int64_t k = 0; x && k < td_numel(x) * (int64_t)td_dtype_size(td_dtype_of(x)); k++)
            sum ^= ((unsigned char *)td_data(x))[k];
        td_error_clear();
    }
}

static void mutations_are_refused_or_whole(void **state)
{
    static const char *const words[] = { "\"", "{", "}", "[", "]", ",", ":", "0", "4294967296", "9223372036854775807", "\\u", "\\ud83d",
        "__metadata__", "\"dtype\":\"F32\"", "BOOL", " ", "\xff", "data_offsets" };
    const size_t seeds = sizeof lies / sizeof *lies;
    const time_t until = time(NULL) + (getenv("CI_LONG") ? 300 : 0);
    int64_t accepted = 0;
    for (int round = 0; round < 20000 || time(NULL) < until; round++) {
        unsigned char *b, *c;
        size_t n, at;
        if (draw() % 3 == 0)
            b = build("{" T("a", "F32", "[2,3]", "0", "24") "," T("b\\n", "U16", "[4]", "24", "32")
                      ",\"__metadata__\":{\"k\":\"v\"}}", 32, &n);
        else
            b = build(lies[draw() % seeds].header, lies[draw() % seeds].data, &n);
        for (int change = (int)(draw() % 3) + 1; change > 0 && n > 0; change--) {
            const char *word = words[draw() % (sizeof words / sizeof *words)];
            const size_t w = strlen(word);
            at = draw() % n;
            switch (draw() % 4) {
            case 0: b[at] ^= (unsigned char)(1 << draw() % 8); break;
            case 1: n = at; break;
            case 2: memmove(b + at, b + at + 1, n - at - 1); n--; break;
            default:
                b = realloc(b, n + w);
                memmove(b + at + w, b + at, n - at);
                memcpy(b + at, word, w);
                n += w;
            }
        }
        if (draw() % 2 && n >= 8)          /* the length fits again */
            for (int i = 0; i < 8; i++)
                b[i] = i < 2 ? (unsigned char)((n - 8 - draw() % 2 * (n > 40 ? 32 : 0)) >> 8 * i) : 0;
        c = malloc(n ? n : 1);              /* of this size exactly */
        memcpy(c, b, n);
        td_scope_begin();
        td_safetensors *f = td_safetensors_over(c, (int64_t)n);
        accepted += f != NULL;
        if (f)
            read_everything(f);
        else
            assert_true(td_error() == TD_ERROR_IO || td_error() == TD_ERROR_UNSUPPORTED);
        td_error_clear();
        td_scope_end();
        free(b), free(c);
    }
    assert_in_range(accepted, 50, 1000000000);
}

/* ---- writing ---------------------------------------------------------------- */

static void every_type_and_layout_comes_back(void **state)
{
    td_to_save list[40];
    char names[40][16];
    int n = 0;
    for (int type = 1; type < TD_DTYPE_COUNT; type++)
        for (int how = 0; how < LAYOUTS; how++, n++) {
            snprintf(names[n], sizeof *names, "%s%d", how % 2 ? "n\"\n\\" : "m", n);
            list[n] = (td_to_save){ names[n], random_tensor(TD_DIMS(3, 5, 2), (td_dtype)type, (layout)how, 0, 100) };
        }
    assert_true(td_safetensors_save(in_folder("all"), list, n, NULL));
    for (int share = 0; share < 2; share++) {
        td_safetensors *f = td_safetensors_open(path, share);
        assert_int_equal(td_safetensors_count(f), n);
        for (int i = 0; i < n; i++)
            assert_true(same_bytes(td_safetensors_get(f, names[i]), td_contiguous(list[i].tensor)));
        for (int i = 0; i < n; i++) {
            const td_saved_tensor *t = td_safetensors_at(f, i);
            assert_int_equal(t->begin % (int64_t)td_dtype_size(t->dtype), 0);
        }
    }
    static unsigned char file[1 << 16], memory[1 << 16];
    const size_t length = read_all(path, file, sizeof file);
    assert_int_equal(td_safetensors_write(memory, 10, list, n, NULL), length);
    assert_int_equal(td_safetensors_write(memory, sizeof memory, list, n, NULL), length);
    assert_memory_equal(file, memory, length);
}

static void names_and_metadata_are_checked(void **state)
{
    td_tensor *x = td_ones(TD_DIMS(3), plain), *y = td_ones(TD_DIMS(3), wide);
    in_folder("bad");
    refused(td_safetensors_save(path, (td_to_save[]){ { "a", x }, { "a", y } }, 2, NULL), TD_ERROR_VALUE, "two tensors are called 'a'");
    refused(td_safetensors_save(path, (td_to_save[]){ { "__metadata__", x } }, 1, NULL), TD_ERROR_VALUE, "'__metadata__' cannot be saved");
    refused(td_safetensors_save(path, (td_to_save[]){ { "\xff", x } }, 1, NULL), TD_ERROR_VALUE, "not UTF-8");
    refused(td_safetensors_save(path, (td_to_save[]){ { NULL, x } }, 1, NULL), TD_ERROR_VALUE, "name is NULL");
    refused(td_safetensors_save(path, (td_to_save[]){ { "a", NULL } }, 1, NULL), TD_ERROR_VALUE, "a is NULL");
    refused(td_safetensors_save(path, NULL, 0, (const char *[]){ "k", "\xc0", NULL }), TD_ERROR_VALUE, "not UTF-8");
    assert_int_equal(access(path, F_OK), -1);
    assert_true(td_safetensors_save(path, NULL, 0, (const char *[]){ NULL }));
    assert_true(td_safetensors_save(path, NULL, 0, (const char *[]){ "k\x01", "v", NULL }));
    const char *name;
    assert_string_equal(td_safetensors_note(td_safetensors_open(path, true), 0, &name), "v");
    assert_string_equal(name, "k\x01");
}

static void tensors_that_share_memory_are_refused_by_name(void **state)
{
    td_tensor *x = td_ones(TD_DIMS(4, 3), plain);
    td_tensor *top = td_slice(x, 0, (td_opt_i64){ 0 }, (td_opt_i64)td_some(2), 1);
    td_tensor *end_ = td_slice(x, 0, (td_opt_i64)td_some(2), (td_opt_i64){ 0 }, 1);
    td_tensor *left = td_slice(x, 1, (td_opt_i64){ 0 }, (td_opt_i64)td_some(1), 1);
    td_tensor *none = td_slice(x, 0, (td_opt_i64)td_some(1), (td_opt_i64)td_some(1), 1);
    in_folder("shared");
    refused(td_safetensors_save(path, (td_to_save[]){ { "one", x }, { "two", td_t(x) } }, 2, NULL), TD_ERROR_RUNTIME, "share memory");
    refused(td_safetensors_save(path, (td_to_save[]){ { "top", top }, { "end", end_ }, { "left", left } }, 3, NULL), TD_ERROR_RUNTIME, "'left'");
    assert_int_equal(access(path, F_OK), -1);
    assert_true(td_safetensors_save(path, (td_to_save[]){ { "top", top }, { "end", end_ }, { "none", none } }, 3, NULL));
}

static void a_mapped_tensor_outlives_its_file(void **state)
{
    static unsigned char before[4096], after[4096];
    td_tensor *x = random_tensor(TD_DIMS(5, 7), TD_FLOAT32, PLAIN, -1, 1);
    td_tensor *old = td_clone(x);
    assert_true(td_safetensors_save(in_folder("map"), (td_to_save[]){ { "x", x } }, 1, NULL));
    td_safetensors *f = td_safetensors_open(path, true);
    td_tensor *y = td_safetensors_get(f, "x");
    const size_t n = read_all(path, before, sizeof before);
    td_tensor *z = td_clone(y);
    assert_true(td_fill_(y, td_float(7)));          /* our pages, not the file */
    assert_int_equal(read_all(path, after, sizeof after), n);
    assert_memory_equal(before, after, n);
    assert_true(td_safetensors_save(path, (td_to_save[]){ { "x", y } }, 1, NULL));      /* over its own source */
    assert_int_equal(unlink(path), 0);
    assert_true(same_bytes(z, old));
    VALUES(td_select(y, 0, 4), 7, 7, 7, 7, 7, 7, 7);
}

static void links_are_followed_and_devices_left_alone(void **state)
{
    char link[300];
    snprintf(link, sizeof link, "%s/link", folder);
    td_tensor *x = td_ones(TD_DIMS(3), plain);
    assert_true(td_safetensors_save(in_folder("target"), (td_to_save[]){ { "x", x } }, 1, NULL));
    assert_int_equal(symlink("target", link), 0);
    assert_true(td_safetensors_save(link, (td_to_save[]){ { "y", x } }, 1, NULL));
    struct stat about;
    assert_int_equal(lstat(link, &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    assert_string_equal(td_safetensors_at(td_safetensors_open(in_folder("target"), true), 0)->name, "y");
    refused(td_safetensors_save("/dev/null", (td_to_save[]){ { "x", x } }, 1, NULL), TD_ERROR_IO, "cannot write /dev/null: Invalid");
    refused(td_safetensors_save(folder, (td_to_save[]){ { "x", x } }, 1, NULL), TD_ERROR_IO, "cannot write");
    refused(td_safetensors_save(in_folder("no/such"), (td_to_save[]){ { "x", x } }, 1, NULL), TD_ERROR_IO, "No such file");
    char command[400];
    snprintf(command, sizeof command, "! ls '%s' | grep -q new", folder);
    assert_int_equal(system(command), 0);
}

static bool write_and_read(void *context)
{
    td_tensor *x = td_ones(TD_DIMS(3, 4), plain);
    td_safetensors *f = NULL;
    if (x && td_safetensors_save(in_folder("memory"), (td_to_save[]){ { "x", td_t(x) }, { "y", td_clone(x) } }, 2, NULL))
        f = td_safetensors_open(path, true);
    return f && td_safetensors_get(f, "x") && td_safetensors_get(td_safetensors_open(path, false), "y");
}

static void each_failing_allocation_is_an_error(void **state)
{
    assert_in_range(fail_each_allocation(write_and_read, NULL), 5, 1000);
}

/* ---- modules ---------------------------------------------------------------- */

static td_module *net(int64_t width)
{
    return td_sequential((td_module *[]){ td_linear_module(3, width, (td_linear_options){ 0 }), td_relu_module(),
                                          td_linear_module(width, 2, (td_linear_options){ 0 }) }, 3);
}

static void a_module_comes_back_or_stays_as_it_is(void **state)
{
    td_named_tensor of[4], at_[4];
    td_module *m = net(5), *same = net(5), *other = net(4);
    assert_true(td_save_module(m, in_folder("module")));
    assert_int_equal(td_named_state(m, of, 4), 4);
    assert_int_equal(td_named_state(same, at_, 4), 4);
    assert_false(same_bytes(of[0].tensor, at_[0].tensor));
    assert_true(td_load_module(same, path));
    for (int i = 0; i < 4; i++)
        assert_true(same_bytes(of[i].tensor, at_[i].tensor));
    td_named_state(other, at_, 4);
    td_tensor *before = td_clone(at_[3].tensor);        /* the one that would fit */
    refused(td_load_module(other, path), TD_ERROR_RUNTIME, "size mismatch for 0.weight: expected [4, 3], got [5, 3]");
    assert_true(same_bytes(before, at_[3].tensor));
    refused(td_load_module(td_linear_module(3, 5, (td_linear_options){ 0 }), path), TD_ERROR_INDEX, "no tensor 'weight'");
    assert_true(td_safetensors_save(path, (td_to_save[]){ { "weight", td_ones(TD_DIMS(5, 3), plain) }, { "bias", td_ones(TD_DIMS(5), plain) },
                { "more", td_ones(TD_DIMS(1), plain) } }, 3, NULL));
    refused(td_load_module(td_linear_module(3, 5, (td_linear_options){ 0 }), path), TD_ERROR_RUNTIME, "holds 3 tensors, the module has 2");
}

static void a_shared_tensor_is_saved_once(void **state)
{
    td_module *one = td_linear_module(3, 3, (td_linear_options){ 0 });
    td_module *m = td_sequential((td_module *[]){ one, one }, 2);
    assert_true(td_save_module(m, in_folder("twice")));
    assert_int_equal(td_safetensors_count(td_safetensors_open(path, true)), 2);
    assert_true(td_load_module(m, path));
}

/* ---- killed at each system call ------------------------------------------------ */

#ifdef PTRACE_GET_SYSCALL_INFO
enum { SIDE = 100 };

static void write_new(void)
{
    td_tensor *x = td_full(TD_DIMS(SIDE, SIDE), td_float(2), plain);
    td_safetensors_save(path, (td_to_save[]){ { "x", td_t(x) } }, 1, NULL);
}

/* Runs write_new in a child and kills it when it begins or ends its call number `at`.  Writes the calls into `calls`, if
   not NULL.  1: it was killed; 0: it lived to its end; -1: this machine does not let us look. */
static int run_killed_at(int at, long *calls, int *count)
{
    fflush(NULL);
    const pid_t child = fork();
    int status;
    if (child == 0) {
        alarm(120);
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(9);
        raise(SIGSTOP);
        write_new();
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
        return -1;
    ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)(long)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
    for (int k = 0; ; k++) {
        if (k == at) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            return 1;
        }
        ptrace(PTRACE_SYSCALL, child, NULL, NULL);
        if (waitpid(child, &status, 0) != child || WIFEXITED(status) || WIFSIGNALED(status))
            return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
        struct __ptrace_syscall_info info = { 0 };
        ptrace(PTRACE_GET_SYSCALL_INFO, child, (void *)sizeof info, &info);
        if (calls && info.op == PTRACE_SYSCALL_INFO_ENTRY && *count < 1000)
            calls[(*count)++] = (long)info.entry.nr;
    }
}

static const char *name_of(long call)
{
    return call == SYS_openat ? "open" : call == SYS_write || call == SYS_writev ? "write" : call == SYS_fsync ? "fsync"
         : call == SYS_close ? "close" :
#ifdef SYS_rename
         call == SYS_rename ? "rename" :
#endif
#ifdef SYS_renameat
         call == SYS_renameat ? "rename" :
#endif
#ifdef SYS_renameat2
         call == SYS_renameat2 ? "rename" :
#endif
#ifdef SYS_open
         call == SYS_open ? "open" :
#endif
         NULL;
}

/* The calls that change a file, in their order; one word for a run of the same. */
static bool calls_of_a_write(char *out, size_t room)
{
    long calls[1000];
    int count = 0;
    const char *last = "";
    *out = '\0';
    if (run_killed_at(-1, calls, &count) != 0)
        return false;
    for (int i = 0; i < count; i++) {
        const char *name = name_of(calls[i]);
        if (name && strcmp(name, last) != 0)
            snprintf(out + strlen(out), room - strlen(out), "%s%s", *out ? " " : "", last = name);
    }
    return true;
}

static void a_write_killed_at_any_call_leaves_a_whole_file(void **state)
{
    static unsigned char old[1 << 17], new[1 << 17], got[1 << 17];
    size_t lengths[2] = { 0 };
    int states[2] = { 0 };
    if (SANITIZED)
        skip();
    in_folder("killed");
    write_new();
    lengths[1] = read_all(path, new, sizeof new);
    td_tensor *ones = td_ones(TD_DIMS(SIDE, SIDE), plain);
    for (int at = 1; ; at++) {
        assert_true(td_safetensors_save(path, (td_to_save[]){ { "x", ones } }, 1, NULL));
        lengths[0] = read_all(path, old, sizeof old);
        const int end_ = run_killed_at(at, NULL, NULL);
        if (end_ < 0) {
            print_message("ptrace is not allowed here\n");
            skip();
        }
        const size_t n = read_all(path, got, sizeof got);
        const bool is_old = n == lengths[0] && memcmp(got, old, n) == 0, is_new = n == lengths[1] && memcmp(got, new, n) == 0;
        if (!is_old && !is_new)
            fail_msg("killed at call %d: %zu bytes, neither the old file nor the new", at, n);
        states[is_new]++;
        if (end_ == 0)
            break;
    }
    assert_in_range(states[0], 10, 1000);
    assert_in_range(states[1], 2, 1000);
}

static void the_content_is_synced_before_it_gets_the_name(void **state)
{
    char calls[1000];
    if (SANITIZED || !calls_of_a_write(calls, sizeof calls))
        skip();
    assert_string_equal(calls, "open write fsync close rename open fsync close");
}
#endif

int main(int argc, char **argv)
{
#ifdef PTRACE_GET_SYSCALL_INFO
    char calls[1000];
    if (argc > 1) {
        begin(NULL), make_folder(NULL), in_folder("x");
        puts(calls_of_a_write(calls, sizeof calls) ? calls : "ptrace is not allowed here");
        return remove_folder(NULL);
    }
#endif
    const struct CMUnitTest tests[] = {
        CASE(headers_are_read_as_the_format_says),
        CASE(types_beyond_ours_are_listed_and_named),
        CASE(every_lie_is_refused_by_name),
        CASE(deep_nesting_is_refused_without_recursion_to_match),
        CASE(lengths_of_headers_are_compared_with_the_file),
        CASE(mutations_are_refused_or_whole),
        CASE(every_type_and_layout_comes_back),
        CASE(names_and_metadata_are_checked),
        CASE(tensors_that_share_memory_are_refused_by_name),
        CASE(a_mapped_tensor_outlives_its_file),
        CASE(links_are_followed_and_devices_left_alone),
        CASE(each_failing_allocation_is_an_error),
        CASE(a_module_comes_back_or_stays_as_it_is),
        CASE(a_shared_tensor_is_saved_once),
#ifdef PTRACE_GET_SYSCALL_INFO
        CASE(a_write_killed_at_any_call_leaves_a_whole_file),
        CASE(the_content_is_synced_before_it_gets_the_name),
#endif
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
