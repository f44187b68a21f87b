/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "programs": edit that, not this file. */
/* Programs: built, printed, run, verified. */
#include <ctype.h>
#include "grad/autograd.h"
#include "compiler/ir.h"
#include "ops/elementwise.h"

/* tracing: function td_ir_keep */
void *td_ir_keep(td_program *p, size_t bytes)
{
    const size_t all = sizeof(td_ir_block) + bytes;
    td_ir_block *block = td_alloc(all);
    if (block == NULL)
        return NULL;
    block->next = p->blocks;
    block->bytes = all;
    p->blocks = block;
    return block + 1;
}

/* tracing: function td_ir_more */
void *td_ir_more(void *array, int *count, int *room, size_t size)
{
    char *at;
    memcpy(&at, array, sizeof at);
    if (*count == *room) {
        const int more = *room > 0 ? 2 * *room : 32;
        char *larger = td_alloc_array((size_t)more, size);
        if (larger == NULL)
            return NULL;
        if (at != NULL)
            memcpy(larger, at, (size_t)*count * size);
        td_free(at, (size_t)*room * size);
        memcpy(array, &larger, sizeof larger);
        at = larger;
        *room = more;
    }
    return memset(at + (size_t)(*count)++ * size, 0, size);
}

/* tracing: functions that build a program */
int td_ir_value_new(td_program *p, td_ir_value value)
{
    td_ir_value *v = td_ir_more(&p->value, &p->n_values, &p->value_room,
                                sizeof *v);
    if (v == NULL)
        return -1;
    *v = value;
    v->update = -1;
    return p->n_values - 1;
}

td_ir_step *td_ir_step_new(td_program *p, const td_op *op, int n_in,
                           int n_attr, int n_values)
{
    td_ir_step *s = td_ir_more(&p->step, &p->n_steps, &p->step_room,
                               sizeof *s);
    if (s != NULL)
        *s = (td_ir_step){ .op = op, .n_in = n_in, .n_attr = n_attr,
            .in = td_ir_keep(p, (size_t)n_in * sizeof *s->in),
            .attr = td_ir_keep(p, (size_t)n_attr * sizeof *s->attr),
            .value = td_ir_keep(p, (size_t)n_values
                                   * sizeof *s->value) };
    return s;
}
td_ir_gradient *td_ir_gradient_new(td_program *p, int of)
{
    td_ir_gradient *g = of < 0 ? NULL
        : td_ir_more(&p->gradient, &p->n_gradients, &p->gradient_room,
                     sizeof *g);
    if (g != NULL)
        *g = (td_ir_gradient){ of, TD_IR_KEPT, TD_IR_KEPT };
    return g;
}
td_ir_value td_ir_describe(const td_tensor *x, td_ir_origin origin)
{
    return (td_ir_value){ .origin = origin, .dtype = x->dtype,
                          .device = x->storage->device,
                          .storage = x->storage,
                          .version = td_version_of(x),
                          .requires_grad = x->requires_grad,
                          .shape = td_shape_of(x) };
}
td_value td_ir_attribute(td_program *p, const td_value *value)
{
    const size_t bytes = td_bytes_behind(value);
    void *room = bytes > 0 ? td_ir_keep(p, bytes) : NULL;
    return room != NULL ? td_value_copy(value, room) : *value;
}

/* tracing: class of programs */
TD_CLASS(program, td_program, p)
{
    TD_EACH(v, p, values)
        td_release(p->value[v].tensor);
    while (p->blocks != NULL) {
        td_ir_block *block = p->blocks;
        p->blocks = block->next;
        td_free(block, block->bytes);
    }
    TD_FREE_ARRAY(p->value, p->value_room);
    TD_FREE_ARRAY(p->step, p->step_room);
    TD_FREE_ARRAY(p->gradient, p->gradient_room);
}

td_program *td_program_new(void)
{
    return td_object_new(&program_class, sizeof(td_program));
}

/* programs: functions that ask about programs */
int td_program_outputs(const td_program *p) { return p->n_returned; }
int td_program_steps(const td_program *p) { return p->n_steps; }

int td_program_inputs(const td_program *p)
{
    int n = 0;
    TD_EACH(v, p, values)
        n += p->value[v].origin <= TD_IR_CAPTURED
          && p->value[v].tensor == NULL;
    return n;
}

