/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "values": edit that, not this file. */
#include "glue.h"
/* values: struct subscript */
typedef struct {
    enum { AT, RANGE, NEW_AXIS, REST, PICK } kind;
    Py_ssize_t start, stop, step;   /* AT: start; RANGE: all three */
    td_tensor *pick;                /* PICK: indices or mask, owned */
} subscript;

#define MAX_SUBSCRIPTS (2 * TD_MAX_RANK + 1)

typedef struct {
    int count, consumed;            /* dimensions of x they stand for */
    subscript at[MAX_SUBSCRIPTS];
} subscript_list;
/* values: struct view_walk */
typedef struct {
    td_tensor *view;
    int dim;
    td_tensor *pick;        /* flat int64 indices, or NULL */
    int pick_dim;           /* the dimension they choose from */
    td_dims pick_shape;     /* what that dimension becomes */
} view_walk;
static bool positive_step(Py_ssize_t step);
static bool read_pick(glue *g, PyObject *key, subscript *s,
                      subscript_list *list);
static td_dims picked_shape(const view_walk *w);
/* values: function read_subscript */
static bool read_subscript(glue *g, PyObject *key, subscript_list *list)
{
    if (list->count == MAX_SUBSCRIPTS) {
        PyErr_SetString(PyExc_IndexError, "too many indices");
        return false;
    }
    subscript *s = &list->at[list->count++];
    *s = (subscript){ .kind = REST };
    if (key == Py_Ellipsis)
        return true;
    s->kind = NEW_AXIS;
    if (key == Py_None)
        return true;
    s->kind = RANGE;
    list->consumed++;
    if (PySlice_Check(key))
        return PySlice_Unpack(key, &s->start, &s->stop, &s->step) == 0
            && positive_step(s->step);
    s->kind = AT;
    if (is_integer(key) && !PyBool_Check(key)) {
        s->start = PyNumber_AsSsize_t(key, PyExc_IndexError);
        return s->start != -1 || !PyErr_Occurred();
    }
    return read_pick(g, key, s, list);
}
/* values: function read_pick */
static bool read_pick(glue *g, PyObject *key, subscript *s,
                      subscript_list *list)
{
    const bool plausible = tensor_cast(key) || PyList_Check(key)
        || (PyObject_CheckBuffer(key) && !PyBytes_Check(key));
    if (!plausible) {
        PyErr_Format(PyExc_IndexError, "an index must be an integer, "
            "slice, None, ... or Tensor of integers or bools, "
            "not %.100s", Py_TYPE(key)->tp_name);
        return false;
    }
    tensor_object *w = tensor_cast(key);
    s->pick = w ? td_retain(w->handle)
                : new_tensor(g, key, TD_DTYPE_NONE);
    if (s->pick == NULL)
        return false;
    s->kind = PICK;
    if (td_dtype_of(s->pick) == TD_BOOL)
        list->consumed += td_rank(s->pick) - 1;
    else if (!td_dtype_is_integer(td_dtype_of(s->pick))
             && td_numel(s->pick) > 0) {
        PyErr_Format(PyExc_IndexError, "a tensor used as an index must "
                     "hold integers or bools, not %s",
                     td_dtype_name(td_dtype_of(s->pick)));
        return false;
    }
    return true;
}

static bool positive_step(Py_ssize_t step)
{
    if (step <= 0)
        PyErr_SetString(PyExc_ValueError,
                        "slice: the step must be greater than zero");
    return step > 0;
}
/* values: function read_subscripts */
static bool read_subscripts(glue *g, PyObject *key,
                            subscript_list *list)
{
    list->count = list->consumed = 0;
    if (!PyTuple_Check(key))
        return read_subscript(g, key, list);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++)
        if (!read_subscript(g, PyTuple_GET_ITEM(key, i), list))
            return false;
    return true;
}

