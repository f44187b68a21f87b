/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "codegen": edit that, not this file. */
/* Stages, written as C. */
#include <math.h>
#include "compiler/backend-c.h"
#include "compiler/emit.h"

static const char td_primitives_text[] =
#include "primitives-text.inc"
;

/* codegen: text of the folds */
static const char folds_text[] =
    "\n#define NOTHING_SUM 0\n"
    "#define NOTHING_MAX -INFINITY\n"
    "#define NOTHING_MIN INFINITY\n"
    "#define SUM(a, x) ((a) + (x))\n"
    "#define PICK(name, T, sign)                                   \\\n"
    "    static inline T name(T a, T x)                            \\\n"
    "    {                                                         \\\n"
    "        return (x != x) | (x sign a) ? x : a;                 \\\n"
    "    }\n"
    "PICK(max_float, float, >) PICK(max_double, double, >)\n"
    "PICK(min_float, float, <) PICK(min_double, double, <)\n"
    "#define MAX(a, x) _Generic((a), float: max_float, "
    "default: max_double)(a, x)\n"
    "#define MIN(a, x) _Generic((a), float: min_float, "
    "default: min_double)(a, x)\n"
    /* codegen: text of the blocks */
        "#define JOIN(FOLD, times)                                     \\\n"
        "    for (int t = times; t > 0; t--, top--)                    \\\n"
        "        for (int k = 0; k < width; k++)                       \\\n"
        "            lane[k] = FOLD(part[top - 1][k], lane[k]);\n"
        "#define PUT_AWAY(FOLD)                                        \\\n"
        "    JOIN(FOLD, __builtin_ctzll(~blocks))                      \\\n"
        "    for (int k = 0; k < width; k++) {                         \\\n"
        "        part[top][k] = lane[k];                               \\\n"
        "        lane[k] = NOTHING_##FOLD;                             \\\n"
        "    }                                                         \\\n"
        "    blocks++, top++;\n\n";

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
static void put_whole(emitter *e, int64_t i)
{
    if (i == INT64_MIN)
        put_text(e, "(-INT64_MAX - 1)");
    else
        put(e, "%lldll", (long long)i);
}

static void put_number(emitter *e, td_dtype type, td_scalar s)
{
    const double f = td_scalar_double(s);
    if (s.kind != TD_SCALAR_FLOAT) {
        put(e, "((%s)", c_type(type));
        put_whole(e, td_scalar_int(s));
        put_text(e, ")");
    } else if (isfinite(f))
        put(e, "((%s)%.17g%s)", c_type(type), f, f == 0 ? ".0" : "");
    else
        put(e, "((%s)%s)", c_type(type), isnan(f) ? "NAN" : f > 0
            ? "INFINITY" : "-INFINITY");
}

static void put_value(emitter *e, int v, const td_map *m);

/* codegen: functions that write formulas */
static void put_operand(emitter *e, const td_placed *x,
                        const td_ir_step *step, int i, td_dtype type,
                        const td_map *m)
{
    const td_ir_operand *o = &step->in[i];
    if (o->kind == TD_SCALAR) {
        put_number(e, type, o->scalar);
        return;
    }
    const td_map map = td_map_of_operand(m, x->like,
                                         e->l->value[o->value].like);
    put_value(e, o->value, &map);
}

static void put_formula(emitter *e, const td_placed *x,
                        const td_ir_step *step, const td_map *m)
{
    const td_dtype type = x->like->dtype;
    const bool row = td_row_of(step->op) != NULL;
    const td_dtype of = row ? td_type_of_row(e->l, step) : type;
    if (row)
        put(e, "%s_%s(", step->op->name, c_type(of));
    else if (step->op == &td_ops[TD_OP_where])
        put(e, "select(");
    else
        put(e, type == TD_BOOL ? "(0 != " : "(%s)(", c_type(type));
    for (int i = 0; i < step->n_in; i++) {
        put(e, i ? ", " : "");
        put_operand(e, x, step, i, of, m);
    }
    put(e, ")");
}

