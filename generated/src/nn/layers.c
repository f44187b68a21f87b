/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "containers": edit that, not this file. */
#include "nn/layers.h"
#include "core/require.h"
#include "grad/autograd.h"

enum { LAYERS_MOST = 100 };
typedef td_tensor *const tensor;
typedef const char *const text;
/* containers: table of the arguments */
static const struct { const char *name; char kind; size_t offset; }
args[] = {
#define ROW(name, kind) { #name, kind, offsetof(td_args, name) },
#define TENSOR(name) ROW(name, 't')
#define SIZE(name) ROW(name, 'i')
#define NUMBER(name) ROW(name, 'n')
#define REAL(name) ROW(name, 'r')
#define FLAG(name) ROW(name, 'b')
#define SIZES(name) ROW(name, 'd')
#define TEXT(name) ROW(name, 's')
#define TENSORS(name) ROW(name, 'l')
#include <treadle/arguments.h>
};
enum { ARGS = sizeof args / sizeof args[0] };
/* containers: function value_of */
static td_value value_of(int n, const td_args *a)
{
    if (n < 0)
        return td_v_none();
    const void *at = (const char *)a + args[n].offset;
#define KIND(letter, type, given, value) \
    if (args[n].kind == letter) { \
        const type *v = at; \
        return given ? value : td_v_none(); \
    }
    KIND('t', tensor, *v, td_v_tensor(*v))
    KIND('i', int64_t, *v, td_v_int(*v))
    KIND('n', td_opt_i64, v->given, td_v_int(v->value))
    KIND('r', td_opt_f64, v->given, td_v_float(v->value))
    KIND('b', bool, *v, td_v_bool(*v))
    KIND('d', td_dims, v->count, td_v_ints(v))
    KIND('s', text, *v, td_v_string(*v))
    const td_tensors *v = at;
    return v->count ? td_v_tensors(v->count, v->at) : td_v_none();
}
/* containers: struct naming */
typedef struct {
    bool ready;
    td_signature s;
    int row[TD_MAX_PARAMETERS];
    td_value usual[TD_MAX_PARAMETERS];
} naming;

static naming namings[TD_OP_COUNT];

static int find(const char *name)
{
    int n = 0;
    while (n < ARGS && strcmp(args[n].name, name) != 0)
        n++;
    return n < ARGS ? n : -1;
}
/* containers: function naming_of */
static const naming *naming_of(const td_op *op)
{
    naming *p = &namings[op - td_ops];
    pthread_mutex_t *lock = td_lock(p);
    if (!p->ready)
        td_signature_parse(op->signature, &p->s);
    for (int i = 0; i < p->s.n_parameters && !p->ready; i++) {
        const char *name = p->s.at[i].name;
        if (strcmp(name, "train") == 0
            || strcmp(name, "use_input_stats") == 0)
            name = "training";
        if (p->s.at[i].is_input && strcmp(name, "value") == 0)
            name = "values";
        p->row[i] = find(name);
        p->usual[i] = td_usual(&p->s.at[i]);
    }
    p->ready = true;
    pthread_mutex_unlock(lock);
    return p;
}
/* containers: function td_usual */
td_value td_usual(td_parameter *p)
{
    char *t = p->default_text;
    if (p->kind == TD_P_BOOL && *t != 'N')
        return td_v_bool(*t == 'T');
    if (*t == 'N' || *t == '\0')
        return td_v_none();
    if (p->list)
        return (td_value){ .kind = TD_INTS };
    /* containers: read a text or a number */
    if (*t == '\'') {
        t[strlen(t) - 1] = '\0';
        return td_v_string(t + 1);
    }
    if (p->kind != TD_P_FLOAT && !strpbrk(t, ".ein"))
        return td_v_int(strtoll(t, NULL, 10));
    void *before = td_locale_begin();
    const double x = strtod(t, NULL);
    td_locale_end(before);
    return td_v_float(x);
}
/* containers: function td_run_named */
td_tensor *td_run_named(const td_op *op, td_tensor *x, const td_args *a)
{
    td_value in[TD_MAX_PARAMETERS], attr[TD_MAX_PARAMETERS];
    td_call call = { .op = op, .in = in, .attr = attr };
    const naming *p = naming_of(op);
    for (int i = 0; i < p->s.n_parameters; i++) {
        const td_parameter *q = &p->s.at[i];
        td_value v = i == 0 ? td_v_optional(x) : value_of(p->row[i], a);
        /* containers: take the default, or miss the argument */
        if (v.kind == TD_NONE)
            v = p->usual[i];
        if (v.kind == TD_NONE && !q->optional && !q->has_default)
            return td_fail(TD_ERROR_VALUE, op->name, "%s is missing", q->name),
                   NULL;
        if (v.kind == TD_TENSORS && !q->list)
            v = td_v_tensor(v.as.tensors.at[0]);
        if (q->is_input)
            in[call.n_in++] = v;
        else
            attr[call.n_attr++] = v;
    }
    td_scope_begin();
    td_run(&call);
    for (int i = 1; a->more && i < call.n_out; i++)
        a->more->at[i - 1] = td_keep(call.out[i]);
    return td_scope_end_with(call.out[0]);
}
/* containers: function asks */
static bool asks(const td_op *op, int n)
{
    const naming *p = naming_of(op);
    int i = 1;
    while (i < p->s.n_parameters && p->row[i] != n)
        i++;
    return i < p->s.n_parameters;
}
/* containers: functions that run a layer */
static td_tensor *layer_forward(td_module *m, td_tensor *x);

