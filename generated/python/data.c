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
/* values: function read_leaf */
static bool read_leaf(builder *b, PyObject *data, int depth)
{
    /* values: make a number of the leaf */
    td_value read;
    tensor_object *w = tensor_cast(data);
    if (w != NULL) {
        read.as.scalar = td_item(w->handle);
        if (td_failed())
            return fail();
    } else if (!to_scalar(data, &read)) {
        if (PyErr_Occurred()
            && PyErr_ExceptionMatches(PyExc_OverflowError))
            PyErr_SetString(PyExc_OverflowError, "tensor(): argument 'data'"
                            " holds an integer beyond 64 bits");
        else if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "tensor: cannot make a number of "
                         "%.100s", Py_TYPE(data)->tp_name);
        return false;
    }
    const td_scalar value = read.as.scalar;
    if (depth != b->shape.count)
        return PyErr_Format(PyExc_ValueError, "tensor: expected a "
            "sequence of length %lld at depth %d, got a number",
            (long long)b->shape.at[depth], depth);
    if (b->at == NULL) {
        if (value.kind > b->kind)
            b->kind = value.kind;
        return true;
    }
    /* values: write the element to its place */
    if (!td_scalar_fits(value, b->wanted))
        return PyErr_Format(PyExc_RuntimeError, "tensor: %S does not "
                            "fit %s", data, td_dtype_name(b->wanted));
    if (b->kind == TD_SCALAR_FLOAT)
        b->at->real = td_scalar_double(value);
    else
        b->at->whole = td_scalar_int(value);
    b->at++;
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
static td_tensor *from_sequence(builder *b, PyObject *data,
                                td_dtype *dtype)
{
    if (*dtype == TD_DTYPE_NONE)
        *dtype = b->kind == TD_SCALAR_BOOL ? TD_BOOL
               : b->kind == TD_SCALAR_INT ? TD_INT64
               : td_default_dtype();
    td_tensor *wide = td_empty(b->shape,
        TD_OF(b->kind == TD_SCALAR_FLOAT ? TD_FLOAT64 : TD_INT64));
    if (wide == NULL)
        return NULL;
    b->at = td_data(wide), b->wanted = *dtype;
    if (read_nested(b, data, 0))
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
    format += *format && strchr("@=<", *format);
    if (strcmp(format, "l") == 0)
        format = size == 8 ? letter[TD_INT64] : letter[TD_INT32];
    for (int t = 1; t < TD_DTYPE_COUNT; t++)
        if (*format && strcmp(letter[t], format) == 0)
            return (td_dtype)t;
    return TD_DTYPE_NONE;
}
/* values: function borrow_buffer */
static td_tensor *borrow_buffer(const char *op, PyObject *data,
                                bool copied)
{
    PyObject *view = PyMemoryView_FromObject(data);
    if (view == NULL)
        return NULL;
    const Py_buffer *b = PyMemoryView_GET_BUFFER(view);
    td_foreign m = { .data = b->buf, .unit = 1,
        .dtype = dtype_of_format(b->format, b->itemsize) };
    if (m.dtype == TD_DTYPE_NONE || b->suboffsets)
        PyErr_Format(PyExc_TypeError, "buffers of type '%s' cannot "
                     "become a tensor", b->format);
    else if (b->ndim > TD_MAX_RANK)
        PyErr_Format(PyExc_ValueError, "buffers of %d dimensions are "
                     "not supported, at most 8 are", b->ndim);
    else if (b->readonly && !copied)
        PyErr_Format(PyExc_ValueError, "%s: the array is read-only; "
                     "copy it by tensor()", op);
    /* values: share or copy what the view shows */
    td_tensor *x = NULL;
    if (!PyErr_Occurred()) {
        m.shape.count = m.strides.count = b->ndim;
        for (int d = 0; d < b->ndim; d++) {
            m.shape.at[d] = b->shape[d];
            m.strides.at[d] = b->strides[d];
        }
        x = td_borrow(op, m, (td_opt_bool){ true, copied }, drop_object,
                      view);
    }
    if (x == NULL) {
        fail();
        drop_object(view);
    }
    return x;
}
/* values: function from_numpy */
ENTRANCE(from_numpy, data)
{
    return wrap(g, borrow_buffer("from_numpy", data, false));
}
/* values: function new_tensor */
/* A new reference to a tensor made of `data`; NULL raises. */
td_tensor *new_tensor(glue *g, PyObject *data, td_dtype dtype)
{
    /* values: ask about what other libraries make */
    const bool known = tensor_cast(data) || PyObject_CheckBuffer(data)
        || PyList_Check(data) || PyTuple_Check(data)
        || PyLong_Check(data) || PyFloat_Check(data);
    PyObject *own = known ? Py_NewRef(data)
        : PyObject_CallMethod((PyObject *)g->tensor, "_of_others", "O",
                              data);
    if (own == NULL)
        return NULL;
    tensor_object *w = tensor_cast(own);
    td_tensor *read, *x;
    if (w != NULL) {
        read = td_detach(w->handle);
        x = dtype == TD_DTYPE_NONE || dtype == td_dtype_of(read)
          ? td_clone(read) : td_to(read, dtype);
    } else {
        builder b = { .kind = TD_SCALAR_NONE };
        const bool list = !PyObject_CheckBuffer(own)
                       || PyBytes_Check(own);
        const bool fits = !list || read_nested(&b, own, 0);
        const td_suspended trace = td_trace_suspend();
        read = !fits ? NULL : list ? from_sequence(&b, own, &dtype)
             : borrow_buffer("tensor", own, true);
        x = td_to(read, dtype ? dtype : td_dtype_of(read));
        td_trace_resume(trace);
    }
    td_release(read);
    Py_DECREF(own);
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
/* values: function tensor_releasebuffer */
static void tensor_releasebuffer(PyObject *self, Py_buffer *view)
{
    exported *e = view->internal;
    td_release(e->alias);
    PyMem_Free(e);
}
/* values: function tensor_getbuffer */
static int tensor_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    td_tensor *x = handle_of(self);
    const char *format = letter[td_dtype_of(x)];
    view->obj = NULL;
    if ((flags & PyBUF_FULL_RO) != PyBUF_FULL_RO) {
        /* values: lend what a memoryview lends */
        PyObject *all = PyMemoryView_FromObject(self);
        const int answer = all ? PyObject_GetBuffer(all, view, flags) : -1;
        if (all && answer < 0)
            PyErr_SetString(PyExc_BufferError, "the tensor is strided; "
                            "use x.contiguous()");
        Py_XDECREF(all);
        return answer;
    }
    const bool here = td_device_of(x).kind == TD_DEVICE_CPU
                   && td_data(x) != NULL;
    if (td_requires_grad(x) || !*format || !here) {
        PyErr_SetString(PyExc_BufferError, !here
            ? "the elements are not on the CPU; use x.cpu()" : *format
            ? "a tensor that requires grad exports no buffer; "
              "use x.detach()" : "bfloat16 has no buffer format");
        return -1;
    }
    /* values: describe the memory in bytes */
    const Py_ssize_t size = (Py_ssize_t)td_dtype_size(td_dtype_of(x));
    exported *e = PyMem_Malloc(sizeof *e);
    td_error_clear();
    if (e == NULL || (e->alias = td_detach(x)) == NULL) {
        PyMem_Free(e);
        PyErr_SetString(PyExc_BufferError, "no memory for a view");
        td_error_clear();
        return -1;
    }
    for (int i = 0; i < td_rank(x); i++) {
        e->shape[i] = (Py_ssize_t)td_size(x, i);
        e->strides[i] = (Py_ssize_t)td_strides(x)[i] * size;
    }
    *view = (Py_buffer){ .buf = td_data(x), .internal = e,
        .itemsize = size,
        .format = (char *)(uintptr_t)format, .ndim = td_rank(x),
        .shape = e->shape, .strides = e->strides };
    view->len = (Py_ssize_t)td_numel(x) * size;
    view->obj = Py_NewRef(self);
    return 0;
}
const PyType_Slot buffer_slots[] = {
    { Py_bf_getbuffer, tensor_getbuffer },
    { Py_bf_releasebuffer, tensor_releasebuffer },
    { 0 },
};
