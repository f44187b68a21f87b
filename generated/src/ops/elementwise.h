/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rows": edit that, not this file. */
/* The loops of all rows, by row and by dtype of the operands; NULL
   where a row does not exist for a dtype. */
#pragma once
#include "core/frame.h"
#include "core/isa.h"
#include <treadle/op.h>

/* rows: numbers of the rows */
enum {
#define ROW(name, ...) TD_ROW_##name,
#include "ops/elementwise.inc"
    TD_ROW_where,
    TD_ROW_clamp,
    TD_ROW_addcmul,
    TD_ROW_COUNT
};

typedef struct {
    td_loop *loop[TD_ROW_COUNT][TD_BOOL + 1];
} td_elementwise_level;

TD_ISA_TABLE(td_elementwise_level, td_elementwise);

/* The dtype in which operands are computed together. */
td_dtype td_result_type(int n, const td_value *in);

/* Whether x can hold a result of this dtype and shape; fails if not. */
bool td_may_store(const td_tensor *x, td_dtype dtype,
                  const td_dims *shape);

/* Whether elements of one may lie where elements of the other do. */
bool td_share_bytes(const td_tensor *x, const td_tensor *y);
