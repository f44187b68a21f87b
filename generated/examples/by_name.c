/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "operators": edit that, not this file. */
/* Calls an operator that makes a tensor, by its name. */
#include <stdio.h>
#include <stdlib.h>
#include <treadle/treadle.h>

int main(int argc, char **argv)
{
    const td_op *op = td_op_find(argc > 1 ? argv[1] : "eye");
    td_signature s;
    if (op == NULL || !td_signature_parse(td_op_signature(op), &s))
        return puts("no such operator"), 1;
    td_value attr[TD_MAX_PARAMETERS];
    td_call call = { .op = op, .attr = attr };
    char text[1000];
    td_scope_begin();
    /* operators: pack the numbers of the command line */
    for (int i = 0; i < s.n_parameters; i++) {
        td_value v = { .kind = TD_NONE };
        if (i + 2 < argc) {
            v.kind = TD_SCALAR;
            v.as.scalar = td_int(atoll(argv[i + 2]));
        }
        attr[call.n_attr++] = v;
    }
    if (td_run(&call))
        td_repr(call.out[0], text, sizeof text);
    puts(td_failed() ? td_error_message() : text);
    td_scope_end();
    return 0;
}
