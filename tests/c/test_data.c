/* needs: data */
/* IDX files whole, cut, forged and flipped; datasets; loaders. */
#define TREADLE_TEST_FOLDER
#include "treadle_test.h"
#include <sys/stat.h>
#include <zlib.h>

/* ---- files ---------------------------------------------------------------- */

static size_t pack(const void *bytes, size_t n, unsigned char *out,
                   size_t room)
{
    z_stream z = { 0 };
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8,
                                  Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)bytes;
    z.avail_in = (uInt)n;
    z.next_out = out;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return room - z.avail_out;
}

static const char *write_packed(const char *name, const void *bytes,
                                size_t n)
{
    static unsigned char packed[1 << 20];
    return write_plain(name, packed, pack(bytes, n, packed, sizeof packed));
}

/* Seven images of 3 x 5, element i holding 11 i + 3 modulo 256. */
enum { HEAD = 16, IMAGES = 7, ROWS = 3, COLUMNS = 5,
       BODY = IMAGES * ROWS * COLUMNS };
static unsigned char sample[HEAD + BODY] = {
    0, 0, 8, 3, 0, 0, 0, IMAGES, 0, 0, 0, ROWS, 0, 0, 0, COLUMNS };

static void fill_sample(void)
{
    for (int i = 0; i < BODY; i++)
        sample[HEAD + i] = (unsigned char)(11 * i + 3);
}

static void is_sample(td_tensor *x)
{
    assert_non_null(x);
    assert_int_equal(td_dtype_of(x), TD_UINT8);
    assert_int_equal(td_rank(x), 3);
    assert_int_equal(td_size(x, 0), IMAGES);
    assert_int_equal(td_size(x, 1), ROWS);
    assert_int_equal(td_size(x, 2), COLUMNS);
    assert_memory_equal(td_data(x), sample + HEAD, BODY);
}

static void plain_and_packed_files_are_read(void **state)
{
    fill_sample();
    is_sample(td_idx_read(write_plain("plain", sample, sizeof sample)));
    is_sample(td_idx_read(write_packed("packed", sample, sizeof sample)));
}

static void every_rank_and_an_empty_tensor_are_read(void **state)
{
    for (int rank = 1; rank <= 8; rank++) {
        unsigned char b[4 + 4 * 8 + 2] = { 0, 0, 8, (unsigned char)rank };
        for (int d = 0; d < rank; d++)
            b[4 + 4 * d + 3] = d == rank - 1 ? 2 : 1;
        const size_t head = 4 + 4 * (size_t)rank;
        b[head] = 250, b[head + 1] = 5;
        td_tensor *x = td_idx_read(write_packed("rank", b, head + 2));
        assert_non_null(x);
        assert_int_equal(td_rank(x), rank);
        assert_int_equal(((uint8_t *)td_data(x))[0], 250);
    }
    const unsigned char empty[8] = { 0, 0, 8, 1, 0, 0, 0, 0 };
    assert_int_equal(td_numel(td_idx_read(write_plain("e", empty, 8))), 0);
    assert_int_equal(td_numel(td_idx_read(write_packed("e", empty, 8))), 0);
}

static void every_cut_is_noticed(void **state)
{
    static unsigned char packed[4096];
    fill_sample();
    for (size_t n = 0; n < sizeof sample; n++) {
        refused(td_idx_read(write_plain("cut", sample, n)),
                TD_ERROR_IO, "cut");
    }
    const size_t all = pack(sample, sizeof sample, packed, sizeof packed);
    for (size_t n = 0; n < all; n++) {
        refused(td_idx_read(write_plain("cut", packed, n)),
                TD_ERROR_IO, "cut");
    }
}

static void every_flipped_byte_is_noticed(void **state)
{
    static unsigned char packed[4096];
    fill_sample();
    const size_t all = pack(sample, sizeof sample, packed, sizeof packed);
    for (size_t i = 0; i < all; i++)
        for (int bit = 0; bit < 8; bit++) {
            if (i >= 4 && i <= 9)
                continue;            /* gzip's time, flags, system */
            packed[i] ^= (unsigned char)(1 << bit);
            td_tensor *x = td_idx_read(write_plain("flip", packed, all));
            if (x) /* gzip's flag bits without meaning may go unnoticed */
                assert_memory_equal(td_data(x), sample + HEAD, BODY);
            else
                assert_true(td_error() == TD_ERROR_IO
                            || td_error() == TD_ERROR_UNSUPPORTED);
            td_error_clear();
            packed[i] ^= (unsigned char)(1 << bit);
        }
}

