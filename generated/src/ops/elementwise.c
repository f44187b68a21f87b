/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "arithmetic": edit that, not this file. */
#include "ops/elementwise.h"
#include "core/device.h"
#include "core/registry.h"
#include <math.h>
#include <treadle/elementwise.h>

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

/* arithmetic: steps from a call to a loop */
/* rows: function hint_for */
static const char *hint_for(int row, td_dtype dtype)
{
    if (dtype == TD_BOOL && row == TD_ROW_neg)
        return "; logical_not() inverts them";
    if (dtype == TD_BOOL && row == TD_ROW_sub)
        return "; ne() is true where they differ";
    return "";
}

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
    if (loop_of(j) == NULL)
        return td_fail(TD_ERROR_RUNTIME, "elementwise",
                       "not defined for %s tensors%s",
                       td_dtype_name(j->dtype),
                       hint_for(j->row, j->dtype));
    return true;
}

/* rows: function fits */
static bool fits(const td_value *value, td_dtype dtype)
{
    const td_scalar s = value->as.scalar;
    return value->kind != TD_SCALAR
        || (td_scalar_fits(s, dtype)
            && (dtype != TD_UINT8 || td_scalar_double(s) >= 0));
}

/* rows: function settle_scalars */
static bool settle_scalars(job *j)
{
    for (int i = 0; i < j->n; i++) {
        if (fits(&j->in[i], j->dtype))
            continue;
        if (j->result != TD_BOOL)
            return td_fail(TD_ERROR_VALUE, "elementwise",
                           "%" PRId64 " does not fit %s",
                           j->in[i].as.scalar.as.i,
                           td_dtype_name(j->dtype));
        j->dtype = TD_INT64;
    }
    return true;
}

/* arithmetic: function refuses_power */
static bool refuses_power(const job *j)
{
    const td_value *b = &j->in[1];
    return j->row == TD_ROW_pow && !td_dtype_is_floating(j->dtype)
        && b->kind == TD_SCALAR && b->as.scalar.kind == TD_SCALAR_INT
        && b->as.scalar.as.i < 0
        && !td_fail(TD_ERROR_RUNTIME, "elementwise",
                    "integers to negative integer powers are not "
                    "integers; convert to a float first");
}

static bool is_square(const job *j)
{
    return j->row == TD_ROW_pow && j->in[1].kind == TD_SCALAR
        && td_v_double(&j->in[1]) == 2;
}

/* activations: further questions about a job */
#include <treadle/reductions.h>

static bool has_zero(const td_value *v)
{
    if (v->kind == TD_SCALAR)
        return td_scalar_int(v->as.scalar) == 0;
    td_scope_begin();
    td_tensor *zeros = td_eq_scalar(v->as.tensor, td_int(0));
    td_tensor *any = td_any(zeros, (td_reduce_options){ .keepdim = 0 });
    const bool found = any != NULL && td_item(any).as.b;
    td_scope_end();
    return found;
}

static bool divides_by_zero(const job *j)
{
    const bool divides = j->row == TD_ROW_floor_divide
        || j->row == TD_ROW_remainder || j->row == TD_ROW_fmod;
    return divides && !td_dtype_is_floating(j->dtype)
        && !td_self()->symbolic && has_zero(&j->in[1])
        && !td_fail(TD_ERROR_RUNTIME, "elementwise",
            "ZeroDivisionError: an integer is divided by zero");
}

