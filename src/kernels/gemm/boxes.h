/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The boxes in which tensor copies (cp.async.bulk.tensor) bring rows of an operand into a slot of a
 * ring: 128 bytes along K by as many rows as a tile has.
 *
 *     tile 0      │ box of gemm_rows rows        map 0
 *     …           │ …                            map 0
 *     last tile   │ box of the rows that exist   map 1, 128 bytes behind map 0
 *
 * A tensor copy takes time for rows past the end of the operand, too. So the boxes of the last tile
 * have a tensor map of their own, and are only as high as the rows that exist; the rest of the slot
 * holds zeros, or rows of an earlier tile.
 */
#ifndef PTXGEN_KERNELS_GEMM_BOXES_H
#define PTXGEN_KERNELS_GEMM_BOXES_H

#include "ring.h"

enum { GEMM_MAP_BYTES = 128, GEMM_MAP_ALIGN = 64 };

/* Rows of the last tile's boxes: `rows` ≥ 1 of the operand, in tiles of `gemm_rows` rows. */
static inline uint32_t gemm_last_box_rows(uint64_t rows, uint32_t gemm_rows)
{
    return (uint32_t)((rows - 1) % gemm_rows) + 1;
}

struct gemm_boxes {
    /* Set by the caller. */
    uint32_t rows;        /* of a tile: a multiple of 8 */
    uint32_t blocks;      /* copies of a stage; each brings a block of 128 bytes along K */
    uint32_t stage_bytes; /* bytes of a whole stage, of all operands together */

    ptx_u64 maps; /* address of map 0 */
    ptx_u32 all;  /* rows of the operand */

    /* For the current tile: the address of its map, and the bytes that a stage of it brings. */
    ptx_u64 map;
    ptx_u32 bytes;
};

void gemm_boxes_begin(ptx_kernel *k, struct gemm_boxes *b);
/*
 * Clears, in all slots of the ring, the rows that the last tile's boxes do not bring. To be
 * executed by all threads of the CTA, before the first copy is issued.
 */
void gemm_boxes_clear(ptx_kernel *k, const struct gemm_boxes *b, const struct gemm_threads *at,
                      uint32_t threads, const struct gemm_ring *ring);
/* Makes the tile that starts at row `first` the current one: sets `map` and `bytes`. */
void gemm_boxes_locate(ptx_kernel *k, struct gemm_boxes *b, ptx_u32 first);

#endif
