/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "saving": edit that, not this file. */
#include "core/device.h"
#include "core/require.h"
#include "nn/module.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <treadle/treadle.h>
#include <unistd.h>

typedef struct { const char *name; int bits; td_dtype dtype; } type;
/* saving: table of the types in a file */
static const type types[] = {
    { "BOOL", 8, TD_BOOL },     { "F4", 4, 0 },
    { "F6_E2M3", 6, 0 }, { "F6_E3M2", 6, 0 },
    { "U8", 8, TD_UINT8 },      { "I8", 8, TD_INT8 },
    { "F8_E5M2", 8, 0 }, { "F8_E4M3", 8, 0 },
    { "F8_E8M0", 8, 0 },
    { "F8_E4M3FNUZ", 8, 0 },
    { "F8_E5M2FNUZ", 8, 0 },
    { "I16", 16, TD_INT16 },    { "U16", 16, TD_INT32 },
    { "F16", 16, TD_FLOAT16 },  { "BF16", 16, TD_BFLOAT16 },
    { "I32", 32, TD_INT32 },    { "U32", 32, TD_INT64 },
    { "F32", 32, TD_FLOAT32 },  { "C64", 64, 0 },
    { "F64", 64, TD_FLOAT64 },  { "I64", 64, TD_INT64 },
    { "U64", 64, 0 }, { 0 }
};
/* saving: function type_of */
static const type *type_of(const char *name, td_dtype dtype)
{
    const type *t = types;
    while (t->name && (name ? strcmp(t->name, name) != 0
           : t->dtype != dtype
             || t->bits != 8 * (int)td_dtype_size(dtype)))
        t++;
    return t;
}
/* saving: function is_utf8 */
static bool is_utf8(const char *bytes, int64_t n)
{
    static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000,
                                      0x110000 };
    uint32_t code = 0;
    int all = 0, more = 0;          /* bytes behind the first */
    for (; n > 0; n--, bytes++) {
        const unsigned char b = (unsigned char)*bytes;
        if (more == 0)
            all = (b >= 0xc0) + (b >= 0xe0) + (b >= 0xf0);
        else if (b >> 6 != 2)
            return false;
        code = more ? code << 6 | (b & 0x3f)
             : all ? b & 0x7fu >> all : b;
        more = more ? more - 1 : all;
        if (more == 0 && (code < least[all] || code >= least[all + 1]
                          || code >> 11 == 0x1b))
            return false;
    }
    return more == 0;
}
/* saving: struct td_safetensors */
struct td_safetensors {
    td_object object;
    char path[200];             /* for messages */
    bool mapped, share;         /* by us; with its tensors */
    char *bytes;                /* all of them: mapped or given */
    int64_t size, data;         /* of the file; where elements begin */
    size_t room;                /* of what follows: */
    td_saved_tensor *tensor, *named;    /* by place, and by name */
    int count, note_count;
    const char *notes;          /* name, value, name, value, ... */
    /* saving: scanning fields of a file */
    const char *at, *end;       /* what is left of the header */
    char *text;                 /* where decoded strings go */
};
/* saving: functions that say what is wrong */
static bool broken_file(const td_safetensors *f, const char *what)
{
    return td_fail(TD_ERROR_IO, "safetensors", "%s %s", f->path, what);
}
static bool cannot(const char *what, const char *path)
{
    return td_fail(TD_ERROR_IO, "safetensors", "cannot %s %s: %s", what,
                   path, strerror(errno));
}
/* saving: function wants */
static bool wants(const td_safetensors *f, const char *what)
{
    return td_fail(TD_ERROR_IO, "safetensors", "%s: byte %d of its "
                   "header is no %s", f->path,
                   (int)(f->at - f->bytes - 8), what);
}
static bool broken_tensor(const td_safetensors *f,
                          const td_saved_tensor *t, const char *what)
{
    return td_fail(TD_ERROR_IO, "safetensors", "%s: tensor '%.80s' %s",
                   f->path, t->name, what);
}
/* saving: functions that read a header */
/* saving: functions that look at what is next */
static char peek(const td_safetensors *f)
{
    return f->at < f->end ? *f->at : '\0';
}
static bool sign(td_safetensors *f, char c)
{
    while (peek(f) && strchr(" \t\n\r", *f->at))
        f->at++;
    const bool there = peek(f) == c && c;
    f->at += there;
    return there;
}
/* saving: function escape */
static uint32_t four_digits(td_safetensors *f)
{
    unsigned code = 0;
    for (int i = 0; i < 4; i++) {
        const char c = peek(f);
        if (!isxdigit((unsigned char)c))
            return 0;
        code = code * 16
             + (unsigned)(c <= '9' ? c - '0' : (c | 32) - 87);
        f->at++;
    }
    return code;
}
static const char letters[] = "/\"\\bfnrt", plain[] = "/\"\\\b\f\n\r\t";