static void free_subscripts(subscript_list *list)
{
    for (int i = 0; i < list->count; i++)
        td_release(list->at[i].pick);
}
/* values: function flatten_for_mask */
/* `x` with the dimensions that `mask` covers, from `dim` on, as one */
static td_tensor *flatten_for_mask(td_tensor *x, int dim,
                                   const td_tensor *mask)
{
    for (int i = 0; i < td_rank(mask); i++)
        if (td_size(mask, i) != td_size(x, dim + i)) {
            td_fail(TD_ERROR_INDEX, "index", "mask has %lld entries "
                    "in dimension %d, the tensor has %lld",
                    (long long)td_size(mask, i), i,
                    (long long)td_size(x, dim + i));
            return NULL;
        }
    if (td_rank(mask) == 0)
        return td_unsqueeze(x, dim);
    return td_flatten(x, dim, dim + td_rank(mask) - 1);
}
/* values: function true_positions */
static td_tensor *true_positions(td_tensor *mask)
{
    mask = td_contiguous(td_to_host(mask));
    if (mask == NULL)
        return NULL;
    const bool *on = td_data(mask);
    int64_t n = 0;
    for (int64_t i = 0; i < td_numel(mask); i++)
        n += on[i];
    td_tensor *out = td_empty(TD_DIMS(n),
                              (td_tensor_options){ .dtype = TD_INT64 });
    if (out == NULL)
        return NULL;
    int64_t *at = td_data(out);
    for (int64_t i = 0; i < td_numel(mask); i++)
        if (on[i])
            *at++ = i;
    return out;
}
/* values: function wrapped_indices */
static td_tensor *wrapped_indices(td_tensor *pick, int64_t size)
{
    td_tensor *flat = td_flatten(td_to(td_to_host(pick), TD_INT64), 0,
                                 -1);
    flat = td_clone(flat);
    if (flat == NULL)
        return NULL;
    int64_t *at = td_data(flat);
    for (int64_t i = 0; i < td_numel(flat); i++)
        if (at[i] < 0)
            at[i] += size;
    return flat;
}
/* values: function known_positions */
static td_tensor *known_positions(td_tensor *pick, int64_t size,
                                  const td_tensor *view)
{
    const td_suspended trace = td_trace_suspend();
    td_tensor *at = td_dtype_of(pick) == TD_BOOL
                  ? true_positions(pick) : wrapped_indices(pick, size);
    at = at ? td_to_device(at, td_device_of(view)) : NULL;
    td_trace_resume(trace);
    return at;
}
/* values: function apply_pick */
static bool apply_pick(view_walk *w, td_tensor *pick)
{
    if (w->pick != NULL)
        return td_fail(TD_ERROR_UNSUPPORTED, "index",
                       "only one index may be a tensor or a list");
    w->pick_dim = w->dim;
    if (td_dtype_of(pick) == TD_BOOL) {
        w->view = flatten_for_mask(w->view, w->dim, pick);
        w->pick = w->view ? known_positions(pick, 0, w->view) : NULL;
        w->pick_shape = TD_DIMS(w->pick ? td_numel(w->pick) : 0);
        w->dim += 1;
        return w->pick != NULL;
    }
    w->pick_shape.count = td_rank(pick);
    for (int i = 0; i < td_rank(pick); i++)
        w->pick_shape.at[i] = td_size(pick, i);
    w->pick = known_positions(pick, td_size(w->view, w->dim), w->view);
    w->dim += 1;
    return w->pick != NULL;
}
/* values: function apply_range */
static td_tensor *apply_range(td_tensor *x, int dim, const subscript *s)
{
    Py_ssize_t start = s->start, stop = s->stop;
    PySlice_AdjustIndices((Py_ssize_t)td_size(x, dim), &start, &stop,
                          s->step);
    if (stop < start)
        stop = start;
    return td_slice(x, dim, (td_opt_i64)td_some(start),
                    (td_opt_i64)td_some(stop), s->step);
}
/* values: function apply_subscript */
static bool apply_subscript(view_walk *w, const subscript *s, int rest)
{
    switch (s->kind) {
    case AT:
        w->view = td_select(w->view, w->dim, s->start);
        break;
    case RANGE:
        w->view = apply_range(w->view, w->dim++, s);
        break;
    case NEW_AXIS:
        w->view = td_unsqueeze(w->view, w->dim++);
        break;
    case REST:
        w->dim += rest;
        break;
    case PICK:
        return apply_pick(w, s->pick);
    }
    return w->view != NULL;
}
/* values: function walk_view */
static bool walk_view(view_walk *w, td_tensor *x,
                      const subscript_list *list)
{
    const int rest = td_rank(x) - list->consumed;
    *w = (view_walk){ .view = x };
    if (rest < 0)
        return td_fail(TD_ERROR_INDEX, "index", "too many indices: "
                       "%d for a tensor of rank %d", list->consumed,
                       td_rank(x));
    int dots = 0;
    for (int i = 0; i < list->count; i++)
        dots += list->at[i].kind == REST;
    if (dots > 1)
        return td_fail(TD_ERROR_INDEX, "index",
                       "an index can have only one ellipsis");
    for (int i = 0; i < list->count; i++)
        if (!apply_subscript(w, &list->at[i], rest))
            return false;
    return w->view != NULL;
}
/* values: function take_pick */
static td_tensor *take_pick(const view_walk *w, td_tensor *x)
{
    if (w->pick == NULL)
        return w->view == x ? td_view(x, td_shape_of(x)) : w->view;
    td_tensor *taken = td_index_select(w->view, w->pick_dim, w->pick);
    return w->pick_shape.count == 1 || taken == NULL
         ? taken : td_reshape(taken, picked_shape(w));
}

