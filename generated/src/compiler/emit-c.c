/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "codegen": edit that, not this file. */
/* Stages, written as C. */
#include "compiler/backend-c.h"

static const char td_primitives_text[] =
#include "primitives-text.inc"
;

static const char blocks_text[] =
    /* codegen: text of the blocks */
        "#define JOIN(times)                                           \\\n"
        "    for (int t = times; t > 0; t--, top--)                    \\\n"
        "        for (int k = 0; k < width; k++)                       \\\n"
        "            lane[k] = FOLD(part[top - 1][k], lane[k]);\n"
        "#define PUT_AWAY                                              \\\n"
        "    JOIN(__builtin_ctzll(~blocks))                            \\\n"
        "    for (int k = 0; k < width; k++) {                         \\\n"
        "        part[top][k] = lane[k];                               \\\n"
        "        lane[k] = NOTHING;                                    \\\n"
        "    }                                                         \\\n"
        "    blocks++, top++;\n\n";

/* codegen: struct emitter */
typedef struct {
    FILE *f;
    const td_lowered *l;
    const td_stage *s;
    bool done[TD_OP_COUNT][TD_BOOL + 1];    /* rows, by type */
} emitter;

#define put(e, ...) fprintf((e)->f, __VA_ARGS__)

/* codegen: functions that write names and numbers */
static const char *c_type(td_dtype dtype)
{
    static const char *const names[TD_DTYPE_COUNT] = {
        [TD_FLOAT32] = "float", [TD_FLOAT64] = "double",
        [TD_INT64] = "int64_t", [TD_INT32] = "int32_t",
        [TD_UINT8] = "uint8_t", [TD_BOOL] = "uint8_t",
    };
    return names[dtype];
}
static void put_number(const emitter *e, td_dtype type, td_scalar s)
{
    const double f = td_scalar_double(s);
    if (s.kind != TD_SCALAR_FLOAT) {
        const int64_t i = td_scalar_int(s);
        put(e, i == INT64_MIN ? "((%s)(-INT64_MAX - 1))"
               : "((%s)%" PRId64 "ll)", c_type(type), i);
    } else if (isfinite(f))
        put(e, "((%s)%.17g%s)", c_type(type), f, f == 0 ? ".0" : "");
    else
        put(e, "((%s)%s)", c_type(type), isnan(f) ? "NAN" : f > 0
            ? "INFINITY" : "-INFINITY");
}

/* codegen: function put_piece */
static void put_piece(const emitter *e, int k)
{
    const td_piece *x = &e->l->piece[k];
    if (x->kind == TD_NUMBER)
        put_number(e, x->type, x->number);
    else if (x->kind != TD_FORMULA)
        put(e, "v%d", x->load);
    else if (td_row_of(x->op) != NULL)
        put(e, "%s_%s(", x->op->name, c_type(x->of));
    else if (x->n > 1)
        put(e, "select(");
    else
        put(e, x->type == TD_BOOL ? "(0 != " : "(%s)(",
            c_type(x->type));
    for (int i = 0; i < x->n; i++) {
        put(e, i ? ", " : "");
        put_piece(e, x->arg[i]);
    }
    put(e, x->n > 0 ? ")" : "");
}

/* codegen: functions that write C */
static void put_row(emitter *e, const td_op *op, td_dtype type, int n)
{
    const td_row *row = op ? td_row_of(op) : NULL;
    if (row == NULL || e->done[op - td_ops][type])
        return;
    e->done[op - td_ops][type] = true;
    const char *c = c_type(type);
    const char *result = row->tests ? "uint8_t" : c;
    put(e, "static inline %s %s_%s(", result, op->name, c);
    put(e, n == 1 ? "%s x)" : "%s a, %s b)", c, c);
    put(e, "\n{\n    typedef %s T;\n    return (%s)(%s);\n}\n", c,
        result, row->text);
}

