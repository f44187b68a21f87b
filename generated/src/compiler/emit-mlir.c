/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "mlir": edit that, not this file. */
/* Stages, written as MLIR. */
#include <inttypes.h>
#include <math.h>
#include "compiler/backend-mlir.h"
#include "compiler/emit.h"
#include "ops/formula.h"

enum { LANES = 16 };

/* mlir: struct writer */
typedef struct {
    emitter to;
    const td_lowered *l;
    const td_stage *s;
    int names, depth;       /* given so far; of the loops */
    int dim, lanes;         /* elements at once, in this dimension */
    int64_t from, upto;     /* of that dimension */
    int load[TD_LOADS + 1]; /* names of what was loaded */
    const td_op *row;       /* whose formula is being written */
    bool products;          /* are written, and not called */
} writer;

/* mlir: functions that name values */
static void indent(writer *w)
{
    put(&w->to, "%*s", 2 * w->depth + 2, "");
}

__attribute__((format(printf, 2, 3)))
static int name(writer *w, const char *format, ...)
{
    va_list args;
    indent(w);
    put(&w->to, "%%%d = ", w->names);
    va_start(args, format);
    put_list(&w->to, format, args);
    va_end(args);
    put_text(&w->to, "\n");
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

static word vector_word(const char *of, int lanes)
{
    word t;
    snprintf(t.text, sizeof t.text, "vector<%dx%.3s>", lanes, of);
    return t;
}

static word type_word(const char *of, int lanes)
{
    word t = { "" };
    if (lanes > 1)
        return vector_word(of, lanes);
    strcpy(t.text, of);
    return t;
}

static word type_of(const writer *w, td_dtype type)
{
    return type_word(element(type, false), w->lanes);
}
static int two(writer *w, const char *what, int x, int y, word t)
{
    return name(w, "%s %%%d, %%%d : %s", what, x, y, t.text);
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
    const word a = type_of(w, from), b = type_of(w, to);
    const char *how = unsign ? "extui" : "extsi";
    if (from == to)
        return x;
    if (to == TD_BOOL)
        return two(w, real ? "arith.cmpf une," : "arith.cmpi ne,", x,
                   constant(w, from, td_int(0)), a);
    if (real)
        how = to == TD_FLOAT64 ? "extf" : to == TD_FLOAT32 ? "truncf"
            : "fptosi";
    else if (td_dtype_is_floating(to))
        how = unsign ? "uitofp" : "sitofp";
    else if (td_dtype_size(to) < td_dtype_size(from))
        how = "trunci";
    return name(w, "arith.%s %%%d : %s to %s", how, x, a.text, b.text);
}

/* mlir: table of the dialects' words */
static const char *const words[TD_OP_COUNT] = {
    [TD_OP_add] = "arith.addf", [TD_OP_sub] = "arith.subf",
    [TD_OP_mul] = "arith.mulf", [TD_OP_div] = "arith.divf",
    [TD_OP_neg] = "arith.negf", [TD_OP_abs] = "math.abs",
    [TD_OP_exp] = "math.exp", [TD_OP_log] = "math.log",
    [TD_OP_sqrt] = "math.sqrt", [TD_OP_sin] = "math.sin",
    [TD_OP_cos] = "math.cos", [TD_OP_tanh] = "math.tanh",
    [TD_OP_pow] = "math.powf", [TD_OP_erf] = "math.erf",
    [TD_OP_expm1] = "math.expm1", [TD_OP_log1p] = "math.log1p",
    [TD_OP_log2] = "math.log2", [TD_OP_log10] = "math.log10",
    [TD_OP_exp2] = "math.exp2", [TD_OP_floor] = "math.floor",
    [TD_OP_ceil] = "math.ceil", [TD_OP_atan] = "math.atan",
    [TD_OP_atan2] = "math.atan2",
};

/* mlir: functions that write terms */
#define COMPARISON(op, r, s, u) { TD_OP_##op, "arith.cmpf " r ",", \
        "arith.cmpi " s ",", "arith.cmpi " u "," }
