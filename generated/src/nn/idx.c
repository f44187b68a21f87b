/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "data": edit that, not this file. */
#define _POSIX_C_SOURCE 200809L
#include "core/device.h"
#include "core/require.h"
#include <treadle/data.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

/* data: struct source */
typedef struct {
    const char *path;
    FILE *file;
    int64_t bytes;               /* on the disk */
    bool gzip, ended;
    z_stream z;
    unsigned char packed[16384];
} source;
/* data: function broken */
static bool broken(const source *s, const char *what)
{
    return td_fail(TD_ERROR_IO, "idx_read", "%s %s", s->path, what);
}
/* data: function open_source */
static bool open_source(source *s, const char *path)
{
    struct stat about;
    s->path = path;
    s->file = fopen(path, "rb");
    if (!s->file || fstat(fileno(s->file), &about) != 0)
        return td_fail(TD_ERROR_IO, "idx_read", "cannot open %s: %s",
                       path, strerror(errno));
    if (!S_ISREG(about.st_mode))
        return broken(s, "is not a regular file");
    s->bytes = about.st_size;
    unsigned char magic[2] = { 0 };
    const size_t got = fread(magic, 1, 2, s->file);
    rewind(s->file);
    s->gzip = got == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
    if (s->gzip && inflateInit2(&s->z, 15 + 16) != Z_OK)
        return td_fail(TD_ERROR_MEMORY, "idx_read",
                       "no memory to unpack %s", path);
    return true;
}
/* data: function close_source */
static void close_source(source *s)
{
    if (s->gzip)
        inflateEnd(&s->z);
    if (s->file)
        fclose(s->file);
}
/* data: function refill */
static bool refill(source *s)
{
    if (s->z.avail_in == 0) {
        s->z.next_in = s->packed;
        s->z.avail_in = (uInt)fread(s->packed, 1, sizeof s->packed,
                                    s->file);
    }
    return s->z.avail_in > 0;
}
/* data: function next_member */
static bool next_member(source *s)
{
    return refill(s) && *s->z.next_in == 0x1f
        && inflateReset(&s->z) == Z_OK;
}
/* data: function take_bytes */
static int64_t take_bytes(source *s, unsigned char *out, int64_t n)
{
    int64_t done = 0;
    if (!s->gzip)
        return (int64_t)fread(out, 1, (size_t)n, s->file);
    while (done < n && !s->ended) {
        if (!refill(s))
            return broken(s, "is truncated") - 1;
        const int64_t part = n - done < INT_MAX ? n - done : INT_MAX;
        s->z.next_out = out + done;
        s->z.avail_out = (uInt)part;
        const int status = inflate(&s->z, Z_NO_FLUSH);
        if (status != Z_OK && status != Z_STREAM_END)
            return broken(s, "is damaged: invalid gzip data") - 1;
        s->ended = status == Z_STREAM_END && !next_member(s);
        done += part - s->z.avail_out;
    }
    return done;
}
/* data: function read_exactly */
static bool read_exactly(source *s, void *out, int64_t n)
{
    const int64_t got = take_bytes(s, out, n);
    return got == n || (got >= 0 && broken(s, "is truncated"));
}
/* data: function read_end */
static bool read_end(source *s)
{
    unsigned char more;
    const int64_t extra = take_bytes(s, &more, 1);
    return extra >= 0 && ((extra == 0 && s->z.avail_in == 0)
        || broken(s, "has bytes after its last element"));
}
/* data: function big_endian */
static int64_t big_endian(const unsigned char *b)
{
    return (int64_t)b[0] * 16777216 + b[1] * 65536 + b[2] * 256 + b[3];
}
/* data: function unsupported */
static bool unsupported(const source *s, const unsigned char *magic)
{
    return td_fail(TD_ERROR_UNSUPPORTED, "idx_read",
        "%s holds elements of type 0x%02x in %d dimensions; only bytes "
        "(0x08) in at most %d can be read", s->path, magic[2], magic[3],
        TD_MAX_RANK);
}
/* data: function check_length */
static bool check_length(const source *s, int64_t header,
                         int64_t elements)
{
    const int64_t rest = s->bytes - header;
    if (s->gzip ? elements / 1032 <= s->bytes : elements == rest)
        return true;
    if (s->gzip)
        return td_fail(TD_ERROR_IO, "idx_read", "%s claims %" PRId64
            " elements, more than its %" PRId64 " bytes can hold",
            s->path, elements, s->bytes);
    return td_fail(TD_ERROR_IO, "idx_read",
        "%s is %s: it claims %" PRId64 " elements and holds %" PRId64,
        s->path, rest < elements ? "truncated" : "too long", elements,
        rest);
}
/* data: function read_header */
static bool read_header(source *s, td_dims *shape)
{
    unsigned char magic[4], size[4];
    if (!read_exactly(s, magic, 4))
        return false;
    if (magic[0] != 0 || magic[1] != 0 || magic[3] == 0)
        return broken(s, "is no IDX file: its magic number is wrong");
    if (magic[2] != 0x08 || magic[3] > TD_MAX_RANK)
        return unsupported(s, magic);
    shape->count = magic[3];
    int64_t elements = 1;
    for (int d = 0; d < shape->count; d++) {
        if (!read_exactly(s, size, 4))
            return false;
        shape->at[d] = big_endian(size);
        if (!td_mul_size(elements, shape->at[d], &elements))
            return broken(s, "claims more elements than we can count");
    }
    return check_length(s, 4 + 4 * (int64_t)shape->count, elements);
}
/* data: function td_idx_read */
td_tensor *td_idx_read(const char *path)
{
    if (td_failed() || !td_require(path, "idx_read", "path"))
        return NULL;
    if (td_self()->symbolic) {
        td_fail(TD_ERROR_UNSUPPORTED, "idx_read",
                "files cannot be read while tracing");
        return NULL;
    }
    td_scope_begin();
    source s = { 0 };
    td_dims shape = { 0 };
    td_tensor *x = NULL;
    if (open_source(&s, path) && read_header(&s, &shape))
        x = td_tensor_new(shape, TD_UINT8,
                          (td_device){ TD_DEVICE_CPU, 0 });
    if (x && read_exactly(&s, td_at(x), td_numel(x)))
        read_end(&s);
    close_source(&s);
    return td_scope_end_with(x);
}
