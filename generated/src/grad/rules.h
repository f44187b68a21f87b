/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rules": edit that, not this file. */
/* The rules of elementwise rows. */
#pragma once
#include "grad/autograd.h"

enum {
    SAVES_NOTHING = 0,
    SAVES_X = SAVES_INPUT(0),
    SAVES_A = SAVES_INPUT(0),
    SAVES_B = SAVES_INPUT(1),
    SAVES_BOTH = SAVES_A | SAVES_B,
    SAVES_RESULT = SAVES_OUTPUT(0),
    SAVES_SECOND = SAVES_OUTPUT(1),
    SAVES_ENDS = SAVES_X | SAVES_RESULT
};

td_rule td_unary_rule, td_binary_rule;