static const char *comparison(int op, td_dtype type)
{
    static const struct { int op; const char *r, *s, *u; } table[] = {
        COMPARISON(eq, "oeq", "eq", "eq"),
        COMPARISON(ne, "une", "ne", "ne"),
        COMPARISON(lt, "olt", "slt", "ult"),
        COMPARISON(le, "ole", "sle", "ule"),
        COMPARISON(gt, "ogt", "sgt", "ugt"),
        COMPARISON(ge, "oge", "sge", "uge"),
    };
    for (int i = 0; i < 6; i++)
        if (table[i].op == op)
            return td_dtype_is_floating(type) ? table[i].r
                : type == TD_BOOL || type == TD_UINT8 ? table[i].u
                : table[i].s;
    return NULL;
}
static int choose(writer *w, int truth, int a, int b, td_dtype type)
{
    const word c = type_of(w, TD_BOOL), t = type_of(w, type);
    if (w->lanes == 1)
        return name(w, "arith.select %%%d, %%%d, %%%d : %s", truth, a,
                    b, t.text);
    return name(w, "arith.select %%%d, %%%d, %%%d : %s, %s", truth, a,
                b, c.text, t.text);
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
    const char *how = comparison(t->op, type);
    const bool truths = a.type == TD_BOOL && b.type == TD_BOOL;
    if (truths && (t->op == TD_OP_add || t->op == TD_OP_mul))
        return (typed){ two(w, t->op == TD_OP_add ? "arith.ori"
                            : "arith.andi", a.name, b.name,
                            type_of(w, TD_BOOL)), TD_BOOL };
    const int y = convert(w, b.name, b.type, type);
    if (t->op == TD_OP_where) {
        const typed c = at[t->arg[2]];
        return (typed){ choose(w, a.name, y,
                     convert(w, c.name, c.type, type), type), type };
    }
    const int x = convert(w, a.name, a.type, type);
    /* mlir: write the comparison or the operation */
    const word of = type_of(w, type);
    if (how != NULL)
        return (typed){ two(w, how, x, y, of), TD_BOOL };
    const td_op *op = &td_ops[t->op];
    const int both[] = { x, y };
    if (words[t->op] == NULL && op != w->row && td_row_of(op) != NULL)
        return (typed){ write_row(w, op, type, both, type), type };
    if (words[t->op] == NULL || !td_dtype_is_floating(type))
        td_fail(TD_ERROR_UNSUPPORTED, "compile", "the mlir back end has no "
                "word for '%s'", op->name);
    else if (t->n == 1)
        return (typed){ name(w, "%s %%%d : %s", words[t->op], x, of.text),
                        type };
    else
        return (typed){ two(w, words[t->op], x, y, of), type };
    return at[t->arg[0]];
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

/* mlir: functions that name counters */
static word counters(const writer *w)
{
    word t;
    int n = 0;
    for (int d = 0; d < TD_MAX_RANK; d++)
        n += snprintf(t.text + n, sizeof t.text - (size_t)n, "%s%%i%d",
                      d > 0 ? "," : "", d < w->s->rank ? d : 0);
    return t;
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

static index_text index_of(const writer *w, const td_load *load,
                           const char *counter)
{
    index_text t;
    int n = 0;
    for (int d = 0; d < w->s->rank; d++)
        if (load->flat[d] != 0)
            n += snprintf(t.text + n, sizeof t.text - (size_t)n,
                          "%s%d * %" PRId64 " + ", counter, d,
                          load->flat[d]);
    snprintf(t.text + n, sizeof t.text - (size_t)n, "%" PRId64,
             load->offset);
    return t;
}
static int spread(writer *w, int x, const char *of)
{
    const word t = type_word(of, w->lanes);
    return w->lanes == 1 ? x
        : name(w, "vector.broadcast %%%d : %s to %s", x, of, t.text);
}

static int write_load(writer *w, const td_load *load)
{
    const td_dtype type = w->l->value[load->value].like->dtype;
    const char *of = element(type, true);
    const index_text at = index_of(w, load, "%i");
    const word m = memory_type(w, load->value);
    const word t = type_word(of, w->lanes), b = type_of(w, type);
    int x;
    if (w->lanes > 1 && load->flat[w->dim] == 1)
        x = name(w, "affine.vector_load %%m%d[%s] : %s, %s",
                 load->value, at.text, m.text, t.text);
    else
        x = spread(w, name(w, "affine.load %%m%d[%s] : %s", load->value,
                           at.text, m.text), of);
    return type != TD_BOOL ? x
        : name(w, "arith.trunci %%%d : %s to %s", x, t.text, b.text);
}
static int write_count(writer *w, int v, const td_load *load)
{
    static const char *const zero_to_15 = "0, 1, 2, 3, 4, 5, 6, 7, 8, "
        "9, 10, 11, 12, 13, 14, 15";
    const td_value *a = w->l->program->step[w->l->value[v].step].attr;
    const index_text at = index_of(w, load, "d");
    const word t = type_of(w, TD_INT64);
    int x = name(w, "affine.apply affine_map<(d0, d1, d2, d3, d4, d5, "
        "d6, d7) -> (%s)>(%s)", at.text, counters(w).text);
    x = spread(w, name(w, "arith.index_cast %%%d : index to i64", x),
               "i64");
    if (w->lanes > 1 && load->flat[w->dim] == 1)
        x = two(w, "arith.addi", x, name(w,
            "arith.constant dense<[%.*s]> : %s", w->lanes < 11
            ? 3 * w->lanes - 2 : 4 * w->lanes - 12, zero_to_15, t.text),
            t);
    const int by = constant(w, TD_INT64, a[2].as.scalar);
    const int first = constant(w, TD_INT64, a[0].as.scalar);
    x = two(w, "arith.addi", two(w, "arith.muli", x, by, t), first, t);
    return convert(w, x, TD_INT64, w->l->value[v].like->dtype);
}

static int write_value(writer *w, int v, const td_map *m);

/* mlir: functions that write steps */
static int write_step(writer *w, const td_placed *x,
                      const td_ir_step *step, const td_map *m)
{
    const td_dtype type = x->like->dtype;
    const bool row = td_row_of(step->op) != NULL;
    const td_dtype of = row ? td_type_of_row(w->l, step) : type;
    int operand[3] = { 0 };
    td_dtype own = type;
    for (int i = 0; i < step->n_in && i < 3; i++) {
        const td_ir_operand *o = &step->in[i];
        if (o->kind == TD_SCALAR) {
            operand[i] = constant(w, of, o->scalar);
            continue;
        }
        const td_tensor *like = w->l->value[o->value].like;
        const td_map map = td_map_of_operand(m, x->like, like);
        operand[i] = write_value(w, o->value, &map);
        own = like->dtype;
    }
    if (row)
        return write_row(w, step->op, of, operand, type);
    if (step->op == &td_ops[TD_OP_where])
        return choose(w, operand[0], operand[1], operand[2], type);
    return convert(w, operand[0], own, type);
}

/* mlir: functions that write values */
static int write_value(writer *w, int v, const td_map *m)
{
    const td_placed *x = &w->l->value[v];
    const td_ir_step *step = x->step >= 0
        ? &w->l->program->step[x->step] : NULL;
    if (x->kind == TD_NUMBER)
        return constant(w, x->like->dtype, td_int(
            step->op == &td_ops[TD_OP_ones]
            || step->op == &td_ops[TD_OP_ones_like]));
    if (v != w->s->out && td_is_load(w->l, v)) {
        const td_load load = td_load_of(w->l, v, m);
        return w->load[td_find_load(w->s, &load)];
    }
    if (x->kind == TD_COUNT)
        return write_count(w, v, &w->s->load[w->s->n_loads]);
    if (x->kind == TD_FOLD)
        return write_value(w, step->in[0].value, m);
    return write_step(w, x, step, m);
}

/* mlir: functions that write bodies */
static int write_body(writer *w)
{
    td_map all;
    for (int d = 0; d < TD_MAX_RANK; d++)
        all.loop[d] = d;
    for (int k = 0; k < w->s->n_loads; k++) {
        const td_load *load = &w->s->load[k];
        w->load[k] = w->l->value[load->value].stored
            ? write_load(w, load) : write_count(w, load->value, load);
    }
    return write_value(w, w->s->out, &all);
}

static void write_store(writer *w, int x)
{
    const td_load *to = &w->s->load[w->s->n_loads];
    const td_dtype type = w->l->value[to->value].like->dtype;
    const word t = type_word(element(type, true), w->lanes);
    const word m = memory_type(w, to->value);
    if (type == TD_BOOL)
        x = name(w, "arith.extui %%%d : %s to %s", x,
                 type_of(w, TD_BOOL).text, t.text);
    indent(w);
    put(&w->to, "affine.%sstore %%%d, %%m%d[%s] : %s%s%s\n",
        w->lanes > 1 ? "vector_" : "", x, to->value,
        index_of(w, to, "%i").text, m.text, w->lanes > 1 ? ", " : "",
        w->lanes > 1 ? t.text : "");
}

/* mlir: functions that write loops */
static void open_loop(writer *w, int d)
{
    const bool wide = d == w->dim;
    indent(w);
    put(&w->to, "affine.for %%i%d = %" PRId64 " to %" PRId64
        " step %d {\n", d, wide ? w->from : 0,
        wide ? w->upto : w->s->size[d], wide ? w->lanes : 1);
    w->depth++;
}

static void close_loop(writer *w)
{
    w->depth--;
    indent(w);
    put(&w->to, "}\n");
}

static void take_piece(writer *w, int64_t n, int lanes, int tail)
{
    const int64_t whole = n - n % lanes;
    w->from = tail ? whole : 0;
    w->upto = tail ? n : whole;
    w->lanes = tail ? (int)(n - whole) : lanes;
}

/* mlir: functions that fold */
static int combine(writer *w, int so_far, int x)
{
    const int op = (int)(w->l->program->step[w->s->step].op - td_ops);
    const td_dtype type = w->l->value[w->s->out].like->dtype;
    const word t = type_of(w, type);
    if (op == TD_OP_sum)
        return two(w, "arith.addf", so_far, x, t);
    const int nan = two(w, "arith.cmpf une,", x, x, t);
    const int more = two(w, op == TD_OP_amax ? "arith.cmpf ogt,"
                         : "arith.cmpf olt,", x, so_far, t);
    return choose(w, two(w, "arith.ori", nan, more,
                         type_of(w, TD_BOOL)), x, so_far, type);
}

static int nothing(writer *w)
{
    const int op = (int)(w->l->program->step[w->s->step].op - td_ops);
    return constant(w, w->l->value[w->s->out].like->dtype, td_float(
        op == TD_OP_sum ? 0 : op == TD_OP_amax ? -INFINITY : INFINITY));
}
static int fold(writer *w, int d, int64_t span, int block)
{
    const word t = type_of(w, w->l->value[w->s->out].like->dtype);
    const bool wide = d == w->dim;
    const int64_t unit = wide ? w->lanes : 1;
    const int64_t from = wide ? w->from : 0;
    const int64_t upto = wide ? w->upto : w->s->size[d];
    if (d == w->s->rank)
        return write_body(w);
    if (span == 0)
        for (span = unit; span < (upto - from + 63) / 64; span *= 64)
            ;
    const int zero = nothing(w), after = w->names++;
    const int inside = w->names++, next = w->names++;
    indent(w);
    put(&w->to, "%%%d = affine.for ", after);
    put(&w->to, span > unit ? "%%%d = " : "%%i%d = ",
        span > unit ? next : d);
    if (block < 0)
        put(&w->to, "%" PRId64 " to %" PRId64, from, upto);
    else
        put(&w->to, "affine_map<(d0) -> (d0)>(%%%d) to min affine_map"
            "<(d0) -> (d0 + %" PRId64 ", %" PRId64 ")>(%%%d)", block,
            64 * span, upto, block);
    put(&w->to, " step %" PRId64 " iter_args(%%%d = %%%d) -> (%s) {\n",
        span, inside, zero, t.text);
    w->depth++;
    const int x = combine(w, inside, span > unit
        ? fold(w, d, span / 64, next) : fold(w, d + 1, 0, -1));
    indent(w);
    put(&w->to, "affine.yield %%%d : %s\n", x, t.text);
    close_loop(w);
    return after;
}
static int fold_lanes(writer *w, int x)
{
    const word t = type_of(w, w->l->value[w->s->out].like->dtype);
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
    int rows = 0, lanes = LANES;
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
        take_piece(w, w->s->size[w->dim], lanes, tail);
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
        take_piece(w, w->s->size[w->dim], lanes, tail);
        if (w->from < w->upto)
            write_nest(w, 0, lanes);
    }
}

/* mlir: functions that write products */
static void write_product(writer *w)
{
    const td_ir_step *step = &w->l->program->step[w->s->step];
    const td_placed *a = &w->l->value[step->in[0].value];
    const td_placed *b = &w->l->value[step->in[1].value];
    const td_product g = td_product_of(w->l, step);
    const int c = step->out[0];
    const word of = type_word(element(a->like->dtype, true), 1);
    const word to = memory_type(w, c);
    const int64_t size[] = { g.m, g.n, g.k };
    w->depth = 0;
    w->lanes = 1;
    for (int d = 0; d < 3; d++) {
        if (d == 2) {
            /* mlir: begin the element with zero */
            const int zero = name(w, "arith.constant 0.0 : %s", of.text);
            indent(w);
            put(&w->to, "affine.store %%%d, %%m%d[%%i0 * %" PRId64 " + %%i1] : %s"
                "\n", zero, c, g.ldc, to.text);
        }
        indent(w);
        put(&w->to, "affine.for %%i%d = 0 to %" PRId64 " {\n", d,
            size[d]);
        w->depth++;
    }
    /* mlir: add one product to the element */
    const int sum = name(w, "affine.load %%m%d[%%i0 * %" PRId64 " + %%i1] "
                         ": %s", c, g.ldc, to.text);
    const int x = name(w, "affine.load %%m%d[%%i0 * %" PRId64 " + %%i2 * %"
        PRId64 " + %" PRId64 "] : %s", a->root, g.rsa, g.csa,
        a->like->offset, memory_type(w, a->root).text);
    const int y = name(w, "affine.load %%m%d[%%i2 * %" PRId64 " + %%i1 * %"
        PRId64 " + %" PRId64 "] : %s", b->root, g.rsb, g.csb,
        b->like->offset, memory_type(w, b->root).text);
    const int more = two(w, "arith.addf", sum, two(w, "arith.mulf", x, y,
                                                   of), of);
    indent(w);
    put(&w->to, "affine.store %%%d, %%m%d[%%i0 * %" PRId64 " + %%i1] : %s"
        "\n", more, c, g.ldc, to.text);
    for (int d = 0; d < 3; d++)
        close_loop(w);
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

static void mark_touched(const td_lowered *l, const td_stage *s,
                         bool *used)
{
    const td_ir_step *step = &l->program->step[s->step];
    used[s->out] = true;
    for (int k = 0; k < s->n_loads; k++)
        if (l->value[s->load[k].value].stored)
            used[s->load[k].value] = true;
    for (int i = 0; s->kind == TD_PRODUCT && i < step->n_in; i++)
        used[l->value[step->in[i].value].root] = true;
}
typedef enum { AS_MLIR, AS_C, AS_CALL } list_form;

static void write_list(writer *w, int first, int end, list_form form)
{
    const int values = w->l->program->n_values;
    bool *used = td_alloc_array((size_t)values + 1, sizeof *used);
    int n = 0;
    for (int k = first; used && k < end; k++)
        mark_touched(w->l, &w->l->stage[k], used);
    for (int v = 0; used && v < values; v++) {
        if (!used[v])
            continue;
        put_text(&w->to, n++ ? ", " : "");
        if (form == AS_MLIR)
            put(&w->to, "%%m%d: %s", v, memory_type(w, v).text);
        else
            put(&w->to, form == AS_C ? "void *m%d" : "m[%d]", v);
    }
    td_free(used, ((size_t)values + 1) * sizeof *used);
}
static void write_functions(writer *w)
{
    const td_lowered *l = w->l;
    void *locale = td_locale_begin();
    for (int n = 0; n < l->n_stages; n++) {
        const int end = part_end(w, n);
        if (end == n)
            continue;
        put(&w->to, "func.func @part_%d(", n);
        write_list(w, n, end, AS_MLIR);
        put_text(&w->to, ") {\n");
        for (w->names = 0; n < end && !td_failed(); n++) {
            w->s = &l->stage[n];
            if (w->s->kind == TD_PRODUCT)
                write_product(w);
            else
                write_loops(w);
        }
        put_text(&w->to, "  return\n}\n");
    }
    td_locale_end(locale);
}
static void write_table(writer *w)
{
    const td_lowered *l = w->l;
    for (int n = 0; n < l->n_stages; n++) {
        const int end = part_end(w, n);
        if (end == n)
            continue;
        put(&w->to, "void part_%d(", n);
        write_list(w, n, end, AS_C);
        put(&w->to, ");\nstatic _Bool stage_%d(void *context, int64_t "
            "begin,\n    int64_t end, int worker)\n{\n"
            "    void **m = context;\n    part_%d(", n, n);
        write_list(w, n, end, AS_CALL);
        put_text(&w->to, ");\n    return 1;\n}\n");
        n = end;
    }
    put_text(&w->to, "_Bool (*const treadle_stages[])(void *, int64_t, "
             "int64_t, int) = {\n");
    for (int n = 0; n < l->n_stages; n = part_end(w, n) + 1)
        if (part_end(w, n) > n)
            put(&w->to, "    [%d] = stage_%d,\n", n, n);
    put(&w->to, "    [%d] = 0\n};\n", l->n_stages);
}

/* mlir: function td_emit_mlir */
static char *emit(writer w, int *room)
{
    put_text(&w.to, "");
    write_functions(&w);
    w.to.length++;
    put_text(&w.to, "#include <stdint.h>\n");
    write_table(&w);
    *room = w.to.room;
    return w.to.text;
}

char *td_emit_mlir(const td_lowered *l, int *room)
{
    return emit((writer){ .l = l }, room);
}

char *td_emit_mlir_loops(const td_lowered *l, int *room)
{
    return emit((writer){ .l = l, .products = true }, room);
}
