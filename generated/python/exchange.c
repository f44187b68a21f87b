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
ENTRANCE(to_dlpack, args)
{
    PyObject *x;
    int versioned, copied;
    UNPACK(args, "O!pp:to_dlpack", g->tensor, &x, &versioned, &copied);
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
ENTRANCE(from_dlpack, args)
{
    PyObject *capsule, *copy;
    UNPACK(args, "OO:from_dlpack", &capsule, &copy);
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
ENTRANCE(over_storage, args)
{
    PyObject *bytes, *type;
    td_dims shape, strides;
    long long offset;
    UNPACK(args, "O!O!O&O&L:storage", g->tensor, &bytes, g->dtype,
           &type, read_sizes, &shape, read_sizes, &strides, &offset);
    return wrap(g, td_over_storage(handle_of(bytes), dtype_of(g, type),
                                   shape, strides, offset));
}

OF_TENSOR(is_pinned, PyBool_FromLong(td_is_pinned(x)))
OF_TENSOR(pin_memory, wrap(g, td_pin_memory(x)))
/* dialect: functions on types and settings */
/* _promote(dtype, dtype) -> dtype */
ENTRANCE(promote, args)
{
    PyObject *a, *b;
    UNPACK(args, "O!O!:promote_types", g->dtype, &a, g->dtype, &b);
    return Py_NewRef(g->dtypes[td_promote(dtype_of(g, a),
                                          dtype_of(g, b))]);
}

/* _default_dtype(dtype or None) -> the default, after setting it */
ENTRANCE(default_dtype, chosen)
{
    if (chosen != Py_None
        && !td_set_default_dtype(dtype_of(g, chosen)))
        return fail();
    return Py_NewRef(g->dtypes[td_default_dtype()]);
}

/* _print_option(which, value) */
ENTRANCE(print_option, args)
{
    int which;
    long long value;
    UNPACK(args, "iL:set_printoptions", &which, &value);
    return done(which >= 0 && which < TD_PRINT_OPTIONS
        && td_set_print_option((td_print_choice)which, value));
}
