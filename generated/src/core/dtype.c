/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "tensors": edit that, not this file. */
#include "core/conversions.h"
#include "core/runtime.h"
#include "core/tensor.h"

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

/* tensors: storing one element */
#define IS_FLOATING(v) _Generic((v), float: 1, double: 1, default: 0)
#define STORE_INTEGER(type, low, high, v) \
    (IS_FLOATING(v) ? (type)to_integer((double)(v), low, high) \
                    : (type)(int64_t)(v))
#define STORE_FLOAT32(v) ((float)(v))
#define STORE_FLOAT64(v) ((double)(v))
#define STORE_INT64(v) STORE_INTEGER(int64_t, INT64_MIN, INT64_MAX, v)
#define STORE_INT32(v) STORE_INTEGER(int32_t, INT32_MIN, INT32_MAX, v)
#define STORE_UINT8(v) STORE_INTEGER(uint8_t, 0, UINT8_MAX, v)
#define STORE_BOOL(v) ((uint8_t)((v) != 0))
#define STORE_FLOAT16(v) to_half((float)(v))
#define STORE_BFLOAT16(v) to_bfloat((float)(v))
#define STORE_INT8(v) STORE_INTEGER(int8_t, INT8_MIN, INT8_MAX, v)
#define STORE_INT16(v) STORE_INTEGER(int16_t, INT16_MIN, INT16_MAX, v)

/* tensors: lists of types for conversions */
#define EACH_DESTINATION(DO, ...) \
    DO(FLOAT32, float, __VA_ARGS__) DO(FLOAT64, double, __VA_ARGS__) \
    DO(INT64, int64_t, __VA_ARGS__) DO(INT32, int32_t, __VA_ARGS__) \
    DO(UINT8, uint8_t, __VA_ARGS__) DO(BOOL, uint8_t, __VA_ARGS__) \
    DO(FLOAT16, uint16_t, __VA_ARGS__) DO(INT8, int8_t, __VA_ARGS__) \
    DO(BFLOAT16, uint16_t, __VA_ARGS__) DO(INT16, int16_t, __VA_ARGS__)
#define EACH_SOURCE(DO) \
    DO(FLOAT32, float, ) DO(FLOAT64, double, ) \
    DO(INT64, int64_t, ) DO(INT32, int32_t, ) \
    DO(UINT8, uint8_t, ) DO(BOOL, uint8_t, ) \
    DO(FLOAT16, uint16_t, from_half) DO(INT8, int8_t, ) \
    DO(BFLOAT16, uint16_t, from_bfloat) DO(INT16, int16_t, )

/* tensors: one conversion for each pair */
#define CONVERSION(to, TO, from, FROM, READ) \
static void from##_to_##to(TO *restrict d, int64_t ds, \
                           const FROM *restrict s, int64_t ss, \
                           int64_t n) \
{ \
    if (ds == 1 && ss == 1) \
        for (int64_t i = 0; i < n; i++) \
            d[i] = STORE_##to(READ(s[i])); \
    else \
        for (int64_t i = 0; i < n; i++) \
            d[i * ds] = STORE_##to(READ(s[i * ss])); \
}
#define CONVERSIONS_FROM(from, FROM, READ) \
    EACH_DESTINATION(CONVERSION, from, FROM, READ)
EACH_SOURCE(CONVERSIONS_FROM)

/* tensors: function fill */
enum { FILL_PIECE = 4096 };         /* bytes */
typedef uint32_t __attribute__((may_alias)) word;

/* n elements, of which the first is there. */
static void fill(char *to, int64_t size, int64_t n)
{
    const int64_t few = size == 4 ? n < 16 ? n : 16 : 1, all = n * size;
    for (int64_t i = 1; i < few; i++)
        ((word *)to)[i] = *(word *)to;
    for (int64_t have = few * size, more; have < all; have += more) {
        more = have < FILL_PIECE ? have : FILL_PIECE;
        more = more < all - have ? more : all - have;
        memmove(to + have, to, (size_t)more);
    }
}
/* tensors: function td_convert */
#define CASE_TO(to, TO, from, FROM, READ) \
    case TD_##to: from##_to_##to(dst, ds, src, ss, n); return;
#define CASE_FROM(from, FROM, READ) \
    case TD_##from: \
        switch (to) { \
            EACH_DESTINATION(CASE_TO, from, FROM, READ) \
            default: return; \
        }

void td_convert(td_dtype to, void *dst, int64_t ds, td_dtype from,
                const void *src, int64_t ss, int64_t n)
{
    const int64_t size = (int64_t)td_dtype_size(to);
    if (to == from && (n == 1 || (ds == 1 && ss == 1))) {
        memmove(dst, src, (size_t)(n * size));
        return;
    }
    if (ds == 1 && ss == 0 && n > 1) {
        td_convert(to, dst, 1, from, src, 1, 1);
        fill(dst, size, n);
        return;
    }
    if (to == from && size == 2)
        to = from = TD_INT16;
    switch (from) {
        EACH_SOURCE(CASE_FROM)
        default: return;
    }
}