/* programs: functions that print a program */
static void put_scalar(FILE *f, td_scalar s)
{
    char digits[32];
    if (s.kind == TD_SCALAR_BOOL)
        fputs(s.as.b ? "True" : "False", f);
    else if (s.kind == TD_SCALAR_INT)
        fprintf(f, "%" PRId64, s.as.i);
    else {
        int n = 0;
        do
            snprintf(digits, sizeof digits, "%.*g", ++n, s.as.f);
        while (n < 17 && strtod(digits, NULL) != s.as.f);
        fprintf(f, "%s%s", digits,
                strpbrk(digits, ".en") ? "" : ".0");
    }
}
static void put_string(FILE *f, const char *s)
{
    fprintf(f, "'");
    for (; *s != '\0'; s++)
        if (*s == '\'' || *s == '\\' || iscntrl((unsigned char)*s))
            fprintf(f, "\\x%02x", (unsigned char)*s);
        else
            fputc(*s, f);
    fprintf(f, "'");
}

static void put_attribute(FILE *f, const td_value *v)
{
    char device[TD_DEVICE_TEXT];
    switch (v->kind) {
    case TD_SCALAR: put_scalar(f, v->as.scalar); break;
    case TD_STRING: put_string(f, v->as.string); break;
    case TD_DTYPE: fputs(td_dtype_name(v->as.dtype), f); break;
    case TD_DEVICE:
        fputs(td_device_text(v->as.device, device), f);
        break;
    case TD_INTS:
        fprintf(f, "[");
        for (int i = 0; i < v->as.ints.count; i++)
            fprintf(f, "%s%" PRId64, i ? ", " : "",
                    v->as.ints.at[i]);
        fprintf(f, "]");
        break;
    default: fprintf(f, "None");
    }
}
static void put_operand(FILE *f, const td_ir_operand *o)
{
    fputs(o->kind == TD_TENSORS ? "[" : "", f);
    for (int i = 0; i < o->count; i++)
        fprintf(f, "%s%%%d", i ? ", " : "", o->values[i]);
    fputs(o->kind == TD_TENSORS ? "]" : "", f);
    if (o->kind == TD_SCALAR)
        put_scalar(f, o->scalar);
    else if (o->kind == TD_NONE)
        fputs("None", f);
}
enum { TYPE_TEXT = 2 * TD_SHAPE_TEXT };

static const char *type_text(const td_ir_value *v, char text[TYPE_TEXT])
{
    char shape[TD_SHAPE_TEXT], device[TD_DEVICE_TEXT];
    const bool here = v->device.kind == TD_DEVICE_CPU;
    snprintf(text, TYPE_TEXT, "%s%s%s%s", td_dtype_name(v->dtype),
             td_dims_text(&v->shape, shape), here ? "" : " on ",
             here ? "" : td_device_text(v->device, device));
    return text;
}

/* programs: function td_ir_print_call */
void td_ir_print_call(FILE *f, const td_ir_step *s)
{
    td_signature signature;
    td_signature_parse(s->op->signature, &signature);
    fprintf(f, "%s(", s->op->name);
    TD_EACH(i, s, in) {
        fputs(i ? ", " : "", f);
        put_operand(f, &s->in[i]);
    }
    /* programs: print the attributes of the step */
    int n = 0;
    for (int i = 0; i < signature.n_parameters; i++) {
        if (signature.at[i].is_input)
            continue;
        const td_value *v = &s->attr[n++];
        if (v->kind == TD_NONE)
            continue;
        fprintf(f, "%s%s=", s->n_in > 0 || n > 1 ? ", " : "",
                signature.at[i].name);
        put_attribute(f, v);
    }
    fputc(')', f);
}

/* programs: function put_step */
static void put_step(FILE *f, const td_program *p, const td_ir_step *s)
{
    char type[TYPE_TEXT];
    TD_EACH(k, s, out)
        fprintf(f, "%s%%%d", k ? ", " : "", s->out[k]);
    fputs(" = ", f);
    td_ir_print_call(f, s);
    TD_EACH(k, s, out) {
        fputs(k ? ", " : " : ", f);
        fputs(type_text(&p->value[s->out[k]], type), f);
    }
    fputc('\n', f);
}

/* programs: function td_program_print */
const char *const td_ir_words[] = { "input ", "captured ",
                                    "gradient " };

