/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "modules": edit that, not this file. */
/* How loud a signal is after each of twenty layers: three scales. */
#include <math.h>
#include <stdio.h>
#include <treadle/treadle.h>

/* modules: function next_layer */
static td_tensor *next_layer(td_tensor *x, double deviation)
{
    td_tensor *w = td_empty(TD_DIMS(256, 256),
                            (td_tensor_options){ 0 });
    return td_relu(td_linear(x, td_normal_(w, 0, deviation), NULL));
}

int main(void)
{
    const double variance[] = { 2, 1, 4 };      /* times the fan-in */
    td_scope_begin();
    td_manual_seed(0);
    td_tensor *x = td_randn(TD_DIMS(64, 256), (td_tensor_options){ 0 });
    td_tensor *signal[] = { x, x, x };
    printf("layer,he,half,twice\n");
    for (int layer = 1; layer <= 20; layer++) {
        printf("%d", layer);
        for (int k = 0; k < 3; k++) {
            signal[k] = next_layer(signal[k], sqrt(variance[k] / 256));
            printf(",%.3g", sqrt(td_item_double(td_mean(
                td_square(signal[k]), (td_reduce_options){ 0 }))));
        }
        printf("\n");
    }
    td_scope_end();
    return td_failed();
}
