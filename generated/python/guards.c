/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "layers": edit that, not this file. */
#include "glue.h"

ENTRANCE(addresses, dict)
{
    if (!PyDict_Check(dict))
        return PyErr_Format(PyExc_TypeError, "expected a dict, not %s",
                            Py_TYPE(dict)->tp_name);
    PyObject *found = PyBytes_FromStringAndSize(
        NULL, PyDict_Size(dict) * (Py_ssize_t)sizeof(PyObject *));
    PyObject **to = found ? (void *)PyBytes_AS_STRING(found) : NULL;
    for (Py_ssize_t at = 0; to && PyDict_Next(dict, &at, NULL, to);)
        to++;
    return found;
}
