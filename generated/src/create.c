/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "operators": edit that, not this file. */
#include <math.h>
#include <string.h>
#include "device.h"
#include "registry.h"

/* operators: function td_fill_all */
bool td_fill_all(td_tensor *x, td_scalar value)
{
    td_tensor one = { .dtype = x->dtype, .rank = 0 };
    int64_t room = 0;
    td_storage storage = { .data = &room, .bytes = sizeof room };
    one.storage = &storage;
    const bool floating = value.kind == TD_SCALAR_FLOAT;
    const int64_t whole = floating ? 0 : td_scalar_int(value);
    const double fraction = td_scalar_double(value);
    td_convert(x->dtype, &room, 1, floating ? TD_FLOAT64 : TD_INT64,
               floating ? (const void *)&fraction : &whole, 1, 1);
    return td_copy_elements(x, &one);
}

/* operators: function new_from */
static const td_device cpu = { TD_DEVICE_CPU, 0 };

static td_device device_or(const td_value *v, td_device otherwise)
{
    return v->kind == TD_DEVICE ? v->as.device : otherwise;
}

static td_tensor *new_from(td_call *call, int first, td_dtype otherwise)
{
    td_dims shape;
    if (!td_v_dims(call, &call->attr[0], &shape))
        return NULL;
    return td_tensor_new(shape,
        td_v_get_dtype(&call->attr[first], otherwise),
        device_or(&call->attr[first + 1], cpu));
}

/* operators: function count_steps */
static bool count_steps(td_scalar from, td_scalar to, td_scalar by,
                        int64_t *n)
{
    const double a = td_scalar_double(from), b = td_scalar_double(to);
    const double step = td_scalar_double(by);
    const double count = ceil((b - a) / step);
    /* operators: refuse steps that never arrive */
    if (step == 0 || !isfinite(step) || !isfinite(a) || !isfinite(b))
        return td_fail(TD_ERROR_RUNTIME, "arange", "start %g, end %g "
                       "and step %g must be finite and step not zero",
                       a, b, step);
    if (count < 0)
        return td_fail(TD_ERROR_RUNTIME, "arange", "step %g leads away "
                       "from end %g", step, b);
    if (count > 0x1p62)
        return td_fail(TD_ERROR_RUNTIME, "arange", "%g elements are "
                       "too many", count);
    *n = (int64_t)count;
    return true;
}

/* operators: function count_whole_steps */
static int64_t count_whole_steps(int64_t from, int64_t to, int64_t by)
{
    const uint64_t a = (uint64_t)from, b = (uint64_t)to;
    const uint64_t way = by > 0 ? b - a : a - b;
    const uint64_t step = by > 0 ? (uint64_t)by : 0 - (uint64_t)by;
    return (int64_t)(way / step + (way % step != 0));
}

/* operators: function write_progression */
static bool write_progression(td_tensor *x, bool whole, td_scalar from,
                              td_scalar by)
{
    const size_t size = td_dtype_size(x->dtype);
    char *out = td_at(x);
    for (int64_t i = 0; out && i < x->shape[0]; i++, out += size) {
        const uint64_t start = (uint64_t)td_scalar_int(from);
        const uint64_t step = (uint64_t)td_scalar_int(by);
        const int64_t k = (int64_t)(start + (uint64_t)i * step);
        const double f = whole ? 0 : td_scalar_double(from)
                                     + (double)i * td_scalar_double(by);
        td_convert(x->dtype, out, 1, whole ? TD_INT64 : TD_FLOAT64,
                   whole ? (const void *)&k : &f, 1, 1);
    }
    return true;
}

/* operators: kernels that create */
bool empty_kernel(td_call *call)
{
    return td_return(call, new_from(call, 1, td_default_dtype()));
}

static bool constant(td_call *call, td_scalar value)
{
    td_tensor *x = new_from(call, 1, td_default_dtype());
    return x != NULL && td_return(call, x) && td_fill_all(x, value);
}

