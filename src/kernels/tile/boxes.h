/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of an operand as tensor copies bring them: in boxes of 128 bytes by as many rows as a tile
 * has. Rows past the operand's last cost an H200 1 to 2.5 ns each in every copy, so the boxes of
 * the last tile have a tensor map of their own and are only as high as it takes: 4096 × 4096 with
 * 65 rows in two tiles of 64 took 17.5 µs where 128 rows took 11.7, and one row in a box of eight,
 * at 4096 × 14336, 12.7 where it takes 11.4 by itself. Beyond them a slot has zeros, or rows of
 * tiles before.
 */
#ifndef PTXGEN_KERNELS_TILE_BOXES_H
#define PTXGEN_KERNELS_TILE_BOXES_H

#include "ring.h"

enum { TILE_MAP_BYTES = 128, TILE_MAP_ALIGN = 64 };

/* Of the last tile's boxes, for an operand of so many rows, at least one, in tiles of `tile_rows`.
 */
static inline uint32_t tile_last_box_rows(uint64_t rows, uint32_t tile_rows)
{
    return (uint32_t)((rows - 1) % tile_rows) + 1;
}

struct tile_boxes {
    /* Set by the caller. */
    uint32_t rows;        /* of a tile: a multiple of 8 */
    uint32_t blocks;      /* copies of a stage, a block of 128 bytes each … */
    uint32_t stage_bytes; /* … and all that a whole stage brings, these among them */

    ptx_u64 maps; /* of whole boxes, and 128 bytes further on the last tile's */
    ptx_u32 all;  /* rows of the operand */

    /* Of the present tile: its map, and what a stage brings. */
    ptx_u64 map;
    ptx_u32 bytes;
};

void tile_boxes_begin(ptx_kernel *k, struct tile_boxes *b);
/*
 * Clears what the last tile's boxes do not bring, in all slots: executed by all threads of the CTA,
 * before any box is sent for.
 */
void tile_boxes_clear(ptx_kernel *k, const struct tile_boxes *b, const struct tile_threads *at,
                      uint32_t threads, const struct tile_ring *ring);
/* Turns to the tile from row `first` on. */
void tile_boxes_locate(ptx_kernel *k, struct tile_boxes *b, ptx_u32 first);

#endif
