/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "modules": edit that, not this file. */
#include "nn/module.h"
#include "core/require.h"
#include "core/tensor.h"
#include <treadle/treadle.h>

/* modules: class of all modules */
TD_CLASS(module, td_module, m)
{
    for (td_part *p = m->parts, *next; p; p = next) {
        next = p->next;
        td_release(p->object);
        td_free(p, sizeof *p);
    }
}
/* modules: function td_module_new */
void *td_module_new(const td_module_class *class, size_t bytes)
{
    td_module *m = td_object_new(&module_class, bytes);
    if (m) {
        m->class = class;
        m->training = true;
    }
    return m;
}
/* modules: function td_add_part */
bool td_add_part(td_module *m, td_part_kind kind, void *object,
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
    td_named_list found;         /* at NULL: only count */
    bool buffers, once;          /* those, too; each tensor once */
    const bool *training;        /* the switch; NULL: leave it */
    char path[TD_NAME_SIZE];
} walk;
static void walk_module(walk *w, td_module *m);
/* modules: function note_tensor */
static void note_tensor(walk *w, const char *name, td_tensor *x)
{
    td_named_list *all = &w->found;
    if (!all->at) {
        all->count++;
        return;
    }
    for (int i = 0; i < all->count && w->once; i++)
        if (all->at[i].tensor == x)
            return;
    td_named_tensor *n = &all->at[all->count++];
    n->tensor = x;
    const int length = snprintf(n->name, sizeof n->name, "%s%s",
                                w->path, name);
    if (length >= TD_NAME_SIZE)
        td_fail(TD_ERROR_RUNTIME, "parameters", "a name is longer than "
                "%d characters: %s...", TD_NAME_SIZE - 1, n->name);
}
/* modules: function walk_module */
static void walk_module(walk *w, td_module *m)
{
    if (w->training)
        m->training = *w->training;
    for (td_part *p = m->parts; p; p = p->next)
        if (p->kind == TD_PART_MODULE) {
            /* modules: go down to the child and come back */
            const size_t before = strlen(w->path);
            snprintf(w->path + before, TD_NAME_SIZE - before, "%s.", p->name);
            walk_module(w, p->object);
            w->path[before] = '\0';
        } else if (p->kind == TD_PART_PARAMETER
                   || (p->kind == TD_PART_BUFFER && w->buffers))
            note_tensor(w, p->name, p->object);
}
/* modules: function td_list_tensors */
td_named_list td_list_tensors(td_module *m, bool buffers, bool once)
{
    walk w = { .buffers = buffers, .once = once };
    if (!td_require(m, "parameters", "module"))
        return w.found;
    walk_module(&w, m);
    w.found.room = w.found.count + 1;
    w.found.count = 0;
    w.found.at = TD_ARRAY(w.found.at, w.found.room);
    if (w.found.at)
        walk_module(&w, m);
    return w.found;
}
/* modules: function collect */
/* Lists parameters or the state, in `plain` without names if that is
   not NULL; the number found, or -1 on failure. */
static int collect(td_module *m, bool state, td_named_tensor *out,
                   td_tensor **plain, int capacity)
{
    const td_named_list all = td_list_tensors(m, state, !state);
    for (int i = 0; i < all.count && i < capacity; i++)
        if (plain)
            plain[i] = all.at[i].tensor;
        else
            out[i] = all.at[i];
    TD_FREE_ARRAY(all.at, all.room);
    return td_failed() ? -1 : all.count;
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
/* modules: function linear_forward */
static td_tensor *linear_forward(td_module *self, td_tensor *x)
{
    const td_part *weight = self->parts, *bias = weight->next;
    return td_linear(x, weight->object, bias ? bias->object : NULL);
}
static const td_module_class linear_class = {
    "Linear", linear_forward };
/* modules: function td_new_parameter */
td_tensor *td_new_parameter(td_dims shape, td_tensor_options o,
                            double low, double high)
{
    td_tensor *x = td_empty(shape, o);
    x = low < high ? td_uniform_(x, low, high)
                   : td_fill_(x, td_float(low));
    return td_set_requires_grad(x, true);
}
/* modules: function td_linear_module */
td_module *td_linear_module(int64_t in, int64_t out,
                            td_linear_options options)
{
    if (in < 0 || out < 0)
        td_fail(TD_ERROR_VALUE, "linear_module", "sizes %" PRId64
                " and %" PRId64 " must not be negative", in, out);
    const td_tensor_options o = { .dtype = options.dtype,
                                  .device = options.device };
    const double bound = in > 0 ? 1 / sqrt((double)in) : 0;
    td_scope_begin();
    td_module *l = td_module_new(&linear_class, sizeof *l);
    td_add_part(l, TD_PART_PARAMETER,
        td_new_parameter(TD_DIMS(out, in), o, -bound, bound), "weight");
    if (!options.no_bias)
        td_add_part(l, TD_PART_PARAMETER,
            td_new_parameter(TD_DIMS(out), o, -bound, bound), "bias");
    return td_scope_end_with(l);
}
/* modules: functions of the module ReLU */
static td_tensor *relu_forward(td_module *self, td_tensor *x)
{
    (void)self;
    return td_relu(x);
}
static const td_module_class relu_class = { "ReLU", relu_forward };

td_module *td_relu_module(void)
{
    return td_module_new(&relu_class, sizeof(td_module));
}
/* modules: function sequential_forward */
static td_tensor *sequential_forward(td_module *self, td_tensor *x)
{
    td_scope_begin();
    for (td_part *p = self->parts; p; p = p->next)
        if (p->kind == TD_PART_MODULE)
            x = td_forward(p->object, x);
    return td_scope_end_with(x);
}
const td_module_class td_sequential_class = {
    "Sequential", sequential_forward };
/* modules: function td_sequential */
td_module *td_sequential(td_module *const *children, int count)
{
    if (count < 0 || (count > 0 && !children))
        return td_fail(TD_ERROR_VALUE, "sequential", "%d children",
                       count), NULL;
    for (int i = 0; i < count; i++)
        if (!td_require(children[i], "sequential", "a child"))
            return NULL;
    td_scope_begin();
    td_module *s = td_module_new(&td_sequential_class, sizeof *s);
    for (int i = 0; s && i < count; i++)
        td_add_part(s, TD_PART_MODULE, children[i], NULL);
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
static td_tensor *fill(td_tensor *w, bool normal, double deviation)
{
    const double reach = sqrt(3) * deviation;
    td_no_grad_begin();
    td_tensor *result = normal ? td_normal_(w, 0, deviation)
                               : td_uniform_(w, -reach, reach);
    td_no_grad_end();
    return result;
}
/* modules: initialisers of Glorot and Bengio */
#define INITIALISER(name, type, normal, deviation) \
    td_tensor *td_##name(td_tensor *w, type o) \
    { \
        double in, out; \
        return fans(#name, w, &in, &out) \
            ? fill(w, normal, deviation) : NULL; \
    }
INITIALISER(xavier_uniform_, double, false, o * sqrt(2 / (in + out)))
INITIALISER(xavier_normal_, double, true, o * sqrt(2 / (in + out)))
/* modules: initialisers of He and others */
static double kaiming_deviation(double in, double out,
                                td_kaiming_options o)
{
    /* spread: exercise spread */
    const double slope = o.negative_slope;
    return sqrt(2 / (1 + slope * slope) / (o.fan_out ? out : in));
}
INITIALISER(kaiming_uniform_, td_kaiming_options, false,
            kaiming_deviation(in, out, o))
INITIALISER(kaiming_normal_, td_kaiming_options, true,
            kaiming_deviation(in, out, o))
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
