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
#ifndef PTXGEN_KERNELS_TILE_STREAM_K_H
#define PTXGEN_KERNELS_TILE_STREAM_K_H

#include "emit.h"

#include <stdbool.h>

/* A division of stages among CTAs, as schedule.h describes it. */
struct tile_division {
    ptx_u32 share, extra, granule; /* granules of a CTA, CTAs with one more, stages of a granule */
    uint32_t stages;               /* along K, of a tile */
    uint32_t early;                /* of tile_deal_early, where `granule` is 0 */
};
/* Reads the division from the parameters "share", "extra" and "granule". */
void tile_division_begin(ptx_kernel *k, uint32_t stages, struct tile_division *d);
/*
 * The place in the matrix, as a number for tile_locate, of a tile of which this CTA has stages. A
 * division gives a CTA consecutive tiles, so the tiles that are worked on at the same time would be
 * spread over the whole matrix if their numbers were their places. This function permutes the
 * places: the first tiles of all CTAs are neighbours, then the second tiles of all CTAs, and so on,
 * where a tile belongs to the CTA that ends it.
 */
ptx_u32 tile_deal_places(ptx_kernel *k, const struct tile_division *d, ptx_u32 tile);
/* The first stage of a CTA. */
ptx_u32 tile_first_stage(ptx_kernel *k, const struct tile_division *d, ptx_u32 cta);

/* A walk over the stages [first, end) of a CTA, from its last tile to its first. */
struct tile_walk {
    ptx_u32 first, end;       /* stages that remain before the current part of a tile */
    ptx_u32 tile;             /* the current tile */
    ptx_u32 stage, stage_end; /* stages of the current tile that remain */
};
struct tile_walk tile_walk_begin(ptx_kernel *k, ptx_u32 first, ptx_u32 end);
/* Moves to the last tile that remains, which must exist: sets `tile`, `stage` and `stage_end`. */
void tile_walk_next(ptx_kernel *k, const struct tile_division *d, struct tile_walk *w);

/*
 * Rasterisation: the place of a tile in a grid of tiles_m × tiles_n tiles. Tiles are numbered band
 * by band, so that the operands of consecutive tiles stay in the L2: a band is up to `band` tiles
 * high along M, and its tiles are numbered column by column, downwards in each column.
 */
struct tile_place {
    ptx_u32 m, n;
};
struct tile_place tile_locate_in_band(ptx_kernel *k, ptx_u32 tile, ptx_u32 tiles_m,
                                      uint32_t tiles_n, uint32_t band);
/* The same in bands of 16 tiles. */
struct tile_place tile_locate(ptx_kernel *k, ptx_u32 tile, ptx_u32 tiles_m, uint32_t tiles_n);

/* ---- fix-up ---- */

/*
 * Sets the CTA's flag after all threads have stored their partial sums. Each CTA has a flag of 4
 * bytes at `flags`, which is 0 between launches. To be executed by all threads of the team.
 */
void tile_hand_over(ptx_kernel *k, const struct tile_threads *at, ptx_u64 flags);
/* Sets a CTA's flag; waits for a CTA's flag and clears it. Each to be executed by one thread. */
void tile_raise_flag(ptx_kernel *k, ptx_u64 flags, ptx_u32 cta);
void tile_take_flag(ptx_kernel *k, ptx_u64 flags, ptx_u32 cta);
/*
 * Waits for the flags of the CTAs from `lowest` up to this one, and clears them. To be executed by
 * all `threads` threads of the team.
 */
void tile_wait_for(ptx_kernel *k, const struct tile_threads *at, ptx_u64 flags, ptx_u32 lowest,
                   uint32_t threads);
/*
 * The lowest CTA that has a stage of a tile that this CTA ends; `tile_stage` is the first stage of
 * the tile.
 */
ptx_u32 tile_lowest_cta(ptx_kernel *k, const struct tile_division *d, const struct tile_threads *at,
                        ptx_u32 tile_stage);

/*
 * The partial sums of a CTA in the workspace, in the order of the accumulators' registers: fragment
 * i of thread t is 16 bytes at 16·(i·threads + t), so that a warp's accesses are contiguous.
 */
struct tile_partials {
    uint32_t threads, fragments; /* of a CTA, of a thread */
    bool integer;                /* s32, else f32; registers are untyped */
    ptx_u64 mine;                /* address of the thread's first fragment */
};
static inline uint64_t tile_partials_bytes(uint32_t threads, uint32_t fragments)
{
    return (uint64_t)threads * fragments * 16;
}
/* `base`: address of the partial sums of CTA 0. */
void tile_partials_begin(ptx_kernel *k, const struct tile_threads *at, ptx_u64 base,
                         struct tile_partials *p);
/* Returns register r of fragment i of the thread's accumulators. */
typedef ptx_u32 tile_fragment_register(const void *from, uint32_t i, uint32_t r);
void tile_partials_store(ptx_kernel *k, const struct tile_partials *p, tile_fragment_register *get,
                         const void *from);
/* Adds the partial sums of the CTAs from this CTA's neighbour down to `lowest` to the registers. */
void tile_partials_add(ptx_kernel *k, const struct tile_partials *p, const struct tile_threads *at,
                       ptx_u32 lowest, tile_fragment_register *get, const void *from);

#endif
