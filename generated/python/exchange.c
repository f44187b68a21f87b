/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "exchange": edit that, not this file. */
#include "glue.h"
/* exchange: functions of DLPack's capsules */
static const char *const fresh[] = { "dltensor", "dltensor_versioned" };
static const char *const used[] = { "used_dltensor",
                                    "used_dltensor_versioned" };

static void drop_capsule(PyObject *capsule)
{
    for (int v = 0; v < 2; v++)
        if (PyCapsule_IsValid(capsule, fresh[v]))
            td_free_dlpack(PyCapsule_GetPointer(capsule, fresh[v]), v);
}
/* _to_dlpack(tensor, versioned, copied) -> capsule */
PyObject *py_to_dlpack(glue *g, PyObject *args)
{
    PyObject *x;
    int versioned, copied;
    if (!PyArg_ParseTuple(args, "O!pp:to_dlpack", g->tensor, &x,
                          &versioned, &copied))
        return NULL;
    void *frame = td_to_dlpack(handle_of(x), versioned, copied);
    if (frame == NULL)
        return fail();
    PyObject *capsule = PyCapsule_New(frame, fresh[versioned],
                                      drop_capsule);
    if (capsule == NULL)
        td_free_dlpack(frame, versioned);
    return capsule;
}
/* _from_dlpack(capsule, copy: None, True or False) -> tensor */
PyObject *py_from_dlpack(glue *g, PyObject *args)
{
    PyObject *capsule, *copy;
    if (!PyArg_ParseTuple(args, "OO:from_dlpack", &capsule, &copy))
        return NULL;
    const int v = PyCapsule_IsValid(capsule, fresh[1]);
    if (!v && !PyCapsule_IsValid(capsule, fresh[0]))
        return PyErr_Format(PyExc_ValueError, "from_dlpack: expected a "
                            "DLPack capsule that nobody has used yet");
    td_tensor *x = td_from_dlpack(
        PyCapsule_GetPointer(capsule, fresh[v]), v,
        (td_opt_bool){ copy != Py_None, copy == Py_True });
    if (x != NULL)
        PyCapsule_SetName(capsule, used[v]);
    return wrap(g, x);
}
/* exchange: functions on storages in Python */
static int read_sizes(PyObject *tuple, void *out)
{
    td_dims *dims = out;
    PyObject *all = PySequence_Tuple(tuple);
    if (all == NULL)
        return 0;
    dims->count = (int)PyTuple_GET_SIZE(all);
    if (dims->count > TD_MAX_RANK)
        PyErr_Format(PyExc_ValueError, "storage: %d dimensions, at "
                     "most %d are possible", dims->count, TD_MAX_RANK);
    for (int i = 0; i < dims->count && !PyErr_Occurred(); i++)
        dims->at[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(all, i));
    Py_DECREF(all);
    return !PyErr_Occurred();
}
/* _storage(tensor) -> (its key, its bytes) */
OF_TENSOR(storage, Py_BuildValue("NN",
    PyLong_FromVoidPtr((void *)(uintptr_t)td_storage_of(x)),
    wrap(g, td_storage_bytes(x))))

/* _over_storage(bytes, dtype, shape, strides, offset) */
PyObject *py_over_storage(glue *g, PyObject *args)
{
    PyObject *bytes, *type;
    td_dims shape, strides;
    long long offset;
    if (!PyArg_ParseTuple(args, "O!O!O&O&L:storage", g->tensor, &bytes,
                          g->dtype, &type, read_sizes, &shape,
                          read_sizes, &strides, &offset))
        return NULL;
    return wrap(g, td_over_storage(handle_of(bytes), dtype_of(g, type),
                                   shape, strides, offset));
}

OF_TENSOR(is_pinned, PyBool_FromLong(td_is_pinned(x)))
OF_TENSOR(pin_memory, wrap(g, td_pin_memory(x)))
/* dialect: functions on types and settings */
/* _promote(dtype, dtype) -> dtype */
PyObject *py_promote(glue *g, PyObject *args)
{
    PyObject *a, *b;
    if (!PyArg_ParseTuple(args, "O!O!:promote_types", g->dtype, &a,
                          g->dtype, &b))
        return NULL;
    return Py_NewRef(g->dtypes[td_promote(dtype_of(g, a),
                                          dtype_of(g, b))]);
}

/* _default_dtype(dtype or None) -> the default, after setting it */
PyObject *py_default_dtype(glue *g, PyObject *chosen)
{
    if (chosen != Py_None
        && !td_set_default_dtype(dtype_of(g, chosen)))
        return fail();
    return Py_NewRef(g->dtypes[td_default_dtype()]);
}

/* _print_option(which, value) */
PyObject *py_print_option(glue *g, PyObject *args)
{
    int which;
    long long value;
    if (!PyArg_ParseTuple(args, "iL:set_printoptions", &which, &value))
        return NULL;
    return done(which >= 0 && which < TD_PRINT_OPTIONS
        && td_set_print_option((td_print_choice)which, value));
}
