/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "modules": edit that, not this file. */
#include "nn/module.h"
#include "core/require.h"
#include "core/tensor.h"
#include <treadle/treadle.h>
#include <math.h>
#include <stdio.h>

/* modules: function td_module_new */
void *td_module_new(const td_module_class *class, size_t bytes)
{
    td_module *m = td_object_new(&class->object, bytes);
    if (m) {
        m->class = class;
        m->training = true;
    }
    return m;
}
/* modules: function td_module_destroy */
void td_module_destroy(void *object)
{
    td_module *m = object;
    for (const td_field *f = m->class ? m->class->fields : NULL;
         f && f->name; f++)
        td_release(*(void **)(void *)((char *)m + f->offset));
    for (td_part *p = m->parts, *next; p; p = next) {
        next = p->next;
        td_release(p->object);
        td_free(p, sizeof *p);
    }
}
/* modules: function td_add_part */
bool td_add_part(td_module *m, td_field_kind kind, void *object,
                 const char *name)
{
    td_part *p = td_failed() ? NULL : td_alloc(sizeof *p);
    if (!p)
        return false;
    td_part **last = &m->parts;
    int number = 0;
    for (; *last; last = &(*last)->next)
        number++;
    *last = p;
    *p = (td_part){ .kind = kind, .object = td_retain(object) };
    const size_t room = sizeof p->name;
    if ((name ? snprintf(p->name, room, "%s", name)
         : snprintf(p->name, room, "%d", number)) >= (int)room)
        td_fail(TD_ERROR_VALUE, "parts", "a name is too long: %s...",
                p->name);
    return true;
}
/* modules: functions that walk a module */
/* modules: struct walk */
typedef struct {
    td_named_tensor *found;      /* NULL: only count */
    int count;
    bool state;                  /* buffers too, and what is shared
                                    every time */
    const bool *training;        /* the switch; NULL: leave it */
    char path[TD_NAME_SIZE];
} walk;
static void walk_module(walk *w, td_module *m);
/* modules: function note_tensor */
static void note_tensor(walk *w, const char *name, td_tensor *x)
{
    if (!x)
        return;                  /* a layer without a bias */
    if (!w->found) {
        w->count++;
        return;
    }
    for (int i = 0; i < w->count && !w->state; i++)
        if (w->found[i].tensor == x)
            return;
    td_named_tensor *n = &w->found[w->count++];
    n->tensor = x;
    const int length = snprintf(n->name, sizeof n->name, "%s%s",
                                w->path, name);
    if (length >= TD_NAME_SIZE)
        td_fail(TD_ERROR_RUNTIME, "parameters", "a name is longer than "
                "%d characters: %s...", TD_NAME_SIZE - 1, n->name);
}
/* modules: function walk_module */
static void walk_field(walk *w, td_field_kind kind, const char *name,
                       void *x)
{
    if (kind == TD_FIELD_MODULE && x) {
        /* modules: go down to the child and come back */
        const size_t before = strlen(w->path);
        snprintf(w->path + before, TD_NAME_SIZE - before, "%s.", name);
        walk_module(w, x);
        w->path[before] = '\0';
    } else if (kind == TD_FIELD_PARAMETER
               || (kind == TD_FIELD_BUFFER && w->state))
        note_tensor(w, name, x);
}
static void walk_module(walk *w, td_module *m)
{
    if (w->training)
        m->training = *w->training;
    for (const td_field *f = m->class->fields; f && f->name; f++)
        walk_field(w, f->kind, f->name,
                   *(void **)(void *)((char *)m + f->offset));
    for (td_part *p = m->parts; p; p = p->next)
        walk_field(w, p->kind, p->name, p->object);
}
/* modules: function collect */
/* Lists parameters or the state, in `plain` without names if that is
   not NULL; the number found, or -1 on failure. */
