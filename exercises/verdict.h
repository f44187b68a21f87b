/* What a check says to its runner.  SPDX-License-Identifier: MIT */
#ifndef TREADLE_VERDICT_H
#define TREADLE_VERDICT_H

/* The case that begins: named if the program ends in the midst of it. */
void check_says_case(const char *what);

/* What is wrong; ends the program. */
__attribute__((noreturn)) void check_says_wrong(const char *report);
#endif
