/* The made-up rows from C: called, and compiled by a back end.

   Prints bulge(x) and lean(x, 0.5) for each argument after the first, then
   what the back end named first runs, and the same values from there. */
#include <stdio.h>
#include <stdlib.h>
#include <treadle/treadle.h>

static td_tensor *lean_on_a_bulge(td_tensor *x)
{
    return td_lean(td_bulge(x), td_lean_scalar(x, td_float(0.5)));
}

static void print(td_tensor *x)
{
    for (int64_t i = 0; !td_failed() && i < td_numel(x); i++)
        printf("%.9g ", (double)((float *)td_data(x))[i]);
    printf("\n");
}

int main(int count, char **words)
{
    char text[4000] = "";
    td_scope_begin();
    td_tensor *x = td_zeros(TD_DIMS(count - 2), (td_tensor_options){ 0 });
    for (int i = 2; i < count; i++)
        ((float *)td_data(x))[i - 2] = strtof(words[i], NULL);
    print(lean_on_a_bulge(x));
    td_trace_begin(true);
    td_tensor *in = td_trace_input(td_shape_of(x), TD_FLOAT32, td_device_of(x));
    td_tensor *out = lean_on_a_bulge(in);
    td_program *p = td_trace_end(&out, 1);
    td_executable *e = td_compile(p, (td_compile_options){ .backend = words[1] });
    if (e != NULL && td_execute(e, &x, 1, &out)) {
        print(out);
        td_executable_print(e, text, sizeof text);
    }
    fputs(td_failed() ? td_error_message() : text, stdout);
    td_scope_end();
    return td_failed();
}
