/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "arena": edit that, not this file. */
/* From steps to stages. */
#include <treadle/treadle.h>
#include "compiler/lower.h"
#include "core/space.h"
#include "ops/reductions.h"

/* fusion: function td_hash_text */
uint64_t td_hash_text(uint64_t h, const char *text)
{
    for (h ^= 14695981039346656037u; *text != '\0'; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return h;
}

/* fusion: function simplify */
typedef struct {
    int step;                   /* and one; zero is a free place */
    long text;                  /* where its call is written */
} twin;

/* fusion: function first_like */
/* The first step like step s, which is s itself if there is none. */
static int first_like(const td_program *p, int s, td_text *t,
                      twin *table, uint64_t slots)
{
    const long text = ftell(t->file);
    if (td_traits_of(p->step[s].op)->mutated != 0)
        return s;
    td_ir_print_call(t->file, &p->step[s]);
    fputc('\0', t->file);
    fflush(t->file);
    /* equal-steps: exercise equal-steps */
    uint64_t at = td_hash_text(0, t->at + text) % slots;
    while (table[at].step > 0
           && strcmp(t->at + table[at].text, t->at + text) != 0)
        at = (at + 1) % slots;
    if (table[at].step == 0)
        table[at] = (twin){ s + 1, text };
    return table[at].step - 1;
}
static bool is_copy(const td_lowered *l, const td_ir_step *s)
{
    if (s->op != &td_ops[TD_OP_clone])
        return false;
    const td_placed *x = &l->value[s->value[0]];
    return x->kind >= TD_FORMULA
        && td_ir_same_layout(x->like, l->value[s->out[0]].like);
}

static void skip_copies(const td_lowered *l, td_ir_step *step)
{
    TD_EACH(i, step, in) {
        td_ir_operand *o = &step->in[i];
        const td_ir_step *made = o->kind == TD_TENSOR
            ? l->value[o->values[0]].step : NULL;
        if (td_traits_of(step->op)->mutated >> i & 1 && made != NULL
            && made->op == &td_ops[TD_OP_clone])
            o->values[0] = made->value[0];
    }
}
static void rename_value(const td_lowered *l, int *v)
{
    *v = l->value[*v].root;
}

/* fusion: function rename_steps */
static void rename_steps(td_lowered *l, td_text *t, twin *table,
                         uint64_t slots)
{
    td_program *p = l->program;
    TD_EACH(s, p, steps) {
        td_ir_step *step = &p->step[s];
        TD_EACH(k, step, values)
            rename_value(l, &step->value[k]);
        skip_copies(l, step);
        int e = first_like(p, s, t, table, slots);
        if (step->op == &td_ops[TD_OP_mul] && step->n_values == 2
            && s - e > TD_FAR)
            e = s;
        TD_EACH(k, step, out)
            l->value[step->out[k]].root = is_copy(l, step)
                ? step->value[0] : p->step[e].out[k];
    }
}
static void simplify(td_lowered *l)
{
    td_program *p = l->program;
    const uint64_t slots = 2 * (uint64_t)p->n_steps + 1;
    twin *table = TD_ARRAY(table, slots);
    td_text t;
    if (table != NULL && td_text_begin(&t)) {
        rename_steps(l, &t, table, slots);
        free(td_text_end(&t));
        TD_EACH(k, p, outputs)
            rename_value(l, &p->output[k]);
        TD_EACH(v, p, values)
            if (p->value[v].update >= 0)
                rename_value(l, &p->value[v].update);
    }
    TD_FREE_ARRAY(table, slots);
}

/* fusion: table of the rows' texts */
enum { ANY, AS_FLOAT, OF_FLOAT, TO_BOOL };

static const td_row rows[TD_OP_COUNT + 1] = {
#define ROW(name, formula, sentence, operands, dtypes, flags) \
    [TD_OP_##name] = { flags == TO_BOOL, #formula },
#include "ops/elementwise.inc"
};

const td_row *td_row_of(const td_op *op)
{
    const td_row *row = &rows[op - td_ops];
    return row->text != NULL ? row : NULL;
}

/* fusion: function is_live */
static bool is_live(const td_lowered *l, int s)
{
    const td_ir_step *step = &l->program->step[s];
    bool live = false;
    TD_EACH(k, step, out)
        live = live || l->value[step->out[k]].uses > 0;
    return live;
}

/* fusion: function inlined_size */
static int inlined_size(const td_lowered *l, const td_ir_operand *o)
{
    const td_placed *x = o->kind == TD_TENSOR
                       ? &l->value[o->values[0]] : NULL;
    return x && x->kind == TD_FORMULA && !x->stored ? x->size : 1;
}

/* fusion: functions that place values */
static void store(td_lowered *l, int v)
{
    l->value[l->value[v].root].stored = true;
}

/* fusion: function place_operand */
static void place_operand(td_lowered *l, int s, int v)
{
    const td_placed *reader = &l->value[l->program->step[s].out[0]];
    td_placed *x = &l->value[v];
    const int64_t work = reader->kind == TD_FORMULA
        ? td_numel(reader->like) : td_numel(x->like);
    const bool fuses = reader->kind >= TD_PART
                    && reader->kind <= TD_FOLD;
    if (x->kind == TD_VIEW || !fuses
        || (x->kind != TD_NUMBER
            && (x->uses > 1 || td_numel(x->like) != work)))
        store(l, v);
}
static bool is_early(const td_lowered *l, const td_ir_step *s)
{
    const td_placed *x = &l->value[s->n_values == 1 ? s->value[0]
                                                    : s->out[0]];
    return l->value[s->out[0]].like->dtype == TD_BOOL
        && x->kind == TD_FORMULA && x->uses == 2
        && s - x->step > TD_FAR;
}
static void leaves(td_placed *x)
{
    x->uses++;
    x->stored = true;
}

static void count_uses(td_lowered *l)
{
    const td_program *p = l->program;
    TD_EACH(k, p, outputs)
        leaves(&l->value[p->output[k]]);
    TD_EACH(v, p, values)
        if (p->value[v].update >= 0)
            leaves(&l->value[p->value[v].update]);
    for (int s = p->n_steps - 1; s >= 0; s--)
        for (int k = 0; k < p->step[s].n_values && is_live(l, s); k++)
            l->value[p->step[s].value[k]].uses++;
}

static void decide(td_lowered *l)
{
    const td_program *p = l->program;
    for (int s = p->n_steps - 1; s >= 0; s--) {
        const td_ir_step *step = &p->step[s];
        if (!is_live(l, s))
            continue;
        if (l->value[step->out[0]].kind >= TD_FOLD || is_early(l, step))
            TD_EACH(k, step, out)
                store(l, step->out[k]);
        TD_EACH(k, step, values)
            place_operand(l, s, step->value[k]);
    }
}
static void limit_formulas(td_lowered *l)
{
    TD_EACH(s, l->program, steps) {
        const td_ir_step *step = &l->program->step[s];
        td_placed *out = &l->value[step->out[0]];
        if (out->kind < TD_PART || out->kind > TD_FOLD)
            continue;
        out->size = 1 + step->n_in;
        TD_EACH(i, step, in)
            out->size += inlined_size(l, &step->in[i]) - 1;
        if (out->size > TD_FORMULA_SIZE) {
            TD_EACH(i, step, in)
                if (inlined_size(l, &step->in[i]) > 1)
                    l->value[step->in[i].values[0]].stored = true;
            out->size = 1 + step->n_in;
        }
        /* fusion: call a fold of what is stored */
        if (out->kind == TD_FOLD
            && l->value[l->value[step->value[0]].root].stored)
            out->kind = TD_CALL;
    }
}

/* fusion: functions that find parts */
static const td_ir_step *part_at(const td_lowered *l, int v)
{
    const td_placed *x = &l->value[v];
    return x->step != NULL && x->uses == 1
        && x->step->op == &td_ops[TD_OP_strided_view_backward]
         ? x->step : NULL;
}

static bool is_apart(const td_ir_step *part)
{
    const td_value *size = &part->attr[1], *stride = &part->attr[2];
    int64_t reach = 0;
    bool apart = true;
    for (int d = size->as.ints.count - 1; apart && d >= 0; d--) {
        const int64_t n = size->as.ints.at[d];
        apart = n == 1 || (n > 1 && stride->as.ints.at[d] > reach);
        reach += (n - 1) * stride->as.ints.at[d];
    }
    return apart;
}
static bool may_grow(const td_lowered *l, int v, const td_placed *into)
{
    const td_placed *sum = &l->value[v];
    return sum->kind > TD_PART && sum->uses == 1
        && td_ir_same_layout(sum->like, into->like);
}

static void find_parts(td_lowered *l)
{
    TD_EACH(s, l->program, steps) {
        const td_ir_step *step = &l->program->step[s];
        td_placed *out = &l->value[step->out[0]];
        if (out->kind == TD_VIEW) {
            out->root = l->value[step->value[0]].root;
            l->value[out->root].stored |= out->stored;
        }
        if (out->kind != TD_FORMULA || out->uses == 0
            || step->op != &td_ops[TD_OP_add] || step->n_values < 2)
            continue;
        for (int i = 0; i < 2 && out->root == step->out[0]; i++) {
            const int v = step->value[i], sum = step->value[1 - i];
            const td_ir_step *part = part_at(l, v);
            if (!part || !is_apart(part) || !may_grow(l, sum, out))
                continue;
            l->value[v].kind = TD_PART;
            out->root = l->value[sum].root;
            out->stored = true;
            store(l, sum);
        }
    }
}

static bool is_plain(const td_tensor *x)
{
    return td_dtype_computes(x->dtype) && td_numel(x) > 0;
}

/* fusion: functions that classify steps */
static td_dtype common_type(const td_lowered *l, const td_ir_step *s,
                            int from)
{
    td_dtype type = TD_DTYPE_NONE;
    for (int k = from; k < s->n_values; k++) {
        const td_dtype own = l->value[s->value[k]].like->dtype;
        if (type != TD_DTYPE_NONE && own != type)
            return TD_DTYPE_NONE;
        type = own;
    }
    return type;
}

static bool fits_scalar(td_scalar s, td_dtype type)
{
    const bool byte = type == TD_UINT8 || type == TD_BOOL;
    if (td_dtype_is_floating(type) || s.kind == TD_SCALAR_BOOL)
        return true;
    return s.kind == TD_SCALAR_INT && (byte
        ? s.as.i == (uint8_t)s.as.i : td_scalar_fits(s, type));
}

static bool looks_first(const td_op *op)
{
    return op == &td_ops[TD_OP_fmod] || op == &td_ops[TD_OP_remainder]
        || op == &td_ops[TD_OP_floor_divide];
}

static bool fits_row(const td_lowered *l, const td_ir_step *s)
{
    const td_row *row = td_row_of(s->op);
    const td_dtype out = l->value[s->out[0]].like->dtype;
    const td_dtype type = common_type(l, s, 0);
    bool fits = row != NULL && type != TD_DTYPE_NONE
        && !looks_first(s->op)
        && (out == type || (row->tests && out == TD_BOOL));
    TD_EACH(i, s, in)
        if (s->in[i].kind == TD_SCALAR)
            fits = fits && fits_scalar(s->in[i].scalar, type);
    return fits && td_dtype_computes(type)
        && (row->tests || td_dtype_is_floating(type));
}
static td_step_kind kind_of_step(const td_lowered *l,
                                 const td_ir_step *s)
{
    const td_tensor *y = l->value[s->out[0]].like;
    const td_tensor *x = s->n_in > 0 && s->in[0].kind == TD_TENSOR
        ? l->value[s->value[0]].like : NULL;
    const int op = (int)(s->op - td_ops);
    if (s->n_out > 1 || td_traits_of(s->op)->mutated
        || !is_plain(y))
        return TD_CALL;
    if (x != NULL && x->storage == y->storage)
        return TD_VIEW;
    if (op == TD_OP_zeros_like || op == TD_OP_ones_like
        || op == TD_OP_zeros || op == TD_OP_ones)
        return TD_NUMBER;
    if (x == NULL || !is_plain(x))
        return fits_row(l, s) ? TD_FORMULA : TD_CALL;
    if ((op == TD_OP_sum || op == TD_OP_amax || op == TD_OP_amin)
        && td_dtype_is_floating(x->dtype) && x->dtype == y->dtype)
        return TD_FOLD;
    if (op == TD_OP_matmul && x->rank == 2 && y->rank == 2
        && td_dtype_is_floating(x->dtype))
        return TD_PRODUCT;
    const bool converts = op == TD_OP_to && (y->dtype == TD_BOOL
        || td_dtype_is_floating(y->dtype) || y->dtype == x->dtype);
    return converts || op == TD_OP_clone || op == TD_OP_contiguous
        || (op == TD_OP_where && common_type(l, s, 1) == y->dtype)
        || fits_row(l, s) ? TD_FORMULA : TD_CALL;
}

/* fusion: functions that find pieces */
static td_load load_of(const td_lowered *l, const td_stage *s, int v)
{
    const td_tensor *x = l->value[v].like;
    td_load load = { .value = l->value[v].root, .offset = x->offset,
                     .type = x->dtype };
    const int more = s->full_rank - x->rank;
    for (int d = 0; d < x->rank; d++)
        if (x->shape[d] != 1 || s->full[d + more] == 1)
            load.stride[d + more] = x->strides[d];
    return load;
}
static int add_piece(td_lowered *l, td_piece p)
{
    td_piece *piece = td_ir_more(&l->piece, &l->n_pieces,
                                 &l->piece_room, sizeof p);
    if (piece == NULL)
        return 0;
    *piece = p;
    return l->n_pieces - 1;
}

static int add_load(td_lowered *l, td_stage *s, td_load load, int v)
{
    TD_EACH(k, s, loads)
        if (s->load[k].value == load.value
            && s->load[k].offset == load.offset
            && memcmp(s->load[k].stride, load.stride,
                      sizeof load.stride) == 0)
            return s->load[k].piece;
    load.piece = l->n_pieces;
    s->load[s->n_loads] = load;
    return add_piece(l, (td_piece){ .kind = TD_LEAF, .value = v,
        .type = load.type, .load = s->n_loads++ });
}
static int add_number(td_lowered *l, td_dtype type, td_scalar number)
{
    return add_piece(l, (td_piece){ .kind = TD_NUMBER, .type = type,
                                    .number = number });
}

static int add_value(td_lowered *l, td_stage *s, int v);

static int add_formula(td_lowered *l, td_stage *s, int v)
{
    const td_placed *x = &l->value[v];
    const td_ir_step *step = x->step;
    td_piece p = { .kind = TD_FORMULA, .type = x->like->dtype,
                   .of = x->like->dtype, .op = step->op };
    if (td_row_of(step->op) != NULL)
        p.of = common_type(l, step, 0);
    for (int i = 0; i < step->n_in && i < 3; i++) {
        const td_ir_operand *o = &step->in[i];
        if (o->kind == TD_SCALAR)
            p.arg[p.n++] = add_number(l, p.of, o->scalar);
        else if (o->kind == TD_TENSOR)
            p.arg[p.n++] = add_value(l, s, o->values[0]);
    }
    return add_piece(l, p);
}
static int add_value(td_lowered *l, td_stage *s, int v)
{
    const td_placed *x = &l->value[v];
    if (x->kind == TD_NUMBER)
        return add_number(l, x->like->dtype, td_int(
            x->step->op == &td_ops[TD_OP_ones]
            || x->step->op == &td_ops[TD_OP_ones_like]));
    return v != s->out && l->value[x->root].stored
         ? add_load(l, s, load_of(l, s, v), v)
         : add_formula(l, s, v);
}
static void add_pair(td_lowered *l, const td_stage *s, int op, int a,
                     int b)
{
    add_piece(l, (td_piece){ .kind = TD_FORMULA, .type = s->type,
        .of = s->type, .op = &td_ops[op], .n = 2, .arg = { a, b } });
}

static void add_product(td_lowered *l, td_stage *s)
{
    for (int i = 0; i < 2; i++) {
        const int v = s->step->value[i];
        const td_tensor *x = l->value[v].like;
        td_load *load = &s->load[i];
        *load = (td_load){ .value = l->value[v].root,
                           .offset = x->offset, .type = s->type };
        load->stride[2 * i] = x->strides[0];
        load->stride[2 - i] = x->strides[1];
        add_piece(l, (td_piece){ .kind = TD_LEAF, .value = v,
                                 .type = s->type, .load = i });
    }
    s->n_loads = 2;
    add_pair(l, s, TD_OP_mul, s->first, s->first + 1);
}

/* fusion: function collapse_dims */
/* The dimensions of the bits, collapsed, behind those there are. */
static void collapse_dims(td_stage *s, unsigned dims)
{
    td_dims shape = { 0 };
    td_steps step[TD_LOADS + 1];
    int64_t numel = 1;
    for (int d = 0; d < s->full_rank; d++)
        if (dims >> d & 1) {
            for (int k = 0; k <= s->n_loads; k++)
                step[k][shape.count] = s->load[k].stride[d];
            numel *= s->full[d];
            shape.at[shape.count++] = s->full[d];
        }
    if (s->rank > 0 && numel == 1)
        return;
    td_collapse(&shape, s->n_loads + 1, step);
    for (int d = 0; d < shape.count; d++) {
        for (int k = 0; k <= s->n_loads; k++)
            s->load[k].flat[s->rank] = step[k][d];
        s->size[s->rank++] = shape.at[d];
    }
}

/* fusion: function find_space */
static const td_ir_step *part_of(const td_lowered *l, const td_stage *s)
{
    TD_EACH(k, s->step, values) {
        const td_placed *x = &l->value[s->step->value[k]];
        if (x->kind == TD_PART)
            return x->step;
    }
    return NULL;
}

static void find_space(const td_lowered *l, td_stage *s,
                       const td_tensor *space)
{
    const td_ir_step *step = s->step;
    s->full_rank = space->rank;
    memcpy(s->full, space->shape, sizeof s->full);
    const bool most = step->op == &td_ops[TD_OP_amax];
    const bool least = step->op == &td_ops[TD_OP_amin];
    s->fold = &td_ops[most ? TD_OP_maximum : least ? TD_OP_minimum
                      : TD_OP_add];
    s->nothing = td_float(most ? -INFINITY : least ? INFINITY : 0);
    if (s->kind == TD_FOLD)
        td_axes_to_reduce(&(td_call){ .op = step->op }, space,
                          step->attr, &s->folded);
    if (s->kind != TD_PRODUCT)
        return;
    const td_tensor *a = l->value[step->value[0]].like;
    s->folded = 1u << s->full_rank;
    s->full[s->full_rank++] = a->shape[1];
}

/* fusion: function result_of */
static td_load result_of(const td_lowered *l, const td_stage *s,
                         const td_ir_step *part)
{
    const td_placed *x = &l->value[s->out];
    td_load to = { .value = x->root, .type = s->type };
    int from = x->like->rank;
    if (part != NULL && part->attr[3].kind == TD_SCALAR)
        to.offset = td_scalar_int(part->attr[3].as.scalar);
    for (int d = s->full_rank - 1; d >= 0; d--) {
        const bool folds = s->folded >> d & 1;
        from -= !folds || x->like->rank == s->full_rank;
        to.stride[d] = part ? part->attr[2].as.ints.at[d]
                     : folds ? 0 : x->like->strides[from];
    }
    return to;
}

/* fusion: function describe_loop */
static void describe_loop(td_lowered *l, td_stage *s)
{
    const td_ir_step *part = part_of(l, s);
    const int from = part ? part->value[0]
        : s->kind == TD_FOLD ? s->step->value[0] : s->out;
    find_space(l, s, l->value[from].like);
    const td_load result = result_of(l, s, part);
    s->first = l->n_pieces;
    if (s->kind == TD_PRODUCT)
        add_product(l, s);
    else if (part != NULL)
        add_pair(l, s, TD_OP_add, add_load(l, s, result, s->out),
                 add_value(l, s, from));
    else
        add_value(l, s, from);
    s->last = l->n_pieces - 1;
    s->load[s->n_loads] = result;
    collapse_dims(s, ~s->folded);
    s->kept = s->rank;
    collapse_dims(s, s->folded);
}

/* arena: functions that find lifetimes */
static bool has_memory(const td_lowered *l, int v)
{
    const td_placed *x = &l->value[v];
    return x->stored && x->root == v && x->kind != TD_LEAF
        && x->buffer < 0;
}

static bool loads_elsewhere(const td_stage *s, int old)
{
    TD_EACH(k, s, loads)
        if (s->load[k].value == old
            && memcmp(s->load[k].stride, s->load[s->n_loads].stride,
                      sizeof s->load[k].stride) != 0)
            return true;
    return false;
}
static bool is_training(const td_op *op)
{
    return strstr(op->name, "_step_") != NULL;
}

static int changed_into(const td_lowered *l, const td_ir_step *s,
                        int old)
{
    int n = 0, readers = 0, fresh = -1;
    TD_EACH(i, s, in) {
        if (s->in[i].kind != TD_TENSOR)
            continue;
        const int v = s->in[i].values[0];
        readers += l->value[v].root == l->value[old].root;
        if (td_traits_of(s->op)->mutated >> i & 1) {
            fresh = v == old ? s->out[n] : fresh;
            n++;
        }
    }
    return readers == 1 ? fresh : -1;
}
static bool is_alone(const td_program *p, int leaf)
{
    TD_EACH(v, p, values)
        if (v != leaf && p->value[v].origin != TD_IR_RESULT
            && p->value[v].storage == p->value[leaf].storage)
            return false;
    return true;
}

static bool overwrites(td_lowered *l, int n)
{
    const td_stage *s = &l->stage[n];
    int left = s->step->n_out;
    if (s->kind != TD_CALL || !is_training(s->step->op))
        return s->kind != TD_CALL && s->kind != TD_PRODUCT;
    TD_EACH(k, s->step, values) {
        const int old = s->step->value[k];
        const int fresh = changed_into(l, s->step, old);
        if (fresh < 0 || l->program->value[old].update != fresh
            || l->value[old].last > n || l->value[fresh].buffer >= 0
            || !is_alone(l->program, old))
            continue;
        l->value[fresh].buffer = old;
        left--;
    }
    for (int k = 0; k < s->step->n_out && left > 0; k++)
        l->value[s->step->out[k]].buffer = -1;
    l->writes = left > 0 ? l->writes : n;
    return left == 0;
}
static bool lend(td_lowered *l, int n, int old, int fresh)
{
    td_placed *from = &l->value[old], *to = &l->value[fresh];
    if (from->kind == TD_LEAF || from->last != n || from->buffer >= 0
        || to->root != fresh
        || (to->buffer >= 0 && to->buffer != fresh))
        return false;
    if (to->buffer == fresh) {
        from->buffer = fresh;
        to->first = from->first;
    } else {
        to->buffer = old;
        from->last = to->last;
    }
    return true;
}
static void write_in_place(td_lowered *l, int n)
{
    const td_stage *s = &l->stage[n];
    const td_placed *out = &l->value[s->out];
    bool lent = s->kind != TD_FORMULA;
    for (int k = 0; k < s->n_loads && !lent; k++) {
        int v = s->load[k].value;
        const td_placed *x = &l->value[v];
        if (x->kind < TD_FORMULA || x->kind > TD_PRODUCT
            || s->load[k].offset != 0 || loads_elsewhere(s, v)
            || x->like->dtype != out->like->dtype
            || td_numel(x->like) != td_numel(out->like))
            continue;
        while (l->value[v].buffer >= 0 && l->value[v].buffer != v)
            v = l->value[v].buffer;
        lent = lend(l, n, v, s->out);
    }
}
static void change_in_place(td_lowered *l, int n)
{
    const td_ir_step *step = l->stage[n].step;
    if (l->stage[n].kind != TD_CALL)
        return;
    TD_EACH(k, step, values) {
        const int x = step->value[k], fresh = changed_into(l, step, x);
        if (fresh >= 0 && l->value[fresh].buffer < 0
            && td_ir_same_layout(l->value[x].like,
                                 l->value[fresh].like))
            lend(l, n, l->value[x].root, fresh);
    }
}
static void reads(td_lowered *l, int n, int v)
{
    td_placed *root = &l->value[l->value[v].root];
    if (n > root->last)
        root->last = n;
}

static void find_lives(td_lowered *l)
{
    const td_program *p = l->program;
    int behind = -1;
    TD_EACH(n, l, stages) {
        const td_stage *s = &l->stage[n];
        const td_ir_step *step = s->step;
        TD_EACH(k, step, out)
            l->value[step->out[k]].first = n, reads(l, n, step->out[k]);
        TD_EACH(k, s, loads)
            reads(l, n, s->load[k].value);
        for (int k = 0; s->n_loads == 0 && k < step->n_values; k++)
            reads(l, n, step->value[k]);
    }
    /* arena: let what leaves live to the end */
    TD_EACH(k, p, outputs) {
        td_placed *x = &l->value[p->output[k]];
        reads(l, l->n_stages, p->output[k]);
        if (has_memory(l, p->output[k]))
            x->buffer = p->output[k];
        else if (l->value[x->root].first > behind)
            behind = l->value[x->root].first;
    }
    TD_EACH(v, p, values)
        if (p->value[v].update >= 0)
            reads(l, l->n_stages, p->value[v].update);
    l->writes = l->n_stages;
    for (int n = l->n_stages - 1; n > behind && overwrites(l, n);)
        n--;
    TD_EACH(n, l, stages) {
        change_in_place(l, n);
        write_in_place(l, n);
    }
}
static void announce(td_lowered *l)
{
    TD_EACH(v, l->program, values) {
        td_placed *x = &l->value[v];
        if (has_memory(l, v) && x->last < l->n_stages) {
            td_stage *s = &l->stage[x->last];
            x->next_dying = s->dying;
            s->dying = v;
        }
    }
}

/* arena: function plan_memory */
typedef struct {
    int64_t from, upto;
} place;

static int64_t take(place *taken, int *n, int64_t bytes)
{
    /* first-gap: exercise first-gap */
    int i = 0;
    int64_t from = 0;
    while (i < *n && taken[i].from - from < bytes)
        from = taken[i++].upto;
    memmove(taken + i + 1, taken + i, (size_t)(*n - i) * sizeof *taken);
    taken[i] = (place){ from, from + bytes };
    ++*n;
    return from;
}
static void give(place *taken, int *n, int64_t from)
{
    int i = 0;
    while (taken[i].from != from)
        i++;
    --*n;
    memmove(taken + i, taken + i + 1, (size_t)(*n - i) * sizeof *taken);
}
static void plan_memory(td_lowered *l)
{
    const size_t room = (size_t)l->program->n_values + 1;
    place *taken = td_ir_keep(l->program, room * sizeof *taken);
    int n = 0;
    for (int s = 0; taken && s < l->n_stages; s++) {
        const int v = l->stage[s].out;
        td_placed *x = &l->value[v];
        const int64_t bytes = (x->like->storage->bytes + 63) / 64 * 64;
        if (x->kind != TD_CALL && has_memory(l, v)) {
            x->place = take(taken, &n, bytes);
            l->bytes_unplanned += bytes;
            if (x->place + bytes > l->bytes)
                l->bytes = x->place + bytes;
        }
        for (int d = l->stage[s].dying; d >= 0;
             d = l->value[d].next_dying)
            if (l->value[d].place >= 0)
                give(taken, &n, l->value[d].place);
    }
}

/* arena: function classify */
static void classify(void *lowered, td_tensor **at)
{
    td_lowered *l = lowered;
    const td_program *p = l->program;
    TD_EACH(v, p, values) {
        l->value[v] = (td_placed){ .root = v, .buffer = -1,
            .place = -1, .like = td_retain(at[v]), .last = -1,
            .next_dying = -1 };
        if (p->value[v].device.kind != TD_DEVICE_CPU)
            td_fail(TD_ERROR_UNSUPPORTED, "compile", "a value is not "
                    "on the cpu");
    }
    TD_EACH(s, p, steps) {
        const td_ir_step *step = &p->step[s];
        const td_step_kind kind = kind_of_step(l, step);
        TD_EACH(k, step, out) {
            td_placed *v = &l->value[step->out[k]];
            v->step = step;
            v->kind = kind;
        }
    }
    TD_EACH(v, p, values)
        if (l->value[v].kind == TD_LEAF)
            l->value[v].stored = true;
}

/* arena: function make_stages */
static void make_stages(td_lowered *l)
{
    const td_program *p = l->program;
    TD_EACH(n, p, steps) {
        const int v = p->step[n].out[0];
        const td_placed *x = &l->value[v];
        if (!is_live(l, n) || x->kind == TD_VIEW || !x->stored)
            continue;
        td_stage *s = &l->stage[l->n_stages++];
        for (; is_early(l, x->step) && s[-1].out != x->step->value[0];
             s--)
            *s = s[-1];
        *s = (td_stage){ .step = x->step, .out = v, .dying = -1,
                         .kind = x->kind == TD_NUMBER ? TD_FORMULA
                                                      : x->kind,
                         .type = x->like->dtype };
        if (s->kind != TD_CALL)
            describe_loop(l, s);
    }
}

/* arena: function td_lowered_free */
void td_lowered_free(td_lowered *l)
{
    if (l == NULL)
        return;
    for (int v = 0; l->value && v < l->program->n_values; v++)
        td_release(l->value[v].like);
    TD_FREE_ARRAY(l->piece, l->piece_room);
    td_release(l->program);
    td_free(l, sizeof *l);
}

/* arena: function td_lower */
td_lowered *td_lower(td_program *traced)
{
    td_lowered *l = td_failed() ? NULL : td_alloc(sizeof *l);
    if (l == NULL)
        return NULL;
    td_scope_barrier_begin();
    l->program = td_program_expand(traced);
    td_scope_barrier_end();
    if (l->program == NULL)
        goto done;
    td_program *p = l->program;
    l->value = td_ir_keep(p, (size_t)p->n_values * sizeof *l->value);
    l->stage = td_ir_keep(p, (size_t)p->n_steps * sizeof *l->stage);
    if (l->value && l->stage && td_ir_imagine(p, classify, l)) {
        /* arena: place values and their memory */
        simplify(l);
        count_uses(l);
        find_parts(l);
        decide(l);
        limit_formulas(l);
        make_stages(l);
        find_lives(l);
        announce(l);
        plan_memory(l);
    }
done:
    if (!td_failed())
        return l;
    td_lowered_free(l);
    return NULL;
}
