/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "transforms": edit that, not this file. */
/* Cutting and mirroring batches of images. */
#include "core/device.h"
#include "core/require.h"
#include "ops/composite.h"
#include <treadle/arranging.h>
#include <treadle/data.h>
#include <treadle/elementwise.h>

static bool check_batch(const char *op, td_tensor *x)
{
    return td_require(x, op, "x") && (td_rank(x) == 4
        || td_fail(TD_ERROR_RUNTIME, op, "expected images [n,C,H,W], "
                   "got %d dimensions", td_rank(x)));
}


td_tensor *td_random_crop(td_tensor *x, int64_t height, int64_t width,
                          int64_t padding)
{
    if (!check_batch("random_crop", x))
        return NULL;
    td_scope_begin();
    x = td_pad(x, TD_DIMS(padding, padding, padding, padding),
               "constant", 0);
    const int64_t n = x ? td_size(x, 0) : 0, cut[] = { height, width };
    td_tensor *corner[2] = { NULL, NULL };
    for (int i = 0; i < 2 && !td_failed(); i++) {
        const int64_t room = td_size(x, 2 + i) - cut[i] + 1;
        if (room < 1 || cut[i] < 1)
            td_fail(TD_ERROR_VALUE, "random_crop", "%" PRId64 " points "
                    "cannot be cut from %" PRId64, cut[i],
                    td_size(x, 2 + i));
        corner[i] = td_randint(0, room, TD_DIMS(n), TD_OF(TD_INT64));
    }
    td_tensor *out = td_failed() ? NULL : td_empty(TD_DIMS(n,
        td_size(x, 1), height, width),
        TD_OF(td_dtype_of(x)));
    for (int64_t b = 0; b < n && !td_failed(); b++) {
        td_scope_begin();
        td_tensor *image = td_select(x, 0, b);
        for (int i = 0; i < 2; i++) {
            const int64_t at = ((int64_t *)td_at(corner[i]))[b];
            image = td_part(image, 1 + i, at, at + cut[i]);
        }
        td_copy_(td_select(out, 0, b), image);
        td_scope_end();
    }
    return td_scope_end_with(out);
}

td_tensor *td_random_horizontal_flip(td_tensor *x, double p)
{
    if (!check_batch("random_horizontal_flip", x))
        return NULL;
    td_scope_begin();
    td_tensor *coin = td_lt_scalar(td_rand(TD_DIMS(td_size(x, 0), 1, 1,
        1), TD_OF(TD_FLOAT64)), td_float(p));
    return td_scope_end_with(td_where(coin, td_flip(x, TD_DIMS(3)), x));
}
