/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rows": edit that, not this file. */
/* The lines of numbers of core/conversions.inc at every level. */
#include "core/isa.h"

TD_ISA_TABLE(td_line, td_lines);
