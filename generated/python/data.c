/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "values": edit that, not this file. */
#include "glue.h"
/* values: struct builder */
typedef struct {
    td_dims shape;
    td_scalar_kind kind;        /* the widest leaf so far */
    td_dtype wanted;            /* second pass: of the result */
    union { int64_t whole; double real; } *at;  /* the next element */
} builder;
/* values: struct exported */
typedef struct {
    td_tensor *alias;
    Py_ssize_t shape[TD_MAX_RANK], strides[TD_MAX_RANK];
} exported;
/* values: function is_sequence */
static bool is_sequence(PyObject *object)
{
    if (PyList_Check(object) || PyTuple_Check(object))
        return true;
    if (!PySequence_Check(object) || PyUnicode_Check(object)
        || PyBytes_Check(object) || tensor_cast(object))
        return false;
    const bool has_length = PySequence_Size(object) >= 0;
    if (!has_length)
        PyErr_Clear();
    return has_length || !PyObject_CheckBuffer(object);
}
/* values: function leaf_value */
static bool leaf_value(PyObject *data, td_scalar *out)
{
    td_value value;
    tensor_object *w = tensor_cast(data);
    if (w != NULL) {
        *out = td_item(w->handle);
        if (td_failed())
            fail();
        return !PyErr_Occurred();
    }
    if (to_scalar(data, &value)) {
        *out = value.as.scalar;
        return true;
    }
    if (PyErr_Occurred()
        && PyErr_ExceptionMatches(PyExc_OverflowError))
        PyErr_SetString(PyExc_OverflowError, "tensor(): argument 'data'"
                        " holds an integer beyond 64 bits");
    else if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "tensor: cannot make a number of "
                     "%.100s", Py_TYPE(data)->tp_name);
    return false;
}
/* values: function write_element */
static bool write_element(builder *b, PyObject *data, td_scalar s)
{
    if (!td_scalar_fits(s, b->wanted))
        return PyErr_Format(PyExc_RuntimeError, "tensor: %S does not "
                            "fit %s", data, td_dtype_name(b->wanted));
    if (b->kind == TD_SCALAR_FLOAT)
        b->at->real = td_scalar_double(s);
    else
        b->at->whole = td_scalar_int(s);
    b->at++;
    return true;
}
/* values: function read_leaf */
static bool read_leaf(builder *b, PyObject *data, int depth)
{
    td_scalar value;
    if (!leaf_value(data, &value))
        return false;
    if (depth != b->shape.count)
        return PyErr_Format(PyExc_ValueError, "tensor: expected a "
            "sequence of length %lld at depth %d, got a number",
            (long long)b->shape.at[depth], depth);
    if (b->at != NULL)
        return write_element(b, data, value);
    if (value.kind > b->kind)
        b->kind = value.kind;
    return true;
}
/* values: function read_nested */
static bool read_nested(builder *b, PyObject *data, int depth)
{
    if (!is_sequence(data))
        return read_leaf(b, data, depth);
    if (depth == TD_MAX_RANK)
        return PyErr_Format(PyExc_ValueError, "tensor: nested deeper "
                            "than 8 lists");
    PyObject *items = PySequence_Tuple(data);
    if (items == NULL)
        return false;
    const Py_ssize_t n = PyTuple_GET_SIZE(items);
    bool good = true;
    if (depth == b->shape.count && b->kind == TD_SCALAR_NONE)
        b->shape.at[b->shape.count++] = n;
    else
        good = depth < b->shape.count && b->shape.at[depth] == n;
    if (!good)
        PyErr_Format(PyExc_ValueError, "tensor: expected a sequence of "
                     "length %lld at depth %d, got length %zd",
                     depth < b->shape.count
                     ? (long long)b->shape.at[depth] : 0, depth, n);
    for (Py_ssize_t i = 0; i < n && good; i++)
        good = read_nested(b, PyTuple_GET_ITEM(items, i), depth + 1);
    Py_DECREF(items);
    return good;
}
/* values: function from_sequence */
static td_tensor *from_sequence(PyObject *data, td_dtype *dtype)
{
    builder b = { .kind = TD_SCALAR_NONE };
    if (!read_nested(&b, data, 0))
        return NULL;
    if (*dtype == TD_DTYPE_NONE)
        *dtype = b.kind == TD_SCALAR_BOOL ? TD_BOOL
               : b.kind == TD_SCALAR_INT ? TD_INT64
               : td_default_dtype();
    td_tensor *wide = td_empty(b.shape,
        TD_OF(b.kind == TD_SCALAR_FLOAT ? TD_FLOAT64 : TD_INT64));
    if (wide == NULL)
        return NULL;
    b.at = td_data(wide), b.wanted = *dtype;
    if (read_nested(&b, data, 0))
        return wide;
    td_release(wide);
    return NULL;
}
/* values: function dtype_of_format */
/* By td_dtype: none, float32 and 64, int64 and 32, uint8, bool,
   float16, bfloat16 (which has none), int8 and 16. */
