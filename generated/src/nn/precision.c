/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "precision": edit that, not this file. */
/* Halves through float32, and operators that are given halves. */
#include <treadle/precision.h>
#include "core/call.h"
#include "core/device.h"

/* precision: function half_of */
static bool may_mix(const td_call *call)
{
    return td_casts[call->op - td_ops] == TD_MIXED;
}

static td_dtype half_of(const td_call *call)
{
    const bool mixed = may_mix(call);
    td_dtype half = TD_DTYPE_NONE;
    TD_EACH(i, call, in) {
        const td_tensor *x = call->in[i].kind == TD_TENSOR
                           ? call->in[i].as.tensor : NULL;
        if (!td_dtype_is_floating(td_dtype_of(x)))
            continue;
        if (half != TD_DTYPE_NONE && half != x->dtype && !mixed)
            return TD_DTYPE_NONE;
        half = half != TD_DTYPE_NONE ? half : x->dtype;
    }
    TD_EACH(i, call, attr)
        if (call->attr[i].kind == TD_DTYPE
            && td_dtype_wide(half) == half)
            half = call->attr[i].as.dtype;
    return td_dtype_wide(half) != half ? half : TD_DTYPE_NONE;
}

/* precision: function run_wide */
static bool run_wide(td_call *call, td_dtype half)
{
    td_value in[TD_MAX_PARAMETERS], attr[TD_MAX_PARAMETERS];
    td_call wide = { .op = call->op, .n_in = call->n_in, .in = in,
                     .n_attr = call->n_attr, .attr = attr };
    /* precision: widen the operands */
    TD_EACH(i, call, in) {
        in[i] = call->in[i];
        if (in[i].kind == TD_TENSOR && in[i].as.tensor->dtype == half)
            in[i].as.tensor = td_to(in[i].as.tensor, TD_FLOAT32);
    }
    /* precision: let the type that was asked for decide */
    TD_EACH(i, call, attr) {
        attr[i] = call->attr[i];
        if (attr[i].kind == TD_DTYPE && attr[i].as.dtype) {
            half = attr[i].as.dtype;
            attr[i].as.dtype = td_dtype_wide(half);
        }
    }
    bool ok = !td_failed() && call->op->kernel(&wide);
    /* precision: write what was changed in place */
    for (int i = 0; ok && i < call->n_in; i++) {
        td_tensor *x = call->in[i].as.tensor, *y = in[i].as.tensor;
        if (!(td_traits_of(call->op)->mutated >> i & 1)
            || in[i].kind != TD_TENSOR || x == y)
            continue;
        ok = td_copy_(x, y) != NULL;
        for (int k = 0; k < TD_MAX_RESULTS; k++)
            if (wide.out[k] == y)
                wide.out[k] = td_share(x);
    }
    /* precision: narrow the results */
    for (int k = 0; ok && k < TD_MAX_RESULTS && wide.out[k]; k++) {
        td_tensor *y = wide.out[k];
        const bool keep = y->dtype != TD_FLOAT32 || half == TD_FLOAT32
                       || (k > 0 && may_mix(call));
        call->out[k] = keep ? y : td_to(y, half);
    }
    return ok;
}

/* precision: function td_widened */
bool td_widened(td_call *call)
{
    if (call->op->kernel(call))
        return true;
    const td_dtype half = half_of(call);
    const td_error_code code = td_self()->error.code;
    if (half == TD_DTYPE_NONE || code == TD_ERROR_MEMORY
        || code == TD_ERROR_CALLBACK
        || td_is(call, view_dtype))
        return false;
    td_error_clear();
    for (int k = 0; k < TD_MAX_RESULTS; k++) {
        td_discard(call->out[k]);
        call->out[k] = NULL;
    }
    td_scope_begin();
    return td_close_parts(call, run_wide(call, half));
}

/* precision: table of casts */
const uint8_t td_casts[TD_OP_COUNT] = {
#define LOW(name) [TD_OP_##name] = TD_LOW,
#define WIDE(name, ...) [TD_OP_##name] = TD_WIDE,
#define PLAIN(name) [TD_OP_##name] = TD_PLAIN,
#define MIXED(name) [TD_OP_##name] = TD_MIXED,
#define LOSS WIDE
#include "nn/losses.inc"
    LOW(matmul) LOW(linear) LOW(bmm) LOW(addmm) LOW(baddbmm)
    LOW(convolution) LOW(prelu) LOW(scaled_dot_product_attention)
    WIDE(gated) WIDE(prod) WIDE(trace) WIDE(cross_entropy)
    WIDE(nll_loss) WIDE(kl_div)
    WIDE(binary_cross_entropy_with_logits)
    WIDE(avg_pool3d) WIDE(max_pool3d) WIDE(adaptive_avg_pool3d)
    WIDE(max_pool3d_with_indices) WIDE(adaptive_max_pool3d)
    WIDE(inverse) WIDE(linalg_solve) WIDE(linalg_cholesky)
    WIDE(linalg_qr) WIDE(linalg_eigh) WIDE(linalg_svd) PLAIN(mv)
    MIXED(standardise) MIXED(standardise_backward) MIXED(adam_step_)
};

/* precision: function td_run_cast */
bool td_run_cast(td_call *call)
{
    td_thread *self = td_self();
    const td_dtype low = self->autocast;
    const uint8_t how = td_casts[call->op - td_ops];
    const td_dtype to = how == TD_LOW ? low : TD_FLOAT32;
    td_value in[TD_MAX_PARAMETERS];
    td_call cast = *call;
    cast.in = in;
    td_scope_begin();
    TD_EACH(i, call, in) {
        td_tensor *x = call->in[i].as.tensor;
        in[i] = call->in[i];
        if (in[i].kind == TD_TENSOR && how != TD_PLAIN
            && td_dtype_is_floating(x->dtype)
            && x->dtype != TD_FLOAT64 && x->dtype != to)
            in[i].as.tensor = td_to(x, to);
    }
    self->autocast = TD_DTYPE_NONE;
    const bool ok = td_run(&cast);
    self->autocast = low;
    memcpy(call->out, cast.out, sizeof call->out);
    return td_close_parts(call, ok);
}

/* precision: functions that set what products are computed in */
bool td_set_autocast(td_dtype dtype)
{
    if (dtype != TD_DTYPE_NONE && td_dtype_wide(dtype) == dtype)
        return td_fail(TD_ERROR_TYPE, "autocast", "expected float16 or "
                       "bfloat16, got %s", td_dtype_name(dtype));
    td_self()->autocast = dtype;
    return true;
}

td_dtype td_autocast_dtype(void)
{
    return td_self()->autocast;
}
