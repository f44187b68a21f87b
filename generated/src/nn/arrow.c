/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "arrow": edit that, not this file. */
#include <treadle/treadle.h>
#include "core/device.h"
/* arrow: table of Arrow's types */
/* By td_dtype: none, float32 and 64, int64 and 32, uint8, bool,
   float16, bfloat16, int8 and 16. */
static const char letters[TD_DTYPE_COUNT + 1] = " fgliCbe cs";

static const char *const refused[][2] = {
    { "S", "uint16" }, { "I", "uint32" }, { "L", "uint64" },
    { "u", "text" }, { "U", "text" }, { "vu", "text" },
    { "+s", "a table" }, { "+", "lists of any length" },
    { "", "what is no number" },
};
/* arrow: function td_arrow_name */
const char *td_arrow_name(const struct ArrowSchema *s, int64_t k)
{
    if (!s->release || !s->format || strcmp(s->format, "+s")
        || k >= s->n_children || !s->children || !s->children[k])
        return NULL;
    return s->children[k]->name ? s->children[k]->name : "";
}
/* arrow: struct column */
typedef struct {
    const char *name;
    td_dtype dtype;
    td_dims shape;
    /* arrow: the place in a column */
    const struct ArrowArray *a;
    int64_t start, count, elements;
    int levels;
    struct {
        const uint8_t *valid;
        int64_t start, width;
    } level[TD_MAX_RANK + 1];
} column;

static bool malformed(const column *c, const char *what)
{
    return td_fail(TD_ERROR_VALUE, "from_arrow", "the %s of column "
        "'%s' is malformed", what, c->name ? c->name : "");
}
/* arrow: function read_type */
static bool read_type(column *c, const struct ArrowSchema *s)
{
    for (; s && s->format && !s->dictionary
         && !strncmp(s->format, "+w:", 3); s = *s->children) {
        char *end;
        const long long size = strtoll(s->format + 3, &end, 10);
        if (size < 0 || *end || s->n_children != 1 || !s->children
            || c->shape.count == TD_MAX_RANK)
            return malformed(c, "schema");
        c->shape.at[c->shape.count++] = size;
    }
    if (!s || !s->format)
        return malformed(c, "schema");
    for (int i = 1; i < TD_DTYPE_COUNT && !s->dictionary; i++)
        if (*s->format == letters[i] && !s->format[1])
            c->dtype = (td_dtype)i;
    int r = 0;
    while (strncmp(s->format, refused[r][0], strlen(refused[r][0])))
        r++;
    return c->dtype || td_fail(TD_ERROR_UNSUPPORTED, "from_arrow",
        "column '%s' holds %s ('%.20s'); expected numbers, bools or "
        "lists of fixed size of them", c->name, s->dictionary
        ? "places in a dictionary" : refused[r][1], s->format);
}
/* arrow: function go_down */
static bool go_down(column *c, int64_t n, int64_t k, int64_t times)
{
    const struct ArrowArray *a = c->a;
    int64_t end;
    const bool good = a && a->n_buffers == (n ? 1 : 2) && a->buffers
        && (n ? a->children != NULL : a->buffers[1] != NULL)
        && a->n_children == n && (a->null_count < 1 || a->buffers[0])
        && td_add_size(c->start, c->count, &end) && end <= a->length
        && td_add_size(a->offset, c->start, &c->start);
    if (good && a->null_count && a->buffers[0]) {
        c->level[c->levels].valid = a->buffers[0];
        c->level[c->levels].start = c->start;
        c->level[c->levels++].width = c->elements / c->count;
    }
    c->a = good && n ? a->children[k] : a;
    return (good && td_mul_size(c->start, times, &c->start)
            && td_mul_size(c->count, times, &c->count))
        || malformed(c, "array");
}

static bool bit(const uint8_t *bits, int64_t i)
{
    return bits[i >> 3] >> (i & 7) & 1;
}

