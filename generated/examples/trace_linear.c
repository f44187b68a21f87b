/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "tracing": edit that, not this file. */
/* needs: tracing modules */
/* The trace of a linear layer, 10 to 10, for a batch of 16. */
#include <stdio.h>
#include <treadle/treadle.h>

int main(void)
{
    char text[1000];
    const td_device cpu = { TD_DEVICE_CPU, 0 };
    td_scope_begin();
    td_module *layer = td_linear_module(10, 10,
                                        (td_linear_options)TD_DEFAULTS);
    td_trace_begin(true);
    td_tensor *x = td_trace_input(TD_DIMS(16, 10), TD_FLOAT32, cpu);
    td_tensor *y = td_forward(layer, x);
    td_program *p = td_trace_end(&y, 1);
    td_program_print(p, text, sizeof text);
    fputs(td_failed() ? td_error_message() : text, stdout);
    td_scope_end();
    return td_failed();
}
