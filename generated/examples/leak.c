/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "leak": edit that, not this file. */
/* needs: data */
/* An engine whose closures own their own results: see leak.h. */
#include "leak-types.h"

/* leak: the closure holds its result */
/* Whoever keeps a pointer owns a share. */
static var *capture(var *y)
{
    y->backward.held[2] = td_retain(y);
    return y;
}

static td_tensor *gradient(const closure *c)
{
    return c->held[2]->grad;
}
#include "leak.h"