static bool missing(const column *c, int64_t e)
{
    bool is = false;
    for (int l = 0; l < c->levels; l++)
        is |= !bit(c->level[l].valid,
                   c->level[l].start + e / c->level[l].width);
    return is;
}
/* arrow: function over_column */
static td_tensor *over_column(const column *c, td_scalar fill,
                              td_frees *release, void *context)
{
    const int64_t size = (int64_t)td_dtype_size(c->dtype);
    const td_tensor_options like = { .dtype = c->dtype };
    const char *at = c->elements ? c->a->buffers[1] : NULL;
    const bool bits = c->dtype == TD_BOOL;
    if (c->elements && !bits && !c->levels)
        return td_borrow("from_arrow", (td_foreign){ .dtype = c->dtype,
            .data = (void *)(uintptr_t)(at + c->start),
            .shape = c->shape }, (td_opt_bool){ 0 }, release, context);
    td_tensor *x = td_empty(c->shape, like), *one = c->levels ? td_full(
        (td_dims){ 0 }, fill.kind ? fill : td_int(0), like) : NULL;
    int64_t gaps = 0;
    for (int64_t e = 0; !td_failed() && e < c->elements; e++) {
        const bool gap = missing(c, e), truth = bits
            && bit((const uint8_t *)at, c->start + e);
        gaps += gap;
        memcpy((char *)td_data(x) + e * size, gap ? td_data(one)
               : bits ? (const void *)&truth
               : at + c->start + e * size, (size_t)size);
    }
    if (gaps && !(fill.kind && (td_dtype_is_floating(c->dtype)
            || td_scalar_double(td_item(one))
               == td_scalar_double(fill))))
        td_fail(TD_ERROR_VALUE, "from_arrow", "column '%s' misses %"
            PRId64 " of %" PRId64 " elements; say what fills them",
            c->name, gaps, c->elements);
    if (!td_failed() && release)
        release(context);
    return x;
}
/* arrow: function td_from_arrow */
td_tensor *td_from_arrow(const struct ArrowArray *a,
    const struct ArrowSchema *s, int64_t k, td_scalar fill,
    td_frees *release, void *context)
{
    if (!s || !s->release || (a && (!a->release || a->length < 0)))
        return td_fail(TD_ERROR_VALUE, "from_arrow", "the array or its "
                       "schema was released"), NULL;
    column c = { .name = k < 0 ? "" : td_arrow_name(s, k), .a = a,
                 .count = a ? a->length : 0 };
    c.shape = TD_DIMS(c.count);
    const struct ArrowSchema *own = k < 0 ? s : c.name
        ? s->children[k] : NULL;
    bool good = read_type(&c, own)
        && td_dims_numel("from_arrow", &c.shape, &c.elements);
    if (c.elements && good && k >= 0)
        good = go_down(&c, s->n_children, k, 1);
    for (int d = 1; c.elements && d < c.shape.count && good; d++)
        good = go_down(&c, 1, 0, c.shape.at[d]);
    if (!good || (c.elements && !go_down(&c, 0, 0,
            c.dtype == TD_BOOL ? 1 : (int64_t)td_dtype_size(c.dtype))))
        return NULL;
    const td_suspended trace = td_trace_suspend();
    td_scope_begin();
    td_tensor *x = over_column(&c, fill, release, context);
    td_trace_resume(trace);
    return td_scope_end_with(x);
}
/* arrow: struct part */
typedef struct {
    td_object object;
    td_tensor *data;
    const void *buffers[2];
    char format[24];
    void *links[];
} part;

TD_CLASS(part, part, p)
{
    td_release(p->data);
}

#define RELEASE(name, type, n) \
    static void name(struct type *s) \
    { \
        for (int64_t i = 0; i < n; i++) \
            if (s->children[i]->release) \
                s->children[i]->release(s->children[i]); \
        td_release(s->private_data); \
        s->release = NULL; \
    }
RELEASE(release_ArrowSchema, ArrowSchema, s->n_children)
RELEASE(release_ArrowArray, ArrowArray, s->n_children)
/* arrow: function new_part */
static bool new_part(const char *format, int64_t size, const char *name,
    int64_t n, td_tensor *data, int64_t length, struct ArrowArray *a,
    struct ArrowSchema *s)
{
    const size_t each = sizeof *s + sizeof *a + 2 * sizeof(void *);
    part *p = td_object_new_unscoped(&part_class, sizeof *p
                                     + (size_t)n * each
                                     + strlen(name) + 1);
    if (!p)
        return false;
    struct ArrowArray *arrays = (void *)(p->links + 2 * n);
    struct ArrowSchema *schemas = (void *)(arrays + n);
    snprintf(p->format, sizeof p->format, format, (long long)size);
    p->data = td_retain(data);
    p->buffers[1] = td_data(data);
    *a = (struct ArrowArray){ length, 0, 0, data && !n ? 2 : 1, n,
        p->buffers, (struct ArrowArray **)p->links, NULL,
        release_ArrowArray, p };
    *s = (struct ArrowSchema){ p->format, strcpy((char *)(schemas + n),
        name), NULL, 2, n, (struct ArrowSchema **)p->links + n, NULL,
        release_ArrowSchema, td_retain(p) };
    for (int64_t i = 0; i < n; i++) {
        a->children[i] = arrays + i;
        s->children[i] = schemas + i;
    }
    return true;
}
/* arrow: function lay_part */
static bool drop(struct ArrowArray *a, struct ArrowSchema *s)
{
    a->release(a);
    s->release(s);
    return false;
}

