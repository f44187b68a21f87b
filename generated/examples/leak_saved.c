/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "leak": edit that, not this file. */
/* needs: data */
/* The engine of leak.c; a closure keeps the numbers that it needs. */
#include "leak-types.h"

/* leak: the closure keeps what it needs */
/* A tensor of numbers, without the past that leads back to us. */
static var *capture(var *y)
{
    y->backward.kept[1] = td_retain(y->grad);
    return y;
}

static td_tensor *gradient(const closure *c)
{
    return c->kept[1];
}
#include "leak.h"