static int collect(td_module *m, bool state, td_named_tensor *out,
                   td_tensor **plain, int capacity)
{
    if (!td_require(m, "parameters", "module"))
        return -1;
    walk w = { .state = state };
    walk_module(&w, m);
    const size_t room = (size_t)w.count + 1;
    w.count = 0;
    w.found = TD_ARRAY(w.found, room);
    if (!w.found)
        return -1;
    walk_module(&w, m);
    for (int i = 0; i < w.count && i < capacity; i++)
        if (plain)
            plain[i] = w.found[i].tensor;
        else
            out[i] = w.found[i];
    TD_FREE_ARRAY(w.found, room);
    return td_failed() ? -1 : w.count;
}
/* modules: functions that list tensors */
int td_named_parameters(td_module *m, td_named_tensor *out,
                        int capacity)
{
    return collect(m, false, out, NULL, capacity);
}
int td_named_state(td_module *m, td_named_tensor *out, int capacity)
{
    return collect(m, true, out, NULL, capacity);
}
int td_parameters(td_module *m, td_tensor **out, int capacity)
{
    return collect(m, false, NULL, out, capacity);
}
/* modules: function td_train */
bool td_train(td_module *m, bool training)
{
    if (!td_require(m, "train", "module"))
        return false;
    walk_module(&(walk){ .training = &training }, m);
    return true;
}
bool td_is_training(const td_module *m)
{
    return m && m->training;
}
/* modules: function td_forward */
td_tensor *td_forward(td_module *m, td_tensor *x)
{
    if (!td_require(m, "forward", "module")
        || !td_require(x, "forward", "input"))
        return NULL;
    return m->class->forward(m, x);
}
/* modules: the modules themselves */
/* modules: struct linear */
typedef struct {
    td_module module;
    td_tensor *weight, *bias;
} linear;

static const td_field linear_fields[] = {
    TD_PARAMETER(linear, weight), TD_PARAMETER(linear, bias),
    { NULL, TD_FIELD_PARAMETER, 0 } };
/* modules: function linear_forward */
static td_tensor *linear_forward(td_module *self, td_tensor *x)
{
    linear *l = (linear *)self;
    return td_linear(x, l->weight, l->bias);
}
static const td_module_class linear_class = {
    { .name = "Linear", .destroy = td_module_destroy },
    linear_fields, linear_forward };
/* modules: function new_parameter */
static td_tensor *new_parameter(td_dims shape, td_linear_options o,
                                double bound)
{
    td_tensor *x = td_empty(shape, (td_tensor_options){
        .dtype = o.dtype, .device = o.device });
    return td_set_requires_grad(td_uniform_(x, -bound, bound), true);
}
/* modules: function td_linear_module */
td_module *td_linear_module(int64_t in, int64_t out,
                            td_linear_options options)
{
    if (in < 0 || out < 0)
        td_fail(TD_ERROR_VALUE, "linear_module", "sizes %" PRId64
                " and %" PRId64 " must not be negative", in, out);
    const double bound = in > 0 ? 1 / sqrt((double)in) : 0;
    td_scope_begin();
    linear *l = td_module_new(&linear_class, sizeof *l);
    td_tensor *weight = new_parameter(TD_DIMS(out, in), options, bound);
    td_tensor *bias = options.no_bias ? NULL
        : new_parameter(TD_DIMS(out), options, bound);
    if (!td_failed()) {
        l->weight = td_retain(weight);
        l->bias = td_retain(bias);
    }
    return td_scope_end_with(l);
}
/* modules: functions of the module ReLU */
static td_tensor *relu_forward(td_module *self, td_tensor *x)
{
    (void)self;
    return td_relu(x);
}
static const td_module_class relu_class = {
    { .name = "ReLU", .destroy = td_module_destroy },
    NULL, relu_forward };

