/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "recurrence": edit that, not this file. */
/* Gradients of a kernel by operators. */
#include <treadle/arranging.h>
#include "grad/autograd.h"

void td_differentiate(td_backward_pass *b, bool (*again)(td_call *))
{
    td_value in[TD_MAX_PARAMETERS];
    td_tensor *asked[TD_MAX_PARAMETERS], *got[TD_MAX_PARAMETERS];
    td_tensor *y[TD_MAX_RESULTS], *g[TD_MAX_RESULTS];
    int n = 0, made = 0;
    TD_EACH(i, b, in) {
        const td_dims shape = td_input_dims(b, i);
        in[i] = td_v_optional(shape.count == 0 ? NULL
            : td_reshape(td_saved_input(b, i), shape));
        if (td_any_requires_grad(&in[i]))
            asked[n++] = in[i].as.tensor;
    }
    td_call call = { .op = b->op, .n_in = b->n_in, .in = in,
        .n_attr = b->n_attr, .attr = td_attribute(b, 0) };
    if (td_failed() || !again(&call))
        return;
    TD_EACH(k, b, out)
        if (b->grad[k] && call.out[k])
            y[made] = call.out[k], g[made++] = b->grad[k];
    if (td_grad(y, made, asked, n, got, (td_grad_options){
            .grad_outputs = g, .create_graph = true,
            .allow_unused = true, .inputs_end = true }))
        for (int i = b->n_in; i-- > 0;)
            if (td_any_requires_grad(&in[i]))
                b->grad_in[i] = got[--n];
}
