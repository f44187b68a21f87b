/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "extension": edit that, not this file. */
#include "glue.h"
/* python: functions give_handle and wake */
static void give_handle(tensor_object *w, td_tensor *x)
{
    td_error_clear();
    w->handle = x ? x : td_retain(w->glue->nothing);
    w->owner = true;
    if (x != NULL)
        td_set_companion(x, w);
}

/* Makes a wrapper that was found by a weak reference the owner. */
void wake(tensor_object *w)
{
    if (td_retain_alive(w->handle) == NULL) {
        give_handle(w, td_rescue(w->handle));
        return;
    }
    w->owner = true;
    td_lend_companion(w->handle, NULL);
    Py_DECREF((PyObject *)w);
}
/* python: function wrapper_dropped */
/* The handle dies and lets go of the sleeping wrapper it owned. */
static void wrapper_dropped(void *companion)
{
    tensor_object *w = companion;
    if (!python_lives()) {
        w->handle = w->owner ? w->handle : NULL;
        return;
    }
    const errand e = begin_errand();
    td_tensor *dying = w->owner ? NULL : w->handle;
    if (dying != NULL)
        w->handle = NULL;
    if (dying != NULL && Py_REFCNT(w) > 1)
        give_handle(w, td_rescue(dying));
    Py_DECREF((PyObject *)w);
    end_errand(e);
}
/* python: function flip */
/* Leaves the wrapper to its handle, if anyone in C still holds that. */
static bool flip(tensor_object *w)
{
    td_tensor *x = w->handle;
    if (x == NULL || !w->owner || td_reference_count(x) == 1)
        return false;
    _Py_NewReference((PyObject *)w);
    w->owner = false;
    td_lend_companion(x, wrapper_dropped);
    td_release(x);
    return true;
}
/* python: function tensor_dealloc */
void tensor_dealloc(PyObject *self)
{
    tensor_object *w = (tensor_object *)self;
    if (flip(w))
        return;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (w->weakrefs != NULL)
        PyObject_ClearWeakRefs(self);
    if (w->handle != NULL)
        td_set_companion(w->handle, NULL);
    Py_CLEAR(w->dict);
    td_tensor *x = w->handle;
    w->handle = NULL;
    td_release(x);
    Py_CLEAR(w->hooks);
    type->tp_free(self);
    Py_DECREF(type);
}
/* python: function tensor_traverse */
static bool goes_with_its_wrapper(const tensor_object *w)
{
    return w->handle != NULL && (w->owner || threads_away() == 0)
        && td_is_sole_owner(w->handle);
}

static int tensor_traverse(PyObject *self, visitproc visit, void *arg)
{
    tensor_object *w = (tensor_object *)self;
    Py_VISIT(Py_TYPE(self));
    const bool all = goes_with_its_wrapper(w);
    if (w->handle == NULL || (w->owner && !all))
        return 0;
    Py_VISIT(w->dict);
    Py_VISIT(w->hooks);
    if (!all)
        return 0;
    PyObject *id, *hook;
    Py_ssize_t at = 0;
    while (w->hooks && PyDict_Next(w->hooks, &at, &id, &hook))
        if (td_has_hook(w->handle, PyLong_AsLongLong(id)))
            Py_VISIT(hook);
    Py_VISIT((PyObject *)td_sole_context(w->handle, function_backward));
    Py_VISIT((PyObject *)td_sole_grad_companion(w->handle));
    return 0;
}
/* python: function tensor_clear */
static int tensor_clear(PyObject *self)
{
    tensor_object *w = (tensor_object *)self;
    if (w->handle != NULL && !goes_with_its_wrapper(w))
        return 0;
    td_tensor *x = td_retain(w->handle);
    Py_CLEAR(w->dict);
    if (x != NULL && td_sole_grad_companion(x))
        td_forget_grad(x);
    PyObject *hooks = w->hooks, *id, *hook;
    w->hooks = NULL;
    Py_ssize_t at = 0;
    while (hooks && PyDict_Next(hooks, &at, &id, &hook))
        td_remove_hook(x, PyLong_AsLongLong(id));
    Py_XDECREF(hooks);
    td_release(x);
    return 0;
}
/* python: function wrap_as */
/* The same for a handle without a wrapper, of a subclass of Tensor. */
static PyObject *wrap_as(PyTypeObject *type, glue *g, td_tensor *x)
{
    tensor_object *w = (tensor_object *)type->tp_alloc(type, 0);
    if (w == NULL) {
        td_release(x);
        return NULL;
    }
    w->handle = x;
    w->glue = g;
    w->owner = true;
    td_set_companion(x, w);
    return (PyObject *)w;
}
/* python: function wrap */
/* A Python tensor for `x`, whose reference it takes; NULL raises. */
PyObject *wrap(glue *g, td_tensor *x)
{
    if (x == NULL)
        return fail();
    tensor_object *w = td_companion(x);
    if (w == NULL)
        return wrap_as(g->tensor, g, x);
    if (w->owner) {
        Py_INCREF(w);
        td_release(x);
    } else {
        w->owner = true;
        td_lend_companion(x, NULL);
    }
    return (PyObject *)w;
}
/* binder: function wrap_many */
/* The tensor, or None where there is none. */
static PyObject *wrap_optional(glue *g, td_tensor *x)
{
    return x ? wrap(g, x) : Py_NewRef(Py_None);
}