static void bytes_after_the_end_are_noticed(void **state)
{
    static unsigned char packed[4096], longer[sizeof sample + 1];
    fill_sample();
    memcpy(longer, sample, sizeof sample);
    refused(td_idx_read(write_plain("long", longer, sizeof longer)),
            TD_ERROR_IO, "too long");
    refused(td_idx_read(write_packed("long", longer, sizeof longer)),
            TD_ERROR_IO, "after its last element");
    size_t n = pack(sample, sizeof sample, packed, sizeof packed);
    packed[n++] = 0;             /* what fills up a tape */
    td_tensor *x = td_idx_read(write_plain("long", packed, n));
    assert_memory_equal(td_data(x), sample + HEAD, BODY);
    td_release(x);
    memmove(packed + n - 1, packed, n - 1);     /* twice: a longer one */
    refused(td_idx_read(write_plain("long", packed, 2 * n - 2)),
            TD_ERROR_IO, "after its last element");
}

static void wrong_magic_and_types_are_named(void **state)
{
    unsigned char b[sizeof sample];
    fill_sample();
    for (int i = 0; i < 4; i++) {
        memcpy(b, sample, sizeof b);
        b[i] = i == 3 ? 0 : 7;
        assert_null(td_idx_read(write_plain("magic", b, sizeof b)));
        if (i == 2)
            expect_error(TD_ERROR_UNSUPPORTED, "0x07");
        else
            expect_error(TD_ERROR_IO, "magic number");
    }
    memcpy(b, sample, sizeof b);
    b[3] = 9;
    refused(td_idx_read(write_plain("magic", b, sizeof b)),
            TD_ERROR_UNSUPPORTED, "at most 8");
    refused(td_idx_read(write_plain("text", "hello, world\n", 13)),
            TD_ERROR_IO, "magic number");
    refused(td_idx_read(write_plain("nothing", "", 0)),
            TD_ERROR_IO, "truncated");
}

static void forged_sizes_allocate_nothing(void **state)
{
    unsigned char huge[36];
    memset(huge, 0xff, sizeof huge);
    memcpy(huge, "\0\0\10\10", 4);
    td_memory_reset_peak();
    const int64_t before = td_memory_stats().bytes;
    refused(td_idx_read(write_plain("huge", huge, sizeof huge)),
            TD_ERROR_IO, "claims");
    refused(td_idx_read(write_packed("huge", huge, sizeof huge)),
            TD_ERROR_IO, "claims");
    memcpy(huge, "\0\0\10\2\0\1\0\0\0\1\0\0", 12);       /* 4 GiB */
    refused(td_idx_read(write_plain("huge", huge, 12)),
            TD_ERROR_IO, "truncated");
    refused(td_idx_read(write_packed("huge", huge, 12)),
            TD_ERROR_IO, "can hold");
    assert_true(td_memory_stats().peak_bytes <= before + 4096);
}

static void missing_files_and_folders_are_named(void **state)
{
    refused(td_idx_read(in_folder("absent")),
            TD_ERROR_IO, "absent: No such file");
    refused(td_idx_read(folder), TD_ERROR_IO, "not a regular file");
    refused(td_idx_read(NULL), TD_ERROR_VALUE, "path is NULL");
    refused(td_mnist(folder, true), TD_ERROR_IO, "train-images-idx3-ubyte");
    refused(td_fashion_mnist("/nonexistent", false),
            TD_ERROR_IO, "/nonexistent");
}

/* ---- collections ------------------------------------------------------------ */

static void write_collection(const char *where, bool packed, int labels)
{
    char name[64];
    fill_sample();
    mkdir(in_folder(where), 0755);
    snprintf(name, sizeof name, "%s/train-images-idx3-ubyte%s", where,
             packed ? ".gz" : "");
    (packed ? write_packed : write_plain)(name, sample, sizeof sample);
    unsigned char l[8 + IMAGES + 1] = { 0, 0, 8, 1, 0, 0, 0,
                                        (unsigned char)labels };
    for (int i = 0; i < labels; i++)
        l[8 + i] = (unsigned char)(9 - i);
    snprintf(name, sizeof name, "%s/train-labels-idx1-ubyte%s", where,
             packed ? ".gz" : "");
    (packed ? write_packed : write_plain)(name, l, (size_t)(8 + labels));
}