static td_dims picked_shape(const view_walk *w)
{
    td_dims shape = { .count = 0 };
    for (int i = 0; i < td_rank(w->view); i++)
        if (i != w->pick_dim)
            shape.at[shape.count++] = td_size(w->view, i);
        else
            for (int j = 0; j < w->pick_shape.count
                            && shape.count < TD_MAX_RANK; j++)
                shape.at[shape.count++] = w->pick_shape.at[j];
    return shape;
}
/* values: function tensor_subscript */
PyObject *tensor_subscript(PyObject *self, PyObject *key)
{
    glue *g = ((tensor_object *)self)->glue;
    subscript_list list;
    td_tensor *result = NULL;
    td_error_clear();
    if (read_subscripts(g, key, &list)) {
        view_walk w;
        td_scope_begin();
        if (walk_view(&w, handle_of(self), &list))
            result = take_pick(&w, handle_of(self));
        result = td_scope_end_with(result);
    }
    free_subscripts(&list);
    return wrap(g, result);
}
/* values: function assign_view */
static bool assign_view(const view_walk *w, td_tensor *value)
{
    if (w->pick == NULL)
        return td_copy_(w->view, value) != NULL;
    value = td_expand(value, picked_shape(w));
    if (value != NULL && w->pick_shape.count != 1)
        value = td_flatten(w->pick_shape.count ? value
                           : td_unsqueeze(value, w->pick_dim),
                           w->pick_dim, w->pick_dim
                           + (w->pick_shape.count
                              ? w->pick_shape.count - 1 : 0));
    if (value == NULL)
        return false;
    td_tensor *pick = td_to_host(w->pick);
    const int64_t *at = td_data(pick);
    for (int64_t i = 0; i < td_numel(pick); i++)
        if (td_copy_(td_select(w->view, w->pick_dim, at[i]),
                     td_select(value, w->pick_dim, i)) == NULL)
            return false;
    return true;
}
/* values: function tensor_assign */
int tensor_assign(PyObject *self, PyObject *key, PyObject *object)
{
    glue *g = ((tensor_object *)self)->glue;
    if (object == NULL) {
        PyErr_SetString(PyExc_TypeError,
                        "elements of a Tensor cannot be deleted");
        return -1;
    }
    subscript_list list;
    bool good = false;
    td_error_clear();
    tensor_object *w = tensor_cast(object);
    td_tensor *value = w ? td_retain(w->handle)
        : new_tensor(g, object, td_dtype_of(handle_of(self)));
    list.count = 0;
    if (value != NULL && read_subscripts(g, key, &list)) {
        view_walk walk;
        td_scope_begin();
        good = walk_view(&walk, handle_of(self), &list)
            && assign_view(&walk, value);
        td_scope_end();
    }
    free_subscripts(&list);
    td_release(value);
    if (!good)
        fail();
    return good ? 0 : -1;
}
/* values: sequence functions of a tensor */
Py_ssize_t tensor_length(PyObject *self)
{
    if (td_rank(handle_of(self)) > 0)
        return (Py_ssize_t)td_size(handle_of(self), 0);
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
}

PyObject *tensor_sequence_item(PyObject *self, Py_ssize_t i)
{
    td_error_clear();
    return wrap(((tensor_object *)self)->glue,
                td_select(handle_of(self), 0, i));
}

PyObject *tensor_iter(PyObject *self)
{
    if (td_rank(handle_of(self)) > 0)
        return PySeqIter_New(self);
    PyErr_SetString(PyExc_TypeError, "iteration over a 0-d tensor");
    return NULL;
}
