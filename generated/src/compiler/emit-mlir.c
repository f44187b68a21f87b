/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "mlir": edit that, not this file. */
/* Stages, written as MLIR. */
#include <stdarg.h>
#include "compiler/backend-mlir.h"
#include "ops/formula.h"

enum { LANES = 16 };

/* mlir: struct writer */
typedef struct {
    FILE *f;
    const td_lowered *l;
    const td_stage *s;
    int names, depth;       /* given so far; of the loops */
    int dim, lanes;         /* elements at once, in this dimension */
    int64_t from, upto;     /* of that dimension */
    const td_op *row;       /* whose formula is being written */
    bool products;          /* are written, and not called */
    bool *used;             /* by a part: a mark a value */
} writer;

/* mlir: functions that name values */
static void indent(writer *w)
{
    fprintf(w->f, "%*s", 2 * w->depth + 2, "");
}

__attribute__((format(printf, 2, 3)))
static int name(writer *w, const char *format, ...)
{
    va_list args;
    indent(w);
    fprintf(w->f, "%%%d = ", w->names);
    va_start(args, format);
    vfprintf(w->f, format, args);
    va_end(args);
    fputc('\n', w->f);
    return w->names++;
}
typedef struct {
    char text[32];
} word;

static const char *element(td_dtype type, bool in_memory)
{
    static const char *const names[TD_DTYPE_COUNT] = {
        [TD_FLOAT32] = "f32", [TD_FLOAT64] = "f64", [TD_INT64] = "i64",
        [TD_INT32] = "i32", [TD_UINT8] = "i8", [TD_BOOL] = "i1",
    };
    return type == TD_BOOL && in_memory ? "i8" : names[type];
}

static word type_word(const char *of, int lanes)
{
    word t;
    if (lanes > 1)
        snprintf(t.text, sizeof t.text, "vector<%dx%s>", lanes, of);
    else
        snprintf(t.text, sizeof t.text, "%s", of);
    return t;
}

static word type_of(const writer *w, td_dtype type)
{
    return type_word(element(type, false), w->lanes);
}
static int two(writer *w, const char *what, int x, int y, td_dtype type)
{
    return name(w, "%s %%%d, %%%d : %s", what, x, y,
                type_of(w, type).text);
}
static int constant(writer *w, td_dtype type, td_scalar s)
{
    const double x = td_scalar_double(s);
    const bool wide = type == TD_FLOAT64;
    char text[48];
    if (!td_dtype_is_floating(type))
        snprintf(text, sizeof text, "%" PRId64, td_scalar_int(s));
    else if (isnan(x))
        snprintf(text, sizeof text, wide ? "0x7FF8000000000000"
                 : "0x7FC00000");
    else if (isinf(x))
        snprintf(text, sizeof text, wide ? "0x%sFF0000000000000"
                 : "0x%sF800000", x > 0 ? "7" : "F");
    else
        snprintf(text, sizeof text, x == floor(x) && fabs(x) < 1e6
                 ? "%.1f" : "%.17e", x);
    if (type == TD_BOOL)
        strcpy(text, x != 0 ? "true" : "false");
    const word t = type_of(w, type);
    if (w->lanes > 1)
        return name(w, "arith.constant dense<%s> : %s", text, t.text);
    return type == TD_BOOL ? name(w, "arith.constant %s", text)
                           : name(w, "arith.constant %s : %s", text,
                                  t.text);
}
static int convert(writer *w, int x, td_dtype from, td_dtype to)
{
    const bool real = td_dtype_is_floating(from);
    const bool unsign = from == TD_BOOL || from == TD_UINT8;
    const char *how = unsign ? "extui" : "extsi";
    if (from == to)
        return x;
    if (to == TD_BOOL)
        return two(w, real ? "arith.cmpf une," : "arith.cmpi ne,", x,
                   constant(w, from, td_int(0)), from);
    if (real)
        how = to == TD_FLOAT64 ? "extf" : to == TD_FLOAT32 ? "truncf"
            : "fptosi";
    else if (td_dtype_is_floating(to))
        how = unsign ? "uitofp" : "sitofp";
    else if (td_dtype_size(to) < td_dtype_size(from))
        how = "trunci";
    return name(w, "arith.%s %%%d : %s to %s", how, x,
                type_of(w, from).text, type_of(w, to).text);
}

