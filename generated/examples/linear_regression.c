/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "backward": edit that, not this file. */
/* A line through 256 points, by gradients; "points" prints the fit. */
#include <stdio.h>
#include <treadle/treadle.h>

enum { POINTS = 256, STEPS = 201 };

/* backward: function loss_of the line */
static td_tensor *loss_of(td_tensor *r)
{
    const td_reduce_options all = TD_DEFAULTS;
    return td_mul_scalar(td_sum(td_mul(r, r), all),
                         td_float(1.0 / POINTS));
}
/* backward: function hand_gradient */
static double hand_gradient(td_tensor *r, td_tensor *factor)
{
    td_scope_begin();
    td_tensor *terms = td_detach(r);
    if (factor != NULL)
        terms = td_mul(terms, factor);
    const td_reduce_options all = TD_DEFAULTS;
    const double sum = td_item_double(td_sum(terms, all));
    td_scope_end();
    return 2.0 / POINTS * sum;
}
/* backward: function descend */
static void descend(td_tensor *parameter)
{
    td_no_grad_begin();
    td_sub_(parameter, td_mul_scalar(td_grad_of(parameter),
                                     td_float(0.1)));
    td_no_grad_end();
    td_set_grad(parameter, NULL);
}
/* backward: function print_points */
static void print_points(td_tensor *x, td_tensor *y, double w, double b)
{
    const float *at_x = td_data(x), *at_y = td_data(y);
    printf("x,y,fit\n");
    for (int i = 0; i < POINTS; i++)
        printf("%.4f,%.4f,%.4f\n", at_x[i], at_y[i], w * at_x[i] + b);
}

int main(int argc, char **argv)
{
    (void)argv;
    td_scope_begin();
    /* backward: make the points around the line */
    td_manual_seed(0);
    const td_tensor_options plain = TD_DEFAULTS;
    td_tensor *x = td_rand(TD_DIMS(POINTS), plain);
    x = td_mul_scalar(x, td_float(4));
    td_tensor *noise = td_rand(TD_DIMS(POINTS), plain);
    noise = td_mul_scalar(td_sub_scalar(noise, td_float(0.5)),
                          td_float(0.4));
    td_tensor *y = td_add(td_add_scalar(td_mul_scalar(x, td_float(2)),
                                        td_float(1)), noise);
    const td_tensor_options leaf = { .requires_grad = true };
    td_tensor *w = td_zeros(TD_DIMS(1), leaf);
    td_tensor *b = td_zeros(TD_DIMS(1), leaf);
    if (argc == 1)
        printf("step      loss      dL/dw  by hand"
               "     dL/db  by hand\n");
    for (int step = 0; step < STEPS; step++) {
        /* backward: take one step down the slope */
        td_scope_begin();
        td_tensor *r = td_sub(td_add(td_mul(x, w), b), y);
        td_tensor *loss = loss_of(r);
        td_backward(loss, (td_backward_options)TD_DEFAULTS);
        if (argc == 1 && step % 40 == 0)
            printf("%4d  %8.5f  %8.5f %8.5f  %8.5f %8.5f\n", step,
                   td_item_double(loss), td_item_double(td_grad_of(w)),
                   hand_gradient(r, x), td_item_double(td_grad_of(b)),
                   hand_gradient(r, NULL));
        descend(w);
        descend(b);
        td_scope_end();
    }
    if (argc > 1)
        print_points(x, y, td_item_double(w), td_item_double(b));
    else
        printf("y = %.3f x + %.3f\n", td_item_double(w),
               td_item_double(b));
    td_scope_end();
    if (td_failed())
        fprintf(stderr, "%s\n", td_error_message());
    return td_failed();
}
