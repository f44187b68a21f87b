/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rows": edit that, not this file. */
#include "core/conversions.inc"
#include "ops/kernels/conversion-kernels.h"

const td_conversion_loops TD_ISA(td_conversions) = {
    convert_line, fill_lines
};
