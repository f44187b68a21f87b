/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "values": edit that, not this file. */
#include "glue.h"
/* values: struct dtype_object */
typedef struct {
    PyObject_HEAD
    td_dtype dtype;
    Py_ssize_t itemsize;
    bool floating;
} dtype_object;
/* values: functions of dtypes */
static PyObject *dtype_repr(PyObject *self)
{
    const td_dtype dtype = ((dtype_object *)self)->dtype;
    return PyUnicode_FromFormat("treadle.%s", td_dtype_name(dtype));
}
/* values: type of dtypes */
static PyMemberDef dtype_members[] = {
    { "itemsize", T_PYSSIZET, offsetof(dtype_object, itemsize),
      READONLY, "Bytes of an element." },
    { "is_floating_point", T_BOOL, offsetof(dtype_object, floating),
      READONLY, "Whether gradients can flow through it." },
    { 0 },
};
static PyType_Slot dtype_slots[] = {
    { Py_tp_repr, dtype_repr },
    { Py_tp_members, dtype_members }, { 0 },
};
static PyType_Spec dtype_spec = {
    "treadle.dtype", sizeof(dtype_object), 0, Py_TPFLAGS_DEFAULT,
    dtype_slots
};
/* values: function dtype_of */
td_dtype dtype_of(glue *g, PyObject *object)
{
    if (Py_TYPE(object) == g->dtype)
        return ((dtype_object *)object)->dtype;
    return object == (PyObject *)&PyFloat_Type ? TD_FLOAT64
         : object == (PyObject *)&PyLong_Type ? TD_INT64
         : object == (PyObject *)&PyBool_Type ? TD_BOOL
         : TD_DTYPE_NONE;
}
/* values: function parse_device */
bool parse_device(PyObject *given, td_device *out)
{
    *out = (td_device){ .kind = TD_DEVICE_CPU };
    PyObject *text = PyLong_CheckExact(given)
        ? PyUnicode_FromFormat("cuda:%S", given) : PyObject_Str(given);
    const char *name = text ? PyUnicode_AsUTF8(text) : NULL;
    char end = 0;
    bool good = name && (!strcmp(name, "cpu")
                         || !strcmp(name, "cpu:0"));
    if (name && !good && strncmp(name, "cuda", 4) == 0) {
        out->kind = TD_DEVICE_CUDA;
        good = name[4] == '\0'
            || (sscanf(name + 4, ":%d%c", &out->index, &end) == 1
                && out->index >= 0);
    }
    if (name && !good)
        PyErr_Format(PyUnicode_Check(given) ? PyExc_RuntimeError
                                            : PyExc_TypeError,
                     "device must be 'cpu', 'cuda' or 'cuda:N', "
                     "not %R", given);
    Py_XDECREF(text);
    return good;
}
/* values: functions of shapes */
PyObject *new_tuple(const int64_t *numbers, int n)
{
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; i < n && tuple; i++)
        PyTuple_SET_ITEM(tuple, i, PyLong_FromLongLong(numbers[i]));
    return tuple;
}

static PyObject *as_size(PyTypeObject *type, PyObject *tuple)
{
    if (tuple == NULL || !PyTuple_CheckExact(tuple))
        return tuple;
    PyObject *size = PyObject_CallOneArg((PyObject *)type, tuple);
    Py_DECREF(tuple);
    return size;
}

PyObject *new_size(glue *g, const int64_t *sizes, int n)
{
    return as_size(g->size, new_tuple(sizes, n));
}
#define SIZE_SLOT(slots, slot, type) \
    static PyObject *size_##slot(PyObject *self, type x) \
    { \
        return as_size(Py_TYPE(self), \
                       PyTuple_Type.slots->slot(self, x)); \
    }
SIZE_SLOT(tp_as_mapping, mp_subscript, PyObject *)
SIZE_SLOT(tp_as_sequence, sq_concat, PyObject *)
SIZE_SLOT(tp_as_sequence, sq_repeat, Py_ssize_t)
/* values: type of shapes */
static PyType_Slot size_slots[] = {
    { Py_tp_base, &PyTuple_Type },
    { Py_mp_subscript, size_mp_subscript },
    { Py_sq_concat, size_sq_concat },
    { Py_sq_repeat, size_sq_repeat },
    { 0 },
};
static PyType_Spec size_spec = {
    "treadle.Size", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    size_slots
};
/* values: functions of generators */
#define GENERATOR "treadle.generator"

/* _generator(device) -> a capsule */
ENTRANCE(generator, device)
{
    td_device place;
    if (!parse_device(device, &place))
        return NULL;
    return box(td_generator_new(0), GENERATOR);
}

void *generator_of(PyObject *object)
{
    PyObject *box = PyObject_GetAttrString(object, "_box");
    void *generator = box ? PyCapsule_GetPointer(box, GENERATOR) : NULL;
    Py_XDECREF(box);
    PyErr_Clear();
    return generator;
}
/* values: function add_small_objects */
static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (type && PyModule_AddType(module, (PyTypeObject *)type) < 0)
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}

bool add_small_objects(glue *g, PyObject *module)
{
    g->dtype = add_type(module, &dtype_spec);
    g->size = add_type(module, &size_spec);
    if (!g->dtype || !g->size)
        return false;
    for (int i = 1; i < TD_DTYPE_COUNT; i++) {
        const td_dtype dtype = (td_dtype)i;
        PyObject *o = g->dtype->tp_alloc(g->dtype, 0);
        if (o == NULL)
            return false;
        g->dtypes[i] = o;
        dtype_object *own = (dtype_object *)o;
        own->dtype = dtype;
        own->itemsize = (Py_ssize_t)td_dtype_size(dtype);
        own->floating = td_dtype_is_floating(dtype);
        if (PyObject_SetAttrString(module, td_dtype_name(dtype), o) < 0)
            return false;
    }
    return true;
}
