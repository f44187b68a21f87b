/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "binder": edit that, not this file. */
#include "glue.h"
#define MAX_INT_LISTS 5
/* binder: struct operator_object */
typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    glue *glue;
    const td_op *op;
    td_signature signature;
    PyObject *name[TD_MAX_PARAMETERS];     /* interned */
    td_value absent[TD_MAX_PARAMETERS]; /* what a default means */
    int positional;                     /* parameters before the star */
    int spread;         /* the int[] that f(1, 2) spells out, or -1 */
    bool creates;       /* takes no tensor: accepts requires_grad */
    PyObject *results;  /* makes a named tuple of them, or NULL */
    PyObject *text, *document;
    PyMethodDef function;
} operator_object;
/* binder: struct call_state */
typedef struct {
    operator_object *operator;
    PyObject *given[TD_MAX_PARAMETERS];    /* borrowed; NULL: default */
    PyObject *const *rest;              /* spread integers, n_rest */
    Py_ssize_t n_rest;
    int requires_grad;
    PyObject *unknown;                  /* a keyword of no parameter */
    int n_in, n_attr, n_ints, n_lists;
    td_value in[TD_MAX_PARAMETERS], attr[TD_MAX_PARAMETERS];
    int64_t ints[MAX_INT_LISTS][TD_MAX_RANK];
    handles list[TD_MAX_PARAMETERS];
    int64_t elements;                   /* a guess at the work */
} call_state;
/* binder: functions complain */
#define complain(o, words, ...) \
    (PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, \
        "%s(): " words, td_op_name((o)->op), __VA_ARGS__))

static bool complain_type(const operator_object *o, int at,
                          const char *expected, PyObject *got)
{
    const bool too_long = PyErr_Occurred()
        && PyErr_ExceptionMatches(PyExc_OverflowError);
    if (!too_long && o->signature.at[at].kind != TD_P_DEVICE)
        return complain(o, "argument '%U' must be %s, not %.100s",
                        o->name[at], expected, Py_TYPE(got)->tp_name);
    PyObject *type, *said, *trace;
    PyErr_Fetch(&type, &said, &trace);
    if (PyErr_GivenExceptionMatches(type, PyExc_UnicodeError))
        Py_SETREF(type, Py_NewRef(PyExc_ValueError));
    PyErr_Format(type, too_long
        ? "%s(): argument '%U' does not fit into 64 bits"
        : "%s(): argument '%U': %S", td_op_name(o->op), o->name[at],
        said);
    Py_XDECREF(type);
    Py_XDECREF(said);
    Py_XDECREF(trace);
    return false;
}
static const char *const expected[] = {
    [TD_P_OPERAND] = "a Tensor or a number", [TD_P_TENSOR] = "a Tensor",
    [TD_P_SCALAR] = "a number", [TD_P_FLOAT] = "a number",
    [TD_P_INT] = "an integer", [TD_P_BOOL] = "True or False",
    [TD_P_STRING] = "a string", [TD_P_DTYPE] = "a treadle.dtype",
    [TD_P_GENERATOR] = "a Generator",
};
/* binder: function is_integer */
bool is_integer(PyObject *object)
{
    if (PyLong_Check(object))
        return true;
    tensor_object *w = tensor_cast(object);
    if (w == NULL)
        return PyIndex_Check(object) && !PySequence_Check(object);
    const td_dtype type = td_dtype_of(w->handle);
    return td_numel(w->handle) == 1 && td_dtype_is_integer(type);
}
/* binder: functions to_int and to_float */
static bool to_int(PyObject *given, td_value *out)
{
    if (!is_integer(given) || PyBool_Check(given))
        return false;
    const long long value = PyLong_AsLongLong(given);
    out->kind = TD_SCALAR;
    out->as.scalar = td_int(value);
    return value != -1 || !PyErr_Occurred();
}

