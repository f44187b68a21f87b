/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "elementwise": edit that, not this file. */
/* The strided frame: one iteration over operands of any layout.

   Operand 0 is the result, the others are inputs.  All spread to the
   shape given at the start (stride 0 where a dimension repeats).  A
   loop is shown contiguous arrays of the dtypes in `as`, a multiple of
   TD_LANES long.  Frames point into themselves: never copy one.

       td_frame f;
       const td_dtype as[] = { TD_FLOAT32, TD_FLOAT32, TD_FLOAT32 };
       bool done = td_frame_begin(&f, "add", &shape)
                && td_frame_add(&f, out) && td_frame_add(&f, a)
                && td_frame_add(&f, b) && td_frame_run(&f, loop, as); */
#ifndef TREADLE_FRAME_H
#define TREADLE_FRAME_H
#include "tensor.h"

#define TD_FRAME_OPERANDS 5
#define TD_LANES 16         /* a loop's length is a multiple of this */
#define TD_BLOCK 1024       /* elements gathered at a time */
#define TD_LONG_ROW 256     /* rows from here on are used in place */

/* elementwise: struct td_frame */
typedef struct {
    const char *op;             /* whose errors these are */
    int rank, count;            /* dimensions; operands so far */
    int64_t shape[TD_MAX_RANK], total;
    int64_t stride[TD_FRAME_OPERANDS][TD_MAX_RANK];
    char *data[TD_FRAME_OPERANDS];
    td_dtype dtype[TD_FRAME_OPERANDS];
    int64_t constant[TD_FRAME_OPERANDS];    /* or another dtype */
} td_frame;

/* elementwise: type td_loop */
typedef void td_loop(int64_t n, char *const *data);

bool td_frame_begin(td_frame *f, const char *op, const td_dims *shape);
bool td_frame_add(td_frame *f, const td_tensor *x);
void td_frame_scalar(td_frame *f, td_scalar value, td_dtype as);
void td_frame_collapse(td_frame *f);
bool td_frame_run(td_frame *f, td_loop *loop, const td_dtype *as);

/* Runs the loop where no frame is needed: `count` operands, n elements
   each, contiguous and of the dtypes it wants, in this thread. */
void td_frame_line(td_loop *loop, int count, char *const *data,
                   const td_dtype *as, int64_t n);

/* Elements [start, start + n) of operand k, in row-major order of the
   frame's shape, converted to `as`.  The frame must be collapsed. */
void td_frame_gather(const td_frame *f, int k, int64_t start, int64_t n,
                     td_dtype as, void *to);
#endif