static bool escape(td_safetensors *f)
{
    const char c = peek(f), *letter = c ? strchr(letters, c) : NULL;
    f->text--;
    f->at += c != '\0';
    if (letter)
        return *f->text++ = plain[letter - letters], true;
    uint32_t code = c == 'u' ? four_digits(f) : 0;
    if (code >> 10 == 0x36 && f->end - f->at > 1
        && memcmp(f->at, "\\u", 2) == 0) {
        f->at += 2;
        const uint32_t low = four_digits(f);
        code = low >> 10 == 0x37
             ? (code << 10) + low - 0x35fdc00 : 0;
    }
    if (code == 0 || code >> 11 == 0x1b)
        return false;
    /* saving: write the character in UTF-8 */
    const int more = (code >= 0x80) + (code >= 0x800)
                   + (code >= 0x10000);
    *f->text++ = (char)(more == 0 ? code
                        : (0x7f80 >> more & 0xff) | code >> 6 * more);
    for (int k = more - 1; k >= 0; k--)
        *f->text++ = (char)(0x80 | (code >> 6 * k & 0x3f));
    return true;
}
/* saving: function string */
static const char *string(td_safetensors *f)
{
    char *const start = f->text;
    bool good = sign(f, '"');
    while (good && peek(f) != '"') {
        good = (unsigned char)peek(f) >= 0x20;  /* nor the end */
        *f->text = peek(f);
        f->at += good;
        good = good && (*f->text++ != '\\' || escape(f));
    }
    f->at += good;
    *f->text++ = '\0';
    return good || wants(f, "string") ? start : NULL;
}
/* saving: function another */
static bool another(td_safetensors *f, char close)
{
    const bool begins = f->at[-1] == close - 2;
    return !td_failed() && !sign(f, close)
        && (begins || sign(f, ',') || wants(f, "comma or end of list"));
}
/* saving: function member */
static bool member(td_safetensors *f, const char **name)
{
    return another(f, '}') && (*name = string(f)) != NULL
        && (sign(f, ':') || wants(f, "colon"));
}
/* saving: function number */
static bool number(td_safetensors *f, int64_t *out)
{
    sign(f, '\0');              /* past blanks */
    const char *const start = f->at;
    for (*out = 0; isdigit((unsigned char)peek(f)); f->at++)
        if (!td_mul_size(*out, 10, out)
            || !td_add_size(*out, *f->at - '0', out))
            return wants(f, "number of 63 bits");
    return (f->at > start && (*start != '0' || f->at == start + 1))
        || wants(f, "whole number");
}
/* saving: function number_list */
static bool number_list(td_safetensors *f, td_dims *out)
{
    if (!sign(f, '['))
        return wants(f, "list");
    for (out->count = 0; another(f, ']'); out->count++)
        if (out->count == TD_MAX_RANK)
            return td_fail(TD_ERROR_UNSUPPORTED, "safetensors",
                "%s: a tensor has more than %d dimensions", f->path,
                TD_MAX_RANK);
        else
            number(f, &out->at[out->count]);
    return !td_failed();
}
/* saving: function skip */
static bool skip(td_safetensors *f, int depth)
{
    const char *name;
    int64_t n;
    if (depth > 0 && sign(f, '['))
        while (another(f, ']'))
            skip(f, depth - 1);
    else if (depth > 0 && sign(f, '{'))
        while (member(f, &name))
            skip(f, depth - 1);
    else
        return peek(f) == '"' ? string(f) != NULL : number(f, &n);
    return !td_failed();
}
/* saving: function read_description */
static bool read_description(td_safetensors *f, td_saved_tensor *t)
{
    td_dims place = { .count = -1 };
    const char *name, *called = NULL;
    t->shape.count = -1;
    if (!sign(f, '{'))
        return wants(f, "description of a tensor");
    while (member(f, &name)) {
        const bool is_type = strcmp(name, "dtype") == 0;
        td_dims *list = strcmp(name, "shape") == 0 ? &t->shape
            : strcmp(name, "data_offsets") == 0 ? &place : NULL;
        if (list ? list->count >= 0 : is_type && called)
            return broken_tensor(f, t, "has a field twice");
        if (is_type)
            called = string(f);
        else if (list)
            number_list(f, list);
        else
            skip(f, 100);
    }
    /* saving: keep what the fields say */
    if (td_failed())
        return false;
    if (!called || t->shape.count < 0 || place.count != 2)
        return broken_tensor(f, t, "lacks one of dtype, shape and "
                             "data_offsets, or an offset");
    const type *known = type_of(called, TD_DTYPE_NONE);
    t->type = known->name, t->dtype = known->dtype;
    t->begin = place.at[0], t->end = place.at[1];
    return known->name || broken_tensor(f, t, "has a type that is none of "
                                        "the format's");
}
/* saving: function read_notes */
static bool read_notes(td_safetensors *f)
{
    const char *name;
    if (f->notes)
        return broken_file(f, "has __metadata__ twice");
    f->notes = f->text;
    if (!sign(f, '{'))
        return wants(f, "object of strings");
    while (member(f, &name) && string(f))
        f->note_count++;
    return !td_failed();
}
/* saving: function read_members */
static bool read_members(td_safetensors *f)
{
    const char *name;
    if (!sign(f, '{'))
        return wants(f, "opening brace");
    while (member(f, &name))
        if (strcmp(name, "__metadata__") == 0)
            read_notes(f);
        else {
            f->tensor[f->count].name = name;
            read_description(f, &f->tensor[f->count++]);
        }
    sign(f, '\0');
    return !td_failed() && (f->at == f->end || wants(f, "end"));
}
/* saving: function sort_tensors */
static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}
static int by_place(const void *a, const void *b)
{
    const td_saved_tensor *x = a, *y = b;
    const int64_t order = x->begin != y->begin ? x->begin - y->begin
                                               : x->end - y->end;
    return order ? (order > 0) - (order < 0) : by_name(a, b);
}
static bool sort_tensors(td_safetensors *f)
{
    const size_t n = (size_t)f->count;
    qsort(f->tensor, n, sizeof *f->tensor, by_place);
    memcpy(f->named, f->tensor, n * sizeof *f->named);
    qsort(f->named, n, sizeof *f->named, by_name);
    for (size_t i = 1; i < n; i++)
        if (by_name(&f->named[i - 1], &f->named[i]) == 0)
            return broken_tensor(f, &f->named[i], "is there twice");
    return true;
}
/* saving: function check_places */
static bool check_places(const td_safetensors *f)
{
    /* offsets: exercise offsets */
    int64_t at = 0;
    for (int i = 0; i < f->count; i++) {
        const td_saved_tensor *t = &f->tensor[i];
        int64_t bits = 1;
        for (int d = 0; d < t->shape.count; d++)
            if (!td_mul_size(bits, t->shape.at[d], &bits))
                return broken_tensor(f, t, "claims more than we can count");
        if (!td_mul_size(bits, type_of(t->type, 0)->bits, &bits))
            return broken_tensor(f, t, "claims more than we can count");
        if (t->begin != at)
            return broken_tensor(f, t, "does not begin where the one "
                                 "before it ends");
        if (bits % 8 != 0 || t->end - t->begin != bits / 8)
            return broken_tensor(f, t, "has another number of bytes than "
                                 "its shape");
        at = t->end;
    }
    const int64_t all = f->size - f->data;
    return at == all
        || broken_file(f, at > all ? "is cut off"
                       : "has bytes that belong to no tensor");
}
/* saving: function read_head */
static bool read_head(td_safetensors *f)
{
    /* saving: read the header's length */
    uint64_t n = 0;
    if (f->size >= 8)
        memcpy(&n, f->bytes, 8);
    if (f->size < 8 || n > 100000000 || (int64_t)n > f->size - 8)
        return broken_file(f, "has no room for its header");
    const size_t most = n / 40 + 1;
    f->data = 8 + (int64_t)n;
    f->at = f->bytes + 8, f->end = f->at + n;
    f->room = 2 * most * sizeof *f->tensor + n + 1;
    f->tensor = td_alloc(f->room);
    if (!f->tensor)
        return false;
    f->named = f->tensor + most;
    f->text = (char *)(f->named + most);
    return (is_utf8(f->at, (int64_t)n)
            || broken_file(f, "has a header that is not UTF-8"))
        && read_members(f) && sort_tensors(f) && check_places(f);
}
/* saving: functions that read tensors */
/* saving: function td_safetensors_open */
TD_CLASS(safetensors, td_safetensors, f)
{
    if (f->mapped)
        munmap(f->bytes, (size_t)f->size);
    td_free(f->tensor, f->room);
}