static const char letter[][2] = { "", "f", "d", "q", "i", "B", "?", "e",
                                  "", "b", "h" };

static td_dtype dtype_of_format(const char *format, Py_ssize_t size)
{
    if (format == NULL)
        return TD_UINT8;
    format += *format && strchr("@=<", *format);
    if (strcmp(format, "l") == 0)
        format = size == 8 ? letter[TD_INT64] : letter[TD_INT32];
    for (int t = 1; t < TD_DTYPE_COUNT; t++)
        if (*format && strcmp(letter[t], format) == 0)
            return (td_dtype)t;
    return TD_DTYPE_NONE;
}
/* values: function open_buffer */
static bool open_buffer(PyObject *data, Py_buffer *view, int flags,
                        td_foreign *m)
{
    if (PyObject_GetBuffer(data, view, flags) < 0)
        return false;
    *m = (td_foreign){ .data = view->buf, .unit = 1,
        .dtype = dtype_of_format(view->format, view->itemsize) };
    if (m->dtype == TD_DTYPE_NONE)
        PyErr_Format(PyExc_TypeError, "buffers of type '%s' cannot "
                     "become a tensor", view->format);
    else if (view->ndim > TD_MAX_RANK)
        PyErr_Format(PyExc_ValueError, "buffers of %d dimensions are "
                     "not supported, at most 8 are", view->ndim);
    else {
        for (; m->shape.count < view->ndim; m->shape.count++)
            m->shape.at[m->shape.count] = view->shape[m->shape.count];
        for (int d = 0; view->strides && d < view->ndim; d++)
            m->strides.at[m->strides.count++] = view->strides[d];
        return true;
    }
    PyBuffer_Release(view);
    return false;
}
/* values: function copy_buffer */
static td_tensor *copy_buffer(PyObject *data, td_dtype *dtype)
{
    Py_buffer view;
    td_foreign m;
    if (!open_buffer(data, &view, PyBUF_RECORDS_RO, &m))
        return NULL;
    td_tensor *x = td_borrow("tensor", m, (td_opt_bool){ true, true },
                             NULL, NULL);
    PyBuffer_Release(&view);
    if (*dtype == TD_DTYPE_NONE)
        *dtype = m.dtype;
    return x;
}
/* values: function share_buffer */
static void release_buffer(void *context)
{
    if (!python_lives())
        return;
    const errand e = begin_errand();
    PyBuffer_Release(context);
    PyMem_Free(context);
    end_errand(e);
}
PyObject *from_numpy(PyObject *module, PyObject *data)
{
    td_foreign m;
    Py_buffer *view = PyMem_Malloc(sizeof *view);
    td_error_clear();
    if (view == NULL)
        return PyErr_NoMemory();
    if (!open_buffer(data, view, PyBUF_RECORDS, &m)) {
        PyMem_Free(view);
        return NULL;
    }
    td_tensor *x = td_borrow("from_numpy", m, (td_opt_bool){ true },
                             release_buffer, view);
    PyObject *result = wrap(PyModule_GetState(module), x);
    if (x == NULL)
        release_buffer(view);
    return result;
}
/* values: function new_tensor */
/* A tensor for an array of another library, or data itself. */
static PyObject *of_others(glue *g, PyObject *data)
{
    PyObject *type = (PyObject *)g->tensor;
    if (tensor_cast(data) || PyObject_CheckBuffer(data)
        || PyList_Check(data) || PyTuple_Check(data)
        || PyLong_Check(data) || PyFloat_Check(data)
        || !PyObject_HasAttrString(type, "_of_others"))
        return Py_NewRef(data);
    PyObject *x = PyObject_CallMethod(type, "_of_others", "O", data);
    if (x != Py_None)
        return x;
    Py_DECREF(x);
    return Py_NewRef(data);
}

static td_tensor *tensor_of(PyObject *data, td_dtype dtype)
{
    tensor_object *w = tensor_cast(data);
    td_tensor *read, *x;
    if (w != NULL) {
        read = td_detach(w->handle);
        x = dtype == TD_DTYPE_NONE || dtype == td_dtype_of(read)
          ? td_clone(read) : td_to(read, dtype);
    } else {
        const td_suspended trace = td_trace_suspend();
        read = PyObject_CheckBuffer(data) && !PyBytes_Check(data)
             ? copy_buffer(data, &dtype) : from_sequence(data, &dtype);
        x = read ? td_to(read, dtype) : NULL;
        td_trace_resume(trace);
    }
    td_release(read);
    return x;
}

