/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "layers": edit that, not this file. */
#include "glue.h"

PyObject *py_addresses(PyObject *module, PyObject *dict)
{
    PyObject *found = PyBytes_FromStringAndSize(
        NULL, PyDict_Size(dict) * (Py_ssize_t)sizeof(PyObject *));
    PyObject **to = found ? (void *)PyBytes_AS_STRING(found) : NULL;
    for (Py_ssize_t at = 0; to && PyDict_Next(dict, &at, NULL, to);)
        to++;
    return found;
}