bool zeros_kernel(td_call *call) { return constant(call, td_int(0)); }
bool ones_kernel(td_call *call) { return constant(call, td_int(1)); }
static td_dtype dtype_of_scalar(td_scalar s)
{
    return s.kind == TD_SCALAR_BOOL ? TD_BOOL :
           s.kind == TD_SCALAR_INT ? TD_INT64 : td_default_dtype();
}
bool full_kernel(td_call *call)
{
    const td_scalar value = call->attr[1].as.scalar;
    td_tensor *x = new_from(call, 2, dtype_of_scalar(value));
    return x != NULL && td_return(call, x) && td_fill_all(x, value);
}
bool arange_kernel(td_call *call)
{
    const td_scalar from = call->attr[0].as.scalar;
    const td_scalar to = call->attr[1].as.scalar;
    const td_scalar by = call->attr[2].as.scalar;
    const bool whole = from.kind != TD_SCALAR_FLOAT
        && to.kind != TD_SCALAR_FLOAT && by.kind != TD_SCALAR_FLOAT;
    int64_t n = 0;
    if (!count_steps(from, to, by, &n))
        return false;
    if (whole)
        n = count_whole_steps(td_scalar_int(from), td_scalar_int(to),
                              td_scalar_int(by));
    const td_dtype dtype = td_v_get_dtype(&call->attr[3],
                              whole ? TD_INT64 : td_default_dtype());
    td_tensor *x = td_tensor_new(TD_DIMS(n), dtype, cpu);
    return x && write_progression(x, whole, from, by)
        && td_return(call, td_sent(x, device_or(&call->attr[4], cpu)));
}
bool linspace_kernel(td_call *call)
{
    const double from = td_v_double(&call->attr[0]);
    const double to = td_v_double(&call->attr[1]);
    const int64_t n = td_v_get_int(&call->attr[2], 0);
    if (n < 0)
        return td_fail(TD_ERROR_RUNTIME, "linspace", "number of steps "
                       "%lld is negative", (long long)n);
    td_tensor *x = td_tensor_new(TD_DIMS(n),
        td_v_get_dtype(&call->attr[3], td_default_dtype()), cpu);
    if (x == NULL)
        return false;
    const double step = n > 1 ? (to - from) / (double)(n - 1) : 0;
    /* operators: write the points of the interval */
    for (int64_t i = 0; i < n && td_on_host(x); i++) {
        const double v = 2 * i < n ? from + (double)i * step
                                   : to - (double)(n - 1 - i) * step;
        td_convert(x->dtype, (char *)td_at(x)
                   + (size_t)i * td_dtype_size(x->dtype), 1, TD_FLOAT64,
                   &v, 1, 1);
    }
    return td_return(call, td_sent(x, device_or(&call->attr[4], cpu)));
}
bool eye_kernel(td_call *call)
{
    const int64_t n = td_v_get_int(&call->attr[0], 0);
    const int64_t m = td_v_get_int(&call->attr[1], n);
    td_tensor *x = td_tensor_new(TD_DIMS(n, m),
        td_v_get_dtype(&call->attr[2], td_default_dtype()),
        device_or(&call->attr[3], cpu));
    if (x == NULL || !td_return(call, x) || !td_fill_all(x, td_int(0)))
        return false;
    td_tensor diagonal = *x;
    diagonal.rank = 1;
    diagonal.shape[0] = n < m ? n : m;
    diagonal.strides[0] = m + 1;
    return td_fill_all(&diagonal, td_int(1));
}
static td_tensor *new_like(td_call *call, int at)
{
    const td_tensor *x = call->in[0].as.tensor;
    return td_tensor_new(td_shape_of(x),
        td_v_get_dtype(&call->attr[at], x->dtype),
        device_or(&call->attr[at + 1], td_device_of(x)));
}

bool empty_like_kernel(td_call *call)
{
    return td_return(call, new_like(call, 0));
}
bool zeros_like_kernel(td_call *call)
{
    td_tensor *y = new_like(call, 0);
    return td_return(call, y) && td_fill_all(y, td_int(0));
}

bool ones_like_kernel(td_call *call)
{
    td_tensor *y = new_like(call, 0);
    return td_return(call, y) && td_fill_all(y, td_int(1));
}
bool full_like_kernel(td_call *call)
{
    td_tensor *y = new_like(call, 1);
    return td_return(call, y)
        && td_fill_all(y, call->attr[0].as.scalar);
}

/* operators: function td_with_options */
td_tensor *td_with_options(td_tensor *x, td_tensor_options options)
{
    (void)options;
    if (x == NULL)
        return NULL;
    /* graph: ask for gradients of a new tensor */
    td_tensor *td_set_requires_grad(td_tensor *, bool);
    if (options.requires_grad && !td_set_requires_grad(x, true)) {
        td_discard(x);
        return NULL;
    }
    return x;
}

