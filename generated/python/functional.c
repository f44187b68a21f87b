/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "functional": edit that, not this file. */
#include "glue.h"

/* functional: function py_leads_beyond */
/* _leads_beyond(outputs, inputs) -> bool */
PyObject *py_leads_beyond(PyObject *module, PyObject *args)
{
    PyObject *outs, *ins;
    if (!PyArg_ParseTuple(args, "O!O!:leads_beyond", &PyTuple_Type,
                          &outs, &PyTuple_Type, &ins))
        return NULL;
    handles y = { 0, NULL }, x = { 0, NULL };
    bool good = take_handles(outs, false, &y)
             && take_handles(ins, false, &x), beyond = false;
    if (good) {
        td_error_clear();
        beyond = td_leads_beyond(y.at, y.n, x.at, x.n);
        good = !td_failed();
    }
    drop_handles(&y);
    drop_handles(&x);
    return good ? PyBool_FromLong(beyond)
                : PyErr_Occurred() ? NULL : fail();
}
