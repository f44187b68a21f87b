/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rows": edit that, not this file. */
/* The highest level this processor runs, and what TREADLE_ISA asks. */
#ifndef TREADLE_ISA_LEVEL_H
#define TREADLE_ISA_LEVEL_H
int td_isa_start(void);
#endif
