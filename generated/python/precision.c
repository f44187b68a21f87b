/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "precision": edit that, not this file. */
/* The extension's part of autocast. */
#include <treadle/precision.h>
#include "glue.h"

/* _autocast([dtype or None]) -> what it was before */
PyObject *py_autocast(glue *g, PyObject *args)
{
    const td_dtype was = td_autocast_dtype();
    PyObject *now = NULL;
    if (!PyArg_ParseTuple(args, "|O:autocast", &now))
        return NULL;
    if (now && !td_set_autocast(now == Py_None ? TD_DTYPE_NONE
                                               : dtype_of(g, now)))
        return fail();
    return Py_NewRef(was ? g->dtypes[was] : Py_None);
}