static bool lay_part(const td_tensor *x, int dim, int64_t length,
    const char *name, td_tensor *data, struct ArrowArray *a,
    struct ArrowSchema *s)
{
    const bool list = dim + 1 < td_rank(x);
    const int64_t size = list ? td_shape(x)[dim + 1] : 0;
    const char letter[] = { letters[td_dtype_of(x)], 0 };
    return new_part(list ? "+w:%lld" : letter, size, name, list, data,
                    length, a, s)
        && (!list || lay_part(x, dim + 1, length * size, "item", data,
                              *a->children, *s->children)
            || drop(a, s));
}
/* arrow: function lend_column */
static td_tensor *packed(td_tensor *x)
{
    td_tensor *dense = td_contiguous(x);
    if (!dense || td_dtype_of(x) != TD_BOOL)
        return dense ? td_tensor_alias(dense) : NULL;
    td_tensor *bits = td_zeros(TD_DIMS(td_numel(x) / 8 + 1),
        TD_OF(TD_UINT8));
    const uint8_t *from = td_data(dense);
    uint8_t *to = td_data(bits);
    for (int64_t i = 0; bits && i < td_numel(x); i++)
        to[i >> 3] |= (uint8_t)(from[i] << (i & 7));
    return bits;
}

static bool lend_column(td_tensor *x, const char *name, int64_t rows,
    struct ArrowArray *a, struct ArrowSchema *s)
{
    if (td_rank(x) == 0 || (rows >= 0 && td_size(x, 0) != rows))
        return td_fail(TD_ERROR_VALUE, "to_arrow", "column '%s' has %"
            PRId64 " rows, expected %" PRId64, name, td_rank(x)
            ? td_size(x, 0) : 0, rows);
    if (!td_at_home(x) || td_requires_grad(x)
        || (!td_data(x) && td_numel(x))
        || td_dtype_of(x) == TD_BFLOAT16)
        return td_fail(TD_ERROR_UNSUPPORTED, "to_arrow", "column '%s' "
            "cannot be lent: it is not on the CPU, requires grad or is "
            "bfloat16", name);
    td_scope_begin();
    td_tensor *data = packed(x);
    const bool good = data && lay_part(x, 0, td_size(x, 0), name, data,
                                       a, s);
    td_scope_end();
    return good;
}
/* arrow: function td_to_arrow */
bool td_to_arrow(td_tensor *const *columns, const char *const *names,
    int n, struct ArrowArray *array, struct ArrowSchema *schema)
{
    if (!names)
        return lend_column(*columns, "", -1, array, schema);
    const int64_t rows = n && td_rank(*columns)
                       ? td_size(*columns, 0) : 0;
    bool good = new_part("+s", 0, "", n, NULL, rows, array, schema);
    for (int i = 0; i < n && good; i++)
        good = lend_column(columns[i], names[i], rows,
                           array->children[i], schema->children[i])
            || drop(array, schema);
    return good;
}
/* arrow: struct lent */
typedef struct {
    td_object object;
    struct ArrowSchema schema;
    struct ArrowArray array;
} lent;

TD_CLASS(lent, lent, l)
{
    if (l->array.release)
        l->array.release(&l->array);
    l->schema.release(&l->schema);
}

/* arrow: function td_arrow_stream */
RELEASE(release_copy, ArrowSchema, 0)

static int lent_schema(struct ArrowArrayStream *s,
                       struct ArrowSchema *out)
{
    *out = ((lent *)s->private_data)->schema;
    out->private_data = td_retain(s->private_data);
    out->release = release_copy;
    return 0;
}

static int lent_next(struct ArrowArrayStream *s, struct ArrowArray *out)
{
    lent *l = s->private_data;
    *out = l->array;
    l->array.release = NULL;
    return 0;
}

static const char *lent_error(struct ArrowArrayStream *s)
{
    return s->release ? NULL : "released";
}

static void release_lent(struct ArrowArrayStream *s)
{
    td_release(s->private_data);
    s->release = NULL;
}

bool td_arrow_stream(struct ArrowArray *array,
    struct ArrowSchema *schema, struct ArrowArrayStream *out)
{
    if (!array->release || !schema->release)
        return td_fail(TD_ERROR_VALUE, "arrow_stream", "the array or "
                       "its schema was released");
    lent *l = td_object_new_unscoped(&lent_class, sizeof *l);
    if (!l)
        return false;
    l->schema = *schema, l->array = *array;
    schema->release = NULL, array->release = NULL;
    *out = (struct ArrowArrayStream){ lent_schema, lent_next,
        lent_error, release_lent, l };
    return true;
}