static void put_rows(emitter *e)
{
    TD_EACH(k, e->l, pieces) {
        const td_piece *x = &e->l->piece[k];
        put_row(e, x->op, x->of, x->n);
    }
    TD_EACH(n, e->l, stages)
        if (e->l->stage[n].kind == TD_FOLD)
            put_row(e, e->l->stage[n].fold, e->l->stage[n].type, 2);
}
static void put_index(const emitter *e, const td_load *load)
{
    put(e, "%" PRId64 "ll", load->offset);
    for (int d = 0; d < e->s->rank; d++)
        if (load->flat[d] != 0)
            put(e, " + i%d * %" PRId64 "ll", d, load->flat[d]);
}
static void put_pointers(const emitter *e)
{
    for (int k = 0; k <= e->s->n_loads; k++)
        put(e, "    %s *const %s%d = memory[%d];\n",
            c_type(e->s->load[k].type), k < e->s->n_loads ? "p" : "to",
            k, k);
}
static void put_loads(const emitter *e, const char *indent)
{
    TD_EACH(k, e->s, loads) {
        put(e, "%sconst %s v%d = p%d[", indent,
            c_type(e->s->load[k].type), k, k);
        put_index(e, &e->s->load[k]);
        put(e, "];\n");
    }
}
static void put_for(const emitter *e, int d, const char *indent)
{
    if (d == 0)
        put(e, "%sfor (int64_t i0 = begin; i0 < end; i0++)\n", indent);
    else
        put(e, "%sfor (int64_t i%d = 0; i%d < %" PRId64 "ll; i%d++)\n",
            indent, d, d, e->s->size[d], d);
}
static void put_result(const emitter *e)
{
    put(e, "to%d[", e->s->n_loads);
    put_index(e, &e->s->load[e->s->n_loads]);
    put(e, "] = ");
}

/* codegen: function put_elementwise */
static void put_elementwise(const emitter *e)
{
    for (int d = 0; d < e->s->rank; d++) {
        if (d == e->s->rank - 1)
            put(e, "#pragma GCC ivdep\n");
        put_for(e, d, "    ");
    }
    put(e, "    {\n");
    put_loads(e, "        ");
    put(e, "        ");
    put_result(e);
    put_piece(e, e->s->last);
    put(e, ";\n    }\n");
}
static void put_lanes(const emitter *e, int most)
{
    const char *c = c_type(e->s->type);
    put(e, "#undef FOLD\n#undef NOTHING\n"
           "#define FOLD(a, x) %s_%s(x, a)\n#define NOTHING ",
        e->s->fold->name, c);
    put_number(e, e->s->type, e->s->nothing);
    put(e, "\n        %s lane[%d], part[48][%d];\n"
           "        uint64_t blocks = 0;\n"
           "        int top = 0, steps = 0;\n"
           "        for (int k = 0; k < width; k++)\n"
           "            lane[k] = NOTHING;\n", c, most, most);
}
static void put_fold_of_columns(const emitter *e)
{
    const int j = e->s->kept - 1;
    char column[120];
    for (int d = 0; d < j; d++)
        put_for(e, d, "    ");
    snprintf(column, sizeof column,
             "        for (int k = 0; k < width; k++) {\n"
             "            const int64_t i%d = from + k;\n", j);
    put(e, "    for (int64_t from = %s, stop = ",
        j > 0 ? "0" : "begin");
    put(e, j > 0 ? "%" PRId64 : "end", e->s->size[j]);
    put(e, "; from < stop; from += 512) {\n        const int width = "
           "stop - from < 512 ? stop - from : 512;\n");
    put_lanes(e, 512);
    for (int d = e->s->kept; d < e->s->rank; d++)
        put_for(e, d, "        ");
    put(e, "        {\n        if (++steps > 128) {\n"
           "        PUT_AWAY\n        steps = 1;\n        }\n"
           "#pragma GCC ivdep\n%s", column);
    put_loads(e, "            ");
    put(e, "            lane[k] = FOLD(lane[k], ");
    put_piece(e, e->s->last);
    put(e, ");\n        }\n        }\n        JOIN(top)\n%s"
           "            ", column);
    put_result(e);
    put(e, "lane[k];\n        }\n    }\n");
}
static void put_fold_of_rows(const emitter *e)
{
    const int r = e->s->rank - 1;
    const long long n = (long long)e->s->size[r], whole = n - n % 16;
    const int groups = n < 1024 ? (int)(n + 15) / 16 : 64;
    for (int d = 0; d < e->s->kept; d++)
        put_for(e, d, "    ");
    put(e, "    {\n        enum { width = 16 };\n");
    put_lanes(e, 16);
    for (int d = e->s->kept; d < r; d++)
        put_for(e, d, "        ");
    put(e, "        for (int64_t at = 0; at < %lld;) {\n"
           "        if ((steps += %d) > 64) {\n        PUT_AWAY\n"
           "        steps = %d;\n        }\n"
           "        const int64_t stop = at + 1024 < %lld ? at + 1024 "
           ": %lld;\n        for (; at < stop; at += 16)\n", n,
        groups, groups, whole, whole);
    for (int tail = 0; tail < 2; tail++) {
        if (tail)
            put(e, "        if (at == %lld) {\n", whole);
        put(e, "            for (int k = 0; k < %lld; k++) {\n"
               "                const int64_t i%d = at + k;\n",
            tail ? n - whole : 16, r);
        put_loads(e, "                ");
        put(e, "                lane[k] = FOLD(lane[k], ");
        put_piece(e, e->s->last);
        put(e, ");\n            }\n");
    }
    put(e, "        at = %lld;\n        }\n        }\n"
           "        JOIN(top)\n"
           "        for (int half = 8; half > 0; half /= 2)\n"
           "            for (int k = 0; k < half; k++)\n"
           "                lane[k] = FOLD(lane[k], lane[k + half]);\n"
           "        ", n);
    put_result(e);
    put(e, "lane[0];\n    }\n");
}
static void put_body(const emitter *e)
{
    put_pointers(e);
    int rows = 0;
    TD_EACH(k, e->s, loads)
        rows += e->s->load[k].flat[e->s->rank - 1] == 1;
    if (e->s->rank == e->s->kept)       /* what it folds has size one */
        put_elementwise(e);
    else if (rows > 0 || e->s->kept == 0)
        put_fold_of_rows(e);
    else
        put_fold_of_columns(e);
    put(e, "    return 1;\n}\n");
}

