/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rows": edit that, not this file. */
/* The highest level this processor runs, and what TREADLE_ISA asks. */
#pragma once
int td_isa_start(void);
