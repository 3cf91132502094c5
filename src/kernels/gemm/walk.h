/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-K (Osama et al., Stream-K, PPoPP 2023): the stages of all tiles along K, laid end to end,
 * are divided evenly among the CTAs. A CTA has the stages [first, end): a few whole tiles, and
 * perhaps a part of a tile at either side. A CTA works from its last tile to its first:
 *
 *     CTA 0  │ tile 0 ──────│ tile 1 ──┊       1. part of tile 1: store partial sums   2. tile 0
 *     CTA 1                 ┊── tile 1 │ tile 2 ──│   1. tile 2   2. rest of tile 1, fix-up
 *
 * The CTA with a tile's last stage does the tile's fix-up: it adds the partial sums of the other
 * CTAs to its own sums, from the nearest CTA down, then runs the epilogue. A CTA waits only for
 * CTAs with lower numbers, and each of them stores its partial sums before anything it waits for;
 * so nothing can deadlock, in whatever order CTAs start. The order of additions depends on the
 * division alone.
 */
#ifndef PTXGEN_KERNELS_GEMM_WALK_H
#define PTXGEN_KERNELS_GEMM_WALK_H

#include "emit.h"

#include <stdbool.h>

/* A division of stages among CTAs, as schedule.h describes it. */
struct gemm_division {
    ptx_u32 share, extra, granule; /* granules of a CTA, CTAs with one more, stages of a granule */
    uint32_t stages;               /* along K, of a tile */
    uint32_t early;                /* of gemm_deal_early, where `granule` is 0 */
};
/* Reads the division from the parameters "share", "extra" and "granule". */
void gemm_division_begin(ptx_kernel *k, uint32_t stages, struct gemm_division *d);
/*
 * The place in the matrix, as a number for gemm_locate, of a tile of which this CTA has stages. A
 * division gives a CTA consecutive tiles, so the tiles that are worked on at the same time would be
 * spread over the whole matrix if their numbers were their places. This function permutes the
 * places: the first tiles of all CTAs are neighbours, then the second tiles of all CTAs, and so on,
 * where a tile belongs to the CTA that ends it.
 */
ptx_u32 gemm_deal_places(ptx_kernel *k, const struct gemm_division *d, ptx_u32 tile);
/* The first stage of a CTA. */
ptx_u32 gemm_first_stage(ptx_kernel *k, const struct gemm_division *d, ptx_u32 cta);

/* A walk over the stages [first, end) of a CTA, from its last tile to its first. */
struct gemm_walk {
    ptx_u32 first, end;       /* stages that remain before the current part of a tile */
    ptx_u32 tile;             /* the current tile */
    ptx_u32 stage, stage_end; /* stages of the current tile that remain */
};
struct gemm_walk gemm_walk_begin(ptx_kernel *k, ptx_u32 first, ptx_u32 end);
/* Moves to the last tile that remains, which must exist: sets `tile`, `stage` and `stage_end`. */
void gemm_walk_next(ptx_kernel *k, const struct gemm_division *d, struct gemm_walk *w);

/*
 * Rasterisation: the place of a tile in a grid of tiles_m × tiles_n tiles. Tiles are numbered band
 * by band, so that the operands of consecutive tiles stay in the L2: a band is up to `band` tiles
 * high along M, and its tiles are numbered column by column, downwards in each column.
 */
struct gemm_place {
    ptx_u32 m, n; /* counted in tiles, `m` from the first row of the group */
    /* Set where there are groups (groups.h): the number of the group, and its rows. */
    ptx_u32 group, first, end;
};
struct gemm_place gemm_locate_in_band(ptx_kernel *k, ptx_u32 tile, ptx_u32 tiles_m,
                                      uint32_t tiles_n, uint32_t band);
/* The same in bands of 16 tiles. */
struct gemm_place gemm_locate(ptx_kernel *k, ptx_u32 tile, ptx_u32 tiles_m, uint32_t tiles_n);

#endif