/* codegen: functions that write C */
static void put_value(emitter *e, int v, const td_map *m)
{
    const td_placed *x = &e->l->value[v];
    const td_ir_step *step = x->step >= 0
        ? &e->l->program->step[x->step] : NULL;
    if (x->kind == TD_NUMBER)
        put(e, "((%s)%d)", c_type(x->like->dtype),
            step->op == &td_ops[TD_OP_ones]
            || step->op == &td_ops[TD_OP_ones_like]);
    else if ((v != e->s->out && td_is_load(e->l, v))
             || x->kind == TD_COUNT) {
        const td_load load = td_load_of(e->l, v, m);
        put(e, "v%d", td_find_load(e->s, &load));
    } else if (x->kind == TD_FOLD)
        put_value(e, step->in[0].value, m);
    else
        put_formula(e, x, step, m);
}
static void put_rows(emitter *e)
{
    const td_program *p = e->l->program;
    bool done[TD_OP_COUNT][TD_BOOL + 1] = { { false } };
    for (int s = 0; s < p->n_steps; s++) {
        const td_op *op = p->step[s].op;
        const td_row *row = td_row_of(op);
        if (row == NULL
            || e->l->value[p->step[s].out[0]].kind != TD_FORMULA)
            continue;
        const td_dtype type = td_type_of_row(e->l, &p->step[s]);
        if (done[op - td_ops][type])
            continue;
        done[op - td_ops][type] = true;
        const char *c = c_type(type);
        const char *result = row->tests ? "uint8_t" : c;
        put(e, "static inline %s %s_%s(", result, op->name, c);
        put(e, row->operands == 1 ? "%s x)" : "%s a, %s b)", c, c);
        put(e, "\n{\n    typedef %s T;\n    return (%s)(", c, result);
        put_text(e, row->text);
        put_text(e, ");\n}\n");
    }
}
static void put_index(emitter *e, const td_load *load)
{
    put(e, "%lldll", (long long)load->offset);
    for (int d = 0; d < e->s->rank; d++)
        if (load->flat[d] != 0)
            put(e, " + i%d * %lldll", d, (long long)load->flat[d]);
}

static void put_pointers(emitter *e)
{
    for (int k = 0; k <= e->s->n_loads; k++) {
        const int v = e->s->load[k].value;
        const bool result = k == e->s->n_loads;
        if (result || e->l->value[v].kind != TD_COUNT)
            put(e, "    %s%s *const %s%d = memory[%d];\n",
                result ? "" : "const ",
                c_type(e->l->value[v].like->dtype),
                result ? "to" : "p", k, k);
    }
}
static void put_loads(emitter *e, const char *indent)
{
    for (int k = 0; k < e->s->n_loads; k++) {
        const td_load *load = &e->s->load[k];
        const td_placed *x = &e->l->value[load->value];
        put(e, "%sconst %s v%d = ", indent, c_type(x->like->dtype), k);
        if (x->kind != TD_COUNT) {
            put(e, "p%d[", k);
            put_index(e, load);
            put(e, "];\n");
            continue;
        }
        const td_value *a = e->l->program->step[x->step].attr;
        put(e, "(%s)(", c_type(x->like->dtype));
        put_whole(e, td_scalar_int(a[0].as.scalar));
        put_text(e, " + ");
        put_whole(e, td_scalar_int(a[2].as.scalar));
        put_text(e, " * (");
        put_index(e, load);
        put(e, "));\n");
    }
}
static void put_for(emitter *e, int d, const char *indent)
{
    if (d == 0)
        put(e, "%sfor (int64_t i0 = begin; i0 < end; i0++)\n", indent);
    else
        put(e, "%sfor (int64_t i%d = 0; i%d < %lldll; i%d++)\n", indent,
            d, d, (long long)e->s->size[d], d);
}

static void put_result(emitter *e, const td_map *all)
{
    put(e, "to%d[", e->s->n_loads);
    put_index(e, &e->s->load[e->s->n_loads]);
    put(e, "] = ");
    if (all != NULL)
        put_value(e, e->s->out, all);
}
static void put_elementwise(emitter *e, const td_map *all)
{
    for (int d = 0; d < e->s->rank; d++) {
        if (d == e->s->rank - 1)
            put(e, "#pragma GCC ivdep\n");
        put_for(e, d, "    ");
    }
    put(e, "    {\n");
    put_loads(e, "        ");
    put(e, "        ");
    put_result(e, all);
    put(e, ";\n    }\n");
}
static const char *fold_name(const emitter *e)
{
    const int op = (int)(e->l->program->step[e->s->step].op - td_ops);
    return op == TD_OP_sum ? "SUM" : op == TD_OP_amax ? "MAX" : "MIN";
}

