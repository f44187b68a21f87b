/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "saving-more": edit that, not this file. */
#include "glue.h"
#define SAFETENSORS "treadle.safetensors"
/* saving-more: functions that write lists */
static void put_item(PyObject *dict, const char *name, PyObject *value)
{
    if (value != NULL)
        PyDict_SetItemString(dict, name, value);
    Py_XDECREF(value);
}
/* saving-more: functions of saved tensors */
/* _safetensors_open(path or bytes, share)
   -> (file, {name: (type, shape)}, metadata or None) */
ENTRANCE(safetensors_open, args)
{
    PyObject *source, *path = NULL;
    int share;
    if (!PyArg_ParseTuple(args, "Op:safe_open", &source, &share)
        || (!PyBytes_Check(source)
            && !PyUnicode_FSConverter(source, &path)))
        return NULL;
    td_safetensors *f = path
        ? td_safetensors_open(PyBytes_AS_STRING(path), share)
        : td_safetensors_over(PyBytes_AS_STRING(source),
                              PyBytes_GET_SIZE(source));
    Py_XDECREF(path);
    PyObject *file = box(f, SAFETENSORS);
    PyObject *index = file ? PyDict_New() : NULL;
    PyObject *notes = index ? PyDict_New() : NULL;
    /* saving-more: list the tensors and the metadata */
    const td_saved_tensor *t;
    const char *name, *text;
    for (int i = 0; notes && (t = td_safetensors_at(f, i)); i++)
        put_item(index, t->name, Py_BuildValue("sN", t->type,
            new_size(g, t->shape.at, t->shape.count)));
    for (int i = 0; notes && (text = td_safetensors_note(f, i, &name)); i++)
        put_item(notes, name, PyUnicode_FromString(text));
    return Py_BuildValue("NNN", file, index, complete(notes));
}
/* _safetensors_get(file, name) -> tensor */
ENTRANCE(safetensors_get, args)
{
    PyObject *file;
    const char *name;
    UNPACK(args, "Os:get_tensor", &file, &name);
    const td_suspended trace = td_trace_suspend();
    td_tensor *x = td_safetensors_get(
        PyCapsule_GetPointer(file, SAFETENSORS), name);
    td_trace_resume(trace);
    return wrap(g, x);
}

/* For O&: the UTF-8 of the strings of a tuple, and NULL. */
int all_texts(PyObject *tuple, void *out)
{
    const Py_ssize_t n = PyTuple_Check(tuple) ? PyTuple_GET_SIZE(tuple)
                                              : 0;
    const char **at = PyMem_Calloc((size_t)n + 1, sizeof *at);
    if (at == NULL)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n && !PyErr_Occurred(); i++) {
        /* saving-more: read a text of the tuple */
        PyObject *item = PyTuple_GET_ITEM(tuple, i);
        Py_ssize_t length = 0;
        at[i] = PyUnicode_Check(item)
            ? PyUnicode_AsUTF8AndSize(item, &length) : NULL;
        if (!PyErr_Occurred() && (!at[i] || strlen(at[i]) != (size_t)length))
            PyErr_Format(at[i] ? PyExc_ValueError : PyExc_TypeError, at[i]
                         ? "the name or note %R has a zero byte"
                         : "the name or note %R is not a str", item);
    }
    *(const char ***)out = at;
    if (!PyErr_Occurred())
        return 1;
    PyMem_Free(at);
    return 0;
}

/* _safetensors_save(path or None, tensors, texts) -> None or bytes */
ENTRANCE(safetensors_save, args)
{
    PyObject *path, *bytes, *made = NULL;
    handles x;
    const char **texts;
    UNPACK(args, "OO&O&:save", &path, all_tensors, &x, all_texts,
           &texts);
    td_to_save *list = PyMem_Calloc((size_t)x.n + 1, sizeof *list);
    int n = 0;
    for (; list && n < x.n && texts[n]; n++)
        list[n] = (td_to_save){ texts[n], x.at[n] };
    const char **notes = texts[n] ? texts + n : NULL;
    if (list == NULL)
        PyErr_NoMemory();
    /* saving-more: write the list to memory or to a file */
    if (list && path == Py_None) {
        const int64_t room = td_safetensors_write(NULL, 0, list, n, notes);
        made = room < 0 ? fail() : PyBytes_FromStringAndSize(NULL, room);
        if (made)
            td_safetensors_write(PyBytes_AS_STRING(made), room, list, n,
                                 notes);
        if (td_failed())
            Py_XSETREF(made, fail());
    } else if (list && PyUnicode_FSConverter(path, &bytes)) {
        leave_python();
        const bool good = td_safetensors_save(PyBytes_AS_STRING(bytes),
                                              list, n, notes);
        enter_python();
        Py_DECREF(bytes);
        made = done(good);
    }
    PyMem_Free(list);
    PyMem_Free(texts);
    drop_handles(&x);
    return made;
}
