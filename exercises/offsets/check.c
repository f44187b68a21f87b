/* Headers that tile their file and headers that do not, handed to td_safetensors_over; none of them is ever on a disk. */
#include "check.h"

static size_t build(unsigned char *out, const char *header, int data)
{
    const size_t n = (strlen(header) + 7) / 8 * 8;
    memset(out, 0, 8);
    out[0] = (unsigned char)n, out[1] = (unsigned char)(n >> 8);
    memset(out + 8, ' ', n);
    memcpy(out + 8, header, strlen(header));
    memset(out + 8 + n, 1, (size_t)data);
    return 8 + n + (size_t)data;
}

/* `expected` NULL: the file is believed; else the error behind "safetensors: ". */
static void judge(const char *what, const char *formula, const char *header, int data, const char *expected)
{
    static unsigned char bytes[4096];
    check_case(what, formula);
    td_scope_begin();
    const td_safetensors *f = td_safetensors_over(bytes, (int64_t)build(bytes, header, data));
    const char *got = f ? "a file" : td_failed() ? td_error_message() : "NULL, and no error";
    char should[300];
    snprintf(should, sizeof should, "%s%s", expected ? "safetensors: bytes" : "a file", expected ? expected : "");
    if (strcmp(got, should) != 0 || (f && td_failed()))
        check_wrong("  expected  %s\n  got       %s", should, got);
    td_error_clear();
    td_scope_end();
}

#define T(name, type, shape, from, to) "\"" name "\":{\"dtype\":\"" type "\",\"shape\":[" shape "],\"data_offsets\":[" from "," to "]}"

static const char *tile = "each tensor begins where the one before it ends, the first at 0";
static const char *size = "bytes = product of the sizes * bits of an element / 8";
static const char *whole = "the last tensor ends where the file does";
static const char *place = "does not begin where the one before it ends";
static const char *count = "the sizes are multiplied from the first to the last, then by the bits, and no product has more than 63 bits";

#define NAMED(name, words) ": tensor '" name "' " words
#define PLACE(name) NAMED(name, "does not begin where the one before it ends")
#define BYTES(name) NAMED(name, "has another number of bytes than its shape")
#define COUNT(name) NAMED(name, "claims more than we can count")

static void check_truths(void)
{
    judge("no tensors at all", whole, "{}", 0, NULL);
    judge("a matrix of F32", size, "{" T("a", "F32", "2,3", "0", "24") "}", 24, NULL);
    judge("a scalar", "the product over no sizes is 1", "{" T("a", "I64", "", "0", "8") "}", 8, NULL);
    judge("two tensors, the second named first", tile, "{" T("b", "U8", "3", "24", "27") "," T("a", "F32", "2,3", "0", "24") "}", 27, NULL);
    judge("no elements between two tensors", "0 bytes take no room", "{" T("a", "U8", "2", "0", "2") "," T("e", "F64", "3,0", "2", "2") ","
          T("c", "U8", "1", "2", "3") "}", 3, NULL);
    judge("no elements at the end", "0 bytes take no room", "{" T("a", "U8", "2", "0", "2") "," T("e", "F64", "0", "2", "2") "}", 2, NULL);
    judge("two elements of four bits", size, "{" T("a", "F4", "2", "0", "1") "}", 1, NULL);
    judge("2^61 - 1 and then none", count, "{" T("a", "F64", "2305843009213693951,0", "0", "0") "}", 0, NULL);
}

static void check_places(void)
{
    judge("a hole before the second tensor", tile, "{" T("a", "U8", "1", "0", "1") "," T("b", "U8", "1", "2", "3") "}", 3, PLACE("b"));
    judge("two tensors that overlap", tile, "{" T("a", "U8", "2", "0", "2") "," T("b", "U8", "2", "1", "3") "}", 3, PLACE("b"));
    judge("two tensors at one place", tile, "{" T("a", "U8", "2", "0", "2") "," T("b", "U8", "2", "0", "2") "}", 2, PLACE("b"));
    judge("the first begins at 2", tile, "{" T("a", "U8", "1", "2", "3") "}", 3, PLACE("a"));
    judge("no elements, in the midst of another", tile, "{" T("a", "U8", "4", "0", "4") "," T("e", "U8", "0", "2", "2") "}", 4, PLACE("e"));
    judge("a tensor that ends before it begins", tile, "{" T("a", "U8", "2", "0", "2") "," T("b", "U8", "1", "2", "1") "}", 2, BYTES("b"));
    judge("the file is cut off", whole, "{" T("a", "U8", "4", "0", "4") "}", 3, " is cut off");
    judge("the file is cut off before its first byte", whole, "{" T("a", "F32", "1000", "0", "4000") "}", 0, " is cut off");
    judge("bytes behind the last tensor", whole, "{" T("a", "U8", "4", "0", "4") "}", 5, " has bytes that belong to no tensor");
    judge("bytes, and no tensor", whole, "{}", 1, " has bytes that belong to no tensor");
}

static void check_bytes(void)
{
    judge("more bytes than the shape takes", size, "{" T("a", "F32", "2", "0", "12") "}", 12, BYTES("a"));
    judge("the first has too little room, the second too much", size, "{" T("a", "F32", "2", "0", "4") "," T("b", "F32", "1", "4", "12") "}", 12, BYTES("a"));
    judge("three elements of four bits", size, "{" T("a", "F4", "3", "0", "1") "}", 1, BYTES("a"));
    judge("the product is 2^64", count, "{" T("a", "U8", "4294967296,4294967296", "0", "0") "}", 0, COUNT("a"));
    judge("no elements, after 2^64 of them", count, "{" T("a", "U8", "4294967296,4294967296,0", "0", "0") "}", 0, COUNT("a"));
    judge("2^58 times 64 bits is 2^64", count, "{" T("a", "F64", "288230376151711744", "0", "0") "}", 0, COUNT("a"));
    judge("an overflow at a wrong place", "the product is judged first", "{" T("a", "U8", "4294967296,4294967296", "5", "6") "}", 6, COUNT("a"));
    judge("a wrong size at a wrong place", place, "{" T("a", "U8", "4", "5", "6") "}", 6, PLACE("a"));
}

int main(void)
{
    check_truths();
    check_places();
    check_bytes();
    judge("a second file after many", "one call knows nothing of another", "{" T("a", "U8", "3", "0", "3") "}", 3, NULL);
    return check_end();
}