static bool map_file(td_safetensors *f, const char *path)
{
    struct stat about;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &about) != 0)
        cannot("open", path);
    else if (!S_ISREG(about.st_mode))
        broken_file(f, "is not a regular file");
    else {
        /* saving: map the file */
        f->size = about.st_size;
        f->bytes = f->size == 0 ? NULL : mmap(NULL, (size_t)f->size,
            PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
    }
    f->mapped = f->bytes && (f->bytes != MAP_FAILED
                             || cannot("map", path));
    if (fd >= 0)
        close(fd);
    return !td_failed();
}
static td_safetensors *open_either(const char *path, const void *bytes,
    int64_t n, bool share, const char *what)
{
    if (!td_require(bytes ? bytes : path, "safetensors", what))
        return NULL;
    td_scope_begin();
    td_safetensors *f = td_object_new(&safetensors_class, sizeof *f);
    if (f) {
        snprintf(f->path, sizeof f->path, "%s", bytes ? "bytes" : path);
        f->bytes = (char *)bytes, f->size = n, f->share = share;
        if (bytes || map_file(f, path))
            read_head(f);
    }
    return td_scope_end_with(f);
}
td_safetensors *td_safetensors_open(const char *path, bool share)
{
    return open_either(path, NULL, 0, share, "path");
}
td_safetensors *td_safetensors_over(const void *bytes, int64_t n)
{
    return open_either(NULL, bytes, n, false, "bytes");
}
/* saving: functions that look into a file */
int td_safetensors_count(const td_safetensors *f)
{
    return f ? f->count : 0;
}
const td_saved_tensor *td_safetensors_at(const td_safetensors *f, int i)
{
    return f && i >= 0 && i < f->count ? &f->tensor[i] : NULL;
}
const char *td_safetensors_note(const td_safetensors *f, int i,
                                const char **name)
{
    if (!f || i < 0 || i >= f->note_count)
        return NULL;
    const char *at = f->notes;
    for (int k = 0; k < 2 * i; k++)
        at += strlen(at) + 1;
    *name = at;
    return at + strlen(at) + 1;
}
/* saving: function td_safetensors_find */
const td_saved_tensor *td_safetensors_find(const td_safetensors *f,
                                           const char *name)
{
    if (!td_require(f, "safetensors", "file")
        || !td_require(name, "safetensors", "name"))
        return NULL;
    const td_saved_tensor *found = bsearch(&name, f->named,
        (size_t)f->count, sizeof *found, by_name);
    if (!found)
        td_fail(TD_ERROR_INDEX, "safetensors", "%s holds no tensor "
                "'%.80s'", f->path, name);
    return found ? bsearch(found, f->tensor, (size_t)f->count,
                           sizeof *found, by_place) : NULL;
}
/* saving: function can_be_read */
static bool can_be_read(const td_safetensors *f,
                        const td_saved_tensor *t)
{
    if (td_self()->symbolic || t->dtype == TD_DTYPE_NONE)
        return td_fail(TD_ERROR_UNSUPPORTED, "safetensors",
            "%s: tensor '%.80s' of type %s cannot be read%s", f->path,
            t->name, t->type, t->dtype ? " while tracing"
                                       : ", none of ours can hold it");
    for (int64_t i = t->begin; t->dtype == TD_BOOL && i < t->end; i++)
        if (f->bytes[f->data + i] & ~1)
            return broken_tensor(f, t, "has bools of other bytes than "
                                 "0 and 1");
    return true;
}
/* saving: function td_safetensors_get */
td_tensor *td_safetensors_get(td_safetensors *f, const char *name)
{
    const td_saved_tensor *t = td_safetensors_find(f, name);
    if (!t || !can_be_read(f, t))
        return NULL;
    const int bits = type_of(t->type, TD_DTYPE_NONE)->bits;
    const bool wide = bits < 8 * (int)td_dtype_size(t->dtype);
    td_scope_begin();
    td_tensor *x = td_borrow("safetensors", (td_foreign){
        .data = f->bytes + f->data + t->begin, .shape = t->shape,
        .dtype = !wide ? t->dtype : bits == 16 ? TD_INT16 : TD_INT32 },
        (td_opt_bool){ !f->share, true }, td_release, td_retain(f));
    if (!x)
        td_release(f);
    if (wide)
        x = td_bitwise_and_scalar(td_to(x, t->dtype),
                                  td_int(((int64_t)1 << bits) - 1));
    return td_scope_end_with(x);
}
/* saving: functions that write */
/* saving: struct item */
typedef struct {
    const char *name;
    td_tensor *tensor;          /* borrowed */
    const type *type;           /* its row in the table */
    int64_t bytes;
    uintptr_t from, to;
} item;