int64_t td_program_print(const td_program *p, char *buffer,
                         int64_t capacity)
{
    td_text t;
    char type[TYPE_TEXT];
    if (!td_text_begin(&t))
        return 0;
    FILE *f = t.file;
    TD_EACH(v, p, values)
        if (p->value[v].origin != TD_IR_RESULT) {
            fprintf(f, "%s%%%d", td_ir_words[p->value[v].origin], v);
            TD_EACH(k, p, gradients)
                if (p->gradient[k].from == v)
                    fprintf(f, " of %%%d", p->gradient[k].of);
            fprintf(f, " : %s\n", type_text(&p->value[v], type));
        }
    TD_EACH(s, p, steps)
        put_step(f, p, &p->step[s]);
    TD_EACH(v, p, values)
        if (p->value[v].update >= 0)
            fprintf(f, "update %%%d = %%%d\n", v, p->value[v].update);
    TD_EACH(k, p, gradients) {
        const td_ir_gradient *g = &p->gradient[k];
        if (g->to >= 0)
            fprintf(f, "gradient %%%d = %%%d\n", g->of, g->to);
        else if (g->to == TD_IR_ABSENT)
            fprintf(f, "gradient %%%d = None\n", g->of);
    }
    fprintf(f, "return");
    TD_EACH(k, p, returned)
        fprintf(f, "%s%%%d", k ? ", " : " ", p->output[k]);
    fputc('\n', f);
    return td_text_copy(&t, buffer, capacity);
}

/* programs: functions that open and close a table */
static size_t table_bytes(const td_program *p)
{
    return (size_t)(p->n_values + p->n_outputs + 1) * sizeof(void *);
}

td_tensor **td_ir_open(const td_program *p)
{
    td_no_grad_begin();
    td_scope_begin();
    return td_failed() ? NULL : td_alloc(table_bytes(p));
}

void td_ir_close(const td_program *p, td_tensor **at)
{
    td_free(at, table_bytes(p));
    td_scope_end();
    td_no_grad_end();
}

/* programs: function td_ir_replay */
bool td_ir_replay(const td_ir_step *s, td_tensor **at,
                  unsigned in_place)
{
    td_value in[TD_MAX_PARAMETERS];
    td_tensor *changed[TD_MAX_RESULTS] = { NULL };
    const unsigned mutated = td_traits_of(s->op)->mutated;
    int n = 0;
    /* programs: list the tensors of the step */
    const size_t bytes = (size_t)s->n_values * sizeof *at;
    td_tensor *few[TD_MAX_PARAMETERS];
    td_tensor **list = s->n_values > TD_MAX_PARAMETERS ? td_alloc(bytes)
                                                       : few;
    for (int k = 0; list && k < s->n_values; k++)
        list[k] = at[s->value[k]];
    if (list == NULL)
        return false;
    TD_EACH(i, s, in) {
        /* programs: fetch one operand of the step */
        const td_ir_operand *o = &s->in[i];
        in[i] = (td_value){ .kind = o->kind };
        if (o->kind == TD_SCALAR)
            in[i].as.scalar = o->scalar;
        else if (o->kind == TD_TENSOR) {
            td_tensor *x = at[o->values[0]];
            if (mutated >> i & 1)
                x = changed[n++] = in_place >> i & 1 ? x : td_clone(x);
            in[i].as.tensor = x;
        } else {
            in[i].as.tensors.at = list + (o->values - s->value);
            in[i].as.tensors.count = o->count;
        }
    }
    td_call call = { .op = s->op, .n_in = s->n_in, .in = in,
                     .n_attr = s->n_attr, .attr = s->attr };
    const bool ok = td_run(&call);
    for (int k = 0; ok && k < s->n_out; k++)
        at[s->out[k]] = mutated ? changed[k] : call.out[k];
    td_free(list == few ? NULL : list, bytes);
    return ok;
}

/* programs: function hand_over_results */
static void hand_over_results(td_program *p, td_tensor **at,
                              td_tensor **outputs)
{
    const int own = 1 + (td_self()->trace != NULL);
    for (int k = 0; k < p->n_outputs && !td_failed(); k++) {
        const int v = p->output[k];
        outputs[k] = p->value[v].origin == TD_IR_RESULT
            && atomic_load(&at[v]->storage->count) == own
             ? td_tensor_alias(at[v]) : td_clone(at[v]);
    }
    td_scope_barrier_begin();
    for (int v = 0; v < p->n_values && !td_failed(); v++)
        if (p->value[v].update >= 0)
            td_release(td_copy_(at[v], at[p->value[v].update]));
    td_scope_barrier_end();
}

/* programs: function td_interpret */
bool td_interpret(void *code, td_program *p, td_tensor **at,
                  td_tensor **outputs)
{
    (void)code;
    for (int s = 0; s < p->n_steps && !td_failed(); s++)
        td_ir_replay(&p->step[s], at, 0);
    hand_over_results(p, at, outputs);
    return !td_failed();
}

/* programs: functions that check inputs */
static bool same_type(td_ir_value a, td_ir_value b)
{
    return a.dtype == b.dtype && td_dims_equal(&a.shape, &b.shape)
        && td_same_device(a.device, b.device);
}