static void a_collection_is_found_by_root_or_environment(void **state)
{
    const char *set = getenv("TREADLE_DATA");
    char *kept = set ? strdup(set) : NULL;
    write_collection("mnist", true, IMAGES);
    write_collection("fashion-mnist", false, IMAGES);
    td_dataset *d = td_mnist(in_folder("mnist"), true);
    assert_non_null(d);
    assert_int_equal(td_dataset_size(d), IMAGES);
    setenv("TREADLE_DATA", folder, 1);
    assert_non_null(td_mnist(NULL, true));
    d = td_fashion_mnist(NULL, true);
    assert_non_null(d);
    assert_int_equal(td_dataset_size(d), IMAGES);
    is_sample(td_dataset_images(d));
    assert_int_equal(td_numel(td_dataset_labels(d)), IMAGES);
    refused(td_mnist(NULL, false), TD_ERROR_IO, "t10k-images");
    unsetenv("TREADLE_DATA");
    refused(td_mnist(NULL, true), TD_ERROR_IO, "set TREADLE_DATA");
    if (kept)
        setenv("TREADLE_DATA", kept, 1);
    free(kept);
}

static void labels_must_belong_to_the_images(void **state)
{
    write_collection("uneven", true, IMAGES - 1);
    refused(td_mnist(in_folder("uneven"), true), TD_ERROR_RUNTIME, "6 labels");
    in_folder("uneven/train-labels-idx1-ubyte.gz");
    assert_int_equal(unlink(path), 0);
    refused(td_mnist(in_folder("uneven"), true), TD_ERROR_IO, "train-labels");
    td_tensor *f = td_zeros(TD_DIMS(2, 3), (td_tensor_options)TD_DEFAULTS);
    refused(td_image_dataset(f, f), TD_ERROR_TYPE, "float32");
    refused(td_image_dataset(NULL, f), TD_ERROR_VALUE, "images is NULL");
}

static td_dataset *small_dataset(void)
{
    fill_sample();
    uint8_t labels[IMAGES];
    for (int i = 0; i < IMAGES; i++)
        labels[i] = (uint8_t)(100 + i);
    const td_tensor_options bytes = { .dtype = TD_UINT8 };
    return td_image_dataset(
        td_from_data(sample + HEAD, TD_DIMS(IMAGES, ROWS, COLUMNS), bytes),
        td_from_data(labels, TD_DIMS(IMAGES), bytes));
}

static void a_batch_scales_and_flattens_its_images(void **state)
{
    td_dataset *d = small_dataset();
    const int64_t index[] = { 5, 0, 5 };
    td_tensor *x, *y;
    assert_true(td_dataset_get(d, index, 3, &x, &y));
    assert_int_equal(td_dtype_of(x), TD_FLOAT32);
    assert_int_equal(td_size(x, 0), 3);
    assert_int_equal(td_size(x, 1), ROWS * COLUMNS);
    assert_int_equal(td_dtype_of(y), TD_INT64);
    for (int b = 0; b < 3; b++) {
        assert_int_equal(((int64_t *)td_data(y))[b], 100 + index[b]);
        for (int j = 0; j < ROWS * COLUMNS; j++)
            assert_true(((float *)td_data(x))[b * ROWS * COLUMNS + j]
                == (float)sample[HEAD + index[b] * ROWS * COLUMNS + j]
                   / 255.0f);
    }
}

static void examples_out_of_range_are_named(void **state)
{
    td_dataset *d = small_dataset();
    td_tensor *x, *y;
    const int64_t far[] = { 1, IMAGES }, below[] = { -1 };
    assert_false(td_dataset_get(d, far, 2, &x, &y));
    refused(x, TD_ERROR_INDEX, "example 7 is not one of 7");
    refused(td_dataset_get(d, below, 1, &x, &y), TD_ERROR_INDEX, "-1");
    assert_true(td_dataset_get(d, below, 0, &x, &y));
    assert_int_equal(td_size(x, 0), 0);
    refused(td_dataset_get(NULL, below, 0, &x, &y),
            TD_ERROR_VALUE, "dataset is NULL");
}

