/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "gradients": edit that, not this file. */
#include "glue.h"
/* gradients: functions that take tensors */
static int take_handles(PyObject *items, bool none, handles *out)
{
    PyObject *wrong = items ? hold_tensors(items, none, out) : NULL;
    if (items != NULL && wrong == NULL)
        return Py_CLEANUP_SUPPORTED;
    if (wrong != NULL && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "expected a Tensor%s, not "
                     "%.100s", none ? " or None" : "",
                     Py_TYPE(wrong)->tp_name);
    drop_handles(out);
    return items == NULL;
}
/* For O&: retains the tensors of a tuple, and NULL for None. */
static int some_tensors(PyObject *tuple, void *out)
{
    return take_handles(tuple, true, out);
}

/* The same without None. */
int all_tensors(PyObject *tuple, void *out)
{
    return take_handles(tuple, false, out);
}
/* gradients: functions that find the state */
#define STATE_KEY "treadle._C"

static PyObject *shelf(void)
{
    return PyInterpreterState_GetDict(PyInterpreterState_Get());
}

bool publish_state(glue *g)
{
    PyObject *all = shelf();
    PyObject *capsule = all ? PyCapsule_New(g, STATE_KEY, NULL) : NULL;
    const bool good = capsule
        && PyDict_SetItemString(all, STATE_KEY, capsule) == 0;
    Py_XDECREF(capsule);
    return good;
}

glue *published_state(void)
{
    PyObject *capsule = PyDict_GetItemString(shelf(), STATE_KEY);
    return PyCapsule_GetPointer(capsule, STATE_KEY);
}
/* gradients: function py_grad */
/* _grad(outputs, inputs, grad_outputs, retain, create, unused, add) */
ENTRANCE(grad, args)
{
    handles y, x, v;
    int retain, create, unused, add;
    UNPACK(args, "O&O&O&pppp:grad", all_tensors, &y, all_tensors, &x,
           some_tensors, &v, &retain, &create, &unused, &add);
    PyObject *result = NULL;
    td_tensor **made = PyMem_Calloc((size_t)x.n + 1, sizeof *made);
    td_tensor *const *seeds = v.n ? v.at : NULL;
    if (made == NULL)
        PyErr_NoMemory();
    else if (seeds && v.n != y.n)
        PyErr_Format(PyExc_RuntimeError, "got %d tensors and %d "
                     "gradients", y.n, v.n);
    else {
        /* gradients: run the pass without the lock */
        leave_python();
        const bool good = add
            ? td_backward_all(y.at, y.n, seeds, (td_backward_options){
                .retain_graph = retain, .create_graph = create,
                .inputs = x.n ? x.at : NULL, .n_inputs = x.n })
            : td_grad(y.at, y.n, x.at, x.n, made, (td_grad_options){
                .grad_outputs = seeds, .retain_graph = retain,
                .create_graph = create, .allow_unused = unused });
        enter_python();
        result = good ? wrap_many(g, made, x.n) : pass_failed();
    }
    drop_handles(&y);
    drop_handles(&x);
    drop_handles(&v);
    PyMem_Free(made);
    return result;
}
/* gradients: function call_python_hook */
td_tensor *tensor_from(PyObject *f, PyObject *x, bool none,
                       const char *wrong, const char *operation)
{
    PyObject *result = x ? PyObject_CallOneArg(f, x) : NULL;
    tensor_object *w = result ? tensor_cast(result) : NULL;
    td_tensor *made = w ? td_retain(w->handle) : NULL;
    if (result && !w && !(none && result == Py_None))
        PyErr_Format(PyExc_TypeError, wrong, Py_TYPE(result)->tp_name);
    Py_XDECREF(result);
    td_error_clear();
    if (PyErr_Occurred())
        callback_failed(operation);
    return made;
}