/* mlir: table of the dialects' words */
static const struct {
    const char *word, *operators;
} dialects[] = {
    { "arith.%sf", " add sub mul div neg " }, { "math.%sf", " pow " },
    { "math.%s", " abs exp log sqrt sin cos tanh erf expm1 log1p log2 "
                 "log10 exp2 floor ceil atan atan2 " }
};

static bool word_of(const td_op *op, word *out)
{
    char name[40];
    snprintf(name, sizeof name, " %s ", op->name);
    for (int i = 0; i < 3; i++)
        if (strstr(dialects[i].operators, name) != NULL)
            return snprintf(out->text, sizeof out->text,
                            dialects[i].word, op->name) > 0;
    return false;
}

/* mlir: functions that write terms */
static bool comparison(int op, td_dtype type, word *out)
{
    const bool real = td_dtype_is_floating(type);
    const bool equal = op == TD_OP_eq || op == TD_OP_ne;
    const bool unsign = type == TD_BOOL || type == TD_UINT8;
    if (!equal && op != TD_OP_lt && op != TD_OP_le && op != TD_OP_gt
        && op != TD_OP_ge)
        return false;
    snprintf(out->text, sizeof out->text, "arith.cmp%s%s%s,",
             real ? "f " : "i ", real ? op == TD_OP_ne ? "u" : "o"
             : equal ? "" : unsign ? "u" : "s", td_ops[op].name);
    return true;
}
static int choose(writer *w, int truth, int a, int b, td_dtype type)
{
    const word c = type_of(w, TD_BOOL), t = type_of(w, type);
    const bool wide = w->lanes > 1;
    return name(w, "arith.select %%%d, %%%d, %%%d : %s%s%s", truth, a,
                b, wide ? c.text : "", wide ? ", " : "", t.text);
}

typedef struct {
    int name;
    td_dtype type;
} typed;

static int write_row(writer *w, const td_op *op, td_dtype type,
                     const int *operand, td_dtype result);

static typed write_term(writer *w, const td_term *t, td_dtype type,
                        const typed *at)
{
    const typed a = at[t->arg[0]], b = at[t->arg[t->n > 1]];
    word how;
    const bool truths = a.type == TD_BOOL && b.type == TD_BOOL;
    if (truths && (t->op == TD_OP_add || t->op == TD_OP_mul))
        return (typed){ two(w, t->op == TD_OP_add ? "arith.ori"
                            : "arith.andi", a.name, b.name, TD_BOOL),
                        TD_BOOL };
    const int y = convert(w, b.name, b.type, type);
    if (t->op == TD_OP_where) {
        const typed c = at[t->arg[2]];
        return (typed){ choose(w, a.name, y,
                     convert(w, c.name, c.type, type), type), type };
    }
    const int x = convert(w, a.name, a.type, type);
    /* mlir: write the comparison or the operation */
    if (comparison(t->op, type, &how))
        return (typed){ two(w, how.text, x, y, type), TD_BOOL };
    const td_op *op = &td_ops[t->op];
    const int both[] = { x, y };
    const bool named = word_of(op, &how);
    if (!named && op != w->row && td_row_of(op) != NULL)
        return (typed){ write_row(w, op, type, both, type), type };
    if (named && td_dtype_is_floating(type))
        return (typed){ t->n > 1 ? two(w, how.text, x, y, type)
            : name(w, "%s %%%d : %s", how.text, x, type_of(w, type).text),
            type };
    td_fail(TD_ERROR_UNSUPPORTED, "compile", "the mlir back end has no "
            "word for '%s'", op->name);
    return a;
}
static int write_row(writer *w, const td_op *op, td_dtype type,
                     const int *operand, td_dtype result)
{
    td_formula f;
    typed at[TD_TERMS] = { { 0 } };
    const td_op *const outer = w->row;
    w->row = op;
    if (!td_formula_parse(td_row_of(op)->text, &f)) {
        td_fail(TD_ERROR_UNSUPPORTED, "compile", "the mlir back end "
                "cannot read the formula of '%s'", op->name);
        return 0;
    }
    for (int i = 0; i < f.count && !td_failed(); i++) {
        const td_term *t = &f.term[i];
        if (t->kind == TD_TERM_CONSTANT)
            at[i] = (typed){ constant(w, type, td_float(t->constant)),
                             type };
        else if (t->kind == TD_TERM_NAME)
            at[i] = (typed){ operand[t->name == 'b'], type };
        else
            at[i] = write_term(w, t, type, at);
    }
    w->row = outer;
    const typed last = at[f.count - 1];
    return convert(w, last.name, last.type, result);
}

