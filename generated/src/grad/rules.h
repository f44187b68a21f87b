/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "rules": edit that, not this file. */
/* What rules save, by name. */
#pragma once
#include "grad/autograd.h"

enum {
    SAVES_X = SAVES_INPUT(0),
    SAVES_B = SAVES_INPUT(1),
    SAVES_RESULT = SAVES_OUTPUT(0),
    SAVES_SECOND = SAVES_OUTPUT(1),
    SAVES_ENDS = SAVES_X | SAVES_RESULT
};