/* What was filled, unless a part of it could not be made. */
PyObject *complete(PyObject *filled)
{
    if (PyErr_Occurred())
        Py_CLEAR(filled);
    return filled;
}
/* A tuple of the `n` tensors at `x`, whose references it takes. */
PyObject *wrap_many(glue *g, td_tensor *const *x, int n)
{
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; i < n; i++) {
        PyObject *item = wrap_optional(g, x[i]);
        if (tuple != NULL)
            PyTuple_SET_ITEM(tuple, i, item);
        else
            Py_XDECREF(item);
    }
    return complete(tuple);
}
/* extension: attributes of a tensor */
#define ANSWER(name, unused, answer) \
    static PyObject *name(PyObject *self, unused) \
    { const td_tensor *x = handle_of(self); return answer; }
#define ATTRIBUTES(A) \
    A(shape, new_size(glue_of(self), td_shape(x), td_rank(x)), \
      "The sizes of all dimensions.") \
    A(dtype, Py_NewRef(glue_of(self)->dtypes[td_dtype_of(x)]), \
      "The type of the elements.") \
    A(ndim, PyLong_FromLong(td_rank(x)), "The number of dimensions.") \
    A(is_leaf, PyBool_FromLong(td_is_leaf(x)), \
      "Whether no operator made it.") \
    A(output_nr, PyLong_FromLong(td_output_nr(x)), \
      "Which result it is.") \
    A(retains_grad, PyBool_FromLong(td_retains_grad(x)), \
      "Whether retain_grad() was called on it.") \
    A(_base, wrap_optional(glue_of(self), td_retain(td_base(x))), \
      "What it is a view of, or None.") \
    A(_version, PyLong_FromLongLong(td_version(x)), \
      "Counts changes in place.") \
    A(_strides, new_tuple(td_strides(x), td_rank(x)), NULL)
