/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "jit": edit that, not this file. */
#include "glue.h"

/* jit: names of capsules */
#define PROGRAM "treadle.program"
#define EXECUTABLE "treadle.executable"

/* jit: functions that trace */
PyObject *py_trace_begin(PyObject *module, PyObject *symbolic)
{
    td_error_clear();
    return done(td_trace_begin(PyObject_IsTrue(symbolic) == 1));
}

PyObject *py_trace_input(PyObject *module, PyObject *like)
{
    const tensor_object *w = tensor_cast(like);
    if (w == NULL)
        return PyErr_Format(PyExc_TypeError, "expected a Tensor");
    td_error_clear();
    return wrap(PyModule_GetState(module),
                td_trace_input(td_shape_of(w->handle),
                               td_dtype_of(w->handle),
                               td_device_of(w->handle)));
}
PyObject *py_program_fits(PyObject *module, PyObject *args)
{
    PyObject *capsule, *inputs;
    if (!PyArg_ParseTuple(args, "OO:program_fits", &capsule, &inputs))
        return NULL;
    const td_program *p = PyCapsule_GetPointer(capsule, PROGRAM);
    if (p == NULL || inputs == Py_None)
        return p ? PyBool_FromLong(td_program_holds(p)) : NULL;
    handles x;
    if (!all_tensors(inputs, &x))
        return NULL;
    td_error_clear();
    const bool shared = td_program_overlaps(p, x.at, x.n);
    drop_handles(&x);
    return td_failed() ? fail() : PyBool_FromLong(!shared);
}
PyObject *py_trace_end(PyObject *module, PyObject *outputs)
{
    td_error_clear();
    if (outputs == Py_None) {
        td_release(td_trace_end(NULL, 0));
        td_error_clear();
        Py_RETURN_NONE;
    }
    handles x;
    if (!all_tensors(outputs, &x))
        return NULL;
    td_program *p = td_trace_end(x.at, x.n);
    drop_handles(&x);
    return box(p, PROGRAM);
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
    PyObject *made = box(e, EXECUTABLE);
    return made == NULL ? NULL
         : Py_BuildValue("Nss", made, td_executable_backend(e),
                         td_executable_note(e));
}
PyObject *py_execute(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    handles x;
    int n;
    if (!PyArg_ParseTuple(args, "OO&i:execute", &capsule, all_tensors,
                          &x, &n))
        return NULL;
    td_executable *e = PyCapsule_GetPointer(capsule, EXECUTABLE);
    td_tensor **y = e ? PyMem_Calloc((size_t)n + 1, sizeof *y) : NULL;
    bool good = false;
    td_error_clear();
    if (y != NULL) {
        leave_python();
        good = td_execute(e, x.at, x.n, y);
        enter_python();
    }
    PyObject *result = good
        ? wrap_many(PyModule_GetState(module), y, n) : fail();
    drop_handles(&x);
    PyMem_Free(y);
    return result;
}
