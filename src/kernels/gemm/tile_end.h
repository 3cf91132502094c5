/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a CTA's part of a tile (stream-K). Where the part does not end the tile, its partial
 * sums are stored for the CTA that ends the tile. Where it does, the partial sums of the other CTAs
 * are added, then the rows of the tile are staged in shared memory pass by pass, and threads finish
 * them chunk by chunk.
 *
 *     part without the last stage    accumulators ─▶ workspace, flag
 *     part with the last stage       accumulators + workspace ─▶ pass: stage, synchronise, finish
 */
#ifndef PTXGEN_KERNELS_GEMM_TILE_END_H
#define PTXGEN_KERNELS_GEMM_TILE_END_H

#include "halves.h"
#include "bulk_fixup.h"
#include "fixup.h"
#include "sums.h"

struct gemm_tile_end {
    /* Set by the caller. */
    const struct gemm_threads *at;
    const struct gemm_division *division;
    const struct gemm_sums *sums;
    const struct gemm_halves *halves;     /* 16-bit results are staged, not sums; or NULL */
    const struct gemm_partials *partials; /* NULL where tiles are never divided */
    /* NULL, or the fix-up goes through a ring, whose consumer the thread is. */
    const struct gemm_bulk_fixup *handover;
    struct gemm_ring_place *place;     /* with `handover`: the thread's slot of the ring */
    ptx_pred releases;                 /* with `handover`: the thread releases slots */
    const struct gemm_threads *in_cta; /* with `handover`: the thread's place among all consumers */
    ptx_u64 flags;                     /* address of the CTAs' flags (fixup.h) */
    uint32_t columns;                  /* of y, in a tile */
    bool only; /* the CTA never has a second tile, so nothing is staged before or after this one */
    gemm_sums_register *acc;
    const void *acc_from;
    /* Makes `tile` the current one: sets `rows`, and may change the accumulators. */
    void (*locate)(void *user, struct gemm_tile_end *p, ptx_u32 tile);
    /* Finishes the chunk at `row` of the pass and `column` of the tile of y. */
    void (*finish)(void *user, const struct gemm_tile_end *p, ptx_u32 row, ptx_u32 column);
    void *user;

    ptx_u32 rows;     /* rows of y from the tile's first row on */
    ptx_u32 pass_row; /* first row of the pass, within the tile */
};

/*
 * Ends the part of a tile that `w` has just walked through; `first` is the part's first stage. The
 * CTAs of a cluster that have sums of the same tile (sums.ctas) have all of the tile's sums between
 * them, and read each other's shared memory: the caller synchronises the cluster before a CTA
 * exits.
 */
void gemm_end_part(ptx_kernel *k, struct gemm_tile_end *p, const struct gemm_walk *w,
                   ptx_u32 first);

#endif
