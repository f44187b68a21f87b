/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "operators": edit that, not this file. */
/* The table of all operators, and short ways to call one.

   A typed function packs its arguments and goes through the door:

       td_tensor *td_neg(td_tensor *x)
       {
           return TD_CALL(neg, x);
       } */
#pragma once
#include <treadle/op.h>

/* operators: struct td_op */
struct td_op {
    const char *name, *signature;
    td_kernel *kernel;
    const char *sentence;
};

/* operators: end of a signature that creates */
#define OPTIONS \
    "*, dtype? dtype=None, device? device=None"

/* operators: number the rows of the registry */
enum {
#define OP(name, signature, kernel, sentence) TD_OP_##name,
#include "core/registry.inc"
    TD_OP_COUNT
};

/* operators: declare the kernels of the registry */
#define OP(name, signature, kernel, sentence) td_kernel kernel;
#include "core/registry.inc"

extern const td_op td_ops[TD_OP_COUNT + 1];

td_call td_called(const td_op *op, int n_in, const td_value *in,
                  int n_attr, const td_value *attr);
td_tensor *td_run1(const td_op *op, int n_in, const td_value *in,
                   int n_attr, const td_value *attr);
/* operators: makers of values */
#define MAKER(name, type, tag, member, ...) \
    static inline td_value td_v_##name(type x) \
    { \
        return (td_value){ .kind = tag, .as.member = __VA_ARGS__ }; \
    }
MAKER(tensor, td_tensor *, TD_TENSOR, tensor, x)
MAKER(scalar, td_scalar, TD_SCALAR, scalar, x)
MAKER(string, const char *, TD_STRING, string, x)
MAKER(device, td_device, TD_DEVICE, device, x)
MAKER(int, int64_t, TD_SCALAR, scalar, td_int(x))
MAKER(float, double, TD_SCALAR, scalar, td_float(x))
MAKER(bool, bool, TD_SCALAR, scalar, td_boolean(x))
MAKER(ints, const td_dims *, TD_INTS, ints, { x->count, x->at })
#undef MAKER
static inline td_value td_v_tensors(int count, td_tensor *const *at)
{
    return (td_value){ .kind = TD_TENSORS,
                       .as.tensors = { count, at } };
}
static inline td_value td_v_none(void)
{
    return (td_value){ .kind = TD_NONE };
}
static inline td_value td_v_optional(td_tensor *x)
{
    return x != NULL ? td_v_tensor(x) : td_v_none();
}
static inline td_value td_v_opt_int(td_opt_i64 x)
{
    return x.given ? td_v_int(x.value) : td_v_none();
}
static inline td_value td_v_dtype(td_dtype dtype)
{
    return dtype != TD_DTYPE_NONE
         ? (td_value){ .kind = TD_DTYPE, .as.dtype = dtype }
         : td_v_none();
}
static inline int64_t td_v_get_int(const td_value *v, int64_t otherwise)
{
    return v->kind == TD_SCALAR ? td_scalar_int(v->as.scalar)
                                : otherwise;
}
static inline double td_v_double(const td_value *v)
{
    return v->kind == TD_SCALAR ? td_scalar_double(v->as.scalar) : 0;
}
static inline bool td_v_get_bool(const td_value *v)
{
    return v->kind == TD_SCALAR && td_scalar_double(v->as.scalar) != 0;
}
static inline td_tensor *td_input(const td_call *call, int i)
{
    return call->in[i].kind == TD_TENSOR ? call->in[i].as.tensor : NULL;
}
static inline int64_t td_number(const td_call *call, int k,
                                int64_t otherwise)
{
    return td_v_get_int(&call->attr[k], otherwise);
}
static inline double td_real(const td_call *call, int k)
{
    return td_v_double(&call->attr[k]);
}
static inline bool td_flag(const td_call *call, int k)
{
    return td_v_get_bool(&call->attr[k]);
}
static inline int td_tensors_of(const td_value *v,
                                td_tensor *const **at)
{
    const bool one = v->kind == TD_TENSOR;
    *at = one ? &v->as.tensor : v->as.tensors.at;
    return one ? 1 : v->kind == TD_TENSORS ? v->as.tensors.count : 0;
}
static inline td_dtype td_v_get_dtype(const td_value *v,
                                      td_dtype otherwise)
{
    return v->kind == TD_DTYPE ? v->as.dtype : otherwise;
}
/* Takes the text off *at, or letters, digits and underscores, after
   blanks; or leaves it there. */
bool td_token(const char **at, const char *expected);
bool td_word(const char **at, char *out, size_t size);
bool td_v_dims(const td_call *call, const td_value *v, td_dims *out);
int td_dimension(const td_call *call, int64_t dim, int rank);
/* The same, of several: an error if its bit is in *seen already. */
int td_dimension_once(const td_call *call, int64_t dim, int rank,
                      unsigned *seen);
