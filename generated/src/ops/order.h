/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "order": edit that, not this file. */
/* Short words for all numbers of lines but one. */
#pragma once
#include "core/tensor.h"
td_tensor *td_head(td_tensor *x, int dim);      /* all but the last */
td_tensor *td_tail(td_tensor *x, int dim);      /* all but the first */
