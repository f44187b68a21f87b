/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "arrow": edit that, not this file. */
#include "glue.h"
#define CAPSULE(type, title) \
    static void drop_##type(PyObject *capsule) \
    { \
        struct type *p = PyCapsule_GetPointer(capsule, title); \
        if (p->release) \
            p->release(p); \
        PyMem_Free(p); \
    } \
    static PyObject *new_##type(struct type **p) \
    { \
        *p = PyMem_Calloc(1, sizeof **p); \
        return *p ? PyCapsule_New(*p, title, drop_##type) \
                  : PyErr_NoMemory(); \
    } \
    static int as_##type(PyObject *capsule, void *out) \
    { \
        void *p = PyCapsule_GetPointer(capsule, title); \
        *(void **)out = p; \
        return p != NULL; \
    }
CAPSULE(ArrowSchema, "arrow_schema")
CAPSULE(ArrowArray, "arrow_array")
CAPSULE(ArrowArrayStream, "arrow_array_stream")
/* arrow: functions of Arrow's capsules */
/* _arrow_next(stream) -> (schema, array), or (schema, None) */
ENTRANCE(arrow_next, args)
{
    struct ArrowSchema *schema;
    struct ArrowArray *array = NULL;
    struct ArrowArrayStream *s;
    UNPACK(args, "O&", as_ArrowArrayStream, &s);
    PyObject *one = new_ArrowSchema(&schema);
    PyObject *two = one ? new_ArrowArray(&array) : NULL;
    if (two && !s->release)
        PyErr_SetString(PyExc_ValueError, "from_arrow: the stream was "
                        "released");
    else if (two) {
        td_scope_barrier_begin();
        leave_python();
        int status = s->get_schema(s, schema);
        if (!status && (status = s->get_next(s, array)))
            array->release = NULL;
        enter_python();
        td_scope_barrier_end();
        const char *why = status ? s->get_last_error(s) : NULL;
        if (status)
            PyErr_Format(PyExc_OSError, "from_arrow: the stream broke "
                         "off (%d): %s", status, why ? why : "");
    }
    if (two && !array->release)
        Py_SETREF(two, Py_NewRef(Py_None));
    return Py_BuildValue("NN", complete(one), two);
}


/* _arrow_name(schema, k) -> str or None */
ENTRANCE(arrow_name, args)
{
    struct ArrowSchema *s;
    unsigned k;
    UNPACK(args, "O&I", as_ArrowSchema, &s, &k);
    return Py_BuildValue("z", td_arrow_name(s, k));
}

/* _from_arrow(schema, array or None, k or -1, fill) -> tensor */
ENTRANCE(from_arrow, args)
{
    PyObject *second, *fill;
    long long k;
    td_value value = { 0 };
    struct ArrowSchema *s;
    struct ArrowArray *a = NULL;
    if (!PyArg_ParseTuple(args, "O&OLO:from_arrow", as_ArrowSchema, &s,
                          &second, &k, &fill)
        || (second != Py_None && !as_ArrowArray(second, &a)))
        return NULL;
    if (fill != Py_None && !to_scalar(fill, &value))
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError,
            "from_arrow: fill must be a number, not %s",
            Py_TYPE(fill)->tp_name);
    td_tensor *x = td_from_arrow(a, s, k, value.as.scalar, drop_object,
                                 Py_NewRef(second));
    if (!x)
        Py_DECREF(second);
    return wrap(g, x);
}

/* _to_arrow(tensors, names) -> stream, or
   _to_arrow([tensor], ()) -> (schema, array) */
ENTRANCE(to_arrow, args)
{
    PyObject *one = NULL, *two = NULL, *three = NULL;
    handles x;
    const char **names;
    int n = 0;
    struct ArrowSchema *schema;
    struct ArrowArray *array;
    struct ArrowArrayStream *stream;
    UNPACK(args, "O&O&:to_arrow", all_tensors, &x, all_texts, &names);
    while (names[n])
        n++;
    const bool table = n == x.n;
    if ((table || (n == 0 && x.n == 1))
        && (one = new_ArrowSchema(&schema))
        && (two = new_ArrowArray(&array))
        && (!table || (three = new_ArrowArrayStream(&stream)))) {
        if (!td_to_arrow(x.at, table ? names : NULL, x.n, array, schema)
            || (table && !td_arrow_stream(array, schema, stream)))
            fail();
    } else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "to_arrow: expected a name "
                        "for each tensor");
    PyMem_Free(names);
    drop_handles(&x);
    if (!table)
        return Py_BuildValue("NN", complete(one), two);
    Py_XDECREF(one);
    Py_XDECREF(two);
    return complete(three);
}