static int by_address(const void *a, const void *b)
{
    const item *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}
static int by_type(const void *a, const void *b)
{
    const ptrdiff_t order = ((const item *)b)->type
                          - ((const item *)a)->type;
    return order ? (int)order : by_name(a, b);
}
/* saving: struct sink */
typedef struct {
    item *item;
    int count;
    const char *const *notes;   /* name, value, ..., NULL; or NULL */
    char *header;
    size_t length;              /* of the header */
    FILE *file;                 /* or, if NULL: */
    char *memory;
} sink;

static void put(sink *s, const void *bytes, size_t n)
{
    if (s->file)                /* what fails is asked at the end */
        fwrite(bytes, 1, n, s->file);
    else
        s->memory = (char *)memcpy(s->memory, bytes, n) + n;
}
/* saving: function put_string */
static void put_string(FILE *out, const char *before, const char *name)
{
    if (!is_utf8(name, (int64_t)strlen(name)))
        td_fail(TD_ERROR_VALUE, "safetensors", "a name is not UTF-8");
    fprintf(out, "%s\"", before);
    for (; *name; name++) {
        const char *which = strchr(plain + 1, *name);
        if (which)
            fprintf(out, "\\%c", letters[which - plain]);
        else if ((unsigned char)*name < 0x20)
            fprintf(out, "\\u%04x", *name);
        else
            fputc(*name, out);
    }
    fputc('"', out);
}
/* saving: function print_header */
/* The number of bytes that follow the header. */
static int64_t print_header(FILE *out, const sink *s)
{
    int64_t at = 0;
    fputs(s->notes ? "{\"__metadata__\":{" : "{", out);
    for (int i = 0; s->notes && s->notes[i]; i++)
        put_string(out, i % 2 ? ":" : &","[i == 0], s->notes[i]);
    fputs(s->notes ? "}" : "", out);
    for (int i = 0; i < s->count; i++) {
        const item *t = &s->item[i];
        put_string(out, i || s->notes ? "," : "", t->name);
        fprintf(out, ":{\"dtype\":\"%s\",\"shape\":[", t->type->name);
        for (int d = 0; d < td_rank(t->tensor); d++)
            fprintf(out, &",%" PRId64[d == 0], td_shape(t->tensor)[d]);
        fprintf(out, "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}",
                at, at + t->bytes);
        at += t->bytes;
    }
    fprintf(out, "}%*s", (int)(7 - ftell(out) % 8), "");
    return at;
}
/* saving: function put_elements */
static bool put_elements(sink *s, const item *t)
{
    td_scope_begin();
    td_tensor *x = td_contiguous(td_brought(t->tensor,
                                            TD_CPU));
    const size_t n = (size_t)t->bytes;
    const void *bytes = x ? td_fetch(x, 0, n, NULL) : NULL;
    if (bytes)
        put(s, bytes, n);
    td_scope_end();
    return bytes;
}
/* saving: function put_all */
/* The number of bytes of all; 0 is an error. */
static int64_t make_header(sink *s)
{
    FILE *out = open_memstream(&s->header, &s->length);
    const int64_t bytes = out ? print_header(out, s) : 0;
    const bool whole = out && !ferror(out);
    if ((out && fclose(out) != 0) || !whole)
        td_fail(TD_ERROR_MEMORY, "safetensors", "no room for a header");
    return td_failed() ? 0 : 8 + (int64_t)s->length + bytes;
}
static bool put_all(sink *s)
{
    const int64_t length = (int64_t)s->length;
    put(s, &length, 8);
    put(s, s->header, s->length);
    for (int i = 0; i < s->count && !td_failed(); i++)
        put_elements(s, &s->item[i]);
    return !td_failed();
}
/* saving: function nothing_shared */
static bool nothing_shared(sink *s)
{
    qsort(s->item, (size_t)s->count, sizeof *s->item, by_address);
    for (int i = 1; i < s->count; i++)
        if (s->item[i].from < s->item[i - 1].to)
            return td_fail(TD_ERROR_RUNTIME, "safetensors", "tensors "
                "'%.80s' and '%.80s' share memory",
                s->item[i - 1].name, s->item[i].name);
    return true;
}
/* saving: function describe_all */
static bool describe(item *t, const td_to_save *given)
{
    td_tensor *x = given->tensor;
    if (!td_require(given->name, "safetensors", "name")
        || !td_require(x, "safetensors", given->name))
        return false;
    if (td_self()->symbolic || strcmp(given->name, "__metadata__") == 0)
        return td_fail(TD_ERROR_VALUE, "safetensors", "'%.80s' cannot "
                       "be saved: %s", given->name, td_self()->symbolic
                       ? "a program is traced" : "its name is taken");
    const type *row = type_of(NULL, x->dtype);
    int64_t reach = 1;
    for (int d = 0; d < x->rank; d++)
        reach += (x->shape[d] - 1) * x->strides[d];
    *t = (item){ given->name, x, row, td_numel(x) * row->bits / 8,
                 0, 0 };
    if (t->bytes) {
        t->from = (uintptr_t)td_at(x);
        t->to = t->from + (uintptr_t)(reach * row->bits / 8);
    }
    return true;
}
static bool describe_all(sink *s, const td_to_save *given)
{
    for (int i = 0; i < s->count; i++)
        if (!describe(&s->item[i], &given[i]))
            return false;
    qsort(s->item, (size_t)s->count, sizeof *s->item, by_name);
    for (int i = 1; i < s->count; i++)
        if (by_name(&s->item[i - 1], &s->item[i]) == 0)
            return td_fail(TD_ERROR_VALUE, "safetensors", "two tensors "
                           "are called '%.80s'", s->item[i].name);
    if (!nothing_shared(s))
        return false;
    qsort(s->item, (size_t)s->count, sizeof *s->item, by_type);
    return true;
}
/* saving: functions that save */
/* saving: function open_beside */
static bool open_beside(sink *s, const char *place, char *beside)
{
    static atomic_uint counter;
    struct stat about;
    if (stat(place, &about) == 0 && !S_ISREG(about.st_mode))
        return errno = EINVAL, false;   /* a folder; /dev/null */
    do {
        if (snprintf(beside, PATH_MAX, "%s.%d.%u.new", place, getpid(),
                     atomic_fetch_add(&counter, 1)) >= PATH_MAX)
            return errno = ENAMETOOLONG, false;
        s->file = fopen(beside, "wxe");
    } while (!s->file && errno == EEXIST);
    return s->file;
}
/* saving: function sync_folder */
static bool sync_folder(const char *place)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", place);
    const int fd = open(dirname(folder), O_RDONLY | O_CLOEXEC);
    const bool good = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL);
    if (fd >= 0)
        close(fd);
    return good;
}
/* saving: function write_file */
static bool write_file(const char *path, sink *s)
{
    char room[PATH_MAX], beside[PATH_MAX];
    const char *place = realpath(path, room) ? room : path;
    if (!open_beside(s, place, beside))
        return cannot("write", path);
    bool good = put_all(s) && fflush(s->file) == 0
        && !ferror(s->file) && fsync(fileno(s->file)) == 0;
    good = fclose(s->file) == 0 && good && rename(beside, place) == 0;
    if (good)
        return sync_folder(place) || cannot("sync", path);
    cannot("write", path);
    unlink(beside);
    return false;
}