/* ---- a dataset of the user's -------------------------------------------------- */

typedef struct { int calls, freed; enum { FINE, FAILS, SILENT, SHORT,
                 EMPTY, HALF, LEAKY_SCOPE } mood; } user;

static bool user_batch(void *context, const int64_t *index, int64_t n,
                       td_tensor **input, td_tensor **target)
{
    user *u = context;
    u->calls++;
    if (u->mood == SILENT)
        return false;
    if (u->mood == LEAKY_SCOPE)
        td_scope_begin();
    if (u->mood == EMPTY)
        return true;
    *input = td_full(TD_DIMS(u->mood == SHORT ? n - 1 : n, 2),
                     td_float((double)index[0]), plain);
    if (u->mood == HALF)
        return true;
    *target = td_zeros(TD_DIMS(n), (td_tensor_options){
        .dtype = TD_INT64 });
    if (u->mood == FAILS)
        return td_fail(TD_ERROR_CALLBACK, "user", "the camera is off");
    if (u->mood == LEAKY_SCOPE) {
        td_retain(*input);
        td_retain(*target);
    }
    return true;
}

static void user_freed(void *context)
{
    ((user *)context)->freed++;
}

static void a_user_dataset_makes_the_batches(void **state)
{
    user u = { 0 };
    td_scope_begin();
    td_dataset *d = td_dataset_new(5, user_batch, &u, user_freed);
    td_loader *l = td_data_loader(d, 2, (td_loader_options)TD_DEFAULTS);
    td_batch batch;
    int batches = 0;
    while (td_loader_next(l, &batch)) {
        assert_true(((float *)td_data(batch.input))[0] == 2.0f * batches);
        assert_int_equal(td_size(batch.input, 0), batch.size);
        batches++;
    }
    assert_int_equal(batches, 3);
    assert_int_equal(u.calls, 3);
    assert_false(td_failed());
    td_scope_end();
    assert_int_equal(u.freed, 1);
}

static void a_failure_in_a_dataset_comes_through(void **state)
{
    const struct { int mood; td_error_code code; const char *words; } all[] =
        { { FAILS, TD_ERROR_CALLBACK, "the camera is off" },
          { SILENT, TD_ERROR_RUNTIME, "recorded no error" },
          { SHORT, TD_ERROR_RUNTIME, "1 rows" },
          { EMPTY, TD_ERROR_RUNTIME, "no input" },
          { HALF, TD_ERROR_RUNTIME, "no target" } };
    for (int i = 0; i < 5; i++) {
        user u = { .mood = all[i].mood };
        td_scope_begin();
        td_dataset *d = td_dataset_new(4, user_batch, &u, NULL);
        td_loader *l = td_data_loader(d, 2,
                                      (td_loader_options)TD_DEFAULTS);
        const int64_t before = td_memory_stats().live_tensors;
        td_batch batch;
        assert_false(td_loader_next(l, &batch));
        assert_null(batch.input);
        assert_int_equal(td_memory_stats().live_tensors, before + 1);  /* the epoch's list */
        expect_error(all[i].code, all[i].words);
        u.mood = FINE;                   /* the loader did not advance */
        assert_true(td_loader_next(l, &batch));
        assert_true(*(float *)td_data(batch.input) == 0);
        td_scope_end();
    }
}

static void a_scope_left_open_by_a_dataset_is_closed(void **state)
{
    user u = { .mood = LEAKY_SCOPE };
    td_dataset *d = td_dataset_new(4, user_batch, &u, NULL);
    td_tensor *x, *y;
    const int64_t index[] = { 3, 1 };
    td_scope_begin();
    assert_true(td_dataset_get(d, index, 2, &x, &y));
    assert_true(*(float *)td_data(x) == 3);
    td_scope_end();
}

/* ---- loaders --------------------------------------------------------------------- */

static int64_t run_epoch(td_loader *l, int64_t *labels)
{
    td_batch batch;
    int64_t n = 0;
    while (td_loader_next(l, &batch)) {
        for (int64_t i = 0; i < batch.size; i++)
            labels[n + i] = ((int64_t *)td_data(batch.target))[i];
        n += batch.size;
    }
    assert_false(td_failed());
    return n;
}

