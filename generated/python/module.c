/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "extension": edit that, not this file. */
#include "glue.h"
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
/* python: functions of the lock */
static _Thread_local PyThreadState *parked;
static atomic_int away;

/* Between these two the lock is free, Python objects out of reach. */
void leave_python(void)
{
    away++;
    parked = PyEval_SaveThread();
}

void enter_python(void)
{
    PyThreadState *thread = parked;
    parked = NULL;
    away--;
    PyEval_RestoreThread(thread);
}

int threads_away(void)
{
    return away;
}
static void stay_alone(void)
{
    away = parked != NULL;
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, stay_alone);
}
enum { HELD = 10, PARKED };

static bool holding(void)
{
    const PyThreadState *thread = _PyThreadState_UncheckedGet();
    return thread != NULL
        && thread->thread_id == PyThread_get_thread_ident();
}

/* Makes Python usable in a callback; what it returns undoes it. */
int take_lock(void)
{
    if (parked == NULL)
        return holding() ? HELD : (int)PyGILState_Ensure();
    enter_python();
    return PARKED;
}

void give_lock(int how)
{
    if (how == PARKED)
        leave_python();
    else if (how != HELD)
        PyGILState_Release((PyGILState_STATE)how);
}
bool python_lives(void)
{
    return Py_IsInitialized() || holding();
}
/* Around Python code in which no exception may be lost or left. */
errand begin_errand(void)
{
    errand e = { .lock = take_lock() };
    PyErr_Fetch(&e.type, &e.value, &e.trace);
    return e;
}

void end_errand(errand e)
{
    PyErr_Restore(e.type, e.value, e.trace);
    give_lock(e.lock);
}
/* python: function exception_of */
static PyObject *linalg_error(void)
{
    PyObject *m = PyImport_ImportModule("treadle.linalg");
    PyObject *e = m ? PyObject_GetAttrString(m, "LinAlgError") : NULL;
    Py_XDECREF(m);
    Py_XDECREF(e);              /* the module has it */
    return e != NULL ? e : PyExc_RuntimeError;
}

static PyObject *exception_of(td_error_code code)
{
    switch (code) {
    case TD_ERROR_MEMORY:      return PyExc_MemoryError;
    case TD_ERROR_VALUE:       return PyExc_ValueError;
    case TD_ERROR_TYPE:        return PyExc_TypeError;
    case TD_ERROR_INDEX:       return PyExc_IndexError;
    case TD_ERROR_IO:          return PyExc_OSError;
    case TD_ERROR_UNSUPPORTED: return PyExc_NotImplementedError;
    case TD_ERROR_SINGULAR:    return linalg_error();
    default:                   return PyExc_RuntimeError;
    }
}
/* python: function fail */
/* Raises the pending error as a Python exception; returns NULL. */
PyObject *fail(void)
{
    const td_error_code code = td_error();
    const char *text = code ? td_error_message() : "unknown error";
    PyObject *words = PyErr_Occurred() ? NULL
        : PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text),
                               "replace");
    if (words != NULL)
        PyErr_SetObject(exception_of(code), words);
    Py_XDECREF(words);
    td_error_clear();
    return NULL;
}
/* python: function callback_failed */
/* Records that Python code called by `operation` raised. */
bool callback_failed(const char *operation)
{
    return td_fail(TD_ERROR_CALLBACK, operation, "exception in Python");
}
/* extension: functions that ask the library */
ENTRANCE(memory_stats, given)
{
    td_device device = { TD_DEVICE_CPU, 0 };
    PyObject *of = NULL;
    if (!PyArg_ParseTuple(given, "|O:memory_stats", &of)
        || (of != NULL && !parse_device(of, &device)))
        return NULL;
    const td_memory_info m = td_device_memory_stats(device);
    if (td_failed())
        return fail();
#define FIELD(name) #name, (long long)m.name
    return Py_BuildValue("{sLsLsLsLsLsLsLsL}", FIELD(live_tensors),
        FIELD(live_nodes), FIELD(live_objects), FIELD(bytes),
        FIELD(peak_bytes), FIELD(allocations),
        FIELD(system_allocations), FIELD(cached_bytes));
}
#define QUESTION(name, answer) \
    ENTRANCE(name, unused) { return answer; }
