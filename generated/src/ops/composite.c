/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "graph": edit that, not this file. */
/* Operators made of operators: kernels, and how they read calls. */
#include <string.h>
#include "ops/composite.h"

#define COMPOSED(name, signature, sentence)             \
    bool name##_kernel(td_call *call)                   \
    {                                                   \
        return td_return(call, name##_formula(call));   \
    }
#include "ops/composites.inc"

/* graph: functions that read a call */
td_tensor *td_input(const td_call *call, int i)
{
    return call->in[i].as.tensor;
}

int64_t td_number(const td_call *call, int k, int64_t otherwise)
{
    return td_v_get_int(&call->attr[k], otherwise);
}

td_dims td_numbers(const td_call *call, int k)
{
    td_dims dims = { 0, { 0 } };
    td_v_dims(call, &call->attr[k], &dims);
    return dims;
}

int td_dimension(const td_call *call, int64_t dim, int rank)
{
    int d = 0;
    td_wrap_dim(call->op->name, dim, rank, &d);
    return d;
}

td_scalar td_scalar_at(const td_call *call, int k, td_scalar otherwise)
{
    return call->attr[k].kind == TD_SCALAR ? call->attr[k].as.scalar
                                           : otherwise;
}

int td_choice(const td_call *call, int k, int n,
              const char *const *words)
{
    int i = 0;
    while (call->attr[k].kind == TD_STRING && i < n
           && strcmp(call->attr[k].as.string, words[i]) != 0)
        i++;
    if (i == n)
        td_fail(TD_ERROR_UNSUPPORTED, call->op->name, "'%s' is no mode "
                "of this operator", call->attr[k].as.string);
    return i;
}

td_reduce_options td_over(const td_call *call, const td_value *dim,
                          const td_value *keepdim)
{
    td_reduce_options o = { .keepdim = td_v_get_bool(keepdim) };
    if (dim->kind == TD_SCALAR)
        o.dims = TD_DIMS(td_v_get_int(dim, 0));
    else
        td_v_dims(call, dim, &o.dims);
    return o;
}

td_tensor *td_refuse(const td_call *call, const char *why)
{
    char got[4 * TD_SHAPE_TEXT] = "";
    for (int i = 0; i < call->n_in && i < 3; i++)
        if (call->in[i].kind == TD_TENSOR)
            td_shape_text(call->in[i].as.tensor, got + strlen(
                strcat(got, *got != '\0' ? " and " : "; got ")));
    td_fail(TD_ERROR_RUNTIME, call->op->name, "%s%s", why, got);
    return NULL;
}
