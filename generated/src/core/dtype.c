/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "tensors": edit that, not this file. */
#include "core/runtime.h"
#include "core/tensor.h"
#include "core/conversions.inc"
/* rows: includes of the lines of this machine */
#include "ops/kernels/conversion-kernels.h"

/* tensors: table of the dtypes */
typedef struct {
    const char *name;
    size_t size;
    int category;           /* 1 bool, 2 integer, 3 floating */
    bool computes;
} dtype_facts;

static const dtype_facts facts[TD_DTYPE_COUNT] = {
    [TD_DTYPE_NONE] = { "none", 0, 0, false },
    [TD_FLOAT32] = { "float32", 4, 3, true },
    [TD_FLOAT64] = { "float64", 8, 3, true },
    [TD_INT64] = { "int64", 8, 2, true },
    [TD_INT32] = { "int32", 4, 2, true },
    [TD_UINT8] = { "uint8", 1, 2, true },
    [TD_BOOL] = { "bool", 1, 1, true },
    [TD_FLOAT16] = { "float16", 2, 3, false },
    [TD_BFLOAT16] = { "bfloat16", 2, 3, false },
    [TD_INT8] = { "int8", 1, 2, false },
    [TD_INT16] = { "int16", 2, 2, false },
};

/* tensors: functions that ask about dtypes */
static const dtype_facts *facts_of(td_dtype dtype)
{
    const bool known = dtype > 0 && dtype < TD_DTYPE_COUNT;
    return &facts[known ? dtype : TD_DTYPE_NONE];
}
const char *td_dtype_name(td_dtype dtype)
{
    return facts_of(dtype)->name;
}

size_t td_dtype_size(td_dtype dtype)
{
    return facts_of(dtype)->size;
}
int td_dtype_category(td_dtype dtype)
{
    return facts_of(dtype)->category;
}

bool td_dtype_is_floating(td_dtype dtype)
{
    return facts_of(dtype)->category == 3;
}

bool td_dtype_is_integer(td_dtype dtype)
{
    return facts_of(dtype)->category == 2;
}

bool td_dtype_computes(td_dtype dtype)
{
    return facts_of(dtype)->computes;
}
td_dtype td_dtype_wide(td_dtype dtype)
{
    const bool half = dtype == TD_FLOAT16 || dtype == TD_BFLOAT16;
    return half ? TD_FLOAT32 : dtype;
}

/* tensors: function td_promote */
td_dtype td_promote(td_dtype a, td_dtype b)
{
    if (a == b)
        return a;
    const dtype_facts *fa = facts_of(a), *fb = facts_of(b);
    if (fa->category != fb->category)
        return fa->category > fb->category ? a : b;
    /* tensors: promote two of one category */
    if (fa->size != fb->size)
        return fa->size > fb->size ? a : b;
    return fa->category == 3 ? TD_FLOAT32 : TD_INT16;
}

/* tensors: functions of the default dtype */
td_dtype td_default_dtype(void)
{
    const int chosen = td_process()->default_dtype;
    return chosen ? (td_dtype)chosen : TD_FLOAT32;
}

bool td_set_default_dtype(td_dtype dtype)
{
    if (dtype != TD_FLOAT32 && dtype != TD_FLOAT64)
        return td_fail(TD_ERROR_TYPE, "set_default_dtype",
                       "expected float32 or float64, got %s",
                       td_dtype_name(dtype));
    td_process()->default_dtype = (int)dtype;
    return true;
}

/* tensors: functions of scalars */
double td_scalar_double(td_scalar s)
{
    return s.kind == TD_SCALAR_FLOAT ? s.as.f :
           s.kind == TD_SCALAR_INT ? (double)s.as.i : s.as.b;
}

int64_t td_scalar_int(td_scalar s)
{
    return s.kind == TD_SCALAR_FLOAT ? to_integer(s.as.f, INT64_MIN,
                                                  INT64_MAX) :
           s.kind == TD_SCALAR_INT ? s.as.i : s.as.b;
}

