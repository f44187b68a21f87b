/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "graph": edit that, not this file. */
#include "grad/autograd.h"

/* rules: prototypes for the table of rules */
#include "grad/rules.h"

const td_rule_entry td_rules[TD_OP_COUNT + 1] = {
#define RULE(name, function, ...) \
    [TD_OP_##name] = { TD_RULE_FUNCTION, function, \
                       { __VA_ARGS__ + 0 } },
#define NO_RULE(name, ...) [TD_OP_##name] = { .kind = TD_RULE_NONE },
#define COMPOSITE(name, ...) \
    [TD_OP_##name] = { .kind = TD_RULE_COMPOSITE },
#include "grad/rules.inc"
    /* rules: further rows of the table of rules */
    #define UNARY_RULE(name, gradient, saves) \
        [TD_OP_##name] = { TD_RULE_FUNCTION, td_unary_rule, { saves } },
    #define BINARY_RULE(name, gradient_a, gradient_b, saves_a, saves_b) \
        [TD_OP_##name] = { TD_RULE_FUNCTION, td_binary_rule, \
                           { saves_a, saves_b } },
    #include "ops/elementwise.inc"
    [TD_OP_COUNT] = { .kind = TD_RULE_NONE }
};
