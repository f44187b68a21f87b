/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "backward": edit that, not this file. */
/* An engine that visits each value once, in the order it meets them. */
#include <stdio.h>

/* graph: struct value */
typedef struct value {
    double data, grad;
    struct value *left, *right;     /* NULL: not a sum but an input */
} value;

/* backward: function visit_once */
static void visit_once(value *root)
{
    value *queue[8] = { root };
    int count = 1;
    for (int at = 0; at < count; at++) {
        value *sides[] = { queue[at]->left, queue[at]->right };
        for (int s = 0; s < 2 && sides[s] != NULL; s++) {
            int known = 0;
            while (known < count && queue[known] != sides[s])
                known++;
            if (known == count)
                queue[count++] = sides[s];
            sides[s]->grad += queue[at]->grad;
        }
    }
}

int main(void)
{
    value a = { .data = 1 };
    value b = { a.data + a.data, 0, &a, &a };
    value c = { b.data + b.data, 0, &b, &b };
    value y = { b.data + c.data, 0, &b, &c };
    y.grad = 1;
    visit_once(&y);
    printf("dy/da is 6; visiting each value once says %g\n", a.grad);
    return 0;
}