/* mlir: functions that load and store */
static word memory_type(const writer *w, int v)
{
    const td_tensor *x = w->l->value[v].like;
    word t;
    snprintf(t.text, sizeof t.text, "memref<%" PRId64 "x%s>",
        x->storage->bytes / (int64_t)td_dtype_size(x->dtype),
        element(x->dtype, true));
    return t;
}

typedef struct {
    char text[(TD_MAX_RANK + 1) * 32];  /* terms of at most 31 */
} index_text;
static index_text index_of(const writer *w, const td_load *load)
{
    /* index: exercise index */
    index_text t;
    int n = 0;
    for (int d = 0; d < w->s->rank; d++)
        if (load->flat[d] != 0)
            n += snprintf(t.text + n, sizeof t.text - (size_t)n,
                          "%%i%d * %" PRId64 " + ", d,
                          load->flat[d]);
    snprintf(t.text + n, sizeof t.text - (size_t)n, "%" PRId64,
             load->offset);
    return t;
}
static int write_load(writer *w, const td_load *load)
{
    const td_dtype type = load->type;
    const char *of = element(type, true);
    const index_text at = index_of(w, load);
    const word m = memory_type(w, load->value);
    const word t = type_word(of, w->lanes), b = type_of(w, type);
    int x;
    if (w->lanes > 1 && load->flat[w->dim] == 1)
        x = name(w, "affine.vector_load %%m%d[%s] : %s, %s",
                 load->value, at.text, m.text, t.text);
    else
        x = name(w, "affine.load %%m%d[%s] : %s", load->value, at.text,
                 m.text);
    if (w->lanes > 1 && load->flat[w->dim] != 1)
        x = name(w, "vector.broadcast %%%d : %s to %s", x, of, t.text);
    return type != TD_BOOL ? x
        : name(w, "arith.trunci %%%d : %s to %s", x, t.text, b.text);
}

/* mlir: functions that write pieces */
static int write_piece(writer *w, const td_piece *x, const int *made)
{
    int operand[3] = { 0 };
    if (x->kind == TD_NUMBER)
        return constant(w, x->type, x->number);
    if (x->kind == TD_LEAF)
        return write_load(w, &w->s->load[x->load]);
    for (int i = 0; i < x->n; i++)
        operand[i] = made[x->arg[i] - w->s->first];
    if (td_row_of(x->op) != NULL)
        return write_row(w, x->op, x->of, operand, x->type);
    if (x->n > 1)
        return choose(w, operand[0], operand[1], operand[2], x->type);
    return convert(w, operand[0], w->l->piece[x->arg[0]].type, x->type);
}

/* mlir: functions that write bodies */
static int write_body(writer *w)
{
    int made[4 * TD_FORMULA_SIZE], last = 0;
    for (int k = w->s->first; k <= w->s->last; k++)
        made[k - w->s->first] = last
            = write_piece(w, &w->l->piece[k], made);
    return last;
}

static void write_store(writer *w, int x)
{
    const td_load *to = &w->s->load[w->s->n_loads];
    const td_dtype type = to->type;
    const word t = type_word(element(type, true), w->lanes);
    const word m = memory_type(w, to->value);
    if (type == TD_BOOL)
        x = name(w, "arith.extui %%%d : %s to %s", x,
                 type_of(w, TD_BOOL).text, t.text);
    indent(w);
    fprintf(w->f, "affine.%sstore %%%d, %%m%d[%s] : %s%s%s\n",
        w->lanes > 1 ? "vector_" : "", x, to->value,
        index_of(w, to).text, m.text, w->lanes > 1 ? ", " : "",
        w->lanes > 1 ? t.text : "");
}

