/* Files that tell the truth and files that lie, handed to td_idx_read; none of them is ever on a disk. */
#define _GNU_SOURCE
#include "check.h"
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

static char path[64];
static int file = -1;

/* A file without a name that holds these bytes. */
static void write_file(const void *bytes, size_t n)
{
    if (file >= 0)
        close(file);
    file = memfd_create("idx", 0);
    if (file < 0 || write(file, bytes, n) != (ssize_t)n)
        check_wrong("  the check cannot make a file of %d bytes", (int)n);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
}

static void write_packed(const void *bytes, size_t n)
{
    unsigned char out[4096];
    z_stream z = { .next_in = (unsigned char *)bytes, .avail_in = (uInt)n, .next_out = out, .avail_out = sizeof out };
    deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    deflate(&z, Z_FINISH);
    deflateEnd(&z);
    write_file(out, z.total_out);
}

/* Magic and sizes, then `more` bytes 1, 2, 3, ... */
static size_t build(unsigned char *out, int type, const uint32_t *size, int count, int more)
{
    size_t at = 0;
    out[at++] = 0, out[at++] = 0, out[at++] = (unsigned char)type, out[at++] = (unsigned char)count;
    for (int d = 0; d < count; d++)
        for (int k = 24; k >= 0; k -= 8)
            out[at++] = (unsigned char)(size[d] >> k);
    for (int i = 0; i < more; i++)
        out[at++] = (unsigned char)(i + 1);
    return at;
}

static void accept(const char *what, const char *formula, const uint32_t *size, int count)
{
    unsigned char bytes[3000];
    td_dims shape = { .count = count };
    double expected[2000];
    int n = 1;
    for (int d = 0; d < count; d++)
        shape.at[d] = size[d], n *= (int)size[d];
    for (int i = 0; i < n; i++)
        expected[i] = (i + 1) % 256;
    const size_t length = build(bytes, 8, size, count, n);
    for (int packed = 0; packed < 2; packed++) {
        char text[200];
        snprintf(text, sizeof text, "%s%s", what, packed ? ", packed" : "");
        check_case(text, formula);
        packed ? write_packed(bytes, length) : write_file(bytes, length);
        td_scope_begin();
        check_tensor(td_idx_read(path), shape, expected, 0);
        td_scope_end();
    }
}

static void refuse_bytes(const char *what, const char *formula, const void *bytes, size_t n, const char *expected)
{
    char should[300];
    check_case(what, formula);
    write_file(bytes, n);
    snprintf(should, sizeof should, "idx_read: %s %s", path, expected);
    td_scope_begin();
    td_memory_reset_peak();
    const int64_t before = td_memory_stats().bytes;
    const td_tensor *got = td_idx_read(path);
    if (got || !td_failed())
        check_wrong("  expected  %s\n  got       %s", should, got ? "a tensor" : "NULL, and no error");
    if (strcmp(td_error_message(), should) != 0)
        check_wrong("  expected  %s\n  got       %s", should, td_error_message());
    td_error_clear();
    if (td_memory_stats().peak_bytes > before)
        check_wrong("  expected  nothing allocated\n  got       %" PRId64 " bytes", td_memory_stats().peak_bytes - before);
    td_scope_end();
}

static void refuse(const char *what, const char *formula, int type, const uint32_t *size, int count, int more,
                   const char *expected)
{
    unsigned char bytes[3000];
    refuse_bytes(what, formula, bytes, build(bytes, type, size, count, more), expected);
}

#define SIZES(...) (const uint32_t[]){ __VA_ARGS__ }, (int)(sizeof (uint32_t[]){ __VA_ARGS__ } / sizeof(uint32_t))
#define MOST 4294967295u

static const char *big = "size = b[0] * 2^24 + b[1] * 2^16 + b[2] * 2^8 + b[3], without a sign";
static const char *magic = "two zeros, a type, at least one dimension, before anything else is read";
static const char *product = "the sizes are multiplied from the first to the last, and no product has more than 63 bits";
static const char *many = "claims more elements than we can count";
static const char *wrong = "is no IDX file: its magic number is wrong";

