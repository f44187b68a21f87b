/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "activations": edit that, not this file. */
/* Composite operators: formulas, choices, forms in place. */
#include "ops/composite.h"
#include "ops/elementwise.h"
#include "ops/formula.h"
#include <float.h>
#include <treadle/treadle.h>

/* activations: functions that run a formula */
enum {
#define FORMULA(name, more, text, doc) FORMULA_##name,
#define PREPARED FORMULA
#include "ops/formulas.inc"
    FORMULA_COUNT
};

static td_formula formulas[FORMULA_COUNT];

static void read_formulas(void)
{
#define FORMULA(name, more, text, doc) \
    td_formula_parse(text, &formulas[FORMULA_##name]);
#define PREPARED FORMULA
#include "ops/formulas.inc"
}

static td_value widened(td_value v)
{
    return v.kind != TD_TENSOR ? v : td_v_tensor(
        td_to(v.as.tensor, td_dtype_wide(v.as.tensor->dtype)));
}

static td_tensor *narrowed(const td_call *call, td_tensor *y)
{
    const td_dtype type = td_result_type(call->n_in, call->in);
    return y && y->dtype == td_dtype_wide(type) ? td_to(y, type) : y;
}

static bool run_formula(td_call *call, int which, const td_value *attr,
                        bool wide)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    td_value bound[8], result = td_v_none();
    int n = 0;
    pthread_once(&once, read_formulas);
    TD_EACH(i, call, in)
        bound[n++] = wide ? widened(call->in[i]) : call->in[i];
    TD_EACH(i, call, attr)
        bound[n++] = attr[i];
    return td_formula_run(&formulas[which], "xabgy", bound, &result)
        && td_return(call, wide ? narrowed(call, result.as.tensor)
                                : result.as.tensor);
}

#define FORMULA(name, more, text, sentence)                           \
    bool name##_kernel(td_call *call)                                 \
    {                                                                 \
        return run_formula(call, FORMULA_##name, call->attr, false);  \
    }
#define PREPARED(name, more, text, sentence)
#include "ops/formulas.inc"

/* activations: kernels of several operators */
TD_KERNEL(bitwise_not, x)
{
    if (td_dtype_is_floating(x->dtype))
        return td_refuse(call, "not defined for %s tensors",
                         td_dtype_name(x->dtype));
    td_scope_begin();
    td_tensor *y = x->dtype == TD_BOOL ? td_logical_not(x)
                 : td_sub_scalar(td_neg(x), td_int(1));
    return td_return(call, td_scope_end_with(y));
}

bool addcdiv_kernel(td_call *call)
{
    return run_formula(call, FORMULA_addcdiv, call->attr, true);
}

bool lerp_kernel(td_call *call)
{
    if (call->in[2].kind != TD_SCALAR)
        return run_formula(call, FORMULA_lerp, NULL, true);
    td_tensor *x = widened(call->in[0]).as.tensor;
    td_tensor *end = widened(call->in[1]).as.tensor;
    const double w = td_scalar_double(call->in[2].as.scalar);
    const td_value in[] = { td_v_tensor(w < 0.5 ? x : end),
        td_v_tensor(td_sub(end, x)), td_v_float(w < 0.5 ? w : w - 1) };
    const td_value one = td_v_int(1);
    td_call sum = { .op = &td_ops[TD_OP_addcmul], .n_in = 3, .in = in,
                    .n_attr = 1, .attr = &one, .into = call->into };
    return td_run(&sum) && td_return(call, narrowed(call, sum.out[0]));
}

TD_KERNEL(nan_to_num, x)
{
    const double most = x->dtype == TD_FLOAT64 ? DBL_MAX
        : x->dtype == TD_FLOAT16 ? 65504
        : x->dtype == TD_BFLOAT16 ? 0x1.fep127 : FLT_MAX;
    const double otherwise[] = { 0, most, -most };
    td_value attr[3];
    if (!td_dtype_is_floating(x->dtype))
        return td_return(call, td_clone(x));
    for (int i = 0; i < 3; i++)
        attr[i] = call->attr[i].kind != TD_NONE ? call->attr[i]
                : td_v_float(otherwise[i]);
    return run_formula(call, FORMULA_nan_to_num, attr, false);
}

TD_COMPOSED(gelu, x)
{
    return td_choice(call, 0, "none|tanh") == 1 ? td_gelu_tanh(x)
                                                : td_gelu_erf(x);
}

TD_COMPOSED(prelu, x)
{
    td_tensor *w = td_input(call, 1);
    const int64_t channels = x->rank > 1 ? x->shape[1] : 1;
    td_dims line = td_dims_of_ones(x->rank - 1);
    line.at[0] = td_numel(w);
    if (td_numel(w) != 1 && (w->rank != 1 || w->shape[0] != channels))
        return td_refuse(call, "the weight has %" PRId64 " elements, "
            "expected 1 or one for each of %" PRId64 " channels",
            td_numel(w), channels);
    if (x->rank < 2)
        line.count = 0;
    return TD_CALL2(leaky_relu, x, td_reshape(w, line));
}

TD_COMPOSED(masked_fill, x)
{
    return td_where(td_input(call, 1), td_number_like(call, 2, x), x);
}
