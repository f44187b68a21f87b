/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rows": edit that, not this file. */
/* The loops of core/conversions.inc at every level. */
#include "core/isa.h"

TD_ISA_TABLE(td_conversion_loops, td_conversions);
