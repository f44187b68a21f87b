/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "programs": edit that, not this file. */
/* Programs: built, printed, run, verified. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
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

/* tracing: function td_ir_grow */
bool td_ir_grow(void *array, int count, int *room, size_t size)
{
    void *old, *larger;
    if (count < *room)
        return true;
    const int more = *room > 0 ? 2 * *room : 32;
    memcpy(&old, array, sizeof old);
    if ((larger = td_alloc_array((size_t)more, size)) == NULL)
        return false;
    if (count > 0)
        memcpy(larger, old, (size_t)count * size);
    td_free(old, (size_t)*room * size);
    memcpy(array, &larger, sizeof larger);
    *room = more;
    return true;
}

/* tracing: functions that build a program */
int td_ir_value_new(td_program *p, td_ir_value value)
{
    if (!td_ir_grow(&p->value, p->n_values, &p->value_room,
                    sizeof *p->value))
        return -1;
    value.update = -1;
    p->value[p->n_values] = value;
    return p->n_values++;
}

td_ir_step *td_ir_step_new(td_program *p)
{
    if (!td_ir_grow(&p->step, p->n_steps, &p->step_room,
                    sizeof *p->step))
        return NULL;
    td_ir_step *step = &p->step[p->n_steps++];
    memset(step, 0, sizeof *step);
    return step;
}
td_ir_gradient *td_ir_gradient_new(td_program *p, int of)
{
    if (of < 0 || !td_ir_grow(&p->gradient, p->n_gradients,
                              &p->gradient_room, sizeof *p->gradient))
        return NULL;
    td_ir_gradient *g = &p->gradient[p->n_gradients++];
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
    td_value copy = *value;
    const size_t bytes =
        copy.kind == TD_STRING ? strlen(copy.as.string) + 1 :
        copy.kind == TD_INTS ? (size_t)copy.as.ints.count
                               * sizeof(int64_t) : 0;
    void *room = bytes > 0 ? td_ir_keep(p, bytes) : NULL;
    if (room == NULL)
        return copy;
    if (copy.kind == TD_STRING)
        copy.as.string = memcpy(room, copy.as.string, bytes);
    else
        copy.as.ints.at = memcpy(room, copy.as.ints.at, bytes);
    return copy;
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
    td_free(p->value, (size_t)p->value_room * sizeof *p->value);
    td_free(p->step, (size_t)p->step_room * sizeof *p->step);
    td_free(p->gradient,
            (size_t)p->gradient_room * sizeof *p->gradient);
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

/* programs: function put */
typedef struct {
    char *out;
    int64_t room, length;
} text;

__attribute__((format(printf, 2, 3)))
static void put(text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int64_t left = t->length < t->room ? t->room - t->length : 0;
    const int n = vsnprintf(left > 0 ? t->out + t->length : NULL,
                            (size_t)left, format, args);
    va_end(args);
    t->length += n > 0 ? n : 0;
}

/* programs: functions that print a program */
static void put_scalar(text *t, td_scalar s)
{
    char digits[32];
    if (s.kind == TD_SCALAR_BOOL)
        put(t, s.as.b ? "True" : "False");
    else if (s.kind == TD_SCALAR_INT)
        put(t, "%lld", (long long)s.as.i);
    else {
        int n = 0;
        do
            snprintf(digits, sizeof digits, "%.*g", ++n, s.as.f);
        while (n < 17 && strtod(digits, NULL) != s.as.f);
        put(t, "%s%s", digits, strpbrk(digits, ".en") ? "" : ".0");
    }
}
static void put_string(text *t, const char *s)
{
    put(t, "'");
    for (; *s != '\0'; s++)
        if (*s == '\'' || *s == '\\' || iscntrl((unsigned char)*s))
            put(t, "\\x%02x", (unsigned char)*s);
        else
            put(t, "%c", *s);
    put(t, "'");
}

static void put_attribute(text *t, const td_value *v)
{
    char device[TD_DEVICE_TEXT];
    switch (v->kind) {
    case TD_SCALAR: put_scalar(t, v->as.scalar); break;
    case TD_STRING: put_string(t, v->as.string); break;
    case TD_DTYPE: put(t, "%s", td_dtype_name(v->as.dtype)); break;
    case TD_DEVICE:
        put(t, "%s", td_device_text(v->as.device, device));
        break;
    case TD_INTS:
        put(t, "[");
        for (int i = 0; i < v->as.ints.count; i++)
            put(t, "%s%lld", i ? ", " : "",
                (long long)v->as.ints.at[i]);
        put(t, "]");
        break;
    default: put(t, "None");
    }
}
static void put_operand(text *t, const td_ir_operand *o)
{
    if (o->kind == TD_TENSOR)
        put(t, "%%%d", o->value);
    else if (o->kind == TD_SCALAR)
        put_scalar(t, o->scalar);
    else if (o->kind == TD_NONE)
        put(t, "None");
    else {
        put(t, "[");
        for (int i = 0; i < o->count; i++)
            put(t, "%s%%%d", i ? ", " : "", o->values[i]);
        put(t, "]");
    }
}
static void put_type(text *t, const td_ir_value *v)
{
    char shape[TD_SHAPE_TEXT], device[TD_DEVICE_TEXT];
    put(t, "%s%s", td_dtype_name(v->dtype),
        td_dims_text(&v->shape, shape));
    if (v->device.kind != TD_DEVICE_CPU)
        put(t, " on %s", td_device_text(v->device, device));
}

static void put_step(text *t, const td_program *p, const td_ir_step *s)
{
    td_signature signature;
    td_signature_parse(s->op->signature, &signature);
    for (int k = 0; k < s->n_out; k++)
        put(t, "%s%%%d", k ? ", " : "", s->out[k]);
    put(t, " = %s(", s->op->name);
    for (int i = 0; i < s->n_in; i++) {
        put(t, "%s", i ? ", " : "");
        put_operand(t, &s->in[i]);
    }
    /* programs: print the attributes of the step */
    int n = 0;
    for (int i = 0; i < signature.n_parameters; i++) {
        if (signature.at[i].is_input)
            continue;
        const td_value *v = &s->attr[n++];
        if (v->kind == TD_NONE)
            continue;
        put(t, "%s%s=", s->n_in > 0 || n > 1 ? ", " : "",
            signature.at[i].name);
        put_attribute(t, v);
    }
    put(t, ") : ");
    for (int k = 0; k < s->n_out; k++) {
        put(t, "%s", k ? ", " : "");
        put_type(t, &p->value[s->out[k]]);
    }
    put(t, "\n");
}

/* programs: function td_program_print */
int64_t td_program_print(const td_program *p, char *buffer,
                         int64_t capacity)
{
    text t = { buffer, capacity, 0 };
    void *locale = td_locale_begin();
    static const char *const words[] = { "input", "captured",
                                         "gradient" };
    for (int v = 0; v < p->n_values; v++)
        if (p->value[v].origin != TD_IR_RESULT) {
            put(&t, "%s %%%d", words[p->value[v].origin], v);
            for (int k = 0; k < p->n_gradients; k++)
                if (p->gradient[k].from == v)
                    put(&t, " of %%%d", p->gradient[k].of);
            put(&t, " : ");
            put_type(&t, &p->value[v]);
            put(&t, "\n");
        }
    for (int s = 0; s < p->n_steps; s++)
        put_step(&t, p, &p->step[s]);
    for (int v = 0; v < p->n_values; v++)
        if (p->value[v].update >= 0)
            put(&t, "update %%%d = %%%d\n", v, p->value[v].update);
    for (int k = 0; k < p->n_gradients; k++)
        if (p->gradient[k].to >= 0)
            put(&t, "gradient %%%d = %%%d\n", p->gradient[k].of,
                p->gradient[k].to);
        else if (p->gradient[k].to == TD_IR_CLEARED)
            put(&t, "gradient %%%d = None\n", p->gradient[k].of);
    put(&t, "return");
    for (int k = 0; k < p->n_returned; k++)
        put(&t, "%s%%%d", k ? ", " : " ", p->output[k]);
    put(&t, "\n");
    td_locale_end(locale);
    return t.length;
}

/* programs: function td_ir_replay */
bool td_ir_replay(const td_ir_step *s, td_tensor **at,
                  unsigned in_place)
{
    td_value in[TD_MAX_PARAMETERS];
    td_tensor **list = NULL, *changed[TD_MAX_RESULTS] = { NULL };
    const unsigned mutated = td_traits_of(s->op)->mutated;
    size_t bytes = 0;
    int listed = 0, n = 0;
    for (int i = 0; i < s->n_in; i++)
        bytes += (size_t)s->in[i].count * sizeof *list;
    if (bytes > 0 && (list = td_alloc(bytes)) == NULL)
        return false;
    for (int i = 0; i < s->n_in; i++) {
        /* programs: fetch one operand of the step */
        const td_ir_operand *o = &s->in[i];
        in[i] = (td_value){ .kind = o->kind };
        if (o->kind == TD_SCALAR)
            in[i].as.scalar = o->scalar;
        else if (o->kind == TD_TENSOR && mutated >> i & 1)
            in[i].as.tensor = changed[n++] = in_place >> i & 1
                ? at[o->value] : td_clone(at[o->value]);
        else if (o->kind == TD_TENSOR)
            in[i].as.tensor = at[o->value];
        else if (o->kind == TD_TENSORS) {
            in[i].as.tensors.at = list + listed;
            in[i].as.tensors.count = o->count;
            for (int k = 0; k < o->count; k++)
                list[listed++] = at[o->values[k]];
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
        outputs[k] = td_keep(is_written(p, at, x) ? td_clone(x)
                                                  : td_tensor_alias(x));
    }
    for (int v = 0; v < p->n_values && !td_failed(); v++)
        if (p->value[v].update >= 0)
            td_copy_(at[v], at[p->value[v].update]);
}

/* programs: function td_interpret */
bool td_interpret(void *code, td_program *p, td_tensor *const *inputs,
                  int n, td_tensor **outputs)
{
    const size_t bytes = (size_t)(p->n_values + 1)
                         * sizeof(td_tensor *);
    td_tensor **at = td_alloc(bytes);
    (void)code;
    (void)n;
    if (at == NULL)
        return false;
    td_no_grad_begin();
    td_scope_begin();
    int input = 0;
    for (int v = 0; v < p->n_values; v++)
        at[v] = p->value[v].tensor ? p->value[v].tensor
              : p->value[v].origin != TD_IR_RESULT ? inputs[input++]
              : NULL;
    for (int s = 0; s < p->n_steps && !td_failed(); s++)
        td_ir_replay(&p->step[s], at, 0);
    hand_over_results(p, at, outputs);
    td_scope_end();
    td_no_grad_end();
    td_free(at, bytes);
    return !td_failed();
}

/* programs: functions that check inputs */
static bool is_of_type(const td_tensor *x, const td_ir_value *v)
{
    const td_dims shape = td_shape_of(x);
    const td_device here = x->storage->device;
    return here.kind == v->device.kind && x->dtype == v->dtype
        && here.index == v->device.index
        && td_dims_equal(&shape, &v->shape);
}

static bool refuse_input(int n, const td_tensor *x,
                         const td_ir_value *v)
{
    char is[TD_SHAPE_TEXT], expected[TD_SHAPE_TEXT];
    const td_device here = x->storage->device;
    if (here.kind != v->device.kind || here.index != v->device.index)
        return td_fail(TD_ERROR_VALUE, "run", "input %d is on %s, "
            "the program was traced on %s", n, td_device_text(here, is),
            td_device_text(v->device, expected));
    return td_fail(TD_ERROR_VALUE, "run", "input %d is %s%s, "
        "the program was traced with %s%s", n, td_dtype_name(x->dtype),
        td_shape_text(x, is), td_dtype_name(v->dtype),
        td_dims_text(&v->shape, expected));
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
    const size_t bytes = (size_t)(p->n_values + 1)
                         * sizeof(td_tensor *);
    td_tensor **at = td_alloc(bytes);
    td_scope_begin();
    const bool found = at != NULL && enter_leaves(p, inputs, n, at)
                    && overlaps(p, at);
    td_scope_end();
    td_free(at, bytes);
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
    const size_t values = (size_t)p->n_values + 1;
    const size_t bytes = (2 * values + (size_t)p->n_outputs)
                         * sizeof(td_tensor *);
    td_tensor **at = td_failed() ? NULL : td_alloc(bytes);
    if (at == NULL)
        return false;
    td_tensor **given = at + values, **made = given + values;
    int count = 0;
    td_scope_begin();
    bool ok = enter_leaves(p, inputs, n, at);
    if (ok && !td_program_holds(p))
        ok = td_fail(TD_ERROR_RUNTIME, "run", "a tensor that the "
            "program captured, or its gradient, is not as it was when "
            "the program was traced; trace it again");
    for (int v = 0; ok && v < p->n_values; v++)
        if (p->value[v].origin != TD_IR_RESULT && !p->value[v].tensor)
            given[count++] = at[v];
    ok = ok && run(code, p, given, count, made)
            && leave_gradients(p, at, made);
    for (int k = 0; ok && k < p->n_returned; k++)
        outputs[k] = td_keep(made[k]);
    td_scope_end();
    td_free(at, bytes);
    return ok;
}

bool td_program_run(td_program *p, td_tensor *const *inputs, int n,
                    td_tensor **outputs)
{
    return td_ir_run(td_interpret, NULL, p, inputs, n, outputs);
}

/* programs: functions that verify */
static bool same_type(const td_ir_value *a, const td_ir_value *b)
{
    return a->dtype == b->dtype && td_dims_equal(&a->shape, &b->shape)
        && a->device.kind == b->device.kind
        && a->device.index == b->device.index;
}

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
static bool operands_are_defined(const td_ir_step *s, td_tensor **at,
                                 int number)
{
    for (int i = 0; i < s->n_in; i++) {
        const td_ir_operand *o = &s->in[i];
        const int count = o->kind == TD_TENSOR ? 1
                        : o->kind == TD_TENSORS ? o->count : 0;
        for (int k = 0; k < count; k++) {
            const int v = o->kind == TD_TENSOR ? o->value
                                               : o->values[k];
            if (at[v] == NULL)
                return td_fail(TD_ERROR_VALUE, "verify", "step %d (%s) "
                               "uses %%%d before it is defined",
                               number + 1, s->op->name, v);
        }
    }
    return true;
}

static bool results_are_new(const td_ir_step *s, td_tensor **at,
                            int number)
{
    for (int k = 0; k < s->n_out; k++)
        if (at[s->out[k]] != NULL)
            return td_fail(TD_ERROR_VALUE, "verify", "step %d (%s) "
                           "defines %%%d a second time", number + 1,
                           s->op->name, s->out[k]);
    return true;
}

static bool verify_types(const td_program *p, const td_ir_step *s,
                         td_tensor **at, int number)
{
    for (int k = 0; k < s->n_out; k++) {
        const td_ir_value *v = &p->value[s->out[k]];
        const td_tensor *x = at[s->out[k]];
        const td_dims shape = td_shape_of(x);
        char is[TD_SHAPE_TEXT], said[TD_SHAPE_TEXT];
        if (x == NULL || x->dtype != v->dtype
            || !td_dims_equal(&shape, &v->shape))
            return td_fail(TD_ERROR_VALUE, "verify", "step %d (%s) "
                "makes %s%s, the program says %s%s", number + 1,
                s->op->name, td_dtype_name(td_dtype_of(x)),
                td_shape_text(x, is), td_dtype_name(v->dtype),
                td_dims_text(&v->shape, said));
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
        if (operands_are_defined(&p->step[s], at, s)
            && results_are_new(&p->step[s], at, s)
            && td_ir_replay(&p->step[s], at, 0))
            verify_types(p, &p->step[s], at, s);
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
            || p->value[from].dtype != p->value[v].dtype
            || !td_dims_equal(&p->value[from].shape, &p->value[v].shape)))
            td_fail(TD_ERROR_VALUE, "verify", "%%%d cannot be updated with "
                    "%%%d", v, from);
    }
}

/* programs: function td_program_verify */
bool td_program_verify(const td_program *p)
{
    td_thread *self = td_self();
    if (p == NULL)
        return td_fail(TD_ERROR_VALUE, "verify", "the program is NULL");
    const size_t n = (size_t)p->n_values + 1;
    const size_t bytes = n * sizeof(td_tensor *);
    td_tensor **at = td_failed() ? NULL : td_alloc(bytes);
    if (at == NULL)
        return false;
    struct td_trace *trace = self->trace;
    const bool symbolic = self->symbolic;
    self->trace = NULL;
    self->symbolic = true;
    td_no_grad_begin();
    td_scope_begin();
    verify_values(p, at);
    td_scope_end();
    td_no_grad_end();
    self->trace = trace;
    self->symbolic = symbolic;
    td_free(at, bytes);
    return !td_failed();
}