#define GETTER(name, answer, help) \
    ANSWER(get_##name, void *closure, answer)
ATTRIBUTES(GETTER)
ANSWER(get_requires_grad, void *closure,
       PyBool_FromLong(td_requires_grad(x)))
ANSWER(get_grad, void *closure,
       wrap_optional(glue_of(self), td_grad_of(x)))

static PyObject *get_data(PyObject *self, void *unused)
{
    td_error_clear();
    return wrap(glue_of(self), td_data_of(handle_of(self)));
}
static int set_tensor(PyObject *self, PyObject *value, void *grad)
{
    tensor_object *w = value ? tensor_cast(value) : NULL;
    if (w == NULL && (!grad || (value && value != Py_None))) {
        PyErr_Format(PyExc_TypeError, grad
                     ? "grad must be a Tensor or None, not %.100s"
                     : "data must be a Tensor",
                     value ? Py_TYPE(value)->tp_name : "");
        return -1;
    }
    td_error_clear();
    return (grad ? td_set_grad(handle_of(self), w ? w->handle : NULL)
                 : td_set_data(handle_of(self), w->handle))
        ? 0 : (fail(), -1);
}
static int set_requires_grad(PyObject *self, PyObject *value,
                             void *unused)
{
    const int on = value ? PyObject_IsTrue(value) : -1;
    if (on < 0)
        return -1;
    td_error_clear();
    return td_set_requires_grad(handle_of(self), on)
        ? 0 : (fail(), -1);
}
static PyObject *get_device(PyObject *self, void *unused)
{
    const td_device device = td_device_of(handle_of(self));
    if (device.kind == TD_DEVICE_CPU)
        return PyUnicode_FromString("cpu");
    return PyUnicode_FromFormat("cuda:%d", device.index);
}
/* extension: table of tensor attributes */
#define GETTER_ROW(name, answer, help) \
    { #name, get_##name, NULL, help, NULL },
static PyGetSetDef tensor_getset[] = {
    ATTRIBUTES(GETTER_ROW)
    { "grad", get_grad, set_tensor, "What backward() collected.",
      "grad" },
    { "requires_grad", get_requires_grad, set_requires_grad,
      "Whether operators on it are recorded.", NULL },
    { "data", get_data, set_tensor, "The same storage, no history.",
      NULL },
    { "_device", get_device, NULL, NULL, NULL },
    { "__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict,
      NULL, NULL },
    { 0 },
};
/* extension: methods of a tensor */
static PyObject *tensor_text(PyObject *self, PyObject *unused)
{
    td_error_clear();
    const int64_t length = td_repr(handle_of(self), NULL, 0);
    if (length < 0 || td_failed())
        return fail();
    char *text = PyMem_Malloc((size_t)length + 1);
    if (text == NULL)
        return PyErr_NoMemory();
    td_repr(handle_of(self), text, length + 1);
    PyObject *result = td_failed() ? fail()
                                   : PyUnicode_FromString(text);
    PyMem_Free(text);
    return result;
}
ANSWER(tensor_offset, PyObject *none, PyLong_FromLongLong(td_offset(x)))
ANSWER(tensor_numel, PyObject *none, PyLong_FromLongLong(td_numel(x)))
ANSWER(tensor_contiguous, PyObject *none,
       PyBool_FromLong(td_is_contiguous(x)))
ANSWER(tensor_data_ptr, PyObject *none, PyLong_FromVoidPtr(td_data(x)))
static PyObject *make_subclass(PyObject *cls, PyObject *args)
{
    PyObject *type, *data;
    int requires_grad = 0;
    UNPACK(args, "OO|p:_make_subclass", &type, &data, &requires_grad);
    tensor_object *w = tensor_cast(data);
    if (w == NULL || !PyType_Check(type)
        || !PyType_IsSubtype((PyTypeObject *)type,
                             (PyTypeObject *)cls))
        return PyErr_Format(PyExc_TypeError, "_make_subclass expects a "
                            "subclass of Tensor and a Tensor");
    td_error_clear();
    td_tensor *x = td_detach(w->handle);
    return x == NULL ? fail()
         : with_gradient(wrap_as((PyTypeObject *)type, w->glue, x),
                         requires_grad);
}

static PyObject *tensor_new(PyTypeObject *type, PyObject *args,
                            PyObject *names)
{
    PyObject *make = PyObject_GetAttrString((PyObject *)type, "_new");
    if (make == NULL)
        return PyErr_Format(PyExc_TypeError, "%s is made by "
                            "treadle.tensor() and by operators",
                            type->tp_name);
    PyObject *x = PyObject_Call(make, args, names);
    Py_DECREF(make);
    return x;
}
/* extension: tables of the tensor type */
static PyMethodDef tensor_methods[] = {
    { "item", tensor_item, METH_NOARGS,
      "The only element, as a Python number." },
    { "tolist", tensor_tolist, METH_NOARGS,
      "The elements as nested lists of Python numbers." },
    { "storage_offset", tensor_offset, METH_NOARGS,
      "Elements of the storage before the first." },
    { "numel", tensor_numel, METH_NOARGS, "The number of elements." },
    { "is_contiguous", tensor_contiguous, METH_NOARGS,
      "Whether the elements lie in row-major order." },
    { "data_ptr", tensor_data_ptr, METH_NOARGS,
      "The address of the first element." },
    { "_text", tensor_text, METH_NOARGS, NULL },
    { "_make_subclass", make_subclass, METH_VARARGS | METH_CLASS,
      NULL },
    { 0 },
};
static PyMemberDef tensor_members[] = {
    { "__dictoffset__", T_PYSSIZET, offsetof(tensor_object, dict),
      READONLY, NULL },
    { "__weaklistoffset__", T_PYSSIZET,
      offsetof(tensor_object, weakrefs), READONLY, NULL },
    { 0 },
};
static const PyType_Slot own_slots[] = {
    { Py_tp_new, tensor_new },
    { Py_tp_dealloc, tensor_dealloc },
    { Py_tp_traverse, tensor_traverse },
    { Py_tp_clear, tensor_clear },
    { Py_tp_methods, tensor_methods },
    { Py_tp_members, tensor_members },
    { Py_tp_getset, tensor_getset },
    { 0 },
};
/* extension: function make_tensor_type */
bool make_tensor_type(glue *g, PyObject *module)
{
    const PyType_Slot *const parts[] = {
        own_slots, number_slots, subscript_slots, buffer_slots };
    PyType_Slot slots[80] = { { 0 } };
    int n = 0;
    for (int i = 0; i < 4; i++)
        for (const PyType_Slot *s = parts[i]; s->slot != 0; s++)
            slots[n++] = *s;
    PyType_Spec spec = {
        "treadle.Tensor", sizeof(tensor_object), 0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
        slots
    };
    g->tensor = (PyTypeObject *)
        PyType_FromModuleAndSpec(module, &spec, NULL);
    return g->tensor && PyModule_AddType(module, g->tensor) == 0;
}
