/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "subscripts": edit that, not this file. */
#include "glue.h"
/* subscripts: struct subscript */
typedef struct {
    enum { AT, RANGE, NEW_AXIS, REST, PICK } kind;
    int spans;                      /* dimensions of x */
    Py_ssize_t start, stop, step;   /* AT: start; RANGE: all three */
    td_tensor *pick;                /* PICK: indices or mask, owned */
} subscript;

#define MAX_SUBSCRIPTS (2 * TD_MAX_RANK + 1)

typedef struct {
    int count;
    subscript at[MAX_SUBSCRIPTS];
} subscript_list;
/* subscripts: struct view_walk */
typedef struct {
    td_tensor *view;
    int dim, rest, n, axes, gained;
    td_tensor *pick[TD_MAX_RANK];       /* integers */
    td_dims from;               /* the dimension each one picks from */
    int at[TD_MAX_RANK];        /* the same, new axes counted */
    int axis[MAX_SUBSCRIPTS];   /* dimension behind each new one */
} view_walk;
/* subscripts: function read_pick */
static bool read_pick(glue *g, PyObject *key, subscript *s)
{
    tensor_object *w = tensor_cast(key);
    const bool words = PyUnicode_Check(key) || PyBytes_Check(key);
    if (words || (!w && !PySequence_Check(key) && !PyBool_Check(key)
                  && !PyObject_CheckBuffer(key)))
        return PyErr_Format(PyExc_IndexError, "an index must be an "
            "integer, slice, None, ... or Tensor of integers or bools, "
            "not %.100s", Py_TYPE(key)->tp_name);
    s->pick = w ? td_retain(w->handle)
                : new_tensor(g, key, TD_DTYPE_NONE);
    if (s->pick == NULL)
        return false;
    s->kind = PICK;
    const td_dtype type = td_dtype_of(s->pick);
    if (type == TD_BOOL || type == TD_UINT8)
        s->spans = td_rank(s->pick);
    else if (!td_dtype_is_integer(type) && td_numel(s->pick) > 0)
        return PyErr_Format(PyExc_IndexError, "a tensor used as an "
                            "index must hold integers or bools, not %s",
                            td_dtype_name(type));
    return true;
}
/* subscripts: function read_subscript */
static bool read_subscript(glue *g, PyObject *key, subscript_list *list)
{
    if (list->count == MAX_SUBSCRIPTS)
        return PyErr_Format(PyExc_IndexError, "too many indices");
    subscript *s = &list->at[list->count++];
    *s = (subscript){ .kind = REST };
    if (key == Py_Ellipsis)
        return true;
    s->kind = NEW_AXIS;
    if (key == Py_None)
        return true;
    s->kind = RANGE;
    s->spans = 1;
    if (PySlice_Check(key))
        return PySlice_Unpack(key, &s->start, &s->stop, &s->step) == 0;
    s->kind = AT;
    tensor_object *w = tensor_cast(key);
    if (is_integer(key) && !PyBool_Check(key)
        && (w == NULL || (td_rank(w->handle) == 0
                          && td_has_values(w->handle)))) {
        s->start = PyNumber_AsSsize_t(key, PyExc_IndexError);
        return s->start != -1 || !PyErr_Occurred();
    }
    return read_pick(g, key, s);
}
/* subscripts: function read_subscripts */
static bool read_subscripts(glue *g, PyObject *key,
                            subscript_list *list)
{
    list->count = 0;
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
/* subscripts: function apply_pick */
static bool add_pick(view_walk *w, td_tensor *pick)
{
    pick = td_to_device(pick, td_device_of(w->view));
    if (pick == NULL || w->n == TD_MAX_RANK)
        return td_fail(TD_ERROR_INDEX, "index", "too many indices");
    w->at[w->n] = w->dim + w->axes;
    w->from.at[w->n] = w->dim++;
    w->pick[w->n++] = pick;
    return true;
}

static bool apply_pick(view_walk *w, td_tensor *pick)
{
    const int rank = td_rank(pick);
    const td_dtype type = td_dtype_of(pick);
    if (type != TD_BOOL && type != TD_UINT8)
        return add_pick(w, td_to(pick, TD_INT64));
    for (int i = 0; i < rank; i++)
        if (td_size(pick, i) != td_size(w->view, w->dim + i))
            return td_fail(TD_ERROR_INDEX, "index", "mask has %lld "
                "entries in dimension %d, the tensor has %lld",
                (long long)td_size(pick, i), i,
                (long long)td_size(w->view, w->dim + i));
    if (rank == 0)
        w->view = td_unsqueeze(w->view, w->dim);
    /* subscripts: read the places of the mask */
    td_tensor *mask = rank ? pick : td_unsqueeze(pick, 0);
    if (!td_has_values(mask) && td_numel(mask) > 0)
        td_fail(TD_ERROR_UNSUPPORTED, "index", "how many elements a "
                "mask picks is not known while tracing; use where() or "
                "masked_fill(), or pass the places as integers");
    const td_suspended trace = td_trace_suspend();
    td_tensor *places = td_nonzero(mask);
    td_trace_resume(trace);
    for (int i = 0; i < (rank ? rank : 1); i++)
        if (!add_pick(w, td_select(places, 1, i)))
            return false;
    return true;
}
/* subscripts: function apply_subscript */
static bool apply_subscript(view_walk *w, const subscript *s)
{
    if (s->kind == PICK)
        return apply_pick(w, s->pick);
    if (s->kind == REST)
        w->dim += w->rest;
    if (s->kind == AT)
        w->view = td_select(w->view, w->dim, s->start);
    if (s->kind == NEW_AXIS)
        w->axis[w->axes++] = w->dim - w->n;
    if (s->kind == RANGE) {
        /* subscripts: cut the range out of the view */
        Py_ssize_t start = s->start, stop = s->stop;
        PySlice_AdjustIndices((Py_ssize_t)td_size(w->view, w->dim), &start,
                              &stop, s->step);
        stop = stop < start ? start : stop;
        w->view = td_slice(w->view, w->dim++, (td_opt_i64)td_some(start),
                           (td_opt_i64)td_some(stop), s->step);
    }
    return w->view != NULL;
}
/* subscripts: function walk_view */
static bool walk_view(view_walk *w, td_tensor *x,
                      subscript_list *list)
{
    int dots = 0;
    *w = (view_walk){ .view = x, .rest = td_rank(x) };
    for (int i = 0; i < list->count; i++) {
        w->rest -= list->at[i].spans;
        dots += list->at[i].kind == REST;
    }
    if (w->rest < 0)
        return td_fail(TD_ERROR_INDEX, "index", "too many indices: "
                       "%d for a tensor of rank %d",
                       td_rank(x) - w->rest, td_rank(x));
    if (dots > 1)
        return td_fail(TD_ERROR_INDEX, "index",
                       "an index can have only one ellipsis");
    for (int i = 0; i < list->count; i++)
        if (!apply_subscript(w, &list->at[i]))
            return false;
    return true;
}
/* subscripts: function gather_picks */
/* The coordinates picked; the view becomes such that they cover the
   dimensions from w->from.at[0] on. */
static td_tensor *gather_picks(view_walk *w)
{
    td_dims to = w->from;
    bool apart = false, mixed = false;
    to.count = w->from.count = w->n;
    for (int i = 0; i < w->n; i++) {
        to.at[i] = i;
        apart = apart || w->at[i] != w->at[0] + i;
        mixed = mixed || !td_rank(w->pick[i]) != !td_rank(w->pick[0]);
    }
    if (apart && mixed)
        td_fail(TD_ERROR_UNSUPPORTED, "index", "an integer that is "
                "known only to the program stands apart from a list; "
                "index twice, first by the integer");
    td_tensor *places = td_coordinates(w->n, w->pick);
    /* subscripts: place the new axes around the picks */
    w->gained = td_rank(places) - (w->n > 1) - w->n;
    for (int k = 0; k < w->axes; k++)
        if (apart || w->axis[k] + k >= w->at[0])
            w->axis[k] += w->gained + w->n;
    if (apart) {
        w->view = td_movedim(w->view, w->from, to);
        w->from.at[0] = 0;
    }
    return w->view ? places : NULL;
}
/* subscripts: functions that read what was picked */
static td_tensor *add_axes(const view_walk *w, td_tensor *y)
{
    for (int k = 0; k < w->axes; k++)
        y = td_unsqueeze(y, w->axis[k] + k);
    return y;
}

static td_tensor *read_points(const view_walk *w, td_tensor *places)
{
    return td_index_points(w->view, places, w->from.at[0], w->n);
}
/* subscripts: function tensor_subscript */
static PyObject *tensor_subscript(PyObject *self, PyObject *key)
{
    glue *g = glue_of(self);
    subscript_list list;
    td_tensor *result = NULL;
    td_error_clear();
    if (read_subscripts(g, key, &list)) {
        td_tensor *x = handle_of(self);
        view_walk w;
        td_scope_begin();
        if (walk_view(&w, x, &list))
            result = add_axes(&w, w.n > 0
                ? read_points(&w, gather_picks(&w)) : w.view);
        if (result == x)
            result = td_view(x, td_shape_of(x));
        result = td_scope_end_with(result);
    }
    free_subscripts(&list);
    return wrap(g, result);
}
/* subscripts: function assign_view */
static bool assign_view(view_walk *w, td_tensor *value, int how)
{
    td_tensor *places = w->n > 0 ? gather_picks(w) : NULL;
    while (value && td_rank(value)
           > td_rank(w->view) + w->axes + w->gained
           && td_size(value, 0) == 1)
        value = td_select(value, 0, 0);
    if (w->n == 0) {
        td_tensor *view = add_axes(w, w->view);
        if (how == TD_PUT_ADD)
            return td_add_(view, value) != NULL;
        /* subscripts: copy the value to its view */
        /* subscripts: see whether the value is the view */
        bool same = view && value && td_data(view) == td_data(value)
            && td_base(view) == td_base(value) && td_base(view) != NULL
            && td_dtype_of(view) == td_dtype_of(value)
            && td_rank(view) == td_rank(value);
        for (int d = 0; same && d < td_rank(view); d++)
            same = td_size(view, d) == td_size(value, d)
                && td_strides(view)[d] == td_strides(value)[d];
        if (same && !(td_is_leaf(td_base(view))
                      && td_requires_grad(td_base(view))))
            return true;
        for (int d = 0; view && value && d < td_rank(view); d++)
            if (td_rank(value) == 0 && td_strides(view)[d] == 0)
                view = td_slice(view, d, (td_opt_i64){ 0 },
                                (td_opt_i64)td_some(1), 1);
        return td_copy_(view, value) != NULL;
    }
    if (value && td_numel(value) == 1)
        value = td_to(value, td_dtype_of(w->view));
    /* subscripts: take the new axes out of the value */
    if (w->axes > 0) {
        td_tensor *y = read_points(w, places);
        value = td_expand(value, td_shape_of(add_axes(w, y)));
        value = td_reshape(value, td_shape_of(y));
    }
    return td_put_points_(w->view, places, value, w->from.at[0], w->n,
                          how) != NULL;
}
/* subscripts: function tensor_assign */
static int assign(PyObject *self, PyObject *key, PyObject *object,
                  int how)
{
    glue *g = glue_of(self);
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
            && assign_view(&walk, value, how);
        td_scope_end();
    }
    free_subscripts(&list);
    td_release(value);
    if (!good)
        fail();
    return good ? 0 : -1;
}


