/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "files": edit that, not this file. */
/* needs: extension */
#include "glue.h"
#define TABLE "treadle.csv"

static PyObject *texts_of(const td_csv *t, int64_t row, int64_t column,
                          int64_t n, int64_t down)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; i < n && !PyErr_Occurred(); i++)
        PyList_SET_ITEM(list, (Py_ssize_t)i, PyUnicode_FromString(
            td_csv_text(t, row + i * down, column + i * !down)));
    return complete(list);
}

/* _csv_read(path, delimiter) -> (table, texts of row 0) */
ENTRANCE(csv_read, args)
{
    PyObject *path;
    char delimiter;
    UNPACK(args, "O&c:csv_read", PyUnicode_FSConverter, &path,
           &delimiter);
    leave_python();
    const td_suspended trace = td_trace_suspend();
    td_csv *t = td_csv_read(PyBytes_AS_STRING(path), delimiter);
    td_trace_resume(trace);
    enter_python();
    Py_DECREF(path);
    PyObject *table = box(t, TABLE);
    return table == NULL ? NULL : Py_BuildValue("NN", table,
        texts_of(t, 0, 0, td_csv_columns(t), 0));
}

/* _csv_column(table, column, first row, dtype, str or None, fill) */
ENTRANCE(csv_column, args)
{
    PyObject *table, *type, *fill;
    long long column, from;
    UNPACK(args, "OLLOO:csv_column", &table, &column, &from, &type,
           &fill);
    const td_csv *t = PyCapsule_GetPointer(table, TABLE);
    const double missing = fill == Py_None ? NAN
                         : PyFloat_AsDouble(fill);
    if (t == NULL || PyErr_Occurred())
        return NULL;
    if (!td_csv_text(t, 0, column) || from < 0 || from > td_csv_rows(t))
        return PyErr_Format(PyExc_IndexError, "read_csv: no column "
                            "%lld from row %lld on", column, from);
    const td_dtype dtype = type == Py_None
        ? td_csv_dtype(t, column, from) : dtype_of(g, type);
    if (!dtype && type != Py_None
        && type != (PyObject *)&PyUnicode_Type)
        return PyErr_Format(PyExc_TypeError, "read_csv: %R is no "
                            "dtype, str or None", type);
    if (dtype == TD_DTYPE_NONE)
        return texts_of(t, from, column, td_csv_rows(t) - from, 1);
    const td_suspended trace = td_trace_suspend();
    td_tensor *x = td_csv_column(t, column, from, dtype, missing);
    td_trace_resume(trace);
    return wrap(g, x);
}
