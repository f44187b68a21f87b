/* The program by hand, with the student's lines, for the check to call. */
#define main the_program_by_hand
#include "../examples/no_library.c"
#undef main

int batch_of_the_program(void);
void layer_backward_of_the_program(int in, int out, float *weight, float *result, float *d_weight, float *d_bias,
                                   float *d_result, const float *x, float *d_x, int clipped);

int batch_of_the_program(void)
{
    return BATCH;
}

void layer_backward_of_the_program(int in, int out, float *weight, float *result, float *d_weight, float *d_bias,
                                   float *d_result, const float *x, float *d_x, int clipped)
{
    layer l = { in, out, weight, NULL, result, d_weight, d_bias, d_result };
    layer_backward(&l, x, d_x, clipped);
}