QUESTION(get_cache_limit, PyLong_FromLongLong(td_memory_cache()))
QUESTION(live_node_count,
         PyLong_FromLongLong(td_live_node_count()))
QUESTION(get_num_threads, PyLong_FromLong(td_threads()))
ENTRANCE(cpu_info, unused)
{
    const td_cache_sizes m = td_cache_info();
    return Py_BuildValue("{sssLsLsL}", "isa", td_isa(), FIELD(l1),
                         FIELD(l2), FIELD(l3));
}
QUESTION(is_grad_enabled, PyBool_FromLong(td_grad_enabled()))
QUESTION(device_count, PyLong_FromLong(td_device_count(TD_DEVICE_CUDA)))
/* extension: function a_tensor */
/* The handle of a tensor; NULL raises. */
td_tensor *a_tensor(PyObject *x, const char *operation)
{
    if (tensor_cast(x))
        return handle_of(x);
    PyErr_Format(PyExc_TypeError, "%s: expected a Tensor, not %s",
                 operation, Py_TYPE(x)->tp_name);
    return NULL;
}
/* extension: functions that set the library */
PyObject *done(bool good)
{
    if (!good || td_failed())
        return fail();
    Py_RETURN_NONE;
}

ENTRANCE(empty_cache, unused)
{
    td_memory_trim();
    Py_RETURN_NONE;
}
#define SETTING(name, type, value_of, act) \
    ENTRANCE(name, given) \
    { \
        const type n = value_of(given); \
        if (PyErr_Occurred()) \
            return NULL; \
        act; \
        return done(true); \
    }
SETTING(set_num_threads, long, PyLong_AsLong,
        td_set_threads(n < INT_MAX ? (int)n : INT_MAX))
SETTING(set_cache_limit, long long, PyLong_AsLongLong,
        td_memory_set_cache(n))
SETTING(manual_seed, uint64_t, PyLong_AsUnsignedLongLongMask,
        td_manual_seed(n))
SETTING(memory_fail_after, long long, PyLong_AsLongLong,
        td_memory_fail_after(n))

ENTRANCE(synchronise, given)
{
    td_device device;
    if (!parse_device(given, &device))
        return NULL;
    return done(td_synchronise(device));
}
/* _random_state(generator or None[, seed, stream]) -> the old ones */
ENTRANCE(random_state, args)
{
    PyObject *of;
    unsigned long long seed = 0, stream = 0;
    UNPACK(args, "O|KK:manual_seed", &of, &seed, &stream);
    const bool set = PyTuple_GET_SIZE(args) == 3;
    const td_random_state new = { .seed = seed, .stream = stream };
    td_generator *own = generator_of(of);
    td_random_state old = own
        ? td_generator_state(own, set ? &new : NULL)
        : td_random_swap(new);
    if (own == NULL && !set)
        td_random_swap(old);
    return Py_BuildValue("KK", (unsigned long long)old.seed,
                         (unsigned long long)old.stream);
}
/* _set_grad_enabled(mode) -> the mode before */
ENTRANCE(set_grad_enabled, mode)
{
    const bool before = td_grad_enabled();
    const int on = PyObject_IsTrue(mode);
    if (on < 0)
        return NULL;
    td_set_grad_enabled(on);
    return td_failed() ? fail() : PyBool_FromLong(before);
}

OF_TENSOR(retain_grad, done(td_retain_grad(x)))
/* extension: function box */
static void empty_box(PyObject *capsule)
{
    td_release(PyCapsule_GetPointer(capsule,
                                    PyCapsule_GetName(capsule)));
}