td_tensor *td_forward_with(td_module *m, td_tensor *x, td_more *more)
{
    if (!m || !x || !more || td_failed()
        || m->class->forward != layer_forward)
        return td_forward(m, x);
    layer now = *(layer *)m;
    now.a.training = m->training;
    now.a.more = more;
    td_scope_begin();
    const layer_row *row = (const layer_row *)m->class;
    x = row->run ? row->run(&now, x) : td_run_named(row->op, x, &now.a);
    for (int i = 0; i < 4; i++)
        td_keep(more->at[i]);
    return td_scope_end_with(x);
}
static td_tensor *layer_forward(td_module *m, td_tensor *x)
{
    td_scope_begin();
    return td_scope_end_with(td_forward_with(m, x,
                                             &(td_more){ { NULL } }));
}
/* containers: function accepts */
static const char *mention(const char *words, const char *name)
{
    const size_t n = strlen(name);
    while ((words = strstr(words, name)) != NULL
           && (words[-1] != ' ' || !strchr(" !=", words[n])))
        words += n;
    return words ? words + n : NULL;
}

static bool accepts(const layer_row *row, td_args *a)
{
    const char *name = row->class.name;
    if (!row->make && (a->dtype || a->device.kind))
        return td_fail(TD_ERROR_VALUE, name, "has no dtype, no device");
    for (int n = 0; n < ARGS; n++) {
        const char *said = mention(row->takes, args[n].name);
        const bool given = value_of(n, a).kind != TD_NONE;
        const bool own = row->class.forward && args[n].kind == 't';
        if (given && !said && (own || !row->op || !asks(row->op, n)))
            return td_fail(TD_ERROR_VALUE, name, "there is no %s",
                           args[n].name);
        if (!given && said && *said == '!')
            return td_fail(TD_ERROR_VALUE, name, "%s is missing",
                           args[n].name);
        if (!given && said && *said == '=')
            *(int64_t *)(void *)((char *)a + args[n].offset)
                = strtoll(said + 1, NULL, 10);
    }
    return true;
}
/* containers: function by_name */
static td_tensor *by_name(const td_op *op, td_tensor *x, td_args a)
{
    const layer_row row = { .class.name = op->name, .op = op,
                            .takes = "" };
    return accepts(&row, &a) ? td_run_named(op, x, &a) : NULL;
}
/* containers: functions that make parts */
td_opt_f64 td_or(td_opt_f64 given, double otherwise)
{
    return given.given ? given : (td_opt_f64)td_some(otherwise);
}
void td_add_tensor(layer *l, td_part_kind kind, td_tensor *x,
                   const char *name)
{
    const int n = find(name);
    if (td_add_part(&l->module, kind, x, name) && n >= 0)
        *(td_tensor **)(void *)((char *)&l->a + args[n].offset) = x;
}
td_tensor *td_add_weight(layer *l, td_dims shape, double low,
                         double high, const char *name)
{
    td_tensor *x = td_new_parameter(shape, (td_tensor_options){
        .dtype = l->a.dtype, .device = l->a.device }, low, high);
    td_add_tensor(l, TD_PART_PARAMETER, x, name);
    return x;
}
static td_module *child(const td_module *m, const char *name)
{
    for (td_part *p = m ? m->parts : NULL; p; p = p->next)
        if (p->kind == TD_PART_MODULE && name
            && strcmp(p->name, name) == 0)
            return p->object;
    return NULL;
}
td_module *td_child(td_module *m, const char *name)
{
    td_module *found = child(m, name);
    if (!found)
        td_fail(TD_ERROR_INDEX, "child", "there is no %s",
                name ? name : "NULL");
    return found;
}
td_tensor *td_through(layer *l, const char *words, td_tensor *x)
{
    char word[TD_NAME_SIZE];
    for (int n; !td_failed() && sscanf(words, "%95s%n", word, &n) == 1;
         words += n) {
        td_module *m = child(&l->module, word);
        x = m ? td_forward(m, x)
              : td_run_named(td_op_find(word), x, &l->a);
    }
    return x;
}
void td_add_layer(layer *l, const char *name, td_new_layer *make,
                  td_args a)
{
    a.dtype = l->a.dtype;
    a.device = l->a.device;
    td_add_part(&l->module, TD_PART_MODULE, make(a), name);
}
void td_add_linear(layer *l, const char *name, int64_t in, int64_t out,
                   bool no_bias)
{
    td_add_part(&l->module, TD_PART_MODULE, td_linear_module(in, out,
        (td_linear_options){ no_bias, l->a.dtype, l->a.device }), name);
}
layer *td_add_stack(layer *l, const char *name)
{
    layer *s = td_module_new(&td_sequential_class, sizeof *s);
    if (s)
        s->a = l->a;
    td_add_part(&l->module, TD_PART_MODULE, s, name);
    return s ? s : l;            /* after a failure nothing is added */
}
void td_add_bend(layer *l, const char *name, const char *usual)
{
    const char *f = l->a.activation ? l->a.activation : usual;
    const bool tangent = strcmp(f, "gelu_new") == 0;
    const bool relu = strcmp(f, "relu") == 0;
    if (!relu && !tangent && strcmp(f, "gelu") != 0)
        refuse(l, "activation must be relu or gelu, not %s", f);
    td_add_part(&l->module, TD_PART_MODULE, relu ? td_relu_module()
        : td_gelu_module((td_args){
            .approximate = tangent ? "tanh" : NULL }), name);
}
/* containers: function make_layer */
static td_module *make_layer(const layer_row *row, td_args a)
{
    if (!accepts(row, &a))
        return NULL;
    td_scope_begin();
    layer *l = td_module_new(&row->class, sizeof *l);
    /* containers: take what modules take for usual */
    a.p = td_or(a.p, 0.5);
    if (!a.start_dim.given)
        a.start_dim = (td_opt_i64)td_some(1);
    if (!a.dim.given)
        a.dim = (td_opt_i64)td_some(-1);
    if (l) {
        l->a = a;
        l->dims = row->dims;
        if (row->make)
            row->make(l);
    }
    return td_scope_end_with(l);
}
/* containers: functions of layers */
static void make_prelu(layer *l)
{
    const double slope = td_or(l->a.init, 0.25).value;
    const int64_t n = l->a.num_parameters;
    td_add_weight(l, TD_DIMS(n ? n : 1), slope, slope, "weight");
}

