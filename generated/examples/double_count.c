/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "graph": edit that, not this file. */
/* An engine that walks back by recursion, and counts twice. */
#include <stdio.h>

/* graph: struct value */
typedef struct value {
    double data, grad;
    struct value *left, *right;     /* NULL: not a sum but an input */
} value;

/* graph: function send_back */
static void send_back(value *v)
{
    if (v->left == NULL)
        return;
    v->left->grad += v->grad;
    v->right->grad += v->grad;
    send_back(v->left);
    send_back(v->right);
}

int main(void)
{
    value a = { .data = 1 };
    value b = { a.data + a.data, 0, &a, &a };
    value c = { b.data + b.data, 0, &b, &b };
    c.grad = 1;
    send_back(&c);
    printf("dc/da is 4; the recursive engine says %g\n", a.grad);
    return 0;
}
