/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "leak": edit that, not this file. */
/* needs: data */
/* The engine of leak.c; a closure sees its result and owns it not. */
#include "leak-types.h"

/* leak: the closure sees its result */
/* The closure is a part of y and cannot outlive it. */
static var *capture(var *y)
{
    y->backward.seen = y;
    return y;
}

static td_tensor *gradient(const closure *c)
{
    return c->seen->grad;
}
#include "leak.h"
