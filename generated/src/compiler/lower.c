/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "arena": edit that, not this file. */
/* From steps to stages. */
#include <string.h>
#include <treadle/treadle.h>
#include "compiler/lower.h"
#include "core/space.h"

/* fusion: functions that compare steps */
static bool same_operand(const td_ir_operand *a, const td_ir_operand *b)
{
    bool same = a->kind == b->kind && a->count == b->count;
    if (same && a->kind == TD_TENSOR)
        same = a->value == b->value;
    if (same && a->kind == TD_SCALAR)
        same = a->scalar.kind == b->scalar.kind
            && a->scalar.as.i == b->scalar.as.i;
    for (int k = 0; same && k < a->count; k++)
        same = a->values[k] == b->values[k];
    return same;
}

static bool same_attribute(const td_value *a, const td_value *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case TD_SCALAR:
        return a->as.scalar.kind == b->as.scalar.kind
            && a->as.scalar.as.i == b->as.scalar.as.i;
    case TD_INTS:
        return a->as.ints.count == b->as.ints.count
            && memcmp(a->as.ints.at, b->as.ints.at,
                      (size_t)a->as.ints.count * sizeof(int64_t)) == 0;
    case TD_STRING: return strcmp(a->as.string, b->as.string) == 0;
    case TD_DTYPE: return a->as.dtype == b->as.dtype;
    default: return a->kind == TD_NONE;
    }
}
static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static void rename_operands(td_ir_step *step, const int *name)
{
    for (int i = 0; i < step->n_in; i++) {
        td_ir_operand *o = &step->in[i];
        if (o->kind == TD_TENSOR)
            o->value = name[o->value];
        for (int k = 0; k < o->count; k++)
            o->values[k] = name[o->values[k]];
    }
}

/* fusion: function simplify */
static bool same_step(const td_ir_step *a, const td_ir_step *b)
{
    bool same = a->op == b->op && a->n_in == b->n_in
             && td_traits_of(a->op)->mutated == 0;
    for (int i = 0; same && i < a->n_in; i++)
        same = same_operand(&a->in[i], &b->in[i]);
    for (int i = 0; same && i < a->n_attr; i++)
        same = same_attribute(&a->attr[i], &b->attr[i]);
    return same;
}

static uint64_t hash_of_step(const td_ir_step *s)
{
    uint64_t h = (uint64_t)(s->op - td_ops);
    for (int i = 0; i < s->n_in; i++) {
        h = mix(h, (uint64_t)s->in[i].value);
        for (int k = 0; k < s->in[i].count; k++)
            h = mix(h, (uint64_t)s->in[i].values[k]);
    }
    for (int i = 0; i < s->n_attr; i++)
        if (s->attr[i].kind == TD_SCALAR)
            h = mix(h, (uint64_t)s->attr[i].as.scalar.as.i);
    return h;
}

/* The first step like step s, which is s itself if there is none. */
static int first_like(const td_program *p, int s, int *table,
                      uint64_t slots)
{
    uint64_t at = hash_of_step(&p->step[s]) % slots;
    while (table[at] > 0
           && !same_step(&p->step[table[at] - 1], &p->step[s]))
        at = (at + 1) % slots;
    if (table[at] == 0)
        table[at] = s + 1;
    return table[at] - 1;
}
static bool is_copy(const td_lowered *l, const td_ir_step *s)
{
    if (s->op != &td_ops[TD_OP_clone])
        return false;
    const td_placed *x = &l->value[s->in[0].value];
    const td_tensor *y = l->value[s->out[0]].like;
    return x->kind >= TD_FORMULA
        && memcmp(x->like->strides, y->strides,
                  (size_t)y->rank * sizeof *y->strides) == 0;
}

static void skip_copies(const td_lowered *l, td_ir_step *step)
{
    for (int i = 0; i < step->n_in; i++) {
        td_ir_operand *o = &step->in[i];
        const int made = o->kind == TD_TENSOR ? l->value[o->value].step
                                              : -1;
        if (td_traits_of(step->op)->mutated >> i & 1 && made >= 0
            && l->program->step[made].op == &td_ops[TD_OP_clone])
            o->value = l->program->step[made].in[0].value;
    }
}

