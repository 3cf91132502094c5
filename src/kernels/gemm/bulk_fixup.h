/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fix-up of divided tiles (fixup.h) for kernels with a ring (ring.h): partial sums go from
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
#ifndef PTXGEN_KERNELS_GEMM_BULK_FIXUP_H
#define PTXGEN_KERNELS_GEMM_BULK_FIXUP_H

#include "ring.h"
#include "fixup.h"

struct gemm_bulk_fixup {
    /* Set by the caller. */
    uint32_t threads;   /* consumer threads of a CTA: they hold the sums */
    uint32_t fragments; /* of four sums, of a thread */
    uint32_t barrier;   /* number of a CTA barrier that is used for nothing else */
    const struct gemm_ring *ring;
};

/* Arrives at the barrier. To be executed by the consumers after gemm_partials_store. */
void gemm_bulk_fixup_arrive(ptx_kernel *k, const struct gemm_bulk_fixup *h);
/*
 * Waits until all consumers have stored their sums, then sets the CTA's flag. To be executed by
 * the flag warp, in a CTA whose last stage does not end a tile.
 */
void gemm_bulk_fixup_publish(ptx_kernel *k, const struct gemm_bulk_fixup *h,
                             const struct gemm_threads *at, ptx_u64 flags);
/*
 * Issues the copies of the partial sums of the CTAs from `lowest` up to this one. To be executed by
 * the producer after the last stage of a tile that the CTA ends and that has earlier parts.
 * `lowest` is a register that the call changes; `sums` is the address of the sums of CTA 0.
 */
void gemm_bulk_fixup_issue(ptx_kernel *k, const struct gemm_bulk_fixup *h, ptx_u32 lowest,
                           ptx_u64 flags, ptx_u64 sums, struct gemm_ring_place *place);
/*
 * Adds those partial sums to the accumulators. To be executed by the consumers after the last stage
 * of the same tile; `place` is the slot of that stage.
 */
void gemm_bulk_fixup_add(ptx_kernel *k, const struct gemm_bulk_fixup *h,
                         const struct gemm_threads *at, ptx_u32 lowest,
                         struct gemm_ring_place *place, ptx_pred releases,
                         gemm_fragment_register *get, const void *from);

#endif