/* A capsule with `object`, whose reference it takes; NULL raises. */
PyObject *box(void *object, const char *name)
{
    if (object == NULL)
        return fail();
    PyObject *capsule = PyCapsule_New(object, name, empty_box);
    if (capsule == NULL)
        td_release(object);
    return capsule;
}
/* extension: functions on data sets */
/* _images(name, root or None, train) -> (images, labels) */
ENTRANCE(images, args)
{
    const char *name, *root;
    int train;
    UNPACK(args, "szp:images", &name, &root, &train);
    leave_python();
    const td_suspended trace = td_trace_suspend();
    td_dataset *data = strcmp(name, "mnist") == 0
        ? td_mnist(root, train) : strcmp(name, "cifar10") == 0
        ? td_cifar10(root, train) : td_fashion_mnist(root, train);
    td_trace_resume(trace);
    enter_python();
    if (data == NULL)
        return fail();
    td_tensor *pair[] = { td_retain(td_dataset_images(data)),
                          td_retain(td_dataset_labels(data)) };
    td_release(data);
    return wrap_many(g, pair, 2);
}

/* td_idx_read or td_bytes_read of a path */
static PyObject *read_path(glue *g, PyObject *path,
                           td_tensor *read(const char *))
{
    PyObject *bytes;
    if (!PyUnicode_FSConverter(path, &bytes))
        return NULL;
    leave_python();
    const td_suspended trace = td_trace_suspend();
    td_tensor *x = read(PyBytes_AS_STRING(bytes));
    td_trace_resume(trace);
    enter_python();
    Py_DECREF(bytes);
    return wrap(g, x);
}

ENTRANCE(idx_read, path)
{
    return read_path(g, path, td_idx_read);
}

ENTRANCE(bytes_read, path)
{
    return read_path(g, path, td_bytes_read);
}
/* extension: table of module functions */
static PyMethodDef functions[] = {
    { "tensor", (PyCFunction)(void (*)(void))py_tensor,
      METH_VARARGS | METH_KEYWORDS,
      "tensor(data, *, dtype=None, requires_grad=False, device=None)\n"
      "--\n\nA new tensor that holds a copy of data." },
#define FUNCTION(text, name, how, help) { text, py_##name, how, help },
#include "functions.inc"
#undef FUNCTION
    { 0 },
};
/* extension: collection of the module state */
static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    glue *g = PyModule_GetState(module);
    Py_VISIT(g->tensor);
    Py_VISIT(g->operator);
    Py_VISIT(g->dtype);
    Py_VISIT(g->size);
    for (int i = 0; i < TD_DTYPE_COUNT; i++)
        Py_VISIT(g->dtypes[i]);
    return 0;
}
/* extension: function module_exec */
static int module_exec(PyObject *module)
{
    glue *g = PyModule_GetState(module);
    if (!add_small_objects(g, module) || !make_tensor_type(g, module)
        || !bind_operators(g, module) || !publish_state(g))
        return -1;
#define FIND(name, ...) g->slot[SLOT_##name] = td_op_find(#name);
#define FIND_BOTH(name, slot) FIND(name) FIND(name##_)
    BINARY_SLOTS(FIND_BOTH)
    UNARY_SLOTS(FIND)
    COMPARE_SLOTS(FIND)
    FIND_BOTH(pow, power)
    td_error_clear();
    g->nothing = td_empty(TD_DIMS(0), (td_tensor_options){ 0 });
    return g->nothing ? 0 : (fail(), -1);
}
/* extension: function PyInit__C */
static PyModuleDef_Slot module_slots[] = {
    { Py_mod_exec, module_exec },
#if PY_VERSION_HEX >= 0x030c0000
    { Py_mod_multiple_interpreters,
      Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED },
#endif
    { 0 },
};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "treadle._C",
    "Tensors, operators and gradients in C.", sizeof(glue), functions,
    module_slots, module_traverse, NULL, NULL
};

PyMODINIT_FUNC PyInit__C(void)
{
    return PyModuleDef_Init(&definition);
}
