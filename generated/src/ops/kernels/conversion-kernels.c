/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rows": edit that, not this file. */
#include "core/conversions.inc"
#include "ops/kernels/conversion-kernels.h"

const td_line TD_ISA(td_lines) = convert_line;
