/* Frames before and after they are collapsed. */
#include "check.h"
#include "frame.h"

enum { MOST = 2 };
typedef struct {
    const char *what;
    int rank, count;
    int64_t shape[4], stride[MOST][4];
    int left;                               /* what is expected */
    int64_t size[4], step[MOST][4];
} example;

static const example examples[] = {
    { "a matrix without gaps, [2,3]", 2, 1, { 2, 3 }, { { 3, 1 } }, 1, { 6 }, { { 1 } } },
    { "an array without gaps, [2,3,4]", 3, 1, { 2, 3, 4 }, { { 12, 4, 1 } }, 1, { 24 }, { { 1 } } },
    { "a one in the middle, [2,1,3]", 3, 1, { 2, 1, 3 }, { { 3, 9, 1 } }, 1, { 6 }, { { 1 } } },
    { "a matrix and a repeated row, [64,10]", 2, 2, { 64, 10 }, { { 10, 1 }, { 0, 1 } },
      2, { 64, 10 }, { { 10, 1 }, { 0, 1 } } },
    { "a transposed matrix, [3,5]", 2, 2, { 3, 5 }, { { 5, 1 }, { 1, 3 } }, 2, { 3, 5 }, { { 5, 1 }, { 1, 3 } } },
    { "a gap after every second row, [2,2,5]", 3, 1, { 2, 2, 5 }, { { 15, 5, 1 } }, 2, { 2, 10 }, { { 15, 1 } } },
    { "the first two join, the last does not, [2,3,4]", 3, 1, { 2, 3, 4 }, { { 15, 5, 1 } }, 2, { 6, 4 }, { { 5, 1 } } },
    { "ones at both ends, [1,7,1]", 3, 2, { 1, 7, 1 }, { { 5, 2, 3 }, { 0, 1, 0 } }, 1, { 7 }, { { 2 }, { 1 } } },
    { "a single number, []", 0, 2, { 0 }, { { 0 } }, 1, { 1 }, { { 0 }, { 0 } } },
    { "a single number of two dimensions, [1,1]", 2, 1, { 1, 1 }, { { 4, 4 } }, 1, { 1 }, { { 0 } } },
};

static void check_example(const example *x)
{
    static char what[120];
    td_frame *f = calloc(1, sizeof *f);
    f->rank = x->rank, f->count = x->count;
    memcpy(f->shape, x->shape, sizeof x->shape);
    for (int k = 0; k < x->count; k++)
        memcpy(f->stride[k], x->stride[k], sizeof x->stride[k]);
    td_frame_collapse(f);
    check_case(x->what, "dimensions of size 1 go, and s[d] = n[d+1] * s[d+1] in all operands joins two");
    if (f->rank != x->left)
        check_wrong("  number of dimensions\n  expected  %d\n  got       %d", x->left, f->rank);
    check_sizes(f->shape, x->size, x->left);
    for (int k = 0; k < x->count; k++) {
        snprintf(what, sizeof what, "%s, stride of operand %d", x->what, k);
        check_case(what, "a merged dimension has the stride of the inner one; a single number has 0");
        check_sizes(f->stride[k], x->step[k], x->left);
    }
    free(f);
}

int main(void)
{
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++)
        check_example(&examples[i]);
    return check_end();
}
