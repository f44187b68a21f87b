/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "convolution": edit that, not this file. */
/* Transforms of tiles of 6 by 6: Winograd's F(4x4, 3x3). */
#pragma once
#include "core/isa.h"

/* n channels, a multiple of 16: number i of a square begins at
   x[x_at[i]], number j of the other at y[y_at[j]]. */
typedef void td_tile_map(int64_t n, const float *x,
                         const int64_t *x_at, float *y,
                         const int64_t *y_at);

typedef struct {
    td_tile_map *before, *after;   /* 6 x 6 to 6 x 6; to 4 x 4 */
    td_tile_map *weigh;            /* 3 x 3 to 6 x 6 */
    td_tile_map *spread, *gather;  /* 4 x 4 to 6 x 6; to 3 x 3 */
    /* to[p * along + l] = from[l * across + p] + add[p] for l < lanes
       and p < n; add may be NULL.  Of rows shorter than 8, up to
       `room` numbers may be read, or overwritten. */
    void (*turn)(int64_t lanes, int64_t n, const float *from,
                 int64_t across, float *to, int64_t along,
                 const float *add, int64_t room);
} td_winograd_level;
TD_ISA_TABLE(td_winograd_level, td_winograd);