static void make_embedding(layer *l)
{
    const int64_t n = l->a.num_embeddings;
    const td_opt_i64 empty = l->a.padding_idx;
    td_tensor *w = td_detach(td_add_weight(l,
        TD_DIMS(n, l->a.embedding_dim), 0, 0, "weight"));
    td_normal_(w, 0, 1);
    if (empty.given)
        td_fill_(td_select(w, 0, empty.value), td_float(0));
}
static td_tensor *run_border(layer *l, td_tensor *x)
{
    static const char *const modes[] = {
        "constant", "reflect", "replicate", "circular" };
    td_dims *pad = &l->a.pad;
    *pad = l->a.padding;
    l->a.mode = modes[l->dims / 4];
    while (l->a.padding.count == 1 && pad->count < l->dims % 4 * 2)
        pad->at[pad->count++] = pad->at[0];
    return td_through(l, "pad", x);
}
static td_tensor *run_identity(layer *l, td_tensor *x)
{
    (void)l;
    return x;
}

static td_tensor *run_upsample(layer *l, td_tensor *x)
{
    td_dims *size = &l->a.size;
    const td_opt_f64 f = l->a.scale_factor;
    if (f.given == (size->count > 0) || td_rank(x) < 3)
        return refuse(l, "expected [N, C, ...]"
            " and either size or scale_factor"), NULL;
    while (size->count < td_rank(x) - 2) {
        const int i = size->count++;
        size->at[i] = !f.given ? size->at[0]
            : (int64_t)floor((double)td_size(x, i + 2) * f.value);
    }
    l->a.scale0 = l->a.scale1 = l->a.scale2 = f;
    return td_through(l, "interpolate", x);
}
td_module *td_parts(const td_named_part *parts, int count)
{
    if (count > 0 && !td_require(parts, "parts", "parts"))
        return NULL;
    td_scope_begin();
    td_module *m = td_sequential(NULL, 0);
    for (int i = 0; i < count && m; i++) {
        const td_named_part *p = &parts[i];
        if (!p->module == !p->parameter)
            td_fail(TD_ERROR_VALUE, "parts", "part %d must be a module "
                    "or a parameter", i);
        td_add_part(m, p->module ? TD_PART_MODULE
            : TD_PART_PARAMETER, p->module ? (void *)p->module
            : p->parameter, p->name);
    }
    return td_scope_end_with(m);
}
td_tensor *td_trunc_normal_(td_tensor *w, double mean, double deviation,
                            double low, double high)
{
    const double s = deviation * sqrt(2);
    td_no_grad_begin();
    td_scope_begin();
    td_tensor *u = td_uniform_(w, erf((low - mean) / s),
                               erf((high - mean) / s));
    u = td_add_scalar(td_mul_scalar(td_erfinv(u), td_float(s)),
                      td_float(mean));
    w = td_copy_(w, td_clamp(u, (td_clamp_options){
        .min = td_some(low), .max = td_some(high) }));
    w = td_scope_end_with(w);
    td_no_grad_end();
    return w;
}
td_tensor *td_orthogonal_(td_tensor *w, double gain)
{
    if (td_rank(w) < 2)
        return td_fail(TD_ERROR_VALUE, "orthogonal_", "expected at "
                       "least 2 dimensions, not %d", td_rank(w)), NULL;
    td_no_grad_begin();
    td_scope_begin();
    td_tensor *flat = td_flatten(w, 1, -1);
    const bool tall = td_size(flat, 0) > td_size(flat, 1);
    flat = tall ? td_t(flat) : flat;
    td_tensor *q = td_zeros(td_shape_of(flat), TD_OF(TD_FLOAT64));
    td_tensor *drawn = td_normal_(td_empty_like(q,
        (td_tensor_options){ 0 }), 0, 1);
    for (int64_t i = 0; i < td_size(q, 0) && !td_failed(); i++) {
        /* containers: make one vector orthogonal to those before */
        td_tensor *v = td_select(drawn, 0, i);
        for (int twice = 0; twice < 2; twice++)
            v = td_sub(v, td_matmul(td_matmul(q, v), q));
        td_copy_(td_select(q, 0, i), td_div(v, td_norm(v, 2,
                                                    TD_REDUCE_DEFAULTS)));
    }
    q = td_reshape(tall ? td_t(q) : q, td_shape_of(w));
    w = td_copy_(w, td_mul_scalar(q, td_float(gain)));
    w = td_scope_end_with(w);
    td_no_grad_end();
    return w;
}
/* convolution: functions of layers */
static void make_conv(layer *l)
{
    td_args *a = &l->a;
    const int dims = l->dims;
    const int64_t in = a->in_channels, out = a->out_channels;
    const int64_t g = a->groups;
    const td_dims *window = &a->kernel_size;
    if (g < 1 || in % g || out % g
        || (window->count != 1 && window->count != abs(dims))) {
        refuse(l, "%" PRId64 " and %" PRId64 " channels in %" PRId64
               " groups, a window of %d dimensions", in, out, g,
               window->count);
        return;
    }
    td_dims size = dims < 0 ? TD_DIMS(in, out / g)
                            : TD_DIMS(out, in / g);
    double fan = (double)size.at[1];
    for (int i = 0; i < abs(dims); i++) {
        const int64_t k = window->at[window->count > 1 ? i : 0];
        size.at[size.count++] = k;
        fan *= (double)k;
    }
    fan = 1 / sqrt(fan);
    td_add_weight(l, size, -fan, fan, "weight");
    if (!a->no_bias)
        td_add_weight(l, TD_DIMS(out), -fan, fan, "bias");
}
static td_dims in_plane(int n, td_dims d, int64_t none)
{
    return n == 1 ? TD_DIMS(none, d.count ? d.at[0] : none) : d;
}
static td_tensor *run_conv(layer *l, td_tensor *x)
{
    const int dims = l->dims;
    const int n = abs(dims), rank = td_rank(x);
    const td_args *a = &l->a;
    if (rank != n + 1 && rank != n + 2)
        return refuse(l, "expected %d dimensions, or %d without batch, "
                      "not %d", n + 2, n + 1, rank), NULL;
    x = rank == n + 1 ? td_unsqueeze(x, 0) : x;
    x = td_convolution(n == 1 ? td_unsqueeze(x, 2) : x,
        n == 1 ? td_unsqueeze(a->weight, 2) : a->weight, a->bias,
        (td_convolution_options){
            .stride = in_plane(n, a->stride, 1),
            .padding = in_plane(n, a->padding, 0),
            .dilation = in_plane(n, a->dilation, 1),
            .output_padding = in_plane(n, a->output_padding, 0),
            .transposed = dims < 0, .groups = a->groups });
    x = n == 1 ? td_squeeze(x, TD_DIMS(2)) : x;
    return rank == n + 1 ? td_squeeze(x, TD_DIMS(0)) : x;
}
/* normalisation: functions of layers */
static void make_norm(layer *l)
{
    td_args *a = &l->a;
    const bool shy = *l->module.class->name == 'I';
    const int64_t n = a->num_features ? a->num_features
                                      : a->num_channels;
    const td_dims shape = n ? TD_DIMS(n) : a->normalized_shape;
    const td_tensor_options like = { .dtype = a->dtype,
                                     .device = a->device };
    if (shy ? a->affine : !a->no_affine) {
        td_add_weight(l, shape, 1, 1, "weight");
        if (!a->no_bias && l->dims >= 0)
            td_add_weight(l, shape, 0, 0, "bias");
    }
    if (!a->num_features)
        return;
    a->momentum = td_or(a->momentum, 0.1);
    a->eps = td_or(a->eps, 1e-5);
    if (shy ? !a->track_running_stats : a->no_running_stats)
        return;
    td_add_tensor(l, TD_PART_BUFFER, td_zeros(shape, like),
                  "running_mean");
    td_add_tensor(l, TD_PART_BUFFER, td_ones(shape, like),
                  "running_var");
    td_add_tensor(l, TD_PART_BUFFER, td_zeros(TD_RANK_0,
        (td_tensor_options){ .dtype = TD_INT64,
                             .device = a->device }),
        "num_batches_tracked");
}
static td_tensor *run_norm(layer *l, td_tensor *x)
{
    td_args *a = &l->a;
    const int n = l->dims;
    if (td_rank(x) != n + 2 && (n > 1 || td_rank(x) != 2))
        return refuse(l, "expected %d dimensions, not %d", n + 2,
                       td_rank(x)), NULL;
    if (a->num_batches_tracked && a->training
        && *l->module.class->name == 'B')
        td_add_scalar_(a->num_batches_tracked, td_int(1));
    a->training = a->training || !a->running_mean;
    return td_run_named(((const layer_row *)l->module.class)->op, x, a);
}
/* recurrence: functions of layers */
static void make_rnn(layer *l)
{
    static const char *const names[] = {
        "weight_ih", "weight_hh", "bias_ih", "bias_hh" };
    td_args *a = &l->a;
    const int gates = l->dims;
    const int sides = 1 + a->bidirectional;
    const int64_t m = a->hidden_size, rows = m * abs(gates);
    const double bound = 1 / sqrt((double)m);
    a->num_layers = a->num_layers ? a->num_layers : 1;
    a->dropout = td_or(a->dropout, 0);
    a->has_biases = !a->no_bias;
    /* recurrence: refuse recurrent layers that cannot be */
    const char *f = a->nonlinearity ? a->nonlinearity : "tanh";
    if (m < 1 || a->num_layers < 1 || a->num_layers > LAYERS_MOST
        || (strcmp(f, "tanh") != 0 && strcmp(f, "relu") != 0)) {
        refuse(l, "hidden_size %" PRId64 " and num_layers %" PRId64
               " must be positive, at most %d, nonlinearity '%s' tanh or "
               "relu", m, a->num_layers, LAYERS_MOST, f);
        return;
    }
    for (int k = 0; k < a->num_layers * sides; k++) {
        const td_dims shapes[] = {
            TD_DIMS(rows, k < sides ? a->input_size : m * sides),
            TD_DIMS(rows, m), TD_DIMS(rows), TD_DIMS(rows) };
        for (int i = 0; i < (a->no_bias ? 2 : 4); i++) {
            char name[32];
            snprintf(name, sizeof name, gates < 0 ? "%s" : "%s_l%d%s",
                     names[i], k / sides, k % sides ? "_reverse" : "");
            td_add_weight(l, shapes[i], -bound, bound, name);
        }
    }
}
static td_tensor *run_rnn(layer *l, td_tensor *x)
{
    td_args *a = &l->a;
    const bool cell = l->dims < 0;
    td_more *more = a->more, after = { { NULL } };
    const td_op *op = ((const layer_row *)l->module.class)->op;
    if (a->nonlinearity && *a->nonlinearity == 'r')
        op = &td_ops[cell ? TD_OP_rnn_relu_cell : TD_OP_rnn_relu];
    td_tensor *all[LAYERS_MOST * 8] = { NULL };
    if (td_rank(x) != 3 - cell)
        return refuse(l, "expected %d dimensions, not %d", 3 - cell,
                      td_rank(x)), NULL;
    for (td_part *p = l->module.parts; p; p = p->next)
        all[a->params.count++] = p->object;
    a->params.at = all;
    a->w_ih = all[0], a->w_hh = all[1], a->b_ih = all[2],
    a->b_hh = all[3];
    /* recurrence: begin with zeros where there is no state */
    const int64_t n = td_size(x, !cell && !a->batch_first);
    for (int i = 0; i < 2; i++)
        if (!more->at[i])
            more->at[i] = td_zeros(cell ? TD_DIMS(n, a->hidden_size)
                : TD_DIMS(a->num_layers * (1 + a->bidirectional), n,
                          a->hidden_size),
                (td_tensor_options){ .dtype = td_dtype_of(x),
                                     .device = td_device_of(x) });
    a->hx = (td_tensors){ abs(l->dims) == 4 ? 2 : 1, more->at };
    a->more = &after;
    x = td_run_named(op, x, a);
    *more = cell ? (td_more){ { NULL, after.at[0] } } : after;
    return x;
}
/* attention: functions of layers */
static void make_attention(layer *l)
{
    td_args *a = &l->a;
    const int64_t e = a->embed_dim;
    a->p = td_or(a->dropout, 0);
    const double bound = sqrt(6 / (4.0 * (double)e));
    if (e < 1 || a->num_heads < 1 || e % a->num_heads)
        refuse(l, "embed_dim %"
            PRId64 " must be divisible by num_heads %" PRId64, e,
            a->num_heads);
    td_add_weight(l, TD_DIMS(3 * e, e), -bound, bound,
                  "in_proj_weight");
    if (!a->no_bias)
        td_add_weight(l, TD_DIMS(3 * e), 0, 0, "in_proj_bias");
    td_add_linear(l, "out_proj", e, e, a->no_bias);
}
static td_tensor *project(const td_args *a, td_tensor *x, int i)
{
    const td_opt_i64 from = td_some(i * a->embed_dim);
    const td_opt_i64 to = td_some((i + 1) * a->embed_dim);
    x = td_linear(a->batch_first ? x : td_transpose(x, 0, 1),
        td_slice(a->in_proj_weight, 0, from, to, 1), a->in_proj_bias
        ? td_slice(a->in_proj_bias, 0, from, to, 1) : NULL);
    return td_transpose(td_unflatten(x, (td_args){ .dim = td_some(-1),
        .sizes = TD_DIMS(a->num_heads, -1) }), 1, 2);
}
static td_tensor *attend(layer *l, layer *part, const char *mix,
                         td_tensor *query)
{
    l->a.dropout_p = (td_opt_f64){ l->a.training, l->a.p.value };
    query = td_through(l, "scaled_dot_product_attention", query);
    return td_through(part, mix,
                    td_flatten(td_transpose(query, 1, 2), 2, -1));
}
static td_tensor *run_attention(layer *l, td_tensor *x)
{
    td_args *a = &l->a;
    td_tensor *const *more = a->more->at, *mask = more[2];
    td_tensor *key = more[0] ? more[0] : x;
    if (td_rank(x) != 3 || td_rank(key) != 3)
        return refuse(l, "expected 3 dimensions, not %d and %d",
                       td_rank(x), td_rank(key)), NULL;
    a->attn_mask = mask && td_dtype_of(mask) == TD_BOOL
        ? td_logical_not(mask) : mask;
    a->key = project(a, key, 1);
    a->values = project(a, more[1] ? more[1] : key, 2);
    x = attend(l, l, "out_proj", project(a, x, 0));
    return a->batch_first ? x : td_transpose(x, 0, 1);
}
static void make_text_layer(layer *l)
{
    td_args *a = &l->a;
    const int parts = l->dims;
    const int64_t e = a->d_model;
    char norm[] = "norm1";
    a->p = td_or(a->dropout, 0.1);
    for (int i = 0; i < parts - 1; i++)
        td_add_layer(l, i ? "multihead_attn" : "self_attn",
            td_multihead_attention_module, (td_args){ .embed_dim = e,
                .num_heads = a->nhead, .dropout = a->p,
                .no_bias = a->no_bias, .batch_first = a->batch_first });
    td_add_linear(l, "linear1", e, a->dim_feedforward, a->no_bias);
    td_add_linear(l, "linear2", a->dim_feedforward, e, a->no_bias);
    td_add_bend(l, "activation", "relu");
    for (int i = 0; i < parts; i++, norm[4]++)
        td_add_layer(l, norm, td_layer_norm_module, (td_args){
            .normalized_shape = TD_DIMS(e), .no_bias = a->no_bias,
            .eps = td_or(a->layer_norm_eps, 1e-5) });
}
static td_tensor *run_text_layer(layer *l, td_tensor *x)
{
    const td_args *a = &l->a;
    const int parts = l->dims;
    td_tensor *const *more = a->more->at;
    for (int i = 0; i < parts; i++) {
        char norm[] = "norm1";
        norm[4] = (char)('1' + i);
        td_tensor *y = a->norm_first ? td_through(l, norm, x) : x;
        td_tensor *other = i ? more[0] : y;
        y = i == parts - 1
            ? td_through(l, "linear1 activation dropout linear2", y)
            : td_forward_with(td_child(&l->module,
                i ? "multihead_attn" : "self_attn"), y, &(td_more){ {
                other, other, more[i + parts - 2] } });
        x = td_add(x, td_through(l, "dropout", y));
        x = a->norm_first ? x : td_through(l, norm, x);
    }
    return x;
}
static void make_positions(layer *l)
{
    td_args *a = &l->a;
    const int64_t n = a->max_len, d = a->d_model;
    const bool learned = l->dims;
    td_tensor *w = td_zeros(TD_DIMS(n, d), (td_tensor_options){ 0 });
    a->p = td_or(a->dropout, 0);
    if (learned)
        td_set_requires_grad(td_normal_(w, 0, 0.02), true);
    else if (d % 2)
        refuse(l, "d_model must be "
                "even, not %" PRId64, d);
    for (int64_t i = 0; w && !learned && i < n * d; i++) {
        const double angle = (double)(i / d)
            * exp((double)(i % d / 2 * 2) * -log(1e4) / (double)d);
        ((float *)td_data(w))[i] = (float)(i % 2 ? cos(angle)
                                                 : sin(angle));
    }
    td_add_tensor(l, learned ? TD_PART_PARAMETER : TD_PART_KEPT, w,
                  "weight");
}
static td_tensor *run_positions(layer *l, td_tensor *x)
{
    const td_args *a = &l->a;
    const bool turned = td_rank(x) == 3 && !a->batch_first;
    const int64_t n = td_size(x, td_rank(x) == 3 && !turned);
    if (n > a->max_len)
        return refuse(l, "%" PRId64 " positions, but max_len is %"
                      PRId64, n, a->max_len), NULL;
    td_tensor *code = td_slice(a->weight, 0, (td_opt_i64)td_some(0),
                               (td_opt_i64)td_some(n), 1);
    return td_through(l, "dropout",
        td_add(x, turned ? td_unsqueeze(code, 1) : code));
}
static void make_swiglu(layer *l)
{
    const int64_t n = l->a.in_features, m = l->a.hidden_features;
    td_add_linear(l, "gate", n, m, !l->a.with_bias);
    td_add_linear(l, "up", n, m, !l->a.with_bias);
    td_add_linear(l, "down", m, n, !l->a.with_bias);
}
static td_tensor *run_swiglu(layer *l, td_tensor *x)
{
    return td_through(l, "down", td_mul(td_through(l, "gate silu", x),
                                      td_through(l, "up", x)));
}
/* models: functions of layers */
static void make_mlp(layer *l)
{
    const td_dims n = l->a.sizes;
    if (n.count < 2)
        refuse(l, "expected 2 sizes at least");
    for (int i = 1; i < n.count; i++) {
        if (i > 1)
            td_add_bend(l, NULL, "relu");
        td_add_linear(l, NULL, n.at[i - 1], n.at[i], false);
    }
}
static td_tensor *run_in_turn(layer *l, td_tensor *x)
{
    return td_sequential_class.forward(&l->module, x);
}
static void add_conv(layer *l, const char *name, const char *norm,
                     int64_t in, int64_t out, int64_t size,
                     int64_t stride)
{
    td_add_layer(l, name, td_conv2d_module, (td_args){
        .in_channels = in, .out_channels = out,
        .kernel_size = TD_DIMS(size), .stride = TD_DIMS(stride),
        .padding = TD_DIMS(size / 2), .no_bias = norm });
    if (norm)
        td_add_layer(l, norm, td_batch_norm2d_module,
                     (td_args){ .num_features = out });
}
static void make_cnn(layer *l)
{
    td_args *a = &l->a;
    const td_dims c = a->channels.count ? a->channels : TD_DIMS(32, 64);
    if (c.count != 2)
        refuse(l, "expected 2 channels, not %d", c.count);
    a->kernel_size = TD_DIMS(2);
    add_conv(l, "conv1", NULL, 1, c.at[0], 3, 1);
    add_conv(l, "conv2", NULL, c.at[0], c.at[1], 3, 1);
    td_add_linear(l, "fc1", 49 * c.at[1], a->hidden, false);
    td_add_linear(l, "fc2", a->hidden, a->classes, false);
}
static td_tensor *run_cnn(layer *l, td_tensor *x)
{
    x = td_reshape(x, TD_DIMS(-1, 1, 28, 28));
    return td_through(l, "conv1 relu max_pool2d conv2 relu max_pool2d "
                    "flatten fc1 relu fc2", x);
}
static void draw_again(td_module *m, double spread, double last)
{
    td_tensor *w[2] = { NULL, NULL };
    td_part *p = m->parts;
    for (; p && p->kind == TD_PART_MODULE; p = p->next)
        draw_again(p->object, strcmp(p->name, "c_proj")
            && strcmp(p->name, "down") ? spread : last, last);
    if (p || !m->parts)
        td_parameters(m, w, 2);
    if (td_rank(w[0]) == 4)
        td_kaiming_normal_(w[0], (td_kaiming_options){
            .fan_out = true });
    else if (spread > 0 && td_rank(w[0]) == 2) {
        td_no_grad_begin();
        td_normal_(w[0], 0, spread);
        if (w[1])
            td_zero_(w[1]);
        td_no_grad_end();
    }
}
static td_tensor *block_forward(td_module *m, td_tensor *x)
{
    layer *l = (layer *)m;
    td_tensor *y = td_through(l, "conv1 bn1 relu conv2 bn2", x);
    if (td_size(x, 1) != td_size(y, 1))
        x = td_through(l, l->a.projection ? "downsample"
                                        : "max_pool2d pad", x);
    return td_relu(td_add(x, y));
}
static const td_module_class block_class = {
    "BasicBlock", block_forward };