/* mlir: functions that write loops */
static void open_loop(writer *w, int d)
{
    const bool wide = d == w->dim;
    indent(w);
    fprintf(w->f, "affine.for %%i%d = %" PRId64 " to %" PRId64
        " step %d {\n", d, wide ? w->from : 0,
        wide ? w->upto : w->s->size[d], wide ? w->lanes : 1);
    w->depth++;
}

static void close_loop(writer *w)
{
    w->depth--;
    indent(w);
    fprintf(w->f, "}\n");
}

static void take_piece(writer *w, int lanes, int tail)
{
    const int64_t n = w->s->size[w->dim], whole = n - n % lanes;
    w->from = tail ? whole : 0;
    w->upto = tail ? n : whole;
    w->lanes = tail ? (int)(n - whole) : lanes;
}

/* mlir: functions that fold */
static int combine(writer *w, int so_far, int x)
{
    const int both[] = { so_far, x };
    return write_row(w, w->s->fold, w->s->type, both, w->s->type);
}
static int fold(writer *w, int d, int64_t span, int block)
{
    const word t = type_of(w, w->s->type);
    const bool wide = d == w->dim;
    const int64_t unit = wide ? w->lanes : 1;
    const int64_t from = wide ? w->from : 0;
    const int64_t upto = wide ? w->upto : w->s->size[d];
    if (d == w->s->rank)
        return write_body(w);
    if (span == 0)
        for (span = unit; w->s->kind == TD_FOLD
                          && span < (upto - from + 63) / 64; span *= 64)
            ;
    const int zero = constant(w, w->s->type, w->s->nothing),
        after = w->names++;
    const int inside = w->names++, next = w->names++;
    indent(w);
    fprintf(w->f, "%%%d = affine.for ", after);
    fprintf(w->f, span > unit ? "%%%d = " : "%%i%d = ",
        span > unit ? next : d);
    if (block < 0)
        fprintf(w->f, "%" PRId64 " to %" PRId64, from, upto);
    else
        fprintf(w->f, "affine_map<(d0) -> (d0)>(%%%d) to min affine_map"
            "<(d0) -> (d0 + %" PRId64 ", %" PRId64 ")>(%%%d)", block,
            64 * span, upto, block);
    fprintf(w->f, " step %" PRId64 " iter_args(%%%d = %%%d) -> (%s) {"
            "\n", span, inside, zero, t.text);
    w->depth++;
    const int x = combine(w, inside, span > unit
        ? fold(w, d, span / 64, next) : fold(w, d + 1, 0, -1));
    indent(w);
    fprintf(w->f, "affine.yield %%%d : %s\n", x, t.text);
    close_loop(w);
    return after;
}
static int fold_lanes(writer *w, int x)
{
    const word t = type_of(w, w->s->type);
    const int n = w->lanes;
    int lane[LANES] = { x };
    w->lanes = 1;
    for (int k = 0; n > 1 && k < n; k++)
        lane[k] = name(w, "vector.extract %%%d[%d] : %s", x, k, t.text);
    for (int m = n; m > 1; m = (m + 1) / 2)
        for (int k = 0; k < m / 2; k++)
            lane[k] = combine(w, lane[k], lane[m - 1 - k]);
    return lane[0];
}

/* mlir: functions that write stages */
static int choose_lanes(writer *w)
{
    const td_stage *s = w->s;
    int rows = 0, lanes = s->kind == TD_PRODUCT ? 1 : LANES;
    for (int k = 0; k <= s->n_loads; k++)
        rows += s->load[k].flat[s->rank - 1] == 1;
    w->dim = s->kind == TD_FORMULA || rows > 0 ? s->rank - 1
           : s->kept - 1;
    for (int k = 0; k <= s->n_loads; k++)
        if (s->load[k].flat[w->dim] < 0 || s->load[k].flat[w->dim] > 1)
            lanes = 1;
    if (w->dim < s->kept && s->load[s->n_loads].flat[w->dim] != 1)
        lanes = 1;
    return lanes;
}
static int fold_pieces(writer *w, int lanes)
{
    int total = -1;
    for (int tail = 0; tail < 2; tail++) {
        take_piece(w, lanes, tail);
        if (w->from == w->upto)
            continue;
        const int x = fold_lanes(w, fold(w, w->s->kept, 0, -1));
        total = total < 0 ? x : combine(w, total, x);
    }
    w->lanes = 1;
    return total;
}