td_dtype td_scalar_dtype(td_scalar s)
{
    return s.kind == TD_SCALAR_FLOAT ? TD_FLOAT64 :
           s.kind == TD_SCALAR_INT ? TD_INT64 : TD_BOOL;
}

/* tensors: function move */
/* n elements of `size` bytes, steps in elements. */
static void move(int64_t size, char *restrict to, int64_t ds,
                 const char *restrict from, int64_t ss, int64_t n)
{
#define MOVE(bytes)                                                   \
    case bytes:                                                       \
        if (ds == 1 && ss == -1)                                      \
            for (int64_t i = 0; i < n; i++)                           \
                memcpy(to + i * bytes, from - i * bytes, bytes);      \
        else                                                          \
            for (int64_t i = 0; i < n; i++)                           \
                memcpy(to + i * ds * bytes, from + i * ss * bytes,    \
                       bytes);                                        \
        return;
    switch (size) { MOVE(1) MOVE(2) MOVE(4) MOVE(8) }
}
/* tensors: function td_convert */
enum { CONVERT_PIECE = 128 };       /* elements */

__attribute__((noinline))
static void convert_pieces(const td_conversion_loops *loops,
                           td_dtype to, char *dst, int64_t ds,
                           td_dtype from, const char *src, int64_t ss,
                           int64_t n)
{
    const int64_t size = (int64_t)td_dtype_size(to);
    const int64_t wide = (int64_t)td_dtype_size(from);
    char in[CONVERT_PIECE * 8], out[CONVERT_PIECE * 8];
    for (int64_t m; n > 0; n -= m) {
        m = n < CONVERT_PIECE ? n : CONVERT_PIECE;
        if (ss != 1)
            move(wide, in, 1, src, ss, m);
        loops->line(to, ds == 1 ? dst : out, from,
                    ss == 1 ? src : in, m);
        if (ds != 1)
            move(size, dst, ds, out, 1, m);
        src += m * ss * wide;
        dst += m * ds * size;
    }
}

void td_convert(td_dtype to, void *dst, int64_t ds, td_dtype from,
                const void *src, int64_t ss, int64_t n)
{
    const int64_t size = (int64_t)td_dtype_size(to);
    const bool one = n == 1, dense = (ss == 1 && ds == 1) || one;
    static const td_conversion_loops own = { .line = convert_line };
    const td_conversion_loops *loops = &own;
    /* rows: take the lines of this machine */
    loops = TD_ISA_PICK(td_conversions);
    if (ds == 1 && ss == 0 && n > 1)
        td_convert_each(to, dst, n, from, src, 1, 1);
    else if (to != from && dense)
        loops->line(to, dst, from, src, n);
    else if (to != from)
        convert_pieces(loops, to, dst, ds, from, src, ss, n);
    else if (dense && !one)
        memmove(dst, src, (size_t)(n * size));
    else
        move(size, dst, ds, src, ss, n);
}

/* tensors: function td_convert_each */
void td_convert_each(td_dtype to, void *dst, int64_t times,
                     td_dtype from, const void *src, int64_t ss,
                     int64_t n)
{
    static const td_conversion_loops own = { .fill = fill_lines };
    const td_conversion_loops *loops = &own;
    const int64_t size = (int64_t)td_dtype_size(to);
    _Alignas(8) char each[CONVERT_PIECE * 8];
    /* rows: take the lines of this machine */
    loops = TD_ISA_PICK(td_conversions);
    for (int64_t i = 0, m; i < n; i += m) {
        m = n - i < CONVERT_PIECE ? n - i : CONVERT_PIECE;
        td_convert(to, each, 1, from, (const char *)src
                   + i * ss * (int64_t)td_dtype_size(from), ss, m);
        loops->fill((char *)dst + i * times * size, size, times,
                    each, m);
    }
}
