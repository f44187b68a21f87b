/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "arithmetic": edit that, not this file. */
#include "ops/elementwise.h"
#include "core/device.h"
#include "core/registry.h"
#include <treadle/treadle.h>

/* arithmetic: dtypes and shapes of operands */
/* rows: functions that vote on dtypes */
static td_dtype outvote(td_dtype high, td_dtype low)
{
    return td_dtype_category(low) > td_dtype_category(high) ? low
                                                            : high;
}

static td_dtype dtype_of(const td_value *value)
{
    if (value->kind != TD_SCALAR)
        return value->as.tensor->dtype;
    return value->as.scalar.kind == TD_SCALAR_FLOAT ? td_default_dtype()
         : value->as.scalar.kind == TD_SCALAR_INT ? TD_INT64 : TD_BOOL;
}


/* rows: function td_result_type */
td_dtype td_result_type(int n, const td_value *in)
{
    if (n == 2 && in[0].kind == TD_TENSOR && in[1].kind == TD_TENSOR
        && in[0].as.tensor->dtype == in[1].as.tensor->dtype)
        return in[0].as.tensor->dtype;
    td_dtype vote[3] = { TD_DTYPE_NONE, TD_DTYPE_NONE, TD_DTYPE_NONE };
    for (int i = 0; i < n; i++) {
        const bool scalar = in[i].kind == TD_SCALAR;
        const int rank = scalar ? 2 : in[i].as.tensor->rank == 0;
        const td_dtype own = dtype_of(&in[i]);
        vote[rank] = vote[rank] == TD_DTYPE_NONE
                   ? own : td_promote(vote[rank], own);
    }
    return outvote(vote[0], outvote(vote[1], vote[2]));
}

/* rows: struct job */
typedef struct {
    int row;                    /* TD_ROW_... */
    td_dtype dtype, result;     /* what the loop reads, and writes */
    int n;                      /* operands */
    const td_value *in;
} job;

/* rows: enumeration of row flags */
enum { ANY = 0, AS_FLOAT = 1, TO_BOOL = 2, OF_FLOAT = 4 };

