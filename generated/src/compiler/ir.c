/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "programs": edit that, not this file. */
/* Programs: built, printed, run, verified. */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
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

td_ir_step *td_ir_step_new(td_program *p)
{
    return td_ir_more(&p->step, &p->n_steps, &p->step_room,
                      sizeof *p->step);
}
td_ir_gradient *td_ir_gradient_new(td_program *p, int of)
{
    td_ir_gradient *g = of < 0 ? NULL
        : td_ir_more(&p->gradient, &p->n_gradients, &p->gradient_room,
                     sizeof *g);
    if (g != NULL)
        *g = (td_ir_gradient){ .of = of, .from = -1, .to = TD_IR_KEPT };
    return g;
}
td_ir_value td_ir_describe(const td_tensor *x, td_ir_origin origin)
{
    return (td_ir_value){ .origin = origin, .dtype = x->dtype,
                          .device = x->storage->device,
                          .shape = td_shape_of(x) };
}
td_value td_ir_attribute(td_program *p, const td_value *value)
{
    const size_t bytes = td_bytes_behind(value);
    void *room = bytes > 0 ? td_ir_keep(p, bytes) : NULL;
    return room != NULL ? td_value_copy(value, room) : *value;
}

/* tracing: class of programs */
static void program_destroy(void *object)
{
    td_program *p = object;
    for (int v = 0; v < p->n_values; v++)
        td_release(p->value[v].tensor);
    for (int k = 0; k < p->n_gradients; k++)
        td_release(p->gradient[k].leaf);
    while (p->blocks != NULL) {
        td_ir_block *block = p->blocks;
        p->blocks = block->next;
        td_free(block, block->bytes);
    }
    TD_FREE_ARRAY(p->value, p->value_room);
    TD_FREE_ARRAY(p->step, p->step_room);
    TD_FREE_ARRAY(p->gradient, p->gradient_room);
}

