/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "elementwise": edit that, not this file. */
/* The strided frame: one loop over operands of any layout.

   Operand 0 of its space is the result, the others are inputs.  A
   loop is shown contiguous arrays of the dtypes in `as`, a multiple of
   TD_LANES long.  Frames point into themselves: never copy one.

       td_frame f;
       const td_dtype as[] = { TD_FLOAT32, TD_FLOAT32, TD_FLOAT32 };
       td_space_begin(&f.space, out, TD_ALL_DIMS);
       td_space_add(&f.space, a, TD_ALL_DIMS);
       td_frame_scalar(&f, td_float(2), TD_FLOAT32);
       bool done = td_frame_run(&f, loop, as); */
#pragma once
#include "core/space.h"

#define TD_LANES 16         /* a loop's length is a multiple of this */
#define TD_BLOCK 1024       /* elements gathered at a time */
#define TD_LONG_ROW 256     /* rows from here on are used in place */

/* elementwise: struct td_frame */
typedef struct {
    td_space space;                         /* the result, the inputs */
    int64_t constant[TD_SPACE_OPERANDS];    /* or another dtype */
} td_frame;

/* elementwise: type td_loop */
typedef void td_loop(int64_t n, char *const *data);

void td_frame_scalar(td_frame *f, td_scalar value, td_dtype as);
bool td_frame_run(td_frame *f, td_loop *loop, const td_dtype *as);

/* Runs the loop where no frame is needed: `count` operands, n elements
   each, contiguous and of the dtypes it wants, whose sizes in bytes
   are `size`, in this thread. */
void td_frame_line(td_loop *loop, int count, char *const *data,
                   const int64_t *size, int64_t n);