static bool to_float(PyObject *given, td_value *out)
{
    if (PyUnicode_Check(given) || PyBytes_Check(given))
        return false;
    const double value = PyFloat_AsDouble(given);
    if (value == -1 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Clear();
        return false;
    }
    out->kind = TD_SCALAR;
    out->as.scalar = td_float(value);
    return true;
}
/* binder: function to_scalar */
bool to_scalar(PyObject *given, td_value *out)
{
    out->kind = TD_SCALAR;
    if (PyBool_Check(given)) {
        out->as.scalar = td_boolean(given == Py_True);
        return true;
    }
    if (!PyFloat_Check(given) && !PyLong_Check(given)
        && (tensor_cast(given) || PyObject_CheckBuffer(given) == 0))
        return false;
    return PyIndex_Check(given) ? to_int(given, out)
                                : to_float(given, out);
}

static bool tensor_scalar(PyObject *given, td_value *out)
{
    tensor_object *w = tensor_cast(given);
    if (w == NULL || td_rank(w->handle) != 0
        || td_requires_grad(w->handle))
        return false;
    out->as.scalar = td_item(w->handle);
    return !td_failed() || fail();
}
/* binder: function convert_tensor */
static bool convert_tensor(call_state *c, PyObject *given,
                           td_value *out)
{
    tensor_object *w = tensor_cast(given);
    if (w == NULL)
        return false;
    c->elements += td_numel(w->handle);
    out->kind = TD_TENSOR;
    out->as.tensor = w->handle;
    return true;
}
/* binder: function convert_ints */
static bool convert_ints(call_state *c, int at, PyObject *given,
                         td_value *out)
{
    int64_t *into = c->ints[c->n_ints++];
    const bool spelt = c->rest && at == c->operator->spread;
    const bool many = !spelt
        && (PyList_Check(given) || PyTuple_Check(given));
    const Py_ssize_t n = spelt ? c->n_rest
        : many ? PySequence_Fast_GET_SIZE(given) : 1;
    if (n > TD_MAX_RANK)
        return complain(c->operator, "argument '%U' has %zd integers, "
                        "at most 8 are possible",
                        c->operator->name[at], n);
    /* binder: convert the integers of a list one by one */
    for (Py_ssize_t i = 0; i < n; i++) {
        td_value value;
        if (many && i >= PySequence_Fast_GET_SIZE(given))
            return complain(c->operator, "argument '%U' changed under the "
                            "call", c->operator->name[at]);
        PyObject *item = spelt ? c->rest[i]
            : many ? PySequence_Fast_GET_ITEM(given, i) : given;
        if (!to_int(item, &value))
            return complain_type(c->operator, at,
                "an integer or a sequence of integers", item);
        into[i] = value.as.scalar.as.i;
    }
    out->kind = TD_INTS;
    out->as.ints.count = (int)n;
    out->as.ints.at = into;
    return true;
}
/* binder: functions of handles */
/* Retains the tensors of a list or tuple, None as NULL if it may be;
   returns what is none of these, or NULL. */
PyObject *hold_tensors(PyObject *items, bool none, handles *out)
{
    const bool many = PyList_Check(items) || PyTuple_Check(items);
    const Py_ssize_t n = many ? PySequence_Fast_GET_SIZE(items) : 0;
    PyObject *wrong = many ? NULL : items;
    /* two more are NULL, for who expects three */
    *out = (handles){ 0, PyMem_Calloc((size_t)n + 3, sizeof *out->at) };
    if (out->at == NULL) {
        PyErr_NoMemory();
        return items;
    }
    for (; out->n < n && wrong == NULL; out->n++) {
        PyObject *item = PySequence_Fast_GET_ITEM(items, out->n);
        tensor_object *w = tensor_cast(item);
        if (w != NULL)
            out->at[out->n] = td_retain(w->handle);
        else if (!none || item != Py_None)
            wrong = item;
    }
    return wrong;
}

