/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From warpgroups' accumulators to rows of 16-bit results: where nothing more is done to a sum,
 * it is rounded in its register, and stmatrix turns blocks of 8 by 8 on their way to shared memory.
 *
 *     [row][2·columns bytes], the 16-byte chunk c of row r standing at c ^ (r & 7)
 *
 * The accumulators are those of sums.h, interleaved.
 */
#ifndef PTXGEN_KERNELS_TILE_HALVES_H
#define PTXGEN_KERNELS_TILE_HALVES_H

#include "sums.h"

enum { TILE_HALVES_WIDTH = 8 /* columns of a chunk */ };

struct tile_halves {
    /* Set by the caller. */
    uint32_t columns; /* of the warpgroups: a multiple of 64 */
    uint32_t tiles;   /* of 16 columns of a warp, 64 apart; 0: all that `columns` has */
    uint32_t pass_m;  /* rows that are staged at once: a multiple of 16 that divides the tile's */
    bool bf16;        /* else f16 */
    bool alone;       /* a warp stages all of its columns, which follow one another, by itself */
    ptx_u32 staging;  /* shared, pass_m rows, a multiple of 16; a warp's own of 128 */

    ptx_u32 lane; /* where the lane's row of a block goes */
};

/* `at`: the threads; its warp has the columns from 16 times its number on. */
void tile_halves_begin(ptx_kernel *k, const struct tile_threads *at, struct tile_halves *h);
/* Stages the lane's accumulators of the rows of a pass. */
void tile_halves_stage(ptx_kernel *k, const struct tile_halves *h, uint32_t pass,
                       tile_sums_register *acc, const void *from);
/* The chunk at row `row` of the pass and column `column`, as pairs. */
void tile_halves_load(ptx_kernel *k, const struct tile_halves *h, ptx_u32 row, ptx_u32 column,
                      ptx_u32 pairs[TILE_HALVES_WIDTH / 2]);

#endif
