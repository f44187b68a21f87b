/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "transforms": edit that, not this file. */
/* Cutting and mirroring batches of images. */
#include "core/require.h"
#include <treadle/treadle.h>

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
    for (int i = 2; i < 4 && !td_failed(); i++) {
        const int64_t cut = i == 2 ? height : width;
        td_dims shape = td_shape_of(x), line = TD_DIMS(1, 1, 1, 1);
        const int64_t room = shape.at[i] - cut + 1;
        if (room < 1 || cut < 1)
            td_fail(TD_ERROR_VALUE, "random_crop", "%" PRId64 " points "
                    "cannot be cut from %" PRId64, cut, shape.at[i]);
        td_tensor *corner = td_randint(0, room, TD_DIMS(shape.at[0], 1,
            1, 1), TD_OF(TD_INT64));
        shape.at[i] = line.at[i] = cut;
        td_tensor *run = td_arange(td_int(0), td_int(cut), td_int(1),
                                   TD_OF(TD_INT64));
        x = td_gather(x, i, td_expand(td_add(corner,
            td_reshape(run, line)), shape));
    }
    return td_scope_end_with(x);
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