void drop_handles(handles *h)
{
    for (int i = 0; i < h->n; i++)
        td_release(h->at[i]);
    PyMem_Free(h->at);
}
/* binder: function convert_tensors */
static bool convert_tensors(call_state *c, int at, PyObject *given,
                            td_value *out)
{
    handles *list = &c->list[c->n_lists++];
    PyObject *wrong = hold_tensors(given, false, list);
    if (wrong != NULL)
        return complain_type(c->operator, at, "a sequence of Tensors",
                             wrong);
    for (int i = 0; i < list->n; i++)
        c->elements += td_numel(list->at[i]);
    out->kind = TD_TENSORS;
    out->as.tensors.count = list->n;
    out->as.tensors.at = list->at;
    return true;
}
/* binder: function convert_argument */
/* The value of parameter `at`, from the object given for it. */
static bool convert_argument(call_state *c, int at, PyObject *given,
                             td_value *out)
{
    const td_parameter *p = &c->operator->signature.at[at];
    if (given == Py_None && p->optional) {
        out->kind = TD_NONE;
        return true;
    }
    if (p->list)
        return p->kind == TD_P_TENSOR
             ? convert_tensors(c, at, given, out)
             : convert_ints(c, at, given, out);
    bool good = false;
    switch (p->kind) {
    /* binder: convert a tensor or a scalar */
    case TD_P_OPERAND:
        good = convert_tensor(c, given, out) || to_scalar(given, out);
        break;
    case TD_P_TENSOR:
        good = convert_tensor(c, given, out);
        break;
    case TD_P_SCALAR:
        good = to_scalar(given, out) || tensor_scalar(given, out);
        break;
    case TD_P_FLOAT:
        good = to_float(given, out);
        break;
    case TD_P_INT:
        good = to_int(given, out);
        break;
    case TD_P_BOOL:
        good = PyBool_Check(given) && to_scalar(given, out);
        break;
    /* binder: convert what is neither tensor nor number */
    case TD_P_STRING:
        out->kind = TD_STRING;
        out->as.string = PyUnicode_Check(given) ? PyUnicode_AsUTF8(given)
                                                : NULL;
        good = out->as.string != NULL;
        break;
    case TD_P_DTYPE:
        out->kind = TD_DTYPE;
        out->as.dtype = dtype_of(c->operator->glue, given);
        good = out->as.dtype != TD_DTYPE_NONE;
        break;
    case TD_P_DEVICE:
        out->kind = TD_DEVICE;
        good = parse_device(given, &out->as.device);
        break;
    case TD_P_GENERATOR:
        out->kind = TD_GENERATOR;
        out->as.generator = generator_of(given);
        good = out->as.generator != NULL;
    }
    return good || complain_type(c->operator, at, expected[p->kind],
                                 given);
}
/* binder: function take_positional */
static bool take_positional(call_state *c, PyObject *const *args,
                            Py_ssize_t n)
{
    operator_object *o = c->operator;
    /* positional: exercise positional */
    if (o->spread >= 0 && n > o->spread
        && is_integer(args[o->spread])) {
        c->rest = args + o->spread;
        c->n_rest = n - o->spread;
        c->given[o->spread] = args[o->spread];
        n = o->spread;
    }
    if (n > o->positional)
        return complain(o, "takes at most %d positional arguments, "
                        "%zd were given", o->positional, n);
    for (Py_ssize_t i = 0; i < n; i++)
        c->given[i] = args[i];
    return true;
}
/* binder: function take_named */
static bool take_named(call_state *c, PyObject *const *values,
                       PyObject *names)
{
    operator_object *o = c->operator;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        /* binder: find the parameter of that name */
        int at = o->signature.n_parameters;
        while (--at >= 0 && o->name[at] != name)
            continue;
        for (int k = 0; at < 0 && k < o->signature.n_parameters; k++)
            if (PyUnicode_Compare(o->name[k], name) == 0)
                at = k;
        if (at < 0 && o->creates
            && PyUnicode_CompareWithASCIIString(name,
                                                "requires_grad") == 0) {
            c->requires_grad = PyObject_IsTrue(values[i]);
            if (c->requires_grad < 0)
                return false;
        } else if (at < 0) {
            c->unknown = name;
            return false;
        } else if (c->given[at] != NULL) {
            return complain(o, "argument '%U' was given twice", name);
        } else {
            c->given[at] = values[i];
        }
    }
    return true;
}
/* binder: function convert_all */
static bool convert_all(call_state *c)
{
    operator_object *o = c->operator;
    for (int i = 0; i < o->signature.n_parameters; i++) {
        const td_parameter *p = &o->signature.at[i];
        td_value *out = p->is_input ? &c->in[c->n_in++]
                                    : &c->attr[c->n_attr++];
        if (c->given[i] == NULL) {
            if (!p->has_default)
                return complain(o, "missing argument '%U'", o->name[i]);
            *out = o->absent[i];
        } else if (!convert_argument(c, i, c->given[i], out)) {
            return false;
        }
    }
    return true;
}
/* binder: function run_call */
static void share_operands(const td_call *call, bool take)
{
    TD_EACH(i, call, in)
        if (call->in[i].kind == TD_TENSOR && take)
            td_retain(call->in[i].as.tensor);
        else if (call->in[i].kind == TD_TENSOR)
            td_release(call->in[i].as.tensor);
}