/* rows: function describe */
static bool describe(job *j, const td_call *call, int row, int flags)
{
    *j = (job){ .row = row, .n = call->n_in, .in = call->in };
    for (int i = 0; i < j->n; i++)
        if (j->in[i].kind == TD_NONE)
            return td_fail(TD_ERROR_VALUE, "elementwise", "operand %d "
                           "is missing", i + 1);
    if ((flags & OF_FLOAT) != 0)        /* a slope has no vote */
        j->dtype = dtype_of(&j->in[0]);
    else
        j->dtype = td_result_type(j->n, j->in);
    if ((flags & AS_FLOAT) != 0 && !td_dtype_is_floating(j->dtype))
        j->dtype = td_default_dtype();
    j->result = (flags & TO_BOOL) != 0 ? TD_BOOL : j->dtype;
    if (!settle_scalars(j) || !has_loop(j) || refuses_power(j))
        return false;
    if (is_square(j))
        j->row = TD_ROW_square, j->n = 1;
    /* activations: refuse further jobs */
    if (divides_by_zero(j))
        return false;
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

/* rows: function device_of */
static td_device device_of(const job *j)
{
    td_device device = { TD_DEVICE_CPU, 0 };
    for (int i = 0; i < j->n && device.kind == TD_DEVICE_CPU; i++)
        if (j->in[i].kind != TD_SCALAR)
            device = td_device_of(j->in[i].as.tensor);
    return device;
}

/* rows: function wanted */
static td_dtype wanted(const job *j, int i)
{
    return j->row == TD_ROW_where && i == 0 ? TD_BOOL : j->dtype;
}

/* rows: function runs_as_a_line */
static bool runs_as_a_line(const job *j, const td_tensor *out)
{
    const int64_t n = td_numel(out);
    char *data[TD_SPACE_OPERANDS] = { td_at(out) };
    td_dtype as[TD_SPACE_OPERANDS] = { j->result };  /* no half */
    bool line = n <= TD_BLOCK && out->dtype == j->result
             && td_is_contiguous(out);
    for (int i = 0; line && i < j->n; i++) {
        const td_tensor *x = j->in[i].as.tensor;
        as[i + 1] = wanted(j, i);
        line = j->in[i].kind != TD_SCALAR && x->dtype == as[i + 1]
            && td_numel(x) == n && td_is_contiguous(x);
        data[i + 1] = line ? td_at(x) : NULL;
    }
    if (line)
        td_frame_line(loop_of(j), j->n + 1, data, as, n);
    return line;
}

/* rows: function compute_elsewhere */
static bool compute_elsewhere(const job *j, td_tensor *out)
{
    static const char *const names[] = {
#define ROW(name, ...) #name,
#include "ops/elementwise.inc"
        "where", "clamp"
    };
    const td_call call = { .n_in = j->n, .in = j->in, .out = { out } };
    return td_compute_elsewhere(&call, names[j->row], j->dtype, true);
}

/* rows: function compute */
static bool compute(const job *j, td_tensor *out)
{
    td_dtype as[TD_SPACE_OPERANDS] = { td_dtype_wide(j->result) };
    td_frame f;
    if (!td_on_host(out))
        return compute_elsewhere(j, out);
    if (runs_as_a_line(j, out))
        return true;
    td_space_begin(&f.space, out, TD_ALL_DIMS);
    for (int i = 0; i < j->n; i++) {
        as[i + 1] = wanted(j, i);
        if (j->in[i].kind == TD_SCALAR)
            td_frame_scalar(&f, j->in[i].as.scalar, as[i + 1]);
        else
            td_space_add(&f.space, j->in[i].as.tensor, TD_ALL_DIMS);
    }
    return td_frame_run(&f, loop_of(j), as);
}

/* rows: the short way */
static bool lies_as(const td_tensor *y, const td_tensor *x)
{
    bool alike = y->dtype == x->dtype && y->rank == x->rank;
    for (int d = 0; alike && d < x->rank; d++)
        alike = y->shape[d] == x->shape[d]
             && y->strides[d] == x->strides[d];
    return alike;
}

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

static char *fill_lanes(double *lanes, td_dtype dtype, td_scalar s)
{
    td_convert(dtype, lanes, 1, td_scalar_dtype(s), &s.as, 0, TD_LANES);
    return (char *)lanes;
}

static bool run_short(td_call *call, td_loop *loop, int flags,
                      int64_t n)
{
    const td_tensor *x = call->in[0].as.tensor;
    td_dtype as[3] = { flags & TO_BOOL ? TD_BOOL : x->dtype,
                       x->dtype, x->dtype };
    char *data[3];
    double lanes[TD_LANES];
    td_tensor *out = td_tensor_like(x, as[0]);
    if (!td_return(call, out))
        return false;
    data[0] = td_at(out);
    for (int i = 0; i < call->n_in; i++)
        data[i + 1] = call->in[i].kind == TD_TENSOR
            ? td_at(call->in[i].as.tensor)
            : fill_lanes(lanes, x->dtype, call->in[i].as.scalar);
    td_frame_line(loop, call->n_in + 1, data, as, n);
    return true;
}

/* rows: function run_row */
static bool run_job(td_call *call, const job *j)
{
    td_dims shape;
    if (!shape_of_result(j, &shape))
        return false;
    td_tensor *out = td_tensor_new(shape, j->result, device_of(j));
    return td_return(call, out) && compute(j, out);
}

static bool run_row(td_call *call, int row, int flags)
{
    job j;
    int64_t n;
    td_loop *loop = short_way(call, row, &n);
    if (loop != NULL)
        return run_short(call, loop, flags, n);
    return describe(&j, call, row, flags) && run_job(call, &j);
}

/* arithmetic: updates in place */
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

/* rows: function overlaps */
/* Do x and y share bytes other than as one and the same view? */
static bool overlaps(const td_tensor *x, const td_tensor *y)
{
    return (x->offset != y->offset || !lies_as(x, y))
        && td_share_bytes(x, y);
}

/* rows: function may_update */
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

static bool may_update(const job *j, const td_tensor *x)
{
    td_dims shape;
    return shape_of_result(j, &shape)
        && td_may_store(x, j->dtype, &shape)
        && td_writes_alone(x);
}

/* rows: function run_in_place */
static bool run_in_place(td_call *call, int row, int flags)
{
    job j;
    td_tensor *x = call->in[0].as.tensor, *copy = NULL;
    td_value in[2] = { call->in[0], call->in[1] };
    if (!describe(&j, call, row, flags) || !may_update(&j, x))
        return false;
    if (in[1].kind != TD_SCALAR && overlaps(x, in[1].as.tensor)) {
        copy = td_copied(in[1].as.tensor, in[1].as.tensor->dtype);
        if (copy == NULL)
            return false;
        in[1].as.tensor = copy;
    }
    j.in = in;
    const bool done = td_return(call, td_share(x)) && compute(&j, x);
    if (done)
        td_bump_version(x);
    td_release(copy);
    return done;
}

/* rows: kernels of all rows */
#define ROW(name, formula, sentence, operands, dtypes, flags)         \
    bool name##_kernel(td_call *call)                                 \
    {                                                                 \
        return run_row(call, TD_ROW_##name, flags);                   \
    }
#include "ops/elementwise.inc"

/* rows: kernels of rows in place */
static const uint8_t flags_of[TD_ROW_COUNT] = {
#define ROW(name, formula, sentence, operands, dtypes, flags)         \
    [TD_ROW_##name] = flags,
#include "ops/elementwise.inc"
};
#define INPLACE(name, row, sentence)                                  \
    bool name##_kernel(td_call *call)                                 \
    {                                                                 \
        return run_in_place(call, TD_ROW_##row,                       \
                            flags_of[TD_ROW_##row]);                  \
    }
#include "ops/elementwise.inc"

/* arithmetic: function where_kernel */
bool where_kernel(td_call *call)
{
    job j = { .row = TD_ROW_where, .n = 3, .in = call->in };
    j.dtype = j.result = td_result_type(2, call->in + 1);
    if (call->in[0].as.tensor->dtype != TD_BOOL)
        return td_fail(TD_ERROR_RUNTIME, "elementwise",
                       "the condition must be bool, got %s",
                       td_dtype_name(call->in[0].as.tensor->dtype));
    return settle_scalars(&j) && has_loop(&j) && run_job(call, &j);
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
    j.dtype = j.result = td_result_type(j.n, in);
    return settle_scalars(&j) && has_loop(&j) && run_job(call, &j);
}

/* rows: functions that run a row by number */
static td_tensor *run_1(int op, td_tensor *x)
{
    const td_value in[] = { td_v_tensor(x) };
    return td_run1(&td_ops[op], 1, in, 0, NULL);
}

static td_tensor *run_2(int op, td_value a, td_value b)
{
    const td_value in[] = { a, b };
    return td_run1(&td_ops[op], 2, in, 0, NULL);
}

/* rows: typed functions of all rows */
#define FUNCTIONS_1(name)                                             \
    td_tensor *td_##name(td_tensor *x)                                \
    {                                                                 \
        return run_1(TD_OP_##name, x);                                \
    }
#define PAIR(function, op)                                            \
    td_tensor *td_##function(td_tensor *a, td_tensor *b)              \
    {                                                                 \
        return run_2(op, td_v_tensor(a), td_v_tensor(b));             \
    }
#define WITH_SCALAR(function, op)                                     \
    td_tensor *td_##function(td_tensor *x, td_scalar s)               \
    {                                                                 \
        return run_2(op, td_v_tensor(x), td_v_scalar(s));             \
    }
#define FUNCTIONS_2(name)                                             \
    PAIR(name, TD_OP_##name) WITH_SCALAR(name##_scalar, TD_OP_##name)
#define ROW(name, formula, sentence, operands, dtypes, flags)         \
    FUNCTIONS_##operands(name)
#define CURVE_OF(name, parameter, formula, sentence)                  \
    WITH_SCALAR(name, TD_OP_##name)
#define INPLACE(name, row, sentence)                                  \
    PAIR(name, TD_OP_##name) WITH_SCALAR(row##_scalar_, TD_OP_##name)
#include "ops/elementwise.inc"

/* rows: functions with the scalar first */
#define SCALAR_FIRST(function, name)                                  \
    td_tensor *td_##function(td_tensor *x, td_scalar s)               \
    {                                                                 \
        return run_2(TD_OP_##name, td_v_scalar(s), td_v_tensor(x));   \
    }
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

td_tensor *td_clamp(td_tensor *x, td_clamp_options options)
{
    return TD_CALL(clamp, x, bound(x, options.min),
                   bound(x, options.max));
}

/* arithmetic: functions for where */
td_tensor *td_where(td_tensor *condition, td_tensor *a, td_tensor *b)
{
    return TD_CALL3(where, condition, a, b);
}

td_tensor *td_where_scalar(td_tensor *condition, td_tensor *a,
                           td_scalar b)
{
    return td_run1(&td_ops[TD_OP_where], TD_VALUES(
        td_v_tensor(condition), td_v_tensor(a), td_v_scalar(b)),
        0, NULL);
}