static void check_truths(void)
{
    accept("the labels of three images", big, SIZES(3));
    accept("two images of 3 x 5", big, SIZES(2, 3, 5));
    accept("300 labels", big, SIZES(300));
    accept("as many dimensions as there may be: eight dimensions", big, SIZES(2, 1, 3, 1, 2, 1, 2, 5));
    accept("a size of zero", "no images of 28 x 28 are a tensor of shape [0, 28, 28]", SIZES(0, 28, 28));
    accept("a size of zero at the end", "three images of 0 x 0", SIZES(3, 0));
}

static void check_lies(void)
{
    refuse("no dimensions, and one byte more", magic, 8, NULL, 0, 1, wrong);
    refuse_bytes("a picture: no IDX file", magic, "\x89PNG\r\n\x1a\n....", 12, wrong);
    refuse_bytes("the second byte is 1: no IDX file", magic, "\0\1\10\1\0\0\0\3abc", 11, wrong);
    refuse_bytes("the first byte is 1, another type: no IDX file", magic, "\1\0\15\1\0\0\0\3abc", 11, wrong);
    refuse_bytes("the file ends within the magic number", "read_exactly records it", "\0\0\10", 3, "is truncated");
    refuse_bytes("the file ends within its second size", "read_exactly records it", "\0\0\10\2\0\0\0\3\0\0", 10, "is truncated");
    refuse_bytes("the file ends within its only size", "read_exactly records it", "\0\0\10\1\0\0", 6, "is truncated");
    refuse("elements of type 0x09, which are bytes too", magic, 9, SIZES(3), 3,
           "holds elements of type 0x09 in 1 dimensions; only bytes (0x08) in at most 8 can be read");
    refuse_bytes("elements of type 0x0d in 3 dimensions, and nothing more", magic, "\0\0\15\3", 4,
                 "holds elements of type 0x0d in 3 dimensions; only bytes (0x08) in at most 8 can be read");
    refuse("nine dimensions", magic, 8, SIZES(1, 1, 1, 1, 1, 1, 1, 1, 1), 1,
           "holds elements of type 0x08 in 9 dimensions; only bytes (0x08) in at most 8 can be read");
    refuse("three labels in a file that holds fewer", "check_length has the last word", 8, SIZES(3), 2,
           "is truncated: it claims 3 elements and holds 2");
    refuse("three labels in a file that holds more", "check_length has the last word", 8, SIZES(3), 4,
           "is too long: it claims 3 elements and holds 4");
    refuse("images in a file without them", "check_length has the last word", 8, SIZES(2, 28, 28), 0,
           "is truncated: it claims 1568 elements and holds 0");
}

static void check_overflows(void)
{
    refuse("65536 x 65536", product, 8, SIZES(65536, 65536), 0, "is truncated: it claims 4294967296 elements and holds 0");
    refuse("a size of 2147483648", big, 8, SIZES(2147483648u), 0, "is truncated: it claims 2147483648 elements and holds 0");
    refuse("a size of 4294967295", big, 8, SIZES(MOST), 5, "is truncated: it claims 4294967295 elements and holds 5");
    refuse("4294967295 x 2147483648, which has room", product, 8, SIZES(MOST, 2147483648u), 0,
           "is truncated: it claims 9223372034707292160 elements and holds 0");
    refuse("4294967295 x 4294967295 x 4294967295", product, 8, SIZES(MOST, MOST, MOST), 0, many);
    refuse("65536 four times, the product is 2^64", product, 8, SIZES(65536, 65536, 65536, 65536), 0, many);
    refuse("the product is 2^63", product, 8, SIZES(2147483648u, 2147483648u, 2), 0, many);
    refuse("the product is 2^64 + 3 * 2^32, of which three times 2^32 would be left", product, 8,
           SIZES(2147483648u, 2147483648u, 4, 3), 0, many);
    refuse("255 dimensions of size 1", magic, 8, (const uint32_t[255]){ 1, 1, 1 }, 255, 1,
           "holds elements of type 0x08 in 255 dimensions; only bytes (0x08) in at most 8 can be read");
}

int main(void)
{
    check_truths();
    check_lies();
    check_overflows();
    accept("a second file after many", "one call knows nothing of another", SIZES(2, 2));
    if (file >= 0)
        close(file);
    return check_end();
}
