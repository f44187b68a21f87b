/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "binder": edit that, not this file. */
#include "glue.h"
/* binder: function to_operand */
/* `made` is set to a tensor to be released, or NULL. */
static bool to_operand(glue *g, PyObject *object, td_value *out,
                       td_tensor **made)
{
    tensor_object *w = tensor_cast(object);
    *made = NULL;
    if (w == NULL && (PyLong_Check(object) || PyFloat_Check(object)
                      || !PyObject_HasAttrString(object, "__array__")))
        return to_scalar(object, out);
    out->kind = TD_TENSOR;
    out->as.tensor = w ? w->handle
        : (*made = new_tensor(g, object, TD_DTYPE_NONE));
    return out->as.tensor != NULL;
}
/* binder: function run_slot */
/* Runs the operator of `slot` on `n` Python operands. */
static PyObject *run_slot(int slot, PyObject *a, PyObject *b, int n)
{
    tensor_object *w = tensor_cast(a);
    tensor_object *tensor = w ? w : tensor_cast(b);
    glue *g = tensor->glue;
    const td_op *op = g->slot[slot];
    td_value in[2];
    td_tensor *left = NULL, *right = NULL;
    PyObject *result = NULL;
    td_error_clear();
    if (op == NULL || !to_operand(g, a, &in[0], &left)
        || (n == 2 && !to_operand(g, b, &in[1], &right))) {
        td_release(left);
        if (PyErr_Occurred() || td_failed())
            return fail();
        Py_RETURN_NOTIMPLEMENTED;
    }
    if (in[0].kind == TD_SCALAR) {
        /* binder: make a tensor of the number on the left */
        const td_scalar scalar = in[0].as.scalar;
        td_dtype type = td_dtype_of(tensor->handle);
        if (scalar.kind == TD_SCALAR_FLOAT && !td_dtype_is_floating(type))
            type = td_default_dtype();
        else if (scalar.kind == TD_SCALAR_INT && type == TD_BOOL)
            type = TD_INT64;
        left = td_full(TD_RANK_0, scalar, TD_OF(type));
        in[0] = (td_value){ .kind = TD_TENSOR, .as.tensor = left };
    }
    td_call call = { .op = op, .n_in = n, .in = in };
    if (in[0].as.tensor != NULL)
        result = run_call(g, &call, td_numel(tensor->handle));
    td_release(left);
    td_release(right);
    return result != NULL ? result : fail();
}
/* binder: functions of the number slots */
#define SLOT_FUNCTION(name) \
    static PyObject *slot_##name(PyObject *a, PyObject *b) \
    { return run_slot(SLOT_##name, a, b, 2); }
#define BINARY_SLOT(name, slot) \
    SLOT_FUNCTION(name) SLOT_FUNCTION(name##_)
#define UNARY_SLOT(name, slot) \
    static PyObject *slot_##name(PyObject *a) \
    { return run_slot(SLOT_##name, a, a, 1); }
BINARY_SLOTS(BINARY_SLOT)
UNARY_SLOTS(UNARY_SLOT)
#define POWER_SLOT(name) \
    static PyObject *slot_##name(PyObject *a, PyObject *b, \
                                 PyObject *modulus) \
    { \
        if (modulus != Py_None) \
            Py_RETURN_NOTIMPLEMENTED; \
        return run_slot(SLOT_##name, a, b, 2); \
    }
POWER_SLOT(pow)
POWER_SLOT(pow_)

static PyObject *tensor_compare(PyObject *a, PyObject *b, int how)
{
    return run_slot(SLOT_lt + how, a, b, 2);
}

static Py_hash_t tensor_hash(PyObject *self)
{
    return _Py_HashPointer(self);
}
/* binder: conversions of one element */
PyObject *tensor_item(PyObject *self, PyObject *unused)
{
    td_error_clear();
    const td_scalar s = td_item(handle_of(self));
    if (td_failed())
        return fail();
    return s.kind == TD_SCALAR_BOOL ? PyBool_FromLong(s.as.b)
         : s.kind == TD_SCALAR_INT ? PyLong_FromLongLong(s.as.i)
         : PyFloat_FromDouble(s.as.f);
}

static PyObject *convert_item(PyObject *self, unaryfunc to)
{
    PyObject *item = tensor_item(self, NULL);
    PyObject *result = item ? to(item) : NULL;
    Py_XDECREF(item);
    return result;
}

static PyObject *slot_float(PyObject *self)
{
    return convert_item(self, PyNumber_Float);
}

static PyObject *slot_int(PyObject *self)
{
    return convert_item(self, PyNumber_Long);
}
static PyObject *slot_index(PyObject *self)
{
    if (!is_integer(self))
        return PyErr_Format(PyExc_TypeError, "only a tensor with one "
                            "integer element can be used as an index");
    return convert_item(self, PyNumber_Index);
}

static int slot_bool(PyObject *self)
{
    if (td_numel(handle_of(self)) != 1) {
        PyErr_Format(PyExc_RuntimeError, "truth value of a tensor with "
                     "%lld elements is ambiguous; use any() or all()",
                     (long long)td_numel(handle_of(self)));
        return -1;
    }
    PyObject *item = tensor_item(self, NULL);
    const int truth = item ? PyObject_IsTrue(item) : -1;
    Py_XDECREF(item);
    return truth;
}
const PyType_Slot number_slots[] = {
    /* binder: number slots of the tensor type */
    #define BINARY_ROWS(name, slot) \
        { Py_nb_##slot, slot_##name }, \
        { Py_nb_inplace_##slot, slot_##name##_ },
    #define UNARY_ROW(name, slot) { Py_nb_##slot, slot_##name },
    BINARY_SLOTS(BINARY_ROWS)
    UNARY_SLOTS(UNARY_ROW)
    BINARY_ROWS(pow, power)
    { Py_nb_positive, PyObject_SelfIter }, { Py_nb_bool, slot_bool },
    { Py_nb_float, slot_float }, { Py_nb_int, slot_int },
    { Py_nb_index, slot_index },
    { Py_tp_hash, tensor_hash }, { Py_tp_richcompare, tensor_compare },
    { 0 },
};
