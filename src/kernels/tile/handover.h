/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fix-up of divided tiles (stream_k.h) for kernels with a ring (ring.h): partial sums go from
 * the CTA with the earlier part of a tile to the CTA that ends the tile without holding up the
 * warps that multiply.
 *
 *     CTA with a part     consumers    store partial sums, arrive at a CTA barrier, go on
 *                         flag warp    waits at that barrier, then releases the CTA's flag
 *     CTA that ends it    producer     acquires the flag, copies the sums into slots of the ring
 *                         consumers    wait for those slots as for stages, and add
 *
 * So no consumer waits until its stores are visible in the L2, for a flag, or for loads of sums.
 */
#ifndef PTXGEN_KERNELS_TILE_HANDOVER_H
#define PTXGEN_KERNELS_TILE_HANDOVER_H

#include "ring.h"
#include "stream_k.h"

struct tile_handover {
    /* Set by the caller. */
    uint32_t threads;   /* consumer threads of a CTA: they hold the sums */
    uint32_t fragments; /* of four sums, of a thread */
    uint32_t barrier;   /* number of a CTA barrier that is used for nothing else */
    const struct tile_ring *ring;
};

/* Arrives at the barrier. To be executed by the consumers after tile_partials_store. */
void tile_handover_tell(ptx_kernel *k, const struct tile_handover *h);
/*
 * Waits until all consumers have stored their sums, then sets the CTA's flag. To be executed by
 * the flag warp, in a CTA whose last stage does not end a tile.
 */
void tile_handover_announce(ptx_kernel *k, const struct tile_handover *h,
                            const struct tile_threads *at, ptx_u64 flags);
/*
 * Issues the copies of the partial sums of the CTAs from `lowest` up to this one. To be executed by
 * the producer after the last stage of a tile that the CTA ends and that has earlier parts.
 * `lowest` is a register that the call changes; `sums` is the address of the sums of CTA 0.
 */
void tile_handover_send(ptx_kernel *k, const struct tile_handover *h, ptx_u32 lowest, ptx_u64 flags,
                        ptx_u64 sums, struct tile_ring_place *place);
/*
 * Adds those partial sums to the accumulators. To be executed by the consumers after the last stage
 * of the same tile; `place` is the slot of that stage.
 */
void tile_handover_add(ptx_kernel *k, const struct tile_handover *h, const struct tile_threads *at,
                       ptx_u32 lowest, struct tile_ring_place *place, ptx_pred releases,
                       tile_fragment_register *get, const void *from);

#endif