static void rename_steps(td_lowered *l, int *name, int *table,
                         uint64_t slots)
{
    td_program *p = l->program;
    for (int v = 0; v < p->n_values; v++)
        name[v] = v;
    for (int s = 0; s < p->n_steps; s++) {
        td_ir_step *step = &p->step[s];
        rename_operands(step, name);
        skip_copies(l, step);
        const int e = first_like(p, s, table, slots);
        for (int k = 0; k < step->n_out; k++)
            name[step->out[k]] = is_copy(l, step) ? step->in[0].value
                                                  : p->step[e].out[k];
    }
}
static void simplify(td_lowered *l)
{
    td_program *p = l->program;
    const uint64_t slots = 2 * (uint64_t)p->n_steps + 1;
    const size_t values = (size_t)p->n_values + 1;
    int *table = td_alloc_array(slots, sizeof *table);
    int *name = td_alloc_array(values, sizeof *name);
    if (table != NULL && name != NULL) {
        rename_steps(l, name, table, slots);
        for (int k = 0; k < p->n_outputs; k++)
            p->output[k] = name[p->output[k]];
        for (int v = 0; v < p->n_values; v++) {
            l->value[v].root = name[l->value[v].root];
            if (p->value[v].update >= 0)
                p->value[v].update = name[p->value[v].update];
        }
    }
    td_free(table, slots * sizeof *table);
    td_free(name, values * sizeof *name);
}

/* fusion: table of the rows' texts */
enum { ANY, AS_FLOAT, OF_FLOAT, TO_BOOL };