static void make_resnet(layer *l)
{
    td_args *a = &l->a;
    int64_t in = a->width, out = in;
    char name[] = "layer1";
    a->kernel_size = TD_DIMS(1);
    a->stride = TD_DIMS(2);
    add_conv(l, "conv1", "bn1", 3, in, 3, 1);
    for (; name[5] < '4'; name[5]++, out *= 2) {
        layer *stage = td_add_stack(l, name);
        for (int64_t j = 0; j < a->blocks; j++, in = out) {
            const int64_t stride = in < out ? 2 : 1;
            /* models: make a block of a ResNet */
            layer *block = td_add_stack(stage, NULL);
            add_conv(block, "conv1", "bn1", in, out, 3, stride);
            add_conv(block, "conv2", "bn2", out, out, 3, 1);
            if (a->projection && in < out)
                add_conv(td_add_stack(block, "downsample"), "0", "1", in, out, 1,
                         stride);
            block->a.pad = TD_DIMS(0, 0, 0, 0, in / 2, in - in / 2);
            if (!td_failed())
                block->module.class = &block_class;
        }
    }
    td_add_linear(l, "fc", in, a->classes, false);
    draw_again(&l->module, 0, 0);
}
static td_tensor *run_resnet(layer *l, td_tensor *x)
{
    x = td_through(l, "conv1 bn1 relu layer1 layer2 layer3", x);
    return td_through(l, "fc", td_mean(x, TD_OVER(2, 3)));
}
static void make_forecaster(layer *l)
{
    const td_args *a = &l->a;
    td_add_layer(l, "lstm", td_lstm_module, (td_args){
        .input_size = a->input_size, .hidden_size = a->hidden_size,
        .num_layers = a->num_layers, .dropout = a->dropout,
        .batch_first = true });
    td_add_linear(l, "fc", a->hidden_size, a->horizon, false);
}
static td_tensor *run_forecaster(layer *l, td_tensor *x)
{
    x = td_select(td_through(l, "lstm", x), 1, -1);
    return td_through(l, "fc", x);
}
static void add_scale(layer *l, const char *name)
{
    const td_args *a = &l->a;
    td_add_layer(l, name,
        a->rms ? td_rms_norm_module : td_layer_norm_module, (td_args){
            .normalized_shape = TD_DIMS(a->n_embd),
            .eps = td_or(a->eps, 1e-5),
            .no_bias = a->no_bias && !a->rms });
}
static void add_block(layer *l)
{
    const td_args *a = &l->a;
    const char *f = a->activation;
    const bool gate = f && strcmp(f, "swiglu") == 0, no = a->no_bias;
    const int64_t e = a->n_embd;
    const int64_t m = a->n_inner ? a->n_inner : (gate ? 8 : 12) * e / 3;
    add_scale(l, "ln_1");
    add_scale(l, "ln_2");
    layer *part = td_add_stack(l, "attn");
    td_add_linear(part, "c_attn", e, 3 * e, no);
    td_add_linear(part, "c_proj", e, e, no);
    if (gate) {
        td_add_layer(l, "mlp", td_swiglu_module, (td_args){
            .in_features = e, .hidden_features = m, .with_bias = !no });
        return;
    }
    part = td_add_stack(l, "mlp");
    td_add_linear(part, "c_fc", e, m, no);
    td_add_bend(part, NULL, "gelu_new");
    td_add_linear(part, "c_proj", m, e, no);
}
static void make_gpt(layer *l)
{
    td_args *a = &l->a, table = { .num_embeddings = a->vocab_size,
                                  .embedding_dim = a->n_embd };
    a->p = td_or(a->dropout, 0);
    a->sizes = TD_DIMS(3, a->n_head, -1);
    if (a->n_head < 1 || a->n_embd % a->n_head
        || a->n_layer > LAYERS_MOST) {
        refuse(l, "n_embd %" PRId64 " must be divisible by n_head %"
               PRId64 ", n_layer at most %d", a->n_embd, a->n_head,
               LAYERS_MOST);
        return;
    }
    td_add_layer(l, "wte", td_embedding_module, table);
    table.num_embeddings = a->n_positions;
    if (!a->rotary)
        td_add_layer(l, "wpe", td_embedding_module, table);
    layer *blocks = td_add_stack(l, "h");
    for (int64_t i = 0; i < a->n_layer; i++)
        add_block(td_add_stack(blocks, NULL));
    add_scale(l, "ln_f");
    if (a->untied)
        td_add_linear(l, "lm_head", a->n_embd, a->vocab_size, true);
    draw_again(&l->module, 0.02, 0.02 / sqrt(2.0 * (double)a->n_layer));
}
static td_tensor *look_back(layer *l, layer *part, td_tensor *x,
                            td_tensor **kept, int n)
{
    const td_args *a = &l->a;
    td_tensor *y[3], *all = td_through(l, "unflatten",
                                     td_through(part, "c_attn", x));
    /* models: look back from each place, in C */
    for (int i = 0; i < 3; i++) {
        y[i] = td_transpose(td_select(all, 2, i), 1, 2);
        if (i < 2 && a->rotary)
            y[i] = td_through(l, "rotary_embedding", y[i]);
        if (i > 0 && !a->is_causal)
            y[i] = td_cat((td_tensor *[]){
                td_select(a->more->at[0], 0, n + i - 1), y[i] }, 2, 2);
    }
    l->a.key = kept[n] = y[1];
    l->a.values = kept[n + 1] = y[2];
    return attend(l, part, "c_proj", y[0]);
}
static td_tensor *run_gpt(layer *l, td_tensor *x)
{
    td_args *a = &l->a;
    td_tensor **more = a->more->at, *kept[2 * LAYERS_MOST];
    const int64_t start = more[0] && td_numel(more[0])
                        ? td_size(more[0], 3) : 0;
    const int64_t places = td_size(x, -1), end = start + places;
    if (td_rank(x) != 2 || end > a->n_positions)
        return refuse(l, "expected [N, T], not %d dimensions, and %"
            PRId64 " places at most, not %" PRId64, td_rank(x),
            a->n_positions, end), NULL;
    td_tensor_options on = { TD_INT64, td_device_of(x), false };
    td_tensor *at = td_arange(td_int(start), td_int(end), td_int(1),
                              on);
    a->positions = td_to(at, TD_FLOAT64);
    a->is_causal = !start;
    on.dtype = TD_BOOL;
    if (start)
        a->attn_mask = td_tril(td_ones(TD_DIMS(places, end), on),
                               start);
    x = td_through(l, "wte", x);
    x = a->rotary ? x : td_add(x, td_through(l, "wpe", at));
    x = td_through(l, "dropout", x);
    int n = 0;
    /* models: pass the blocks of a GPT */
    td_part *p = td_child(&l->module, "h")->parts;
    for (; p; p = p->next, n += 2) {
        layer *b = p->object;
        td_tensor *y = look_back(l, (layer *)td_child(&b->module, "attn"),
                                 td_through(b, "ln_1", x), kept, n);
        x = td_add(x, td_through(l, "dropout", y));
        y = td_through(b, "ln_2 mlp", x);
        x = td_add(x, td_through(l, "dropout", y));
    }
    if (more[0])
        more[0] = td_stack(kept, n, 0);
    td_parameters(td_child(&l->module, "wte"), &a->weight, 1);
    return td_through(l, a->untied ? "ln_f lm_head" : "ln_f linear", x);
}
/* containers: table of the layers */
enum {
#define LAYER(name, c_name, ...) ROW_##c_name,
#include <treadle/layer_rows.h>
};
static const layer_row rows[] = {
#define LAYER(title, c_name, op, make, run, dims, takes) \
    { { #title, layer_forward }, op, make, run, dims, takes },
#include <treadle/layer_rows.h>
};
#define LAYER(title, c_name, ...) \
    td_module *td_##c_name##_module(td_args a) \
    { \
        return make_layer(&rows[ROW_##c_name], a); \
    }
#define BY_NAME(op) \
    td_tensor *td_##op(td_tensor *x, td_args a) \
    { \
        return by_name(&td_ops[TD_OP_##op], x, a); \
    }
#include <treadle/layer_rows.h>
