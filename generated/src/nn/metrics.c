/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "metrics": edit that, not this file. */
/* Counting hits and confusions. */
#include "core/device.h"
#include <treadle/treadle.h>

/* The classes in x, int64 [n], on the host; each is below k. */
static const int64_t *classes_of(const char *op, td_tensor *x,
                                 int64_t n, int64_t k)
{
    x = td_contiguous(td_brought(x, TD_CPU));
    if (td_rank(x) != 1 || td_numel(x) != n
        || td_dtype_of(x) != TD_INT64)
        td_fail(TD_ERROR_RUNTIME, op, "expected int64 vectors of "
                "equal length");
    const int64_t *class = td_failed() ? NULL : td_fetch(x, 0, 0, NULL);
    for (int64_t i = 0; !td_failed() && i < n; i++)
        if (class[i] < 0 || class[i] >= k)
            td_fail(TD_ERROR_INDEX, op, "example %" PRId64 " is of "
                    "class %" PRId64 "; there are %" PRId64, i,
                    class[i], k);
    return class;
}

td_tensor *td_accuracy(td_tensor *scores, td_tensor *target, int64_t k)
{
    td_tensor *best = NULL;
    td_scope_begin();
    td_topk(scores, k, 1, true, &best);
    if (best)
        classes_of("accuracy", target, td_size(best, 0),
                   td_size(scores, 1));
    td_tensor *hit = td_any(td_eq(best, td_unsqueeze(target, 1)),
                            TD_OVER(1));
    return td_scope_end_with(td_mean(td_to(hit, TD_FLOAT32),
        TD_REDUCE_DEFAULTS));
}

td_tensor *td_confusion_matrix(td_tensor *predicted, td_tensor *target,
                               int64_t classes)
{
    static const char op[] = "confusion_matrix";
    td_scope_begin();
    const int64_t n = predicted ? td_numel(predicted) : 0,
        *p = classes_of(op, predicted, n, classes),
        *t = classes_of(op, target, n, classes);
    td_tensor *m = td_zeros(TD_DIMS(classes, classes),
                            TD_OF(TD_INT64));
    for (int64_t i = 0; !td_failed() && i < n; i++)
        ((int64_t *)td_at(m))[t[i] * classes + p[i]]++;
    return td_scope_end_with(m);
}
