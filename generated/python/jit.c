/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "jit": edit that, not this file. */
#include "glue.h"

/* jit: functions of capsules */
#define PROGRAM "treadle.program"
#define EXECUTABLE "treadle.executable"

static void release_held(PyObject *capsule)
{
    td_release(PyCapsule_GetPointer(capsule,
                                    PyCapsule_GetName(capsule)));
}


/* jit: functions that trace */
PyObject *py_trace_begin(PyObject *module, PyObject *symbolic)
{
    td_error_clear();
    if (!td_trace_begin(PyObject_IsTrue(symbolic) == 1))
        return fail();
    Py_RETURN_NONE;
}

PyObject *py_trace_input(PyObject *module, PyObject *like)
{
    const tensor_object *w = tensor_cast(like);
    if (w == NULL)
        return PyErr_Format(PyExc_TypeError, "expected a Tensor");
    td_error_clear();
    td_tensor *x = td_trace_input(td_shape_of(w->handle),
                                  td_dtype_of(w->handle),
                                  td_device_of(w->handle));
    return x ? wrap(PyModule_GetState(module), x) : fail();
}
PyObject *py_program_fits(PyObject *module, PyObject *args)
{
    PyObject *capsule, *inputs;
    if (!PyArg_ParseTuple(args, "OO:program_fits", &capsule, &inputs))
        return NULL;
    const td_program *p = PyCapsule_GetPointer(capsule, PROGRAM);
    if (p == NULL || inputs == Py_None)
        return p ? PyBool_FromLong(td_program_holds(p)) : NULL;
    handles x = { 0, NULL };
    td_error_clear();
    const bool taken = PyTuple_Check(inputs)
                    && take_handles(inputs, false, &x);
    const bool shared = taken && td_program_overlaps(p, x.at, x.n);
    drop_handles(&x);
    return !taken || td_failed() ? fail() : PyBool_FromLong(!shared);
}
PyObject *py_trace_end(PyObject *module, PyObject *outputs)
{
    td_error_clear();
    if (outputs == Py_None) {
        td_release(td_trace_end(NULL, 0));
        td_error_clear();
        Py_RETURN_NONE;
    }
    handles x = { 0, NULL };
    td_program *p = NULL;
    if (!PyTuple_Check(outputs))
        PyErr_SetString(PyExc_TypeError, "expected a tuple of Tensors");
    else if (take_handles(outputs, false, &x))
        p = td_trace_end(x.at, x.n);
    drop_handles(&x);
    if (p == NULL)
        return PyErr_Occurred() ? NULL : fail();
    return PyCapsule_New(p, PROGRAM, release_held);
}
PyObject *py_program_text(PyObject *module, PyObject *capsule)
{
    const td_program *p = PyCapsule_GetPointer(capsule, PROGRAM);
    if (p == NULL)
        return NULL;
    const int64_t n = td_program_print(p, NULL, 0);
    PyObject *text = NULL;
    char *room = PyMem_Malloc((size_t)n + 1);
    if (room == NULL)
        return PyErr_NoMemory();
    td_program_print(p, room, n + 1);
    text = PyUnicode_FromStringAndSize(room, (Py_ssize_t)n);
    PyMem_Free(room);
    return text;
}

/* jit: functions that compile */
PyObject *py_compile(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    td_compile_options options = { NULL };
    if (!PyArg_ParseTuple(args, "Oz:compile", &capsule,
                          &options.backend))
        return NULL;
    td_program *p = PyCapsule_GetPointer(capsule, PROGRAM);
    td_executable *e = NULL;
    if (p == NULL)
        return NULL;
    td_error_clear();
    leave_python();
    e = td_compile(p, options);
    enter_python();
    if (e == NULL)
        return fail();
    PyObject *box = PyCapsule_New(e, EXECUTABLE, release_held);
    return box == NULL ? NULL
         : Py_BuildValue("Nss", box, td_executable_backend(e),
                         td_executable_note(e));
}

PyObject *py_execute(PyObject *module, PyObject *args)
{
    PyObject *capsule, *inputs;
    int n;
    if (!PyArg_ParseTuple(args, "OO!i:execute", &capsule, &PyTuple_Type,
                          &inputs, &n))
        return NULL;
    td_executable *e = PyCapsule_GetPointer(capsule, EXECUTABLE);
    handles x = { 0, NULL };
    td_tensor **y = e ? PyMem_Calloc((size_t)n + 1, sizeof *y) : NULL;
    bool good = false;
    td_error_clear();
    if (y != NULL && take_handles(inputs, false, &x)) {
        leave_python();
        good = td_execute(e, x.at, x.n, y);
        enter_python();
    }
    PyObject *result = good
        ? wrap_many(PyModule_GetState(module), y, n)
        : PyErr_Occurred() ? NULL : fail();
    drop_handles(&x);
    PyMem_Free(y);
    return result;
}