bool td_return(td_call *call, td_tensor *result);
/* A tensor of the size in that attribute, or like the operand, and of
   the dtype and device in the last two. */
td_tensor *td_new_sized(const td_call *call, int size,
                        td_dtype otherwise);
td_device td_device_wanted(const td_call *call);
/* An error in the operator's name that ends with the shapes of its
   operands; returns NULL. */
td_tensor *td_refuse_as(const td_call *call, td_error_code code,
                        const char *why, ...) TD_PRINTF(3, 4);
#define td_refuse(call, ...) \
    td_refuse_as(call, TD_ERROR_RUNTIME, __VA_ARGS__)
/* Has x, named so, that shape, in which a size of -1 stands for any? */
bool td_expect(const td_call *call, const char *name,
               const td_tensor *x, td_dims want);
#define TD_VALUES(...) \
    (int)(sizeof((td_value[]){ __VA_ARGS__ }) / sizeof(td_value)), \
    (td_value[]){ __VA_ARGS__ }
#define TD_RUN(op, operands, ...) \
    td_run1(&td_ops[TD_OP_##op], TD_VALUES operands, \
            TD_VALUES(__VA_ARGS__))
#define TD_CALLED(op, operands, ...) \
    td_called(&td_ops[TD_OP_##op], TD_VALUES operands, \
              TD_VALUES(__VA_ARGS__))
#define TD_CALL(op, x, ...) TD_RUN(op, (td_v_tensor(x)), __VA_ARGS__)
#define TD_CALL2(op, x, y, ...) \
    TD_RUN(op, (td_v_tensor(x), td_v_tensor(y)), __VA_ARGS__)
#define TD_CALL3(op, x, y, z, ...) \
    TD_RUN(op, (td_v_tensor(x), td_v_tensor(y), td_v_tensor(z)), \
           __VA_ARGS__)
#define td_is(call, name) ((call)->op == &td_ops[TD_OP_##name])
td_tensor *td_create(int op, td_value like, td_tensor_options o, int n,
                     const td_value *own);
#define TD_CREATED_LIKE(op, like, values, ...) \
    td_tensor *td_##op(__VA_ARGS__, td_tensor_options o) \
    { \
        return td_create(TD_OP_##op, like, o, TD_VALUES values); \
    }
#define TD_CREATED(op, values, ...) \
    TD_CREATED_LIKE(op, td_v_none(), values, __VA_ARGS__)
#define TD_CREATED_PAIR(name, ...) \
    TD_CREATED(name, (td_v_ints(&size), __VA_ARGS__), td_dims size) \
    TD_CREATED_LIKE(name##_like, td_v_tensor(x), (__VA_ARGS__), \
                    td_tensor *x)
/* views: makers of values */
/* Opens the kernel of `op`, whose first operand is the tensor `x`. */
#define TD_KERNEL(op, x)                                              \
    static bool op##_on(td_call *call, td_tensor *x);                 \
    bool op##_kernel(td_call *call)                                   \
    {                                                                 \
        return op##_on(call, td_input(call, 0));                      \
    }                                                                 \
    static bool op##_on(td_call *call, td_tensor *x)
#define TD_LOOK(op)                                                   \
    static bool look_##op(td_call *call, const td_tensor *x,          \
                          td_tensor *y);                              \
    TD_KERNEL(op, x)                                                  \
    {                                                                 \
        td_tensor y = td_look(x);                                     \
        return look_##op(call, x, &y)                                 \
            && td_return(call, td_tensor_alias(&y));                  \
    }                                                                 \
    static bool look_##op(td_call *call, const td_tensor *x,          \
                          td_tensor *y)
/* Attribute k as a list of numbers; one number is a list of one. */
td_dims td_numbers(const td_call *call, int k);
/* The dimension of operand 0 that attribute 0 names. */
int td_dim_of(const td_call *call);
#define TD_TYPED_AS(function, op, operands, attributes, ...) \
    td_tensor *td_##function(__VA_ARGS__) \
    { \
        return td_run1(&td_ops[TD_OP_##op], \
            TD_VALUES operands, TD_VALUES attributes); \
    }
#define TD_TYPED(op, attributes, ...) \
    TD_TYPED_AS(op, op, (td_v_tensor(x)), attributes, \
                td_tensor *x, __VA_ARGS__)
#define TD_OF_ONE(op) \
    TD_TYPED_AS(op, op, (td_v_tensor(x)), (), td_tensor *x)
#define TD_OF_TWO(op) \
    TD_TYPED_AS(op, op, (td_v_tensor(x), td_v_tensor(y)), (), \
                td_tensor *x, td_tensor *y)