static int tensor_assign(PyObject *self, PyObject *key,
                         PyObject *object)
{
    return assign(self, key, object, TD_PUT_REPLACE);
}

ENTRANCE(put, args)
{
    PyObject *self, *key, *object;
    int add;
    UNPACK(args, "OOOp:_put", &self, &key, &object, &add);
    if (tensor_cast(self) == NULL)
        return PyErr_Format(PyExc_TypeError, "index_put_(): argument "
                            "'input' must be a Tensor, not %.100s",
                            Py_TYPE(self)->tp_name);
    const int how = add ? TD_PUT_ADD : TD_PUT_REPLACE;
    return assign(self, key, object, how) < 0 ? NULL : Py_NewRef(self);
}
/* subscripts: sequence functions of a tensor */
static Py_ssize_t tensor_length(PyObject *self)
{
    if (td_rank(handle_of(self)) > 0)
        return (Py_ssize_t)td_size(handle_of(self), 0);
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
}

static PyObject *tensor_sequence_item(PyObject *self, Py_ssize_t i)
{
    td_error_clear();
    return wrap(glue_of(self), td_select(handle_of(self), 0, i));
}

static PyObject *tensor_iter(PyObject *self)
{
    if (td_rank(handle_of(self)) > 0)
        return PySeqIter_New(self);
    return PyErr_Format(PyExc_TypeError, "iteration over a 0-d tensor");
}
const PyType_Slot subscript_slots[] = {
    { Py_tp_iter, tensor_iter },
    { Py_sq_item, tensor_sequence_item },
    { Py_mp_length, tensor_length },
    { Py_mp_subscript, tensor_subscript },
    { Py_mp_ass_subscript, tensor_assign },
    { 0 },
};