static void write_nest(writer *w, int d, int lanes)
{
    if (d < w->s->kept) {
        open_loop(w, d);
        write_nest(w, d + 1, lanes);
        close_loop(w);
    } else {
        write_store(w, w->s->kind == TD_FORMULA ? write_body(w)
            : w->dim < w->s->kept ? fold(w, w->s->kept, 0, -1)
            : fold_pieces(w, lanes));
    }
}

static void write_loops(writer *w)
{
    const int lanes = choose_lanes(w);
    if (w->dim >= w->s->kept)
        write_nest(w, 0, lanes);
    for (int tail = 0; tail < 2 && w->dim < w->s->kept; tail++) {
        take_piece(w, lanes, tail);
        if (w->from < w->upto)
            write_nest(w, 0, lanes);
    }
}

/* mlir: functions that write parts */
static int part_end(const writer *w, int first)
{
    const td_lowered *l = w->l;
    int n = first;
    while (n < l->n_stages && l->stage[n].kind != TD_CALL
           && (l->stage[n].kind != TD_PRODUCT || w->products))
        n++;
    return n;
}
static void write_list(const writer *w, int first, int end, bool types)
{
    const char *between = "";
    for (const td_stage *s = &w->l->stage[first]; s < &w->l->stage[end];
         s++)
        for (int k = 0; k <= s->n_loads; k++)
            w->used[s->load[k].value]
                = w->l->value[s->load[k].value].stored;
    TD_EACH(v, w->l->program, values) {
        if (!w->used[v])
            continue;
        fprintf(w->f, types ? "%s%%m%d: %s" : "%sm[%d]", between, v,
                memory_type(w, v).text);
        between = ", ";
        w->used[v] = false;
    }
}
typedef enum { AS_MLIR, AS_C, AS_ROW, FORMS } part_form;

static void write_function(writer *w, int n, int end)
{
    fprintf(w->f, "func.func @part_%d(", n);
    write_list(w, n, end, true);
    fputs(") {\n", w->f);
    for (w->names = 0; n < end && !td_failed(); n++) {
        w->s = &w->l->stage[n];
        write_loops(w);
    }
    fputs("  return\n}\n", w->f);
}

static void write_part(writer *w, int n, int end, part_form form)
{
    if (form == AS_MLIR) {
        write_function(w, n, end);
    } else if (form == AS_C) {
        fprintf(w->f, "void part_%d();\nstatic _Bool stage_%d("
                "void *context, int64_t begin,\n    int64_t end, "
                "int worker)\n{\n    void **m = context;\n"
                "    part_%d(", n, n, n);
        write_list(w, n, end, false);
        fputs(");\n    return 1;\n}\n", w->f);
    } else {
        fprintf(w->f, "    [%d] = stage_%d,\n", n, n);
    }
}

/* mlir: function td_emit_mlir */
char *td_emit_mlir(const td_lowered *l, bool products)
{
    static const char *const titles[FORMS] = { "",
        "%c#include <stdint.h>\n",
        ("_Bool (*const treadle_stages[])(void *, int64_t, "
         "int64_t, int) = {\n") };
    td_text t;
    bool *used = td_ir_keep(l->program, (size_t)l->program->n_values);
    if (used == NULL || !td_text_begin(&t))
        return NULL;
    writer w = { .f = t.file, .l = l, .products = products,
                 .used = used };
    for (part_form form = AS_MLIR; form < FORMS; form++) {
        fprintf(t.file, titles[form], 0);
        for (int n = 0, end; n < l->n_stages; n = end + 1) {
            end = part_end(&w, n);
            if (end > n)
                write_part(&w, n, end, form);
        }
    }
    fprintf(t.file, "    [%d] = 0\n};\n", l->n_stages);
    return td_text_end(&t);
}
