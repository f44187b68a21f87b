/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "graph": edit that, not this file. */
/* Operators made of operators: kernels, and how they read calls. */
#include "core/runtime.h"
#include "ops/composite.h"

#define COMPOSED_BY(name, formula, signature, sentence)    \
    bool name##_kernel(td_call *call)                      \
    {                                                      \
        return td_return(call, formula##_formula(call,     \
                         td_input(call, 0)));              \
    }
#include "ops/composites.inc"

/* graph: functions that read a call */
int td_choice(const td_call *call, int k, const char *words)
{
    const td_value *v = &call->attr[k];
    return td_choose(TD_ERROR_UNSUPPORTED, call->op->name,
                     v->kind == TD_STRING ? v->as.string : NULL, words,
                     0);
}

td_reduce_options td_over(const td_call *call, int dim, int keepdim)
{
    return (td_reduce_options){
        .dims = td_numbers(call, dim),
        .keepdim = keepdim >= 0 && td_flag(call, keepdim)
    };
}

td_dims td_dims_of_ones(int rank)
{
    return (td_dims){ rank, { 1, 1, 1, 1, 1, 1, 1, 1 } };
}

td_tensor_options td_beside(const td_tensor *x, td_dtype dtype)
{
    return (td_tensor_options){ .dtype = dtype,
                                .device = td_device_of(x) };
}

td_tensor_options td_like(const td_tensor *x)
{
    return td_beside(x, td_dtype_of(x));
}

td_tensor *td_part(td_tensor *x, int dim, int64_t start, int64_t end)
{
    return TD_CALL(slice, x, td_v_int(dim), td_v_int(start),
                   td_v_int(end), td_v_int(1));
}

td_tensor *td_count_up(int64_t from, int64_t to, td_tensor_options o)
{
    return td_arange(td_int(from), td_int(to), td_int(1), o);
}

td_tensor *td_number_like(const td_call *call, int i,
                          const td_tensor *x)
{
    const td_value *v = &call->in[i];
    if (v->kind == TD_SCALAR)
        return td_full(TD_RANK_0, v->as.scalar, td_like(x));
    return v->as.tensor->rank == 0 ? td_to(v->as.tensor, x->dtype)
         : td_refuse(call, "the value must have rank 0");
}
