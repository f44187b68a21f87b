/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "arena": edit that, not this file. */
/* needs: fusion elementwise */
/* The plan of five elementwise operators in a row. */
#include <stdio.h>
#include <treadle/treadle.h>

int main(void)
{
    char text[2000] = "";
    const td_device cpu = { TD_DEVICE_CPU, 0 };
    td_scope_begin();
    td_trace_begin(true);
    td_tensor *x = td_trace_input(TD_DIMS(1000, 1000), TD_FLOAT32, cpu);
    td_tensor *y = td_relu(td_add_scalar(td_abs(td_mul_scalar(
        td_neg(x), td_float(3))), td_float(-1)));
    td_program *p = td_trace_end(&y, 1);
    td_compile_options with_c = { .backend = "c" };
    td_executable *e = td_compile(p, with_c);
    if (e != NULL)
        td_executable_print(e, text, sizeof text);
    fputs(td_failed() ? td_error_message() : text, stdout);
    td_scope_end();
    return td_failed();
}