static const td_class program_class = { "program", program_destroy,
                                        TD_COUNT_OTHERS };

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
    for (int v = 0; v < p->n_values; v++)
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
    for (int i = 0; i < s->n_in; i++) {
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
    for (int k = 0; k < s->n_out; k++)
        fprintf(f, "%s%%%d", k ? ", " : "", s->out[k]);
    fputs(" = ", f);
    td_ir_print_call(f, s);
    for (int k = 0; k < s->n_out; k++) {
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
    for (int v = 0; v < p->n_values; v++)
        if (p->value[v].origin != TD_IR_RESULT) {
            fprintf(f, "%s%%%d", td_ir_words[p->value[v].origin], v);
            for (int k = 0; k < p->n_gradients; k++)
                if (p->gradient[k].from == v)
                    fprintf(f, " of %%%d", p->gradient[k].of);
            fprintf(f, " : %s\n", type_text(&p->value[v], type));
        }
    for (int s = 0; s < p->n_steps; s++)
        put_step(f, p, &p->step[s]);
    for (int v = 0; v < p->n_values; v++)
        if (p->value[v].update >= 0)
            fprintf(f, "update %%%d = %%%d\n", v, p->value[v].update);
    for (int k = 0; k < p->n_gradients; k++) {
        const td_ir_gradient *g = &p->gradient[k];
        if (g->to >= 0)
            fprintf(f, "gradient %%%d = %%%d\n", g->of, g->to);
        else if (g->to == TD_IR_CLEARED)
            fprintf(f, "gradient %%%d = None\n", g->of);
    }
    fprintf(f, "return");
    for (int k = 0; k < p->n_returned; k++)
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
    td_tensor **list = td_alloc(bytes);
    for (int k = 0; list && k < s->n_values; k++)
        list[k] = at[s->value[k]];
    if (list == NULL)
        return false;
    for (int i = 0; i < s->n_in; i++) {
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
    td_free(list, bytes);
    return ok;
}

/* programs: function hand_over_results */
static bool is_written(const td_program *p, td_tensor **at,
                       const td_tensor *x)
{
    for (int v = 0; v < p->n_values; v++)
        if (p->value[v].origin != TD_IR_RESULT
            && at[v]->storage == x->storage)
            return true;
    return false;
}

static void hand_over_results(td_program *p, td_tensor **at,
                              td_tensor **outputs)
{
    for (int k = 0; k < p->n_outputs && !td_failed(); k++) {
        td_tensor *x = at[p->output[k]];
        outputs[k] = is_written(p, at, x) ? td_clone(x)
                                          : td_tensor_alias(x);
    }
    for (int v = 0; v < p->n_values && !td_failed(); v++)
        if (p->value[v].update >= 0)
            td_copy_(at[v], at[p->value[v].update]);
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
static bool same_type(const td_ir_value *a, const td_ir_value *b)
{
    return a->dtype == b->dtype && td_dims_equal(&a->shape, &b->shape)
        && td_same_device(a->device, b->device);
}

static bool is_of_type(const td_tensor *x, const td_ir_value *v)
{
    const td_ir_value is = td_ir_describe(x, v->origin);
    return same_type(&is, v);
}

static bool refuse_input(int n, const td_tensor *x,
                         const td_ir_value *v)
{
    const td_ir_value given = td_ir_describe(x, v->origin);
    char is[TYPE_TEXT], expected[TYPE_TEXT];
    return td_fail(TD_ERROR_VALUE, "run", "input %d is %s, the program "
        "was traced with %s", n, type_text(&given, is),
        type_text(v, expected));
}
static bool enter_leaves(const td_program *p, td_tensor *const *inputs,
                         int n, td_tensor **at)
{
    int input = 0;
    for (int v = 0; v < p->n_values; v++) {
        const td_ir_value *value = &p->value[v];
        at[v] = value->tensor;
        if (value->origin > TD_IR_CAPTURED || value->tensor != NULL)
            continue;
        if (input >= n || inputs[input] == NULL)
            return td_fail(TD_ERROR_VALUE, "run",
                           "input %d is missing", input);
        at[v] = inputs[input++];
        if (!is_of_type(at[v], value))
            return refuse_input(input - 1, at[v], value);
    }
    for (int k = 0; k < p->n_gradients; k++) {
        const td_ir_gradient *g = &p->gradient[k];
        if (g->from >= 0 && !(at[g->from] = td_grad_of(at[g->of])))
            return td_fail(TD_ERROR_VALUE, "run", "%%%d has no "
                           "gradient to add to", g->of);
    }
    return input == n || td_fail(TD_ERROR_VALUE, "run", "expected %d "
                                 "inputs, got %d", input, n);
}
bool td_program_holds(const td_program *p)
{
    bool holds = true;
    for (int v = 0; holds && v < p->n_values; v++) {
        const td_ir_value *value = &p->value[v];
        holds = value->tensor == NULL
            || (is_of_type(value->tensor, value)
                && value->tensor->requires_grad
                   == value->requires_grad);
    }
    for (int k = 0; holds && k < p->n_gradients; k++) {
        const td_ir_gradient *g = &p->gradient[k];
        td_tensor *grad = g->leaf ? td_hold_grad(g->leaf) : NULL;
        holds = g->leaf == NULL
            || (!(g->absent && grad) && !(g->from >= 0 && !grad));
        td_release(grad);
    }
    return holds;
}
static bool overlaps(const td_program *p, td_tensor **at)
{
    for (int i = 0; i < p->n_values; i++) {
        const td_ir_value *a = &p->value[i];
        if (a->origin == TD_IR_RESULT || a->tensor != NULL)
            continue;
        for (int v = 0; v < p->n_values; v++)
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
    const bool found = at != NULL && enter_leaves(p, inputs, n, at)
                    && overlaps(p, at);
    td_ir_close(p, at);
    return found;
}

/* programs: function leave_gradients */
static bool is_shared(td_tensor **made, int k)
{
    int j = atomic_load(&made[k]->storage->count) > 1 ? 0 : k;
    while (j < k && made[j]->storage != made[k]->storage)
        j++;
    return j < k;
}

static bool leave_gradients(const td_program *p, td_tensor **at,
                            td_tensor **made)
{
    for (int k = 0; k < p->n_outputs; k++)
        if (is_shared(made, k))
            made[k] = td_clone(made[k]);
    int n = p->n_returned;
    for (int k = 0; k < p->n_gradients && !td_failed(); k++) {
        const td_ir_gradient *g = &p->gradient[k];
        if (g->to != TD_IR_KEPT)
            td_set_grad(at[g->of], g->to >= 0 ? made[n++] : NULL);
    }
    return !td_failed();
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
    if (ok && !td_program_holds(p))
        ok = td_fail(TD_ERROR_RUNTIME, "run", "a tensor that the "
            "program captured, or its gradient, is not as it was when "
            "the program was traced; trace it again");
    ok = ok && run(code, p, at, made) && leave_gradients(p, at, made);
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
        && (g->from < 0 || same_type(of, &p->value[g->from]))
        && (g->to < 0 || same_type(of, &p->value[g->to]));
    return good || td_fail(TD_ERROR_VALUE, "verify", "%%%d cannot have "
                           "this gradient", g->of);
}
static bool verify_step(const td_program *p, int n, td_tensor **at)
{
    const td_ir_step *s = &p->step[n++];
    /* programs: verify what the step reads and makes */
    for (int k = 0; k < s->n_values; k++)
        if (at[s->value[k]] == NULL)
            return td_fail(TD_ERROR_VALUE, "verify", "step %d (%s) uses "
                           "%%%d before it is defined", n, s->op->name,
                           s->value[k]);
    for (int k = 0; k < s->n_out; k++)
        if (at[s->out[k]] != NULL)
            return td_fail(TD_ERROR_VALUE, "verify", "step %d (%s) defines "
                           "%%%d a second time", n, s->op->name, s->out[k]);
    if (!td_ir_replay(s, at, 0))
        return false;
    /* programs: verify the types of its results */
    for (int k = 0; k < s->n_out; k++) {
        const td_ir_value *v = &p->value[s->out[k]];
        const td_tensor *x = at[s->out[k]];
        const td_ir_value made = x ? td_ir_describe(x, TD_IR_RESULT)
                                   : (td_ir_value){ 0 };
        char is[TYPE_TEXT], said[TYPE_TEXT];
        if (!same_type(&made, v))
            return td_fail(TD_ERROR_VALUE, "verify", "step %d (%s) makes "
                "%s, the program says %s", n, s->op->name,
                type_text(&made, is), type_text(v, said));
    }
    return true;
}

/* programs: function verify_values */
static void verify_values(const td_program *p, td_tensor **at)
{
    for (int v = 0; v < p->n_values; v++)
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
            || !same_type(&p->value[from], &p->value[v])))
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