/* Runs `call`, without the lock if `elements` promise enough work. */
PyObject *run_call(glue *g, td_call *call, int64_t elements)
{
    bool good;
    td_error_clear();
    if (elements < 16384) {
        good = td_run(call);
    } else {
        share_operands(call, true);
        leave_python();
        good = td_run(call);
        enter_python();
        share_operands(call, false);
    }
    if (!good)
        return fail();
    if (call->n_out == 1)
        return wrap(g, call->out[0]);
    return wrap_many(g, call->out, call->n_out);
}
/* binder: function with_gradient */
/* The tensor, from now on requiring a gradient if that is wanted. */
PyObject *with_gradient(PyObject *tensor, bool wanted)
{
    if (tensor && wanted
        && !td_set_requires_grad(handle_of(tensor), true)) {
        Py_CLEAR(tensor);
        fail();
    }
    return tensor;
}

/* binder: function operator_vectorcall */
static PyObject *operator_vectorcall(PyObject *self,
    PyObject *const *args, size_t nargsf, PyObject *names)
{
    operator_object *o = (operator_object *)self;
    const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    call_state c;
    memset(&c, 0, offsetof(call_state, in));
    c.operator = o;
    c.elements = 0;
    PyObject *result = NULL;
    if (take_positional(&c, args, n)
        && (names == NULL || take_named(&c, args + n, names))
        && convert_all(&c)) {
        td_call call = { .op = o->op, .n_in = c.n_in,
                         .n_attr = c.n_attr, .in = c.in,
                         .attr = c.attr };
        result = run_call(o->glue, &call, c.elements);
    } else if (c.unknown) {
        /* binder: ask what the keyword may mean */
        PyObject *spare = PyObject_GetAttrString(self, "_spare");
        PyErr_Clear();
        result = spare ? PyObject_Vectorcall(spare, args, (size_t)n, names)
                       : Py_NewRef(Py_NotImplemented);
        Py_XDECREF(spare);
        if (result == Py_NotImplemented) {
            Py_DECREF(result);
            result = complain(o, "unexpected keyword argument '%U'",
                              c.unknown);
        }
    }
    /* binder: free the lists of the call */
    for (int i = 0; i < c.n_lists; i++)
        drop_handles(&c.list[i]);
    if (result && o->results)
        Py_SETREF(result, PyObject_CallOneArg(o->results, result));
    return with_gradient(result, c.requires_grad);
}
/* binder: function operator_function */
static PyObject *operator_function(PyObject *self,
    PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    return operator_vectorcall(self, args, (size_t)n, names);
}
/* binder: function study_parameters */
static bool study_parameters(operator_object *o)
{
    td_signature *s = &o->signature;
    o->spread = -1;
    o->creates = true;
    TD_EACH(i, s, parameters) {
        td_parameter *p = &s->at[i];
        o->name[i] = PyUnicode_InternFromString(p->name);
        if (o->name[i] == NULL)
            return false;
        o->absent[i] = td_usual(p);
        o->creates = o->creates && !p->is_input;
        if (p->keyword_only)
            continue;
        o->positional = i + 1;
        o->spread = p->kind == TD_P_INT && p->list ? i : -1;
    }
    return true;
}
/* binder: function describe_operator */
static bool describe_operator(operator_object *o)
{
    const char *words = td_op_documentation(o->op);
    const char *row = td_op_signature(o->op);
    /* binder: rewrite the row for Python */
    /* "(input, dim=None, keepdim=False, *, dtype=None)" */
    char text[1024];
    Py_ssize_t n = 0;
    for (const char *at = strchr(row, '('); n < 1024; at++) {
        text[n++] = *at;
        if (*at == ')')
            break;
        if (strchr("( ", *at) && at[1] != '*' && at[1] != ')')
            at = strchr(at + 1, ' ');
    }
    o->text = PyUnicode_FromStringAndSize(text, n);
    if (o->text == NULL)
        return false;
    o->document = PyUnicode_FromFormat("%s%U\n--\n\n%s\n\n%s",
        td_op_name(o->op), o->text, row, words ? words : "");
    if (o->document == NULL)
        return false;
    const char *doc = PyUnicode_AsUTF8(o->document);
    o->function = (PyMethodDef){
        td_op_name(o->op),
        (PyCFunction)(void (*)(void))operator_function,
        METH_FASTCALL | METH_KEYWORDS, doc };
    return doc != NULL;
}
/* binder: attributes of an operator */
static PyObject *operator_get(PyObject *self, PyObject *x,
                              PyObject *type)
{
    if (x == NULL || x == Py_None)
        return Py_NewRef(self);
    return PyMethod_New(self, x);
}
/* binder: function operator_dealloc */
static void operator_dealloc(PyObject *self)
{
    operator_object *o = (operator_object *)self;
    PyTypeObject *type = Py_TYPE(self);
    for (int i = 0; i < TD_MAX_PARAMETERS; i++)
        Py_XDECREF(o->name[i]);
    Py_XDECREF(o->results);
    Py_XDECREF(o->text);
    Py_XDECREF(o->document);
    PyObject_Free(self);
    Py_DECREF(type);
}
/* binder: type of operators */
static PyMemberDef operator_members[] = {
    { "__vectorcalloffset__", T_PYSSIZET,
      offsetof(operator_object, vectorcall), READONLY, NULL },
    { "__name__", T_STRING,
      offsetof(operator_object, function.ml_name), READONLY, NULL },
    { "__qualname__", T_STRING,
      offsetof(operator_object, function.ml_name), READONLY, NULL },
    { "__text_signature__", T_OBJECT,
      offsetof(operator_object, text), READONLY, NULL },
    { "_results", T_OBJECT, offsetof(operator_object, results), 0,
      NULL },
    { 0 },
};
static PyType_Slot operator_slots[] = {
    { Py_tp_dealloc, operator_dealloc },
    { Py_tp_call, PyVectorcall_Call },
    { Py_tp_descr_get, operator_get },
    { Py_tp_members, operator_members },
    { 0 },
};
static PyType_Spec operator_spec = {
    "treadle.Operator", sizeof(operator_object), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL
    | Py_TPFLAGS_METHOD_DESCRIPTOR, operator_slots
};
/* binder: function new_operator */
static operator_object *new_operator(glue *g, const td_op *op)
{
    operator_object *o = PyObject_New(operator_object, g->operator);
    if (o == NULL)
        return NULL;
    memset((char *)o + sizeof(PyObject), 0,
           sizeof *o - sizeof(PyObject));
    o->vectorcall = operator_vectorcall;
    o->glue = g;
    o->op = op;
    if (!td_signature_parse(td_op_signature(op), &o->signature))
        fail();
    else if (study_parameters(o) && describe_operator(o))
        return o;
    Py_DECREF(o);
    return NULL;
}
/* binder: function bind_operators */
bool bind_operators(glue *g, PyObject *module)
{
    g->operator = (PyTypeObject *)
        PyType_FromModuleAndSpec(module, &operator_spec, NULL);
    if (g->operator == NULL)
        return false;
    for (int i = 0; i < td_op_count(); i++) {
        const td_op *op = td_op_at(i);
        operator_object *o = new_operator(g, op);
        if (o == NULL)
            return false;
        PyObject *f = PyCFunction_NewEx(&o->function, (PyObject *)o,
                                        NULL);
        const char *name = td_op_name(op);
        bool good = f != NULL
            && PyObject_SetAttrString(module, name, f) == 0;
        if (good && !o->creates)
            good = PyObject_SetAttrString((PyObject *)g->tensor, name,
                                          (PyObject *)o) == 0;
        Py_XDECREF(f);
        Py_DECREF(o);
        if (!good)
            return false;
    }
    return true;
}