static bool fits_input(int n, const td_tensor *x, const td_ir_value *v)
{
    const td_ir_value given = td_ir_describe(x, v->origin);
    char is[TYPE_TEXT], expected[TYPE_TEXT];
    return same_type(given, *v) || td_fail(TD_ERROR_VALUE, "run",
        "input %d is %s, the program was traced with %s", n,
        type_text(&given, is), type_text(v, expected));
}
static bool enter_leaves(const td_program *p, td_tensor *const *inputs,
                         int n, td_tensor **at)
{
    int input = 0;
    TD_EACH(v, p, values) {
        const td_ir_value *value = &p->value[v];
        at[v] = value->tensor;
        if (value->origin > TD_IR_CAPTURED || value->tensor != NULL)
            continue;
        if (input >= n || inputs[input] == NULL)
            return td_fail(TD_ERROR_VALUE, "run",
                           "input %d is missing", input);
        at[v] = inputs[input];
        if (!fits_input(input++, at[v], value))
            return false;
    }
    TD_EACH(k, p, gradients) {
        const td_ir_gradient *g = &p->gradient[k];
        if (g->from >= 0 && !(at[g->from] = td_grad_of(at[g->of])))
            return td_fail(TD_ERROR_VALUE, "run", "%%%d has no "
                           "gradient to add to", g->of);
    }
    return input == n || td_fail(TD_ERROR_VALUE, "run", "expected %d "
                                 "inputs, got %d", input, n);
}
bool td_program_holds(td_program *p)
{
    bool holds = true;
    for (int v = 0; holds && v < p->n_values; v++) {
        const td_ir_value *value = &p->value[v];
        if (value->tensor == NULL)
            continue;
        const td_ir_value is = td_ir_describe(value->tensor,
                                              value->origin);
        holds = same_type(is, *value)
            && is.requires_grad == value->requires_grad;
        /* programs: see whether what was read has changed */
        if (value->read && (!td_has_values(value->tensor)
                            || is.storage != value->storage
                            || is.version != value->version
                            || value->tensor->storage->shown))
            p->eager = true;
    }
    for (int k = 0; holds && k < p->n_gradients; k++) {
        const td_ir_gradient *g = &p->gradient[k];
        const td_tensor *leaf = p->value[g->of].tensor;
        if (leaf == NULL || g->from == TD_IR_KEPT)
            continue;
        td_tensor *grad = td_hold_grad(leaf);
        holds = grad == NULL ? g->from < 0 : g->from >= 0
            && same_type(td_ir_describe(grad, TD_IR_GRADIENT),
                         p->value[g->from]);
        td_release(grad);
    }
    return holds;
}
static bool overlaps(const td_program *p, td_tensor **at, bool strict)
{
    TD_EACH(i, p, values) {
        const td_ir_value *a = &p->value[i];
        if (a->origin == TD_IR_RESULT
            || (a->tensor && a->tensor->storage == a->storage))
            continue;
        if (strict && a->tensor == NULL
            && (at[i]->grad != NULL || !td_is_contiguous(at[i])))
            return true;
        TD_EACH(v, p, values)
            if (v != i && p->value[v].origin != TD_IR_RESULT
                && (a->update >= 0 || p->value[v].update >= 0)
                && td_share_bytes(at[i], at[v]))
                return true;
    }
    return false;
}

bool td_program_overlaps(const td_program *p, td_tensor *const *inputs,
                         int n)
{
    td_tensor **at = td_ir_open(p);
    const bool found = p->eager || (at != NULL
        && enter_leaves(p, inputs, n, at) && overlaps(p, at, true));
    td_ir_close(p, at);
    return found;
}

/* programs: function set_gradients */
static void set_gradients(const td_program *p, td_tensor **at,
                          td_tensor **made)
{
    TD_EACH(k, p, gradients) {
        const td_ir_gradient *g = &p->gradient[k];
        if (g->to != TD_IR_KEPT && (made || g->from < 0))
            td_set_grad(at[g->of], made && g->to >= 0 ? *made++ : NULL);
    }
}

