/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "operators": edit that, not this file. */
#include "core/call.h"
#include "core/device.h"

/* operators: function td_store */
void td_store(td_dtype dtype, void *at, td_scalar value)
{
    td_convert(dtype, at, 1, td_scalar_dtype(value), &value.as, 1, 1);
}

/* operators: function td_scalar_fits */
bool td_scalar_fits(td_scalar value, td_dtype dtype)
{
    const int bits = 8 * (int)td_dtype_size(dtype);
    const double v = td_scalar_double(value);
    if (dtype == TD_UINT8)
        return v < 256 && (v >= 0 ||
                           (v > -256 && value.kind != TD_SCALAR_FLOAT));
    return dtype == TD_BOOL || td_dtype_is_floating(dtype)
        || (dtype == TD_INT64 && value.kind != TD_SCALAR_FLOAT)
        || (v >= -ldexp(1, bits - 1) && v < ldexp(1, bits - 1));
}

bool td_check_fits(td_scalar value, td_dtype dtype)
{
    return td_scalar_fits(value, dtype)
        || td_fail(TD_ERROR_RUNTIME, "tensor", "%.17g does not fit %s",
                   td_scalar_double(value), td_dtype_name(dtype));
}

/* operators: function td_fill_all */
bool td_fill_all(td_tensor *x, td_scalar value)
{
    int64_t room = 0;
    td_storage storage = { .data = &room, .bytes = sizeof room };
    const td_tensor one = { .dtype = x->dtype, .storage = &storage };
    td_store(x->dtype, &room, value);
    return td_check_fits(value, x->dtype) && td_copy_elements(x, &one);
}

/* operators: function new_sized */
td_device td_device_wanted(const td_call *call)
{
    const td_value *v = &call->attr[call->n_attr - 1];
    return v->kind == TD_DEVICE ? v->as.device
        : td_device_of(call->n_in > 0 ? td_input(call, 0) : NULL);
}

static td_tensor *new_tensor(const td_call *call, td_dims shape,
                             td_dtype otherwise, td_device device)
{
    const td_value *dtype = &call->attr[call->n_attr - 2];
    return td_tensor_new(shape, td_v_get_dtype(dtype, otherwise),
                         device);
}
td_tensor *td_new_sized(const td_call *call, int size,
                        td_dtype otherwise)
{
    const td_tensor *x = call->n_in > 0 ? td_input(call, 0) : NULL;
    td_dims shape = td_shape_of(x);
    if (x == NULL && !td_v_dims(call, &call->attr[size], &shape))
        return NULL;
    return new_tensor(call, shape, x ? x->dtype : otherwise,
                      td_device_wanted(call));
}

