/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "jit": edit that, not this file. */
#include "glue.h"

/* jit: names of capsules */
#define PROGRAM "treadle.program"
#define EXECUTABLE "treadle.executable"

/* jit: functions that trace */
ENTRANCE(trace_begin, symbolic)
{
    return done(td_trace_begin(PyObject_IsTrue(symbolic) == 1));
}

OF_TENSOR(trace_input, wrap(g, td_trace_input(
    td_shape_of(x), td_dtype_of(x), td_device_of(x))))
ENTRANCE(program_fits, args)
{
    PyObject *capsule;
    handles x = { 0 };
    UNPACK(args, "O|O&:program_fits", &capsule, all_tensors, &x);
    td_program *p = PyCapsule_GetPointer(capsule, PROGRAM);
    const bool fits = p && (x.at ? !td_program_overlaps(p, x.at, x.n)
                                 : td_program_holds(p));
    drop_handles(&x);
    return p && !td_failed() ? PyBool_FromLong(fits) : fail();
}
ENTRANCE(trace_end, outputs)
{
    handles x = { 0 };
    if (outputs != Py_None && !all_tensors(outputs, &x))
        return NULL;
    td_program *p = td_trace_end(x.at, x.n);
    drop_handles(&x);
    if (outputs != Py_None)
        return box(p, PROGRAM);
    td_release(p);
    td_error_clear();
    Py_RETURN_NONE;
}
ENTRANCE(program_text, capsule)
{
    const td_program *p = PyCapsule_GetPointer(capsule, PROGRAM);
    if (p == NULL)
        return NULL;
    const int64_t room = td_program_print(p, NULL, 0) + 1;
    char *text = PyMem_Malloc((size_t)room);
    if (text == NULL)
        return PyErr_NoMemory();
    td_program_print(p, text, room);
    PyObject *made = PyUnicode_FromString(text);
    PyMem_Free(text);
    return made;
}

/* jit: functions that compile */
ENTRANCE(compile, args)
{
    PyObject *capsule;
    td_compile_options options = { NULL, NULL };
    UNPACK(args, "Ozz:compile", &capsule, &options.backend,
           &options.name);
    td_program *p = PyCapsule_GetPointer(capsule, PROGRAM);
    if (p == NULL)
        return NULL;
    leave_python();
    td_executable *e = td_compile(p, options);
    enter_python();
    PyObject *made = box(e, EXECUTABLE);
    return made == NULL ? NULL
         : Py_BuildValue("Nss", made, td_executable_backend(e),
                         td_executable_note(e));
}
ENTRANCE(execute, args)
{
    PyObject *capsule;
    handles x;
    int n;
    UNPACK(args, "OO&i:execute", &capsule, all_tensors, &x, &n);
    td_executable *e = PyCapsule_GetPointer(capsule, EXECUTABLE);
    td_tensor **y = e ? PyMem_Calloc((size_t)n + 1, sizeof *y) : NULL;
    bool good = false;
    if (y != NULL) {
        leave_python();
        good = td_execute(e, x.at, x.n, y);
        enter_python();
    }
    PyObject *result = good ? wrap_many(g, y, n) : fail();
    drop_handles(&x);
    PyMem_Free(y);
    return result;
}

/* jit: functions that take arguments apart */
static PyObject *key_of_tensor(PyObject *w, const td_tensor *x,
                               PyObject *leaves)
{
    if (td_requires_grad(x))
        return PyErr_Format(PyExc_RuntimeError, "jit: an argument "
            "requires grad, which a program would lose; pass "
            "x.detach()");
    const td_device device = td_device_of(x);
    PyObject *n = PyLong_FromSsize_t(PyDict_GET_SIZE(leaves));
    PyObject *first = n ? PyDict_SetDefault(leaves, w, n) : NULL;
    PyObject *key = first == NULL ? NULL
        : Py_BuildValue("Oiiiy#", first, td_dtype_of(x), device.kind,
                        device.index, (const char *)td_shape(x),
                        td_rank(x) * (Py_ssize_t)sizeof(int64_t));
    Py_XDECREF(n);
    return key;
}

static PyObject *key_of_value(PyObject *x)
{
    if (PyFloat_Check(x))
        return PyObject_Repr(x);
    if (PyObject_Hash(x) != -1)
        return Py_NewRef(x);
    return !PyErr_ExceptionMatches(PyExc_TypeError) ? NULL
         : PyErr_Format(PyExc_TypeError, "jit: an argument of type %s "
                        "is neither a tensor nor hashable",
                        Py_TYPE(x)->tp_name);
}
static PyObject *key_of(PyObject *x, PyObject *leaves)
{
    const tensor_object *w = tensor_cast(x);
    const bool named = PyDict_Check(x);
    if (w != NULL)
        return key_of_tensor(x, w->handle, leaves);
    if (!named && !PyList_Check(x) && !PyTuple_Check(x))
        return Py_BuildValue("ON", Py_TYPE(x), key_of_value(x));
    if (Py_EnterRecursiveCall(" in jit") != 0)
        return NULL;
    PyObject *items = named ? PyMapping_Values(x) : PySequence_List(x);
    bool good = items != NULL;
    for (Py_ssize_t i = 0; good && i < PyList_GET_SIZE(items); i++) {
        PyObject *part = key_of(PyList_GET_ITEM(items, i), leaves);
        good = part && PyList_SetItem(items, i, part) == 0;
    }
    Py_LeaveRecursiveCall();
    PyObject *key = !good ? NULL
        : Py_BuildValue("ONN", Py_TYPE(x), PyList_AsTuple(items),
                        named ? PySequence_Tuple(x)
                              : Py_NewRef(Py_None));
    Py_XDECREF(items);
    return key;
}

/* (key, tensors), each tensor once. */
ENTRANCE(take_apart, tree)
{
    PyObject *leaves = PyDict_New();
    PyObject *key = leaves ? key_of(tree, leaves) : NULL;
    PyObject *pair = key ? Py_BuildValue("NN", key,
                               PySequence_Tuple(leaves)) : NULL;
    Py_XDECREF(leaves);
    return pair;
}