static void an_epoch_shows_each_example_once(void **state)
{
    td_dataset *d = small_dataset();
    for (int64_t size = 1; size <= 9; size++)
        for (int shuffle = 0; shuffle < 2; shuffle++)
            for (int drop = 0; drop < 2; drop++) {
                td_loader *l = td_data_loader(d, size,
                    (td_loader_options){ shuffle, drop, 0 });
                assert_non_null(l);
                for (int epoch = 0; epoch < 3; epoch++) {
                    int64_t labels[IMAGES], seen = 0;
                    const int64_t n = run_epoch(l, labels);
                    assert_int_equal(n, drop ? IMAGES / size * size
                                             : IMAGES);
                    for (int64_t i = 0; i < n; i++)
                        seen |= 1 << (labels[i] - 100);
                    assert_int_equal(__builtin_popcount((unsigned)seen), n);
                }
                const int64_t full = IMAGES / size;
                assert_int_equal(td_loader_length(l),
                    full + (!drop && IMAGES % size > 0));
            }
}

static void the_order_is_a_permutation_of_the_seed(void **state)
{
    td_dataset *d = small_dataset();
    td_loader *l = td_data_loader(d, 3,
                                  (td_loader_options){ .shuffle = true });
    int64_t first[IMAGES], again[IMAGES], next[IMAGES];
    td_manual_seed(5);
    run_epoch(l, first);
    run_epoch(l, next);
    td_manual_seed(5);
    const int64_t *p = td_data(td_randperm(IMAGES));
    td_manual_seed(5);
    run_epoch(l, again);
    for (int i = 0; i < IMAGES; i++) {
        assert_int_equal(first[i], again[i]);
        assert_int_equal(first[i], 100 + p[i]);
    }
    assert_memory_not_equal(first, next, sizeof first);
}

static void an_epoch_goes_on_where_it_was_left(void **state)
{
    for (int shuffle = 0; shuffle < 2; shuffle++)
        for (int taken = 0; taken < 4; taken++) {
            const td_loader_options options = { .shuffle = shuffle };
            td_loader *l = td_data_loader(small_dataset(), 2, options);
            td_batch batch;
            td_manual_seed(6);
            for (int i = 0; i < taken; i++)
                assert_true(td_loader_next(l, &batch));
            td_randperm(3);                 /* of a dropout, say */
            const td_loader_place place = td_loader_tell(l);
            const td_random_state random = td_random_swap(
                (td_random_state){ 0 });
            td_random_swap(random);
            int64_t one[2 * IMAGES], two[2 * IMAGES];
            int64_t n = run_epoch(l, one);
            n += run_epoch(l, one + n);
            td_loader *again = td_data_loader(small_dataset(), 2, options);
            td_random_swap(random);
            assert_true(td_loader_seek(again, place));
            int64_t m = run_epoch(again, two);
            m += run_epoch(again, two + m);
            assert_int_equal(n, 2 * IMAGES - 2 * taken);
            assert_int_equal(m, n);
            assert_memory_equal(one, two, (size_t)n * sizeof *one);
        }
    td_loader *l = td_data_loader(small_dataset(), 2,
                                  (td_loader_options)TD_DEFAULTS);
    for (int64_t bad = -1; bad <= IMAGES + 1; bad += IMAGES + 2) {
        assert_false(td_loader_seek(l, (td_loader_place){ { 0 }, 0, bad }));
        assert_non_null(strstr(td_error_message(), "place"));
        td_error_clear();
    }
    assert_int_equal(td_loader_tell(NULL).next, 0);
}

static void an_abandoned_epoch_can_be_begun_again(void **state)
{
    td_loader *l = td_data_loader(small_dataset(), 2,
                                  (td_loader_options)TD_DEFAULTS);
    td_batch batch;
    assert_true(td_loader_next(l, &batch));
    assert_true(td_loader_next(l, &batch));
    assert_int_equal(*(int64_t *)td_data(batch.target), 102);
    td_loader_rewind(l);
    assert_true(td_loader_next(l, &batch));
    assert_int_equal(*(int64_t *)td_data(batch.target), 100);
}