static const uint8_t flags_of[TD_ROW_COUNT] = {
#define ROW(name, formula, sentence, operands, dtypes, flags)         \
    [TD_ROW_##name] = flags,
#include "ops/elementwise.inc"
};

/* arithmetic: powers that are rows */
static const struct {
    double exponent;
    int row, op;
} powers[] = {
    { 2, TD_ROW_square, TD_OP_square }, { 3, TD_ROW_cube, TD_OP_cube },
    { 0.5, TD_ROW_sqrt, TD_OP_pow }, { -0.5, TD_ROW_rsqrt, TD_OP_pow },
    { -1, TD_ROW_reciprocal, TD_OP_pow }
};

/* arithmetic: steps from a call to a loop */
/* rows: function has_loop */
static td_loop *loop_of(const job *j)
{
    const td_elementwise_level *level = TD_ISA_PICK(td_elementwise);
    return j->dtype <= TD_BOOL ? level->loop[j->row][j->dtype] : NULL;
}

static bool has_loop(job *j)
{
    j->dtype = td_dtype_wide(j->dtype);
    for (int i = 0; i < j->n; i++)
        if (td_dtype_wide(dtype_of(&j->in[i])) > TD_BOOL)
            return td_fail(TD_ERROR_UNSUPPORTED, "elementwise",
                           "%s tensors store but do not compute; "
                           "convert with to() first",
                           td_dtype_name(dtype_of(&j->in[i])));
    /* rows: find a hint for bools */
    const char *hint = j->dtype != TD_BOOL ? ""
        : j->row == TD_ROW_neg ? "; logical_not() inverts them"
        : j->row == TD_ROW_sub ? "; ne() is true where they differ" : "";
    if (loop_of(j) == NULL)
        return td_fail(TD_ERROR_RUNTIME, "elementwise",
                       "not defined for %s tensors%s",
                       td_dtype_name(j->dtype), hint);
    return true;
}

/* rows: function settle_scalars */
static bool settle_scalars(job *j)
{
    for (int i = 0; i < j->n; i++) {
        /* rows: ask whether the operand fits */
        const td_scalar s = j->in[i].as.scalar;
        const bool fits = j->in[i].kind != TD_SCALAR
            || (td_scalar_fits(s, j->dtype)
                && (j->dtype != TD_UINT8 || td_scalar_double(s) >= 0));
        if (!fits && j->result != TD_BOOL)
            return td_fail(TD_ERROR_VALUE, "elementwise",
                           "%" PRId64 " does not fit %s", s.as.i,
                           td_dtype_name(j->dtype));
        j->dtype = fits ? j->dtype : TD_INT64;
    }
    return true;
}

/* activations: further questions about a job */
static bool has_zero(const td_value *v)
{
    if (v->kind == TD_SCALAR)
        return td_scalar_int(v->as.scalar) == 0;
    td_scope_begin();
    td_tensor *zeros = td_eq_scalar(v->as.tensor, td_int(0));
    td_tensor *any = td_any(zeros, TD_REDUCE_DEFAULTS);
    const bool found = any != NULL && td_item(any).as.b;
    td_scope_end();
    return found;
}

/* rows: function describe */
static bool describe(job *j, td_call *call, int row)
{
    const int flags = flags_of[row];
    *j = (job){ .row = row, .n = call->n_in, .in = call->in };
    for (int i = 0; i < j->n; i++)
        if (j->in[i].kind == TD_NONE)
            return td_fail(TD_ERROR_VALUE, "elementwise", "operand %d "
                           "is missing", i + 1);
    if (flags & OF_FLOAT)               /* a slope has no vote */
        j->dtype = dtype_of(&j->in[0]);
    else
        j->dtype = td_result_type(j->n, j->in);
    if (flags & AS_FLOAT && !td_dtype_is_floating(j->dtype))
        j->dtype = td_default_dtype();
    j->result = flags & TO_BOOL ? TD_BOOL : j->dtype;
    if (!settle_scalars(j) || !has_loop(j))
        return false;
    /* arithmetic: refuse further jobs */
    if (j->row == TD_ROW_pow && j->in[1].kind == TD_SCALAR) {
        const td_scalar power = j->in[1].as.scalar;
        if (!td_dtype_is_floating(j->dtype)
            && power.kind == TD_SCALAR_INT && power.as.i < 0)
            return td_fail(TD_ERROR_RUNTIME, "elementwise",
                           "integers to negative integer powers are not "
                           "integers; convert to a float first");
        /* arithmetic: look for the row of a power */
        for (size_t k = 0; k < sizeof powers / sizeof *powers; k++) {
            if (td_scalar_double(power) != powers[k].exponent)
                continue;
            j->row = powers[k].row, j->n = 1;
            if (call->op == &td_ops[TD_OP_pow] && powers[k].op != TD_OP_pow
                && dtype_of(&j->in[0]) == j->dtype)
                call->op = &td_ops[powers[k].op], call->n_in = 1;
        }
    }
    /* activations: refuse further jobs */
    const bool divides = j->row == TD_ROW_floor_divide
        || j->row == TD_ROW_remainder || j->row == TD_ROW_fmod;
    if (divides && !td_dtype_is_floating(j->dtype)
        && !td_self()->symbolic && has_zero(&j->in[1]))
        return td_fail(TD_ERROR_RUNTIME, "elementwise",
            "ZeroDivisionError: an integer is divided by zero");
    return true;
}

/* rows: function shape_of_result */
static bool shape_of_result(const job *j, td_dims *shape)
{
    int tensors = 0;
    for (int i = 0; i < j->n; i++) {
        const td_tensor *x = j->in[i].as.tensor;
        if (j->in[i].kind == TD_SCALAR)
            continue;
        const td_dims own = td_shape_of(x);
        if (tensors++ == 0)
            *shape = own;
        else if (!td_dims_equal(&own, shape)
                 && !td_broadcast_dims("elementwise", shape, &own,
                                       shape))
            return false;
    }
    return tensors > 0
        || td_fail(TD_ERROR_TYPE, "elementwise",
                   "at least one operand must be a tensor");
}


/* rows: functions for the extent of a view */
static int64_t last_of(const td_tensor *x)
{
    int64_t last = x->offset;
    for (int d = 0; d < x->rank; d++)
        last += (x->shape[d] - 1) * x->strides[d];
    return last;
}

bool td_share_bytes(const td_tensor *x, const td_tensor *y)
{
    return x->storage == y->storage && td_numel(x) > 0
        && td_numel(y) > 0 && x->offset <= last_of(y)
        && y->offset <= last_of(x);
}

/* rows: function needs_copy */
/* rows: function lies_as */
static bool lies_as(const td_tensor *y, const td_tensor *x)
{
    bool alike = y->dtype == x->dtype && y->rank == x->rank;
    for (int d = 0; alike && d < x->rank; d++)
        alike = y->shape[d] == x->shape[d]
             && y->strides[d] == x->strides[d];
    return alike;
}

static bool needs_copy(const td_tensor *x, const td_tensor *out)
{
    const int last = x->rank - 1;
    bool turned = false;
    for (int d = 0; d < last; d++)
        turned |= x->strides[d] == 1 && x->strides[last] >= TD_LANES;
    return (turned && td_numel(x) >= 64 * TD_BLOCK)
        || ((out->offset != x->offset || !lies_as(out, x))
            && td_share_bytes(out, x));
}

/* rows: function compute */
static bool compute(const job *j, td_tensor *out)
{
    td_dtype as[TD_SPACE_OPERANDS] = { td_dtype_wide(j->result) };
    td_tensor *copy[TD_SPACE_OPERANDS] = { NULL };
    td_frame f;
    /* rows: hand the row on by name */
    if (!td_on_host(out)) {
        static const char *const names[] = {
    #define ROW(name, ...) #name,
    #include "ops/elementwise.inc"
            "where", "clamp", "addcmul"
        };
        const td_call call = { .n_in = j->n, .in = j->in, .out = { out } };
        return td_compute_elsewhere(&call, names[j->row], j->dtype, true);
    }
    td_space_begin(&f.space, out, TD_ALL_DIMS);
    for (int i = 0; i < j->n; i++) {
        as[i + 1] = j->row == TD_ROW_where && i == 0 ? TD_BOOL
                                                     : j->dtype;
        if (j->in[i].kind == TD_SCALAR)
            td_frame_scalar(&f, j->in[i].as.scalar, as[i + 1]);
        else {
            td_tensor *x = j->in[i].as.tensor;
            if (needs_copy(x, out))
                copy[i] = td_copied(x, x->dtype);
            td_space_add(&f.space, copy[i] ? copy[i] : x, TD_ALL_DIMS);
        }
    }
    const bool done = !td_failed() && td_frame_run(&f, loop_of(j), as);
    for (int i = 0; i < j->n; i++)
        td_release(copy[i]);
    return done;
}

/* rows: the short way */
static td_loop *short_way(const td_call *call, int row, int64_t *n)
{
    const td_tensor *x = call->in[0].as.tensor;
    bool alike = call->in[0].kind == TD_TENSOR && td_on_host(x)
              && (x->dtype == TD_FLOAT32 || x->dtype == TD_FLOAT64)
              && (*n = td_numel(x)) <= TD_BLOCK && td_is_contiguous(x);
    for (int i = 1; alike && i < call->n_in; i++)
        alike = call->in[i].kind == TD_TENSOR
              ? lies_as(call->in[i].as.tensor, x)
                && td_on_host(call->in[i].as.tensor)
              : call->in[i].kind == TD_SCALAR && *n <= TD_LANES
                && row != TD_ROW_pow;
    return alike ? TD_ISA_PICK(td_elementwise)->loop[row][x->dtype]
                 : NULL;
}

/* rows: function run_row */
static bool run_job(td_call *call, const job *j)
{
    td_dims shape;
    if (!shape_of_result(j, &shape))
        return false;
    /* rows: find the device of the operands */
    td_device device = { TD_DEVICE_CPU, 0 };
    for (int i = 0; i < j->n && device.kind == TD_DEVICE_CPU; i++)
        if (j->in[i].kind != TD_SCALAR)
            device = td_device_of(j->in[i].as.tensor);
    td_tensor *out = call->into;
    /* rows: make a result unless one is given that fits */
    const td_dims have = td_shape_of(out);
    if (out && out->dtype == j->result && td_dims_equal(&have, &shape)
        && td_on_host(out)
        && last_of(out) - out->offset >= td_numel(out) - 1)
        out = td_writes_alone(out) ? td_share(out) : NULL;
    else
        out = td_tensor_new(shape, j->result, device);
    return td_return(call, out) && compute(j, out);
}

static bool run_row(td_call *call, int row)
{
    job j;
    int64_t n;
    td_loop *loop = short_way(call, row, &n);
    if (loop == NULL)
        return describe(&j, call, row) && run_job(call, &j);
    /* rows: take the short way */
    const td_tensor *x = call->in[0].as.tensor;
    const td_dtype result = flags_of[row] & TO_BOOL ? TD_BOOL : x->dtype;
    const int64_t wide = td_dtype_size(x->dtype);
    const int64_t size[3] = { td_dtype_size(result), wide, wide };
    double lanes[TD_LANES];
    td_tensor *out = td_tensor_like(x, result);
    if (!td_return(call, out))
        return false;
    char *data[3] = { td_at(out), td_at(x), (char *)lanes };
    if (call->n_in > 1 && call->in[1].kind == TD_TENSOR)
        data[2] = td_at(call->in[1].as.tensor);
    else if (call->n_in > 1)
        td_convert(x->dtype, lanes, 1,
                   td_scalar_dtype(call->in[1].as.scalar),
                   &call->in[1].as.scalar.as, 0, TD_LANES);
    td_frame_line(loop, call->n_in + 1, data, size, n);
    return true;
}

/* arithmetic: updates in place */
/* rows: function td_may_store */
bool td_may_store(const td_tensor *x, td_dtype dtype,
                  const td_dims *shape)
{
    char own[TD_SHAPE_TEXT], other[TD_SHAPE_TEXT];
    const td_dims have = td_shape_of(x);
    if (td_dtype_category(dtype) > td_dtype_category(x->dtype))
        return td_fail(TD_ERROR_RUNTIME, "elementwise",
                       "the result is %s and cannot be stored in %s",
                       td_dtype_name(dtype), td_dtype_name(x->dtype));
    return td_dims_equal(&have, shape)
        || td_fail(TD_ERROR_RUNTIME, "elementwise", "a tensor of shape "
                   "%s cannot hold the broadcast shape %s",
                   td_shape_text(x, own), td_dims_text(shape, other));
}

/* rows: function run_in_place */
static bool run_in_place(td_call *call, int row)
{
    job j;
    td_dims shape;
    td_tensor *x = td_input(call, 0);
    if (!describe(&j, call, row) || !shape_of_result(&j, &shape)
        || !td_may_store(x, j.dtype, &shape) || !td_writes_alone(x))
        return false;
    if (!td_return(call, td_share(x)) || !compute(&j, x))
        return false;
    td_bump_version(x);
    return true;
}

/* rows: kernels of all rows */
#define ROW(name, ...)                                                \
    bool name##_kernel(td_call *call)                                 \
    {                                                                 \
        return run_row(call, TD_ROW_##name);                          \
    }
#include "ops/elementwise.inc"

/* rows: kernels of rows in place */
#define INPLACE(name, row, sentence)                                  \
    bool name##_kernel(td_call *call)                                 \
    {                                                                 \
        return run_in_place(call, TD_ROW_##row);                      \
    }
#include "ops/elementwise.inc"

/* arithmetic: function where_kernel */
static bool run_as(td_call *call, job *j, td_dtype type)
{
    j->dtype = j->result = type;
    return settle_scalars(j) && has_loop(j) && run_job(call, j);
}

bool where_kernel(td_call *call)
{
    job j = { .row = TD_ROW_where, .n = 3, .in = call->in };
    if (call->in[0].as.tensor->dtype != TD_BOOL)
        return td_fail(TD_ERROR_RUNTIME, "elementwise",
                       "the condition must be bool, got %s",
                       td_dtype_name(call->in[0].as.tensor->dtype));
    return run_as(call, &j, td_result_type(2, call->in + 1));
}

/* arithmetic: function is_nan */
static bool is_nan(const td_value *v)
{
    return v->kind == TD_SCALAR && v->as.scalar.kind == TD_SCALAR_FLOAT
        && isnan(v->as.scalar.as.f);
}

/* arithmetic: function clamp_kernel */
bool clamp_kernel(td_call *call)
{
    const td_value *low = &call->attr[0], *high = &call->attr[1];
    const bool lower = low->kind != TD_NONE && !is_nan(high);
    const bool upper = high->kind != TD_NONE
                    && (!lower || !is_nan(low));
    td_value in[3] = { call->in[0] };
    job j = { .n = 1, .in = in };
    if (lower)
        in[j.n++] = *low;
    if (upper)
        in[j.n++] = *high;
    if (!lower && !upper)
        return td_fail(TD_ERROR_VALUE, "elementwise",
                       "at least one of min and max must be given");
    j.row = lower && upper ? TD_ROW_clamp
          : lower ? TD_ROW_maximum : TD_ROW_minimum;
    return run_as(call, &j, td_result_type(j.n, in));
}

/* arithmetic: function addcmul_kernel */
bool addcmul_kernel(td_call *call)
{
    const td_value v = call->attr[0];
    td_value in[] = { call->in[0], call->in[1], call->in[2], v };
    td_value pair[] = { in[1], v };
    td_call times = { .op = call->op, .n_in = 2, .in = pair };
    job j = { .row = TD_ROW_addcmul, .n = 3, .in = in };
    job product = { .row = TD_ROW_mul, .n = 2, .in = pair };
    const td_dtype type = td_result_type(4, in);
    if (td_scalar_double(v.as.scalar) != 1) {
        if (!run_as(&times, &product, td_dtype_wide(type)))
            return false;
        in[1].as.tensor = times.out[0];
    }
    const bool done = run_as(call, &j, type);
    td_release(times.out[0]);
    return done;
}

TD_TYPED_AS(addcmul, addcmul,
            (td_v_tensor(x), td_v_tensor(a), td_v_tensor(b)),
            (td_v_scalar(value)), td_tensor *x, td_tensor *a,
            td_tensor *b, td_scalar value)

/* rows: typed functions of all rows */
#define WITH_SCALAR(function, op)                                     \
    TD_TYPED_AS(function, op, (td_v_tensor(x), td_v_scalar(s)), (),   \
                td_tensor *x, td_scalar s)
#define FUNCTIONS_1(name) TD_OF_ONE(name)
#define FUNCTIONS_2(name)                                             \
    TD_OF_TWO(name) WITH_SCALAR(name##_scalar, name)
#define ROW(name, formula, sentence, operands, dtypes, flags)         \
    FUNCTIONS_##operands(name)
#define CURVE_OF(name, parameter, formula, sentence)                  \
    WITH_SCALAR(name, name)
#define INPLACE(name, row, sentence)                                  \
    TD_OF_TWO(name) WITH_SCALAR(row##_scalar_, name)
#include "ops/elementwise.inc"

/* rows: functions with the scalar first */
#define SCALAR_FIRST(function, name)                                  \
    TD_TYPED_AS(function, name, (td_v_scalar(s), td_v_tensor(x)), (), \
                td_tensor *x, td_scalar s)
SCALAR_FIRST(rsub_scalar, sub)
SCALAR_FIRST(rdiv_scalar, div)
SCALAR_FIRST(rpow_scalar, pow)

/* arithmetic: function td_clamp */
static td_value bound(const td_tensor *x, td_opt_f64 given)
{
    const bool whole = x != NULL && !td_dtype_is_floating(x->dtype)
                    && fabs(given.value) < 9e15
                    && given.value == floor(given.value);
    if (!given.given)
        return td_v_none();
    return whole ? td_v_int((int64_t)given.value)
                 : td_v_float(given.value);
}

TD_TYPED(clamp, (bound(x, options.min), bound(x, options.max)),
         td_clamp_options options)

/* arithmetic: functions for where */
#define CHOOSING(function, other, type)                               \
    TD_TYPED_AS(function, where,                                      \
                (td_v_tensor(c), td_v_tensor(a), other(b)), (),       \
                td_tensor *c, td_tensor *a, type b)
CHOOSING(where, td_v_tensor, td_tensor *)
CHOOSING(where_scalar, td_v_scalar, td_scalar)