static td_tensor *call_python_hook(void *context, td_tensor *grad)
{
    const int lock = take_lock();
    PyObject *x = wrap(published_state(), td_retain(grad));
    td_tensor *changed = tensor_from(context, x, true, "a hook must "
        "return a Tensor or None, not %.100s", "hook");
    Py_XDECREF(x);
    give_lock(lock);
    return changed;
}

void drop_object(void *context)
{
    if (!python_lives())
        return;
    const errand e = begin_errand();
    Py_DECREF((PyObject *)context);
    end_errand(e);
}
/* gradients: function py_register_hook */
/* _register_hook(tensor, callable, post) -> number of the hook */
ENTRANCE(register_hook, args)
{
    PyObject *x, *hook;
    int post = 0;
    UNPACK(args, "OO|p:register_hook", &x, &hook, &post);
    tensor_object *w = tensor_cast(x);
    if (w == NULL || !PyCallable_Check(hook))
        return PyErr_Format(PyExc_TypeError,
                            "register_hook: expected a callable");
    if (w->hooks == NULL && (w->hooks = PyDict_New()) == NULL)
        return NULL;
    const int64_t id = (post ? td_register_post_hook
                             : td_register_hook)(
        w->handle, call_python_hook, Py_NewRef(hook), drop_object);
    if (td_failed())
        return fail();
    PyObject *number = PyLong_FromLongLong(id);
    if (number && PyDict_SetItem(w->hooks, number, hook) < 0)
        Py_CLEAR(number);
    return number;
}
/* gradients: function py_remove_hook */
/* _remove_hook(tensor, number) -> whether it was there */
ENTRANCE(remove_hook, args)
{
    PyObject *x, *number;
    UNPACK(args, "O!O!:remove_hook", g->tensor, &x, &PyLong_Type,
           &number);
    tensor_object *w = (tensor_object *)x;
    const long long n = PyLong_AsLongLong(number);
    if (n == -1 && PyErr_Occurred())
        return NULL;
    const bool there = td_remove_hook(handle_of(x), n);
    if (w->hooks && PyDict_DelItem(w->hooks, number) < 0)
        PyErr_Clear();
    return td_failed() ? fail() : PyBool_FromLong(there);
}
/* gradients: function function_backward */
static PyObject *tuple_of(td_tensor *const *x, int n)
{
    for (int i = 0; i < n; i++)
        td_retain(x[i]);
    return wrap_many(published_state(), x, n);
}
bool function_backward(void *context, td_custom_call *call)
{
    const int lock = take_lock();
    PyObject *args = Py_BuildValue("NNy#",
        tuple_of(call->saved, call->n_saved),
        tuple_of(call->grad_out, call->n_out),
        (const char *)call->needs, (Py_ssize_t)call->n_in);
    PyObject *result = args ? PyObject_CallObject(context, args) : NULL;
    Py_XDECREF(args);
    for (int i = 0; result && i < call->n_in; i++) {
        tensor_object *w = tensor_cast(PyTuple_GET_ITEM(result, i));
        call->grad_in[i] = w && call->needs[i] ? td_retain(w->handle)
                                               : NULL;
    }
    Py_XDECREF(result);
    td_error_clear();
    const bool good = !PyErr_Occurred();
    give_lock(lock);
    return good || callback_failed("backward");
}
/* gradients: function py_record */
/* _record(name, inputs, outputs, saved, backward) */
ENTRANCE(record, args)
{
    const char *name;
    PyObject *backward;
    handles x, y, s;
    UNPACK(args, "sO&O&O&O:_record", &name, some_tensors, &x,
           some_tensors, &y, some_tensors, &s, &backward);
    bool good = td_record_custom(name, x.n, x.at, y.n, y.at,
                                 function_backward,
                                 Py_NewRef(backward), drop_object);
    for (int i = 0; good && s.n && i < y.n; i++)
        if (y.at[i] && td_requires_grad(y.at[i])) {
            good = td_save_for_backward(y.at[i], s.n, s.at);
            break;
        }
    drop_handles(&x);
    drop_handles(&y);
    drop_handles(&s);
    return done(good);
}
