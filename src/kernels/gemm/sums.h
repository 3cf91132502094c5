/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staging of a tile's sums in shared memory. The accumulators of a tile are spread over lanes, over
 * warps along K, and over the CTAs of a cluster; an epilogue reads their sums as chunks of a row.
 *
 *     accumulators ── st.shared ─▶ [warp along K][row of the pass][tile_n + 4 sums]
 *                                  ── ld.shared, add over warps and CTAs ─▶ chunk of a row
 *
 * Rows are tokens and columns are features. The products are mma.m16n8 with features along mma's M
 * and tokens along mma's N: register r of tile t and row group j of the lane with group g and quad
 * q is the sum at column 16t + g + 8·(r / 2) and row 8j + 2q + r % 2.
 */
#ifndef PTXGEN_KERNELS_GEMM_SUMS_H
#define PTXGEN_KERNELS_GEMM_SUMS_H

#include "emit.h"

#include <stdbool.h>

enum { GEMM_SUMS_WIDTH = 8 /* of a chunk, at most */, GEMM_SUMS_CTAS = 8 };

struct gemm_sums {
    /* Set by the caller. */
    uint32_t tile_m, tile_n; /* of the CTA */
    uint32_t warp_n, wk;     /* columns of a warp; warps along K */
    bool interleaved;        /* tiles of a warp are 64 columns apart (wgmma); else contiguous */
    uint32_t warp_m;         /* rows of a warp where warps divide the rows; 0: all tile_m rows */
    ptx_u32 warp_row;        /* first row of the warp where warp_m is not 0 */
    uint32_t pass_m;         /* rows staged at once: a multiple of 8 that divides a warp's rows */
    uint32_t wm;             /* warps that each stage their share of every pass; 0: no shares */
    ptx_u32 along_m;         /* index of the warp among those, where wm is above 1 */
    uint32_t width;          /* columns of a chunk: 1, 2, 4 or 8 */
    uint32_t ctas;   /* of a cluster that have sums of the same tile; 0 or 1: this CTA only */
    ptx_u32 rank;    /* of this CTA among `ctas` */
    bool alone;      /* each warp stages and finishes its own sums; wk is 1 */
    bool integer;    /* sums are s32, else f32; registers are untyped */
    ptx_u32 staging; /* shared address of gemm_sums_bytes or gemm_sums_alone_bytes */

    ptx_u32 lane; /* shared address for the lane's first accumulator */
    /* The staging address in each CTA of the cluster; of two CTAs, [1] is that of the other one. */
    ptx_u32 of_cta[GEMM_SUMS_CTAS];
    ptx_u32 staged;      /* staging address of the warp that is alone, or of the CTA */
    ptx_u32 warp_column; /* first column of the warp */
};

/* Bytes between staged rows: 16 more than the columns take, against bank conflicts. */
static inline uint32_t gemm_sums_pitch(uint32_t tile_n)
{
    return (tile_n + 4) * 4;
}
/* Rows of a tile that a warp has sums of. */
static inline uint32_t gemm_sums_warp_rows(const struct gemm_sums *s)
{
    return s->warp_m ? s->warp_m : s->wm ? s->tile_m / s->wm : s->tile_m;
}
/* Rows of a pass that a warp stages, where it stages any. */
static inline uint32_t gemm_sums_warp_pass(const struct gemm_sums *s)
{
    return s->wm ? s->pass_m / s->wm : s->pass_m;
}
static inline uint32_t gemm_sums_bytes(uint32_t tile_n, uint32_t pass_m, uint32_t wk)
{
    return wk * pass_m * gemm_sums_pitch(tile_n);
}
/* Bytes of staging where each of `warps` warps is alone. */
static inline uint32_t gemm_sums_alone_bytes(uint32_t warp_n, uint32_t pass_m, uint32_t warps)
{
    return warps * pass_m * gemm_sums_pitch(warp_n);
}

void gemm_sums_begin(ptx_kernel *k, const struct gemm_threads *at, ptx_u32 warp_along_n,
                     ptx_u32 warp_along_k, struct gemm_sums *s);
/* Returns register r of tile t and row group j of the thread's accumulators. */
typedef ptx_u32 gemm_sums_register(const void *from, uint32_t t, uint32_t j, uint32_t r);
/* Stages the lane's accumulators of pass `pass` over the rows of its warp. */
void gemm_sums_stage(ptx_kernel *k, const struct gemm_sums *s, uint32_t pass,
                     gemm_sums_register *acc, const void *from);
/*
 * Loads a chunk at row `row` of the pass and column `column`: each sum is added up over the warps
 * along K and the CTAs of the cluster.
 */
void gemm_sums_load(ptx_kernel *k, const struct gemm_sums *s, ptx_u32 row, ptx_u32 column,
                    ptx_u32 sums[GEMM_SUMS_WIDTH]);

/*
 * Staging of accumulators as 16-bit results, for an epilogue that does nothing but round: a sum is
 * rounded in its register, and stmatrix with .trans stores blocks of 8 × 8 results by rows.
 *
 *     accumulators (sums.h) ── cvt ─▶ pairs ── stmatrix.trans ─▶ staging ── 16 bytes ─▶ Y
 *
 * Staging is [row][2·columns bytes]; the 16-byte chunk c of row r is at position c ^ (r & 7), so
 * that neither stmatrix nor the loads have bank conflicts.
 */
enum { GEMM_HALVES_WIDTH = 8 /* columns of a chunk */ };

struct gemm_halves {
    /* Set by the caller. */
    uint32_t columns; /* of a staged row: a multiple of 64 */
    uint32_t tiles;   /* a warp's tiles of 16 columns, 64 apart */
    uint32_t pass_m;  /* rows that are staged at once: a multiple of 16 that divides the tile's */
    bool bf16;        /* results are bf16, else f16 */
    bool alone; /* each warp stages its own columns, which are contiguous, apart from others */
    /* Shared address of pass_m rows: a multiple of 16 bytes, of 128 for a warp that is alone. */
    ptx_u32 staging;

    ptx_u32 lane; /* shared address that the lane gives to stmatrix for the first block */
};

/* The first tile of warp at->warp starts at column 16·at->warp, or at 0 where warps are alone. */
void gemm_halves_begin(ptx_kernel *k, const struct gemm_threads *at, struct gemm_halves *h);
/* Rounds and stages the lane's accumulators of the rows pass·pass_m to (pass + 1)·pass_m − 1. */
void gemm_halves_stage(ptx_kernel *k, const struct gemm_halves *h, uint32_t pass,
                       gemm_sums_register *acc, const void *from);
/* Loads the eight results at `row` of the pass and `column`, as four pairs. */
void gemm_halves_load(ptx_kernel *k, const struct gemm_halves *h, ptx_u32 row, ptx_u32 column,
                      ptx_u32 pairs[GEMM_HALVES_WIDTH / 2]);

#endif
