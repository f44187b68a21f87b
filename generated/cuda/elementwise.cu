/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "kernels": edit that, not this file. */
/* Elementwise rows, copies and conversions, of any layout. */
#include "plugin.cuh"

/* kernels: rows as functions of the device */
#define static static __device__
#include "../src/ops/kernels/primitives.h"
#undef static
#define AS_TYPE(name, count, NAMES, ...)                              \
    struct name##_row {                                               \
        enum { OPERANDS = count, CHOOSES = 0 };                       \
        template <typename T> static __device__ auto of(const T *v)   \
        {                                                             \
            NAMES                                                     \
            return __VA_ARGS__;                                       \
        }                                                             \
    };
#define NAME(x, k) const T x = v[k]; (void)x;
#define NAMES_1 NAME(x, 0)
#define NAMES_2 NAME(a, 0) NAME(b, 1)
#define ROW(name, formula, sentence, operands, dtypes, flags) \
    AS_TYPE(name, operands, NAMES_##operands, formula)
#define UNARY_RULE(name, gradient)                                    \
    AS_TYPE(name##_gradient, 3, NAME(g, 0) NAME(y, 1) NAME(x, 2),     \
            gradient)
#define GRADIENT_2(name, gradient)                                    \
    AS_TYPE(name, 4, NAME(g, 0) NAME(y, 1) NAME(a, 2) NAME(b, 3),     \
            gradient)
#define BINARY_RULE(name, gradient_a, gradient_b)                     \
    GRADIENT_2(name##_gradient_a, gradient_a)                         \
    GRADIENT_2(name##_gradient_b, gradient_b)
#include "../src/ops/elementwise.inc"
AS_TYPE(clamp, 3, NAME(x, 0) NAME(low, 1) NAME(high, 2),
        select(select(x < low, low, x) > high, high,
               select(x < low, low, x)))
AS_TYPE(addcmul, 3, NAME(x, 0) NAME(a, 1) NAME(b, 2), x + a * b)
AS_TYPE(move, 1, NAME(x, 0), x)

struct where_row {
    enum { OPERANDS = 3, CHOOSES = 1 };
    template <typename T> static __device__ T of(const T *v)
    {
        return v[0] != 0 ? v[1] : v[2];
    }
};

/* kernels: struct row_job */
enum { OPERANDS = 5 };          /* a result and up to four inputs */

struct row_job {
    char *data[OPERANDS];       /* NULL: a constant */
    int64_t constant[OPERANDS]; /* its bits */
    layout<OPERANDS> at;
};

/* kernels: function operand of a row */
template <typename Row, typename T>
static __device__ T operand(const row_job &j, int k, int64_t i)
{
    const char *data = j.data[k + 1];
    T value;
    if (data == NULL)
        memcpy(&value, &j.constant[k + 1], sizeof value);
    else if (Row::CHOOSES && k == 0)
        value = (T)((const uint8_t *)data)[i];
    else
        value = ((const T *)data)[i];
    return value;
}

/* kernels: kernel each */
/* Thread: 4 elements of the result, a block's width apart; block: 1024;
   grid: all.  Bytes an element in line: those of the operands and the
   result, each touched once; up to 32 for one that is not.  Limit:
   memory, or the divisions from three dimensions on. */
template <typename Row, typename T, typename R>
__global__ void each(row_job j)
{
    const int64_t first = (int64_t)blockIdx.x * TILE + threadIdx.x;
    T v[EACH][Row::OPERANDS];
    if (!j.at.in_line) {
        /* kernels: take one element after the other */
        for (int64_t i = first; i < j.at.total && i < first + TILE;
             i += THREADS) {
            int64_t at[OPERANDS];
            locate_any(j.at, i, at);
            for (int k = 0; k < Row::OPERANDS; k++)
                v[0][k] = operand<Row, T>(j, k, at[k + 1]);
            ((R *)j.data[0])[at[0]] = (R)Row::template of<T>(v[0]);
        }
        return;
    }
    for (int e = 0; e < EACH; e++)
        for (int k = 0; k < Row::OPERANDS; k++)
            if (first + e * THREADS < j.at.total)
                v[e][k] = operand<Row, T>(j, k, first + e * THREADS);
    for (int e = 0; e < EACH; e++)
        if (first + e * THREADS < j.at.total)
            ((R *)j.data[0])[first + e * THREADS]
                = (R)Row::template of<T>(v[e]);
}

/* kernels: table of the kernels of rows */
typedef void row_kernel(row_job);

struct row {
    const char *name;
    int operands;
    bool test;                          /* its result is bool */
    row_kernel *kernel[TD_BOOL + 1];
};
#define FLOATS(r) NULL, each<r, float, float>, each<r, double, double>
#define INTEGERS(r) each<r, int64_t, int64_t>, \
    each<r, int32_t, int32_t>, each<r, uint8_t, uint8_t>
#define ALL(r) FLOATS(r), INTEGERS(r), each<r, uint8_t, bool>
#define NUMBERS(r) FLOATS(r), INTEGERS(r)
#define WHOLE(r) NULL, NULL, NULL, INTEGERS(r), each<r, uint8_t, bool>
#define TESTS(r) NULL, each<r, float, bool>, each<r, double, bool>,   \
    each<r, int64_t, bool>, each<r, int32_t, bool>,                   \
    each<r, uint8_t, bool>, each<r, uint8_t, bool>
static_assert(TD_FLOAT32 == 1 && TD_FLOAT64 == 2 && TD_INT64 == 3
              && TD_INT32 == 4 && TD_UINT8 == 5 && TD_BOOL == 6,
              "the lists above are in the order of td_dtype");
#define ENTRY(name, test, LIST)                                       \
    { #name, name##_row::OPERANDS, test, { LIST(name##_row) } },
enum { ANY, AS_FLOAT, OF_FLOAT, TO_BOOL };
#define ROW(name, formula, sentence, operands, dtypes, flags) \
    ENTRY(name, flags == TO_BOOL, dtypes)
#define UNARY_RULE(name, ...) ENTRY(name##_gradient, false, FLOATS)
#define BINARY_RULE(name, ...)                                        \
    ENTRY(name##_gradient_a, false, FLOATS)                           \
    ENTRY(name##_gradient_b, false, FLOATS)
static const row rows[] = {
#include "../src/ops/elementwise.inc"
    ENTRY(where, false, ALL)
    ENTRY(clamp, false, NUMBERS)
    ENTRY(addcmul, false, NUMBERS)
};

/* kernels: functions between any two types */
#define static static __host__ __device__
#include "../src/core/conversions.h"
#undef static
#define LOAD(T, f) return (W)f(((const T *)data)[i])

template <typename W>
static __device__ W load(const char *data, td_dtype dtype, int64_t i)
{
    switch (dtype) {
    case TD_FLOAT32:  LOAD(float, );
    case TD_FLOAT64:  LOAD(double, );
    case TD_INT64:    LOAD(int64_t, );
    case TD_INT32:    LOAD(int32_t, );
    case TD_INT16:    LOAD(int16_t, );
    case TD_INT8:     LOAD(int8_t, );
    case TD_FLOAT16:  LOAD(uint16_t, from_half);
    case TD_BFLOAT16: LOAD(uint16_t, from_bfloat);
    default:          LOAD(uint8_t, );
    }
}
#define INTEGER(T, low, high)                                         \
    *(T *)at = std::is_same<W, double>::value                         \
             ? (T)to_integer((double)v, low, high) : (T)(int64_t)v;   \
    return;

template <typename W>
static __host__ __device__ void store(void *at, td_dtype dtype, W v)
{
    switch (dtype) {
    case TD_FLOAT32:  *(float *)at = (float)v; return;
    case TD_FLOAT64:  *(double *)at = (double)v; return;
    case TD_INT64:    INTEGER(int64_t, INT64_MIN, INT64_MAX)
    case TD_INT32:    INTEGER(int32_t, INT32_MIN, INT32_MAX)
    case TD_INT16:    INTEGER(int16_t, INT16_MIN, INT16_MAX)
    case TD_INT8:     INTEGER(int8_t, INT8_MIN, INT8_MAX)
    case TD_UINT8:    INTEGER(uint8_t, 0, UINT8_MAX)
    case TD_FLOAT16:  *(uint16_t *)at = to_half((float)v); return;
    case TD_BFLOAT16: *(uint16_t *)at = to_bfloat((float)v); return;
    default:          *(bool *)at = v != 0; return;
    }
}

/* kernels: functions that prepare a row */
static row_job job_of(const td_array *out, int n, const td_array *in,
                      td_dtype as)
{
    row_job j = {};
    const int64_t *strides[OPERANDS] = { out->strides };
    j.data[0] = (char *)out->data;
    for (int k = 1; k <= n; k++, in++) {
        const td_scalar s = in->scalar;
        j.data[k] = (char *)in->data;
        if (in->kind == TD_TENSOR)
            strides[k] = in->strides;
        else if (s.kind == TD_SCALAR_FLOAT)
            store<double>(&j.constant[k], as, s.as.f);
        else
            store<int64_t>(&j.constant[k], as, s.kind == TD_SCALAR_INT
                                               ? s.as.i : s.as.b);
    }
    j.at = lay_out(out, ~0u, strides);
    return j;
}

static bool launch_row(const td_task *task, row_kernel *kernel,
                       const row_job &j)
{
    return start(task, kernel, blocks_for(j.at.total, TILE), THREADS,
                 j);
}

/* kernels: kernel convert_each */
/* Thread: 4 elements; block: 1024; grid: all.  Bytes: both types, once.
   Limit: memory; on processors with few units for double, those. */
template <typename W>
__global__ void convert_each(row_job j, td_dtype to, int size,
                             td_dtype from)
{
    const int64_t first = (int64_t)blockIdx.x * TILE + threadIdx.x;
    for (int e = 0; e < EACH; e++) {
        int64_t at[OPERANDS];
        if (first + e * THREADS >= j.at.total)
            return;
        locate_any(j.at, first + e * THREADS, at);
        store<W>(j.data[0] + at[0] * size, to,
                 load<W>(j.data[1], from, at[1]));
    }
}
bool convert(const td_task *task, const td_array *out,
             const td_array *in)
{
    const row_job j = job_of(out, 1, in, in->dtype);
    return start(task, host->is_floating(in->dtype)
                       ? convert_each<double> : convert_each<int64_t>,
                 blocks_for(j.at.total, TILE), THREADS, j, out->dtype,
                 (int)host->size_of(out->dtype), in->dtype);
}

/* kernels: functions that convert an operand */
bool aside(const td_task *task, td_array *a, td_dtype dtype,
           scratch *room)
{
    int64_t n = 1;
    for (int d = a->rank - 1; d >= 0; d--) {
        a->strides[d] = n;
        n *= a->shape[d];
    }
    a->dtype = dtype;
    if (!room->take(task->device, (size_t)n * host->size_of(dtype)))
        return false;
    a->data = room->at;
    return true;
}

bool as_type(const td_task *task, td_array *a, td_dtype dtype,
             scratch *room)
{
    td_array from = *a, to;
    if (a->kind != TD_TENSOR || a->dtype == dtype)
        return true;
    for (int d = 0; d < a->rank; d++)
        from.shape[d] = from.strides[d] == 0 ? 1 : from.shape[d];
    to = from;
    if (!aside(task, &to, dtype, room) || !convert(task, &to, &from))
        return false;
    for (int d = 0; d < a->rank; d++)
        to.strides[d] = from.strides[d] == 0 ? 0 : to.strides[d];
    memcpy(to.shape, a->shape, sizeof to.shape);
    *a = to;
    return true;
}

/* kernels: functions that run a row */
static bool run_row(const td_task *task, const row *r)
{
    scratch room[OPERANDS];
    td_array in[OPERANDS], out = task->out[0];
    const td_dtype result = r->test ? TD_BOOL : task->dtype;
    if (task->n_in != r->operands || task->dtype > TD_BOOL)
        return unsupported(task);
    for (int k = 0; k < r->operands; k++) {
        const bool choice = k == 0 && strcmp(r->name, "where") == 0;
        in[k] = task->in[k];
        if (!choice && !as_type(task, &in[k], task->dtype, &room[k]))
            return false;
    }
    if (out.dtype != result && !aside(task, &out, result, &room[4]))
        return false;
    return launch_row(task, r->kernel[task->dtype],
                      job_of(&out, r->operands, in, task->dtype))
        && (out.dtype == task->out[0].dtype
            || convert(task, &task->out[0], &out));
}
bool run_elementwise(const td_task *task)
{
    for (const row &r : rows)
        if (strcmp(r.name, task->what) == 0)
            return run_row(task, &r);
    return unsupported(task);
}

/* kernels: functions that copy */
static bool run_copy(const td_task *task)
{
    const td_array *out = &task->out[0], *in = &task->in[0];
    if (in->kind == TD_TENSOR && in->dtype != out->dtype)
        return convert(task, out, in);
    return with_size(out->dtype, [&](auto zero) {
        typedef decltype(zero) T;
        return launch_row(task, each<move_row, T, T>,
                          job_of(out, 1, in, out->dtype));
    });
}

const named_task copies[] = {
    { "copy_", run_copy }, { "fill_", run_copy }, {}
};
