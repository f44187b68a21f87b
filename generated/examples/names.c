/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "modules": edit that, not this file. */
/* The names of a network's tensors, some of which have two. */
#include <stdio.h>
#include <treadle/treadle.h>

/* modules: function main of the names */
int main(void)
{
    td_scope_begin();
    /* modules: build a network with a layer twice */
    td_module *tied = td_linear_module(4, 4, (td_linear_options){ 0 });
    td_module *net = td_sequential((td_module *[]){
        tied, td_relu_module(), tied,
        td_linear_module(4, 2, (td_linear_options){ .no_bias = true })
        }, 4);
    td_named_tensor list[16];
    const int state = td_named_state(net, list, 16);
    for (int i = 0; i < state; i++)
        printf("%s ", list[i].name);
    printf("\n%d names, %d parameters\n", state,
           td_parameters(net, NULL, 0));
    td_scope_end();
    return td_failed();
}
