/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-K: the stages of all tiles along K, laid end to end, are divided evenly among the CTAs
 * (Osama et al., Stream-K, PPoPP 2023). A CTA has the stages [first, end), a few whole tiles and
 * perhaps a part of one at either side. It works from its last tile to its first:
 *
 *     CTA 0  │ tile 0 ─────│ tile 1 ──┊     first CTA 0's part of tile 1, which it hands over, …
 *     CTA 1  ┊── tile 1 │ tile 2 ────│      … which CTA 1 takes when it comes to its first tile
 *
 * The CTA with a tile's last stage adds the others' sums to its own, from the nearest CTA down. A
 * CTA so waits only for lower ones, which hand over first of all: nothing can deadlock, in
 * whatever order CTAs start. The order of additions depends on the division alone.
 */
#ifndef PTXGEN_KERNELS_TILE_STREAM_K_H
#define PTXGEN_KERNELS_TILE_STREAM_K_H

#include "emit.h"

#include <stdbool.h>

/* A division into granules: CTA c's start at c·share + min(c, extra). */
struct tile_division {
    ptx_u32 share, extra, granule; /* granules, CTAs with one more, stages of a granule */
    uint32_t stages;               /* along K, of a tile */
    uint32_t early; /* … that granules leave out where `granule` is 0, see schedule.h */
};
/* Reads it from the parameters "share", "extra" and "granule". */
void tile_division_begin(ptx_kernel *k, uint32_t stages, struct tile_division *d);
/*
 * A division gives a CTA tiles that follow one another, so at any time CTAs are a share apart: all
 * over the matrix. This deals the tiles' places anew, the first tile of each CTA one place, then
 * the second of each, and so on, a tile counting as of the CTA that ends it. Asked by one that has
 * stages of it.
 */
ptx_u32 tile_deal_places(ptx_kernel *k, const struct tile_division *d, ptx_u32 tile);
/* The first stage of a CTA. */
ptx_u32 tile_first_stage(ptx_kernel *k, const struct tile_division *d, ptx_u32 cta);

/* A walk over the stages [first, end) of a CTA, from its last tile to its first. */
struct tile_walk {
    ptx_u32 first, end;       /* what is left, without the present part of a tile */
    ptx_u32 tile;             /* the present one … */
    ptx_u32 stage, stage_end; /* … and the stages of it that are left */
};
struct tile_walk tile_walk_begin(ptx_kernel *k, ptx_u32 first, ptx_u32 end);
/* Turns to the part of the last tile that is left; there must be one. */
void tile_walk_next(ptx_kernel *k, const struct tile_division *d, struct tile_walk *w);

/*
 * Tiles of an m × n grid in an order that keeps the operands of neighbours in the L2: bands of up
 * to `band` tiles along M, each from left to right, and down within a column of the band.
 */
struct tile_place {
    ptx_u32 m, n;
};
struct tile_place tile_locate_in_band(ptx_kernel *k, ptx_u32 tile, ptx_u32 tiles_m,
                                      uint32_t tiles_n, uint32_t band);
/* … in bands of 16. */
struct tile_place tile_locate(ptx_kernel *k, ptx_u32 tile, ptx_u32 tiles_m, uint32_t tiles_n);

/* ---- handing over ---- */

/* Each CTA has a flag of 4 bytes at `flags`, 0 between launches. To be executed by all threads. */
void tile_hand_over(ptx_kernel *k, const struct tile_threads *at, ptx_u64 flags);
/* Executed by one thread: raises a CTA's flag, and waits for it and clears it. */
void tile_raise_flag(ptx_kernel *k, ptx_u64 flags, ptx_u32 cta);
void tile_take_flag(ptx_kernel *k, ptx_u64 flags, ptx_u32 cta);
/* Waits for the CTAs from `lowest` up to this one, and clears their flags. */
void tile_wait_for(ptx_kernel *k, const struct tile_threads *at, ptx_u64 flags, ptx_u32 lowest,
                   uint32_t threads);
/* The lowest CTA with a stage of the tile that starts at `tile_stage` and that this CTA ends. */
ptx_u32 tile_lowest_cta(ptx_kernel *k, const struct tile_division *d, const struct tile_threads *at,
                        ptx_u32 tile_stage);

/*
 * What is handed over: a CTA's accumulators as they stand in registers, fragment i of a thread 16
 * bytes at `i` times the threads of a CTA, so that all threads' are beside each other.
 */
struct tile_partials {
    uint32_t threads, fragments; /* of a CTA, of a thread */
    bool integer;                /* s32, else f32; registers are untyped */
    ptx_u64 mine;                /* the thread's first fragment in its CTA's part */
};
static inline uint64_t tile_partials_bytes(uint32_t threads, uint32_t fragments)
{
    return (uint64_t)threads * fragments * 16;
}
/* `base`: of the first CTA's part. */
void tile_partials_begin(ptx_kernel *k, const struct tile_threads *at, ptx_u64 base,
                         struct tile_partials *p);
/* Register r of fragment i. */
typedef ptx_u32 tile_fragment_register(const void *from, uint32_t i, uint32_t r);
void tile_partials_store(ptx_kernel *k, const struct tile_partials *p, tile_fragment_register *get,
                         const void *from);
/* Adds to the registers what the CTAs from this one's neighbour down to `lowest` have stored. */
void tile_partials_add(ptx_kernel *k, const struct tile_partials *p, const struct tile_threads *at,
                       ptx_u32 lowest, tile_fragment_register *get, const void *from);

#endif
