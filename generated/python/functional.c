/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "gradients": edit that, not this file. */
#include "glue.h"

/* gradients: function py_leads_beyond */
/* _leads_beyond(outputs, inputs) -> bool */
ENTRANCE(leads_beyond, args)
{
    handles y, x;
    UNPACK(args, "O&O&:leads_beyond", all_tensors, &y, all_tensors, &x);
    const bool beyond = td_leads_beyond(y.at, y.n, x.at, x.n);
    drop_handles(&y);
    drop_handles(&x);
    return td_failed() ? fail() : PyBool_FromLong(beyond);
}
/* gradients: functions that show nodes */
#define NODE "treadle.node"

static PyObject *show_node(td_node *node)
{
    if (node == NULL)
        Py_RETURN_NONE;
    PyObject *capsule = box(node, NODE);
    return capsule == NULL ? NULL
         : Py_BuildValue("NKs", capsule,
                         (unsigned long long)(uintptr_t)node,
                         td_node_text(node));
}

OF_TENSOR(node_of, show_node(td_grad_fn(x)))

ENTRANCE(node_edges, capsule)
{
    const td_node *node = PyCapsule_GetPointer(capsule, NODE);
    const int n = node ? td_node_count(node) : 0;
    PyObject *edges = node ? PyTuple_New(n) : NULL;
    for (int i = 0; i < n && !PyErr_Occurred(); i++) {
        const td_next next = td_node_next(node, i);
        PyObject *end = next.leaf ? wrap(g, next.leaf)
                                  : show_node(next.node);
        PyTuple_SET_ITEM(edges, i, Py_BuildValue("Ni", end, next.slot));
    }
    return complete(edges);
}
/* gradients: functions that set anomaly mode */
static const char *utf8(PyObject *name)
{
    const char *text = PyUnicode_AsUTF8(name);
    return text != NULL ? text : (PyErr_Clear(), "?");
}

void where_in_python(char *text, size_t room)
{
    const errand e = begin_errand();
    PyFrameObject *frame = PyEval_GetFrame();
    size_t at = room - 1, n = 0;
    text[at] = '\0';
    Py_XINCREF(frame);
    while (frame != NULL) {
        char line[1024];
        PyCodeObject *code = PyFrame_GetCode(frame);
        n = (size_t)snprintf(line, sizeof line,
            "  File \"%s\", line %d, in %s\n", utf8(code->co_filename),
            PyFrame_GetLineNumber(frame), utf8(code->co_name));
        Py_DECREF(code);
        PyFrameObject *outer = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = outer;
        if (n >= sizeof line || n > at)
            Py_CLEAR(frame);
        else
            memcpy(text + (at -= n), line, n);
    }
    memmove(text, text + at, room - at);
    end_errand(e);
}

/* _set_anomaly(mode or None) -> the mode before */
ENTRANCE(set_anomaly, mode)
{
    const td_anomaly before = td_anomaly_mode();
    if (mode != Py_None) {
        const long number = PyLong_AsLong(mode);
        if (PyErr_Occurred())
            return NULL;
        td_set_anomaly((td_anomaly)number,
                       number ? where_in_python : NULL);
    }
    return PyLong_FromLong(before);
}

PyObject *pass_failed(void)
{
    fail();
    const char *where = td_anomaly_mode() ? td_anomaly_where() : NULL;
    if (where == NULL)
        return NULL;
    const errand e = begin_errand();
    const char *place, *first = td_anomaly_first(&place);
    PyObject *module = PyImport_ImportModule(
        "treadle.autograd.anomaly_mode");
    PyObject *said = module ? PyObject_CallMethod(module, "_warn",
        "szz", where, first, place) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(said);
    end_errand(e);
    return NULL;
}
/* gradients: functions that save something else */
static void *pack_in_python(void *pair, td_tensor *x)
{
    const int lock = take_lock();
    PyObject *tensor = wrap(published_state(), td_retain(x));
    PyObject *kept = tensor ? PyObject_CallOneArg(
        PyTuple_GET_ITEM(pair, 0), tensor) : NULL;
    Py_XDECREF(tensor);
    td_error_clear();
    if (kept == NULL)
        callback_failed("pack");
    give_lock(lock);
    return kept;
}

static td_tensor *unpack_in_python(void *pair, void *kept)
{
    const int lock = take_lock();
    td_tensor *x = tensor_from(PyTuple_GET_ITEM(pair, 1), kept, false,
        "Output of saved tensor unpack_hook expected to be a Tensor "
        "but got result of type %.100s", "unpack");
    give_lock(lock);
    return x;
}

ENTRANCE(saved_hooks_begin, pair)
{
    if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2
        || !PyCallable_Check(PyTuple_GET_ITEM(pair, 0)))
        return PyErr_Format(PyExc_TypeError, "expected two callables");
    return done(td_saved_hooks_begin((td_saved_hooks){
        pack_in_python, unpack_in_python, drop_object,
        Py_NewRef(pair), drop_object }));
}

ENTRANCE(saved_hooks_end, unused)
{
    td_saved_hooks_end();
    return done(true);
}
