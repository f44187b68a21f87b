/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "graph": edit that, not this file. */
#include "grad/autograd.h"

/* rules: prototypes for the table of rules */
#include "grad/rules.h"

td_rule_entry td_rules[TD_OP_COUNT + 1] = {
#define RULE_BY(name, function, ...) \
    [TD_OP_##name] = { TD_RULE_FUNCTION, function, \
                       { __VA_ARGS__ + 0 } },
#define NO_RULE(name, ...) [TD_OP_##name] = { .kind = TD_RULE_NONE },
#define COMPOSITE(name, ...) \
    [TD_OP_##name] = { .kind = TD_RULE_COMPOSITE },
#include "grad/rules.inc"
    [TD_OP_COUNT] = { .kind = TD_RULE_NONE }
};
