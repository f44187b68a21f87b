/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "first-cloth": edit that, not this file. */
/* needs: networks */
#include <stdio.h>
#include <treadle/treadle.h>

/* first-cloth: function share_right */
static double share_right(td_module *net, td_dataset *test)
{
    double right = 0;
    td_batch batch;
    td_no_grad_begin();
    td_scope_begin();
    td_loader *loader = td_data_loader(test, 1000,
                                       (td_loader_options)TD_DEFAULTS);
    while (td_scope_begin(), td_loader_next(loader, &batch)) {
        td_tensor *best = td_argmax(td_forward(net, batch.input),
            (td_arg_options){ .dim = td_some(1) });
        right += td_item_double(td_sum(td_eq(best, batch.target),
                                       (td_reduce_options)TD_DEFAULTS));
        td_scope_end();
    }
    td_scope_end();
    td_scope_end();
    td_no_grad_end();
    return right / 10000;
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : NULL;
    td_manual_seed(0);
    /* first-cloth: build the classifier from modules */
    td_scope_begin();
    td_dataset *train = td_fashion_mnist(folder, true);
    td_dataset *test = td_fashion_mnist(folder, false);
    const td_linear_options plain = TD_DEFAULTS;
    td_module *net = td_sequential((td_module *[]){
        td_linear_module(784, 256, plain), td_relu_module(),
        td_linear_module(256, 128, plain), td_relu_module(),
        td_linear_module(128, 10, plain) }, 5);
    td_tensor *parameters[6];
    td_parameters(net, parameters, 6);
    td_optimiser *sgd = td_sgd(parameters, 6, 0.02,
                               (td_sgd_options){ .momentum = 0.9 });
    td_loader *loader = td_data_loader(train, 64,
                                  (td_loader_options){ .shuffle = true });
    for (int epoch = 1; epoch <= 5 && !td_failed(); epoch++) {
        /* first-cloth: train the classifier for one epoch */
        td_batch batch;
        td_loader_rewind(loader);
        while (td_scope_begin(), td_loader_next(loader, &batch)) {
            td_tensor *scores = td_forward(net, batch.input);
            td_tensor *loss = td_cross_entropy(scores, batch.target,
                                  (td_cross_entropy_options)TD_DEFAULTS);
            td_zero_grad(sgd);
            td_backward(loss, (td_backward_options)TD_DEFAULTS);
            td_step(sgd);
            td_scope_end();
        }
        td_scope_end();
        printf("epoch %d: %.1f %% right\n", epoch,
               100 * share_right(net, test));
    }
    if (td_failed())
        fprintf(stderr, "%s\n", td_error_message());
    td_scope_end();
    return td_failed();
}
