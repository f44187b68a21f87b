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
static PyObject *write_list(PyObject *path, const td_to_save *list,
                            int n, const char *const *notes)
{
    PyObject *bytes;
    if (path == Py_None) {
        const int64_t room = td_safetensors_write(NULL, 0, list, n,
                                                  notes);
        bytes = room < 0 ? fail()
              : PyBytes_FromStringAndSize(NULL, room);
        if (bytes)
            td_safetensors_write(PyBytes_AS_STRING(bytes), room, list,
                                 n, notes);
        if (!td_failed())
            return bytes;
        Py_XDECREF(bytes);
        return fail();
    }
    if (!PyUnicode_FSConverter(path, &bytes))
        return NULL;
    leave_python();
    const bool good = td_safetensors_save(PyBytes_AS_STRING(bytes),
                                          list, n, notes);
    enter_python();
    Py_DECREF(bytes);
    return done(good);
}
/* saving-more: functions of saved tensors */
/* _safetensors_open(path or bytes, share)
   -> (file, {name: (type, shape)}, metadata or None) */
PyObject *py_safetensors_open(glue *g, PyObject *args)
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
PyObject *py_safetensors_get(glue *g, PyObject *args)
{
    PyObject *file;
    const char *name;
    if (!PyArg_ParseTuple(args, "Os:get_tensor", &file, &name))
        return NULL;
    const td_suspended trace = td_trace_suspend();
    td_tensor *x = td_safetensors_get(
        PyCapsule_GetPointer(file, SAFETENSORS), name);
    td_trace_resume(trace);
    return wrap(g, x);
}
static const char *plain_text(PyObject *object)
{
    Py_ssize_t n;
    const bool is = PyUnicode_Check(object);
    const char *text = is ? PyUnicode_AsUTF8AndSize(object, &n) : NULL;
    if (!is)
        PyErr_Format(PyExc_TypeError, "save: %R is not a str", object);
    if (text == NULL || strlen(text) == (size_t)n)
        return text;
    PyErr_SetString(PyExc_ValueError, "save: a name has a zero byte");
    return NULL;
}
/* _safetensors_save(path or None, tensors, metadata or None)
   -> None, or bytes */
PyObject *py_safetensors_save(glue *g, PyObject *args)
{
    PyObject *path, *given, *metadata, *key, *value, *made = NULL;
    if (!PyArg_ParseTuple(args, "OO!O:save", &path, &PyDict_Type,
                          &given, &metadata))
        return NULL;
    const bool notes = metadata != Py_None;
    if (notes && !PyDict_Check(metadata))
        return PyErr_Format(PyExc_TypeError, "save: expected a dict as "
                            "metadata");
    const Py_ssize_t n = PyDict_Size(given);
    const Py_ssize_t m = notes ? PyDict_Size(metadata) : 0;
    td_to_save *list = PyMem_Calloc((size_t)n + 1, sizeof *list);
    const char **words = PyMem_Calloc(2 * (size_t)m + 1, sizeof *words);
    bool good = list && words;
    Py_ssize_t at = 0;
    for (td_to_save *t = list; good
         && PyDict_Next(given, &at, &key, &value); t++)
        good = (t->name = plain_text(key)) != NULL
            && (tensor_cast(value) || PyErr_Format(PyExc_ValueError,
                "save: '%s' is invalid, expected a Tensor, got %s",
                t->name, Py_TYPE(value)->tp_name))
            && (t->tensor = handle_of(value)) != NULL;
    at = 0;
    for (const char **w = words; good && notes
         && PyDict_Next(metadata, &at, &key, &value); w += 2)
        good = (w[0] = plain_text(key)) != NULL
            && (w[1] = plain_text(value)) != NULL;
    if (good)
        made = write_list(path, list, (int)n, notes ? words : NULL);
    else if (!PyErr_Occurred())
        PyErr_NoMemory();
    PyMem_Free(list);
    PyMem_Free(words);
    return made;
}
