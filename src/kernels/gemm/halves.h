/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staging of accumulators as 16-bit results, for an epilogue that does nothing but round: a sum is
 * rounded in its register, and stmatrix with .trans stores blocks of 8 × 8 results by rows.
 *
 *     accumulators (sums.h) ── cvt ─▶ pairs ── stmatrix.trans ─▶ staging ── 16 bytes ─▶ Y
 *
 * Staging is [row][2·columns bytes]; the 16-byte chunk c of row r is at position c ^ (r & 7), so
 * that neither stmatrix nor the loads have bank conflicts.
 */
#ifndef PTXGEN_KERNELS_GEMM_HALVES_H
#define PTXGEN_KERNELS_GEMM_HALVES_H

#include "sums.h"

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
