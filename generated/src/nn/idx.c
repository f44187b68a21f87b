/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "data": edit that, not this file. */
#include "core/device.h"
#include "core/require.h"
#include <treadle/data.h>
#include <errno.h>
#include <sys/stat.h>
#include <zlib.h>

/* data: struct source */
typedef struct {
    const char *op, *path;       /* who reads, and what */
    gzFile file;
    int64_t bytes;               /* on the disk */
} source;
/* data: function broken */
static bool broken(const source *s, const char *what)
{
    return td_fail(TD_ERROR_IO, s->op, "%s %s", s->path, what);
}
/* data: function open_source */
static bool open_source(source *s, const char *path)
{
    struct stat about;
    s->path = path;
    s->file = gzopen(path, "rb");
    if (!s->file || stat(path, &about) != 0)
        return td_fail(TD_ERROR_IO, s->op, "cannot open %s: %s",
                       path, strerror(errno));
    s->bytes = about.st_size;
    return S_ISREG(about.st_mode)
        || broken(s, "is not a regular file");
}
/* data: function take_bytes */
static int64_t take_bytes(source *s, void *out, int64_t n)
{
    int error;
    const size_t got = gzfread(out, 1, (size_t)n, s->file);
    gzerror(s->file, &error);
    if (error == Z_OK)
        return (int64_t)got;
    return broken(s, error == Z_BUF_ERROR ? "is truncated"
                  : "is damaged: invalid gzip data") - 1;
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
    return extra == 0 || (extra > 0
        && broken(s, "has bytes after its last element"));
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
    const bool packed = !gzdirect(s->file);
    if (packed ? elements / 1032 <= s->bytes : elements == rest)
        return true;
    if (packed)
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
    /* header: exercise header */
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
/* data: function read_file */
typedef bool measure(source *s, td_dims *shape);

/* The bytes of a file, as many as `ask` says, and a newline behind
   them if `line`. */
static td_tensor *read_file(const char *op, const char *path,
                            measure *ask, bool line)
{
    source s = { .op = op };
    td_dims shape = { 0 };
    td_tensor *x = NULL;
    if (!td_require(path, op, "path"))
        return NULL;
    /* data: refuse an operation that a trace cannot hold */
    if (td_self()->symbolic)
        return td_fail(TD_ERROR_UNSUPPORTED, op,
                       "files cannot be read while tracing"), NULL;
    td_scope_begin();
    if (open_source(&s, path) && ask(&s, &shape)) {
        shape.at[0] += line;
        x = td_tensor_new(shape, TD_UINT8, TD_CPU);
    }
    if (x && read_exactly(&s, td_at(x), td_numel(x) - line)
        && read_end(&s) && line)
        ((char *)td_at(x))[td_numel(x) - 1] = '\n';
    gzclose_r(s.file);
    return td_scope_end_with(x);
}
/* data: function td_idx_read */
td_tensor *td_idx_read(const char *path)
{
    return read_file("idx_read", path, read_header, false);
}
/* data: function count_bytes */
/* A shape for all bytes of a file, when it is unpacked. */
static bool count_bytes(source *s, td_dims *shape)
{
    unsigned char part[4096];
    const bool packed = !gzdirect(s->file);
    int64_t got = packed, n = packed ? 0 : s->bytes;
    while (got > 0 && (got = take_bytes(s, part, sizeof part)) > 0)
        n += got;
    *shape = TD_DIMS(n);
    return got == 0 && gzrewind(s->file) == 0;
}

/* data: struct td_csv */
struct td_csv {
    td_object object;
    td_tensor *bytes;
    int64_t *slot, slots;        /* rows x (1 + columns) */
    int64_t rows, columns;
    char delimiter, path[256];
};
typedef struct { char *at, *end; int64_t line; } cursor;
/* data: function wrong_line */
static bool wrong_line(const td_csv *t, int64_t line, const char *what)
{
    return td_fail(TD_ERROR_IO, "csv_read", "%s, line %" PRId64 ": %s",
                   t->path, line, what);
}
/* data: function take_cell */
/* The start of the next cell, which becomes a string; *ended is what
   ended it.  NULL is an error. */
static char *take_cell(const td_csv *t, cursor *c, char *ended)
{
    char *in = c->at, *start = in, *out;
    if (*in == '"') {
        /* quotes: exercise quotes */
        const int64_t opened = c->line;
        bool closed = false;
        start = out = ++in;
        while (in < c->end && !(closed = *in == '"' && *++in != '"')) {
            c->line += *in == '\n';
            *out++ = *in++;
        }
        in += *in == '\r' && in < c->end && in[1] == '\n';
        if (!closed || (*in != t->delimiter && *in != '\n')) {
            wrong_line(t, closed ? c->line : opened, closed
                       ? "text follows a closing quotation mark"
                       : "a quotation mark is never closed");
            return NULL;
        }
    } else {
        while (*in != t->delimiter && *in != '\n')
            in++;
        out = in - (*in == '\n' && in > start && in[-1] == '\r');
        if (memchr(start, '\r', (size_t)(out - start))) {
            wrong_line(t, c->line, "a carriage return ends no line");
            return NULL;
        }
    }
    *ended = *in;
    *out = 0;
    c->at = in + 1;
    return start;
}
/* data: function take_rows */
static bool take_rows(td_csv *t, cursor *c)
{
    char *const base = (char *)td_at(t->bytes), ended;
    for (int64_t n = 0; c->at < c->end; c->line++) {
        const int64_t ending = *c->at == '\r';
        if (c->at[ending] == '\n') {
            c->at += 1 + ending;
            continue;
        }
        const int64_t line = n;
        t->slot[n++] = c->line;
        do {
            const char *cell = take_cell(t, c, &ended);
            if (!cell)
                return false;
            t->slot[n++] = cell - base;
        } while (ended == t->delimiter);
        if (t->rows++ == 0)
            t->columns = n - 1;
        else if (n - line - 1 != t->columns)
            return td_fail(TD_ERROR_IO, "csv_read", "%s, line %" PRId64
                ": expected %" PRId64 " values, got %" PRId64, t->path,
                t->slot[line], t->columns, n - line - 1);
    }
    return true;
}
/* data: function fill_table */
static bool fill_table(td_csv *t)
{
    char *at = (char *)td_at(t->bytes);
    cursor c = { at, at + td_numel(t->bytes) - 1, 1 };
    if (memchr(at, 0, (size_t)(c.end - at)))
        return wrong_line(t, 1, "a zero byte: this is no UTF-8");
    for (const char *p = at; p <= c.end; p++)
        t->slots += (*p == t->delimiter) + 2 * (*p == '\n');
    t->slot = TD_ARRAY(t->slot, t->slots);
    if (c.end - at >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
        c.at += 3;
    return t->slot && take_rows(t, &c);
}
/* data: function td_csv_read */
TD_CLASS(csv, td_csv, t)
{
    td_release(t->bytes);
    TD_FREE_ARRAY(t->slot, t->slots);
}

td_csv *td_csv_read(const char *path, char delimiter)
{
    td_scope_begin();
    if (delimiter && strchr("\"\r\n", delimiter))
        td_fail(TD_ERROR_VALUE, "csv_read", "a delimiter cannot be a "
                "quotation mark or the end of a line");
    td_csv *t = td_object_new(&csv_class, sizeof *t);
    td_tensor *bytes = t ? read_file("csv_read", path, count_bytes,
                                     true) : NULL;
    if (bytes) {
        t->bytes = td_retain(bytes);
        t->delimiter = delimiter ? delimiter : ',';
        snprintf(t->path, sizeof t->path, "%s", path);
        fill_table(t);
    }
    return td_scope_end_with(t);
}
/* data: functions that look into a table */
int64_t td_csv_rows(const td_csv *t)
{
    return t ? t->rows : 0;
}
int64_t td_csv_columns(const td_csv *t)
{
    return t ? t->columns : 0;
}
const char *td_csv_text(const td_csv *t, int64_t row, int64_t column)
{
    if (row < 0 || row >= td_csv_rows(t) || column < 0
        || column >= t->columns)
        return NULL;
    return (const char *)td_at(t->bytes)
         + t->slot[row * (t->columns + 1) + column + 1];
}
/* files: further formats of files */

td_tensor *td_bytes_read(const char *path)
{
    return read_file("bytes_read", path, count_bytes, false);
}

/* files: function read_column */
static bool read_cell(const char *text, td_dtype dtype, double missing,
                      double *real)
{
    const bool whole = !td_dtype_is_floating(dtype);
    td_scalar value = td_float(missing);
    char *end = "";
    errno = 0;
    if (*text)
        value = whole ? td_int(strtoll(text, &end, 10))
                      : td_float(strtod(text, &end));
    const double v = td_scalar_double(value);
    td_store(whole ? TD_INT64 : TD_FLOAT64, real, value);
    return end != text && !strpbrk(text, "xX")  /* 0x10: no decimal */
        && end[strspn(end, " \t")] == 0
        && (!whole || (v == floor(v) && errno != ERANGE))
        && td_scalar_fits(dtype == TD_INT64 ? value : td_float(v),
                          dtype)
        && (dtype != TD_BOOL || v * v == v)
        && (dtype != TD_FLOAT16 || !(fabs(v) >= 65520) || isinf(v));
}

/* Writes the cells, 8 bytes each; the first row that is not so. */
static int64_t read_column(const td_csv *t, int64_t column, int64_t row,
                           td_dtype dtype, double missing,
                           double *out)
{
    const char *text;
    double unused;
    void *before = td_locale_begin();
    while ((text = td_csv_text(t, row, column)) != NULL
           && read_cell(text, dtype, missing, out ? out++ : &unused))
        row++;
    td_locale_end(before);
    return row;
}
/* files: function td_csv_column */
td_dtype td_csv_dtype(const td_csv *t, int64_t column, int64_t from)
{
    const td_dtype order[] = { TD_INT64, TD_FLOAT32 };
    for (int i = 0; i < 2; i++)
        if (read_column(t, column, from, order[i], NAN,
                        NULL) == td_csv_rows(t))
            return order[i];
    return TD_DTYPE_NONE;
}

td_tensor *td_csv_column(const td_csv *t, int64_t column, int64_t from,
                         td_dtype dtype, double missing)
{
    if (!td_require(t, "csv_column", "table"))
        return NULL;
    if (column < 0 || column >= t->columns || from < 0
        || from > t->rows)
        return td_fail(TD_ERROR_INDEX, "csv_column", "%s has no column "
            "%" PRId64 " from row %" PRId64 " on", t->path, column,
            from), NULL;
    td_scope_begin();
    td_tensor *x = td_tensor_new(TD_DIMS(t->rows - from),
        td_dtype_is_floating(dtype) ? TD_FLOAT64 : TD_INT64,
        TD_CPU);
    const int64_t bad = !x ? t->rows
        : read_column(t, column, from, dtype, missing, td_at(x));
    if (bad < t->rows)
        td_fail(TD_ERROR_VALUE, "csv_column", "%s, line %" PRId64
            ", column %" PRId64 " (%s): expected %s, got '%s'", t->path,
            t->slot[bad * (t->columns + 1)], column + 1,
            td_csv_text(t, 0, column), td_dtype_name(dtype),
            td_csv_text(t, bad, column));
    return td_scope_end_with(td_to(x, dtype));
}
