/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "metrics": edit that, not this file. */
/* Counting hits and confusions. */
#include "core/device.h"
#include <treadle/elementwise.h>
#include <treadle/metrics.h>
#include <treadle/order.h>
#include <treadle/reductions.h>

td_tensor *td_accuracy(td_tensor *scores, td_tensor *target, int64_t k)
{
    td_tensor *best = NULL;
    td_scope_begin();
    td_topk(scores, k, 1, true, &best);
    td_tensor *hit = td_any(td_eq(best, td_unsqueeze(target, 1)),
                            (td_reduce_options){ .dims = TD_DIMS(1) });
    return td_scope_end_with(td_mean(td_to(hit, TD_FLOAT32),
        TD_REDUCE_DEFAULTS));
}

td_tensor *td_confusion_matrix(td_tensor *predicted, td_tensor *target,
                               int64_t classes)
{
    static const char op[] = "confusion_matrix";
    td_scope_begin();
    const td_device host = { 0 };
    td_tensor *x[] = { td_contiguous(td_brought(predicted, host)),
                       td_contiguous(td_brought(target, host)) };
    const int64_t *class[2] = { NULL };
    for (int i = 0; i < 2 && !td_failed(); i++)
        if (td_rank(x[i]) != 1 || td_dtype_of(x[i]) != TD_INT64
            || td_numel(x[i]) != td_numel(x[0]))
            td_fail(TD_ERROR_RUNTIME, op, "expected int64 vectors of "
                    "equal length");
        else
            class[i] = td_fetch(x[i], 0, 0, NULL);
    td_tensor *m = td_zeros(TD_DIMS(classes, classes),
                            TD_OF(TD_INT64));
    for (int64_t i = 0; !td_failed() && i < td_numel(x[0]); i++) {
        const int64_t p = class[0][i], t = class[1][i];
        if (p < 0 || t < 0 || p >= classes || t >= classes)
            td_fail(TD_ERROR_INDEX, op, "example %" PRId64 " of class %"
                    PRId64 " is taken for %" PRId64 "; there are %"
                    PRId64, i, t, p, classes);
        else
            ((int64_t *)td_at(m))[t * classes + p]++;
    }
    return td_scope_end_with(m);
}
