/* Spaces before and after they are collapsed. */
#include "check.h"
#include "core/space.h"

enum { MOST = 3, RANK = 8, SPARE = 7 };     /* SPARE + d: strides of no operand */
typedef struct {
    const char *what;
    int rank, count;
    int64_t shape[RANK], stride[MOST][RANK];
    int left;                               /* what is expected */
    int64_t size[RANK], step[MOST][RANK];
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
    { "three single numbers of two dimensions, [1,1]", 2, 3, { 1, 1 }, { { 4, 4 }, { 5, 6 }, { 7, 8 } },
      1, { 1 }, { { 0 }, { 0 }, { 0 } } },
    { "only the third operand has a gap, [2,3]", 2, 3, { 2, 3 }, { { 3, 1 }, { 3, 1 }, { 4, 1 } },
      2, { 2, 3 }, { { 3, 1 }, { 3, 1 }, { 4, 1 } } },
    { "one number that is repeated, [2,3]", 2, 2, { 2, 3 }, { { 3, 1 }, { 0, 0 } }, 1, { 6 }, { { 1 }, { 0 } } },
    { "backwards, [2,3]", 2, 1, { 2, 3 }, { { -3, -1 } }, 1, { 6 }, { { -1 } } },
    { "every second column, [2,3]", 2, 1, { 2, 3 }, { { 6, 2 } }, 1, { 6 }, { { 2 } } },
    { "a size that no int holds, [65536,65536,5]", 3, 1, { 65536, 65536, 5 }, { { 327680, 5, 1 } },
      1, { 21474836480 }, { { 1 } } },
    { "a step that no int holds, [2,65536,65536]", 3, 1, { 2, 65536, 65536 }, { { 4294967298, 65536, 1 } },
      2, { 2, 4294967296 }, { { 4294967298, 1 } } },
    { "nothing at all, [2,0,3]", 3, 1, { 2, 0, 3 }, { { 3, 3, 1 } }, 2, { 2, 0 }, { { 3, 1 } } },
    { "two pairs of neighbours join, the pairs do not, [2,3,4,5]", 4, 2, { 2, 3, 4, 5 },
      { { 90, 30, 5, 1 }, { 60, 20, 5, 1 } }, 2, { 6, 20 }, { { 30, 1 }, { 20, 1 } } },
    { "all 8 dimensions join", 8, 1, { 2, 2, 2, 2, 2, 2, 2, 2 }, { { 128, 64, 32, 16, 8, 4, 2, 1 } },
      1, { 256 }, { { 1 } } },
    { "8 dimensions of which none joins", 8, 1, { 2, 2, 2, 2, 2, 2, 2, 2 }, { { 1, 2, 4, 8, 16, 32, 64, 128 } },
      8, { 2, 2, 2, 2, 2, 2, 2, 2 }, { { 1, 2, 4, 8, 16, 32, 64, 128 } } },
    { "ones between all others, [1,2,1,3,1,1,5,1]", 8, 2, { 1, 2, 1, 3, 1, 1, 5, 1 },
      { { 9, 15, 9, 5, 9, 9, 1, 9 }, { 2, 1, 2, 2, 2, 2, 6, 2 } },
      3, { 2, 3, 5 }, { { 15, 5, 1 }, { 1, 2, 6 } } },
};

static void check_example(const example *x)
{
    static char what[120];
    td_space *f = calloc(1, sizeof *f);
    f->shape.count = x->rank, f->operands = x->count;
    memcpy(f->shape.at, x->shape, sizeof x->shape);
    for (int k = 0; k < x->count; k++)
        memcpy(f->stride[k], x->stride[k], sizeof x->stride[k]);
    for (int d = 0; d < RANK; d++)
        f->stride[x->count][d] = SPARE + d;
    check_case(x->what, "dimensions of size 1 go, and s[d] = n[d+1] * s[d+1] in all operands joins two");
    td_collapse(&f->shape, f->operands, f->stride);
    if (f->operands != x->count)
        check_wrong("  number of operands, as it was\n  expected  %d\n  got       %d", x->count, f->operands);
    if (f->shape.count != x->left)
        check_wrong("  number of dimensions\n  expected  %d\n  got       %d", x->left, f->shape.count);
    check_sizes(f->shape.at, x->size, x->left);
    for (int k = 0; k < x->count; k++) {
        snprintf(what, sizeof what, "%s, stride of operand %d", x->what, k);
        check_case(what, "a merged dimension has the stride of the inner one; a single number has 0");
        check_sizes(f->stride[k], x->step[k], x->left);
    }
    check_case(x->what, "there are `operands` operands, and what stands behind them stays");
    for (int d = 0; d < RANK; d++)
        check_sizes(&f->stride[x->count][d], &(int64_t){ SPARE + d }, 1);
    free(f);
}

/* Six operands, and more may come: all walk in step but for the last. */
static void check_six(void)
{
    static td_steps stride[7];
    td_dims shape = { 3, { 2, 3, 4 } };
    for (int k = 0; k < 7; k++)
        stride[k][0] = 12, stride[k][1] = 4, stride[k][2] = 1;
    stride[5][0] = 15, stride[5][1] = 5;
    check_case("six operands, of which the last has a gap, [2,3,4]", "two dimensions join if s[d] = n[d+1] * s[d+1] in all operands");
    td_collapse(&shape, 6, stride);
    check_sizes(&(int64_t){ shape.count }, &(int64_t){ 2 }, 1);
    check_sizes(shape.at, (int64_t[]){ 6, 4 }, 2);
    for (int k = 0; k < 6; k++)
        check_sizes(stride[k], k < 5 ? (int64_t[]){ 4, 1 } : (int64_t[]){ 5, 1 }, 2);
    check_sizes(stride[6], (int64_t[]){ 12, 4, 1 }, 3);
}

int main(void)
{
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++)
        check_example(&examples[i]);
    check_six();
    return check_end();
}