static void put_lanes(emitter *e, int most)
{
    put(e, "        %s lane[%d], part[48][%d];\n"
           "        uint64_t blocks = 0;\n"
           "        int top = 0, steps = 0;\n"
           "        for (int k = 0; k < width; k++)\n"
           "            lane[k] = NOTHING_%s;\n",
        c_type(e->l->value[e->s->out].like->dtype), most, most,
        fold_name(e));
}
static void put_fold_of_columns(emitter *e, const td_map *all)
{
    const int j = e->s->kept - 1;
    const char *fold = fold_name(e);
    char column[120];
    for (int d = 0; d < j; d++)
        put_for(e, d, "    ");
    snprintf(column, sizeof column,
             "        for (int k = 0; k < width; k++) {\n"
             "            const int64_t i%d = from + k;\n", j);
    put(e, "    for (int64_t from = %s, stop = ",
        j > 0 ? "0" : "begin");
    put(e, j > 0 ? "%lld" : "end", (long long)e->s->size[j]);
    put(e, "; from < stop; from += 512) {\n        const int width = "
           "stop - from < 512 ? stop - from : 512;\n");
    put_lanes(e, 512);
    for (int d = e->s->kept; d < e->s->rank; d++)
        put_for(e, d, "        ");
    put(e, "        {\n        if (++steps > 128) {\n"
           "        PUT_AWAY(%s)\n        steps = 1;\n        }\n"
           "#pragma GCC ivdep\n%s", fold, column);
    put_loads(e, "            ");
    put(e, "            lane[k] = %s(lane[k], ", fold);
    put_value(e, e->s->out, all);
    put(e, ");\n        }\n        }\n        JOIN(%s, top)\n%s"
           "            ", fold, column);
    put_result(e, NULL);
    put(e, "lane[k];\n        }\n    }\n");
}
static void put_fold_of_rows(emitter *e, const td_map *all)
{
    const int r = e->s->rank - 1;
    const long long n = (long long)e->s->size[r], whole = n - n % 16;
    const char *fold = fold_name(e);
    for (int d = 0; d < e->s->kept; d++)
        put_for(e, d, "    ");
    put(e, "    {\n        enum { width = 16 };\n");
    put_lanes(e, 16);
    for (int d = e->s->kept; d < r; d++)
        put_for(e, d, "        ");
    put(e, "        for (int64_t at = 0; at < %lld;) {\n"
           "        if ((steps += %d) > 64) {\n        PUT_AWAY(%s)\n"
           "        steps = %d;\n        }\n"
           "        const int64_t stop = at + 1024 < %lld ? at + 1024 "
           ": %lld;\n        for (; at < stop; at += 16)\n", n,
        n < 1024 ? (int)(n + 15) / 16 : 64, fold,
        n < 1024 ? (int)(n + 15) / 16 : 64, whole, whole);
    for (int tail = 0; tail < 2; tail++) {
        if (tail)
            put(e, "        if (at == %lld) {\n", whole);
        put(e, "            for (int k = 0; k < %lld; k++) {\n"
               "                const int64_t i%d = at + k;\n",
            tail ? n - whole : 16, r);
        put_loads(e, "                ");
        put(e, "                lane[k] = %s(lane[k], ", fold);
        put_value(e, e->s->out, all);
        put(e, ");\n            }\n");
    }
    put(e, "        at = %lld;\n        }\n        }\n"
           "        JOIN(%s, top)\n"
           "        for (int half = 8; half > 0; half /= 2)\n"
           "            for (int k = 0; k < half; k++)\n"
           "                lane[k] = %s(lane[k], lane[k + half]);\n"
           "        ", n, fold, fold);
    put_result(e, NULL);
    put(e, "lane[0];\n    }\n");
}
static void put_body(emitter *e)
{
    td_map all;
    for (int d = 0; d < TD_MAX_RANK; d++)
        all.loop[d] = d;
    put_pointers(e);
    int rows = 0;
    for (int k = 0; k < e->s->n_loads; k++)
        rows += e->s->load[k].flat[e->s->rank - 1] == 1;
    if (e->s->rank == e->s->kept)       /* what it folds has size one */
        put_elementwise(e, &all);
    else if (rows > 0 || e->s->kept == 0)
        put_fold_of_rows(e, &all);
    else
        put_fold_of_columns(e, &all);
    put(e, "    return 1;\n}\n");
}

typedef struct {
    int from, length;           /* of its text */
} kernel;

static int put_kernel(emitter *e, kernel *k, int count)
{
    const int begin = e->length;
    put(e, "\nstatic _Bool kernel_%d(void *context, int64_t begin,\n"
           "                      int64_t end, int worker)\n", count);
    k[count].from = e->length;
    put_text(e, "{\n    void *const *memory = context;\n");
    put_body(e);
    k[count].length = e->length - k[count].from;
    int same = 0;
    while (!td_failed() && same < count
           && (k[same].length != k[count].length
               || memcmp(e->text + k[same].from, e->text
                         + k[count].from, (size_t)k[same].length) != 0))
        same++;
    if (same < count)
        e->length = begin;
    return same;
}
static void put_table(emitter *e, const int *of)
{
    put(e, "\n_Bool (*const treadle_stages[])(void *, int64_t, "
           "int64_t, int) = {\n");
    for (int n = 0; n < e->l->n_stages; n++)
        if (e->l->stage[n].kind <= TD_FOLD)
            put(e, "    [%d] = kernel_%d,\n", n, of[n]);
    put(e, "    [%d] = 0\n};\n", e->l->n_stages);
}

char *td_emit_c(const td_lowered *l, int *room)
{
    emitter e = { .l = l };
    const size_t stages = (size_t)l->n_stages + 1;
    kernel *k = td_alloc_array(stages, sizeof *k);
    int *of = td_alloc_array(stages, sizeof *of), count = 0;
    void *locale = td_locale_begin();
    put_text(&e, td_primitives_text);
    put_text(&e, folds_text);
    put_rows(&e);
    for (int n = 0; k && of && n < l->n_stages; n++) {
        e.s = &l->stage[n];
        if (e.s->kind > TD_FOLD)
            continue;
        of[n] = put_kernel(&e, k, count);
        count += of[n] == count;
    }
    if (of != NULL)
        put_table(&e, of);
    td_locale_end(locale);
    td_free(k, stages * sizeof *k);
    td_free(of, stages * sizeof *of);
    *room = e.room;
    return e.text;
}
