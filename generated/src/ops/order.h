/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "order": edit that, not this file. */
/* Short words for lines: their numbers, all but one of them. */
#pragma once
#include "core/tensor.h"
td_tensor *td_count_up(int64_t n);              /* 0, 1, ..., n - 1 */
td_tensor *td_head(td_tensor *x, int dim);      /* all but the last */
td_tensor *td_tail(td_tensor *x, int dim);      /* all but the first */