/* codegen: function put_kernel */
static int put_kernel(const emitter *e, const td_text *t, int *kernel,
                      int count)
{
    const long begin = ftell(e->f);
    put(e, "\nstatic _Bool kernel_%d(void *context, int64_t begin,\n"
           "                      int64_t end, int worker)\n", count);
    kernel[count] = (int)ftell(e->f);
    put(e, "{\n    void *const *memory = context;\n");
    put_body(e);
    fflush(e->f);
    const char *text = t->at + kernel[count];
    const size_t length = (size_t)(ftell(e->f) - kernel[count]);
    int same = 0;
    while (memcmp(t->at + kernel[same], text, length) != 0)
        same++;
    if (same < count)
        fseek(e->f, begin, SEEK_SET);
    return same;
}
static void put_kernels(emitter *e, const td_text *t, int *of,
                        int *kernel)
{
    int count = 0;
    TD_EACH(n, e->l, stages) {
        e->s = &e->l->stage[n];
        if (e->s->kind <= TD_FOLD) {
            of[n] = put_kernel(e, t, kernel, count);
            count += of[n] == count;
        }
    }
    put(e, "\n_Bool (*const treadle_stages[])(void *, int64_t, "
           "int64_t, int) = {\n");
    TD_EACH(n, e->l, stages)
        if (e->l->stage[n].kind <= TD_FOLD)
            put(e, "    [%d] = kernel_%d,\n", n, of[n]);
    put(e, "    [%d] = 0\n};\n%c", e->l->n_stages, 0);
}

char *td_emit_c(const td_lowered *l, bool products)
{
    const size_t room = (size_t)l->n_stages + 1;
    int *of = td_ir_keep(l->program, 2 * room * sizeof *of);
    td_text t;
    (void)products;
    if (of == NULL || !td_text_begin(&t))
        return NULL;
    emitter e = { .f = t.file, .l = l };
    put(&e, "%s%s", td_primitives_text, blocks_text);
    put_rows(&e);
    put_kernels(&e, &t, of, of + room);
    return td_text_end(&t);
}