static void wrong_loaders_are_refused(void **state)
{
    td_dataset *d = small_dataset();
    const td_loader_options usual = TD_DEFAULTS;
    refused(td_data_loader(d, 0, usual), TD_ERROR_VALUE, "batch_size 0");
    refused(td_data_loader(d, -3, usual), TD_ERROR_VALUE, "batch_size -3");
    refused(td_data_loader(NULL, 3, usual), TD_ERROR_VALUE, "dataset is NULL");
    td_batch batch;
    refused(td_loader_next(NULL, &batch), TD_ERROR_VALUE, "loader is NULL");
    td_loader *l = td_data_loader(d, INT64_MAX, usual);
    assert_true(td_loader_next(l, &batch));
    assert_int_equal(batch.size, IMAGES);
    refused(td_dataset_new(-1, user_batch, NULL, NULL), TD_ERROR_VALUE, "-1");
    assert_int_equal(td_loader_length(NULL), 0);
    assert_int_equal(td_dataset_size(NULL), 0);
}

static void an_empty_dataset_has_no_batches(void **state)
{
    user u = { 0 };
    td_dataset *d = td_dataset_new(0, user_batch, &u, NULL);
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        td_loader *l = td_data_loader(d, 4,
            (td_loader_options){ .shuffle = shuffle });
        td_batch batch;
        assert_false(td_loader_next(l, &batch));
        assert_false(td_failed());
        assert_int_equal(td_loader_length(l), 0);
    }
    assert_int_equal(u.calls, 0);
}

static bool first_batch(const char *root, bool shuffle)
{
    td_loader *l = td_data_loader(td_mnist(root, true), 3,
                                  (td_loader_options){ shuffle, false, 0 });
    td_batch batch;
    return td_loader_next(l, &batch);
}

static bool first_batch_in_order(void *root)
{
    return first_batch(root, false);
}

static bool first_batch_shuffled(void *root)
{
    return first_batch(root, true);
}

static void every_allocation_may_fail(void **state)
{
    fill_sample();
    write_collection("mnist", true, IMAGES);
    char root[256];
    strcpy(root, in_folder("mnist"));
    assert_in_range(fail_each_allocation(first_batch_in_order, root), 1, 199);
    assert_in_range(fail_each_allocation(first_batch_shuffled, root), 1, 199);
}

/* ---- the real thing ----------------------------------------------------------------- */

static void the_clothes_are_whole(void **state)
{
    td_dataset *d = td_fashion_mnist(NULL, true);
    if (!d) {
        print_message("skipped: %s\n", td_error_message());
        td_error_clear();
        skip();
    }
    assert_int_equal(td_dataset_size(d), 60000);
    const uint8_t *label = td_data(td_dataset_labels(d));
    const uint8_t *pixel = td_data(td_dataset_images(d));
    int count[10] = { 0 };
    int64_t sum = 0;
    for (int i = 0; i < 60000; i++)
        count[label[i]]++;
    for (int k = 0; k < 10; k++)
        assert_int_equal(count[k], 6000);
    for (int64_t i = 0; i < 60000 * 784; i++)
        sum += pixel[i];
    const double mean = (double)sum / (60000.0 * 784 * 255);
    assert_true(mean > 0.28603 && mean < 0.28605);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(plain_and_packed_files_are_read),
        CASE(every_rank_and_an_empty_tensor_are_read),
        CASE(every_cut_is_noticed),
        CASE(every_flipped_byte_is_noticed),
        CASE(bytes_after_the_end_are_noticed),
        CASE(wrong_magic_and_types_are_named),
        CASE(forged_sizes_allocate_nothing),
        CASE(missing_files_and_folders_are_named),
        CASE(a_collection_is_found_by_root_or_environment),
        CASE(labels_must_belong_to_the_images),
        CASE(a_batch_scales_and_flattens_its_images),
        CASE(examples_out_of_range_are_named),
        CASE(a_user_dataset_makes_the_batches),
        CASE(a_failure_in_a_dataset_comes_through),
        CASE(a_scope_left_open_by_a_dataset_is_closed),
        CASE(an_epoch_shows_each_example_once),
        CASE(the_order_is_a_permutation_of_the_seed),
        CASE(an_epoch_goes_on_where_it_was_left),
        CASE(an_abandoned_epoch_can_be_begun_again),
        CASE(wrong_loaders_are_refused),
        CASE(an_empty_dataset_has_no_batches),
        CASE(every_allocation_may_fail),
        CASE(the_clothes_are_whole),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
