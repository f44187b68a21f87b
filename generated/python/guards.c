/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "layers": edit that, not this file. */
#include "glue.h"

PyObject *py_addresses(PyObject *module, PyObject *dicts)
{
    PyObject *found = PyList_New(0), *value;
    for (int i = 0; i < PyTuple_GET_SIZE(dicts); i++)
        for (Py_ssize_t at = 0; found && PyDict_Next(
                 PyTuple_GET_ITEM(dicts, i), &at, NULL, &value);) {
            PyObject *address = PyLong_FromVoidPtr(value);
            if (!address || PyList_Append(found, address) < 0)
                Py_CLEAR(found);
            Py_XDECREF(address);
        }
    return found;
}
