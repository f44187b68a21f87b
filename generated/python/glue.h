/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "extension": edit that, not this file. */
/* What the files of the extension _C share.

   A function that returns PyObject * or false has set an exception when
   it returns NULL or false.  Handles are td_tensor *, wrappers are
   tensor_object *; wrap() goes from the first to the second. */
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <treadle/treadle.h>
/* extension: supply what Python 3.9 lacks */
#if PY_VERSION_HEX < 0x030a0000
static inline PyObject *Py_NewRef(PyObject *object)
{
    Py_INCREF(object);
    return object;
}
#endif
PyObject *PyErr_Format(PyObject *, const char *, ...)
    __attribute__((cold));
/* binder: lists of number slots */
#define BINARY_SLOTS(S) \
    S(add, add) S(sub, subtract) S(mul, multiply) S(div, true_divide) \
    S(remainder, remainder) S(floor_divide, floor_divide) \
    S(matmul, matrix_multiply) S(bitwise_and, and) S(bitwise_or, or) \
    S(bitwise_xor, xor) S(bitwise_left_shift, lshift) \
    S(bitwise_right_shift, rshift)
#define UNARY_SLOTS(S) \
    S(neg, negative) S(abs, absolute) S(bitwise_not, invert)
#define COMPARE_SLOTS(S) S(lt) S(le) S(eq) S(ne) S(gt) S(ge)
#define ONE_SLOT(name, ...) SLOT_##name,
#define TWO_SLOTS(name, slot) SLOT_##name, SLOT_##name##_,
enum {
    BINARY_SLOTS(TWO_SLOTS) UNARY_SLOTS(ONE_SLOT)
    COMPARE_SLOTS(ONE_SLOT) TWO_SLOTS(pow, power) SLOT_COUNT
};
/* python: struct glue */
typedef struct glue {
    PyTypeObject *tensor, *operator, *dtype, *size;
    PyObject *dtypes[TD_DTYPE_COUNT];
    td_tensor *nothing;             /* an empty tensor in reserve */
    const td_op *slot[SLOT_COUNT];  /* operators behind + - * / ... */
} glue;
/* python: struct tensor_object */
typedef struct {
    PyObject_HEAD
    td_tensor *handle;
    struct glue *glue;              /* the state of our module */
    PyObject *dict, *weakrefs;
    PyObject *hooks;                /* {id: callable}, or NULL */
    bool owner;                     /* we own the handle, not it us */
} tensor_object;
/* binder: struct handles */
typedef struct {
    int n;
    td_tensor **at;
} handles;
/* python: struct errand */
typedef struct {
    int lock;
    PyObject *type, *value, *trace;
} errand;
/* extension: prototypes of the extension */
/* tensor.c */
void tensor_dealloc(PyObject *self);
void wake(tensor_object *w);
PyObject *wrap(glue *g, td_tensor *x);
PyObject *complete(PyObject *filled);
PyObject *wrap_many(glue *g, td_tensor *const *x, int n);
bool make_tensor_type(glue *g, PyObject *module);
/* module.c */
void leave_python(void);
void enter_python(void);
int take_lock(void);
void give_lock(int how);
int threads_away(void);
bool python_lives(void);
errand begin_errand(void);
void end_errand(errand e);
PyObject *fail(void);
PyObject *done(bool good);
PyObject *box(void *object, const char *name);
bool callback_failed(const char *operation);
td_tensor *a_tensor(PyObject *x, const char *operation);
/* binder.c */
bool is_integer(PyObject *object);
bool to_scalar(PyObject *given, td_value *out);
PyObject *hold_tensors(PyObject *items, bool none, handles *out);
void drop_handles(handles *h);
PyObject *run_call(glue *g, td_call *call, int64_t elements);
PyObject *with_gradient(PyObject *tensor, bool wanted);
bool bind_operators(glue *g, PyObject *module);
/* objects.c */
td_dtype dtype_of(glue *g, PyObject *object);
bool parse_device(PyObject *given, td_device *out);
void *generator_of(PyObject *object);
PyObject *new_tuple(const int64_t *numbers, int n);
PyObject *new_size(glue *g, const int64_t *sizes, int n);
bool add_small_objects(glue *g, PyObject *module);
/* number.c */
extern const PyType_Slot number_slots[], subscript_slots[];
extern const PyType_Slot buffer_slots[];
PyObject *tensor_item(PyObject *self, PyObject *unused);
/* data.c */
td_tensor *new_tensor(glue *g, PyObject *data, td_dtype dtype);
PyObject *py_tensor(PyObject *module, PyObject *args, PyObject *names);
PyObject *tensor_tolist(PyObject *self, PyObject *unused);
/* gradient.c */
int all_tensors(PyObject *tuple, void *out);
bool publish_state(glue *g);
glue *published_state(void);
td_tensor *tensor_from(PyObject *f, PyObject *x, bool none,
                       const char *wrong, const char *operation);
void drop_object(void *context);
PyObject *pass_failed(void);
void where_in_python(char *text, size_t room);
bool function_backward(void *context, td_custom_call *call);
/* saving.c */
int all_texts(PyObject *tuple, void *out);
/* what the package calls */
#define FUNCTION(text, name, how, help) \
    PyObject *py_##name(PyObject *, PyObject *);
#include "functions.inc"
#undef FUNCTION
/* Opens py_name, a function of the module's state and of `given`. */
#define ENTRANCE(name, given) \
    static PyObject *name##_with(glue *g, PyObject *given); \
    PyObject *py_##name(PyObject *module, PyObject *given) \
    { \
        td_error_clear(); \
        return name##_with(PyModule_GetState(module), given); \
    } \
    static PyObject *name##_with(glue *g, PyObject *given)
/* As PyArg_ParseTuple; returns NULL if the arguments do not fit. */
#define UNPACK(...) \
    do { \
        if (!PyArg_ParseTuple(__VA_ARGS__)) \
            return NULL; \
    } while (0)
/* py_name(x) is `answer` for a tensor `x`. */
#define OF_TENSOR(name, answer) \
    ENTRANCE(name, given) \
    { \
        td_tensor *x = a_tensor(given, #name); \
        return x ? answer : NULL; \
    }
/* python: function tensor_cast */
/* `object` as a wrapper, or NULL if it is no tensor at all. */
static inline tensor_object *tensor_cast(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    while (type != NULL && type->tp_dealloc != tensor_dealloc)
        type = type->tp_base;
    if (type == NULL)
        return NULL;
    tensor_object *w = (tensor_object *)object;
    if (!w->owner)
        wake(w);
    return w;
}
/* extension: function handle_of */
static inline td_tensor *handle_of(PyObject *tensor)
{
    tensor_object *w = (tensor_object *)tensor;
    if (!w->owner)
        wake(w);
    return w->handle;
}

static inline glue *glue_of(PyObject *tensor)
{
    return ((tensor_object *)tensor)->glue;
}