/* operators: function count_steps */
static bool count_steps(td_scalar from, td_scalar to, td_scalar by,
                        int64_t *n)
{
    const double a = td_scalar_double(from), b = td_scalar_double(to);
    const double step = td_scalar_double(by);
    const double steps = (b - a) / step, count = ceil(steps);
    /* operators: refuse steps that never arrive */
    if (step == 0 || !isfinite(step) || !isfinite(a) || !isfinite(b))
        return td_fail(TD_ERROR_RUNTIME, "arange", "start %g, end %g "
                       "and step %g must be finite and step not zero",
                       a, b, step);
    if (steps < 0)
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

/* operators: function has_numbers */
static bool has_numbers(td_call *call, td_dtype dtype)
{
    return dtype != TD_BOOL || td_fail(TD_ERROR_UNSUPPORTED,
        td_op_name(call->op), "bool has too few numbers");
}

/* operators: function write_progression */
enum { A_FEW = 256 };

static void write_progression(td_tensor *x, bool whole, td_scalar from,
                              td_scalar by, int64_t left, double last)
{
    const uint64_t start = (uint64_t)td_scalar_int(from);
    const uint64_t step = (uint64_t)td_scalar_int(by);
    const double a = td_scalar_double(from), b = td_scalar_double(by);
    const int64_t all = td_numel(x);
    union { double real[A_FEW]; uint64_t whole[A_FEW]; } v;
    for (int64_t at = 0, n; x && td_at(x) && at < all; at += n) {
        n = all - at < A_FEW ? all - at : A_FEW;
        for (int64_t i = at; i < at + n; i++)
            if (whole)
                v.whole[i - at] = start + (uint64_t)i * step;
            else
                v.real[i - at] = i < left ? fma((double)i, b, a)
                    : fma((double)(i - all + 1), b, last);
        td_convert(x->dtype, (char *)td_at(x) + (size_t)at
                   * td_dtype_size(x->dtype), 1,
                   whole ? TD_INT64 : TD_FLOAT64, &v, 1, n);
    }
}

/* operators: kernels that create */
static bool constant(td_call *call, td_dtype dtype, td_scalar value)
{
    td_tensor *x = td_new_sized(call, 0, dtype);
    return td_return(call, x) && td_fill_all(x, value);
}

bool empty_kernel(td_call *call)
{
    return td_return(call, td_new_sized(call, 0,
                                         td_default_dtype()));
}

bool zeros_kernel(td_call *call)
{
    return constant(call, td_default_dtype(), td_int(0));
}

bool ones_kernel(td_call *call)
{
    return constant(call, td_default_dtype(), td_int(1));
}
bool full_kernel(td_call *call)
{
    const td_scalar value = call->attr[call->n_attr - 3].as.scalar;
    return constant(call, value.kind == TD_SCALAR_FLOAT
                    ? td_default_dtype() : td_scalar_dtype(value),
                    value);
}
bool arange_kernel(td_call *call)
{
    td_scalar from = call->attr[0].as.scalar;
    td_scalar to = call->attr[1].as.scalar;
    td_scalar by = call->attr[2].as.scalar;
    bool whole = from.kind != TD_SCALAR_FLOAT
        && to.kind != TD_SCALAR_FLOAT && by.kind != TD_SCALAR_FLOAT;
    const td_dtype type = td_v_get_dtype(&call->attr[3],
        whole ? TD_INT64 : td_default_dtype());
    int64_t n = 0;
    if (!has_numbers(call, type) || !count_steps(from, to, by, &n))
        return false;
    if (whole)
        n = count_whole_steps(td_scalar_int(from), td_scalar_int(to),
                              td_scalar_int(by));
    /* operators: cut fractions off where whole numbers are wanted */
    if (!td_dtype_is_floating(type)) {
        if (!td_check_fits(from, TD_INT64) || !td_check_fits(to, TD_INT64)
            || !td_check_fits(by, TD_INT64))
            return false;
        from = td_int(td_scalar_int(from)), by = td_int(td_scalar_int(by));
        whole = true;
    }
    td_tensor *x = new_tensor(call, TD_DIMS(n), type, TD_CPU);
    write_progression(x, whole, from, by, n, 0);
    return td_return(call, td_sent(x, td_device_wanted(call)));
}
bool linspace_kernel(td_call *call)
{
    const int64_t n = td_number(call, 2, 0);
    const td_dtype type = td_v_get_dtype(&call->attr[3],
                                         td_default_dtype());
    double end[2] = { 0 };
    if (n > 1 && !has_numbers(call, type))
        return false;
    for (int i = 0; i < 2 && n > 0; i++)
        /* operators: read an end of the interval */
        {
            const td_scalar given = call->attr[n > 1 ? i : 0].as.scalar;
            end[i] = td_scalar_double(given);
            if (type == TD_BOOL || td_dtype_is_floating(type))
                continue;
            if (!td_check_fits(given, type))
                return false;
            end[i] = trunc(end[i]) + (type == TD_UINT8 && end[i] < 0 ? 256 : 0);
        }
    td_tensor *x = new_tensor(call, TD_DIMS(n), type, TD_CPU);
    const double step = n > 1 ? (end[1] - end[0]) / (double)(n - 1) : 0;
    write_progression(x, false, td_float(end[0]), td_float(step), n / 2,
                      end[1]);
    return td_return(call, td_sent(x, td_device_wanted(call)));
}
bool eye_kernel(td_call *call)
{
    const int64_t n = td_number(call, 0, 0);
    const int64_t m = td_number(call, 1, n);
    td_tensor *x = new_tensor(call, TD_DIMS(n, m), td_default_dtype(),
                              td_device_wanted(call));
    if (!td_return(call, x) || !td_fill_all(x, td_int(0)))
        return false;
    td_tensor diagonal = *x;
    diagonal.rank = 1;
    diagonal.shape[0] = n < m ? n : m;
    diagonal.strides[0] = m + (m < INT64_MAX);
    return td_fill_all(&diagonal, td_int(1));
}

/* operators: function td_with_options */
td_tensor *td_with_options(td_tensor *x, td_tensor_options options)
{
    (void)options;
    /* graph: ask for gradients of a new tensor */
    if (options.requires_grad && !td_set_requires_grad(x, true)) {
        td_discard(x);
        return NULL;
    }
    return x;
}

/* operators: typed functions that create */
td_tensor *td_create(int op, td_value like, td_tensor_options o, int n,
                     const td_value *own)
{
    td_value attr[TD_MAX_PARAMETERS];
    for (int i = 0; i < n; i++)
        attr[i] = own[i];
    attr[n] = td_v_dtype(o.dtype);
    attr[n + 1] = o.device.kind != TD_DEVICE_CPU
                ? td_v_device(o.device) : td_v_none();
    return td_with_options(td_run1(&td_ops[op],
        like.kind == TD_TENSOR, &like, n + 2, attr), o);
}
TD_CREATED_PAIR(empty)
TD_CREATED_PAIR(zeros)
TD_CREATED_PAIR(ones)
TD_CREATED(full, (td_v_ints(&size), td_v_scalar(value)),
           td_dims size, td_scalar value)
TD_CREATED(arange,
           (td_v_scalar(start), td_v_scalar(end), td_v_scalar(step)),
           td_scalar start, td_scalar end, td_scalar step)
TD_CREATED(linspace,
           (td_v_scalar(td_float(start)), td_v_scalar(td_float(end)),
            td_v_int(steps)),
           double start, double end, int64_t steps)
TD_CREATED(eye, (td_v_int(n), td_v_opt_int(m)),
           int64_t n, td_opt_i64 m)
TD_CREATED_LIKE(full_like, td_v_tensor(x), (td_v_scalar(value)),
                td_tensor *x, td_scalar value)
td_tensor *td_from_data(const void *data, td_dims shape,
                        td_tensor_options o)
{
    const bool symbolic = td_self()->symbolic;
    td_self()->symbolic = false;
    td_tensor *x = td_tensor_new(shape,
        o.dtype ? o.dtype : td_default_dtype(), TD_CPU);
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
