/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "random": edit that, not this file. */
#include <treadle/treadle.h>
#include <stdio.h>

/* A die drawn by td_randint is fair. */
int main(void)
{
    td_scope_begin();
    td_manual_seed(6);
    td_tensor *throws = td_randint(1, 7, TD_DIMS(60000),
                               (td_tensor_options)TD_DEFAULTS);
    const int64_t *face = td_data(throws);
    double count[7] = { 0 }, chi = 0;
    for (int i = 0; i < 60000; i++)
        count[face[i]]++;
    for (int k = 1; k <= 6; k++)
        chi += (count[k] - 10000) * (count[k] - 10000) / 10000;
    printf("chi-square of a die, 5 degrees of freedom: %.2f\n", chi);
    td_scope_end();
    return chi > 20.5;
}
