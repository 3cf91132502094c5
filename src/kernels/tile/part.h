/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a CTA's part of a tile: its sums are handed over, or, where the part ends the tile,
 * brought together with the other CTAs', staged pass by pass and finished a chunk a thread.
 */
#ifndef PTXGEN_KERNELS_TILE_PART_H
#define PTXGEN_KERNELS_TILE_PART_H

#include "halves.h"
#include "handover.h"
#include "stream_k.h"
#include "sums.h"

struct tile_part {
    /* Set by the caller. */
    const struct tile_threads *at;
    const struct tile_division *division;
    const struct tile_sums *sums;
    const struct tile_halves *halves; /* what is staged instead of sums, or NULL */
    const struct tile_partials *partials; /* NULL: tiles are whole */
    const struct tile_handover *handover; /* others hand sums over, or NULL */
    struct tile_ring_place *place;        /* … to their ring, where the thread stands, … */
    ptx_pred releases;                    /* … and whether it gives slots back */
    const struct tile_threads *in_cta;    /* … and which of the CTA's it is */
    ptx_u64 flags;    /* of the CTAs */
    uint32_t columns; /* of the output, in a tile */
    bool only;        /* tile of the CTA: nothing is staged before or after it */
    tile_sums_register *acc;
    const void *acc_from;
    /* Turns to a tile, sets `rows`, and may do something to the accumulators. */
    void (*locate)(void *user, struct tile_part *p, ptx_u32 tile);
    /* Finishes the chunk at a row of the pass and a column of the output's tile. */
    void (*finish)(void *user, const struct tile_part *p, ptx_u32 row, ptx_u32 column);
    void *user;

    ptx_u32 rows;     /* of the output, from the tile's first one on */
    ptx_u32 pass_row; /* the first row, within the tile, that is staged */
};

/*
 * Ends the part that `w` has just walked through, from stage `first` on. In a cluster whose CTAs
 * have sums of the same tile, these have all of it between them; before they exit, the cluster has
 * to synchronise, since others may still read their sums.
 */
void tile_part_end(ptx_kernel *k, struct tile_part *p, const struct tile_walk *w, ptx_u32 first);

#endif