/* operators: typed functions that create */
static td_tensor *create(int op, td_dims size, td_tensor_options o)
{
    const td_value attr[] = { td_v_ints(&size), td_v_dtype(o.dtype),
                              td_v_device(o.device) };
    return td_with_options(td_run1(&td_ops[op], 0, NULL, 3, attr), o);
}

td_tensor *td_empty(td_dims size, td_tensor_options o)
{
    return create(TD_OP_empty, size, o);
}

td_tensor *td_zeros(td_dims size, td_tensor_options o)
{
    return create(TD_OP_zeros, size, o);
}

td_tensor *td_ones(td_dims size, td_tensor_options o)
{
    return create(TD_OP_ones, size, o);
}
td_tensor *td_full(td_dims size, td_scalar value, td_tensor_options o)
{
    const td_value attr[] = { td_v_ints(&size), td_v_scalar(value),
        td_v_dtype(o.dtype), td_v_device(o.device) };
    return td_with_options(
        td_run1(&td_ops[TD_OP_full], 0, NULL, 4, attr), o);
}
td_tensor *td_arange(td_scalar start, td_scalar end, td_scalar step,
                     td_tensor_options o)
{
    const td_value attr[] = { td_v_scalar(start), td_v_scalar(end),
        td_v_scalar(step), td_v_dtype(o.dtype), td_v_device(o.device) };
    return td_with_options(
        td_run1(&td_ops[TD_OP_arange], 0, NULL, 5, attr), o);
}
td_tensor *td_linspace(double start, double end, int64_t steps,
                       td_tensor_options o)
{
    const td_value attr[] = { td_v_float(start), td_v_float(end),
        td_v_int(steps), td_v_dtype(o.dtype), td_v_device(o.device) };
    return td_with_options(
        td_run1(&td_ops[TD_OP_linspace], 0, NULL, 5, attr), o);
}
td_tensor *td_eye(int64_t n, td_opt_i64 m, td_tensor_options o)
{
    const td_value attr[] = { td_v_int(n),
        td_v_int(m.given ? m.value : n), td_v_dtype(o.dtype),
        td_v_device(o.device) };
    return td_with_options(
        td_run1(&td_ops[TD_OP_eye], 0, NULL, 4, attr), o);
}
static td_value elsewhere(td_tensor_options o)
{
    return o.device.kind != TD_DEVICE_CPU ? td_v_device(o.device)
                                          : td_v_none();
}

static td_tensor *create_like(int op, td_tensor *x, td_tensor_options o)
{
    const td_value attr[] = { td_v_dtype(o.dtype), elsewhere(o) };
    return td_with_options(td_run1(&td_ops[op], 1,
        (td_value[]){ td_v_tensor(x) }, 2, attr), o);
}
td_tensor *td_empty_like(td_tensor *x, td_tensor_options o)
{
    return create_like(TD_OP_empty_like, x, o);
}

td_tensor *td_zeros_like(td_tensor *x, td_tensor_options o)
{
    return create_like(TD_OP_zeros_like, x, o);
}

td_tensor *td_ones_like(td_tensor *x, td_tensor_options o)
{
    return create_like(TD_OP_ones_like, x, o);
}
td_tensor *td_full_like(td_tensor *x, td_scalar value,
                        td_tensor_options o)
{
    const td_value attr[] = { td_v_scalar(value), td_v_dtype(o.dtype),
                              elsewhere(o) };
    return td_with_options(td_run1(&td_ops[TD_OP_full_like], 1,
        (td_value[]){ td_v_tensor(x) }, 3, attr), o);
}
td_tensor *td_from_data(const void *data, td_dims shape,
                        td_tensor_options o)
{
    const bool symbolic = td_self()->symbolic;
    td_self()->symbolic = false;
    td_tensor *x = td_failed() ? NULL : td_tensor_new(shape,
        o.dtype ? o.dtype : td_default_dtype(), cpu);
    const int64_t n = td_numel(x);
    if (data != NULL && n > 0)
        memcpy(td_at(x), data, (size_t)n * td_dtype_size(x->dtype));
    x = td_sent(x, o.device);
    td_self()->symbolic = symbolic;
    if (data != NULL || n == 0)
        return td_with_options(x, o);
    td_fail(TD_ERROR_VALUE, "from_data", "data is NULL");
    td_discard(x);
    return NULL;
}