/* programs: function td_ir_run */
bool td_ir_run(td_run_program *run, void *code, td_program *p,
               td_tensor *const *inputs, int n, td_tensor **outputs)
{
    if (p == NULL)
        return td_fail(TD_ERROR_VALUE, "run", "the program is NULL");
    td_tensor **at = td_ir_open(p);
    td_tensor **made = at != NULL ? at + p->n_values : NULL;
    bool ok = at != NULL && enter_leaves(p, inputs, n, at);
    if (ok && (!td_program_holds(p) || p->eager))
        ok = td_fail(TD_ERROR_RUNTIME, "run", "a captured tensor or "
            "its gradient is not as it was traced, or as no program "
            "can leave it");
    if (ok)
        set_gradients(p, at, NULL);
    ok = ok && (overlaps(p, at, false) ? td_interpret
                                : run)(code, p, at, made);
    if (ok)
        set_gradients(p, at, made + p->n_returned);
    for (int k = 0; ok && k < p->n_returned; k++)
        outputs[k] = td_keep(made[k]);
    td_ir_close(p, at);
    return ok;
}

bool td_program_run(td_program *p, td_tensor *const *inputs, int n,
                    td_tensor **outputs)
{
    return td_ir_run(td_interpret, NULL, p, inputs, n, outputs);
}

/* programs: functions that verify */
static bool verify_gradient(const td_program *p,
                            const td_ir_gradient *g)
{
    const td_ir_value *of = &p->value[g->of];
    const bool good = of->origin <= TD_IR_CAPTURED
        && (g->from < 0 || same_type(*of, p->value[g->from]))
        && (g->to < 0 || same_type(*of, p->value[g->to]));
    return good || td_fail(TD_ERROR_VALUE, "verify", "%%%d cannot have "
                           "this gradient", g->of);
}
static bool verify_step(const td_program *p, int n, td_tensor **at)
{
    const td_ir_step *s = &p->step[n++];
    /* programs: verify what the step reads and makes */
    TD_EACH(k, s, values)
        if (at[s->value[k]] == NULL)
            return td_fail(TD_ERROR_VALUE, "verify", "step %d (%s) uses "
                           "%%%d before it is defined", n, s->op->name,
                           s->value[k]);
    TD_EACH(k, s, out)
        if (at[s->out[k]] != NULL)
            return td_fail(TD_ERROR_VALUE, "verify", "step %d (%s) defines "
                           "%%%d a second time", n, s->op->name, s->out[k]);
    if (!td_ir_replay(s, at, 0))
        return false;
    /* programs: verify the types of its results */
    TD_EACH(k, s, out) {
        const td_ir_value *v = &p->value[s->out[k]];
        const td_tensor *x = at[s->out[k]];
        const td_ir_value made = x ? td_ir_describe(x, TD_IR_RESULT)
                                   : (td_ir_value){ 0 };
        char is[TYPE_TEXT], said[TYPE_TEXT];
        if (!same_type(made, *v))
            return td_fail(TD_ERROR_VALUE, "verify", "step %d (%s) makes "
                "%s, the program says %s", n, s->op->name,
                type_text(&made, is), type_text(v, said));
    }
    return true;
}

/* programs: function verify_values */
static void verify_values(const td_program *p, td_tensor **at)
{
    TD_EACH(v, p, values)
        if (p->value[v].origin != TD_IR_RESULT)
            at[v] = td_tensor_new(p->value[v].shape, p->value[v].dtype,
                                  p->value[v].device);
    for (int s = 0; s < p->n_steps && !td_failed(); s++)
        verify_step(p, s, at);
    for (int k = 0; k < p->n_outputs && !td_failed(); k++)
        if (at[p->output[k]] == NULL)
            td_fail(TD_ERROR_VALUE, "verify", "the program returns "
                    "%%%d, which no step makes", p->output[k]);
    /* programs: verify the updates of the program */
    for (int k = 0; k < p->n_gradients && !td_failed(); k++)
        verify_gradient(p, &p->gradient[k]);
    for (int v = 0; v < p->n_values && !td_failed(); v++) {
        const int from = p->value[v].update;
        if (from >= 0 && (p->value[v].origin == TD_IR_RESULT
            || at[from] == NULL
            || !same_type(p->value[from], p->value[v])))
            td_fail(TD_ERROR_VALUE, "verify", "%%%d cannot be updated with "
                    "%%%d", v, from);
    }
}

/* programs: function td_program_verify */
/* programs: function td_ir_imagine */
bool td_ir_imagine(const td_program *p, td_ir_sight *see, void *context)
{
    td_tensor **at = td_ir_open(p);
    const td_suspended outer = td_trace_suspend();
    td_self()->symbolic = true;
    if (at != NULL)
        verify_values(p, at);
    if (see != NULL && !td_failed())
        see(context, at);
    td_ir_close(p, at);
    td_trace_resume(outer);
    return !td_failed();
}

bool td_program_verify(const td_program *p)
{
    return p == NULL
        ? td_fail(TD_ERROR_VALUE, "verify", "the program is NULL")
        : td_ir_imagine(p, NULL, NULL);
}