/* A new reference to a tensor made of `data`; NULL raises. */
td_tensor *new_tensor(glue *g, PyObject *data, td_dtype dtype)
{
    PyObject *own = of_others(g, data);
    td_tensor *x = own ? tensor_of(own, dtype) : NULL;
    Py_XDECREF(own);
    return x;
}
/* values: function py_tensor */
/* tensor(data, *, dtype=None, requires_grad=False, device=None) */
PyObject *py_tensor(PyObject *module, PyObject *args, PyObject *names)
{
    static char *keys[] = { "data", "dtype", "requires_grad", "device",
                            NULL };
    glue *g = PyModule_GetState(module);
    PyObject *data, *type = Py_None, *device = Py_None;
    int requires_grad = 0;
    if (!PyArg_ParseTupleAndKeywords(args, names, "O|$OpO:tensor", keys,
                                     &data, &type, &requires_grad,
                                     &device))
        return NULL;
    td_device place = { TD_DEVICE_CPU, 0 };
    const td_dtype dtype = type == Py_None ? TD_DTYPE_NONE
                                           : dtype_of(g, type);
    if ((device != Py_None && !parse_device(device, &place))
        || (type != Py_None && dtype == TD_DTYPE_NONE))
        return PyErr_Occurred() ? NULL
             : PyErr_Format(PyExc_TypeError, "tensor(): argument "
                            "'dtype' must be a treadle.dtype, not %s",
                            Py_TYPE(type)->tp_name);
    td_error_clear();
    td_tensor *made = new_tensor(g, data, dtype);
    td_tensor *x = td_to_device(made, place);
    td_release(made);
    return with_gradient(wrap(g, x), requires_grad);
}
/* values: function tensor_tolist */
PyObject *tensor_tolist(PyObject *self, PyObject *unused)
{
    td_error_clear();
    td_tensor *here = td_to_host(handle_of(self));
    td_tensor *plain = td_detach(here);
    td_tensor *x = td_to(plain, td_dtype_wide(td_dtype_of(plain)));
    td_release(here);
    td_release(plain);
    PyObject *own = wrap(glue_of(self), x);
    PyObject *view = own ? PyMemoryView_FromObject(own) : NULL;
    PyObject *list = view ? PyObject_CallMethod(view, "tolist", NULL)
                          : NULL;
    Py_XDECREF(view);
    Py_XDECREF(own);
    return list;
}
/* values: function fits_flags */
static bool fits_flags(Py_buffer *view, int flags)
{
    const bool c = PyBuffer_IsContiguous(view, 'C');
    const bool wrong =
        ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !c)
     || ((flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS && !c)
     || ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS
         && !PyBuffer_IsContiguous(view, 'F'))
     || ((flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS
         && !PyBuffer_IsContiguous(view, 'A'));
    if (wrong)
        PyErr_SetString(PyExc_BufferError, "the tensor is strided; "
                        "use x.contiguous()");
    if (!(flags & PyBUF_FORMAT))
        view->format = NULL;
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES)
        view->strides = NULL;
    if (!(flags & PyBUF_ND))
        view->shape = NULL;
    return !wrong;
}

void tensor_releasebuffer(PyObject *self, Py_buffer *view)
{
    exported *e = view->internal;
    td_release(e->alias);
    PyMem_Free(e);
}
/* values: function tensor_getbuffer */
static exported *new_export(td_tensor *x)
{
    exported *e = PyMem_Malloc(sizeof *e);
    td_error_clear();
    if (e == NULL || (e->alias = td_detach(x)) == NULL) {
        PyMem_Free(e);
        PyErr_SetString(PyExc_BufferError, "no memory for a view");
        td_error_clear();
        return NULL;
    }
    for (int i = 0; i < td_rank(x); i++) {
        e->shape[i] = (Py_ssize_t)td_size(x, i);
        e->strides[i] = (Py_ssize_t)td_strides(x)[i]
                      * (Py_ssize_t)td_dtype_size(td_dtype_of(x));
    }
    return e;
}
int tensor_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    td_tensor *x = handle_of(self);
    const char *format = letter[td_dtype_of(x)];
    view->obj = NULL;
    const bool here = td_device_of(x).kind == TD_DEVICE_CPU
                   && td_data(x) != NULL;
    if (td_requires_grad(x) || !*format || !here) {
        PyErr_SetString(PyExc_BufferError, !here
            ? "the elements are not on the CPU; use x.cpu()" : *format
            ? "a tensor that requires grad exports no buffer; "
              "use x.detach()" : "bfloat16 has no buffer format");
        return -1;
    }
    exported *e = new_export(x);
    if (e == NULL)
        return -1;
    *view = (Py_buffer){ .buf = td_data(x), .internal = e,
        .itemsize = (Py_ssize_t)td_dtype_size(td_dtype_of(x)),
        .format = (char *)(uintptr_t)format, .ndim = td_rank(x),
        .shape = e->shape, .strides = e->strides };
    view->len = (Py_ssize_t)td_numel(x) * view->itemsize;
    if (!fits_flags(view, flags)) {
        tensor_releasebuffer(self, view);
        return -1;
    }
    view->obj = Py_NewRef(self);
    return 0;
}
