/* The example is part of this file, under another name than `main`. */
#define main main_of_the_three_ways
#include "../examples/derivatives.c"
#undef main

void backward_between(int n, const void *s, const double *v, double *bar);
double run_between(int n, const void *s, double *v);

void backward_between(int n, const void *s, const double *v, double *bar)
{
    backward(n, s, v, bar);
}

double run_between(int n, const void *s, double *v)
{
    return run(n, s, v);
}
