/* SPDX-License-Identifier: Apache-2.0 */
/* What the plan of w8a8 needs of tiles: sizes, how warps divide them, and the time they take. */
#ifndef PTXGEN_W8A8_TILE_H
#define PTXGEN_W8A8_TILE_H

#include "layout.h"

/*
 * Tokens (M) and features (N) of tiles. Where tokens are wgmma's M (tiles of 64 and more), strips
 * are rows of 64 tokens that one warpgroup multiplies in turn. Where codes are e4m3, sums of a
 * block of 128 of K are kept apart, in registers of their own, and then added to those of the tile.
 */
enum {
    W8A8_MAX_TILE_N = 256,
    W8A8_MAX_WGMMA_N = 128,  /* but 256 with 64 tokens */
    W8A8_LEAST_TILE_M = 16,  /* of a tile that is not fused */
    W8A8_LEAST_WGMMA_M = 64, /* where tokens are wgmma's M */
    W8A8_WIDE_TILE_M = 128,  /* of tiles that may serve more tokens than they have */
    W8A8_MOST_TILE_M = 256,
    W8A8_FEW_ROWS = 32, /* features of a warpgroup whose M is tokens, where there are enough */
};

/* Bytes of a stage of the ring with its barriers, and of all shared memory of a CTA. */
uint64_t w8a8_ring_stage_bytes(const ptxgen_w8a8_plan *p, const ptxgen_tile *v);
uint64_t w8a8_shared_bytes(const void *plan, const ptxgen_tile *v);

/* Tokens of the widest tile; the most features of even shares; whether clusters of two are there.
 */
uint32_t w8a8_most_tile_m(const ptxgen_w8a8_plan *p);
uint32_t w8a8_most_n_of(const ptxgen_tile *v);
bool w8a8_has_clusters(const ptxgen_w8a8_plan *p);

/*
 * Divides N into blocks such that `parts` CTAs for each block occupy all multiprocessors once, or
 * as few times as the largest tile allows; or into blocks of so many rows.
 */
void w8a8_divide_evenly(const ptxgen_w8a8_plan *p, uint32_t parts, uint32_t most_rows,
                        ptxgen_tile *v);
void w8a8_divide_n(const ptxgen_w8a8_plan *p, uint32_t rows, ptxgen_tile *v);

/* Whether the warps of a tile of mma.sync divide it, and what is staged of it at once. */
bool w8a8_divides(const ptxgen_w8a8_plan *p, const ptxgen_tile *v);
/* Chooses the warps, and the stages, of a tile of mma.sync, of wgmma, or of either; or fails. */
bool w8a8_arrange_warps(const ptxgen_w8a8_plan *p, ptxgen_tile *best);
bool w8a8_arrange_wgmma(const ptxgen_w8a8_plan *p, ptxgen_tile *v);
bool w8a8_arrange(const void *plan, ptxgen_tile *v);

/* Bytes of shared memory that are written and read for each byte of K. */
uint32_t w8a8_shared_traffic(const ptxgen_tile *v);
/*
 * Picoseconds: of a tile for a byte of K, in a launch of m tokens where `busy` multiprocessors read
 * w; and of the product for m tokens, with the copy that aligns w, without quantising x.
 */
uint64_t w8a8_byte_cost(const ptxgen_w8a8_plan *p, const ptxgen_tile *v, uint32_t m, uint64_t busy);
uint64_t w8a8_cost(const ptxgen_w8a8_plan *p, const ptxgen_tile *v, uint32_t m);

#endif
