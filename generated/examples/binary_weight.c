/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "hooks": edit that, not this file. */
/* needs: rules */
/* A weight behind a sign: its true gradient, and a useful one. */
#include <stdio.h>
#include <treadle/treadle.h>

/* hooks: hook that prints a gradient */
static td_tensor *print_gradient(void *context, td_tensor *grad)
{
    (void)context;
    printf("%4g", td_item_double(grad));
    return NULL;                /* leave it as it is */
}
/* hooks: function sign_through and its rule */
static bool let_through(void *context, td_custom_call *call)
{
    (void)context;
    call->grad_in[0] = td_retain(call->grad_out[0]);
    return true;
}

static td_tensor *sign_through(td_tensor *w)
{
    td_no_grad_begin();
    td_tensor *y = td_sign(w);
    td_no_grad_end();
    return td_record_custom("sign_through", 1, &w, 1, &y, let_through,
                            NULL, NULL) ? y : NULL;
}
/* hooks: function learn a binary weight */
static void learn(const char *name, td_tensor *(*sign)(td_tensor *))
{
    td_scope_begin();
    td_tensor *w = td_full(TD_DIMS(1), td_float(0.6),
        (td_tensor_options){ .requires_grad = true });
    td_register_hook(w, print_gradient, NULL, NULL);
    printf("%-14s", name);
    for (int step = 0; step < 4; step++) {
        td_tensor *miss = td_add_scalar(sign(w), td_float(1));
        td_backward(td_mul(miss, miss),
                    (td_backward_options)TD_DEFAULTS);
        td_no_grad_begin();
        td_sub_(w, td_mul_scalar(td_grad_of(w), td_float(0.1)));
        td_no_grad_end();
        td_set_grad(w, NULL);
    }
    printf("   w = %.1f\n", td_item_double(w));
    td_scope_end();
}

int main(void)
{
    learn("sign", td_sign);
    learn("sign_through", sign_through);
    return td_failed();
}
