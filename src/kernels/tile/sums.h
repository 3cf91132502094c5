/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From accumulators to rows: the sums of a tile, spread over lanes and warps along K, are brought
 * together in shared memory, where a thread reads them as chunks of a row.
 *
 * The accumulators are those of mma.m16n8 with the columns of C as A's rows: register r of tile t
 * and row group j is column 16t + g + 8·(r / 2), row 8j + 2q + r % 2 of the lane g, q.
 */
#ifndef PTXGEN_KERNELS_TILE_SUMS_H
#define PTXGEN_KERNELS_TILE_SUMS_H

#include "emit.h"

#include <stdbool.h>

enum { TILE_SUMS_WIDTH = 8 /* of a chunk, at most */, TILE_SUMS_CTAS = 8 };

struct tile_sums {
    /* Set by the caller. */
    uint32_t tile_m, tile_n; /* of the CTA */
    uint32_t warp_n, wk;     /* columns of a warp; warps along K */
    bool interleaved;        /* a warp's tiles are 64 columns apart, four warps' side by side */
    uint32_t warp_m;         /* rows of a warp, where it does not have all; 0: tile_m */
    ptx_u32 warp_row;        /* … and the first of them */
    uint32_t pass_m;         /* rows that are staged at once: a multiple of 8, divides a warp's */
    uint32_t width;          /* columns of a chunk: 2, 4 or 8 */
    uint32_t ctas;           /* of a cluster that have sums of the same tile; 0: this one only */
    ptx_u32 rank;            /* … and this one's place there */
    bool alone;              /* each warp stages and finishes its own sums; wk is 1 */
    bool integer;            /* s32, else f32; registers are untyped */
    ptx_u32 staging;         /* shared, tile_sums_bytes or tile_sums_alone_bytes */
    bool remote;             /* for loads: `staging` is another CTA's of the cluster */

    ptx_u32 lane;                   /* where the lane's accumulators go */
    ptx_u32 of_cta[TILE_SUMS_CTAS]; /* what each of a cluster's has staged */
    ptx_u32 staged, warp_column;    /* where staged sums begin, and the warp's first column */
};

/* A row of the staging area is 16 bytes longer than its columns, against bank conflicts. */
static inline uint32_t tile_sums_pitch(uint32_t tile_n)
{
    return (tile_n + 4) * 4;
}
static inline uint32_t tile_sums_warp_rows(const struct tile_sums *s)
{
    return s->warp_m ? s->warp_m : s->tile_m;
}
static inline uint32_t tile_sums_bytes(uint32_t tile_n, uint32_t pass_m, uint32_t wk)
{
    return wk * pass_m * tile_sums_pitch(tile_n);
}
/* … where warps are alone, with `warps` of them. */
static inline uint32_t tile_sums_alone_bytes(uint32_t warp_n, uint32_t pass_m, uint32_t warps)
{
    return warps * pass_m * tile_sums_pitch(warp_n);
}

void tile_sums_begin(ptx_kernel *k, const struct tile_threads *at, ptx_u32 warp_along_n,
                     ptx_u32 warp_along_k, struct tile_sums *s);
/* Register r of tile t and row group j. */
typedef ptx_u32 tile_sums_register(const void *from, uint32_t t, uint32_t j, uint32_t r);
/* Stages the lane's accumulators of the rows of a pass over its warp's rows. */
void tile_sums_stage(ptx_kernel *k, const struct tile_sums *s, uint32_t pass,
                     tile_sums_register *acc, const void *from);
/*
 * The sums of a chunk over the warps along K, and the CTAs of a cluster, at row `row` of the pass
 * and column `column`.
 */
void tile_sums_load(ptx_kernel *k, const struct tile_sums *s, ptx_u32 row, ptx_u32 column,
                    ptx_u32 sums[TILE_SUMS_WIDTH]);

#endif
