/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "precision": edit that, not this file. */
/* The extension's part of autocast. */
#include "glue.h"

/* _autocast([dtype or None]) -> what it was before */
ENTRANCE(autocast, args)
{
    const td_dtype was = td_autocast_dtype();
    PyObject *now = NULL;
    UNPACK(args, "|O:autocast", &now);
    if (now && !td_set_autocast(now == Py_None ? TD_DTYPE_NONE
                                               : dtype_of(g, now)))
        return fail();
    return Py_NewRef(was ? g->dtypes[was] : Py_None);
}