static int64_t save(const char *path, void *memory, int64_t room,
                    const td_to_save *given, int n,
                    const char *const *notes)
{
    sink s = { .count = n, .notes = notes, .memory = memory };
    int64_t size = 0;
    s.item = TD_ARRAY(s.item, n + 1);
    if (s.item && describe_all(&s, given)
        && (size = make_header(&s)) > 0) {
        if (path || (memory && size <= room))
            path ? write_file(path, &s) : put_all(&s);
    }
    free(s.header);
    TD_FREE_ARRAY(s.item, n + 1);
    return td_failed() ? -1 : size;
}
bool td_safetensors_save(const char *path, const td_to_save *tensors,
                         int n, const char *const *notes)
{
    return td_require(path, "safetensors", "path")
        && save(path, NULL, 0, tensors, n, notes) >= 0;
}
int64_t td_safetensors_write(void *out, int64_t room,
                             const td_to_save *tensors, int n,
                             const char *const *notes)
{
    return save(NULL, out, room, tensors, n, notes);
}
/* saving: function that compares a file with a module */
static bool fits(const td_named_list *s, const td_safetensors *f)
{
    char a[TD_SHAPE_TEXT], b[TD_SHAPE_TEXT];
    for (int i = 0; i < s->count; i++) {
        const td_named_tensor *own = &s->at[i];
        const td_saved_tensor *t = td_safetensors_find(f, own->name);
        const td_dims shape = td_shape_of(own->tensor);
        if (!t)
            return false;
        if (!td_dims_equal(&t->shape, &shape))
            return td_fail(TD_ERROR_RUNTIME, "load_module", "size "
                "mismatch for %s: expected %s, got %s", own->name,
                td_dims_text(&shape, a), td_dims_text(&t->shape, b));
    }
    return s->count == f->count || td_fail(TD_ERROR_RUNTIME,
        "load_module", "%s holds %d tensors, the module has %d",
        f->path, f->count, s->count);
}
/* saving: function td_save_module */
bool td_save_module(td_module *m, const char *path)
{
    const td_named_list own = td_list_tensors(m, true, true);
    td_to_save *all = TD_ARRAY(all, own.room);
    for (int i = 0; all && i < own.count; i++)
        all[i] = (td_to_save){ own.at[i].name, own.at[i].tensor };
    const bool good = td_safetensors_save(path, all, own.count, NULL);
    TD_FREE_ARRAY(all, own.room);
    TD_FREE_ARRAY(own.at, own.room);
    return good;
}
/* saving: function td_load_module */
bool td_load_module(td_module *m, const char *path)
{
    td_scope_begin();
    td_safetensors *f = td_safetensors_open(path, true);
    const td_named_list s = td_list_tensors(m, true, true);
    bool good = !td_failed() && fits(&s, f);
    td_no_grad_begin();
    for (int i = 0; good && i < s.count; i++)
        good = td_copy_(s.at[i].tensor,
                        td_safetensors_get(f, s.at[i].name));
    td_no_grad_end();
    TD_FREE_ARRAY(s.at, s.room);
    td_scope_end();
    return good;
}