static const td_row rows[TD_OP_COUNT + 1] = {
#define ROW(name, formula, sentence, operands, dtypes, flags) \
    [TD_OP_##name] = { operands, flags == TO_BOOL, #formula },
#include "ops/elementwise.inc"
};

const td_row *td_row_of(const td_op *op)
{
    const td_row *row = &rows[op - td_ops];
    return row->text != NULL ? row : NULL;
}

/* fusion: functions that walk over steps */
typedef void visit_operand(td_lowered *l, int s, int v);

static void each_operand(td_lowered *l, int s, visit_operand *visit)
{
    const td_ir_step *step = &l->program->step[s];
    for (int i = 0; i < step->n_in; i++) {
        if (step->in[i].kind == TD_TENSOR)
            visit(l, s, step->in[i].value);
        for (int k = 0; k < step->in[i].count; k++)
            visit(l, s, step->in[i].values[k]);
    }
}

static void add_use(td_lowered *l, int s, int v)
{
    (void)s;
    l->value[v].uses++;
}

static bool is_live(const td_lowered *l, int s)
{
    const td_ir_step *step = &l->program->step[s];
    bool live = false;
    for (int k = 0; k < step->n_out; k++)
        live = live || l->value[step->out[k]].uses > 0;
    return live;
}

/* fusion: functions that store large formulas */
static int size_or_store(td_lowered *l, int v, bool now)
{
    td_placed *x = &l->value[v];
    if (now && x->kind == TD_FORMULA)
        x->stored = true;
    return x->kind == TD_FORMULA && !x->stored ? x->size : 1;
}

/* fusion: functions that place values */
static bool is_small(const td_placed *v)
{
    return v->kind == TD_NUMBER || v->kind == TD_COUNT;
}

static void store(td_lowered *l, int v)
{
    l->value[l->value[v].root].stored = true;
}

static void place_operand(td_lowered *l, int s, int v)
{
    const td_placed *reader = &l->value[l->program->step[s].out[0]];
    td_placed *x = &l->value[v];
    const int64_t work = reader->kind != TD_FOLD
        ? td_numel(reader->like) : td_numel(x->like);
    const bool fuses = reader->kind == TD_FORMULA
                    || reader->kind == TD_FOLD;
    if (x->kind == TD_VIEW || !fuses
        || (!is_small(x) && (x->uses > 1 || td_numel(x->like) != work)))
        store(l, v);
}
static void count_uses(td_lowered *l)
{
    const td_program *p = l->program;
    for (int k = 0; k < p->n_outputs; k++)
        l->value[p->output[k]].uses++;
    for (int v = 0; v < p->n_values; v++)
        if (p->value[v].update >= 0)
            l->value[p->value[v].update].uses++;
    for (int s = p->n_steps - 1; s >= 0; s--)
        if (is_live(l, s))
            each_operand(l, s, add_use);
}

static void decide(td_lowered *l)
{
    const td_program *p = l->program;
    for (int s = p->n_steps - 1; s >= 0; s--) {
        const td_placed *out = &l->value[p->step[s].out[0]];
        if (!is_live(l, s))
            continue;
        if (out->kind >= TD_FOLD)
            for (int k = 0; k < p->step[s].n_out; k++)
                store(l, p->step[s].out[k]);
        each_operand(l, s, place_operand);
    }
    for (int k = 0; k < p->n_outputs; k++)
        store(l, p->output[k]);
    for (int v = 0; v < p->n_values; v++)
        if (p->value[v].update >= 0)
            store(l, p->value[v].update);
}
static void call_plain_folds(td_lowered *l)
{
    for (int s = 0; s < l->program->n_steps; s++) {
        const td_ir_step *step = &l->program->step[s];
        td_placed *out = &l->value[step->out[0]];
        if (out->kind == TD_FOLD && l->value[l->value[
                step->in[0].value].root].stored)
            out->kind = TD_CALL;
    }
}
static void limit_formulas(td_lowered *l)
{
    for (int s = 0; s < l->program->n_steps; s++) {
        const td_ir_step *step = &l->program->step[s];
        td_placed *out = &l->value[step->out[0]];
        if (out->kind != TD_FORMULA && out->kind != TD_FOLD)
            continue;
        for (int pass = 0; pass < 2; pass++) {
            out->size = 1;
            for (int i = 0; i < step->n_in; i++)
                if (step->in[i].kind == TD_TENSOR)
                    out->size += size_or_store(l, step->in[i].value,
                                               pass > 0);
            if (out->size <= TD_FORMULA_SIZE)
                break;
        }
    }
}

static bool is_plain(const td_tensor *x)
{
    return td_dtype_computes(x->dtype) && td_numel(x) > 0
        && x->storage->device.kind == TD_DEVICE_CPU;
}

/* fusion: functions that classify steps */
static td_dtype common_type(const td_lowered *l, const td_ir_step *s,
                            int from)
{
    td_dtype type = TD_DTYPE_NONE;
    for (int i = from; i < s->n_in; i++) {
        if (s->in[i].kind != TD_TENSOR)
            continue;
        const td_dtype own = l->value[s->in[i].value].like->dtype;
        if (type != TD_DTYPE_NONE && own != type)
            return TD_DTYPE_NONE;
        type = own;
    }
    return type;
}

td_dtype td_type_of_row(const td_lowered *l, const td_ir_step *s)
{
    return common_type(l, s, 0);
}

static bool fits_scalar(td_scalar s, td_dtype type)
{
    if (td_dtype_is_floating(type) || s.kind == TD_SCALAR_BOOL)
        return true;
    if (s.kind == TD_SCALAR_FLOAT)
        return false;
    return type == TD_INT64
        || (type == TD_INT32 && s.as.i == (int32_t)s.as.i)
        || (s.as.i == (uint8_t)s.as.i && type != TD_INT32);
}

static bool fits_row(const td_lowered *l, const td_ir_step *s)
{
    const td_row *row = td_row_of(s->op);
    const td_dtype out = l->value[s->out[0]].like->dtype;
    const td_dtype type = common_type(l, s, 0);
    bool fits = row != NULL && type != TD_DTYPE_NONE
        && (out == type || (row->tests && out == TD_BOOL));
    for (int i = 0; i < s->n_in; i++)
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
        ? l->value[s->in[0].value].like : NULL;
    const int op = (int)(s->op - td_ops);
    if (s->n_out > 1 || td_traits_of(s->op)->mutated
        || !is_plain(y))
        return TD_CALL;
    if (x != NULL && x->storage == y->storage)
        return TD_VIEW;
    if (op == TD_OP_zeros_like || op == TD_OP_ones_like
        || op == TD_OP_zeros || op == TD_OP_ones)
        return TD_NUMBER;
    if (op == TD_OP_arange && s->attr[0].as.scalar.kind == TD_SCALAR_INT
        && s->attr[2].as.scalar.kind == TD_SCALAR_INT)
        return TD_COUNT;
    if (x == NULL || !is_plain(x))
        return fits_row(l, s) ? TD_FORMULA : TD_CALL;
    if ((op == TD_OP_sum || op == TD_OP_amax || op == TD_OP_amin)
        && td_dtype_is_floating(x->dtype) && x->dtype == y->dtype
        && td_numel(x) > 0)
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

/* fusion: functions that find loads */
td_map td_map_of_operand(const td_map *m, const td_tensor *out,
                         const td_tensor *x)
{
    td_map map = { { 0 } };
    const int more = out->rank - x->rank;
    for (int d = 0; d < x->rank; d++)
        map.loop[d] = x->shape[d] == 1 && out->shape[d + more] != 1
            ? -1 : m->loop[d + more];
    return map;
}

td_load td_load_of(const td_lowered *l, int v, const td_map *m)
{
    const td_tensor *x = l->value[v].like;
    td_load load = { .value = l->value[v].root, .offset = x->offset };
    for (int d = 0; d < x->rank; d++)
        if (m->loop[d] >= 0)
            load.stride[m->loop[d]] += x->strides[d];
    return load;
}
bool td_is_load(const td_lowered *l, int v)
{
    const td_placed *x = &l->value[v];
    return x->stored || l->value[x->root].stored || x->kind == TD_LEAF
        || x->kind == TD_VIEW || x->kind == TD_COUNT;
}

int td_find_load(const td_stage *s, const td_load *load)
{
    for (int k = 0; k < s->n_loads; k++)
        if (s->load[k].value == load->value
            && s->load[k].offset == load->offset
            && memcmp(s->load[k].stride, load->stride,
                      sizeof load->stride) == 0)
            return k;
    return -1;
}

static void find_operand_loads(const td_lowered *l, td_stage *s, int v,
                               const td_map *m);

static void find_loads(const td_lowered *l, td_stage *s, int v,
                       const td_map *m)
{
    if (l->value[v].kind == TD_NUMBER)
        return;
    if ((v == s->out || !td_is_load(l, v))
        && l->value[v].kind != TD_COUNT) {
        find_operand_loads(l, s, v, m);
        return;
    }
    const td_load load = td_load_of(l, v, m);
    if (td_find_load(s, &load) < 0)
        s->load[s->n_loads++] = load;
}
static void find_operand_loads(const td_lowered *l, td_stage *s, int v,
                               const td_map *m)
{
    const td_ir_step *step = &l->program->step[l->value[v].step];
    for (int i = 0; i < step->n_in; i++) {
        if (step->in[i].kind != TD_TENSOR)
            continue;
        const int x = step->in[i].value;
        const td_map map = l->value[v].kind == TD_FOLD ? *m
            : td_map_of_operand(m, l->value[v].like, l->value[x].like);
        find_loads(l, s, x, &map);
    }
}

/* fusion: function collapse_dims */
/* The dimensions of the bits, collapsed, behind those there are. */
static void collapse_dims(td_stage *s, unsigned dims)
{
    td_dims shape = { 0 };
    td_steps step[TD_LOADS + 1];
    for (int d = 0; d < s->full_rank; d++)
        if (dims >> d & 1) {
            for (int k = 0; k <= s->n_loads; k++)
                step[k][shape.count] = s->load[k].stride[d];
            shape.at[shape.count++] = s->full[d];
        }
    td_collapse(&shape, s->n_loads + 1, step);
    for (int d = 0; d < shape.count; d++) {
        for (int k = 0; k <= s->n_loads; k++)
            s->load[k].flat[s->rank] = step[k][d];
        s->size[s->rank++] = shape.at[d];
    }
}

/* fusion: function folded_dimensions */
static unsigned folded_dimensions(const td_ir_step *step, int rank)
{
    const td_value *dim = &step->attr[0];
    unsigned mask = 0;
    if (dim->kind != TD_INTS || dim->as.ints.count == 0)
        return (1u << rank) - 1;
    for (int i = 0; i < dim->as.ints.count; i++) {
        const int64_t d = dim->as.ints.at[i];
        mask |= 1u << (d < 0 ? d + rank : d);
    }
    return mask;
}

/* fusion: function describe_loop */
static void describe_loop(td_lowered *l, td_stage *s)
{
    const td_ir_step *step = &l->program->step[s->step];
    const td_tensor *out = l->value[s->out].like;
    const td_tensor *space = s->kind != TD_FOLD ? out
        : l->value[step->in[0].value].like;
    td_map all;
    for (int d = 0; d < TD_MAX_RANK; d++)
        all.loop[d] = d;
    s->full_rank = space->rank;
    memcpy(s->full, space->shape, sizeof s->full);
    if (s->kind == TD_FOLD)
        s->folded = folded_dimensions(step, space->rank);
    find_loads(l, s, s->out, &all);
    /* fusion: describe the result as a last load */
    td_load *result = &s->load[s->n_loads];
    int from = out->rank;
    *result = (td_load){ .value = s->out };
    for (int d = space->rank - 1; d >= 0; d--) {
        const bool folds = s->folded >> d & 1;
        const bool there = !folds || out->rank == space->rank;
        from -= there;
        result->stride[d] = folds ? 0 : out->strides[from];
    }
    collapse_dims(s, ~s->folded);
    s->kept = s->rank;
    if (td_numel(space) != td_numel(out))
        collapse_dims(s, s->folded);
}

/* arena: functions that find lifetimes */
static bool needs_place(const td_lowered *l, int v)
{
    const td_placed *x = &l->value[v];
    return x->stored && x->root == v && x->kind != TD_LEAF
        && x->kind != TD_CALL && x->buffer < 0;
}

static bool loads_elsewhere(const td_stage *s, int old)
{
    for (int k = 0; k < s->n_loads; k++)
        if (s->load[k].value == old
            && memcmp(s->load[k].stride, s->load[s->n_loads].stride,
                      sizeof s->load[k].stride) != 0)
            return true;
    return false;
}
static bool is_training(const td_op *op)
{
    return op == &td_ops[TD_OP_sgd_step_]
        || op == &td_ops[TD_OP_adam_step_]
        || op == &td_ops[TD_OP_rmsprop_step_]
        || op == &td_ops[TD_OP_adagrad_step_];
}

static int changed_into(const td_lowered *l, const td_ir_step *s,
                        int old)
{
    int n = 0, readers = 0, fresh = -1;
    for (int i = 0; i < s->n_in; i++) {
        const td_ir_operand *o = &s->in[i];
        if (o->kind != TD_TENSOR)
            continue;
        readers += l->value[o->value].root == old;
        if (td_traits_of(s->op)->mutated >> i & 1) {
            fresh = o->value == old ? s->out[n] : fresh;
            n++;
        }
    }
    return readers == 1 ? fresh : -1;
}
static bool may_overwrite(const td_lowered *l, int old, int fresh,
                          int fails)
{
    const td_placed *a = &l->value[old], *b = &l->value[fresh];
    const td_stage *s = &l->stage[b->first];
    if (b->root != fresh || b->buffer >= 0 || !b->stored
        || a->last > b->first || b->first < fails
        || a->like->dtype != b->like->dtype)
        return false;
    return s->kind == TD_FORMULA ? !loads_elsewhere(s, old)
        : s->kind == TD_CALL
          && is_training(l->program->step[s->step].op)
          && changed_into(l, &l->program->step[s->step], old) == fresh;
}
static void write_in_place(td_lowered *l, int n)
{
    const td_stage *s = &l->stage[n];
    td_placed *out = &l->value[s->out];
    if (s->kind != TD_FORMULA
        || (out->buffer >= 0 && out->buffer != s->out))
        return;
    for (int k = 0; k < s->n_loads; k++) {
        td_placed *x = &l->value[s->load[k].value];
        if (x->kind >= TD_FORMULA && x->kind <= TD_PRODUCT
            && x->last == n && x->buffer < 0 && s->load[k].offset == 0
            && x->like->dtype == out->like->dtype
            && !loads_elsewhere(s, s->load[k].value)
            && td_numel(x->like) == td_numel(out->like)) {
            x->buffer = s->out;
            out->first = x->first;
            return;
        }
    }
}
static void change_in_place(td_lowered *l, int n)
{
    const td_ir_step *step = &l->program->step[l->stage[n].step];
    if (l->stage[n].kind != TD_CALL
        || td_traits_of(step->op)->mutated == 0)
        return;
    for (int i = 0; i < step->n_in; i++) {
        const int x = step->in[i].value;
        td_placed *old = &l->value[x];
        if (step->in[i].kind != TD_TENSOR || old->root != x
            || old->kind == TD_LEAF || old->last != n
            || old->buffer >= 0)
            continue;
        const int fresh = changed_into(l, step, x);
        if (fresh < 0 || l->value[fresh].buffer >= 0)
            continue;
        l->value[fresh].buffer = x;
        old->last = l->value[fresh].last;
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
    int fails = -1;
    for (int n = 0; n < l->n_stages; n++) {
        const td_stage *s = &l->stage[n];
        const td_ir_step *step = &p->step[s->step];
        if (s->kind == TD_CALL && !is_training(step->op))
            fails = n;
        for (int k = 0; k < step->n_out; k++)
            l->value[step->out[k]].first = n, reads(l, n, step->out[k]);
        for (int k = 0; k < s->n_loads; k++)
            reads(l, n, s->load[k].value);
        for (int i = 0; s->n_loads == 0 && i < step->n_in; i++) {
            if (step->in[i].kind == TD_TENSOR)
                reads(l, n, step->in[i].value);
            for (int k = 0; k < step->in[i].count; k++)
                reads(l, n, step->in[i].values[k]);
        }
    }
    /* arena: let what leaves live to the end */
    for (int k = 0; k < p->n_outputs; k++)
        reads(l, l->n_stages, p->output[k]);
    for (int v = 0; v < p->n_values; v++) {
        const int u = p->value[v].update;
        if (u >= 0 && may_overwrite(l, v, u, fails))
            l->value[u].buffer = v;
        else if (u >= 0)
            reads(l, l->n_stages, u);
    }
    for (int k = 0; k < p->n_outputs; k++) {
        td_placed *x = &l->value[p->output[k]];
        if (x->root == p->output[k] && x->kind != TD_LEAF && x->buffer < 0)
            x->buffer = p->output[k];
    }
    for (int n = 0; n < l->n_stages; n++) {
        change_in_place(l, n);
        write_in_place(l, n);
    }
}
static void announce(td_lowered *l)
{
    for (int v = l->program->n_values - 1; v >= 0; v--) {
        td_placed *x = &l->value[v];
        if (needs_place(l, v)) {
            td_stage *s = &l->stage[x->first];
            x->next_born = s->born;
            s->born = v;
        }
        if (x->stored && x->kind != TD_LEAF && x->buffer < 0
            && x->root == v && x->last < l->n_stages) {
            td_stage *s = &l->stage[x->last];
            x->next_dying = s->dying;
            s->dying = v;
        }
    }
}

/* arena: function plan_memory */
typedef struct {
    int64_t from, bytes;
} gap;

static int64_t take(gap *g, int64_t bytes)
{
    while (g->bytes < bytes)
        g++;
    g->from += bytes;
    g->bytes -= bytes;
    return g->from - bytes;
}
static void give(gap *g, int *n, int64_t from, int64_t bytes)
{
    int i = 0;
    while (g[i].from <= from)
        i++;
    if (g[i].from == from + bytes) {
        g[i].from = from;
        g[i].bytes += bytes;
    } else {
        memmove(g + i + 1, g + i, (size_t)(*n - i) * sizeof *g);
        g[i] = (gap){ from, bytes };
        ++*n;
    }
    if (i > 0 && g[i - 1].from + g[i - 1].bytes == g[i].from) {
        g[i - 1].bytes += g[i].bytes;
        --*n;
        memmove(g + i, g + i + 1, (size_t)(*n - i) * sizeof *g);
    }
}
static int64_t room_of(const td_placed *v)
{
    return (v->like->storage->bytes + 63) / 64 * 64;
}

static void plan_memory(td_lowered *l)
{
    const size_t room = (size_t)l->program->n_values + 2;
    gap *gaps = td_alloc_array(room, sizeof *gaps);
    int n = 1, v;
    if (gaps == NULL)
        return;
    gaps[0].bytes = INT64_MAX;
    for (int s = 0; s < l->n_stages; s++) {
        for (v = l->stage[s].born; v >= 0; v = l->value[v].next_born) {
            td_placed *x = &l->value[v];
            x->place = take(gaps, room_of(x));
            l->bytes_unplanned += room_of(x);
            if (x->place + room_of(x) > l->bytes)
                l->bytes = x->place + room_of(x);
        }
        for (v = l->stage[s].dying; v >= 0; v = l->value[v].next_dying)
            if (l->value[v].place >= 0)
                give(gaps, &n, l->value[v].place,
                     room_of(&l->value[v]));
    }
    td_free(gaps, room * sizeof *gaps);
}

/* arena: function classify */
static bool classify(td_lowered *l)
{
    td_program *p = l->program;
    for (int s = 0; s < p->n_steps; s++) {
        const td_ir_step *step = &p->step[s];
        const td_step_kind kind = kind_of_step(l, step);
        for (int k = 0; k < step->n_out; k++) {
            td_placed *v = &l->value[step->out[k]];
            v->step = s;
            v->kind = kind;
            if (kind == TD_VIEW)
                v->root = l->value[step->in[0].value].root;
        }
    }
    for (int v = 0; v < p->n_values; v++)
        if (l->value[v].kind == TD_LEAF)
            l->value[v].stored = true;
    return true;
}

/* arena: function find_shapes */
static bool find_shapes(td_lowered *l)
{
    td_program *p = l->program;
    const size_t bytes = ((size_t)p->n_values + 1) * sizeof(void *);
    td_tensor **at = td_alloc(bytes);
    td_thread *self = td_self();
    const bool symbolic = self->symbolic;
    if (at == NULL)
        return false;
    self->symbolic = true;
    td_no_grad_begin();
    td_scope_begin();
    for (int v = 0; v < p->n_values; v++)
        if (p->value[v].origin != TD_IR_RESULT)
            at[v] = td_tensor_new(p->value[v].shape, p->value[v].dtype,
                                  p->value[v].device);
    for (int s = 0; s < p->n_steps && !td_failed(); s++)
        td_ir_replay(&p->step[s], at, 0);
    for (int v = 0; v < p->n_values && !td_failed(); v++)
        l->value[v] = (td_placed){ .step = -1, .root = v, .buffer = -1,
            .place = -1, .like = td_retain(at[v]), .last = -1,
            .next_born = -1, .next_dying = -1 };
    td_scope_end();
    td_no_grad_end();
    self->symbolic = symbolic;
    td_free(at, bytes);
    return !td_failed() && classify(l);
}

/* arena: function is_on_host */
static bool is_on_host(const td_lowered *l)
{
    for (int v = 0; v < l->program->n_values; v++)
        if (l->value[v].like->storage->device.kind != TD_DEVICE_CPU)
            return td_fail(TD_ERROR_UNSUPPORTED, "compile", "a value "
                           "is not on the cpu");
    return true;
}

/* arena: function make_stages */
static void make_stages(td_lowered *l)
{
    const td_program *p = l->program;
    for (int n = 0; n < p->n_steps; n++) {
        const int v = p->step[n].out[0];
        const td_step_kind kind = l->value[v].kind;
        if (!is_live(l, n) || kind == TD_VIEW || !l->value[v].stored)
            continue;
        td_stage *s = &l->stage[l->n_stages++];
        *s = (td_stage){ .kind = kind, .step = n, .out = v,
                         .born = -1, .dying = -1 };
        if (is_small(&l->value[v]))
            s->kind = TD_FORMULA;
        if (s->kind == TD_FORMULA || s->kind == TD_FOLD)
            describe_loop(l, s);
    }
}

/* arena: function td_lowered_free */
void td_lowered_free(td_lowered *l)
{
    if (l == NULL)
        return;
    const td_program *p = l->program;
    for (int v = 0; l->value != NULL && v < p->n_values; v++)
        td_release(l->value[v].like);
    if (p != NULL) {
        td_free(l->value, ((size_t)p->n_values + 1) * sizeof *l->value);
        td_free(l->stage, ((size_t)p->n_steps + 1) * sizeof *l->stage);
    }
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
    const int n = l->program->n_values;
    l->value = td_alloc_array((size_t)n + 1, sizeof *l->value);
    l->stage = td_alloc_array((size_t)l->program->n_steps + 1,
                              sizeof *l->stage);
    if (l->value && l->stage && find_shapes(l) && is_on_host(l)) {
        simplify(l);
        count_uses(l);
        decide(l);
        limit_formulas(l);
        call_plain_folds(l);
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