td_module *td_relu_module(void)
{
    return td_module_new(&relu_class, sizeof(td_module));
}
/* modules: function sequential_forward */
static td_tensor *sequential_forward(td_module *self, td_tensor *x)
{
    td_scope_begin();
    for (td_part *p = self->parts; p; p = p->next)
        if (p->kind == TD_FIELD_MODULE)
            x = td_forward(p->object, x);
    return td_scope_end_with(x);
}
const td_module_class td_sequential_class = {
    { .name = "Sequential", .destroy = td_module_destroy },
    NULL, sequential_forward };
/* modules: function td_sequential */
td_module *td_sequential(td_module *const *children, int count)
{
    if (td_failed() || count < 0 || (count > 0 && !children)) {
        td_fail(TD_ERROR_VALUE, "sequential", "%d children", count);
        return NULL;
    }
    for (int i = 0; i < count; i++)
        if (!td_require(children[i], "sequential", "a child"))
            return NULL;
    td_scope_begin();
    td_module *s = td_module_new(&td_sequential_class, sizeof *s);
    for (int i = 0; s && i < count; i++)
        td_add_part(s, TD_FIELD_MODULE, children[i], NULL);
    return td_scope_end_with(s);
}
/* modules: initialisers */
/* modules: function fans */
static bool fans(const char *op, const td_tensor *w, double *in,
                 double *out)
{
    if (!td_require(w, op, "weight"))
        return false;
    if (td_rank(w) < 2)
        return td_fail(TD_ERROR_VALUE, op, "a weight of %d dimensions "
                       "has no fan-in and fan-out", td_rank(w));
    double field = 1;
    for (int d = 2; d < td_rank(w); d++)
        field *= (double)td_size(w, d);
    *in = field * (double)td_size(w, 1);
    *out = field * (double)td_size(w, 0);
    return true;
}
/* modules: functions that fill without a trace */
static td_tensor *fill(td_tensor *w, bool normal, double spread)
{
    td_no_grad_begin();
    td_tensor *result = normal ? td_normal_(w, 0, spread)
                               : td_uniform_(w, -spread, spread);
    td_no_grad_end();
    return result;
}
/* modules: initialisers of Glorot and Bengio */
td_tensor *td_xavier_uniform_(td_tensor *w, double gain)
{
    double in, out;
    return fans("xavier_uniform_", w, &in, &out)
        ? fill(w, false, gain * sqrt(6 / (in + out))) : NULL;
}
td_tensor *td_xavier_normal_(td_tensor *w, double gain)
{
    double in, out;
    return fans("xavier_normal_", w, &in, &out)
        ? fill(w, true, gain * sqrt(2 / (in + out))) : NULL;
}
/* modules: initialisers of He and others */
static double kaiming_deviation(double in, double out,
                                td_kaiming_options o)
{
    /* spread: exercise spread */
    const double slope = o.negative_slope;
    return sqrt(2 / (1 + slope * slope) / (o.fan_out ? out : in));
}
td_tensor *td_kaiming_uniform_(td_tensor *w, td_kaiming_options o)
{
    double in, out;
    return fans("kaiming_uniform_", w, &in, &out)
        ? fill(w, false, sqrt(3) * kaiming_deviation(in, out, o))
        : NULL;
}
td_tensor *td_kaiming_normal_(td_tensor *w, td_kaiming_options o)
{
    double in, out;
    return fans("kaiming_normal_", w, &in, &out)
        ? fill(w, true, kaiming_deviation(in, out, o)) : NULL;
}
/* modules: function td_gain */
double td_gain(const char *function, double slope)
{
    const struct { const char *name; double gain; } known[] = {
        { "linear", 1 }, { "sigmoid", 1 }, { "tanh", 5.0 / 3 },
        { "relu", sqrt(2) }, { "selu", 0.75 },
        { "leaky_relu", sqrt(2 / (1 + slope * slope)) } };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (function && strcmp(function, known[i].name) == 0)
            return known[i].gain;
    td_fail(TD_ERROR_VALUE, "gain", "no gain is known for '%s'",
            function ? function : "(null)");
    return 0;
}
